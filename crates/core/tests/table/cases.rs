//! The rows of the table in `domain.md`, in its order.

use crate::tell_all;

#[test]
fn a_place_holds_sells_or_fails() {
    tell_all(
        "
        # policy           | before             | command       | answer                     | order              | stock | same again
        -                  | -                  | place         | created                    | held               | 3/2/0 | repeated
        capture=immediate  | -                  | place         | created                    | sold               | 3/0/2 | repeated
        -                  | -                  | place_many:6  | refused sold_out recorded  | failed sold_out    | 5/0/0 | refused sold_out recorded repeated
        limit=3            | -                  | place_many:4  | refused account_limit recorded | failed account_limit | 5/0/0 | refused account_limit recorded repeated
        limit=3            | same_account_takes:1 | place       | created                    | held               | 2/3/0 | repeated
        holds=1            | same_account_takes:1 | place       | refused account_open_holds | none               | 4/1/0 | refused account_open_holds
        -                  | pause              | place         | refused campaign_paused    | none               | 5/0/0 | refused campaign_paused
        -                  | freeze             | place         | refused frozen             | none               | 5/0/0 | refused frozen
        -                  | freeze_pool        | place         | refused frozen             | none               | 5/0/0 | refused frozen
        -                  | pause freeze_pool  | place         | refused frozen             | none               | 5/0/0 | refused frozen
        -                  | close freeze pause | place         | refused campaign_closed    | none               | 5/0/0 | refused campaign_closed
        -                  | -                  | queue         | created                    | queued             | 5/0/0 | repeated
        ",
    );
}

#[test]
fn a_repeated_place_answers_with_the_order_as_it_stands() {
    tell_all(
        "
        - | place                            | place         | repeated                           | held                   | 3/2/0 | repeated
        - | place close                      | place         | repeated                           | held                   | 3/2/0 | repeated
        - | place pay:p1                     | place         | repeated                           | sold                   | 3/0/2 | repeated
        - | place cancel                     | place         | refused already_released repeated  | released cancelled     | 5/0/0 | refused already_released repeated
        - | place pay:p1 refund:2            | place         | refused already_refunded repeated  | refunded               | 3/0/2 | refused already_refunded repeated
        - | queue cancel                     | place         | refused cancelled recorded repeated | failed cancelled      | 5/0/0 | refused cancelled recorded repeated
        - | place others_take:3              | place         | repeated                           | held                   | 0/5/0 | repeated
        - | place keep:1                     | place         | repeated                           | held                   | 4/1/0 | repeated
        - | place                            | other_content | refused order_mismatch             | held                   | 3/2/0 | refused order_mismatch
        - | place                            | unlimited     | refused order_mismatch             | held                   | 3/2/0 | refused order_mismatch
        ",
    );
}

