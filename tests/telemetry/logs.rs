//! The log lines of a generation.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use redrive::{
    config::{self, LogFormat},
    gate,
    proto::{StoppedBy, VerdictClass as Class},
    telemetry::log::{self, LogError},
};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::*;

/// A log that is kept.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn json(&self) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Kept {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

/// What `run` logs under `settings`.
fn logged(settings: &config::Telemetry, rust_log: Option<&str>, run: impl FnOnce()) -> Kept {
    let kept = Kept::default();
    let subscriber = log::subscriber(settings, rust_log, kept.clone(), false).unwrap();
    tracing::subscriber::with_default(subscriber, run);
    kept
}

#[test]
fn a_recovered_generation_warns_once_and_ends_with_one_line() {
    let (telemetry, _) = telemetry();
    let observer = generation(&telemetry, &rpc(&telemetry).context());
    let trace_id = observer.context().trace_id().to_string();
    let mut lines = logged(&settings(), None, || play_recovery(observer)).json();
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("timestamp").unwrap();
    }
    assert_eq!(
        lines,
        [
            json!({
                "level": "WARN", "target": "redrive::telemetry::generation", "message": "recovering",
                "trace_id": trace_id, "generation": "0197-generation", "route": "default",
                "attempt": 2, "target_name": "openai/gpt-5-mini", "mode": "restart",
                "class": "transport",
            }),
            json!({
                "level": "INFO", "target": "redrive::telemetry::generation",
                "message": "generation ended",
                "trace_id": trace_id, "generation": "0197-generation", "route": "default",
                "outcome": "committed", "attempts": 2, "sends": 2, "committed_output_tokens": 5,
                "void_output_tokens": 1, "waited_ms": 0, "first_token_ms": 300, "elapsed_ms": 2000,
            }),
        ]
    );
}

#[test]
fn a_rejection_of_the_gate_is_one_line_with_its_reason() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    let log = logged(&settings(), None, || {
        observer.gate_rejected(gate::Reason::Empty, gate::Then::Failed);
    });
    let [line] = &log.json()[..] else {
        panic!("{}", log.text());
    };
    assert_eq!(line["message"], "the turn gate rejected an answer");
    assert_eq!(line["generation"], "0197-generation");
    assert_eq!(
        (&line["reason"], &line["then"]),
        (&json!("empty"), &json!("failed"))
    );
}

#[test]
fn a_failure_names_its_class_and_none_of_the_providers_words() {
    let (telemetry, _) = telemetry();
    let mut observer = generation(&telemetry, &rpc(&telemetry).context());
    let log = logged(&settings(), None, || {
        play_attempt(&mut observer, 1, Some(Class::Auth));
        let end = failed(Class::Auth, StoppedBy::NotRetryable, ledger(1, 0, 0));
        observer.failed(&end, Duration::from_secs(1));
    });
    let line = &log.json()[0];
    assert_eq!(line["outcome"], "failed");
    assert_eq!(line["class"], "auth");
    assert!(!log.text().contains("secret"), "{}", log.text());
}

#[test]
fn text_lines_are_for_people() {
    let settings = config::Telemetry {
        log_format: LogFormat::Text,
        ..settings()
    };
    let log = logged(
        &settings,
        None,
        || tracing::info!(target: "redrive", port = 7, "listening"),
    );
    assert!(
        log.text().ends_with(" INFO redrive: listening port=7\n"),
        "{}",
        log.text()
    );
}

#[test]
fn the_level_is_for_our_own_lines_and_others_only_warn_and_h2_not_even_that() {
    let settings = config::Telemetry {
        log_level: "debug".to_owned(),
        ..settings()
    };
    let log = logged(&settings, None, || {
        tracing::debug!(target: "redrive", "ours");
        tracing::debug!(target: "h2::codec", "authorization: secret");
        tracing::warn!(target: "h2::proto::ping_pong", "for each frame of a peer");
        tracing::warn!(target: "rustls", "theirs");
    });
    let messages: Vec<_> = log
        .json()
        .iter()
        .map(|line| line["message"].clone())
        .collect();
    assert_eq!(messages, ["ours", "theirs"]);
}

#[test]
fn rust_log_replaces_the_configured_level() {
    let log = logged(&settings(), Some("error"), || {
        tracing::warn!(target: "redrive", "not asked for");
        tracing::error!(target: "redrive", "asked for");
    });
    assert_eq!(log.json().len(), 1);
}

#[test]
fn an_unreadable_rust_log_is_refused_by_name() {
    let refused = log::subscriber(&settings(), Some("redrive=loud"), Kept::default(), false);
    match refused.map(|_| ()) {
        Err(error @ LogError::Filter { .. }) => {
            assert!(error.to_string().starts_with("RUST_LOG: "), "{error}");
        }
        other => panic!("{other:?}"),
    }
}
