//! The table as data: every state × trigger ends in a row without condition, and what that row says.

use holdfast_core::campaign::{LatePayment, PaymentFailed, ReviewEnd};
use holdfast_core::order::{Reason, State};
use holdfast_core::table::{
    Facts, Landing, Phase, Retake, Rule, TABLE, Then, Trigger, When, rule_for, rules,
};

/// What is left when no condition of a state and a trigger holds.
const UNCONDITIONAL: &str = "
    trigger       | queued      | held         | in_review   | sold             | refunded         | released         | failed
    land          | again       | again        | again       | again            | again            | again            | again
    success       | parked      | in_review    | sold        | applied          | refund_due       | refund_due       | refund_due
    failed notice | ignored     | applied      | ignored     | ignored          | ignored          | ignored          | ignored
    attempt       | not_held    | hold_expired | in_review!  | already_sold     | already_refunded | already_released | already_failed
    cancel        | failed      | released     | in_review!  | already_sold     | already_refunded | already_released | already_failed
    reduce        | not_held    | stays        | in_review!  | already_sold     | already_refunded | already_released | already_failed
    refund        | not_sold    | not_sold     | in_review!  | stays            | already_refunded | already_released | already_failed
    confirm       | not_held    | sold         | sold        | already_sold     | already_refunded | already_released | already_failed
    release       | not_held    | released     | released    | already_sold     | already_refunded | already_released | already_failed
    extend        | not_held    | held         | held        | already_sold     | already_refunded | already_released | already_failed
    mark refunded | conflict    | conflict     | conflict    | conflict         | conflict         | conflict         | conflict
    expire        | not due     | not due      | not due     | not due          | not due          | not due          | not due
";

/// A row in one word: the state it leads to, the disposition, or the code; `in_review!` is the code.
fn word(then: Then) -> String {
    match then {
        Then::Go { to: Some(state), .. } => state.as_str().to_owned(),
        Then::Go { to: None, disposition: Some(disposition), .. } | Then::Record(disposition) => {
            disposition.as_str().to_owned()
        }
        Then::Go { to: None, disposition: None, .. } => "stays".to_owned(),
        Then::Again => "again".to_owned(),
        Then::NotDue => "not due".to_owned(),
        Then::Refuse(code) | Then::RefuseRefundDue(code) if code.text() == "in_review" => {
            "in_review!".to_owned()
        }
        Then::Refuse(code) | Then::RefuseRefundDue(code) => code.text().to_owned(),
    }
}

fn every_pair() -> impl Iterator<Item = (State, Trigger, Vec<Rule>)> {
    State::ALL.iter().flat_map(|state| Trigger::ALL.iter().map(|on| (*state, *on, rules(*state, *on))))
}

#[test]
fn every_state_and_trigger_ends_in_a_row_without_condition() {
    for (state, on, rules) in every_pair() {
        let conditions: Vec<_> = rules.iter().map(|rule| rule.when).collect();
        assert_eq!(conditions.last(), Some(&When::Always), "{state:?} {on:?}");
        let always = conditions.iter().filter(|when| **when == When::Always).count();
        let dead: Vec<_> = rules.iter().skip_while(|r| r.when != When::Always).skip(1).collect();
        // Rows that stand for every state may follow one for this state; they are never reached, and
        // must not say anything else.
        assert!(dead.iter().all(|rule| rule.from.len() == State::ALL.len()), "{state:?} {on:?} {always}");
    }
}

#[test]
fn the_unconditional_row_is_the_one_of_the_contract() {
    let mut lines = UNCONDITIONAL.lines().map(str::trim).filter(|line| !line.is_empty());
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let states: Vec<_> =
        cells(lines.next().unwrap())[1..].iter().map(|text| State::parse(text).unwrap()).collect();
    assert_eq!(states, State::ALL);
    let mut triggers = Vec::new();
    for line in lines {
        let row = cells(line);
        let on = Trigger::parse(&row[0]).unwrap();
        triggers.push(on);
        for (state, expected) in states.iter().zip(&row[1..]) {
            let first = rules(*state, on).into_iter().find(|rule| rule.when == When::Always).unwrap();
            assert_eq!(word(first.then), *expected, "{state:?} {on:?}");
        }
    }
    assert_eq!(triggers, Trigger::ALL);
}