#[test]
fn a_queued_order_lands_fails_or_waits() {
    tell_all(
        "
        -                 | queue                    | land      | changed          | held                   | 3/2/0 | repeated
        capture=immediate | queue                    | land      | changed          | sold                   | 3/0/2 | repeated
        -                 | queue pause              | land      | changed          | held                   | 3/2/0 | repeated
        -                 | queue close              | land      | changed          | held                   | 3/2/0 | repeated
        -                 | queue freeze             | land      | repeated         | queued                 | 5/0/0 | repeated
        -                 | queue freeze_pool        | land      | repeated         | queued                 | 5/0/0 | repeated
        -                 | queue freeze unfreeze    | land      | changed          | held                   | 3/2/0 | repeated
        -                 | queue_many:6             | land      | changed          | failed sold_out        | 5/0/0 | repeated
        limit=3           | queue_many:4             | land      | changed          | failed account_limit   | 5/0/0 | repeated
        holds=1           | queue same_account_takes:1 | land    | changed          | failed account_open_holds | 4/1/0 | repeated
        -                 | queue                    | cancel    | changed          | failed cancelled       | 5/0/0 | repeated
        -                 | queue pay:p1             | cancel    | changed          | failed cancelled !p1   | 5/0/0 | repeated
        -                 | queue                    | expire    | not due          | queued                 | 5/0/0 | not due
        -                 | queue @due               | expire    | changed          | failed queue_timeout   | 5/0/0 | not due
        -                 | queue freeze @due        | expire    | changed          | failed queue_timeout   | 5/0/0 | not due
        -                 | queue pay:p1 @due        | expire    | changed          | failed queue_timeout !p1 | 5/0/0 | not due
        -                 | queue @due tick:-1       | land      | changed          | held                   | 3/2/0 | repeated
        -                 | queue @due               | land      | changed          | failed queue_timeout   | 5/0/0 | repeated
        -                 | queue freeze @due        | land      | changed          | failed queue_timeout   | 5/0/0 | repeated
        -                 | queue pay:p1 @due        | land      | changed          | failed queue_timeout !p1 | 5/0/0 | repeated
        -                 | queue                    | pay:p1    | changed parked   | queued                 | 5/0/0 | repeated duplicate
        -                 | queue                    | fail:p1   | changed ignored  | queued                 | 5/0/0 | repeated duplicate
        -                 | queue pay:p1             | pay:p1,event=e9 | changed duplicate | queued          | 5/0/0 | repeated duplicate
        -                 | queue pay:p1             | land      | changed applied  | sold                   | 3/0/2 | repeated
        -                 | queue pay:p1 pay:p1,event=e9 | land  | changed applied  | sold                   | 3/0/2 | repeated
        -                 | queue pay:p1 pay:p2      | land      | changed refund_due | sold !p2             | 3/0/2 | repeated
        -                 | queue pay:p1,wrong       | land      | changed review   | in_review payment_doubtful | 3/2/0 | repeated
        -                 | queue_many:6 pay:p1      | land      | changed          | failed sold_out !p1    | 5/0/0 | repeated
        # Money that paid another order is not money to give back.
        -                 | others_take:1 other_order_paid:p1 queue pay:p1   | land   | changed | in_review payment_doubtful | 2/2/1 | repeated
        -                 | others_take:1 other_order_paid:p1 queue pay:p1   | cancel | changed | failed cancelled | 4/0/1 | repeated
        -                 | others_take:1 other_order_paid:p1 queue pay:p1 @due | expire | changed | failed queue_timeout | 4/0/1 | not due
        -                 | others_take:1 other_order_paid:p1 queue_many:6 pay:p1 pay:p2 | land | changed | failed sold_out !p2 | 4/0/1 | repeated
        -                 | others_take:1 other_order_paid:p1 queue                     | pay:p1 | changed review | queued | 4/0/1 | repeated duplicate
        -                 | others_take:1 other_order_paid:p1 queue pay:p1 pay:p2     | land   | changed applied | sold | 2/0/3 | repeated
        capture=immediate | others_take:1 other_order_paid:p1 queue pay:p1   | land   | changed | sold | 2/0/3 | repeated
        -                 | others_take:1 queue pay:p1 other_order_paid:p1   | cancel | changed | failed cancelled !p1 | 4/1/0 | repeated
        capture=immediate | queue pay:p1             | land      | changed applied  | sold                   | 3/0/2 | repeated
        -                 | queue                    | attempt:a | refused not_held | queued                 | 5/0/0 | refused not_held
        -                 | queue                    | keep:1    | refused not_held | queued                 | 5/0/0 | refused not_held
        -                 | queue                    | refund:1  | refused not_sold | queued                 | 5/0/0 | refused not_sold
        -                 | queue                    | confirm   | refused not_held | queued                 | 5/0/0 | refused not_held
        -                 | queue                    | release   | refused not_held | queued                 | 5/0/0 | refused not_held
        ",
    );
}

