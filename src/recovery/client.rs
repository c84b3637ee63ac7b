//! The client's side: what it asks, and what it is given.

use super::{
    Time,
    admission::waiting,
    commons::Access,
    delivery::{Claim, Client},
    generation::{Generation, ours},
    state::{Outcome, State},
};
use crate::{
    proto::{
        AttemptStarted, Delivery, Delta, GenerateResponse, StoppedBy, generate_response::Frame,
    },
    verdict::{Class, Failure, Origin, Stage},
};

/// What an RPC gets when its transport asks for a frame.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// A frame.
    Frame(Box<GenerateResponse>),
    /// Nothing yet.
    Pending,
    /// It has had the terminal frame.
    Finished,
    /// Another RPC has taken over.
    Displaced,
    /// It took nothing for `client_idle` while the generation lives on detached.
    TooSlow,
}

impl Generation {
    /// What RPC number `rpc` is given next. Called only when its transport asks.
    pub fn next_frame(&mut self, now: Time, rpc: u64) -> Next {
        if rpc != self.rpc {
            return Next::Displaced;
        }
        let Some(frame) = self.take_frame() else {
            return match &self.client {
                None => Next::TooSlow,
                Some(client) if client.done => Next::Finished,
                Some(_) => Next::Pending,
            };
        };
        let Some(client) = &mut self.client else {
            return Next::TooSlow;
        };
        client.took(now);
        let sequence = client.number(&frame);
        self.note_pending(now);
        Next::Frame(Box::new(GenerateResponse {
            sequence,
            frame: Some(frame),
        }))
    }

    /// Control frames, then output, then the end.
    fn take_frame(&mut self) -> Option<Frame> {
        let client = self.client.as_mut()?;
        let first = client.output_first();
        let output_first = self.transcript.next_attempt().is_some_and(|of| of < first);
        if !output_first && let Some(frame) = client.pop() {
            return Some(frame);
        }
        if client.wants_deltas()
            && let Some((attempt, block, content)) = self.transcript.next_delta()
        {
            return Some(Frame::Delta(Delta {
                attempt,
                block,
                content: Some(content),
            }));
        }
        let State::Ended(outcome) = &self.state else {
            return None;
        };
        if client.done {
            return None;
        }
        match outcome {
            Outcome::Failed(failed) => {
                client.done = true;
                Some(Frame::Failed(failed.as_ref().clone()))
            }
            Outcome::Committed(closing) => {
                let frame = closing.next_frame(self.transcript.blocks(), &mut client.parts);
                client.done = frame.r#final;
                Some(Frame::Committed(frame))
            }
        }
    }

    /// Whether something waits for the client.
    pub fn has_frame(&self) -> bool {
        let Some(client) = &self.client else {
            return false;
        };
        client.has_control()
            || (client.wants_deltas() && self.transcript.has_pending())
            || (self.has_ended() && !client.done)
    }

    pub(super) fn note_pending(&mut self, now: Time) {
        let pending = self.has_frame();
        if let Some(client) = &mut self.client {
            client.note_pending(now, pending);
        }
    }

    pub(super) fn on_effects(&mut self, now: Time, through: u64, commons: &impl Access) {
        let claim = self.client.as_ref().map(|client| client.claim(through));
        if let State::Ended(outcome) = &mut self.state {
            // Too late to be confirmed or to stop anything, but not to be true.
            let output = matches!(claim, Some(Claim::Living | Claim::Void));
            if let (Outcome::Failed(failed), true) = (outcome, output) {
                failed.safe_to_send_again = false;
            }
            return;
        }
        match claim {
            None => {}
            Some(Claim::Unsent) => {
                let message = format!(
                    "effects.through_sequence: {through} is not the number of a frame that was sent"
                );
                let failure = Failure::new(
                    Class::InvalidRequest,
                    Origin::Client,
                    Stage::Admission,
                    message,
                );
                self.stop(now, failure, StoppedBy::Client, commons);
            }
            Some(Claim::Nothing) => self.confirm(through),
            Some(Claim::Living) => {
                self.effects_claimed = true;
                self.effects_confirmed = true;
                self.confirm(through);
            }
            Some(Claim::Void) => {
                self.effects_claimed = true;
                self.effects_on_void_output(now, commons);
            }
        }
    }