#[test]
fn a_final_order_moves_no_stock_except_by_refund_or_retake() {
    use holdfast_core::table::Stock;
    for rule in TABLE {
        let Then::Go { to, stock, .. } = rule.then else { continue };
        for state in rule.from {
            let allowed: &[Stock] = match state {
                State::Queued => &[Stock::Stays, Stock::Take, Stock::Sell],
                State::Held => &[Stock::Stays, Stock::Confirm, Stock::Release, Stock::ReleasePart],
                State::InReview => &[Stock::Stays, Stock::Confirm, Stock::Release],
                State::Sold => &[Stock::Stays, Stock::Restock],
                State::Released => &[Stock::Stays, Stock::Retake],
                State::Refunded | State::Failed => &[Stock::Stays],
            };
            assert!(allowed.contains(&stock), "{rule:?}");
            if *state == State::Refunded || *state == State::Failed {
                assert_eq!(to, None, "{rule:?}");
            }
            if stock == Stock::Retake {
                assert_eq!(to, Some(State::Sold), "{rule:?}");
            }
        }
    }
}

#[test]
fn the_first_row_whose_condition_holds_decides() {
    for facts in many_facts() {
        for (state, on, rules) in every_pair() {
            let first = rules.iter().find(|rule| rule.when.holds(&facts)).unwrap();
            assert_eq!(rule_for(state, on, &facts), first.then, "{state:?} {on:?} {facts:?}");
        }
    }
}

#[test]
fn every_condition_of_the_table_is_said_in_words() {
    for rule in TABLE {
        assert_eq!(rule.when == When::Always, rule.when.text().is_empty(), "{rule:?}");
    }
}

/// Facts with each bit set in turn, over every phase, policy and stock.
fn many_facts() -> Vec<Facts> {
    let mut all = Vec::new();
    for late_payment in LatePayment::ALL {
        for phase in [Phase::Running, Phase::Ended, Phase::GraceOver] {
            for retake in [Retake::Possible, Retake::Impossible, Retake::Frozen] {
                for bits in 0..1_u32 << 12 {
                    // Pairs of bits are enough: no condition looks at more.
                    if bits.count_ones() <= 2 {
                        all.push(facts_of(bits, phase, retake, *late_payment));
                    }
                }
            }
        }
    }
    all
}

fn facts_of(bits: u32, phase: Phase, retake: Retake, late_payment: LatePayment) -> Facts {
    let bit = |number: u32| bits & (1 << number) != 0;
    Facts {
        payment_known: bit(0),
        paid_elsewhere: bit(8),
        amount_differs: bit(1),
        paid_at_doubtful: bit(2),
        paid_in_time: bit(3),
        has_success: bit(4),
        is_paid: bit(9),
        payment_under_review: bit(5),
        of_open_attempt: bit(10),
        no_other_attempt: bit(6),
        attempt_open: bit(7),
        phase,
        due: bit(8),
        refund_due: bit(9),
        cancelled: bit(10),
        decided_so: bit(5),
        unchanged: bit(11),
        empties: bit(2),
        late_payment,
        payment_failed: if bit(3) { PaymentFailed::Keep } else { PaymentFailed::Release },
        review_end: if bit(1) { ReviewEnd::Person } else { ReviewEnd::Release },
        retake,
        landing: if bit(0) {
            Landing::Hold
        } else if bit(1) {
            Landing::Sell
        } else if bit(2) {
            Landing::Waits
        } else {
            Landing::Refused(Reason::SoldOut, None)
        },
    }
}
