//! A naive model of the authority, written from the table in `domain.md`: plain integers, pools without
//! buckets, everything recomputed. It shares no code with the core.

use std::collections::{BTreeMap, BTreeSet};

use crate::steps::{NoticeStep, Place, PlaceStep};
use places::Line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum St {
    Queued,
    Held,
    InReview,
    Sold,
    Refunded,
    Released,
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Retake,
    Refund,
    Review,
}

/// The policy in plain words; times in microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) hold: i64,
    pub(crate) hold_max: i64,
    pub(crate) extension: i64,
    pub(crate) skew: i64,
    pub(crate) grace: i64,
    pub(crate) review: i64,
    pub(crate) by_paid_at: bool,
    pub(crate) immediate: bool,
    pub(crate) late: Late,
    pub(crate) release_on_failure: bool,
    pub(crate) review_releases: bool,
    pub(crate) restock: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) open_holds: Option<u64>,
    pub(crate) queue_limit: u64,
    pub(crate) queue_wait: i64,
    /// Units and open holds of a device.
    pub(crate) device: (Option<u64>, Option<u64>),
    pub(crate) right_amount: i64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    pub(crate) available: u64,
    pub(crate) held: u64,
    pub(crate) sold: u64,
    pub(crate) frozen: bool,
    pub(crate) retired: bool,
    pub(crate) weights: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Seen {
    notice: NoticeStep,
    what: &'static str,
    /// It had paid another order.
    elsewhere: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Ord {
    pub(crate) state: St,
    pub(crate) sent: PlaceStep,
    lines: Vec<Line>,
    created: i64,
    pub(crate) end: Option<i64>,
    review_ends: Option<i64>,
    queue_ends: i64,
    extended: bool,
    why: &'static str,
    attempts: Vec<(u32, usize, bool)>,
    seen: Vec<Seen>,
    refunds: Vec<Refund>,
    pub(crate) due: Vec<(usize, u32)>,
}

/// Its id, lines and quantities, and whether to restock.
type Refund = (u32, Vec<(u32, u32)>, Option<bool>);

pub(crate) type Answer = String;

#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) now: i64,
    pub(crate) paused: bool,
    pub(crate) frozen: bool,
    pub(crate) closed: bool,
    pub(crate) pools: Vec<Pool>,
    pub(crate) orders: BTreeMap<u32, Ord>,
    events: BTreeMap<(usize, u32), u32>,
    first_success: BTreeMap<(usize, u32), u32>,
    adjustments: BTreeMap<u32, (usize, i64)>,
    /// Orders with their cases.
    pub(crate) cases: BTreeSet<(u32, &'static str)>,
    transfers: BTreeMap<u32, (Place, Place, u64)>,
    pub(crate) caches: caches::Caches,
}

fn say(text: &str) -> Answer {
    text.to_owned()
}

fn refused(code: &str) -> Answer {
    format!("refused {code}")
}

impl Ord {
    fn units(&self) -> u64 {
        self.lines.iter().map(Line::units).sum()
    }

    /// Success notices that are not repeats of one before.
    fn successes(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| seen.notice.succeeded && seen.what != "duplicate")
    }

    fn reviewed(&self) -> bool {
        self.successes().any(|seen| seen.what == "review")
    }

    /// Successes that wait for a decision go back, unless they paid another order.
    fn waiting_go_back(&mut self) {
        for seen in &mut self.seen {
            if seen.notice.succeeded && seen.what == "review" && !seen.elsewhere {
                seen.what = "refund_due";
                add_due(&mut self.due, &seen.notice);
            }
        }
    }

    /// An operator takes the first success that waits, and more that together are no more than is due; the others go
    /// back.
    fn waiting_pay(&mut self, right_amount: i64) {
        let waits = |seen: &&mut Seen| seen.notice.succeeded && seen.what == "review" && !seen.elsewhere;
        let mut room = None;
        for seen in self.seen.iter_mut().filter(waits) {
            let amount = seen.notice.amount.filter(|amount| self.sent.priced && *amount <= right_amount);
            room = match (room, amount) {
                (None, amount) => Some(amount.map_or(-1, |amount| right_amount - amount)),
                (Some(room), Some(amount)) if amount <= room => Some(room - amount),
                (Some(_), _) => continue,
            };
            seen.what = "applied";
        }
        self.waiting_go_back();
    }

    fn has_ended(&self) -> bool {
        !matches!(self.state, St::Queued | St::Held | St::InReview)
    }

    /// An order that has ended with money that nobody judged.
    fn needs_a_person(&self) -> bool {
        self.has_ended() && self.reviewed()
    }

    /// The open attempt that a notice is about.
    fn concerned(&self, notice: &NoticeStep) -> Option<u32> {
        let open: Vec<_> = self.attempts.iter().filter(|a| a.2).collect();
        let of_provider: Vec<_> = open.iter().filter(|a| a.1 == notice.provider).collect();
        match notice.attempt {
            Some(id) => of_provider.iter().any(|a| a.0 == id).then_some(id),
            None => (of_provider.len() == 1).then(|| of_provider[0].0),
        }
    }

    fn open_attempts(&self) -> usize {
        self.attempts.iter().filter(|a| a.2).count()
    }

    /// The code with which the state refuses what the table does not name.
    fn code(&self) -> &'static str {
        match self.state {
            St::Queued | St::Held => "not_held",
            St::InReview => "in_review",
            St::Sold => "already_sold",
            St::Refunded => "already_refunded",
            St::Released => "already_released",
            St::Failed if self.why == "cancelled" => "cancelled",
            St::Failed => "already_failed",
        }
    }
}