    fn confirm(&mut self, through: u64) {
        if let Some(client) = &mut self.client {
            client.confirm(through);
        }
    }

    /// The client may have acted on void text: the truth is told and nothing goes on.
    fn effects_on_void_output(&mut self, now: Time, commons: &impl Access) {
        let failure = self
            .last_failure()
            .unwrap_or_else(|| ours(Class::Cancelled, "effects on void output"));
        let cut = ours(Class::Cancelled, "ended because of effects on void output");
        self.close_running(now, &cut, commons);
        self.commands
            .push_back(super::event::Command::Abort { condemn: false });
        self.end_failed(now, failure, StoppedBy::Effects, commons);
    }

    pub(super) fn on_cancel(&mut self, now: Time, reason: &str, commons: &impl Access) {
        let message = match reason {
            "" => "cancelled by the client".to_owned(),
            reason => format!("cancelled by the client: {reason}"),
        };
        let failure = Failure::new(Class::Cancelled, Origin::Client, Stage::Admission, message);
        self.stop(now, failure, StoppedBy::Cancel, commons);
    }

    pub(super) fn on_client_lost(&mut self, now: Time, commons: &impl Access) {
        if self.client.is_none() {
            return;
        }
        if !self.has_ended() && self.params.detach_grace.is_zero() {
            let message = "the client's RPC was cancelled or lost";
            let failure = Failure::new(Class::Cancelled, Origin::Client, Stage::Admission, message);
            self.stop(now, failure, StoppedBy::Cancel, commons);
        }
        self.detach(now);
    }

    pub(super) fn on_client_idle(&mut self, now: Time, commons: &impl Access) {
        if self.has_ended() || !self.params.detach_grace.is_zero() {
            return self.detach(now);
        }
        let message = format!(
            "the client took nothing for {:?} (client_idle)",
            self.params.client_idle
        );
        let failure = Failure::new(Class::ClientTooSlow, Origin::Client, Stage::Stream, message);
        self.stop(now, failure, StoppedBy::Client, commons);
        // The terminal frame is there for as long again.
        if let Some(client) = &mut self.client {
            client.took(now);
        }
    }

    fn detach(&mut self, now: Time) {
        self.client = None;
        self.caller_deadline = None;
        if !self.has_ended() {
            self.detached_until = Some(now + self.params.detach_grace);
        }
    }

    pub(super) fn on_attach(
        &mut self,
        now: Time,
        delivery: Delivery,
        caller_deadline: Option<Time>,
        commons: &impl Access,
    ) {
        self.rpc += 1;
        self.client = Some(Client::new(delivery));
        self.caller_deadline = caller_deadline;
        self.detached_until = None;
        self.transcript.rewind();
        let accepted = self.accepted(now, true, commons);
        self.tell(accepted);
        let running = matches!(
            self.state,
            State::Running(_) | State::Ended(Outcome::Committed(_))
        );
        if running || self.sequel.is_some() {
            let left = self.attempts_left(commons);
            let started = self.attempt_started_again(left);
            self.tell(started);
        }
        let wait = match &self.state {
            State::Waiting { until, reason, .. } if *until > now => {
                Some(waiting(*reason, "", Some(until.since(now))))
            }
            State::Reserving {
                held: Some(held), ..
            } => Some(held.frame(now)),
            _ => None,
        };
        if let Some(wait) = wait {
            self.tell(wait);
        }
    }

    fn attempt_started_again(&mut self, allowance_left: u32) -> Frame {
        let mode = self
            .ledger
            .current()
            .map(|entry| entry.mode)
            .unwrap_or_default();
        let target = self.itinerary.current();
        let fallback = target.is_some_and(|target| target.fallback);
        Frame::AttemptStarted(AttemptStarted {
            attempt: self.attempts,
            target: target.map(|t| t.name.to_string()).unwrap_or_default(),
            provider: target.map(|t| t.provider.to_string()).unwrap_or_default(),
            model: target.map(|t| t.model.clone()).unwrap_or_default(),
            mode: mode.into(),
            fallback,
            allowance_left,
        })
    }

    /// `true` if a request of this generation may have reached a provider.
    pub fn may_have_sent(&self) -> bool {
        self.ledger.may_have_sent()
    }
}
