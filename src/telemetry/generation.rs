//! What a generation tells while it runs, turned into its span, its metrics and its log lines.

use std::time::Duration;

use opentelemetry::{
    Array, KeyValue, Value,
    trace::{Span as _, SpanBuilder, SpanContext, SpanKind, Status},
};
use opentelemetry_sdk::trace::Span;

use super::{
    Attempt, Guard, Outcome, Telemetry,
    attempt::{End, OpenAttempt},
    labels, semconv,
};
use crate::{
    gate::{Reason, Then},
    proto::{Committed, Executed, Failed, Ledger, LedgerEntry, waiting},
    verdict::class::{self, Class},
};

/// What is known of a generation when it is accepted.
#[derive(Clone, Copy, Debug)]
pub struct Generation<'a> {
    /// Its id; for log lines only.
    pub id: &'a str,
    /// The route.
    pub route: &'a str,
    /// The model asked for: `start.model`, else the first target's.
    pub model: &'a str,
}

/// Watches one generation from `accepted` to its end, also while it is detached.
///
/// Told in this order: for each attempt `waiting`*, `attempt_started`, `sent`, `response_head`,
/// `first_token` or `recovered`, `stall`, `gate_rejected`, `attempt_ended`, `preview_reset`; what did not happen is left
/// out. It is consumed by [`committed`](Self::committed) or [`failed`](Self::failed). Dropped without
/// either (the process ends, or a bug of ours) it closes its spans and counts as failed.
#[derive(Debug)]
pub struct GenerationObserver {
    telemetry: Telemetry,
    span: Span,
    id: String,
    route: String,
    /// The provider of the latest attempt.
    provider: Option<String>,
    attempt: Option<OpenAttempt>,
    previous: Option<SpanContext>,
    /// Why the latest attempt ended.
    class: Option<Class>,
    sends: u32,
    first_token: Option<Duration>,
    ended: bool,
    _active: Guard,
}

impl GenerationObserver {
    /// The generation was accepted by the RPC whose span is `parent`.
    pub fn start(telemetry: &Telemetry, parent: &SpanContext, about: &Generation<'_>) -> Self {
        let model = labels::clip(about.model);
        let builder = SpanBuilder::from_name(format!("chat {model}"))
            .with_kind(SpanKind::Client)
            .with_attributes([
                KeyValue::new(semconv::GEN_AI_OPERATION_NAME, "chat"),
                KeyValue::new(semconv::GEN_AI_REQUEST_MODEL, model),
                KeyValue::new(semconv::GEN_AI_REQUEST_STREAM, true),
                KeyValue::new(semconv::ROUTE, about.route.to_owned()),
            ]);
        Self {
            span: telemetry.traces().start(builder, parent),
            id: about.id.to_owned(),
            route: about.route.to_owned(),
            provider: None,
            attempt: None,
            previous: None,
            class: None,
            sends: 0,
            first_token: None,
            ended: false,
            _active: Guard::new(&telemetry.gauges().generations),
            telemetry: telemetry.clone(),
        }
    }

    /// The generation's span, for the RPCs that attach to it later.
    pub fn context(&self) -> SpanContext {
        self.span.span_context().clone()
    }

    /// The generation waits before its next attempt; for `budget`, where that is not empty, and for so
    /// long, where that is known.
    pub fn waiting(&mut self, reason: waiting::Reason, budget: &str, expected: Option<Duration>) {
        if !self.span.is_recording() {
            return;
        }
        let mut about = vec![KeyValue::new(semconv::WAIT_REASON, labels::reason(reason))];
        if !budget.is_empty() {
            about.push(KeyValue::new(semconv::WAIT_BUDGET, budget.to_owned()));
        }
        let expected = expected.map(|expected| expected.as_secs_f64());
        about.extend(expected.map(|seconds| KeyValue::new(semconv::WAIT_EXPECTED, seconds)));
        self.span.add_event(semconv::EVENT_WAIT, about);
    }

    /// An attempt was debited and holds its leases. One that is still open ends here, unexplained.
    pub fn attempt_started(&mut self, attempt: &Attempt<'_>) {
        self.abandon_attempt();
        let open = OpenAttempt::start(attempt, self.sends);
        if let Some(class) = self.class {
            tracing::warn!(
                trace_id = %self.span.span_context().trace_id(),
                generation = self.id,
                route = self.route,
                attempt = attempt.attempt,
                target_name = attempt.target,
                mode = open.mode(),
                class = class::label(class),
                "recovering"
            );
        }
        self.provider = Some(attempt.provider.to_owned());
        self.attempt = Some(open);
    }

