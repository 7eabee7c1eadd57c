//! The table of states × commands, one readable row a case: what happened before, the command, the
//! answer, where the order stands, where its stock is, and what the same command again is answered.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;

use holdfast_core::campaign::{Capture, DeadlineBasis, LatePayment, PaymentFailed, Policy, ReviewEnd};
use holdfast_core::command::{Command, Inquiry, OrderAction, Outcome};
use holdfast_core::id::PoolId;
use holdfast_core::order::{Notice, Order};
use holdfast_core::time::Timestamp;

use support::build::*;
use support::{Authority, answer};

mod cases;
mod limits;
mod matrix;

/// One row of the table at work.
struct Story {
    db: Authority,
    pool: PoolId,
}

impl Story {
    fn new(policy: &str) -> Self {
        let mut db = Authority::new(policy_of(policy));
        let pool = db.open_pool("A", 5, 2);
        Self { db, pool }
    }

    fn order(&self) -> &Order {
        self.db.order(order_id(1))
    }

    /// Does one word: a command on order 1, a step of the clock, or something that others do.
    fn word(&mut self, word: &str) -> Option<Outcome> {
        let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
        let before = self.db.clock;
        match verb {
            "@end" => self.db.clock = self.order().hold_ends_at.unwrap(),
            "@grace" => {
                self.db.clock = self.db.campaign.policy.release_at(self.order().hold_ends_at.unwrap())
            }
            "@due" => self.db.clock = self.order().due_at.unwrap(),
            "tick" => self.db.clock = Timestamp(before.0 + rest.parse::<i64>().unwrap()),
            "freeze" => self.db.campaign.switches.frozen = true,
            "freeze_pool" => self.db.pools.get_mut(&self.pool).unwrap().frozen = true,
            "unfreeze" => self.db.campaign.switches.frozen = false,
            "pause" => self.db.campaign.switches.paused = true,
            "close" => self.db.campaign.switches.closed = true,
            _ => return Some(self.db.send(&self.command(word))),
        }
        None
    }

    fn command(&self, word: &str) -> Command {
        let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
        let mut sent = place(1, &[("A", 2)]);
        match verb {
            "place" => return Command::Place(Arc::new(sent)),
            "place_many" => return placed(1, &[("A", rest.parse().unwrap())]),
            "queue" => sent.intake = Some(bucket("A", 0)),
            "queue_many" => {
                sent = place(1, &[("A", rest.parse().unwrap())]);
                sent.intake = Some(bucket("A", 0));
            }
            "unlimited" => sent.amount_due = None,
            "other_content" => sent.account = account("bob"),
            "others_take" => {
                sent = place(2, &[("A", rest.parse().unwrap())]);
                sent.account = account("zoe");
            }
            "same_account_takes" => return placed(2, &[("A", rest.parse().unwrap())]),
            "other_order_paid" => return paid(2, &format!("e-other-{rest}"), rest),
            _ => return on_order(1, self.action(verb, rest)),
        }
        Command::Place(Arc::new(sent))
    }

    fn action(&self, verb: &str, rest: &str) -> OrderAction {
        let numbers = || rest.split('x').map(|n| n.parse::<u32>().unwrap()).collect::<Vec<_>>();
        match verb {
            "land" => OrderAction::Land,
            "cancel" => OrderAction::Cancel,
            "keep" => reduce(&[(1, numbers()[0])]),
            "attempt" => attempt(rest),
            "pay" | "fail" => OrderAction::Notice(self.notice(verb, rest)),
            "refund" => refund(&format!("r{rest}"), &[(1, numbers()[0])], None),
            "restock" => refund(&format!("r{rest}"), &[(1, numbers()[0])], Some(true)),
            "confirm" => OrderAction::Confirm,
            "release" => OrderAction::Release,
            "extend" => {
                let end = self.order().hold_ends_at.unwrap_or(self.db.clock);
                OrderAction::Extend(end.plus_seconds(rest.parse().unwrap()))
            }
            "refunded" => OrderAction::MarkRefunded(rest.split('+').map(payment_id).collect()),
            "expire" => OrderAction::Expire(Inquiry::Done),
            _ => panic!("no such word: {verb}"),
        }
    }

