//! Work that waits for a second person: asked for once, decided once, kept with its evidence.

use std::sync::Arc;

use holdfast_core::approval::{APPROVAL_SECONDS, ApprovalKey, ApprovalState, DecideApproval, Verdict};
use holdfast_core::campaign::Policy;
use holdfast_core::command::{Adjust, AdjustmentKind, Command, Outcome, Signed, Via};
use holdfast_core::id::{AdjustmentId, PoolId};
use holdfast_core::refusal::Refusal;

use super::behaviour::{Subject, TestClock};
use super::support::{assert_clean, balances, one, open_campaign, open_pool, whole};
use crate::approvals::ApprovalFilter;
use crate::contract::Store;
use crate::read::Page;

fn person(name: &str, key: &str) -> Signed {
    let via = Via { key: key.into(), request_id: "r".into() };
    Signed { via: Some(Arc::new(via)), ..Signed::new(name, "why") }
}

fn adjust(id: &str, delta: i64) -> Command {
    let adjustment_id = AdjustmentId::new(id).expect("a good id");
    let (kind, signed) = (AdjustmentKind::Adjust, person("olga", "key 1"));
    Command::Adjust(Adjust { adjustment_id, pool: PoolId(1), delta, kind, bucket: None, signed })
}

async fn decide(store: &dyn Store, id: &str, verdict: Verdict, signed: Signed) -> Outcome {
    let key = ApprovalKey::of_adjustment(&AdjustmentId::new(id).expect("a good id"));
    let known = store.approval(key.clone()).await.expect("read").expect("a request");
    let decide = DecideApproval { key, work: known.proposal.command(), verdict, signed };
    one(store, whole(&[1]), Command::Decide(Arc::new(decide))).await
}

async fn listed(store: &dyn Store, state: ApprovalState) -> Vec<String> {
    let filter = ApprovalFilter { state: Some((state, store.now())), ..ApprovalFilter::default() };
    let (found, more) = store.approvals(filter, Page { after: None, limit: 9 }).await.expect("a page");
    assert!(!more);
    found.iter().map(|approval| approval.key.as_str().to_owned()).collect()
}

/// Nobody agrees to their own work, by another name neither; what nobody decides in time is never done.
pub async fn work_waits_for_a_second_person(store: Subject, clock: TestClock) {
    open_campaign(&*store, Policy { approval_threshold: Some(5), ..Policy::default() }).await;
    open_pool(&*store, 1, 50, 2).await;
    for (id, delta) in [("a1", -6), ("a2", 6), ("a3", 7)] {
        for repeated in [false, true] {
            let asked = one(&*store, whole(&[1]), adjust(id, delta)).await;
            assert!(matches!(asked, Outcome::Proposed { repeated: was, .. } if was == repeated), "{asked:?}");
        }
    }
    let other = one(&*store, whole(&[1]), adjust("a1", -7)).await;
    assert_eq!(other, Outcome::refused(Refusal::KeyMismatch(vec!["/delta".into()])));
    for (name, key) in [("olga", "key 2"), ("pia", "key 1")] {
        let own = decide(&*store, "a1", Verdict::Approve, person(name, key)).await;
        assert_eq!(own, Outcome::refused(Refusal::SamePerson), "{name} {key}");
    }
    assert_eq!(balances(&*store, 1).await, (50, 0, 0));
    for repeated in [false, true] {
        let agreed = decide(&*store, "a1", Verdict::Approve, person("pia", "key 2")).await;
        assert!(matches!(agreed, Outcome::Adjusted { repeated: was, .. } if was == repeated), "{agreed:?}");
        assert_eq!(balances(&*store, 1).await, (44, 0, 0));
    }
    let again = one(&*store, whole(&[1]), adjust("a1", -6)).await;
    assert!(matches!(again, Outcome::Adjusted { repeated: true, .. }), "{again:?}");
    let rejected = decide(&*store, "a2", Verdict::Reject, person("pia", "key 2")).await;
    assert!(matches!(rejected, Outcome::Proposed { repeated: false, .. }), "{rejected:?}");
    let late = decide(&*store, "a2", Verdict::Approve, person("pia", "key 2")).await;
    assert!(matches!(late, Outcome::Refused { refusal: Refusal::Conflict(_), .. }), "{late:?}");
    clock.advance_millis(APPROVAL_SECONDS * 1_000);
    let late = decide(&*store, "a3", Verdict::Approve, person("pia", "key 2")).await;
    assert!(matches!(late, Outcome::Refused { refusal: Refusal::Conflict(_), .. }), "{late:?}");
    assert_eq!(balances(&*store, 1).await, (44, 0, 0));
    assert_eq!(listed(&*store, ApprovalState::Approved).await, ["adjustment:a1"]);
    assert_eq!(listed(&*store, ApprovalState::Rejected).await, ["adjustment:a2"]);
    assert_eq!(listed(&*store, ApprovalState::Expired).await, ["adjustment:a3"]);
    assert!(listed(&*store, ApprovalState::Pending).await.is_empty());
    let key = ApprovalKey::parse("adjustment:a1").expect("a key");
    let known = store.approval(key).await.expect("read").expect("a request");
    let decision = known.decision.as_ref().expect("a decision");
    assert_eq!((&*known.proposal.signed().actor, &*decision.signed.actor), ("olga", "pia"));
    assert_clean(&*store).await;
}
