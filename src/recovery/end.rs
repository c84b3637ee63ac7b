//! How a generation ends, whatever the reason.

use std::sync::Arc;

use super::{
    Time,
    commit::{self, LeftOut},
    commons::Access,
    event::{Command, Observation},
    generation::{Generation, ours},
    ledger,
    state::{Finish, Outcome, State},
};
use crate::{
    proto::{Failed, StoppedBy},
    verdict::{Class, Denied, Failure, Origin, Stage},
};

impl Generation {
    /// The attempt becomes the message, without what is `left_out`, unless its tool calls are malformed.
    pub(super) fn commit(
        &mut self,
        now: Time,
        finish: &Finish,
        left_out: &LeftOut,
        commons: &impl Access,
    ) {
        let mut closing = match commit::close(self.transcript.blocks(), finish, left_out) {
            Ok(closing) => closing,
            Err(failure) => return self.attempt_failed(now, failure, commons),
        };
        if left_out.text {
            self.void_text();
        }
        let State::Running(attempt) = &mut self.state else {
            return;
        };
        let (usage, output_bytes) = (attempt.usage, attempt.output_bytes);
        closing.last.model = std::mem::take(&mut attempt.model);
        closing.last.provider_request_id = std::mem::take(&mut attempt.request_id);
        if let Some(entry) = self.ledger.current() {
            entry.ended = Some(now);
            entry.usage = usage;
            entry.estimate_usage(output_bytes);
        }
        self.settle(usage, output_bytes, false, None);
        let (cost, counted) = self.ledger.message_usage();
        closing.last.usage = cost;
        if usage.is_none() || !counted {
            closing.flag_usage_estimated();
        }
        if self.transcript.blocks().iter().any(|block| block.differs) {
            closing.flag_snapshot_mismatch();
        }
        self.sequel = None;
        closing.set_ledger(self.ledger.to_proto(self.params.wall_origin));
        self.observe_attempt_ended();
        if let Some(target) = self.itinerary.current() {
            let name = Arc::clone(&target.name);
            commons.with(|commons| commons.succeed(&name));
        }
        self.commands.push_back(Command::Finish);
        self.end(now, Outcome::Committed(Box::new(closing)), commons);
    }

    pub(super) fn on_refused(&mut self, now: Time, failure: Failure, commons: &impl Access) {
        if !matches!(self.state, State::Reserving { .. }) {
            return;
        }
        if failure.denied.is_some() {
            self.denied(now, failure, None, commons);
        } else {
            // Not an attempt: it does not mask the verdict of one.
            let failure = self.last_failure().unwrap_or(failure);
            self.stop(now, failure, StoppedBy::NoTarget, commons);
        }
    }

    pub(super) fn on_out_of_memory(&mut self, now: Time, commons: &impl Access) {
        let message = "all transcripts together have reached limits.max_total_bytes";
        let failure = Failure::new(Class::TooLarge, Origin::Us, Stage::Stream, message);
        self.stop(now, failure, StoppedBy::NotRetryable, commons);
    }

    pub(super) fn on_crashed(&mut self, now: Time, commons: &impl Access) {
        let message = "redrive: internal error; the generation was lost";
        let failure = Failure::new(Class::Unclassified, Origin::Us, Stage::Stream, message);
        self.stop(now, failure, StoppedBy::NotRetryable, commons);
    }

    /// The deadline came between attempts: the last verdict stands, if there is one.
    pub(super) fn stop_at_deadline(&mut self, now: Time, commons: &impl Access) {
        if let Some(away) = self.engine_away() {
            let failure = self.last_failure().unwrap_or(away);
            return self.stop(now, failure, StoppedBy::Limiter, commons);
        }
        let failure = self.last_failure().unwrap_or_else(|| {
            let message = match self.held_back() {
                Some(denied) => format!(
                    "the deadline passed before budget {} had room ({})",
                    denied.budget, denied.limit
                ),
                None => "the deadline passed before anything could be sent".to_owned(),
            };
            ours(Class::Deadline, message)
        });
        self.stop(now, failure, StoppedBy::Deadline, commons);
    }

