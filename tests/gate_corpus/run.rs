//! One run of a scenario against the whole sidecar.

use std::{collections::BTreeMap, iter};

use redrive::{
    gate::Then,
    proto::{
        Committed, Mode, Part, PreviewReset, ToolCall, VerdictClass, committed::Flag,
        delta::Content, generate_response::Frame, part::Part as Kind,
    },
};
use serde_json::Value;

use crate::{
    ask::{ask, config},
    row::{Row, Seen, counted, scrubbed, told},
    scenario::{Delivery, Ending, Policy, Protocol, Scenario},
    scenarios::CLEAN_CALL,
    support::*,
    wire::script,
};

/// The whole corpus, in its order.
pub async fn all(scenarios: &[Scenario]) -> Vec<Row> {
    let mut rows = Vec::new();
    for scenario in scenarios {
        if scenario.rounds.is_empty() {
            rows.push(not_applicable(scenario));
            continue;
        }
        for &protocol in scenario.protocols {
            for policy in Policy::ALL {
                for delivery in scenario.deliveries(protocol) {
                    rows.push(cell(scenario, protocol, policy, delivery).await);
                }
            }
        }
    }
    rows
}

fn not_applicable(scenario: &Scenario) -> Row {
    Row {
        name: scenario.name.to_owned(),
        declared: scenario.course(Policy::Agent, Delivery::Preview),
        seen: None,
    }
}

async fn cell(scenario: &Scenario, protocol: Protocol, policy: Policy, delivery: Delivery) -> Row {
    let bench = Bench::configured(&config(scenario, protocol, policy)).await;
    let mut rounds = scenario.rounds.iter().chain(iter::repeat(&CLEAN_CALL));
    bench
        .provider
        .always(move || script(protocol, rounds.next().unwrap()));
    let mut rpc = bench.generate(ask(scenario, protocol, delivery)).await;
    if delivery == Delivery::Effects {
        rpc.until(|frame| matches!(frame, Frame::Delta(_))).await;
        rpc.send(effects(rpc.sequence()));
    }
    let ended = rpc.end().await;
    let declared = scenario.course(policy, delivery);
    let is_kept = matches!(declared.end, Ending::Delivered(_));
    let seen = Seen {
        is_kept,
        ..seen(&ended, &bench)
    };
    bench.finish().await;
    let names = [
        scenario.name,
        protocol.as_str(),
        policy.as_str(),
        delivery.as_str(),
    ];
    Row {
        name: names.join(" "),
        declared,
        seen: Some(seen),
    }
}

fn seen(ended: &Ended, bench: &Bench) -> Seen {
    let committed = match ended.told().last() {
        Some(Frame::Committed(committed)) => committed.clone(),
        _ => Committed::default(),
    };
    let (class, stopped_by) = match ended.told().last() {
        Some(Frame::Failed(failed)) => {
            let verdict = failed.verdict.clone().unwrap_or_default();
            let class = told(verdict.class().as_str_name(), &verdict.gate_reason);
            (class, failed.stopped_by().as_str_name().to_owned())
        }
        _ => Default::default(),
    };
    let entries = ended.ledger().entries.iter();
    let reasons = entries
        .filter_map(|entry| entry.verdict.as_ref())
        .map(|verdict| verdict.gate_reason.clone())
        .filter(|reason| !reason.is_empty());
    let modes = ended.modes();
    let continues = |mode: &&Mode| **mode == Mode::Continue;
    Seen {
        status: format!("{:?}", ended.code()),
        class,
        stopped_by,
        sends: bench.provider.sends(),
        continuations: modes.iter().filter(continues).count(),
        frames: frames(ended),
        message: committed.message.iter().map(part).collect(),
        withheld: committed.withheld_tool_calls.iter().map(call).collect(),
        flags: committed
            .flags()
            .map(|flag: Flag| flag.as_str_name().to_owned())
            .collect(),
        finish: committed.finish_reason().as_str_name().to_owned(),
        hints: hints(bench, &modes),
        reasons: reasons.collect(),
        rejected: rejected(bench),
        is_kept: false,
    }
}

/// What the metrics count of rejections.
fn rejected(bench: &Bench) -> Vec<String> {
    let text = bench.telemetry.render_metrics().unwrap();
    let series = text
        .lines()
        .filter_map(|line| line.strip_prefix("redrive_gate_rejections_total"));
    let mut rejections = Vec::new();
    for line in series {
        let parts: Vec<_> = line.split('"').collect();
        let [_, reason, _, then, count] = parts[..] else {
            panic!("{line}");
        };
        let count = count.trim_start_matches('}').trim().parse().unwrap();
        let then = Then::ALL.into_iter().find(|one| one.as_str() == then);
        rejections.extend(iter::repeat_n((reason, then.unwrap()), count));
    }
    counted(rejections)
}

