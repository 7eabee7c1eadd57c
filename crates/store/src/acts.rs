//! Acts of operators: who did what, through which key and in which request. Written with the act, in the
//! same transaction, and never changed.

mod changes;

use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_core::approval::{Approval, DecideApproval, Proposal};
use holdfast_core::assortment::AssortmentChange;
use holdfast_core::cache::{CacheBucket, Turn, TurnEpoch};
use holdfast_core::campaign::Campaign;
use holdfast_core::case::CaseAction;
use holdfast_core::command::{
    ChangePool, Command, How, OrderAction, OrderCommand, Outcome, Repair, Signed, Via,
};
use holdfast_core::id::{CampaignId, CaseId, Location, Operator, OrderId, PoolId};
use holdfast_core::import::{Import, ImportCounts};
use holdfast_core::reconcile::Discrepancy;
use holdfast_core::time::Timestamp;

use crate::assortment::PutAssortment;
use crate::authority::ResolveCase;
use crate::contract::{SwitchCampaign, SwitchPool};
use crate::keys::{KeyId, KeyRow, Scope};
use crate::sinks::{ChangeSink, SinkName, SinkRow};

/// What an act was about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A campaign.
    Campaign(CampaignId),
    /// A pool, and with it its campaign.
    Pool(PoolId),
    /// An order of a campaign.
    Order(OrderId, CampaignId),
    /// A case of the authority.
    Case(CaseId),
    /// A key: of no campaign, whatever its scope.
    Key(KeyId),
    /// A sink: of no campaign, as it is told of all.
    Sink(SinkName),
}

impl About {
    /// The subject as it is shown and asked for: the kind and the id.
    pub fn subject(&self) -> String {
        match self {
            Self::Campaign(id) => format!("campaign {id}"),
            Self::Pool(id) => format!("pool {id}"),
            Self::Order(id, _) => format!("order {id}"),
            Self::Case(id) => format!("case {id}"),
            Self::Key(id) => format!("key {id}"),
            Self::Sink(name) => format!("sink {name}"),
        }
    }
}

/// An act to write down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// What it was about.
    pub about: About,
    /// What was done, in a word.
    pub action: &'static str,
    /// The operator as the request named one; empty if it named none.
    pub operator: Arc<str>,
    /// Why, as the request said; may be empty.
    pub reason: Arc<str>,
    /// What changed, for people.
    pub detail: String,
    /// How it came in; none if the node itself acted.
    pub via: Option<Arc<Via>>,
}

impl Act {
    fn new(about: About, action: &'static str, detail: String, via: Option<&Arc<Via>>) -> Self {
        let empty = || Arc::from("");
        Self { about, action, operator: empty(), reason: empty(), detail, via: via.cloned() }
    }

    fn of_pool(pool: PoolId, action: &'static str, detail: String, signed: &Signed) -> Self {
        let act = Self::new(About::Pool(pool), action, detail, signed.via.as_ref());
        act.by(named_operator(signed), &signed.reason)
    }

    fn by(self, operator: &str, reason: &str) -> Self {
        Self { operator: operator.into(), reason: reason.into(), ..self }
    }

    /// Whose key it was.
    pub fn actor(&self) -> &str {
        self.via.as_ref().map_or("holdfast", |via| &via.key)
    }

    /// A campaign was made or changed; none if it stayed as it was.
    pub fn put_campaign(before: Option<&Campaign>, after: &Campaign, via: Option<&Arc<Via>>) -> Option<Self> {
        let detail = match before {
            None => "created".to_owned(),
            Some(before) => changes::of_campaign(before, after),
        };
        let about = About::Campaign(after.id.clone());
        (!detail.is_empty()).then(|| Self::new(about, "put_campaign", detail, via))
    }

    /// A location order or a bundle was set.
    pub fn put_assortment(set: &PutAssortment) -> Self {
        let (action, detail) = match &set.change {
            AssortmentChange::Locations { order, split } => {
                let order: Vec<_> = order.iter().map(Location::as_str).collect();
                ("put_locations", format!("{order:?}{}", if *split { ", split" } else { "" }))
            }
            AssortmentChange::Bundle { sku, components } => {
                let components = components.iter().map(|c| format!("{} x {}", c.quantity, c.sku));
                ("put_bundle", format!("{sku}: {}", components.collect::<Vec<_>>().join(", ")))
            }
        };
        Self::new(About::Campaign(set.campaign.clone()), action, detail, set.via.as_ref())
    }

    /// A switch was set.
    pub fn switch(set: &SwitchCampaign) -> Self {
        let about = About::Campaign(set.id.clone());
        let detail = set.unsold_to.map(|pool| format!("unsold stock to pool {pool}")).unwrap_or_default();
        let act = Self::new(about, set.switch.as_str(), detail, set.via.as_ref());
        act.by(set.operator.as_str(), &set.reason)
    }