#[test]
fn a_held_order_is_paid_in_time() {
    tell_all(
        "
        -              | place                      | pay:p1           | changed applied | sold                       | 3/0/2 | repeated duplicate
        -              | place pause                | pay:p1           | changed applied | sold                       | 3/0/2 | repeated duplicate
        -              | place freeze               | pay:p1           | changed applied | sold                       | 3/0/2 | repeated duplicate
        -              | place close                | pay:p1           | changed applied | sold                       | 3/0/2 | repeated duplicate
        -              | place                      | pay:p1,wrong     | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        -              | place                      | pay:p1,dollars   | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        -              | place                      | pay:p1,nothing   | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        -              | place                      | pay:p1,future    | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        -              | place                      | pay:p1,in_skew   | changed applied | sold                       | 3/0/2 | repeated duplicate
        -              | place                      | pay:p1,ancient   | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        -              | place others_take:1 other_order_paid:p1 | pay:p1 | changed review | in_review payment_doubtful | 2/2/1 | repeated duplicate
        # Amount is judged before lateness.
        late=refund    | place @end                 | pay:p1,wrong     | changed review  | in_review payment_doubtful | 3/2/0 | repeated duplicate
        ",
    );
}

#[test]
fn the_boundary_instants_are_exact() {
    tell_all(
        "
        late=refund               | place @end tick:-1    | pay:p1           | changed applied    | sold             | 3/0/2 | repeated duplicate
        late=refund               | place @end            | pay:p1           | changed refund_due | held !p1         | 3/2/0 | repeated duplicate
        late=refund               | place @grace tick:-1  | pay:p1           | changed refund_due | held !p1         | 3/2/0 | repeated duplicate
        -                         | place @grace tick:-1  | expire           | not due            | held             | 3/2/0 | not due
        -                         | place @grace          | expire           | changed            | released expired | 5/0/0 | not due
        basis=paid_at             | place @end tick:2000000 | expire         | not due            | held             | 3/2/0 | not due
        basis=paid_at             | place @end tick:59999999 | expire        | not due            | held             | 3/2/0 | not due
        basis=paid_at             | place @end tick:60000000 | expire        | changed            | released expired | 5/0/0 | not due
        basis=paid_at late=refund | place @end            | pay:p1,before    | changed applied    | sold             | 3/0/2 | repeated duplicate
        basis=paid_at late=refund | place @grace          | pay:p1,before    | changed applied    | sold             | 3/0/2 | repeated duplicate
        basis=paid_at late=refund | place @end            | pay:p1,at_end    | changed refund_due | held !p1         | 3/2/0 | repeated duplicate
        basis=paid_at late=refund | place @end            | pay:p1           | changed refund_due | held !p1         | 3/2/0 | repeated duplicate
        late=refund               | place @end            | pay:p1,before    | changed refund_due | held !p1         | 3/2/0 | repeated duplicate
        -                         | place @end tick:-1    | attempt:a        | changed            | held             | 3/2/0 | repeated
        -                         | place @end            | attempt:a        | refused hold_expired | held           | 3/2/0 | refused hold_expired
        -                         | place @end tick:-1    | extend:60        | changed            | held             | 3/2/0 | repeated
        -                         | place @end            | extend:60        | refused hold_expired | held           | 3/2/0 | refused hold_expired
        -                         | place attempt:a @grace expire @due tick:-1 | expire | not due | in_review payment_unknown | 3/2/0 | not due
        -                         | place attempt:a @grace expire @due         | expire | changed | released review_ended     | 5/0/0 | not due
        ",
    );
}

