//! The faults, and where in a response each can happen.

use std::fmt;

use redrive::{
    proto::Protocol,
    verdict::{Stage, transport::TransportKind},
};

use crate::{
    support::{Script, connecting, secs, sent, status},
    talk::Talk,
};

/// Where in a response something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In place of a response.
    Head,
    /// After the first events, before any output.
    BeforeFirst,
    /// In the middle of text.
    Text,
    /// In the middle of reasoning.
    Reasoning,
    /// In the middle of a tool call's arguments.
    Tool,
    /// After the evidence that the response is complete.
    AfterTerminal,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::Head => "in place of a response",
            Place::BeforeFirst => "before the first token",
            Place::Text => "in text",
            Place::Reasoning => "in reasoning",
            Place::Tool => "in tool arguments",
            Place::AfterTerminal => "after the terminal",
        })
    }
}

const HEAD: &[Place] = &[Place::Head];

const ANYWHERE: &[Place] = &[
    Place::BeforeFirst,
    Place::Text,
    Place::Reasoning,
    Place::Tool,
    Place::AfterTerminal,
];

/// A fault.
pub struct Fault {
    pub name: &'static str,
    pub places: &'static [Place],
    /// What the provider does, up to the fault and after it.
    pub script: fn(Talk, Place) -> Script,
}

/// Opens a response and brings it to `place`, slowly enough for the client to see it.
fn at(talk: Talk, place: Place) -> Talk {
    let talk = match place {
        Place::Head => talk,
        Place::BeforeFirst => talk.opened(),
        Place::Text => talk.opened().text("Hel"),
        Place::Reasoning => talk.opened().reasoning("Hm"),
        Place::Tool => talk.opened().arguments("{\"a\":"),
        Place::AfterTerminal => {
            // Anthropic's evidence is complete with its last event only.
            let talk = talk.opened().text("Hello").finish();
            match talk.protocol() {
                Protocol::AnthropicMessages => talk.tail(),
                _ => talk,
            }
        }
    };
    match place {
        Place::Head | Place::BeforeFirst => talk,
        _ => talk.wait(secs(1)),
    }
}

const fn head(name: &'static str, script: fn(Talk, Place) -> Script) -> Fault {
    Fault {
        name,
        places: HEAD,
        script,
    }
}

const fn anywhere(name: &'static str, script: fn(Talk, Place) -> Script) -> Fault {
    Fault {
        name,
        places: ANYWHERE,
        script,
    }
}

/// An error body of the protocol.
fn error(talk: &Talk, kind: &str, message: &str) -> String {
    let error = format!("{{\"type\":\"{kind}\",\"message\":\"{message}\"}}");
    match talk.protocol() {
        Protocol::AnthropicMessages => format!("{{\"type\":\"error\",\"error\":{error}}}"),
        _ => format!("{{\"error\":{error}}}"),
    }
}