    /// A switch was set on a pool.
    pub fn switch_pool(set: &SwitchPool) -> Self {
        let act = Self::new(About::Pool(set.id), set.switch.as_str(), String::new(), set.via.as_ref());
        act.by(set.operator.as_str(), &set.reason)
    }

    /// A case was decided.
    pub fn resolve_case(set: &ResolveCase) -> Self {
        let act = Self::new(About::Case(set.id), set.action.as_str(), String::new(), set.via.as_ref());
        act.by(set.operator.as_str(), &set.reason)
    }

    /// A key was made.
    pub fn create_key(key: &KeyRow, via: Option<&Arc<Via>>) -> Self {
        let mut detail = format!("{:?}, role {}", key.name, key.role.as_str());
        if let Some(campaigns) = key.scope.campaigns() {
            let _ = write!(detail, ", campaigns {campaigns:?}");
        }
        if let Some(end) = key.expires_at {
            let _ = write!(detail, ", until {end}");
        }
        Self::new(About::Key(key.id.clone()), "create_key", detail, via)
    }

    /// A key was revoked.
    pub fn revoke_key(key: &KeyRow, via: Option<&Arc<Via>>) -> Self {
        let detail = format!("{:?}, role {}", key.name, key.role.as_str());
        Self::new(About::Key(key.id.clone()), "revoke_key", detail, via)
    }

    /// A sink was made or its settings changed; none if it stayed as it was.
    pub fn put_sink(before: Option<&SinkRow>, after: &SinkRow, via: Option<&Arc<Via>>) -> Option<Self> {
        let detail = match before {
            None => format!("created, kind {}", after.kind.as_str()),
            Some(before) => changes::of_sink(before, after),
        };
        let about = About::Sink(after.name.clone());
        (!detail.is_empty()).then(|| Self::new(about, "put_sink", detail, via))
    }

    /// A sink was switched, replayed or removed, or its secrets changed.
    pub fn change_sink(set: &ChangeSink) -> Self {
        let about = About::Sink(set.name.clone());
        let act = Self::new(about, set.change.as_str(), set.change.detail(), set.via.as_ref());
        act.by(&set.operator, &set.reason)
    }

    fn about_work(proposal: &Proposal, campaign: &CampaignId) -> About {
        match proposal {
            Proposal::Adjust(adjust) => About::Pool(adjust.pool),
            Proposal::Transfer(transfer) => About::Pool(transfer.from.pool),
            Proposal::Order(change) => About::Order(change.order, campaign.clone()),
            Proposal::Repair(repair) => About::Case(CaseId(repair.id.0)),
        }
    }

    fn of_request(approval: &Approval) -> Self {
        let Signed { actor: _, reason, via } = approval.proposal.signed();
        let detail = format!("{}, {} units", approval.key.as_str(), approval.units);
        let about = Self::about_work(&approval.proposal, &approval.campaign);
        let operator = named_operator(approval.proposal.signed());
        Self::new(about, "ask_approval", detail, via.as_ref()).by(operator, reason)
    }

    /// A decision, if it is one and was not made before.
    fn of_decision(decide: &DecideApproval, outcome: &Outcome) -> Option<Self> {
        let is_made = match outcome {
            Outcome::Adjusted { repeated, .. }
            | Outcome::Transferred { repeated }
            | Outcome::Repaired { repeated, .. }
            | Outcome::Proposed { repeated, .. } => !repeated,
            Outcome::Order { how, .. } => *how != How::Repeated,
            Outcome::Refused { .. }
            | Outcome::Pool { .. }
            | Outcome::Imported { .. }
            | Outcome::Epoch { .. }
            | Outcome::Miss(_)
            | Outcome::Elsewhere(_)
            | Outcome::Outdated
            | Outcome::NotDue(_) => false,
        };
        let about = match (&decide.work, outcome) {
            (Command::Adjust(adjust), _) => About::Pool(adjust.pool),
            (Command::Transfer(transfer), _) => About::Pool(transfer.from.pool),
            (Command::Order(_), Outcome::Order { order, .. }) => {
                About::Order(order.id, order.key.campaign.clone())
            }
            (Command::Order(change), Outcome::Proposed { approval, .. }) => {
                About::Order(change.order, approval.campaign.clone())
            }
            (Command::Repair(repair), _) => About::Case(CaseId(repair.id.0)),
            (_, _) => return None,
        };
        let Signed { actor: _, reason, via } = &decide.signed;
        let act = Self::new(about, decide.verdict.as_str(), decide.key.as_str().to_owned(), via.as_ref());
        is_made.then(|| act.by(named_operator(&decide.signed), reason))
    }