    /// The caller's own deadline came. It is the verdict, whatever an attempt failed with; but nothing was
    /// decided while an engine was away and no attempt was made.
    pub(super) fn stop_at_callers_deadline(&mut self, now: Time, commons: &impl Access) {
        match self.engine_away().filter(|_| self.attempts == 0) {
            Some(away) => self.stop(now, away, StoppedBy::Limiter, commons),
            None => {
                let failure = ours(Class::Deadline, "the caller's deadline has come");
                self.stop(now, failure, StoppedBy::Deadline, commons);
            }
        }
    }

    /// That a deadline has come, where the last that was waited for was the engine of a budget.
    fn engine_away(&self) -> Option<Failure> {
        let denied = self.held_back_by_engine()?;
        let Denied { budget, limit } = denied;
        let message = format!(
            "the deadline passed before the engine of budget {budget} granted anything ({limit})"
        );
        let mut failure = ours(Class::LimiterUnavailable, message);
        failure.denied = Some(Box::new(denied.clone()));
        Some(failure)
    }

    /// The verdict of the newest attempt that failed.
    pub(super) fn last_failure(&self) -> Option<Failure> {
        self.ledger.last_failure().cloned()
    }

    /// Ends the generation for a reason that is not the attempt's: what is in flight is ended at once
    /// and its entry closed with the same verdict.
    pub(super) fn stop(
        &mut self,
        now: Time,
        failure: Failure,
        by: StoppedBy,
        commons: &impl Access,
    ) {
        if self.has_ended() {
            return;
        }
        self.close_running(now, &failure, commons);
        self.commands.push_back(Command::Abort { condemn: false });
        self.end_failed(now, failure, by, commons);
    }

    /// There is a terminal frame from here on.
    ///
    /// Its verdict is the last one: of the last attempt that was made, or of what ended the
    /// generation from outside. What came between attempts and was none (a full queue, a deadline, a
    /// spent allowance) is told by `stopped_by` and does not mask it, nor does a fallback's own refusal
    /// mask what another target had said; the ledger has them all.
    pub(super) fn end_failed(
        &mut self,
        now: Time,
        failure: Failure,
        by: StoppedBy,
        commons: &impl Access,
    ) {
        // What a verified continuation fixed was committed; all else is void.
        let fixed = self.sequel.take().map_or(0, |sequel| sequel.fixed_below);
        self.ledger.void_from(fixed);
        // A wait that does not fit is told with the verdict that asked for it.
        let failure = match by {
            StoppedBy::WaitTooLong => failure,
            _ => self.ledger.verdict_of_all(failure),
        };
        let (attempt, target) = self.ledger.attribute(&failure);
        let mut verdict = ledger::verdict(&failure, attempt, target);
        self.tell_denial(now, by, &mut verdict);
        let waited = self.take_waited(now);
        self.ledger.waited_in_vain(waited.total);
        let failed = Failed {
            verdict: Some(verdict),
            stopped_by: by.into(),
            safe_to_send_again: !self.effects_claimed,
            ledger: Some(self.ledger.to_proto(self.params.wall_origin)),
        };
        self.transcript.clear();
        self.end(now, Outcome::Failed(Box::new(failed)), commons);
    }

    pub(super) fn end(&mut self, now: Time, outcome: Outcome, commons: &impl Access) {
        // The scope may be gone, or another one of its name, when somebody attaches later.
        self.allowance.left = self.attempts_left(commons);
        self.state = State::Ended(outcome);
        // The compiled schemas of tools are large, and what has ended is kept for long.
        self.params.gate = None;
        self.detached_until = None;
        if let Some(key) = &self.params.scope {
            commons.with(|commons| commons.scopes.leave(now, key));
        }
        self.commands
            .push_back(Command::Observe(Observation::Ended));
    }
}