fn add_due(due: &mut Vec<(usize, u32)>, notice: &NoticeStep) {
    let payment = (notice.provider, notice.payment);
    if !due.contains(&payment) {
        due.push(payment);
    }
}

impl Model {
    pub(crate) fn new(rules: Rules, now: i64, supplies: &[(u64, u32)]) -> Self {
        Self {
            rules,
            now,
            paused: false,
            frozen: false,
            closed: false,
            pools: supplies.iter().map(|(supply, buckets)| Pool::new(*supply, *buckets)).collect(),
            orders: BTreeMap::new(),
            events: BTreeMap::new(),
            first_success: BTreeMap::new(),
            adjustments: BTreeMap::new(),
            cases: BTreeSet::new(),
            transfers: BTreeMap::new(),
            caches: caches::Caches::default(),
        }
    }

    /// Units held, in review or sold, and open orders, of those whose orders these are.
    pub(crate) fn usage(&self, whose: impl Fn(&PlaceStep) -> bool) -> (u64, u64) {
        let own = self.orders.values().filter(|o| whose(&o.sent));
        own.fold((0, 0), |(units, open), order| match order.state {
            St::Held | St::InReview => (units + order.units(), open + 1),
            St::Sold => (units + order.units(), open),
            St::Queued | St::Refunded | St::Released | St::Failed => (units, open),
        })
    }

