//! The suite that every store passes. A store subscribes with one line:
//! `holdfast_store::conformance_suite!(open)`, where `open` makes an empty store with a given clock.

mod approvals;
pub mod arrivals;
mod behaviour;
mod caches;
mod cases;
mod closing;
mod evidence;
mod files;
mod keys;
mod limits;
mod measures;
mod pages;
mod places;
mod pools;
mod queue;
mod reconcile;
pub mod rehearsal;
mod rows;
mod sequences;
mod settlement;
mod sinks;
mod support;
mod walk;

pub use approvals::*;
pub use behaviour::*;
pub use caches::*;
pub use cases::*;
pub use closing::*;
pub use evidence::*;
pub use files::*;
pub use keys::*;
pub use limits::*;
pub use measures::*;
pub use pages::*;
pub use places::*;
pub use pools::*;
pub use queue::*;
pub use reconcile::*;
pub use sequences::*;
pub use settlement::*;
pub use sinks::*;
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
            a_payment_told_for_two_orders_at_once_pays_one
            a_limit_added_later_is_counted_first
            a_limited_key_counts_over_accounts_and_pools
            the_keys_of_an_order_read_back
            a_key_limit_added_later_is_counted_first
            concurrent_batches_keep_to_the_limit_of_a_key
            an_order_has_one_case_of_a_kind
            switches_hold_from_their_answer_on
            a_frozen_pool_sells_nothing
            an_adjustment_is_applied_once
            a_pool_changes_while_it_sells
            a_bucket_alone_never_says_sold_out_of_a_grown_pool
            a_stock_file_is_applied_whole_and_once
            a_count_is_judged_by_the_ledger_of_its_time
            work_waits_for_a_second_person
            a_transfer_moves_stock_once_and_in_pairs
            transfers_under_load_keep_the_law
            a_sweep_gathers_fragments
            a_retired_pool_sells_nothing
            changes_of_pools_are_in_the_trail
            the_catalog_tells_what_changed_since
            a_key_lives_until_it_ends
            the_last_admin_key_stays
            acts_are_kept_once_and_shown_newest_first
            cancels_of_operators_are_in_the_trail
            lists_keep_to_their_scope
            a_new_incarnation_stops_sales_until_its_case_is_resolved
            a_payment_under_way_is_told_before_its_order_ends
            a_case_is_resolved_once
            an_authority_knows_its_past_and_its_position
            cases_are_listed_and_filtered
            overdue_orders_are_listed_longest_first
            open_ends_are_counted
            a_store_measures_its_batches
            the_clock_never_runs_behind_the_ledger
            pages_are_stable_under_inserts
            lists_are_filtered
            pages_of_long_orders_are_bounded
            a_settlement_is_what_the_rows_add_up_to
            a_version_of_an_order_has_a_position
            the_evidence_of_an_order_is_whole
            the_evidence_of_a_pool_adds_up_as_of_any_time
            queued_orders_wait_as_they_were_taken_in
            a_key_is_taken_in_once
            a_full_queue_takes_in_nobody
            a_landing_takes_what_there_is
            a_parked_payment_meets_the_landing
            a_queued_order_runs_out_of_time
            a_queued_order_ends_once
            a_lease_has_one_holder
            an_epoch_turns_in_order
            the_catalog_tells_of_turned_epochs
            a_landing_is_written_once
            a_landing_that_is_refused_fails_and_is_settled
            a_landing_is_served_elsewhere
            a_closed_epoch_admits_nothing
            a_poison_entry_is_set_aside_once
            an_entry_lands_for_one_order
            landers_race_and_an_epoch_closes
            a_new_incarnation_closes_every_epoch
            whatever_arrives_in_whatever_order_is_answered_as_the_model_does
            an_assortment_is_set_told_and_written_down
            no_sku_becomes_a_bundle_and_a_pool_at_once
            a_line_over_several_pools_lives_like_any_other
            a_choice_of_places_is_decided_by_the_authority
            unsold_stock_moves_when_its_campaign_is_closed
            the_pool_of_a_close_is_judged
            two_closes_never_make_a_circle
            a_queue_is_served_before_stock_leaves
            what_a_cache_accepted_lands_before_stock_leaves
            a_warming_is_told
            a_sink_is_made_changed_and_forgotten
            a_sink_is_behind_until_it_advances
            only_who_may_deliver_says_how_far_it_has_come
            a_sink_is_told_from_its_time_on_and_again_by_a_replay
            a_parked_event_waits_until_somebody_asks_for_it
            a_ledger_is_summed_piece_by_piece
            orders_that_agree_are_no_suspects
            a_difference_is_kept_once
            a_repair_is_written_once_with_its_case
            rows_are_made_what_the_ledger_says
            runs_wait_in_a_bounded_line
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
