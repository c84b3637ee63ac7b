//! One attempt, from its hand-over to its end.

use super::{
    Time,
    circuit::{self, Probe},
    commit,
    commons::Access,
    event::{Command, Observation, Upstream},
    generation::Generation,
    same_place::Place,
    sequel::Stored,
    spent::{Evidence, spent},
    state::Finish,
    timers::{LastEvent, Phase, Timer},
    transcript::MAX_DELTA_BYTES,
};
use crate::{
    proto::{Executed, FinishReason, Progress, Usage, generate_response::Frame},
    protocol::{self, BlockKind, Delta},
    verdict::{self, Class, Failure, Origin, Stage},
};
use std::time::Duration;

/// `progress` is told at the first keepalive of a silence, then this often. Fixed.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

impl Generation {
    pub(super) fn on_upstream(
        &mut self,
        now: Time,
        number: u32,
        signal: Upstream<'_>,
        commons: &impl Access,
    ) {
        // Attempts are fenced: what an ended one still had to say is not heard.
        let Some(attempt) = self.running().filter(|attempt| attempt.number == number) else {
            return;
        };
        match signal {
            Upstream::Decoded(event) => self.on_decoded(now, event, commons),
            Upstream::Sent => {
                attempt.clockwork.sent(now);
                if self.executed(Executed::Maybe) {
                    self.observe(Observation::Sent);
                }
            }
            Upstream::Stayed => {
                attempt.clockwork.stayed();
                if let Some(entry) = self.ledger.current()
                    && entry.executed == Executed::Maybe
                {
                    entry.executed = Executed::No;
                }
            }
            Upstream::Head { status, request_id } => {
                attempt.clockwork.head(now);
                if let Some(id) = request_id {
                    attempt.request_id = clipped(id);
                }
                self.executed(Executed::Yes);
                self.observe(Observation::Head { status });
            }
            Upstream::End => match attempt.finish {
                Some(_) => self.accept(now, commons),
                None => {
                    let message = "the response ended without a finish reason";
                    self.attempt_failed(now, premature(message), commons);
                }
            },
            // After full terminal evidence an unclean end changes nothing.
            Upstream::Failed(_) if attempt.finish.is_some() => self.accept(now, commons),
            Upstream::Failed(failure) => self.attempt_failed(now, failure, commons),
        }
    }

    /// Notes it; whether it is news.
    fn executed(&mut self, executed: Executed) -> bool {
        let entry = self.ledger.current();
        let Some(entry) = entry.filter(|entry| entry.executed < executed) else {
            return false;
        };
        entry.executed = executed;
        true
    }

    fn on_decoded(&mut self, now: Time, event: protocol::Event<'_>, commons: &impl Access) {
        let Some(attempt) = self.running() else {
            return;
        };
        let finished = attempt.finish.is_some();
        match event {
            protocol::Event::Delta(delta) => self.on_delta(now, &delta, commons),
            protocol::Event::Block { block, kind } => self.on_block(now, block, kind, commons),
            protocol::Event::BlockEnd { .. } => {
                attempt.clockwork.event(now, LastEvent::Keepalive, true);
                attempt.clockwork.open_block = Some(false);
            }
            protocol::Event::Keepalive { content } => {
                attempt.clockwork.event(now, LastEvent::Keepalive, content);
                self.tell_progress(now);
            }
            protocol::Event::Unknown => {
                attempt.clockwork.event(now, LastEvent::Keepalive, true);
                self.observe(Observation::UnknownEvent);
                self.tell_progress(now);
            }
            protocol::Event::Snapshot { block, whole } => {
                self.on_snapshot(now, block, &whole, commons);
            }
            protocol::Event::Cursor { sequence } => {
                attempt.clockwork.event(now, LastEvent::Keepalive, true);
                attempt.has_read(sequence);
            }
            protocol::Event::Native { data } if data.len() > commit::UNSPLIT_BYTES => {
                let message = "an event of the provider is larger than 3 MiB";
                self.attempt_failed(now, too_large(message), commons);
            }
            protocol::Event::Native { data } => {
                let block = attempt.block;
                self.transcript.append_native(block, data);
                self.bound_message(now, commons);
            }
            protocol::Event::Usage(usage) => {
                attempt.usage = Some(usage);
                attempt.clockwork.event(now, LastEvent::Usage, true);
            }
            protocol::Event::Started { response_id, model } => {
                attempt.clockwork.event(now, LastEvent::Keepalive, false);
                if let Some(model) = model {
                    attempt.is_of(model);
                }
                if let Some(id) = response_id {
                    attempt.is_stored_as(id);
                    if attempt.request_id.is_empty() {
                        attempt.request_id = clipped(id);
                    }
                }
            }
            protocol::Event::Finishing => attempt.clockwork.finishing(now),
            protocol::Event::Finish { reason, native } => {
                if !self.judge(now, commons) {
                    return;
                }
                let Some(attempt) = self.running() else {
                    return;
                };
                attempt.finish.get_or_insert_with(|| Finish {
                    reason,
                    native: clipped(native),
                });
                attempt.clockwork.finish(now);
                if self
                    .itinerary
                    .current()
                    .is_some_and(|target| target.timers.tail.is_zero())
                {
                    self.accept(now, commons);
                }
            }
            protocol::Event::End { .. } if finished => self.accept(now, commons),
            protocol::Event::End { completes: true } => {
                attempt.finish = Some(Finish {
                    reason: FinishReason::Stop,
                    native: String::new(),
                });
                self.accept(now, commons);
            }
            protocol::Event::End { completes: false } => {
                let message = "the stream ended ([DONE]) without a finish reason";
                self.attempt_failed(now, premature(message), commons);
            }
            protocol::Event::Error { json } => {
                // The response itself has failed: there is nothing to read on.
                attempt.stored = None;
                self.attempt_failed(now, verdict::inband::classify(json), commons);
            }
            protocol::Event::BadFinish { native } => {
                attempt.stored = None;
                self.attempt_failed(now, verdict::inband::bad_finish(native), commons);
            }
            protocol::Event::Undecodable(_) if finished => self.accept(now, commons),
            protocol::Event::Undecodable(error) => {
                self.attempt_failed(now, verdict::decode::classify(error), commons);
            }
        }
    }

