//! Every ready-made script in every protocol, read as the sidecar reads that protocol: what it comes to
//! is the same in all of them.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue};
use redrive::{
    protocol::{
        DecoderOptions, Delta, Event,
        adapter::{ADAPTERS, Adapter},
    },
    simulator::{
        Asked, Choose, Close, FrameOp, Library, Op, Options, Protocol, Script, Simulator, ready,
    },
    verdict::{class, decode, http as response, inband},
};

use crate::support::*;

/// The whole answer, and the part that comes before what goes wrong in the middle.
const WHOLE: &str = "Ships pass, and the lighthouse counts every one.";
const PART: &str = "Ships pass, and the ";

/// What the scripts come to: the output, and then what is told of its end.
const EXPECTED: &[(&str, &str, &str)] = &[
    ("401", "", "401 auth"),
    ("404", "", "404 not_found"),
    ("429", "", "429 rate_limited, wait 1s"),
    ("429-date", "", "429 rate_limited, wait 2s"),
    ("429-hour", "", "429 rate_limited, wait 3600s"),
    ("429-no-wait", "", "429 rate_limited"),
    ("500", "", "500 provider_internal"),
    ("503", "", "503 provider_internal"),
    ("529", "", "529 overloaded"),
    ("announced", "Let me look for the ship.", "Stop"),
    ("broken-json", PART, "corrupt"),
    ("close-before-head", "", "OnReuseCloseAfterReadingRequest"),
    ("content-filter", "", "400 content_filtered"),
    ("context-overflow", "", "400 context_overflow"),
    ("done-without-finish", PART, "end"),
    ("empty", "", "Stop"),
    ("error-after-tokens", PART, "provider_internal"),
    ("error-in-200", "", "provider_internal"),
    ("fin-while-idle", WHOLE, "Stop"),
    ("finish-then-silence", WHOLE, "Stop"),
    ("h2-goaway", "", "Close"),
    ("h2-refused-stream", "", "RstStream(7)"),
    ("h2-reset", "Ships pass, ", "RstStream(2)"),
    ("html", "", "corrupt"),
    ("huge-event", "", "too_large"),
    ("keepalives", WHOLE, "Stop"),
    ("late-first-token", WHOLE, "Stop"),
    ("no-reply", "", "AcceptReadRequestNeverReply"),
    ("ok", WHOLE, "Stop"),
    ("premature-end", PART, "Clean"),
    ("quota", "", "429 quota_exhausted"),
    ("redirect", "", "302 redirect_refused"),
    ("reset", PART, "Reset"),
    ("reset-before-head", "", "AcceptThenResetBeforeHeaders"),
    ("reset-while-reading", "", "OnReuseResetWhileReadingBody"),
    ("slow-drip", WHOLE, "Stop"),
    ("stall", PART, "Never"),
    ("stall-before-first-token", "", "Never"),
    ("stall-with-keepalives", PART, "Never"),
    ("tool-call", r#"lookup {"ship":"Anna"}"#, "ToolCalls"),
    ("tool-call-cut", r#"lookup {"ship":"#, "Length"),
    ("truncated", PART, "TruncatedChunked"),
    ("truncated-at-boundary", PART, "TruncatedChunkedAtBoundary"),
    ("whole-json", "", "whole"),
];

/// Where a protocol has another end.
const ELSEWHERE: &[(&str, Protocol, &str)] = &[
    // A completed response does not say of what kind it is.
    ("tool-call", Protocol::OpenaiResponses, "Stop"),
    // Anthropic has no code for it.
    (
        "content-filter",
        Protocol::AnthropicMessages,
        "400 invalid_request",
    ),
];

#[test]
fn every_ready_made_script_comes_to_the_same_in_every_protocol() {
    let library = Library::ready_made();
    for ((_, name, adapter), protocol) in ADAPTERS.iter().zip(Protocol::ALL) {
        let mut known: BTreeSet<_> = library.playlists(protocol).map(|(name, _)| name).collect();
        for (script, output, end) in EXPECTED {
            assert!(known.remove(script), "{script} in {name}");
            let read = read(*adapter, &chosen(&library, script, protocol));
            let mut elsewhere = ELSEWHERE.iter();
            let elsewhere = elsewhere.find(|(at, of, _)| (*at, *of) == (*script, protocol));
            let end = elsewhere.map_or(end, |(.., end)| end);
            let expected = (output.to_string(), end.to_string());
            assert_eq!(read, expected, "{script} in {name}");
        }
        assert_eq!(known, BTreeSet::new(), "{name}");
    }
}

#[test]
fn what_is_shown_is_what_is_played() {
    let library = Library::ready_made();
    for protocol in Protocol::ALL {
        for (name, playlist) in library.playlists(protocol) {
            let shown = ready::text(name, protocol).unwrap();
            assert!(!shown.contains("\"say\""), "{shown}");
            let shown = redrive::simulator::Playlist::parse(&shown).unwrap();
            assert_eq!(shown.scripts, playlist.scripts, "{name}");
        }
    }
}

#[test]
fn a_script_that_was_loaded_answers_as_it_stands_in_any_protocol() {
    let mut library = Library::ready_made();
    let mine = redrive::simulator::Playlist::parse(r#"{"status": 418}"#).unwrap();
    library.insert("ok", mine);
    for protocol in Protocol::ALL {
        assert_eq!(chosen(&library, "ok", protocol).status, 418);
    }
}

#[tokio::test]
async fn a_request_without_a_script_is_refused_in_its_protocol() {
    let simulator = Simulator::start(Options::default(), Library::default());
    let simulator = simulator.await.unwrap();
    for (protocol, sign) in [
        (Protocol::OpenaiChat, "/error/code"),
        (Protocol::OpenaiResponses, "/error/code"),
        (Protocol::AnthropicMessages, "/error/type"),
    ] {
        let mut stream = connect(&simulator).await;
        let head = format!("POST /v1{} HTTP/1.1\r\n", protocol.path());
        let head = format!("{head}connection: close\r\ncontent-length: 2\r\n\r\n{{}}");
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())
            .await
            .unwrap();
        let seen = to_end(&mut stream).await.text;
        assert!(seen.starts_with("HTTP/1.1 400 "), "{seen}");
        // It comes as one chunk.
        let body = &seen[seen.find('{').unwrap()..=seen.rfind('}').unwrap()];
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body.pointer(sign).is_some(), "{seen}");
        let is_anthropic = protocol == Protocol::AnthropicMessages;
        assert_eq!(body.get("type").is_some(), is_anthropic, "{seen}");
    }
}

/// The script that answers a request of `protocol` for the model `name`.
fn chosen(library: &Library, name: &str, protocol: Protocol) -> Script {
    let path = format!("/v1{}?a=b", protocol.path());
    let body = format!(r#"{{"model": "{name}"}}"#);
    let asked = Asked {
        path: &path,
        headers: &[],
        body: body.as_bytes(),
        complete: true,
    };
    let chosen = library.choose(asked).expect("a script");
    Script::clone(&chosen.script)
}

/// The output of `script` as a client of the protocol sees it, and how it ends.
fn read(adapter: &dyn Adapter, script: &Script) -> (String, String) {
    if let Some(fault) = script.connect {
        return (String::new(), format!("{fault:?}"));
    }
    if let Some(frames) = &script.frames {
        let data = frames.iter().filter_map(|frame| match frame {
            FrameOp::Data(data) => Some(Op::Write(data.clone())),
            _ => None,
        });
        let (output, _) = decode(adapter, &data.collect::<Vec<_>>());
        return (output, format!("{:?}", frames.last().unwrap()));
    }
    match script.status {
        200 => decode(adapter, &script.body),
        _ => (String::new(), refusal(script)),
    }
}

fn refusal(script: &Script) -> String {
    let mut headers = HeaderMap::new();
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_800_000_000);
    let ahead = httpdate::fmt_http_date(now + std::time::Duration::from_secs(2));
    for (name, value) in &script.headers {
        let value = value.replace("{{http_date:now+2s}}", &ahead);
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.insert(name, HeaderValue::from_str(&value).unwrap());
    }
    let failure = response::classify(&response::HttpEvidence {
        status: script.status,
        headers: &headers,
        body: &body(&script.body).concat(),
        body_complete: true,
        now_wall: Some(now),
    });
    let wait = failure.wait.map(|wait| format!(", wait {wait:?}"));
    let class = class::label(failure.class);
    format!("{} {class}{}", script.status, wait.unwrap_or_default())
}

fn decode(adapter: &dyn Adapter, ops: &[Op]) -> (String, String) {
    let mut decoder = adapter.decoder(DecoderOptions::default());
    let mut output = String::new();
    let mut end = None;
    let mut sink = |event: Event<'_>| match event {
        Event::Delta(Delta::Text(text)) => output += text,
        Event::Delta(Delta::ToolCallStart { name, .. }) => output += &format!("{name} "),
        Event::Delta(Delta::ToolArguments { fragment, .. }) => output += fragment,
        Event::Delta(other) => panic!("{other:?}"),
        Event::Snapshot { whole, .. } => match whole {
            Delta::Text(text) => assert_eq!(text, output),
            Delta::ToolArguments { fragment, .. } => assert!(output.ends_with(fragment)),
            other => panic!("{other:?}"),
        },
        Event::Finish { reason, .. } => end = Some(format!("{reason:?}")),
        Event::End { .. } => {
            end.get_or_insert("end".to_owned());
        }
        Event::Error { json } => end = Some(class::label(inband::classify(json).class).to_owned()),
        Event::Undecodable(redrive::protocol::DecodeError::WholeCompletion) => {
            end = Some("whole".to_owned());
        }
        Event::Undecodable(error) => {
            end = Some(class::label(decode::classify(error).class).to_owned());
        }
        Event::BadFinish { .. } | Event::Unknown => panic!("{event:?}"),
        _ => {}
    };
    for bytes in body(ops) {
        decoder.feed(&bytes, &mut sink);
    }
    let close = match ops.last() {
        Some(Op::Close(close)) => *close,
        _ => Close::Never,
    };
    if close != Close::Never {
        decoder.end(close == Close::Clean, &mut sink);
    }
    (output, end.unwrap_or_else(|| format!("{close:?}")))
}

/// The writes of a body, of long ones as many as are needed.
fn body(ops: &[Op]) -> Vec<Vec<u8>> {
    let mut writes = Vec::new();
    for op in ops {
        match op {
            Op::Write(bytes) => writes.push(bytes.to_vec()),
            Op::Repeat { bytes, .. } => writes.extend([bytes.to_vec(), bytes.to_vec()]),
            Op::Fill(fill) => {
                writes.push(fill.before.to_vec());
                let bytes = usize::try_from(fill.count).unwrap();
                writes.push(fill.byte.repeat(bytes));
            }
            Op::Pause(_) | Op::Close(_) => {}
        }
    }
    writes
}
