//! The golden corpus of the turn gate: scenarios by policies by deliveries, each a line of a recorded file.
//!
//! `REDRIVE_RECORD=1 cargo test --test server gating_corpus` writes the file anew; without it the file is
//! checked. A row that shows nothing is never written: each scenario declares what it is about, and a row
//! that does not show that fails before anything is compared.

use std::{fmt::Write, fs, path::Path};

use redrive::proto::{
    Conversation, Delivery, Start, Tool, ToolChoice, committed::Flag, part::Part as Kind,
    start::Input, tool_choice,
};

use crate::support::*;

const CONFIG: &str = "\
providers:
  a: {base_url: 'http://a.test/v1', profile: hosted}
routes:
  agent: {targets: [{provider: a, model: m}], gate: {preset: agent}}
  lenient: {targets: [{provider: a, model: m}], gate: {preset: lenient}}
";

const POLICIES: [&str; 2] = ["agent", "lenient"];

const DELIVERIES: [(Delivery, &str); 3] = [
    (Delivery::Preview, "preview"),
    (Delivery::PreviewNoReset, "no_reset"),
    (Delivery::CommittedOnly, "committed"),
];

/// What the provider answers, before it answers with a good call for ever.
struct Scenario {
    name: &'static str,
    rounds: fn() -> Vec<Script>,
    /// A call is demanded.
    demands: bool,
    /// Why attempts are rejected, under each policy.
    reasons: [&'static [&'static str]; 2],
}

/// One that both policies see alike.
const fn alike(
    name: &'static str,
    rounds: fn() -> Vec<Script>,
    reasons: &'static [&'static str],
) -> Scenario {
    Scenario {
        name,
        rounds,
        demands: false,
        reasons: [reasons, reasons],
    }
}

const SCENARIOS: &[Scenario] = &[
    alike("accept_tool_call", || vec![call(&[GOOD])], &[]),
    alike("accept_final_answer", || vec![said("It holds text.")], &[]),
    alike("prose_beside_a_call", || vec![prose_and_call()], &[]),
    alike(
        "good_call_with_broken_sibling",
        || vec![call(&[GOOD, UNKNOWN])],
        &[],
    ),
    alike("length_without_text", || vec![ended("length")], &[]),
    alike("length_inside_a_call", || vec![cut_call()], &[]),
    alike("filtered", || vec![ended("content_filter")], &[]),
    alike("empty", || vec![ended("stop")], &["empty"]),
    alike("missing_tool", || vec![said(ANNOUNCED)], &["missing_tool"]),
    alike("unknown_tool", || vec![call(&[UNKNOWN])], &["tool_error"]),
    alike(
        "schema_mismatch",
        || vec![call(&[("read", "{}")])],
        &["tool_error"],
    ),
    alike("arguments_cut", || vec![call(&[CUT])], &["tool_error"]),
    Scenario {
        name: "required_tool",
        rounds: || vec![said("No.")],
        demands: true,
        reasons: [&["required_tool"]; 2],
    },
    Scenario {
        name: "tool_error_with_required",
        rounds: || vec![call(&[UNKNOWN])],
        demands: true,
        reasons: [&["tool_error"], &["required_tool"]],
    },
    alike(
        "announced_then_empty",
        || vec![said(ANNOUNCED), ended("stop")],
        &["missing_tool", "empty"],
    ),
    // The text of the attempt that was rejected is no part of the message.
    alike(
        "announced_then_said",
        || vec![said(ANNOUNCED), said("Text.")],
        &["missing_tool"],
    ),
    alike(
        "empty_to_the_end",
        || vec![ended("stop"), ended("stop"), ended("stop")],
        &["empty", "empty", "empty"],
    ),
    alike(
        "announced_to_the_end",
        || vec![said(ANNOUNCED), said(ANNOUNCED), said(ANNOUNCED)],
        &["missing_tool", "missing_tool"],
    ),
    alike(
        "cut_to_the_end",
        || vec![call(&[CUT]), call(&[CUT]), call(&[CUT])],
        &["tool_error", "tool_error"],
    ),
];

