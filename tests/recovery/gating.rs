//! The turn gate in the core: what becomes of completed attempts that it rejects.

use redrive::{
    gate::{Attempts, Choice, Policy, Tools},
    proto::{Delivery, FinishReason, VerdictClass, generate_response::Frame},
    protocol::{self, Delta},
    recovery::{Command, Gate, Params, Takes, settings::Replay},
    verdict::Class,
};

use crate::support::*;

/// The strict policy as a model without a wrapper needs it.
const AGENT: Policy = Policy {
    accept_bare_final: true,
    ..Policy::AGENT
};

/// What the gate goes by.
struct Rules {
    policy: Policy,
    attempts: Attempts,
    tools: Tools,
}

/// Two targets behind a gate that judges three attempts, of a request that offers the tool `read`.
fn gated(change: impl FnOnce(&mut Params, &mut Rules)) -> Params {
    let mut rules = Rules {
        policy: AGENT,
        attempts: Attempts::default(),
        tools: Tools {
            names: Some(vec!["read".into()]),
            ..Tools::default()
        },
    };
    params_with(2, |params| {
        change(params, &mut rules);
        params.gate = Some(Box::new(Gate::new(
            rules.policy,
            rules.attempts,
            rules.tools,
        )));
    })
}

fn started() -> Script {
    Script::start(gated(|_, _| {}))
}

/// A complete response that calls tools.
fn calls(script: &mut Script, calls: &[(&str, &str)]) {
    script.open();
    for (index, (name, arguments)) in (0..).zip(calls) {
        script.tool_call(index, name, arguments);
    }
    script.finish(FinishReason::ToolCalls);
    script.usage(1);
    script.done();
}

fn modes(script: &Script) -> Vec<String> {
    let frames = script.frames.iter().filter_map(|f| f.frame.as_ref());
    let modes = frames.filter_map(|frame| match frame {
        Frame::AttemptStarted(started) => Some(started.mode().as_str_name()),
        _ => None,
    });
    modes
        .map(|mode| mode.trim_start_matches("MODE_").to_lowercase())
        .collect()
}

fn hints(script: &Script) -> Vec<&str> {
    let hints = script.sends.iter().map(|send| send.hint.as_deref());
    hints.map(Option::unwrap_or_default).collect()
}

#[test]
fn an_answer_that_is_accepted_is_committed_as_without_a_gate() {
    let mut script = started();
    script.answer("hello");
    assert_eq!(script.last(), "committed stop \"hello\"");
    assert_eq!(hints(&script), [""]);
}

#[test]
fn a_rejected_attempt_counts_for_the_next_backoff() {
    let mut script = started();
    script.answer("");
    script.answer("");
    script.fail(reset());
    assert_eq!(script.last(), "waiting backoff 4s");
}

#[test]
fn a_rejected_attempt_is_reset_and_the_same_target_gets_a_hint_at_once() {
    let mut script = started();
    script.answer("Let me read the file.");
    let told = script.told();
    assert_eq!(
        told[2..],
        [
            "delta 1.0 \"Let me read the file.\"",
            "reset 1 gate_rejected/missing_tool",
            "attempt 2 a/m gate_retry left=9",
        ]
    );
    assert_eq!(script.sent_at(), [0, 0]);
    assert!(hints(&script)[1].contains("announced an action"));
    calls(&mut script, &[("read", "{}")]);
    assert_eq!(script.last(), "committed tool_calls call id0 read \"{}\"");
    let ledger = script.ledger();
    let verdict = ledger.entries[0].verdict.clone().unwrap();
    assert_eq!(verdict.class(), VerdictClass::GateRejected);
    assert_eq!(verdict.gate_reason, "missing_tool");
    assert!(!verdict.retryable);
    assert_eq!((ledger.attempts, ledger.sends), (2, 2));
    assert_eq!(ledger.void_output_tokens, 1);
    assert_eq!(ledger.total_usage.unwrap().output_tokens, 2);
}