    /// What mended a difference, also where no person did: nothing is mended unseen.
    fn of_repair(repair: &Repair, discrepancy: &Discrepancy) -> Self {
        let found = &discrepancy.found;
        let detail = format!("{}: expected {}, found {}", found.class.as_str(), found.expected, found.actual);
        let action = repair.decides.map_or("repair", CaseAction::as_str);
        let about = About::Case(discrepancy.case_id());
        let act = Self::new(about, action, detail, repair.signed.via.as_ref());
        act.by(named_operator(&repair.signed), &repair.signed.reason)
    }

    fn of_turn(turn: &TurnEpoch, row: &CacheBucket) -> Self {
        let detail = format!("bucket {}, epoch {}", row.key.number, row.epoch);
        Self::of_pool(row.key.pool, turned(&turn.turn), detail, &turn.signed)
    }

    fn of_import(import: &Import, counts: &ImportCounts) -> Self {
        let ImportCounts { rows, units, opened, unchanged, adjusted } = counts;
        let detail = format!(
            "mode {}, import {}: rows {rows}, units {units}, opened {opened}, adjusted {adjusted}, unchanged {unchanged}",
            import.mode.as_str(),
            import.id
        );
        let about = About::Campaign(import.campaign.clone());
        let operator = named_operator(&import.signed);
        let act = Self::new(about, "import_stock", detail, import.signed.via.as_ref());
        act.by(operator, &import.signed.reason)
    }

    /// What a command of an operator did; none if it did nothing, or is no operator's.
    pub fn of_command(command: &Command, outcome: &Outcome) -> Option<Self> {
        match (command, outcome) {
            (Command::OpenPool(open), Outcome::Pool { pool, how: How::Created, .. }) => {
                let detail = format!(
                    "{} at {}, supply {}, buckets {}",
                    open.sku, open.location, open.supply, open.buckets
                );
                let via = open.signed.via.as_ref();
                Some(Self::new(About::Pool(pool.id), "open_pool", detail, via).by("", &open.signed.reason))
            }
            (Command::Adjust(adjust), Outcome::Adjusted { repeated: false, .. }) => {
                let action = adjust.kind.as_str();
                let detail = format!("{:+}, adjustment {}", adjust.delta, adjust.adjustment_id);
                Some(Self::of_pool(adjust.pool, action, detail, &adjust.signed))
            }
            (Command::ChangePool(change), Outcome::Pool { how: How::Changed, .. }) => {
                Some(Self::of_pool(change.pool, "change_pool", told(change), &change.signed))
            }
            (Command::Transfer(transfer), Outcome::Transferred { repeated: false }) => {
                let detail = format!(
                    "{} to pool {}, transfer {}",
                    transfer.quantity, transfer.to.pool, transfer.transfer_id
                );
                Some(Self::of_pool(transfer.from.pool, "transfer", detail, &transfer.signed))
            }
            (Command::Sweep(sweep), Outcome::Pool { how: How::Changed, .. }) => {
                Some(Self::of_pool(sweep.pool, "sweep", format!("sweep {}", sweep.id), &sweep.signed))
            }
            (
                Command::Adjust(_) | Command::Transfer(_) | Command::Order(_) | Command::Repair(_),
                Outcome::Proposed { approval, repeated: false },
            ) => Some(Self::of_request(approval)),
            (Command::TurnEpoch(turn), Outcome::Epoch { row, how: How::Created | How::Changed }) => {
                Some(Self::of_turn(turn, row))
            }
            (Command::Repair(repair), Outcome::Repaired { discrepancy, repeated: false, .. }) => {
                Some(Self::of_repair(repair, discrepancy))
            }
            (Command::Decide(decide), outcome) => Self::of_decision(decide, outcome),
            (Command::Import(import), Outcome::Imported { counts, repeated: false, .. })
                if !import.dry_run =>
            {
                Some(Self::of_import(import, counts))
            }
            (Command::Order(change), Outcome::Order { order, how: How::Created | How::Changed, .. }) => {
                let action = operator_action(change)?;
                let about = About::Order(order.id, order.key.campaign.clone());
                let Signed { actor: _, reason, via } = &change.signed;
                let act = Self::new(about, action, told_of_order(&change.action), via.as_ref());
                Some(act.by(named_operator(&change.signed), reason))
            }
            (
                Command::Place(_)
                | Command::Order(_)
                | Command::OpenPool(_)
                | Command::ChangePool(_)
                | Command::Adjust(_)
                | Command::Transfer(_)
                | Command::Sweep(_)
                | Command::MoveUnsold(_)
                | Command::Import(_)
                | Command::Land(_)
                | Command::SetAside(_)
                | Command::TurnEpoch(_)
                | Command::Repair(_),
                _,
            ) => None,
        }
    }
}

