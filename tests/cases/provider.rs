//! The provider of a case.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use redrive::{
    proto::Protocol,
    simulator::{
        After, Asked, Choose, Chosen, ConnectFault, Options, Playlist, Received, Script, Simulator,
    },
};
use serde_json::json;

use crate::{case::Case, names};

/// The tokens of the prompt, of those that a case says a call is to reserve. (Ours reserves more of them:
/// the bytes of the body.)
const SHORT_PROMPT: u64 = 5;

/// Scripts in the order of arrival, whoever asks.
struct InOrder {
    playlist: Playlist,
    served: AtomicUsize,
    /// A script may need to be known before the body is complete.
    early: bool,
}

impl Choose for InOrder {
    fn choose(&self, asked: Asked<'_>) -> Option<Chosen> {
        if !asked.complete && !self.early {
            return None;
        }
        let turn = self.served.fetch_add(1, Ordering::Relaxed);
        let (place, script) = self.playlist.script(turn)?;
        Some(Chosen {
            script: Arc::clone(script),
            name: "case".to_owned(),
            place,
        })
    }
}

/// A provider that plays a case.
pub struct Provider {
    pub simulator: Arc<Simulator>,
    pub scripts: Vec<Arc<Script>>,
    /// Its base URL: https where the certificate is the fault.
    pub base_url: String,
    pub http2: bool,
}

impl Provider {
    pub async fn start(case: &Case) -> Provider {
        let upstream = case.input.upstream.clone();
        let mut playlist = Playlist::read(upstream.into()).unwrap();
        playlist.after = match (case.input.repeat_for_all_sends, case.input.repeat_cycle) {
            (true, _) => After::RepeatLast,
            (_, true) => After::StartAgain,
            _ => After::Refuse,
        };
        let scripts = playlist.scripts.clone();
        let early = |script: &Arc<Script>| {
            script.connect == Some(ConnectFault::OnReuseResetWhileReadingBody)
        };
        let options = Options {
            refuse: playlist.refused,
            ..Options::default()
        };
        let in_order = InOrder {
            early: scripts.iter().any(early),
            playlist,
            served: AtomicUsize::new(0),
        };
        let simulator = Simulator::start(options, in_order).await.unwrap();
        let untrusted = case
            .input
            .upstream
            .iter()
            .any(|script| script["connect"] == "tls_untrusted_certificate");
        let scheme = if untrusted { "https" } else { "http" };
        Provider {
            base_url: format!("{scheme}://{}", simulator.address()),
            http2: scripts.iter().any(|script| script.frames.is_some()),
            simulator: Arc::new(simulator),
            scripts,
        }
    }
}

/// Which call of the case a request belongs to.
pub fn call_of(request: &Received) -> Option<usize> {
    let body = String::from_utf8_lossy(&request.body.bytes);
    let (_, rest) = body.split_once("[call:")?;
    rest.split_once(']')?.0.parse().ok()
}

/// What a call asks for, in the protocol of the case.
pub fn body_of(case: &Case, call: usize) -> Vec<u8> {
    let messages = json!([{"role": "user", "content": format!("hi [call:{call}]")}]);
    let (protocol, _) = names::protocol(&case.protocol);
    let mut body = match protocol {
        Protocol::OpenaiChat => {
            json!({"messages": messages, "stream_options": {"include_usage": true}})
        }
        Protocol::OpenaiResponses => json!({"input": messages}),
        Protocol::AnthropicMessages => json!({"messages": messages, "max_tokens": 1024}),
        other => panic!("a body of {other:?}"),
    };
    if let Some(requests) = case.input.requests_of(call) {
        if let Some(tokens) = requests.estimated_tokens {
            body["max_tokens"] = json!(tokens.saturating_sub(SHORT_PROMPT).max(1));
        }
        for (name, value) in &requests.body {
            body[name] = value.clone();
        }
    }
    body["model"] = json!("m");
    body["stream"] = json!(true);
    body.to_string().into_bytes()
}