    /// `pay:p1`, then any of `wrong`, `half`, `nothing`, `event=e9`, `before`, `future`, `ancient`, `attempt=a1`.
    fn notice(&self, verb: &str, rest: &str) -> Notice {
        let mut parts = rest.split(',');
        let payment = parts.next().unwrap();
        let event = format!("e-{verb}-{payment}");
        let mut notice = if verb == "pay" { success(&event, payment) } else { failure(&event, payment) };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let end = || self.order().hold_ends_at.unwrap();
            match name {
                "wrong" => notice.amount_minor = Some(PRICE - 1),
                "half" => notice.amount_minor = Some(PRICE / 2),
                "dollars" => notice.currency = Some("USD".into()),
                "nothing" => notice.amount_minor = None,
                "event" => notice.event_id = holdfast_core::id::EventId::new(value).unwrap(),
                "attempt" => notice.attempt_id = Some(holdfast_core::id::AttemptId::new(value).unwrap()),
                "before" => notice.paid_at = Some(Timestamp(end().0 - 1)),
                "at_end" => notice.paid_at = Some(end()),
                "in_skew" => notice.paid_at = Some(self.db.clock.plus_millis(2_000)),
                "future" => notice.paid_at = Some(Timestamp(self.db.clock.0 + 2_000_001)),
                "ancient" => notice.paid_at = Some(Timestamp(self.order().created_at.0 - 2_000_001)),
                _ => panic!("no such word: {name}"),
            }
        }
        notice
    }

    /// `state reason` of the order and what is due back, `none` if there is no order.
    fn standing(&self) -> String {
        let Some(order) = self.db.orders.get(&order_id(1)) else { return "none".to_owned() };
        let mut text = order.state.as_str().to_owned();
        if let Some(reason) = order.reason {
            text.push(' ');
            text.push_str(reason.as_str());
        }
        for (_, payment) in order.refund_due.iter().flat_map(|due| &due.payments) {
            text.push_str(" !");
            text.push_str(payment.as_str());
        }
        text
    }

    fn stock(&self) -> String {
        let (available, held, sold) = self.db.totals(self.pool);
        format!("{available}/{held}/{sold}")
    }
}

fn policy_of(words: &str) -> Policy {
    let mut policy = Policy::default();
    for word in words.split_whitespace() {
        match word {
            "-" => {}
            "late=refund" => policy.late_payment = LatePayment::Refund,
            "late=review" => policy.late_payment = LatePayment::Review,
            "failed=release" => policy.payment_failed = PaymentFailed::Release,
            "review_end=person" => policy.review_end = ReviewEnd::Person,
            "capture=immediate" => policy.capture = Capture::Immediate,
            "basis=paid_at" => policy.deadline_basis = DeadlineBasis::ProviderPaidAt,
            "extension=300" => policy.payment_extension_seconds = 300,
            "restock" => policy.restock_on_refund = true,
            "limit=3" => policy.account_limit = Some(3),
            "holds=1" => policy.account_open_holds = Some(1),
            _ => panic!("no such policy: {word}"),
        }
    }
    policy
}

/// Tells one row: `policy | what happened before | command | answer | order | stock | same again`.
fn tell(row: &str) {
    let columns: Vec<_> = row.split('|').map(str::trim).collect();
    let [policy, before, command, expected, order, stock, again] = columns[..] else {
        panic!("a row has 7 columns: {row}")
    };
    let mut story = Story::new(policy);
    for word in before.split_whitespace().filter(|word| *word != "-") {
        let outcome = story.word(word);
        let refused = outcome.as_ref().is_some_and(|o| matches!(o, Outcome::Refused { recorded: false, .. }));
        assert!(!refused, "{row}\nbefore: {word} {outcome:?}");
    }
    let sent = story.command(command);
    let outcome = story.db.send(&sent);
    assert_eq!(answer(&outcome), expected, "the answer\n{row}");
    assert_eq!(story.standing(), order, "the order\n{row}");
    assert_eq!(story.stock(), stock, "the stock\n{row}");
    if again != "-" {
        let (entries, orders) = (story.db.ledger_len(), story.db.orders.clone());
        let outcome = story.db.send(&sent);
        assert_eq!(answer(&outcome), again, "the same again\n{row}");
        assert_eq!(story.stock(), stock, "nothing moves again\n{row}");
        assert_eq!(story.db.ledger_len(), entries, "no entry is written again\n{row}");
        assert_eq!(story.db.orders, orders, "no order changes again\n{row}");
    }
}

fn tell_all(rows: &str) {
    rows.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#')).for_each(tell);
}