#[test]
fn a_late_payment_on_a_hold_that_stands_follows_policy() {
    tell_all(
        "
        -                   | place @end                | pay:p1          | changed retaken    | sold retaken           | 3/0/2 | repeated duplicate
        -                   | place others_take:3 @grace | pay:p1         | changed retaken    | sold retaken           | 0/3/2 | repeated duplicate
        -                   | place freeze @end         | pay:p1          | changed retaken    | sold retaken           | 3/0/2 | repeated duplicate
        late=refund         | place @end                | pay:p1          | changed refund_due | held !p1               | 3/2/0 | repeated duplicate
        late=refund         | place @end pay:p1 @grace  | expire          | changed            | released expired !p1   | 5/0/0 | not due
        late=refund         | place @end pay:p1         | pay:p2          | changed refund_due | held !p1 !p2           | 3/2/0 | repeated duplicate
        late=review         | place @end                | pay:p1          | changed review     | in_review payment_late | 3/2/0 | repeated duplicate
        ",
    );
}

#[test]
fn a_held_order_is_given_back_changed_or_ends() {
    tell_all(
        "
        -              | place                      | fail:p1             | changed applied | held                      | 3/2/0 | repeated duplicate
        failed=release | place                      | fail:p1             | changed applied | released payment_failed   | 5/0/0 | repeated duplicate
        failed=release | place attempt:a            | fail:p1             | changed applied | released payment_failed   | 5/0/0 | repeated duplicate
        failed=release | place attempt:a attempt:b  | fail:p1,attempt=a   | changed applied | held                      | 3/2/0 | repeated duplicate
        failed=release | place attempt:a attempt:b  | fail:p1             | changed applied | held                      | 3/2/0 | repeated duplicate
        failed=release | place attempt:a attempt:b fail:p1,attempt=a | fail:p2 | changed applied | released payment_failed | 5/0/0 | repeated duplicate
        -              | place                      | attempt:a           | changed         | held                      | 3/2/0 | repeated
        -              | place                      | cancel              | changed         | released cancelled        | 5/0/0 | repeated
        -              | place freeze               | cancel              | changed         | released cancelled        | 5/0/0 | repeated
        -              | place                      | release             | changed         | released operator         | 5/0/0 | repeated
        -              | place                      | keep:1              | changed         | held                      | 4/1/0 | repeated
        -              | place                      | keep:2              | repeated        | held                      | 3/2/0 | repeated
        -              | place                      | keep:3              | refused conflict | held                     | 3/2/0 | refused conflict
        -              | place                      | keep:0              | changed         | released cancelled        | 5/0/0 | repeated
        -              | place                      | confirm             | changed         | sold confirmed            | 3/0/2 | repeated
        -              | place @grace               | confirm             | changed         | sold confirmed            | 3/0/2 | repeated
        -              | place                      | extend:60           | changed         | held                      | 3/2/0 | repeated
        -              | place                      | extend:0            | repeated        | held                      | 3/2/0 | repeated
        -              | place                      | extend:2700         | changed         | held                      | 3/2/0 | repeated
        -              | place                      | extend:2701         | refused invalid_value | held                | 3/2/0 | refused invalid_value
        -              | place                      | refund:1            | refused not_sold | held                     | 3/2/0 | refused not_sold
        -              | place                      | refunded:p1         | refused invalid_value | held                | 3/2/0 | refused invalid_value
        -              | place attempt:a @grace     | expire              | changed         | in_review payment_unknown | 3/2/0 | not due
        -              | place attempt:a fail:p1 @grace | expire          | changed         | released expired          | 5/0/0 | not due
        -              | place                      | land                | repeated        | held                      | 3/2/0 | repeated
        ",
    );
}

