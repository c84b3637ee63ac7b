//! The promises, over random events: random clients, providers, timers, drains and turn gates, up to two
//! generations that share a scope, credentials and circuits. Every step is checked against an account
//! of what happened that is kept apart from the core's own.
//!
//! Do the tests bite? Each guard was taken out of the core once, and these failed (`*`: the property
//! below too):
//!
//! | guard | test in `recovery.rs` |
//! |---|---|
//! | 1 debit before the request | * `bounded::an_allowance_of_three_is_three_requests` |
//! | 1 one probe of a half-open circuit | `targets::exactly_one_probe_goes_through_a_half_open_circuit` |
//! | 2 reset before the replay | * `bounded::a_stream_without_finish_reason_is_void_before_its_replay_begins` |
//! | 2 no replay without a reset | * `deliveries::without_a_reset_a_failure_after_the_first_delta_ends_it` |
//! | 3 void output is dropped | * `deliveries::a_reset_drops_what_was_not_delivered` |
//! | 3 COMMITTED_ONLY sees no delta | * `deliveries::committed_only_gets_every_control_frame_but_no_delta_and_no_reset` |
//! | 4 terminal evidence, end of body | * `bounded::deltas_alone_do_not_complete` |
//! | 4 terminal evidence, `[DONE]` | * `bounded::done_alone_completes_nothing_elsewhere` |
//! | 4 an error object beats a terminal | `bounded::only_an_error_object_voids_what_is_already_complete` |
//! | 5 malformed calls fail | * `message::malformed_arguments_fail_and_are_never_repaired` |
//! | 6 effects stop replay | * `effects::after_effects_nothing_restarts` |
//! | 6 effects on void output end it | * `effects::effects_on_void_output_end_the_next_attempt_and_keep_the_verdict` |
//! | 6 effects on a block that is void end it | * `snapshots::effects_on_a_block_that_is_void_end_the_generation` |
//! | 6 after effects the deltas stand | * `snapshots::after_effects_the_deltas_stand_also_for_another_client` |
//! | 3 without resets the deltas stand | * `snapshots::without_a_reset_protocol_the_deltas_stand` |
//! | 3 a snapshot that differs is reset first | * `snapshots::one_that_differs_wins_and_its_block_alone_is_reset_and_given_again` |
//! | 3 a difference is told | * `snapshots::what_was_not_delivered_is_replaced_in_silence` |
//! | 7 one terminal frame | * the harness: a frame after the terminal one |
//! | 7 late events are fenced | * `bounded::late_signals_of_an_ended_attempt_are_not_heard` |
//! | 7 a scope is left | `scopes::every_way_to_end_leaves_the_scope` |
//! | 8 a cancel ends | * `bounded::a_cancel_during_backoff_ends_at_once_and_nothing_is_sent_any_more` |
//! | 8 an end aborts | * `bounded::a_cancel_during_the_stream_aborts_and_commits_nothing` |
//! | 9 a supplied wait is waited | * `waits::a_supplied_wait_above_our_own_is_waited` |
//! | 9 a wait is never invented | * `bounded::a_permanent_refusal_costs_one_request` |
//! | 9 a wait that does not fit fails | `waits::a_wait_that_does_not_fit_fails_at_once_with_the_providers_value` |
//! | 9 a rest is checked at dispatch | * `targets::a_rest_that_begins_while_a_slot_is_waited_for_is_respected` |
//! | 9 the deadline is checked at dispatch | * `waits::a_slot_that_comes_when_an_end_is_due_is_not_used` |
//! | 1 a lease of a credential that rests is given back | * `budgets::a_lease_of_a_credential_that_has_begun_to_rest_is_given_back` |
//! | 8 an end gives a place in line up | * `budgets::every_end_of_a_wait_gives_the_place_in_line_up` |
//! | 9 a budget's wait that does not fit is refused | * `budgets::a_wait_that_does_not_fit_is_refused_at_once_with_the_budget_and_its_time` |
//! | 9 a budget's wait is not cut short | * `budgets::a_target_that_a_budget_holds_back_is_not_asked_again_before_its_time` |
//! | 9 an engine that learns for too long is refused | `engines::learning_that_does_not_fit_is_refused_at_once_with_its_time` |
//! | an engine that is away is the verdict | * `engines::an_engine_that_is_away_until_the_deadline_ends_it_by_the_limiter` |
//! | … and masks none | `engines::an_attempts_verdict_is_not_masked_by_an_engine_that_is_away`, `engines::the_callers_own_deadline_stands_once_an_attempt_was_made` |
//! | … and is named | `engines::an_attempts_verdict_is_not_masked_by_an_engine_that_is_away` |
//! | what is cut is not replayed | * `engines::a_cut_send_ends_at_once_and_is_never_replayed` |
//! | a cut names its own budget | `engines::a_cut_is_the_verdict_whatever_budget_held_another_target_back` |
//! | 10 what can never be held is not asked again | * `budgets::more_than_a_budget_can_hold_goes_to_the_next_target_only` |
//! | 12 what may have left is settled, and what did not is not | * `costs::what_was_not_handed_over_is_not_settled` |
//! | 9 a penalty is what was asked for | `costs::what_is_no_rate_limit_with_a_wait_of_the_provider_is_no_penalty` |
//! | 13 waits for budgets and slots merge | `budgets::a_client_that_lags_is_told_of_the_newest_wait_alone` |
//! | 10 a permanent verdict excludes | * `bounded::a_permanent_refusal_costs_one_request` |
//! | 11 reading moves no timer | * `silence::every_expiry_names_its_timer_its_length_and_the_phase` |
//! | 13 confirmations and waits merge | `effects::queued_confirmations_merge`, `deliveries::a_wait_that_was_prolonged_unseen_is_told_once` |
//! | 14 what was handed over is `maybe` | * `ledger::a_connection_that_could_not_be_opened_was_not_executed` |
//! | 14 an end from outside proves nothing | * `ledger::what_ends_an_attempt_from_outside_proves_nothing_about_its_request` |
//! | 2 kept output is given before the attempt that goes on with it | `continuing_clients::the_text_is_given_before_its_continuation_starts_to_a_client_that_lags` |
//! | 3 nothing is shown before it is judged | * `continuing::nothing_is_shown_before_it_is_known_to_be_a_continuation` |
//! | 3 a new beginning is seen | * `continuing::an_answer_begun_anew_is_void_unseen_and_restarted` |
//! | 3 a verified prefix is final | `continuing::a_second_continuation_that_is_refused_ends_it_because_the_text_is_final` |
//! | 3 white space stands once | `continuing::white_space_is_not_sent_but_stays_and_is_not_doubled` |
//! | 6 effects bind the target | `continuing_clients::effects_bind_the_target_whatever_becomes_of_it` |
//! | 10 a refusal is not repeated | * `continuing::a_refusal_is_not_the_verdict_and_is_not_repeated` |
//! | a refusal does not mask | `continuing::a_refusal_is_not_told_either_when_the_restart_does_not_come` |
//! | 14 kept output is not void | * `continuing::usage_is_the_sum_of_what_the_message_is_made_of` |
//! | a failed response is not read on | `resuming::a_response_that_failed_by_itself_is_not_read_on` |
//! | same place ends recovery | `stalls::the_third_stall_in_a_row_at_the_same_place_ends_recovery` |
//! | a time-out takes its reason away | * `client::one_that_never_comes_back_for_it_is_dropped` |
//! | gate: a replay keeps the hint | * `gating::a_failure_of_a_retry_is_recovered_with_the_same_hint_and_is_not_judged` |
//! | gate: hints do not accumulate | * `gating::hints_do_not_accumulate_and_each_is_of_the_last_attempt` |
//! | gate: what was judged is counted | * `gating::the_last_attempt_that_is_judged_ends_the_generation` |
//! | gate: after effects nothing is tried again | * `gating::after_effects_the_answer_is_accepted_as_it_is` |
//! | gate: nor after a verified continuation | * `gating::what_a_verified_continuation_fixed_is_committed_whatever_it_says` |
//! | gate: nor what a client without resets was shown | * `gating::a_client_without_resets_keeps_what_it_was_shown` |
//! | gate: reset before the next attempt | * `gating::a_rejected_attempt_is_reset_and_the_same_target_gets_a_hint_at_once` |
//! | gate: the allowance is asked, and debited | * `gating::the_allowance_may_be_smaller` |
//! | gate: the deadline and `replay: none` end it | * `gating::nothing_is_tried_again_after_the_deadline_or_where_replays_are_off` |
//! | gate: a rest that does not fit ends it | `gating::a_rest_of_the_only_credential_that_does_not_fit_the_deadline_ends_it` |
//! | gate: no backoff, but a longer one after a failure that follows | * `gating::a_rejected_attempt_is_reset_and_the_same_target_gets_a_hint_at_once`, `gating::a_rejection_is_counted_for_the_next_backoff` |
//! | gate: no other target | * `gating::the_last_attempt_that_is_judged_ends_the_generation` |
//! | gate: not of the retry budget | * `gating::a_hint_is_taken_of_budgets_and_the_retry_budget_is_not` |
//! | gate: broken calls beside good ones are left out | * `gating::a_broken_call_beside_a_good_one_is_withheld` |
//! | gate: announcements are delivered at the end | * `gating::an_announcement_at_the_end_is_delivered_as_it_is` |
//! | gate: `stopped_by` | * `gating::the_last_attempt_that_is_judged_ends_the_generation` |
//! | gate: calls that are not JSON fail as malformed | * `gating::calls_that_are_not_whole_are_tried_again_and_fail_as_malformed_at_the_end` |
//! | gate: the exchange comes to its end | * `gating::the_response_of_a_rejected_attempt_is_complete_and_its_connection_is_used_again` |
//! | gate: rejected tokens are in the ledger | * `gating::a_rejected_attempt_is_reset_and_the_same_target_gets_a_hint_at_once` |
//! | gate: stalls around a rejection are not in a row | `gating::a_stall_before_a_rejection_and_one_after_it_are_not_in_a_row` |
//! | gate: what stays stored is settled whole | `gating::a_stored_response_that_was_rejected_is_complete_and_is_not_read_on` |
//! | without a gate calls fail | * `message::malformed_arguments_fail_and_are_never_repaired` |

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "shared with tests/recovery.rs")]
#[path = "recovery/support/fixtures.rs"]
mod fixtures;
#[path = "model/mod.rs"]
mod model;
#[path = "recovery/promises/strategies.rs"]
mod strategies;

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use redrive::recovery::Params;

