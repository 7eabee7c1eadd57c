//! One order on the model, to know what another authority must answer.

use std::sync::Arc;

use holdfast_core::campaign::Policy;
use holdfast_core::id::{Operator, OrderId};
use holdfast_core::order::{Order, State};
use holdfast_metrics::{Code, Label};

use super::START;
use super::arrivals::{Arrival, order, word_of};
use super::support::{campaign_id, change, one, open_campaign, open_pool, placed, whole};
use crate::clock::{Clock, ManualClock};
use crate::contract::{Store, SwitchCampaign};
use crate::model::ModelStore;

const ORDER: u128 = 1;

/// The model with one order that was just placed.
pub struct Rehearsal {
    model: ModelStore,
    clock: Arc<ManualClock>,
}

impl Rehearsal {
    /// Places it under a policy.
    pub async fn begin(policy: Policy) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        let model = ModelStore::new(clock.clone());
        open_campaign(&model, policy).await;
        open_pool(&model, 1, 10, 2).await;
        one(&model, whole(&[1]), placed(order(&campaign_id(), ORDER, 1))).await;
        Self { model, clock }
    }

    /// The order as it stands.
    pub async fn order(&self) -> Arc<Order> {
        self.model.order(OrderId(ORDER)).await.expect("read").expect("an order")
    }

    /// The end of the hold passes; the order is not yet released.
    pub async fn end_passes(&self) {
        if let Some(end) = self.order().await.hold_ends_at {
            self.clock.set(self.clock.now().max(end));
        }
    }

    /// The hold ends and is released, or goes to review.
    pub async fn hold_is_over(&self) {
        let order = self.order().await;
        if let (State::Held, Some(due)) = (order.state, order.due_at) {
            self.clock.set(self.clock.now().max(due));
            let action = Arrival::Expiry.action("", START).expect("a command");
            one(&self.model, whole(&[1]), change(ORDER, action)).await;
        }
    }

    /// What arrives; the word of its answer.
    pub async fn send(&self, arrival: Arrival) -> &'static str {
        let Some(action) = arrival.action("o", START) else { return self.switch(arrival).await };
        word_of(&one(&self.model, whole(&[1]), change(ORDER, action)).await)
    }

    /// A closed campaign is not paused any more.
    async fn switch(&self, arrival: Arrival) -> &'static str {
        let set = SwitchCampaign {
            unsold_to: None,
            id: campaign_id(),
            switch: arrival.switch().expect("a switch"),
            operator: Operator::new("operator").expect("a good id"),
            reason: "test".into(),
            via: None,
        };
        match self.model.switch_campaign(set).await.expect("store") {
            Ok(_) => "",
            Err(refusal) => Code::from(&refusal).text(),
        }
    }
}