fn rate_limited(talk: &Talk, header: Option<(&'static str, &str)>) -> Script {
    let body = error(talk, "rate_limit_error", "slow down");
    let mut script = sent().header("date", "Mon, 30 Nov 2026 10:00:00 GMT");
    if let Some((name, value)) = header {
        script = script.header(name, value);
    }
    script.head(429).data(body).end()
}

fn refused(code: u16) -> Script {
    status(code).data("upstream says no").end()
}

/// Every fault.
pub const FAULTS: &[Fault] = &[
    head("connection refused", |_, _| {
        connecting().fail(TransportKind::Connect, Stage::Connect)
    }),
    head("name not found", |_, _| {
        connecting().fail(TransportKind::Dns, Stage::Connect)
    }),
    head("untrusted certificate", |_, _| {
        connecting().fail(TransportKind::UntrustedCertificate, Stage::Connect)
    }),
    head("connection that never opens", |_, _| connecting()),
    head("reset before the head", |_, _| {
        sent().fail(TransportKind::Reset, Stage::Request)
    }),
    head("GOAWAY before the head", |_, _| {
        sent().fail(TransportKind::GoAway, Stage::Request)
    }),
    head("REFUSED_STREAM", |_, _| {
        sent().fail(TransportKind::RefusedStream, Stage::Request)
    }),
    head("no head at all", |_, _| sent()),
    head("redirect", |_, _| {
        sent().header("location", "http://b.test/").head(307).end()
    }),
    head("401", |_, _| refused(401)),
    head("403", |_, _| refused(403)),
    head("404", |_, _| refused(404)),
    head("408", |_, _| refused(408)),
    head("500", |_, _| refused(500)),
    head("502 with a page of HTML", |_, _| {
        let script = sent().header("content-type", "text/html").head(502);
        script.data("<html>Bad Gateway</html>").end()
    }),
    head("503", |_, _| refused(503)),
    head("504", |_, _| refused(504)),
    head("529", |_, _| refused(529)),
    head("429, retry-after-ms: 1500", |talk, _| {
        rate_limited(&talk, Some(("retry-after-ms", "1500")))
    }),
    head("429, retry-after: 3", |talk, _| {
        rate_limited(&talk, Some(("retry-after", "3")))
    }),
    head("429, retry-after: 1.5", |talk, _| {
        rate_limited(&talk, Some(("retry-after", "1.5")))
    }),
    head("429, retry-after: a date", |talk, _| {
        let date = "Mon, 30 Nov 2026 10:00:04 GMT";
        rate_limited(&talk, Some(("retry-after", date)))
    }),
    head("429, retry-after: an hour", |talk, _| {
        rate_limited(&talk, Some(("retry-after", "3600")))
    }),
    head("429, retry-after: in the past", |talk, _| {
        rate_limited(&talk, Some(("retry-after", "-1")))
    }),
    head("429, both headers", |talk, _| {
        let body = error(&talk, "rate_limit_error", "slow down");
        let script = sent()
            .header("retry-after-ms", "0")
            .header("retry-after", "2");
        script.head(429).data(body).end()
    }),
    head("429, RetryInfo in the body", |_, _| {
        let body = concat!(
            r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m","details":[{"#,
            r#""@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2.5s"}]}}"#
        );
        status(429).data(body).end()
    }),
    head("429, a reset header only", |talk, _| {
        rate_limited(&talk, Some(("x-ratelimit-reset-requests", "3s")))
    }),
    head("429, no wait", |talk, _| rate_limited(&talk, None)),
    head("429, quota", |talk, _| {
        let body = match talk.protocol() {
            Protocol::AnthropicMessages => concat!(
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","#,
                r#""details":{"error_code":"enforced_spend_limit_reached"}}}"#
            )
            .to_owned(),
            _ => error(&talk, "insufficient_quota", "pay"),
        };
        status(429).data(body).end()
    }),
    head("context overflow", |talk, _| {
        let body = error(
            &talk,
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
        );
        status(400).data(body).end()
    }),
    head("invalid request", |talk, _| {
        status(400)
            .data(error(&talk, "invalid_request_error", "no such field"))
            .end()
    }),
    head("content filter", |_, _| {
        let body = r#"{"error":{"code":"content_filter","message":"filtered"}}"#;
        status(400).data(body).end()
    }),
    head("200 with a page of HTML", |_, _| {
        let script = sent().header("content-type", "text/html").head(200);
        script.data("<!DOCTYPE html>\n<html>\n\n</html>\n").end()
    }),
    head("200 without a body", |_, _| {
        sent()
            .header("content-type", "text/event-stream")
            .head(200)
            .end()
    }),
    head("200 with an error as JSON", |talk, _| {
        let kind = match talk.protocol() {
            Protocol::AnthropicMessages => "overloaded_error",
            _ => "server_is_overloaded",
        };
        let body = error(&talk, kind, "busy");
        let script = sent().header("content-type", "application/json").head(200);
        script.data(body).end()
    }),
    anywhere("reset", |talk, place| {
        at(talk, place)
            .script()
            .fail(TransportKind::Reset, Stage::Stream)
    }),
    anywhere("cut inside a chunk", |talk, place| {
        let talk = at(talk, place).raw("data: {\"a");
        talk.script().fail(TransportKind::Truncated, Stage::Stream)
    }),
    anywhere("clean end", |talk, place| at(talk, place).script().end()),
    anywhere("GOAWAY", |talk, place| {
        at(talk, place)
            .script()
            .fail(TransportKind::GoAway, Stage::Stream)
    }),
    anywhere("RST_STREAM", |talk, place| {
        at(talk, place)
            .script()
            .fail(TransportKind::StreamReset, Stage::Stream)
    }),
    anywhere("silence", |talk, place| at(talk, place).script()),
    anywhere("nothing but pings", |talk, place| {
        let mut talk = at(talk, place);
        for _ in 0..60 {
            talk = talk.wait(secs(20)).ping();
        }
        talk.script()
    }),
    anywhere("slow drip", |talk, place| {
        let mut talk = at(talk, place);
        if place != Place::AfterTerminal {
            for _ in 0..30 {
                talk = talk.wait(secs(40));
                talk = match place {
                    Place::Reasoning => talk.reasoning("m"),
                    Place::Tool => talk.arguments("1"),
                    _ => talk.text("l"),
                };
            }
            return talk.completed();
        }
        talk.wait(secs(1)).tail().script().end()
    }),
    anywhere("malformed JSON", |talk, place| {
        at(talk, place).raw("data: {\"a\": }\n\n").completed()
    }),
    anywhere("bad UTF-8", |talk, place| {
        at(talk, place)
            .raw(&b"data: {\"a\": \"\xff\"}\n\n"[..])
            .completed()
    }),
    anywhere("giant event", |talk, place| {
        let mut talk = at(talk, place).raw("data: {\"a\": \"");
        for _ in 0..17 {
            talk = talk.raw(vec![b'x'; 1 << 20]);
        }
        talk.script()
    }),
    anywhere("transient error", |talk, place| {
        at(talk, place).transient_error().script().end()
    }),
    anywhere("unknown error", |talk, place| {
        at(talk, place).unknown_error().script().end()
    }),
    anywhere("terminal, then an error", |talk, place| {
        let talk = at(talk, place);
        let talk = if place == Place::AfterTerminal {
            talk
        } else {
            talk.whole().finish()
        };
        talk.transient_error().script().end()
    }),
    anywhere("two terminals", |talk, place| {
        let talk = at(talk, place);
        let talk = if place == Place::AfterTerminal {
            talk
        } else {
            talk.whole().finish()
        };
        talk.finish().tail().script().end()
    }),
    anywhere("no usage", |talk, place| {
        let talk = at(talk.without_usage(), place);
        if place == Place::AfterTerminal {
            return talk.script().end();
        }
        talk.completed()
    }),
    anywhere("HTML", |talk, place| {
        at(talk, place)
            .raw("<html>502 Bad Gateway</html>\n\n")
            .script()
            .end()
    }),
];
