//! One run of a scenario against the whole sidecar.

use std::iter;

use redrive::proto::{
    Committed, Conversation, Delivery as Shown, Mode, NativeBody, Part, PreviewReset,
    Protocol as Native, Start, Tool, ToolCall, ToolChoice, VerdictClass, committed::Flag,
    delta::Content, generate_response::Frame, part::Part as Kind, start::Input, tool_choice,
};
use serde_json::json;

use crate::{
    row::{Row, Seen, scrubbed},
    scenario::{CLEAN_CALL, Delivery, Policy, Protocol, Scenario},
    support::*,
    wire::script,
};

const PROVIDERS: &str = "\
providers:
  chat: {base_url: 'http://a.test/v1', profile: hosted}
  prefill: {base_url: 'http://p.test/v1', profile: hosted, dialect: deepseek, continue: prefill}
  messages: {protocol: anthropic_messages, base_url: 'http://c.test/v1', profile: hosted}
  responses: {protocol: openai_responses, base_url: 'http://r.test/v1', profile: hosted}
";

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
        declared: scenario.reasons(Policy::Agent, Delivery::Preview),
        seen: None,
    }
}

async fn cell(scenario: &Scenario, protocol: Protocol, policy: Policy, delivery: Delivery) -> Row {
    let bench = Bench::configured(&config(protocol, policy)).await;
    let mut rounds = scenario.rounds.iter().chain(iter::repeat(&CLEAN_CALL));
    bench
        .provider
        .always(move || script(protocol, rounds.next().unwrap()));
    let mut rpc = bench.generate(ask(scenario, delivery)).await;
    if delivery == Delivery::Effects {
        rpc.until(|frame| matches!(frame, Frame::Delta(_))).await;
        rpc.send(effects(rpc.sequence()));
    }
    let ended = rpc.end().await;
    let seen = seen(&ended, &bench, delivery);
    bench.finish().await;
    let names = [
        scenario.name,
        protocol.as_str(),
        policy.as_str(),
        delivery.as_str(),
    ];
    Row {
        name: names.join(" "),
        declared: scenario.reasons(policy, delivery),
        seen: Some(seen),
    }
}

fn config(protocol: Protocol, policy: Policy) -> String {
    let gate = match policy {
        Policy::Agent => "preset: agent",
        Policy::Lenient => "preset: lenient",
        Policy::Strict => "preset: agent, accept_bare_final: false",
    };
    let provider = protocol.as_str();
    format!(
        "{PROVIDERS}\
routes:
  default:
    targets: [{{provider: {provider}, model: m}}]
    recovery: {{backoff: {{jitter: 0}}}}
    gate: {{{gate}}}
"
    )
}

/// A question with the tool `read`, whose `path` is a text and required.
fn ask(scenario: &Scenario, delivery: Delivery) -> Start {
    const SCHEMA: &str =
        r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
    const QUESTION: &str = "What is in a.txt?";
    let input = match delivery {
        Delivery::Native => Input::Native(native(QUESTION, SCHEMA, scenario.demands)),
        _ => Input::Conversation(Conversation {
            tools: vec![Tool {
                name: "read".into(),
                parameters_json: SCHEMA.into(),
                ..Tool::default()
            }],
            tool_choice: scenario.demands.then(|| ToolChoice {
                mode: tool_choice::Mode::Required.into(),
                ..ToolChoice::default()
            }),
            ..conversation(QUESTION)
        }),
    };
    let shown = match delivery {
        Delivery::CommittedOnly => Shown::CommittedOnly,
        _ => Shown::Preview,
    };
    Start {
        input: Some(input),
        ..start_delivered(shown)
    }
}

fn native(question: &str, schema: &str, demands: bool) -> NativeBody {
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let tool = json!({"type": "function", "function": {"name": "read", "parameters": schema}});
    let body = json!({
        "messages": [{"role": "user", "content": question}],
        "tools": [tool],
        "tool_choice": if demands { "required" } else { "auto" },
    });
    NativeBody {
        protocol: Native::OpenaiChat.into(),
        json: body.to_string().into(),
    }
}

fn seen(ended: &Ended, bench: &Bench, delivery: Delivery) -> Seen {
    let committed = match ended.told().last() {
        Some(Frame::Committed(committed)) => committed.clone(),
        _ => Committed::default(),
    };
    let status = match ended.code() {
        tonic::Code::Ok => "Ok".to_owned(),
        code => format!("{code:?}, {}", ended.class().as_str_name()),
    };
    let entries = ended.ledger().entries.iter();
    let reasons = entries
        .filter_map(|entry| entry.verdict.as_ref())
        .map(|verdict| verdict.gate_reason.clone())
        .filter(|reason| !reason.is_empty());
    let modes = ended.modes();
    let continues = |mode: &&Mode| **mode == Mode::Continue;
    Seen {
        status,
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
        acted_on: delivery == Delivery::Effects,
    }
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
        Frame::Failed(failed) => format!("failed {}", failed.stopped_by().as_str_name()),
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
        other => format!("{other:?}"),
    }
}

fn part(part: &Part) -> String {
    match &part.part {
        Some(Kind::Text(text)) => format!("text {text:?}"),
        Some(Kind::Reasoning(reasoning)) => format!("reasoning {:?}", reasoning.text),
        Some(Kind::ToolCall(tool_call)) => format!("call {}", call(tool_call)),
        other => format!("{other:?}"),
    }
}

fn call(call: &ToolCall) -> String {
    scrubbed(&format!(
        "{} {} {}",
        call.id, call.name, call.arguments_json
    ))
}
