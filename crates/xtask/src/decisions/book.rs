//! The rows of one order and one unit of stock, for the core to decide on.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use holdfast_core::assortment::Assortment;
use holdfast_core::campaign::{Campaign, Policy, Switches};
use holdfast_core::command::{
    Command, OpenPool, OrderAction, OrderCommand, Outcome, Place, PlaceLine, Signed,
};
use holdfast_core::decide::decide;
use holdfast_core::id::{Account, CampaignId, Location, OrderId, OrderKey, OrderNo, PoolId, Sku};
use holdfast_core::limit::{Ceilings, LimitKeys};
use holdfast_core::order::Order;
use holdfast_core::snapshot::{Changes, Snapshot};
use holdfast_core::stock::{Bucket, Path, Routing};
use holdfast_core::time::Timestamp;

const START: Timestamp = Timestamp(1_700_000_000_000_000);
const POOL: PoolId = PoolId(1);
/// The order that the table is about.
const OURS: OrderId = OrderId(1);
const ANOTHERS: OrderId = OrderId(2);

/// All rows, and the clock.
pub(super) struct Book {
    pub(super) clock: Timestamp,
    rows: Snapshot,
}

impl Book {
    /// A campaign with one unit, which our order holds.
    pub(super) fn new(policy: Policy) -> Result<Self> {
        let campaign = Campaign {
            id: CampaignId::new("sale")?,
            name: "Sale".to_owned(),
            starts_at: None,
            ends_at: None,
            ceilings: Ceilings::default().after(None, &policy),
            assortment: Assortment::default(),
            unsold_to: None,
            warm_asked_at: None,
            policy,
            switches: Switches { opened: true, ..Switches::default() },
            created_at: START,
            updated_at: START,
        };
        let mut book = Self { clock: START, rows: Snapshot::default() };
        let open = OpenPool {
            id: POOL,
            campaign: campaign.id.clone(),
            sku: Sku::new("SKU")?,
            location: Location::new("main")?,
            supply: 1,
            buckets: 1,
            path: Path::Batched,
            routing: Routing::OrderHash,
            signed: Signed::new("operator", ""),
        };
        book.rows.campaigns.insert(campaign.id.clone(), Arc::new(campaign));
        book.decide(&Command::OpenPool(open))?;
        book.place(OURS)?;
        Ok(book)
    }

    fn place(&mut self, id: OrderId) -> Result<Outcome> {
        let (sku, location) = (Sku::new("SKU")?, Some(Location::main()));
        let line = PlaceLine { sku, location, pool: POOL, made_of: None, quantity: 1 };
        self.decide(&Command::Place(Arc::new(Place {
            id,
            key: OrderKey {
                campaign: CampaignId::new("sale")?,
                order_no: OrderNo::new(&format!("A-{}", id.0))?,
            },
            account: Account::new("ann")?,
            lines: vec![line],
            hold_seconds: None,
            amount_due: None,
            limit_keys: LimitKeys::new(),
            metadata: None,
            route: 0,
            record_refusals: false,
            assortment: None,
            intake: None,
        })))
    }

    /// Another order takes the unit and is sold.
    pub(super) fn sell_to_another(&mut self) -> Result<()> {
        self.place(ANOTHERS)?;
        self.change(ANOTHERS, OrderAction::Confirm)?;
        ensure!(self.rows.orders.contains_key(&ANOTHERS), "the unit was there for another");
        Ok(())
    }

    pub(super) fn freeze(&mut self) {
        for pool in self.rows.pools.values_mut() {
            pool.frozen = true;
        }
    }

    pub(super) fn send(&mut self, action: OrderAction) -> Result<Outcome> {
        self.change(OURS, action)
    }

    fn change(&mut self, order: OrderId, action: OrderAction) -> Result<Outcome> {
        let signed = Signed::new("table", "");
        self.decide(&Command::Order(OrderCommand::new(order, action, signed)))
    }

    pub(super) fn order(&self) -> Result<&Order> {
        self.rows.orders.get(&OURS).map(|order| &**order).context("our order")
    }

    pub(super) fn bucket(&self) -> Result<&Bucket> {
        self.rows.buckets.values().next().context("the bucket")
    }

    fn decide(&mut self, command: &Command) -> Result<Outcome> {
        let decision = decide(self.clock, self.rows.clone(), [command]);
        self.write(decision.changes);
        decision.outcomes.into_iter().next().context("one outcome a command")
    }

    fn write(&mut self, changes: Changes) {
        let rows = &mut self.rows;
        rows.pools.extend(changes.pools.into_iter().map(|pool| (pool.id, pool)));
        rows.buckets.extend(changes.buckets.into_iter().map(|change| (change.bucket.key, change.bucket)));
        for change in changes.orders {
            rows.order_keys.insert(change.order.key.clone(), change.order.id);
            rows.orders.insert(change.order.id, change.order);
        }
        let events = changes.payments.into_iter();
        rows.events.extend(events.map(|row| ((row.provider, row.event_id), row.order)));
        let claims = changes.claims.into_iter();
        rows.claims.extend(claims.map(|claim| ((claim.provider, claim.payment_id), claim.order)));
    }
}
