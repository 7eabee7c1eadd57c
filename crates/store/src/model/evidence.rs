//! The model's evidence: every row is looked at.

use async_trait::async_trait;
use holdfast_core::command::Transfer;
use holdfast_core::id::OrderId;
use holdfast_core::ledger::Entry;
use holdfast_core::order::Payment;
use holdfast_core::snapshot::PaymentClaim;

use super::{ModelStore, Rows};
use crate::acts::{About, ActFilter, ActRow};
use crate::error::Error;
use crate::evidence::{
    ActionSum, EVIDENCE_ENTRIES_MAX, EVIDENCE_RECORDS_MAX, Evidence, ExplainOrder, ExplainPool,
    OrderEvidence, Owner, PoolEvidence, PoolSum, Told, approvals_of, events_of,
};
use crate::read::{Page, page_of};

#[async_trait]
impl Evidence for ModelStore {
    async fn order_evidence(&self, order: ExplainOrder) -> Result<Option<OrderEvidence>, Error> {
        let rows = self.rows();
        let id = match order {
            ExplainOrder::Id(id) => Some(id),
            ExplainOrder::Key(key) => rows.order_keys.get(&key).copied(),
        };
        Ok(id.and_then(|id| rows.order_evidence(id)))
    }

    async fn pool_evidence(&self, of: ExplainPool) -> Result<Option<PoolEvidence>, Error> {
        Ok(self.rows().pool_evidence(&of))
    }
}

impl Rows {
    fn acts_about(&self, about: &About) -> Told<ActRow> {
        let filter = ActFilter { subject: Some(about.subject()), ..ActFilter::default() };
        self.trail.acts(&filter, &Page { after: None, limit: EVIDENCE_RECORDS_MAX })
    }

    fn order_evidence(&self, id: OrderId) -> Option<OrderEvidence> {
        let order = self.orders.get(&id)?.clone();
        let own = self.ledger.values().filter(|entry| entry.order_id == Some(id)).cloned();
        let claim = |payment: &Payment| {
            let key = (payment.notice.provider.clone(), payment.notice.payment_id.clone());
            let order = *self.claims.get(&key)?;
            Some(PaymentClaim { provider: key.0, payment_id: key.1, order })
        };
        let mut claims: Vec<_> = order.payments.iter().filter_map(claim).collect();
        claims.sort_by(|a, b| (&a.provider, &a.payment_id).cmp(&(&b.provider, &b.payment_id)));
        claims.dedup();
        let (from, to) = approvals_of(id);
        let is_its = |key: &str| from.as_str() <= key && key < to.as_str();
        let approvals = self.approvals.iter().filter(|(key, _)| is_its(key.as_str())).map(|(_, found)| found);
        let own: Vec<Entry> = own.collect();
        let events = events_of(&own);
        let deliveries = events.into_iter().flat_map(|position| self.deliveries_of(position)).collect();
        Some(OrderEvidence {
            deliveries,
            entries: page_of(own, EVIDENCE_ENTRIES_MAX),
            claims,
            cache: order.home.and_then(|home| self.caches.get(&home).cloned()),
            cases: page_of(self.own.about(|case| case.order == Some(id)), EVIDENCE_RECORDS_MAX),
            approvals: page_of(approvals.cloned().collect(), EVIDENCE_RECORDS_MAX),
            acts: self.acts_about(&About::Order(id, order.key.campaign.clone())),
            order,
        })
    }

    fn pool_evidence(&self, of: &ExplainPool) -> Option<PoolEvidence> {
        let row = self.pool_row(of.pool)?;
        let concerned: Vec<_> = row.buckets.iter().filter(|bucket| of.covers(bucket.key.number)).collect();
        if concerned.is_empty() {
            return None;
        }
        let entries_of = |bucket| self.ledger.range((bucket, 0)..=(bucket, u64::MAX)).map(|(_, entry)| entry);
        let positions = concerned.iter().map(|bucket| {
            let at_time = of.at.map(|at| {
                entries_of(bucket.key).take_while(|entry| entry.at <= at).last().map_or(0, |entry| entry.seq)
            });
            (bucket.key, of.position(bucket.ledger_seq, at_time))
        });
        let mut sum = PoolSum::new(positions);
        let each = sum.entries_of_each();
        let (mut told, mut more) = (Vec::new(), false);
        for (bucket, seq) in sum.positions() {
            let counted: Vec<&Entry> = entries_of(bucket).filter(|entry| entry.seq <= seq).collect();
            for entry in &counted {
                if !sum.is_summed() {
                    break;
                }
                sum.action(bucket, entry.action, ActionSum { entries: 1, delta: entry.delta });
                if let Some(order) = entry.order_id {
                    let order_no = entry.business_no.clone();
                    sum.owner(Owner { order, order_no, held: entry.delta.held, sold: entry.delta.sold });
                }
            }
            let from = of.from_seq.unwrap_or(0);
            let mut told_of: Vec<Entry> = counted.into_iter().filter(|e| e.seq >= from).cloned().collect();
            more |= told_of.len() > each;
            let surplus = told_of.len().saturating_sub(each);
            match of.from_seq {
                Some(_) => told_of.truncate(each),
                None => drop(told_of.drain(..surplus)),
            }
            told.extend(told_of);
        }
        let (buckets, actions, owners) = sum.finish();
        let is_among = |transfer: &&Transfer| {
            told.iter().any(|e| &*e.source == "transfer" && *e.business_no == *transfer.transfer_id.as_str())
        };
        Some(PoolEvidence {
            transfers: self.transfers.values().filter(is_among).cloned().collect(),
            caches: concerned.iter().filter_map(|bucket| self.caches.get(&bucket.key).cloned()).collect(),
            cases: page_of(self.own.about(|case| case.pool == Some(of.pool)), EVIDENCE_RECORDS_MAX),
            acts: self.acts_about(&About::Pool(of.pool)),
            entries: (told, more),
            buckets,
            actions,
            owners,
            row,
        })
    }
}