#[test]
fn the_response_of_a_rejected_attempt_is_complete_and_its_connection_is_used_again() {
    let mut script = started();
    script.answer("");
    let kinds = |command: &&Command| {
        matches!(
            command,
            Command::Finish | Command::Abort { .. } | Command::Settle(_)
        )
    };
    let ends: Vec<&Command> = script.commands.iter().filter(kinds).collect();
    let [Command::Settle(spent), Command::Finish] = ends[..] else {
        panic!("{ends:?}");
    };
    assert!(!spent.estimated);
}

#[test]
fn hints_do_not_accumulate_and_each_is_of_the_last_attempt() {
    let mut script = started();
    calls(&mut script, &[("wirte", "{}")]);
    assert!(hints(&script)[1].contains("There is no tool of this name: wirte"));
    script.answer("");
    let hints = hints(&script);
    assert!(hints[2].contains("no visible text"), "{hints:?}");
    assert!(!hints[2].contains("wirte"));
}

#[test]
fn the_last_attempt_that_is_judged_ends_the_generation() {
    let mut script = started();
    for _ in 0..3 {
        script.open();
        script.delta(Delta::Reasoning("hm"));
        script.finish(FinishReason::Stop);
        script.done();
    }
    assert_eq!(script.last(), "failed gate_rejected/empty by gate");
    assert_eq!(modes(&script), ["first", "gate_retry", "gate_retry"]);
    let verdict = script.failed().verdict.unwrap();
    assert_eq!((verdict.attempt, &*verdict.target), (3, "a/m"));
    // The fallback would get the same question.
    assert_eq!(script.visited(), [0, 0, 0]);
}

#[test]
fn a_demanded_call_that_does_not_come_is_rejected() {
    let mut script = Script::start(gated(|_, gate| {
        gate.tools.choice = Choice::Named("read".into());
        gate.attempts = Attempts::resolve(None, 2.0);
    }));
    script.answer("no");
    assert!(hints(&script)[1].contains("Call the tool `read` now"));
    script.answer("no");
    assert_eq!(script.last(), "failed gate_rejected/required_tool by gate");
}

#[test]
fn an_announcement_at_the_end_is_delivered_as_it_is() {
    let mut script = started();
    for _ in 0..3 {
        script.answer("I'll run it.");
    }
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
}

#[test]
fn calls_that_are_not_whole_are_tried_again_and_fail_as_malformed_at_the_end() {
    let mut script = started();
    for _ in 0..2 {
        calls(&mut script, &[("read", "{\"path")]);
    }
    calls(&mut script, &[("read", "{\"path")]);
    assert_eq!(script.last(), "failed malformed_output by gate");
    let resets = script.told();
    let resets = resets.iter().filter(|line| line.starts_with("reset"));
    assert!(
        resets
            .clone()
            .all(|line| line.ends_with("gate_rejected/tool_error"))
    );
    assert_eq!(resets.count(), 2);
}

#[test]
fn calls_of_unknown_tools_are_whole_and_fail_as_rejected() {
    let mut script = started();
    for _ in 0..3 {
        calls(&mut script, &[("wirte", "{}")]);
    }
    assert_eq!(script.last(), "failed gate_rejected/tool_error by gate");
}

#[test]
fn a_broken_call_beside_a_good_one_is_withheld() {
    for (name, arguments) in [("wirte", "{}"), ("read", "{\"path"), ("read", "[1]")] {
        let mut script = started();
        calls(&mut script, &[("read", "{\"a\":1}"), (name, arguments)]);
        assert_eq!(
            script.last(),
            format!(
                "committed tool_calls call id0 read \"{{\\\"a\\\":1}}\" FLAG_TOOL_CALLS_WITHHELD \
                 withheld {name} {arguments:?}"
            )
        );
    }
}