    /// The attempt's request was handed to a connection: it may have left.
    pub fn sent(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.sent();
        }
    }

    /// The attempt's response head came.
    pub fn response_head(&mut self, status: u16) {
        if let Some(attempt) = &mut self.attempt {
            attempt.response_head(status);
        }
    }

    /// The provider sent an event or a block that is not known.
    pub fn unknown_event(&self) {
        if let Some(attempt) = &self.attempt {
            self.telemetry.metrics().unknown_event(attempt.target());
        }
    }

    /// A substantive event came, this long after the generation was accepted. Only the first of a
    /// generation counts.
    pub fn first_token(&mut self, since_accepted: Duration) {
        if self.first_token.is_none() {
            self.first_token = Some(since_accepted);
            self.telemetry.metrics().first_token(since_accepted);
        }
    }

    /// The first substantive event of a replacement came, this long after the failure was known.
    pub fn recovered(&mut self, since_failure: Duration) {
        self.telemetry.metrics().recovered(since_failure);
    }

    /// What `attempt` previewed became void.
    pub fn preview_reset(&mut self, attempt: u32, class: Class) {
        self.span.add_event(
            semconv::EVENT_PREVIEW_RESET,
            vec![
                KeyValue::new(semconv::ATTEMPT, i64::from(attempt)),
                KeyValue::new(semconv::VERDICT, class::label(class)),
            ],
        );
    }

    /// The provider was silent for the whole `length` of `timer`, named as in the configuration.
    pub fn stall(&mut self, timer: &'static str, length: Duration) {
        self.span.add_event(
            semconv::EVENT_STALL,
            vec![
                KeyValue::new(semconv::STALL_TIMER, timer),
                KeyValue::new(semconv::STALL_LENGTH, length.as_secs_f64()),
            ],
        );
    }

    /// The turn gate rejected the answer of the attempt in flight.
    pub fn gate_rejected(&mut self, reason: Reason, then: Then) {
        self.telemetry.metrics().gate_rejected(reason, then);
        self.span.add_event(
            semconv::EVENT_GATE_REJECTED,
            vec![
                KeyValue::new(semconv::GATE_REASON, reason.as_str()),
                KeyValue::new(semconv::GATE_THEN, then.as_str()),
            ],
        );
        tracing::info!(
            trace_id = %self.span.span_context().trace_id(),
            generation = self.id,
            route = self.route,
            reason = reason.as_str(),
            then = then.as_str(),
            "the turn gate rejected an answer"
        );
    }

    /// The attempt ended, as its entry in the ledger says.
    pub fn attempt_ended(&mut self, entry: &LedgerEntry) {
        let verdict = entry.verdict.as_ref();
        let end = End {
            class: verdict.map(|verdict| verdict.class()),
            executed: entry.executed(),
            http_status: verdict
                .and_then(|verdict| u16::try_from(verdict.http_status).ok())
                .filter(|status| *status != 0),
        };
        self.class = end.class;
        self.close_attempt(end);
    }

    /// The generation ended with its message. `committed` is the frame that is final, `elapsed` the
    /// time since `accepted`.
    pub fn committed(mut self, committed: &Committed, ledger: &Ledger, elapsed: Duration) {
        self.span.add_event(semconv::EVENT_COMMITTED, Vec::new());
        if self.span.is_recording() {
            let reason = lower(committed.finish_reason().as_str_name(), "FINISH_REASON_");
            self.span.set_attributes([
                KeyValue::new(
                    semconv::GEN_AI_RESPONSE_MODEL,
                    labels::clip(&committed.model),
                ),
                KeyValue::new(
                    semconv::GEN_AI_RESPONSE_FINISH_REASONS,
                    Value::Array(Array::String(vec![reason.into()])),
                ),
            ]);
            if let Some(usage) = &committed.usage {
                self.span.set_attributes([
                    number(semconv::GEN_AI_INPUT_TOKENS, usage.input_tokens),
                    number(semconv::GEN_AI_OUTPUT_TOKENS, usage.output_tokens),
                ]);
            }
        }
        self.end(Outcome::Committed, None, Some(ledger), elapsed);
    }

    /// The generation ended without a message, `elapsed` after `accepted`.
    pub fn failed(mut self, failed: &Failed, elapsed: Duration) {
        let class = failed
            .verdict
            .as_ref()
            .map_or(Class::Unspecified, |verdict| verdict.class());
        if self.span.is_recording() {
            let stopped_by = lower(failed.stopped_by().as_str_name(), "STOPPED_BY_");
            self.span
                .set_attribute(KeyValue::new(semconv::STOPPED_BY, stopped_by));
        }
        let outcome = Outcome::of_failure(class);
        self.end(outcome, Some(class), failed.ledger.as_ref(), elapsed);
    }

    /// The first end counts; `ledger` is absent where nobody told one.
    fn end(
        &mut self,
        outcome: Outcome,
        class: Option<Class>,
        ledger: Option<&Ledger>,
        elapsed: Duration,
    ) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        self.abandon_attempt();
        let account = Account::of(ledger, self.sends);
        let metrics = self.telemetry.metrics();
        metrics.generation(outcome);
        metrics.tokens(account.committed_tokens, account.void_tokens);
        self.log_end(outcome, class, &account, elapsed);
        self.end_span(outcome, class, &account);
    }

    fn log_end(
        &self,
        outcome: Outcome,
        class: Option<Class>,
        account: &Account,
        elapsed: Duration,
    ) {
        tracing::info!(
            trace_id = %self.span.span_context().trace_id(),
            generation = self.id,
            route = self.route,
            outcome = outcome.label(),
            class = class.map(class::label),
            attempts = account.attempts,
            sends = account.sends,
            committed_output_tokens = account.committed_tokens,
            void_output_tokens = account.void_tokens,
            waited_ms = millis(account.waited),
            first_token_ms = self.first_token.map(millis),
            elapsed_ms = millis(elapsed),
            "generation ended"
        );
    }

    fn end_span(&mut self, outcome: Outcome, class: Option<Class>, account: &Account) {
        if self.span.is_recording() {
            self.span.set_attributes([
                KeyValue::new(semconv::OUTCOME, outcome.label()),
                KeyValue::new(semconv::ATTEMPTS, i64::from(account.attempts)),
                KeyValue::new(semconv::SENDS, i64::from(account.sends)),
                number(semconv::VOID_OUTPUT_TOKENS, account.void_tokens),
            ]);
            let first_token = self.first_token.map(|after| {
                KeyValue::new(semconv::GEN_AI_TIME_TO_FIRST_CHUNK, after.as_secs_f64())
            });
            let provider = self
                .provider
                .take()
                .map(|name| KeyValue::new(semconv::GEN_AI_PROVIDER_NAME, name));
            let error = class.map(|class| KeyValue::new(semconv::ERROR_TYPE, class::label(class)));
            self.span
                .set_attributes(first_token.into_iter().chain(provider).chain(error));
            if let (Outcome::Failed, Some(class)) = (outcome, class) {
                self.span.set_status(Status::error(class::label(class)));
            }
        }
        self.span.end();
    }

    /// Closes an attempt that nobody ended.
    fn abandon_attempt(&mut self) {
        if let Some(end) = self.attempt.as_ref().map(OpenAttempt::abandoned) {
            self.close_attempt(end);
        }
    }

    fn close_attempt(&mut self, end: End) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        if end.executed != Executed::No {
            self.sends = self.sends.saturating_add(1);
            self.telemetry.metrics().send(attempt.target(), end.class);
        }
        if self.span.is_recording() {
            let generation = self.span.span_context();
            let context = attempt.end(&self.telemetry, generation, self.previous.as_ref(), end);
            self.previous = Some(context);
        }
    }
}