    pub(super) fn on_delta(&mut self, now: Time, delta: &Delta<'_>, commons: &impl Access) {
        if let Delta::ToolCallStart { id, name, .. } = delta
            && id.len() + name.len() > MAX_DELTA_BYTES
        {
            let message = "the id and name of a tool call are larger than 512 KiB";
            return self.attempt_failed(now, too_large(message), commons);
        }
        let phase = match delta {
            Delta::Text(_) | Delta::Refusal(_) => Phase::Text,
            Delta::Reasoning(_) | Delta::ReasoningSignature(_) | Delta::RedactedReasoning(_) => {
                Phase::Reasoning
            }
            Delta::ToolCallStart { .. } | Delta::ToolArguments { .. } | Delta::NativeBlock(_) => {
                Phase::ToolArguments
            }
        };
        let Some(attempt) = self.running() else {
            return;
        };
        attempt.output_bytes += output_bytes(delta);
        attempt.progress_told = None;
        if attempt.clockwork.substantive(now, phase) {
            self.on_first_token(now);
        }
        if !self.on_unjudged(now, delta, commons) {
            return;
        }
        let block = self.transcript.append(delta);
        if let Some(attempt) = self.running() {
            attempt.block = block;
        }
        self.bound_message(now, commons);
    }

    /// A block of the protocol begins or is gone back to. One of the provider's own is output already,
    /// long before its whole content is there.
    fn on_block(&mut self, now: Time, block: u32, kind: BlockKind, commons: &impl Access) {
        // Blocks are kept apart, so what was held back of the one before is judged by what there is.
        if !self.judge_before_block(now, commons) {
            return;
        }
        self.transcript.select(Some(block));
        let Some(attempt) = self.running() else {
            return;
        };
        attempt.clockwork.event(now, LastEvent::Keepalive, true);
        attempt.clockwork.open_block = Some(kind != BlockKind::Text);
        if kind == BlockKind::Native && attempt.clockwork.substantive(now, Phase::ToolArguments) {
            self.on_first_token(now);
        }
    }

    pub(super) fn bound_message(&mut self, now: Time, commons: &impl Access) {
        if self.transcript.bytes() > self.params.max_message_bytes {
            let message = format!(
                "the message is larger than {} bytes",
                self.params.max_message_bytes
            );
            self.attempt_failed(now, too_large(message), commons);
        }
    }

    fn on_first_token(&mut self, now: Time) {
        if let Some(entry) = self.ledger.current() {
            entry.first_token = Some(now);
        }
        self.commands.push_back(Command::Answered);
        if !self.had_first_token {
            self.had_first_token = true;
            self.observe(Observation::FirstToken {
                after: now.since(self.started),
            });
        }
        if let Some(failed_at) = self.failed_at.take() {
            self.observe(Observation::Recovered {
                after: now.since(failed_at),
            });
        }
    }

    /// At the first keepalive of a silence, then every ten seconds of it, if the client keeps up.
    fn tell_progress(&mut self, now: Time) {
        let keeps_up = !self.has_frame();
        let Some(attempt) = self.running() else {
            return;
        };
        let due = attempt
            .progress_told
            .is_none_or(|told| now.since(told) >= PROGRESS_EVERY);
        if !due || !keeps_up || attempt.finish.is_some() {
            return;
        }
        attempt.progress_told = Some(now);
        let silent_for = now.since(attempt.clockwork.silent_since());
        let progress = Progress {
            attempt: attempt.number,
            silent_for: Some(super::ledger::duration(silent_for)),
        };
        self.tell(Frame::Progress(progress));
    }