#[test]
fn a_truncated_answer_is_not_tried_again() {
    let mut script = started();
    script.open();
    script.tool_call(0, "read", "{\"pa");
    script.finish(FinishReason::Length);
    script.done();
    let expected = "committed length FLAG_TOOL_CALLS_WITHHELD FLAG_USAGE_ESTIMATED withheld read \
                    \"{\\\"pa\"";
    assert_eq!(script.last(), expected);
}

#[test]
fn after_effects_the_answer_is_accepted_as_it_is() {
    let mut script = started();
    script.open();
    script.text("I'll run it.");
    script.effects(script.sequence());
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
    assert_eq!(script.sent_count(), 1);
}

#[test]
fn after_effects_broken_calls_fail_as_without_a_gate() {
    let mut script = started();
    script.open();
    script.text("Look:");
    script.effects(script.sequence());
    script.tool_call(0, "read", "{\"path");
    script.finish(FinishReason::ToolCalls);
    script.done();
    assert_eq!(
        script.last(),
        "failed malformed_output by not_retryable unsafe"
    );
}

#[test]
fn a_client_without_resets_keeps_what_it_was_shown() {
    let params = gated(|params, _| params.delivery = Delivery::PreviewNoReset);
    let mut script = Script::start(params.clone());
    script.answer("I'll run it.");
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
    // Of an empty answer it was shown nothing.
    let mut script = Script::start(params);
    script.answer("");
    assert_eq!(modes(&script), ["first", "gate_retry"]);
}

#[test]
fn the_allowance_may_be_smaller() {
    let mut script = Script::start(gated(|params, _| params.policy.max_attempts = 2));
    script.answer("");
    script.answer("");
    assert_eq!(script.last(), "failed gate_rejected/empty by allowance");
    // What is delivered at the end is delivered at this end too.
    let mut script = Script::start(gated(|params, _| params.policy.max_attempts = 1));
    script.answer("I'll run it.");
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
}

#[test]
fn nothing_is_tried_again_after_the_deadline_or_where_replays_are_off() {
    let mut script = Script::start(gated(|params, _| params.policy.deadline = s(5)));
    script.open();
    script.pass(s(6));
    script.finish(FinishReason::Stop);
    script.done();
    assert_eq!(script.last(), "failed gate_rejected/empty by deadline");
    let mut script = Script::start(gated(|params, _| params.policy.deadline = s(5)));
    script.open();
    script.pass(s(6));
    script.text("I'll run it.");
    script.finish(FinishReason::Stop);
    script.usage(1);
    script.done();
    assert_eq!(script.last(), "committed stop \"I'll run it.\"");
    let mut script = Script::start(gated(|params, _| params.policy.replay = Replay::None));
    script.answer("");
    assert_eq!(
        script.last(),
        "failed gate_rejected/empty by replay_disabled"
    );
}

#[test]
fn a_failure_of_a_retry_is_recovered_with_the_same_hint_and_is_not_judged() {
    let mut script = started();
    script.answer("");
    script.open();
    script.fail(reset());
    script.next_send();
    let hints = hints(&script);
    assert_eq!(hints[1], hints[2]);
    assert_eq!(modes(&script), ["first", "gate_retry", "gate_retry"]);
    // Two were judged: a third one is.
    script.answer("");
    assert_eq!(script.sent_count(), 4);
    script.answer("done");
    assert_eq!(script.last(), "committed stop \"done\"");
}

#[test]
fn a_continued_retry_has_the_hint_too_and_its_prefix_is_final() {
    let mut script = Script::start(gated(|params, _| {
        change_targets(params, |target| target.continues = true);
    }));
    script.answer("");
    let hint = hints(&script)[1].len();
    script.open();
    script.text("The answer ");
    script.fail(reset());
    script.next_send();
    let send = script.sends[2].clone();
    assert!(send.hint.is_some() && send.follow_up.is_some());
    assert_eq!(script.asked.1, Takes::Continuation { partial: 11 + hint });
    script.answer("is 42.");
    let expected = "committed stop \"The answer is 42.\" FLAG_USAGE_ESTIMATED";
    assert_eq!(script.last(), expected);
}