#[test]
fn an_order_in_review_is_decided() {
    tell_all(
        "
        -        | place pay:p1,wrong            | pay:p2            | changed applied | sold                          | 3/0/2 | repeated duplicate
        -        | place attempt:a @grace expire | pay:p1            | changed applied | sold                          | 3/0/2 | repeated duplicate
        -        | place pay:p1,wrong            | pay:p2,wrong      | changed review  | in_review payment_doubtful    | 3/2/0 | repeated duplicate
        -        | place attempt:a @grace expire | fail:p1           | changed applied | released payment_failed       | 5/0/0 | repeated duplicate
        -        | place attempt:a attempt:b @grace expire | fail:p1,attempt=a | changed ignored | in_review payment_unknown | 3/2/0 | repeated duplicate
        -        | place attempt:a attempt:b @grace expire fail:p1,attempt=a | fail:p2,attempt=b | changed applied | released payment_failed | 5/0/0 | repeated duplicate
        -        | place attempt:a pay:p1,wrong  | fail:p2           | changed ignored | in_review payment_doubtful    | 3/2/0 | repeated duplicate
        -        | place pay:p1,wrong            | release           | changed         | released operator !p1         | 5/0/0 | repeated
        -        | place attempt:a @grace expire | release           | changed         | released operator             | 5/0/0 | repeated
        -        | place pay:p1,wrong            | confirm           | changed         | sold confirmed                | 3/0/2 | repeated
        -        | place pay:p1,wrong pay:p2,wrong | confirm         | changed         | sold confirmed !p2            | 3/0/2 | repeated
        -        | place pay:p1,half pay:p2,half pay:p3,half | confirm | changed       | sold confirmed !p3            | 3/0/2 | repeated
        -        | place pay:p1,wrong extend:60  | cancel            | changed         | released cancelled !p1        | 5/0/0 | repeated
        -        | place pay:p1,wrong extend:60  | keep:0            | changed         | released cancelled !p1        | 5/0/0 | repeated
        failed=release | place pay:p1,wrong extend:60 | fail:p2      | changed applied | released payment_failed !p1   | 5/0/0 | repeated duplicate
        -        | others_take:1 place pay:p1,wrong other_order_paid:p2 pay:p2 | release | changed | released operator !p1 | 4/0/1 | repeated
        -        | others_take:1 place other_order_paid:p2 pay:p2 | confirm | changed | sold confirmed              | 2/0/3 | repeated
        -        | place pay:p1,wrong @due       | expire            | changed         | released review_ended !p1     | 5/0/0 | not due
        review_end=person | place pay:p1,wrong tick:9999999999 | expire | not due    | in_review payment_doubtful    | 3/2/0 | not due
        -        | place pay:p1,wrong            | extend:60         | changed         | held                          | 3/2/0 | repeated
        -        | place attempt:a @grace expire | extend:600        | changed         | held                          | 3/2/0 | repeated
        -        | place pay:p1,wrong            | extend:2701       | refused invalid_value | in_review payment_doubtful | 3/2/0 | refused invalid_value
        -        | place pay:p1,wrong            | cancel            | refused in_review | in_review payment_doubtful  | 3/2/0 | refused in_review
        -        | place pay:p1,wrong            | attempt:a         | refused in_review | in_review payment_doubtful  | 3/2/0 | refused in_review
        -        | place pay:p1,wrong            | keep:1            | refused in_review | in_review payment_doubtful  | 3/2/0 | refused in_review
        -        | place pay:p1,wrong            | refund:1          | refused in_review | in_review payment_doubtful  | 3/2/0 | refused in_review
        ",
    );
}

