//! What is sent.

use bytes::Bytes;
use holdfast_wire::{CancelRequest, PaymentNotification, PlaceLine, PlaceOrderRequest, ResolveOrderRequest};
use serde::Serialize;
use uuid::Uuid;

use crate::history::Ask;
use crate::sale::{Intent, Sale};

/// Who says that payments came.
const PROVIDER: &str = "drill";

/// How long a look waits for the end of a queued order, in seconds.
pub(crate) const LOOK_SECONDS: u64 = 5;

/// A request, made once and sent as often as it takes.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) ask: Ask,
    pub(super) about: Option<Uuid>,
    pub(super) path: String,
    /// None: it only reads.
    pub(super) body: Option<Bytes>,
}

/// The payments of an order: a second one is another payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payment {
    First,
    Second,
}

impl Wanted {
    fn write(ask: Ask, about: Option<Uuid>, path: String, body: &impl Serialize) -> Self {
        // None of these types can fail to be written; an empty body would be refused, and seen.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { ask, about, path, body: Some(Bytes::from(body)) }
    }

    /// The buyer's order.
    pub(super) fn place(sale: &Sale, intent: &Intent, path: &'static str) -> Self {
        Self::order(sale, intent, path, Ask::Place, intent.quantity)
    }

    /// The same number for something else.
    pub(super) fn alter(sale: &Sale, intent: &Intent, path: &'static str) -> Self {
        Self::order(sale, intent, path, Ask::Alter, intent.quantity.saturating_add(1))
    }

    fn order(sale: &Sale, intent: &Intent, path: &'static str, ask: Ask, quantity: u32) -> Self {
        let sku = sale.goods.get(intent.good).map(|good| good.sku.clone()).unwrap_or_default();
        let request = PlaceOrderRequest {
            campaign_id: sale.campaign.clone(),
            order_no: sale.order_no(intent.buyer),
            account: Sale::account(intent.account),
            lines: vec![PlaceLine { sku, location: None, quantity }],
            hold_seconds: None,
            amount_due: None,
            limit_keys: None,
            metadata: None,
        };
        Self::write(ask, None, path.to_owned(), &request)
    }

    /// What became of the order; with a wait for the end of the queue, or at once.
    pub(super) fn look(id: Uuid, ticket: Option<&str>, waits: bool) -> Self {
        let mut path = format!("/v1/orders/{id}");
        let mut mark = '?';
        if let Some(ticket) = ticket {
            path.push_str(&format!("{mark}ticket={ticket}"));
            mark = '&';
        }
        if waits {
            path.push_str(&format!("{mark}wait={LOOK_SECONDS}s"));
        }
        Self { ask: Ask::Look, about: Some(id), path, body: None }
    }

    /// A notice about a payment.
    pub(super) fn notice(sale: &Sale, buyer: u64, id: Uuid, ask: Ask, payment: Payment) -> Self {
        let payment_id = sale.payment(buyer, payment == Payment::Second);
        let has_failed = ask == Ask::Fail;
        let notice = PaymentNotification {
            event_id: format!("{payment_id}{}", if has_failed { ":failed" } else { "" }),
            payment_id,
            order_id: Some(id.to_string()),
            outcome: if has_failed { "failed" } else { "succeeded" }.to_owned(),
            ..PaymentNotification::default()
        };
        Self::write(ask, Some(id), format!("/v1/payments/{PROVIDER}/notifications"), &notice)
    }

    /// Gives the order back.
    pub(super) fn cancel(id: Uuid) -> Self {
        Self::write(Ask::Cancel, Some(id), format!("/v1/orders/{id}/cancel"), &CancelRequest::default())
    }

    /// Says that the money of a payment has gone back.
    pub(super) fn refunded(sale: &Sale, buyer: u64, id: Uuid, payment: Payment) -> Self {
        let request = ResolveOrderRequest {
            action: "refunded".to_owned(),
            reason: "drill".to_owned(),
            operator: "drill".to_owned(),
            until: None,
            payment_ids: Some(vec![sale.payment(buyer, payment == Payment::Second)]),
            lines: None,
            decision_id: None,
        };
        Self::write(Ask::Refund, Some(id), format!("/v1/orders/{id}/resolve"), &request)
    }
}