impl Drop for GenerationObserver {
    fn drop(&mut self) {
        self.end(
            Outcome::Failed,
            Some(Class::Unspecified),
            None,
            Duration::ZERO,
        );
    }
}

/// The numbers of a ledger that are counted and logged.
#[derive(Debug)]
struct Account {
    attempts: u32,
    sends: u32,
    committed_tokens: u64,
    void_tokens: u64,
    waited: Duration,
}

impl Account {
    fn of(ledger: Option<&Ledger>, sends_seen: u32) -> Self {
        let Some(ledger) = ledger else {
            return Self {
                attempts: sends_seen,
                sends: sends_seen,
                committed_tokens: 0,
                void_tokens: 0,
                waited: Duration::ZERO,
            };
        };
        let all = ledger.total_usage.as_ref().map_or(0, |u| u.output_tokens);
        Self {
            attempts: ledger.attempts,
            sends: ledger.sends,
            committed_tokens: all.saturating_sub(ledger.void_output_tokens),
            void_tokens: ledger.void_output_tokens,
            waited: ledger
                .waited
                .and_then(|waited| Duration::try_from(waited).ok())
                .unwrap_or_default(),
        }
    }
}

/// An enum name of the contract in snake_case, without its prefix.
fn lower(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase()
}

fn number(key: &'static str, value: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(value).unwrap_or(i64::MAX))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