#[test]
fn a_sold_order_is_only_refunded_or_charged_twice() {
    tell_all(
        "
        -                 | place pay:p1              | pay:p1,event=e9  | changed duplicate  | sold           | 3/0/2 | repeated duplicate
        -                 | place pay:p1              | pay:p1,wrong     | refused key_mismatch | sold         | 3/0/2 | refused key_mismatch
        capture=immediate | place                     | pay:p1           | changed applied    | sold           | 3/0/2 | repeated duplicate
        -                 | place confirm             | pay:p1           | changed applied    | sold confirmed | 3/0/2 | repeated duplicate
        capture=immediate | place                     | pay:p1,wrong     | changed review     | sold           | 3/0/2 | repeated duplicate
        capture=immediate | place pay:p1,wrong        | pay:p2           | changed applied    | sold           | 3/0/2 | repeated duplicate
        capture=immediate | place pay:p1,wrong pay:p2 | pay:p3           | changed refund_due | sold !p3       | 3/0/2 | repeated duplicate
        -                 | place pay:p1              | pay:p2           | changed refund_due | sold !p2       | 3/0/2 | repeated duplicate
        -                 | place pay:p1              | pay:p2,wrong     | changed refund_due | sold !p2       | 3/0/2 | repeated duplicate
        -                 | others_take:1 place pay:p1 other_order_paid:p2 | pay:p2 | changed review | sold | 2/0/3 | repeated duplicate
        -                 | place pay:p1              | fail:p1          | changed ignored    | sold           | 3/0/2 | repeated duplicate
        -                 | place pay:p1              | refund:1         | changed            | sold           | 3/0/2 | repeated
        -                 | place pay:p1              | refund:2         | changed            | refunded       | 3/0/2 | repeated
        -                 | place pay:p1              | restock:1        | changed            | sold           | 4/0/1 | repeated
        -                 | place pay:p1              | restock:2        | changed            | refunded       | 5/0/0 | repeated
        restock           | place pay:p1              | refund:2         | changed            | refunded       | 5/0/0 | repeated
        restock           | place pay:p1 refund:1     | restock:1        | repeated           | sold           | 4/0/1 | repeated
        -                 | place pay:p1 freeze       | restock:2        | changed            | refunded       | 5/0/0 | repeated
        -                 | place pay:p1              | refund:3         | refused refund_exceeds_sold | sold  | 3/0/2 | refused refund_exceeds_sold
        -                 | place pay:p1 refund:1     | restock:2        | refused refund_exceeds_sold | sold  | 3/0/2 | refused refund_exceeds_sold
        -                 | place pay:p1 refund:1     | restock:1        | refused key_mismatch | sold         | 3/0/2 | refused key_mismatch
        -                 | place pay:p1              | cancel           | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | attempt:a        | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | keep:1           | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | confirm          | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | release          | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | extend:60        | refused already_sold | sold         | 3/0/2 | refused already_sold
        -                 | place pay:p1              | expire           | not due            | sold           | 3/0/2 | not due
        -                 | place pay:p1 refund:2     | restock:1        | refused already_refunded | refunded | 3/0/2 | refused already_refunded
        -                 | place pay:p1 refund:2     | cancel           | refused already_refunded | refunded | 3/0/2 | refused already_refunded
        -                 | place pay:p1 refund:2     | pay:p2           | changed refund_due | refunded !p2   | 3/0/2 | repeated duplicate
        capture=immediate | place refund:2            | pay:p1           | changed refund_due | refunded !p1   | 3/0/2 | repeated duplicate
        ",
    );
}

