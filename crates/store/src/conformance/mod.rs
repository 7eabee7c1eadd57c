//! The suite that every store passes. A store subscribes with one line:
//! `holdfast_store::conformance_suite!(open)`, where `open` makes an empty store with a given clock.

mod behaviour;
mod pages;
mod support;
mod walk;

pub use behaviour::*;
pub use pages::*;
pub use walk::*;

/// Makes one test of each case. `$open` is `fn(Arc<dyn Clock>) -> impl Future<Output = (Arc<dyn Store>, T)>`,
/// where `T` keeps alive what the store stands on.
#[macro_export]
macro_rules! conformance_suite {
    ($open:path) => {
        $crate::conformance_suite!(@cases $open:
            a_place_takes_stock_and_writes_its_entry
            a_repeat_finds_the_same_order_in_the_same_and_in_another_batch
            an_order_reads_back_as_it_was_answered
            one_bucket_of_many_misses_and_the_whole_pool_serves
            concurrent_batches_sell_exactly_what_there_is
            a_doubled_notice_is_kept_once
            a_limit_added_later_is_counted_first
            switches_hold_from_their_answer_on
            a_frozen_pool_sells_nothing
            an_adjustment_is_applied_once
            the_admin_key_is_created_once
            overdue_orders_are_listed_longest_first
            the_clock_never_runs_behind_the_ledger
            pages_are_stable_under_inserts
            lists_are_filtered
            a_random_walk_agrees_with_the_model
        );
    };
    (@cases $open:path: $($case:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let clock = ::std::sync::Arc::new($crate::ManualClock::at($crate::conformance::START));
            let (store, _keep) = $open(clock.clone()).await;
            $crate::conformance::$case(store, clock).await;
        }
    )*};
}

/// When every case begins.
pub const START: holdfast_core::time::Timestamp = holdfast_core::time::Timestamp(1_700_000_000_000_000);