use crate::{
    model::{ANSWERS, CHOICES, Fleet, OFFERS, Op, Rules, STRICTNESS, Says},
    strategies::{circumstances, gates, ops},
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_promises_hold_whatever_happens(
        params in circumstances(),
        rules in gates(),
        events in ops(),
        retries in prop_oneof![3 => Just(1000u32), 1 => 0u32..3],
    ) {
        play(params, rules, events, retries);
    }
}

/// A property that never gets to the point proves nothing.
#[test]
fn random_events_reach_every_kind_of_end() {
    let mut runner = TestRunner::deterministic();
    let mut reached: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..2_000 {
        let params = circumstances().new_tree(&mut runner).unwrap().current();
        let rules = gates().new_tree(&mut runner).unwrap().current();
        let events = ops().new_tree(&mut runner).unwrap().current();
        let retries = if events.len().is_multiple_of(4) {
            1
        } else {
            1000
        };
        for landmark in play(params, rules, events, retries) {
            *reached.entry(landmark).or_default() += 1;
        }
    }
    for landmark in [
        "reset",
        "a block reset",
        "a snapshot that won",
        "a snapshot that lost",
        "filled by a snapshot",
        "committed",
        "committed after a replay",
        "committed unseen",
        "withheld",
        "effects confirmed",
        "continued",
        "resumed",
        "begun anew",
        "refused to go on",
        "fallback",
        "second credential",
        "held back by an engine",
        "an engine that stayed away",
        "cut",
        "gate: asked again",
        "gate: a hint was sent again",
        "gate: exhausted",
        "gate: failed as malformed",
        "gate: delivered at the end",
        "gate: must stay",
        "gate: withheld a call",
        "gate: empty",
        "gate: bare",
        "gate: required_tool",
        "gate: tool_error",
        "gate: missing_tool",
        "STOPPED_BY_NOT_RETRYABLE",
        "STOPPED_BY_ALLOWANCE",
        "STOPPED_BY_DEADLINE",
        "STOPPED_BY_WAIT_TOO_LONG",
        "STOPPED_BY_EFFECTS",
        "STOPPED_BY_RETRY_BUDGET",
        "STOPPED_BY_NO_TARGET",
        "STOPPED_BY_CANCEL",
        "STOPPED_BY_DRAIN",
        "STOPPED_BY_NO_RESET",
        "STOPPED_BY_REPLAY_DISABLED",
        "STOPPED_BY_CLIENT",
    ] {
        let times = reached.get(landmark).copied().unwrap_or_default();
        assert!(times >= 2, "{landmark}: {times} times, of {reached:?}");
    }
}