#[test]
fn a_released_order_is_sold_again_only_by_a_retake() {
    tell_all(
        "
        -           | place cancel                   | pay:p1       | changed retaken    | sold retaken           | 3/0/2 | repeated duplicate
        -           | place @grace expire            | pay:p1       | changed retaken    | sold retaken           | 3/0/2 | repeated duplicate
        -           | place @grace expire close      | pay:p1       | changed retaken    | sold retaken           | 3/0/2 | repeated duplicate
        -           | place cancel others_take:3     | pay:p1       | changed retaken    | sold retaken           | 0/3/2 | repeated duplicate
        -           | place cancel others_take:4     | pay:p1       | changed refund_due | released cancelled !p1 | 1/4/0 | repeated duplicate
        limit=3     | place cancel same_account_takes:2 | pay:p1    | changed refund_due | released cancelled !p1 | 3/2/0 | repeated duplicate
        holds=1     | place cancel same_account_takes:2 | pay:p1    | changed retaken    | sold retaken           | 1/2/2 | repeated duplicate
        -           | place cancel freeze            | pay:p1       | changed review     | released cancelled     | 5/0/0 | repeated duplicate
        -           | place cancel freeze_pool       | pay:p1       | changed review     | released cancelled     | 5/0/0 | repeated duplicate
        -           | place cancel                   | pay:p1,wrong | changed review     | released cancelled     | 5/0/0 | repeated duplicate
        late=refund | place cancel                   | pay:p1       | changed refund_due | released cancelled !p1 | 5/0/0 | repeated duplicate
        late=review | place cancel                   | pay:p1       | changed review     | released cancelled     | 5/0/0 | repeated duplicate
        late=review | place cancel pay:p1            | confirm      | changed            | sold retaken           | 3/0/2 | refused already_sold
        late=review | place cancel pay:p1 pay:p2     | confirm      | changed            | sold retaken !p2       | 3/0/2 | refused already_sold
        late=review | place cancel pay:p1 others_take:4 | confirm   | refused sold_out   | released cancelled !p1 | 1/4/0 | refused already_released
        late=review | place cancel pay:p1 freeze     | confirm      | refused frozen     | released cancelled     | 5/0/0 | refused frozen
        -           | place cancel                   | confirm      | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | cancel       | repeated           | released cancelled     | 5/0/0 | repeated
        -           | place @grace expire            | cancel       | refused already_released | released expired | 5/0/0 | refused already_released
        -           | place cancel                   | fail:p1      | changed ignored    | released cancelled     | 5/0/0 | repeated duplicate
        -           | place cancel                   | attempt:a    | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | release      | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | extend:60    | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | keep:1       | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | refund:1     | refused already_released | released cancelled | 5/0/0 | refused already_released
        -           | place cancel                   | expire       | not due            | released cancelled     | 5/0/0 | not due
        ",
    );
}

#[test]
fn a_failed_order_never_changes_save_refund_due() {
    tell_all(
        "
        - | place_many:6        | pay:p1       | changed refund_due     | failed sold_out !p1  | 5/0/0 | repeated duplicate
        - | others_take:1 place_many:6 other_order_paid:p1 | pay:p1 | changed review | failed sold_out | 4/0/1 | repeated duplicate
        - | queue cancel        | pay:p1       | changed refund_due     | failed cancelled !p1 | 5/0/0 | repeated duplicate
        - | queue cancel        | cancel       | repeated               | failed cancelled     | 5/0/0 | repeated
        - | queue cancel        | land         | repeated               | failed cancelled     | 5/0/0 | repeated
        - | queue cancel        | attempt:a    | refused cancelled      | failed cancelled     | 5/0/0 | refused cancelled
        - | queue_many:6 land   | cancel       | refused already_failed | failed sold_out      | 5/0/0 | refused already_failed
        - | queue_many:6 land   | fail:p1      | changed ignored        | failed sold_out      | 5/0/0 | repeated duplicate
        - | queue_many:6 land   | confirm      | refused already_failed | failed sold_out      | 5/0/0 | refused already_failed
        - | queue_many:6 land   | refund:1     | refused already_failed | failed sold_out      | 5/0/0 | refused already_failed
        - | queue_many:6 land   | expire       | not due                | failed sold_out      | 5/0/0 | not due
        ",
    );
}

#[test]
fn refund_due_is_cleared_by_an_operator() {
    tell_all(
        "
        -           | place pay:p1 pay:p2               | refunded:p2    | changed          | sold               | 3/0/2 | repeated
        -           | place pay:p1 pay:p2               | refunded:p2+p9 | refused invalid_value | sold !p2      | 3/0/2 | refused invalid_value
        -           | place pay:p1 pay:p2 pay:p3        | refunded:p2    | changed          | sold !p3           | 3/0/2 | -
        -           | place pay:p1 pay:p2 pay:p3        | refunded:p2+p3 | changed          | sold               | 3/0/2 | repeated
        late=refund | place cancel pay:p1               | refunded:p1    | changed          | released cancelled | 5/0/0 | repeated
        late=refund | place @end pay:p1                 | refunded:p1    | changed          | held               | 3/2/0 | repeated
        -           | place pay:p1                      | refunded:p1    | refused conflict | sold               | 3/0/2 | refused conflict
        ",
    );
}