/// What each retry of the gate adds to the first request.
fn hints(bench: &Bench, modes: &[Mode]) -> Vec<String> {
    let bodies = bench.provider.received().into_iter();
    let bodies: Vec<_> = bodies
        .map(|one| String::from_utf8(one.body.to_vec()).unwrap())
        .collect();
    let retries = modes.iter().zip(&bodies);
    let retries = retries.filter(|(mode, _)| **mode == Mode::GateRetry);
    retries.map(|(_, body)| added(&bodies[0], body)).collect()
}

/// What `long` has more than `short`, in one place. JSON text is spelled as it is on the wire.
fn added(short: &str, long: &str) -> String {
    let same = |(a, b): &(char, char)| a == b;
    let front = short.chars().zip(long.chars()).take_while(same);
    let front: usize = front.map(|(c, _)| c.len_utf8()).sum();
    let rest = &short[front..];
    let added = long[front..].strip_suffix(rest);
    added.expect("every other byte stays").to_owned()
}

fn frames(ended: &Ended) -> Vec<String> {
    ended.told().map(|told| scrubbed(&frame(told))).collect()
}

fn frame(frame: &Frame) -> String {
    match frame {
        Frame::Accepted(accepted) => format!("accepted {}", accepted.generation_id),
        Frame::Waiting(_) => "waiting".to_owned(),
        Frame::AttemptStarted(started) => format!(
            "attempt {} {}",
            started.attempt,
            started.mode().as_str_name()
        ),
        Frame::Delta(delta) => {
            let content = delta.content.as_ref().map(content).unwrap_or_default();
            format!("delta {}.{} {content}", delta.attempt, delta.block)
        }
        Frame::Progress(_) => "progress".to_owned(),
        Frame::PreviewReset(reset) => taken_back(reset),
        Frame::Committed(committed) if committed.r#final => "committed".to_owned(),
        Frame::Committed(committed) if committed.part > 0 => "part".to_owned(),
        Frame::Committed(_) => "final_so_far".to_owned(),
        Frame::Failed(_) => "failed".to_owned(),
    }
}

fn taken_back(reset: &PreviewReset) -> String {
    let verdict = reset.verdict.clone().unwrap_or_default();
    let blocks = match reset.blocks.is_empty() {
        true => String::new(),
        false => format!(" blocks {:?}", reset.blocks),
    };
    let reason = match verdict.class() {
        VerdictClass::GateRejected => format!(" {}", verdict.gate_reason),
        _ => String::new(),
    };
    let wait = reset.wait.map_or("", |_| ", then <time>");
    let class = verdict.class().as_str_name();
    format!("reset {}{blocks} {class}{reason}{wait}", reset.attempt)
}

fn content(content: &Content) -> String {
    match content {
        Content::Text(text) => format!("text {text:?}"),
        Content::Reasoning(text) => format!("reasoning {text:?}"),
        Content::Refusal(text) => format!("refusal {text:?}"),
        Content::ToolCall(call) => format!("call {} {}", call.id, call.name),
        Content::ToolArguments(arguments) => format!("arguments {arguments}"),
        Content::NativeBlock(json) => format!("native {}", by_name(json)),
        other => format!("{other:?}"),
    }
}

fn part(part: &Part) -> String {
    match &part.part {
        Some(Kind::Text(text)) => format!("text {text:?}"),
        Some(Kind::Reasoning(reasoning)) => format!("reasoning {:?}", reasoning.text),
        Some(Kind::ToolCall(tool_call)) => format!("call {}", call(tool_call)),
        Some(Kind::Refusal(text)) => format!("refusal {text:?}"),
        Some(Kind::NativeJson(json)) => format!("native {}", by_name(json)),
        other => format!("{other:?}"),
    }
}

/// An object with its members by name: the scripts write them in the order that maps keep, which features
/// of other crates change.
fn by_name(json: &[u8]) -> String {
    let members: BTreeMap<String, Value> = serde_json::from_slice(json).unwrap();
    serde_json::to_string(&members).unwrap()
}

fn call(call: &ToolCall) -> String {
    scrubbed(&format!(
        "{} {} {}",
        call.id, call.name, call.arguments_json
    ))
}