    fn limits(&self, step: &PlaceStep, units: u64, opens: bool) -> Option<&'static str> {
        let (used, open) = self.usage(|other| other.account == step.account);
        if opens && self.rules.open_holds.is_some_and(|limit| open >= limit) {
            return Some("account_open_holds");
        }
        if self.rules.limit.is_some_and(|limit| used + units > limit) {
            return Some("account_limit");
        }
        step.device?;
        let (used, open) = self.usage(|other| other.device == step.device);
        let (most_units, most_open) = self.rules.device;
        let reached = (opens && most_open.is_some_and(|limit| open >= limit))
            || most_units.is_some_and(|limit| used + units > limit);
        reached.then_some("key_limit")
    }

    fn put_in_review(&mut self, id: u32) {
        let ends = self.rules.review_releases.then_some(self.now + self.rules.review);
        let order = self.orders.get_mut(&id).unwrap();
        if order.state != St::InReview {
            (order.state, order.review_ends) = (St::InReview, ends);
        }
    }

    fn take(&mut self, id: u32, waited: bool) {
        let (now, immediate) = (self.now, self.rules.immediate);
        self.take_into(id, waited, if immediate { |p| &mut p.sold } else { |p| &mut p.held });
        let hold = self.orders[&id].sent.hold.map_or(self.rules.hold, |s| i64::from(s) * 1_000_000);
        let order = self.orders.get_mut(&id).unwrap();
        (order.state, order.end) = if immediate { (St::Sold, None) } else { (St::Held, Some(now + hold)) };
    }

    pub(crate) fn place(&mut self, step: &PlaceStep) -> Answer {
        if let Some(order) = self.orders.get(&step.order) {
            let (state, answer) = (order.state, self.place_again(step, order));
            if answer == "refused order_mismatch" && matches!(state, St::Held | St::InReview | St::Sold) {
                self.cases.insert((step.order, "order_mismatch"));
            }
            return answer;
        }
        let lines: Vec<_> = step.lines.iter().map(|(kind, quantity)| Line::new(*kind, *quantity)).collect();
        if self.any_gone(&lines) {
            return refused("unknown_sku");
        }
        if step.hold.is_some_and(|s| i64::from(s) * 1_000_000 > self.rules.hold_max) {
            return refused("invalid_value");
        }
        if self.closed {
            return refused("campaign_closed");
        }
        if self.any_frozen(&lines, false) {
            return refused("frozen");
        }
        if self.paused {
            return refused("campaign_paused");
        }
        let mut order = Ord {
            state: St::Queued,
            sent: step.clone(),
            lines,
            created: self.now,
            end: None,
            review_ends: None,
            queue_ends: self.now + self.rules.queue_wait,
            extended: false,
            why: "",
            attempts: Vec::new(),
            seen: Vec::new(),
            refunds: Vec::new(),
            due: Vec::new(),
        };
        let waiting = self.orders.values().filter(|known| known.state == St::Queued).count() as u64;
        let refusal = if step.queued {
            (waiting >= self.rules.queue_limit).then_some("queue_full")
        } else {
            let limit = self.limits(step, order.units(), !self.rules.immediate);
            limit.or_else(|| self.served(&order.lines, false).err())
        };
        match refusal {
            Some(code @ ("account_open_holds" | "key_limit" | "queue_full" | "frozen")) => {
                return refused(code);
            }
            Some(code) if !step.record => return refused(code),
            Some(code) => {
                (order.state, order.why) = (St::Failed, code);
                self.orders.insert(step.order, order);
                return format!("refused {code} recorded");
            }
            None => {}
        }
        self.orders.insert(step.order, order);
        if !step.queued {
            self.take(step.order, false);
        }
        say("created")
    }

    fn place_again(&self, step: &PlaceStep, order: &Ord) -> Answer {
        let sent = &order.sent;
        let hold = |step: &PlaceStep| step.hold.map_or(self.rules.hold, |s| i64::from(s) * 1_000_000);
        let same = sent.account == step.account
            && sent.lines == step.lines
            && hold(sent) == hold(step)
            && sent.priced == step.priced
            && sent.device == step.device;
        if !same {
            return refused("order_mismatch");
        }
        match order.state {
            St::Queued | St::Held | St::InReview | St::Sold => say("repeated"),
            St::Refunded => refused("already_refunded repeated"),
            St::Released => refused("already_released repeated"),
            St::Failed => format!("refused {} recorded repeated", order.why),
        }
    }

    pub(crate) fn land(&mut self, id: u32) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        let over = order.state == St::Queued && self.now >= order.queue_ends;
        if order.state != St::Queued || (!over && self.any_frozen(&order.lines, true)) {
            return say("repeated");
        }
        if over {
            self.fail_queued(id, "queue_timeout");
            return say("changed");
        }
        let limit = self.limits(&order.sent, order.units(), !self.rules.immediate);
        let refusal = limit.or_else(|| self.served(&order.lines, true).err());
        if refusal == Some("frozen") {
            return say("repeated");
        }
        if let Some(code) = refusal {
            self.fail_queued(id, code);
            return say("changed");
        }
        let order = self.orders.get_mut(&id).unwrap();
        let (parked, kept) = order.seen.drain(..).partition(|seen| seen.what == "parked");
        order.seen = kept;
        self.take(id, true);
        if self.orders[&id].state == St::Held && self.orders[&id].reviewed() {
            self.put_in_review(id);
        }
        let parked: Vec<Seen> = parked;
        let mut answer = say("changed");
        for seen in parked {
            answer = self.success(id, &seen.notice);
        }
        answer
    }

    /// A queued order ends: what was parked goes back. What is under review paid another order.
    fn fail_queued(&mut self, id: u32, why: &'static str) {
        let order = self.orders.get_mut(&id).unwrap();
        (order.state, order.why) = (St::Failed, why);
        for seen in order.seen.iter_mut().filter(|seen| seen.what == "parked") {
            seen.what = "refund_due";
            add_due(&mut order.due, &seen.notice);
        }
    }

    pub(crate) fn cancel(&mut self, id: u32) -> Answer {
        let Some(order) = self.orders.get(&id) else { return refused("not_found") };
        match order.state {
            St::Queued => {
                self.fail_queued(id, "cancelled");
                say("changed")
            }
            St::Held => {
                self.release_held(id, "cancelled");
                say("changed")
            }
            St::Released | St::Failed if order.why == "cancelled" => say("repeated"),
            St::InReview | St::Sold | St::Refunded | St::Released | St::Failed => refused(order.code()),
        }
    }

    pub(crate) fn reduce(&mut self, id: u32, keeps: &[(u32, u32)]) -> Answer {
        let Some(order) = self.orders.get_mut(&id) else { return refused("not_found") };
        for (line, keep) in keeps {
            match order.lines.get(*line as usize - 1) {
                None => return refused("invalid_value"),
                Some(line) if order.state == St::Held && u64::from(*keep) > line.quantity => {
                    return refused("conflict");
                }
                Some(_) => {}
            }
        }
        let again = order.state == St::Released && order.why == "cancelled";
        if order.state != St::Held && !again {
            return refused(order.code());
        }
        let mut after: Vec<_> = order.lines.iter().map(|line| line.quantity).collect();
        for (line, keep) in keeps {
            let at = &mut after[*line as usize - 1];
            *at = (*at).min(u64::from(*keep));
        }
        if again {
            // A reduction to nothing is a cancel, and may be asked for again like one.
            let to_nothing = after.iter().all(|quantity| *quantity == 0);
            return if to_nothing { say("repeated") } else { refused(order.code()) };
        }
        if order.lines.iter().zip(&after).all(|(line, after)| line.quantity == *after) {
            return say("repeated");
        }
        if after.iter().all(|quantity| *quantity == 0) {
            self.release_held(id, "cancelled");
            return say("changed");
        }
        let less: Vec<_> = order.lines.iter().zip(after).map(|(line, after)| line.quantity - after).collect();
        for (line, units) in less.into_iter().enumerate() {
            self.give_back_held(id, line, units);
        }
        say("changed")
    }

    pub(crate) fn attempt(&mut self, id: u32, attempt: u32, provider: usize) -> Answer {
        let (now, rules) = (self.now, self.rules.clone());
        let Some(order) = self.orders.get_mut(&id) else { return refused("not_found") };
        if let Some(known) = order.attempts.iter().find(|a| a.0 == attempt) {
            return if known.1 == provider { say("repeated") } else { refused("key_mismatch") };
        }
        match (order.state, order.end) {
            (St::Held, Some(end)) if now < end => {
                order.attempts.push((attempt, provider, true));
                let longer = (end + rules.extension).min(order.created + rules.hold_max);
                if !order.extended && longer > end {
                    (order.end, order.extended) = (Some(longer), true);
                }
                say("changed")
            }
            (St::Held, _) => refused("hold_expired"),
            _ => refused(order.code()),
        }
    }
}

pub(crate) mod caches;
mod money;
mod moves;
mod places;