/// Who named no operator acted under the name of the key, which the trail has beside it.
fn named_operator(signed: &Signed) -> &str {
    let is_key = signed.via.as_ref().is_some_and(|via| via.key == signed.actor);
    if is_key { "" } else { &signed.actor }
}

/// What a change of a pool asked for, field by field.
fn told(change: &ChangePool) -> String {
    // Taken apart whole: a field that comes later must be named here.
    let ChangePool { pool: _, path, routing, weights, buckets, max_concurrency, cache_fallback, signed: _ } =
        change;
    let named = [
        path.map(|path| format!("path {}", path.as_str())),
        routing.map(|routing| format!("routing {}", routing.as_str())),
        buckets.map(|buckets| format!("buckets {buckets}")),
        weights.as_ref().map(|weights| format!("weights {weights:?}")),
        max_concurrency.map(|max| match max {
            Some(max) => format!("max_concurrency {max}"),
            None => "max_concurrency none".to_owned(),
        }),
        cache_fallback.map(|fallback| format!("cache_fallback {}", fallback.as_str())),
    ];
    named.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The word for a turn of an epoch.
const fn turned(turn: &Turn) -> &'static str {
    match turn {
        Turn::Open { .. } => "open_epoch",
        Turn::Drain => "drain_epoch",
        Turn::Close => "close_epoch",
    }
}

/// The word for what only operators do to orders.
fn operator_action(change: &OrderCommand) -> Option<&'static str> {
    // Buyers reduce their orders, too; work that may need a second person is an operator's.
    let is_operators = change.second.is_some();
    // So do they cancel, and nobody follows their way in.
    let is_followed = change.signed.via.is_some();
    match change.action {
        OrderAction::Confirm => Some("confirm"),
        OrderAction::Release => Some("release"),
        OrderAction::Extend(_) => Some("extend"),
        OrderAction::MarkRefunded(_) => Some("refunded"),
        OrderAction::Refund(_) => is_operators.then_some("refund"),
        OrderAction::Reduce(_) => is_operators.then_some("reduce"),
        OrderAction::Cancel => is_followed.then_some("cancel"),
        OrderAction::Land | OrderAction::Attempt(..) | OrderAction::Notice(_) | OrderAction::Expire(_) => {
            None
        }
    }
}

/// What a change of an order asked for.
fn told_of_order(action: &OrderAction) -> String {
    match action {
        OrderAction::Extend(until) => format!("until {until}"),
        OrderAction::MarkRefunded(payments) if payments.is_empty() => "all that was due".to_owned(),
        OrderAction::MarkRefunded(payments) => {
            let ids: Vec<_> = payments.iter().map(ToString::to_string).collect();
            format!("payments {}", ids.join(", "))
        }
        OrderAction::Refund(refund) => {
            let lines = refund.lines.iter().map(|line| format!("line {}: {}", line.line, line.quantity));
            let restock = match refund.restock {
                Some(true) => ", restocked",
                Some(false) => ", not restocked",
                None => "",
            };
            format!("refund {}, {}{restock}", refund.refund_id, lines.collect::<Vec<_>>().join(", "))
        }
        OrderAction::Reduce(keeps) => {
            let lines = keeps.iter().map(|keep| format!("line {} keeps {}", keep.line, keep.keep));
            lines.collect::<Vec<_>>().join(", ")
        }
        OrderAction::Land
        | OrderAction::Cancel
        | OrderAction::Attempt(..)
        | OrderAction::Notice(_)
        | OrderAction::Confirm
        | OrderAction::Release
        | OrderAction::Expire(_) => String::new(),
    }
}

/// Where an act stands in the trail: later ones have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActId(pub u64);

/// An act as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActRow {
    /// Where it stands.
    pub id: ActId,
    /// When.
    pub at: Timestamp,
    /// Whose key it was: a name with the key's id, `anonymous`, or `holdfast` for the node itself.
    pub actor: String,
    /// The operator as the request named one.
    pub operator: Option<Operator>,
    /// What was done, in a word.
    pub action: String,
    /// What it was about: the kind and the id.
    pub subject: String,
    /// The campaign concerned, if it is one.
    pub campaign: Option<CampaignId>,
    /// Why.
    pub reason: String,
    /// What changed, for people.
    pub detail: String,
    /// The request.
    pub request_id: Option<String>,
}

/// Which acts a list shows, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActFilter {
    /// About this, exactly.
    pub subject: Option<String>,
    /// Of campaigns in this scope; acts about keys and cases are of none.
    pub scope: Scope,
}

impl ActFilter {
    /// Judges one act; the model store uses it.
    pub fn shows(&self, act: &ActRow) -> bool {
        let in_scope = match &act.campaign {
            Some(campaign) => self.scope.allows(campaign),
            None => self.scope == Scope::All,
        };
        in_scope && self.subject.as_ref().is_none_or(|subject| *subject == act.subject)
    }
}