fn play(
    params: Params,
    rules: Option<Rules>,
    events: Vec<(bool, Op)>,
    retries: u32,
) -> BTreeSet<&'static str> {
    let mut fleet = Fleet::new(retries);
    fleet.join(params.clone(), rules);
    fleet.join(params, rules);
    fleet.start(0);
    fleet.start(1);
    for (second, op) in events {
        fleet.act(usize::from(second), op);
    }
    fleet.finish()
}

/// The model once took the first version for shown as long as its reset had not been read.
#[test]
fn a_block_that_is_given_anew_twice_before_its_reset_is_read_is_void_once() {
    let events = [
        Op::Says(Says::Arguments(1, "{\"a\":")),
        Op::Reads(4),
        Op::Says(Says::Whole(1, "{}")),
        Op::Says(Says::Whole(1, "{\"a\":1}")),
        Op::Reads(2),
        Op::Effects(0),
    ];
    let events = events.map(|op| (false, op)).to_vec();
    let landmarks = play(fixtures::params(1), None, events, 1_000);
    assert!(landmarks.contains("effects confirmed"), "{landmarks:?}");
}

/// A rejection tells no reset of what a reset in line has named already.
#[test]
fn a_rejected_block_whose_own_reset_is_in_line_is_void_once() {
    let events = [
        Op::Says(Says::Arguments(1, "{\"a\":")),
        Op::Reads(4),
        Op::Says(Says::Whole(1, "{}")),
        Op::Answers(ANSWERS[0]),
        Op::Reads(9),
    ];
    let rules = Rules {
        strictness: STRICTNESS[0],
        attempts: 2,
        offer: OFFERS[0],
        choice: CHOICES[0],
    };
    let events = events.map(|op| (false, op)).to_vec();
    let landmarks = play(fixtures::params(1), Some(rules), events, 1_000);
    assert!(landmarks.contains("gate: asked again"), "{landmarks:?}");
    assert!(landmarks.contains("a block reset"), "{landmarks:?}");
}