    pub(super) fn on_attempt_timer(&mut self, now: Time, timer: Timer, commons: &impl Access) {
        let Some(attempt) = self.running() else {
            return;
        };
        let (class, stage) = match timer {
            Timer::Tail => return self.accept(now, commons),
            Timer::Connect => (Class::TimeoutConnect, Stage::Connect),
            Timer::FirstToken => (Class::TimeoutFirstToken, Stage::Request),
            Timer::InterDelta | Timer::OpenBlock | Timer::NoProgress => {
                (Class::Stall, Stage::Stream)
            }
        };
        let origin = if timer == Timer::Connect {
            Origin::Network
        } else {
            Origin::Provider
        };
        let length = attempt.clockwork.length(timer);
        let failure = Failure::new(class, origin, stage, attempt.clockwork.explain(timer));
        if class == Class::Stall {
            self.observe(Observation::Stall {
                timer: timer.name(),
                length,
            });
        }
        self.attempt_failed(now, failure, commons);
    }

    /// The evidence is complete: the attempt becomes the message, unless the gate rejects it.
    fn accept(&mut self, now: Time, commons: &impl Access) {
        if !self.judge(now, commons) {
            return;
        }
        let Some(finish) = self.running().and_then(|attempt| attempt.finish.clone()) else {
            return;
        };
        if let Some(left_out) = self.pass_gate(now, &finish, commons) {
            self.commit(now, &finish, &left_out, commons);
        }
    }

    /// Closes the entry of the attempt in flight; where the attempt stood.
    pub(super) fn close_running(
        &mut self,
        now: Time,
        failure: &Failure,
        commons: &impl Access,
    ) -> Option<Place> {
        let target = self.itinerary.current_index();
        let attempt = self.running()?;
        let place = Place {
            phase: attempt.clockwork.phase,
            block: attempt.block,
            target,
        };
        let (usage, output_bytes) = (attempt.usage, attempt.output_bytes);
        let probe = attempt.probe;
        let is_stored = attempt.stored.as_ref().is_some_and(Stored::is_known);
        if let Some(entry) = self.ledger.current() {
            entry.ended = Some(now);
            entry.failure = Some(failure.clone());
            entry.usage = usage;
            // Only the door can prove it; what ends an attempt from outside proves nothing.
            let proven = failure.not_sent && failure.origin == Origin::Network;
            if proven && entry.executed == Executed::Maybe {
                entry.executed = Executed::No;
            }
            entry.estimate_usage(output_bytes);
        }
        if let (Class::RateLimited, Origin::Provider, Some(wait)) =
            (failure.class, failure.origin, failure.wait)
        {
            self.commands.push_back(Command::Penalise { wait });
        }
        self.settle(usage, output_bytes, is_stored, Some(failure));
        self.observe_attempt_ended();
        self.note_target(now, failure, probe, commons);
        Some(place)
    }

    /// Settles the lease of the attempt that is over, if it may have left.
    pub(super) fn settle(
        &mut self,
        usage: Option<Usage>,
        output_bytes: usize,
        is_stored: bool,
        failure: Option<&Failure>,
    ) {
        let Some(entry) = self.ledger.current() else {
            return;
        };
        if entry.executed == Executed::No {
            return;
        }
        let spent = spent(&Evidence {
            mode: entry.mode,
            failure,
            usage,
            output_bytes,
            is_stored,
        });
        self.commands.push_back(Command::Settle(spent));
    }

    /// What the failure says about the target, to all generations.
    fn note_target(
        &mut self,
        now: Time,
        failure: &Failure,
        probe: Option<Probe>,
        commons: &impl Access,
    ) {
        let Some(target) = self.itinerary.current() else {
            return;
        };
        let name = std::sync::Arc::clone(&target.name);
        let circuit = self.params.policy.circuit;
        commons.with(|commons| match failure.origin {
            Origin::Provider | Origin::Network if circuit::counts(failure.class) => {
                commons.fail(now, &name, probe, &circuit);
            }
            Origin::Provider => commons.succeed(&name),
            // The provider did its part.
            _ if failure.class == Class::GateRejected => commons.succeed(&name),
            _ => commons.release(&name, probe),
        });
    }

    pub(super) fn observe_attempt_ended(&mut self) {
        let wall_origin = self.params.wall_origin;
        if let Some(entry) = self.ledger.current() {
            let entry = Box::new(entry.to_proto(wall_origin));
            self.observe(Observation::AttemptEnded(entry));
        }
    }
}

/// What of a piece of output counts for an estimate of tokens.
fn output_bytes(delta: &Delta<'_>) -> usize {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) | Delta::Refusal(text) => text.len(),
        Delta::ToolArguments { fragment, .. } => fragment.len(),
        Delta::NativeBlock(json) => json.len(),
        Delta::ToolCallStart { .. }
        | Delta::ReasoningSignature(_)
        | Delta::RedactedReasoning(_) => 0,
    }
}

/// A provider's own word, cut to what a frame has room for.
fn clipped(text: &str) -> String {
    let mut text = text.to_owned();
    verdict::clip(&mut text);
    text
}

fn too_large(message: impl Into<String>) -> Failure {
    Failure::new(Class::TooLarge, Origin::Us, Stage::Stream, message)
}

fn premature(message: &str) -> Failure {
    Failure::new(
        Class::PrematureEof,
        Origin::Provider,
        Stage::Stream,
        message,
    )
}