#[test]
fn a_hint_is_taken_of_budgets_and_the_retry_budget_is_not() {
    let shared = commons_with(0);
    let mut script = Script::start_at(at(0), gated(|_, _| {}), &shared);
    script.answer("");
    let hint = hints(&script)[1].len();
    assert_eq!(script.asked.1, Takes::Hinted { hint });
}

#[test]
fn rejections_are_no_failures_of_the_target() {
    let shared = commons();
    for _ in 0..5 {
        let mut script = Script::start_at(at(0), gated(|_, _| {}), &shared);
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
        for _ in 0..3 {
            script.answer("");
        }
    }
    // Five failures in a row would have opened its circuit.
    let script = Script::start_at(at(20), gated(|_, _| {}), &shared);
    assert_eq!(script.visited(), [0]);
}

#[test]
fn a_stored_response_that_was_rejected_is_complete_and_is_not_read_on() {
    let mut script = Script::start(gated(|params, _| {
        change_targets(params, |target| target.resumes = true);
    }));
    script.open();
    script.decoded(protocol::Event::Started {
        response_id: Some("r1"),
        model: None,
    });
    script.decoded(protocol::Event::Cursor { sequence: 1 });
    script.text("Let me read it.");
    script.finish(FinishReason::Stop);
    script.done();
    let send = script.sends[1].clone();
    assert!(send.hint.is_some() && send.follow_up.is_none());
    let settled = script.commands.iter().find_map(|command| match command {
        Command::Settle(spent) => Some(*spent),
        _ => None,
    });
    // Nobody goes on with it: what was seen is all.
    assert_eq!(settled.unwrap().output_tokens, Some(15));
}

#[test]
fn what_a_verified_continuation_fixed_is_committed_whatever_it_says() {
    let mut script = Script::start(gated(|params, _| {
        change_targets(params, |target| target.continues = true);
    }));
    script.open();
    script.text("Let me read ");
    script.fail(reset());
    script.next_send();
    script.answer("it.");
    let expected = "committed stop \"Let me read it.\" FLAG_USAGE_ESTIMATED";
    assert_eq!(script.last(), expected);
    assert_eq!(script.sent_count(), 2);
}

#[test]
fn a_rejection_is_counted_for_the_next_backoff() {
    let mut script = started();
    script.answer("");
    script.open();
    script.fail(reset());
    script.next_send();
    assert_eq!(script.sent_at(), [0, 0, 2]);
}

#[test]
fn a_stall_before_a_rejection_and_one_after_it_are_not_in_a_row() {
    let mut script = Script::start(gated(|params, _| params.fallback = false));
    let stall = |script: &mut Script| {
        script.open();
        script.text("a");
        script.next_send();
    };
    stall(&mut script);
    stall(&mut script);
    script.answer("");
    stall(&mut script);
    stall(&mut script);
    assert!(!script.generation.has_ended());
    stall(&mut script);
    assert_eq!(script.last(), "failed stall by same_place");
}

#[test]
fn a_rest_of_the_only_credential_that_does_not_fit_the_deadline_ends_it() {
    let shared = commons();
    let mut script = Script::start_at(at(0), gated(|_, _| {}), &shared);
    let mut other = Script::start_at(at(0), params(1), &shared);
    other.fail(provider_wait(Class::RateLimited, s(700)));
    script.answer("");
    assert_eq!(script.last(), "failed gate_rejected/empty by deadline");
    // One that fits is waited for.
    let shared = commons();
    let mut script = Script::start_at(at(0), gated(|_, _| {}), &shared);
    let mut other = Script::start_at(at(0), params(1), &shared);
    other.fail(provider_wait(Class::RateLimited, s(30)));
    script.answer("");
    script.next_send();
    assert_eq!(
        (script.sent_at(), script.visited()),
        (vec![0, 30], vec![0, 0])
    );
}