const ANNOUNCED: &str = "Let me read a.txt.";
const GOOD: (&str, &str) = ("read", r#"{"path":"a.txt"}"#);
const UNKNOWN: (&str, &str) = ("raed", "{}");
const CUT: (&str, &str) = ("read", r#"{"path"#);

fn said(said: &str) -> Script {
    stream().text(said).wait(secs(1)).complete()
}

fn ended(reason: &str) -> Script {
    closed(stream(), reason)
}

fn closed(script: Script, reason: &str) -> Script {
    script
        .data(finish(reason))
        .data(usage(7, 3))
        .data(DONE)
        .end()
}

fn calling(script: Script, calls: &[(&str, &str)]) -> Script {
    let begun = (0..)
        .zip(calls)
        .fold(script, |script, (index, (name, arguments))| {
            script
                .data(tool_call(index, &format!("call_{index}"), name))
                .data(tool_arguments(index, arguments))
        });
    begun.wait(secs(1))
}

fn call(calls: &[(&str, &str)]) -> Script {
    closed(calling(stream(), calls), "tool_calls")
}

fn prose_and_call() -> Script {
    closed(calling(stream().text("Reading."), &[GOOD]), "tool_calls")
}

fn cut_call() -> Script {
    closed(calling(stream(), &[CUT]), "length")
}

fn ask(scenario: &Scenario, policy: &str, delivery: Delivery) -> Start {
    let tool = Tool {
        name: "read".into(),
        parameters_json: br#"{"required":["path"]}"#.to_vec(),
        ..Tool::default()
    };
    let choice = ToolChoice {
        mode: tool_choice::Mode::Required.into(),
        ..ToolChoice::default()
    };
    Start {
        input: Some(Input::Conversation(Conversation {
            tools: vec![tool],
            tool_choice: scenario.demands.then_some(choice),
            ..conversation("What is in a.txt?")
        })),
        ..start_delivered(delivery).on(policy)
    }
}

/// What one cell comes to.
async fn row(scenario: &Scenario, policy: usize, delivery: Delivery) -> String {
    let bench = Bench::configured(CONFIG).await;
    let mut rounds = (scenario.rounds)().into_iter();
    let next = move || rounds.next().unwrap_or_else(|| call(&[GOOD]));
    bench.provider.always(next);
    let rpc = bench
        .generate(ask(scenario, POLICIES[policy], delivery))
        .await;
    let ended = rpc.end().await;
    let entries = &ended.ledger().entries;
    let verdicts = entries.iter().filter_map(|entry| entry.verdict.as_ref());
    let reasons: Vec<&str> = verdicts.map(|verdict| &*verdict.gate_reason).collect();
    let reasons: Vec<&str> = reasons
        .into_iter()
        .filter(|reason| !reason.is_empty())
        .collect();
    let sent = bench.provider.received();
    let hinted = sent.iter().filter(|one| one.body != sent[0].body).count();
    let name = scenario.name;
    // What the row is about has to be seen in it.
    match delivery {
        // What was shown stays, so that the rest of them may not come.
        Delivery::PreviewNoReset => {
            assert!(scenario.reasons[policy].starts_with(&reasons), "{name}")
        }
        _ => assert_eq!(reasons, scenario.reasons[policy], "{name}"),
    }
    assert_eq!(
        hinted,
        sent.len() - 1,
        "{name}: each retry has its hint, and nothing else has"
    );
    assert!(
        !reasons.is_empty() || sent.len() == 1,
        "{name}: nothing was rejected"
    );
    let mut row = format!(
        "sends={} reasons={} resets={}",
        sent.len(),
        reasons.join(","),
        ended.resets().len()
    );
    // Writing to a String does not fail.
    let _ = match ended.code() {
        tonic::Code::Ok => write!(row, " committed {}", message(&ended)),
        code => {
            let failed = ended.failed();
            let class = failed.verdict.as_ref().unwrap().class().as_str_name();
            write!(
                row,
                " failed {class} {} {code:?}",
                failed.stopped_by().as_str_name()
            )
        }
    };
    bench.finish().await;
    row
}

fn message(ended: &Ended) -> String {
    let committed = ended.committed();
    let mut told = vec![committed.finish_reason().as_str_name().to_owned()];
    for part in &committed.message {
        told.push(match part.part.as_ref().unwrap() {
            Kind::Text(text) => format!("{text:?}"),
            Kind::ToolCall(call) => format!("{}{}", call.name, call.arguments_json),
            other => panic!("{other:?}"),
        });
    }
    for call in &committed.withheld_tool_calls {
        told.push(format!("withheld:{}{}", call.name, call.arguments_json));
    }
    let flags = committed.flags.iter();
    told.extend(flags.map(|flag| Flag::try_from(*flag).unwrap().as_str_name().to_owned()));
    told.join(" ")
}

#[tokio::test(start_paused = true)]
async fn every_cell_is_as_it_was_recorded() {
    let mut rows = String::new();
    for scenario in SCENARIOS {
        for (policy, name) in POLICIES.iter().enumerate() {
            for (delivery, shown) in DELIVERIES {
                let row = row(scenario, policy, delivery).await;
                let _ = writeln!(rows, "{} {name} {shown}: {row}", scenario.name);
            }
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/gating_corpus.txt");
    if std::env::var_os("REDRIVE_RECORD").is_some() {
        fs::write(&file, &rows).unwrap();
    }
    let recorded = fs::read_to_string(&file).unwrap();
    for (now, before) in rows.lines().zip(recorded.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(rows.lines().count(), recorded.lines().count());
}
