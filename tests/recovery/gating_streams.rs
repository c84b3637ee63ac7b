//! What is streamed is judged the same in every protocol: bytes are decoded, the core makes blocks of them,
//! and the gate sees what it is to see of these.

use redrive::{
    gate::{Attempts, Choice, Policy, Tools},
    protocol::{DecoderOptions, Event, Protocol, adapter::adapter},
    recovery::{Gate, Upstream},
};

use crate::support::{
    spoken::{End, Said, in_each_protocol},
    *,
};
use End::{Natural, Paused, Refused, Truncated};
use Said::{Call, Hidden, Own, Refusal, Text, Thought};

const ANNOUNCED: &str = "Let me check that.";

/// A generation behind a gate of `policy`, of a request that offers two tools.
fn asked(policy: Policy, choice: Choice) -> Script {
    let tools = Tools {
        names: Some(vec!["Bash".into(), "Read".into()]),
        choice,
        ..Tools::default()
    };
    Script::start(params_with(1, |params| {
        let gate = Gate::new(policy, Attempts::default(), tools);
        params.gate = Some(Box::new(gate));
    }))
}

/// What becomes of an answer: why it is rejected and what then, else as what it is committed.
fn judged(mut script: Script, protocol: Protocol, body: &str) -> String {
    script.open();
    let mut decoder = adapter(protocol)
        .unwrap()
        .decoder(DecoderOptions::default());
    let mut decoded = |event: Event<'_>| script.upstream_of(1, Upstream::Decoded(event));
    decoder.feed(body.as_bytes(), &mut decoded);
    decoder.end(true, &mut decoded);
    script.upstream_of(1, Upstream::End);
    match &script.rejections[..] {
        [] => {
            let told = script.last();
            let told: Vec<&str> = told.split(' ').take(2).collect();
            told.join(" ")
        }
        rejections => rejections.join(", "),
    }
}

/// Asserts the same of every protocol that can say it, and how many these are.
fn all_judge(policy: Policy, said: &[Said<'_>], end: End, (protocols, expected): (usize, &str)) {
    let spoken = in_each_protocol(said, end);
    assert_eq!(spoken.len(), protocols, "{said:?}");
    for (protocol, body) in spoken {
        let found = judged(asked(policy, Choice::Free), protocol, &body);
        assert_eq!(found, expected, "{protocol:?}: {said:?} {end:?}");
    }
}

#[test]
fn a_text_is_read_and_may_be_an_announcement() {
    for (text, end, expected) in [
        ("answer", Natural, "committed stop"),
        ("answer", Truncated, "committed length"),
        (" \n", Natural, "empty retried"),
        (ANNOUNCED, Natural, "missing_tool retried"),
        (ANNOUNCED, Truncated, "committed length"),
    ] {
        all_judge(Policy::LENIENT, &[Text(text)], end, (3, expected));
    }
    all_judge(Policy::LENIENT, &[], Natural, (3, "empty retried"));
}

#[test]
fn a_call_is_judged_by_its_name_and_its_arguments() {
    for (name, arguments, end, expected) in [
        ("Bash", r#"{"a":1}"#, Natural, "committed tool_calls"),
        ("Bsh", r#"{"a":1}"#, Natural, "tool_error retried"),
        ("Bash", r#"{"a":"#, Natural, "tool_error retried"),
        ("Bash", "[1]", Natural, "tool_error retried"),
        ("Bash", r#"{"a":"#, Truncated, "committed length"),
    ] {
        for said in [
            &[Call(name, arguments)][..],
            &[Text("text"), Call(name, arguments)],
            &[Text(ANNOUNCED), Call(name, arguments)],
        ] {
            all_judge(Policy::LENIENT, said, end, (3, expected));
        }
    }
}

#[test]
fn a_good_call_is_kept_beside_a_broken_one() {
    let said = [Text("text"), Call("Bash", "{}"), Call("Read", "{")];
    for (protocol, body) in in_each_protocol(&said, Natural) {
        let found = judged(asked(Policy::AGENT, Choice::Free), protocol, &body);
        assert_eq!(found, "committed tool_calls", "{protocol:?}");
    }
}

#[test]
fn a_thought_is_nothing_to_read() {
    for (said, expected) in [
        (&[Thought("It is empty.")][..], "empty retried"),
        (&[Thought(ANNOUNCED), Text("answer")], "committed stop"),
        (&[Thought("Hm."), Text(ANNOUNCED)], "missing_tool retried"),
        (
            &[Thought("Hm."), Call("Bash", "{}")],
            "committed tool_calls",
        ),
    ] {
        all_judge(Policy::LENIENT, said, Natural, (3, expected));
    }
}

#[test]
fn neither_is_what_the_provider_keeps_hidden() {
    for (said, expected) in [
        (&[Hidden][..], "empty retried"),
        (&[Hidden, Text("answer")], "committed stop"),
        (&[Hidden, Text(ANNOUNCED)], "missing_tool retried"),
    ] {
        all_judge(Policy::LENIENT, said, Natural, (1, expected));
    }
}

#[test]
fn a_block_of_the_providers_own_is_not_nothing() {
    for (said, expected) in [
        (&[Own][..], "committed stop"),
        (&[Thought("Hm."), Own], "committed stop"),
        // It was not only announced.
        (&[Text(ANNOUNCED), Own], "committed stop"),
        (&[Own, Call("Bsh", "{}")], "tool_error retried"),
    ] {
        all_judge(Policy::LENIENT, said, Natural, (2, expected));
    }
}

#[test]
fn a_refusal_in_words_is_something_to_read() {
    all_judge(
        Policy::LENIENT,
        &[Refusal("No.")],
        Natural,
        (2, "committed stop"),
    );
    let thought = [Thought("No?"), Refusal("No.")];
    all_judge(Policy::LENIENT, &thought, Natural, (2, "committed stop"));
}

#[test]
fn a_refusal_and_a_paused_turn_are_accepted_without_text() {
    for (end, expected) in [(Refused, "committed refusal"), (Paused, "committed pause")] {
        all_judge(Policy::AGENT, &[], end, (1, expected));
    }
}

#[test]
fn a_demanded_call_is_missed_in_every_protocol() {
    for said in [Text("answer"), Thought("Hm.")] {
        for (protocol, body) in in_each_protocol(&[said], Natural) {
            let found = judged(asked(Policy::LENIENT, Choice::Required), protocol, &body);
            assert_eq!(found, "required_tool retried", "{protocol:?}: {said:?}");
        }
    }
}

#[test]
fn a_demanded_call_is_not_missed_where_the_provider_made_one_or_the_model_declines() {
    let excused = [
        (Own, Natural),
        (Refusal("No."), Natural),
        (Text("No."), Refused),
    ];
    for (said, end) in excused {
        let spoken = in_each_protocol(&[said], end);
        assert!(!spoken.is_empty());
        for (protocol, body) in spoken {
            let found = judged(asked(Policy::LENIENT, Choice::Required), protocol, &body);
            assert!(
                found.starts_with("committed"),
                "{protocol:?}: {said:?} {found}"
            );
        }
    }
}
