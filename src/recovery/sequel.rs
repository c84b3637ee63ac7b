//! Going on where an attempt ended, instead of restarting: CONTINUE and RESUME.
//!
//! The output stays as it is, in the transcript and at the client, and only the target that made it is
//! asked for more of it: a text in another model's words is not continued.
//!
//! - **CONTINUE**: the original request again, followed by the text so far. What comes is held back until
//!   [`super::seam`] has judged it. Then the text is final, and what comes is output of the new attempt,
//!   in blocks of its own: should that fail in turn, it can be continued too, or become void alone.
//! - **RESUME**: the stored response is read on behind the last event that is known. Nothing has to be
//!   judged; the whole of it is one response, however many attempts read it.
//!
//! A target that refuses, or begins anew, has failed to help, and that is all it has said: the verdict
//! of before stands and decides what comes next, which is a restart where output may become void.

use std::sync::Arc;

use super::{
    Time,
    commons::{Access, Commons},
    event::FollowUp,
    generation::Generation,
    policy::{Pick, Placement, placement},
    seam::{Judgement, Seam},
    state::Attempt,
};
use crate::{
    proto::{Delivery, Mode, StoppedBy},
    protocol::Delta,
    verdict::{self, Class, Failure, Origin, Stage},
};

/// Everything stays.
pub(super) const ALL: u32 = u32::MAX;

/// Who goes on with what, between attempts and while one does.
#[derive(Debug)]
pub(super) struct Sequel {
    /// The target that made the output.
    pub target: usize,
    /// How the next attempt goes on, or the one in flight did.
    pub mode: Mode,
    /// Why it has to: the verdict that a refusal does not mask.
    pub cause: Failure,
    /// Output of attempts below this one is final.
    pub fixed_below: u32,
    /// Judges the continuation in flight, until it is known to be one.
    pub seam: Option<Seam>,
    /// Where the response is stored, for the next attempt.
    pub stored: Option<Stored>,
}

/// How far a stored response was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// The provider's id of it; empty until the provider gives one.
    pub response_id: Box<str>,
    /// The sequence number of the last event.
    pub cursor: Option<u64>,
    /// Its model as the provider reported it, which the rest need not say again; empty until it did.
    pub model: Box<str>,
    /// The index of the credential that it was made with.
    pub credential: usize,
}

/// How the current target can go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// CONTINUE or RESUME.
    pub mode: Mode,
    /// With the output of attempts below this one; the rest is void.
    pub keeps_below: u32,
}

impl Sequel {
    /// What it takes in memory beside the transcript, about.
    pub fn bytes(&self) -> usize {
        self.seam.as_ref().map_or(0, Seam::bytes)
    }
}

impl Generation {
    /// Whether the attempt in flight is a continuation that nobody has seen anything of.
    pub(super) fn is_unjudged(&self) -> bool {
        self.sequel
            .as_ref()
            .is_some_and(|sequel| sequel.seam.is_some())
    }

    /// Output of attempts below this one cannot be void any more, whatever comes.
    pub(super) fn fixed_below(&self) -> u32 {
        self.sequel.as_ref().map_or(0, |sequel| sequel.fixed_below)
    }

    /// How the target of the attempt that failed can go on, if it can.
    pub(super) fn way_on(&mut self) -> Option<Way> {
        let unjudged = self.is_unjudged().then_some(self.attempts);
        let stored = self.running().and_then(|attempt| attempt.stored.as_ref());
        if stored.is_some_and(Stored::is_known) {
            return Some(Way {
                mode: Mode::Resume,
                keeps_below: ALL,
            });
        }
        if !self.itinerary.continues() {
            return None;
        }
        let keeps_below = match self.transcript.text_only() {
            Some(text) if text.trim_end().is_empty() => return None,
            // Nothing of it was shown.
            Some(_) => unjudged.unwrap_or(ALL),
            // What goes on behind the text cannot be cut off; the text before it is final.
            None if self.fixed_below() > 0 => self.fixed_below(),
            None => return None,
        };
        Some(Way {
            mode: Mode::Continue,
            keeps_below,
        })
    }

    /// Why the output of `attempt` and later ones must not become void, if it must not.
    pub(super) fn holds_on_to(&self, attempt: u32) -> Option<StoppedBy> {
        let unjudged = self.is_unjudged().then_some(self.attempts);
        if attempt == ALL || unjudged == Some(attempt) {
            return None;
        }
        if self.effects_confirmed || attempt < self.fixed_below() {
            return Some(StoppedBy::Effects);
        }
        let shown = |client: &super::delivery::Client| {
            client.delivery == Delivery::PreviewNoReset && client.has_preview_from(attempt)
        };
        self.client
            .as_ref()
            .is_some_and(shown)
            .then_some(StoppedBy::NoReset)
    }

    /// Where to go now that a wait is over or a slot is held. Output that must not become void goes
    /// nowhere else.
    pub(super) fn pick_again(&self, now: Time, target: usize, commons: &impl Access) -> Pick {
        let bound = self.sequel.is_some() && self.holds_on_to(0).is_some();
        commons.with(|commons| {
            let pick = match bound {
                true => self.itinerary.stay(now, commons),
                false => self.itinerary.resume(now, target, commons),
            };
            self.with_its_credential(now, pick, commons)
        })
    }

    /// What is stored is asked for with the credential that it was made with, unless that one rests:
    /// another one may be of another account, which does not have it.
    fn with_its_credential(&self, now: Time, pick: Pick, commons: &Commons) -> Pick {
        let Pick::Now { target, .. } = pick else {
            return pick;
        };
        let sequel = self.sequel.as_ref();
        let sequel = sequel.filter(|s| s.mode == Mode::Resume && s.target == target);
        let stored = sequel.and_then(|sequel| sequel.stored.as_ref());
        let (Some(stored), Some(at)) = (stored, self.itinerary.targets().get(target)) else {
            return pick;
        };
        if commons.rests(now, &at.provider, stored.credential) {
            return pick;
        }
        Pick::Now {
            target,
            credential: stored.credential,
        }
    }

    /// The next attempt goes to another target after all: what was to be continued is void.
    pub(super) fn give_up_sequel(&mut self, pick: Pick) {
        let (Pick::Now { target, .. } | Pick::Later { target, .. }) = pick else {
            return;
        };
        let Some(sequel) = self.sequel.take_if(|sequel| sequel.target != target) else {
            return;
        };
        self.void_from(0, &sequel.cause, None);
    }

    /// What `target` was to be asked to continue is more than a budget can ever hold, and the original
    /// request may be less: whether that is asked for instead.
    pub(super) fn begins_anew(&mut self, target: usize) -> bool {
        if self.holds_on_to(0).is_some() {
            return false;
        }
        let continues =
            |sequel: &mut Box<Sequel>| sequel.mode == Mode::Continue && sequel.target == target;
        let Some(sequel) = self.sequel.take_if(continues) else {
            return false;
        };
        self.itinerary.refused_to_continue();
        self.void_from(0, &sequel.cause, None);
        true
    }

    /// The next attempt goes on with what is kept.
    pub(super) fn plan_sequel(&mut self, way: Way, cause: &Failure) {
        let stored = self.running().and_then(|attempt| attempt.stored.take());
        if self.attempts < way.keeps_below {
            self.ledger.keep(self.attempts);
        }
        if way.mode == Mode::Resume
            && let Some(entry) = self.ledger.current()
        {
            // It is counted once, by who reads it to its end.
            entry.usage = None;
            entry.usage_estimated = false;
        }
        self.sequel = Some(Box::new(Sequel {
            target: self.itinerary.current_index(),
            mode: way.mode,
            cause: cause.clone(),
            fixed_below: self.fixed_below(),
            seam: None,
            stored,
        }));
    }

    /// How the attempt that is being dispatched goes on, if it does.
    pub(super) fn follow_up(&mut self) -> Option<(Mode, Box<FollowUp>)> {
        let text = self.transcript.text_only();
        let sequel = self.sequel.as_mut()?;
        let follow_up = match (sequel.mode, &sequel.stored) {
            (Mode::Resume, Some(stored)) => FollowUp::Resume {
                response_id: stored.response_id.clone(),
                after: stored.cursor?,
            },
            _ => {
                sequel.seam = Some(Seam::new(&text?)?);
                let seam = sequel.seam.as_ref()?;
                FollowUp::Continue {
                    partial: Arc::clone(seam.sent()),
                }
            }
        };
        Some((sequel.mode, Box::new(follow_up)))
    }

    /// A piece of output of a continuation that is not judged yet. `true` if it is output like any
    /// other.
    pub(super) fn on_unjudged(
        &mut self,
        now: Time,
        delta: &Delta<'_>,
        commons: &impl Access,
    ) -> bool {
        let Some(seam) = self.sequel.as_mut().and_then(|sequel| sequel.seam.as_mut()) else {
            return true;
        };
        match delta {
            Delta::Text(text) => {
                let judgement = seam.push(text);
                self.on_judgement(now, judgement, commons);
                false
            }
            // Behind the text anything may come, and at once where the text was whole.
            Delta::ToolCallStart { .. } | Delta::ToolArguments { .. } | Delta::NativeBlock(_) => {
                self.judge(now, commons)
            }
            // A turn of its own.
            Delta::Reasoning(_)
            | Delta::ReasoningSignature(_)
            | Delta::RedactedReasoning(_)
            | Delta::Refusal(_) => {
                self.on_judgement(now, Judgement::BeginsAnew, commons);
                false
            }
        }
    }

    /// Nothing more comes that could change what the continuation in flight is. `true` if it is one.
    pub(super) fn judge(&mut self, now: Time, commons: &impl Access) -> bool {
        let seam = self.sequel.as_mut().and_then(|sequel| sequel.seam.as_mut());
        let Some(judgement) = seam.map(Seam::end) else {
            return true;
        };
        self.on_judgement(now, judgement, commons);
        self.running().is_some()
    }

    /// Another block begins. `true` if the attempt goes on.
    pub(super) fn judge_before_block(&mut self, now: Time, commons: &impl Access) -> bool {
        let seam = self.sequel.as_ref().and_then(|sequel| sequel.seam.as_ref());
        seam.is_none_or(Seam::is_empty) || self.judge(now, commons)
    }

    fn on_judgement(&mut self, now: Time, judgement: Judgement, commons: &impl Access) {
        match judgement {
            Judgement::Open => {}
            Judgement::GoesOn(text) => self.goes_on(now, &text, commons),
            Judgement::BeginsAnew => {
                let message = "the answer was begun anew instead of continued";
                let failure = Failure::new(
                    Class::MalformedOutput,
                    Origin::Provider,
                    Stage::Stream,
                    message,
                );
                self.attempt_failed(now, failure, commons);
            }
        }
    }

    /// The continuation is one: the text before it is final, and what was held back is shown.
    fn goes_on(&mut self, now: Time, text: &str, commons: &impl Access) {
        let attempt = self.attempts;
        if let Some(sequel) = &mut self.sequel {
            sequel.seam = None;
            sequel.fixed_below = attempt;
        }
        if let Some(client) = &mut self.client {
            client.fix(attempt);
        }
        self.transcript.release();
        if text.is_empty() {
            return;
        }
        let block = self.transcript.append(&Delta::Text(text));
        if let Some(attempt) = self.running() {
            attempt.block = block;
        }
        self.bound_message(now, commons);
    }

    /// Whether `failure` of the attempt in flight says only that the target does not go on.
    pub(super) fn is_refusal(&self, failure: &Failure) -> bool {
        let of_the_provider = matches!(failure.origin, Origin::Provider | Origin::Network);
        let Some(sequel) = self.sequel.as_ref().filter(|_| of_the_provider) else {
            return false;
        };
        let early = match sequel.mode {
            Mode::Resume => failure.stage == Stage::Response,
            _ => sequel.seam.is_some(),
        };
        early && !failure.replayable()
    }

    /// The target does not go on. That is not the verdict of the generation.
    pub(super) fn refused(&mut self, now: Time, refusal: &Failure, commons: &impl Access) {
        let Some(sequel) = &self.sequel else { return };
        let (cause, mode) = (sequel.cause.clone(), sequel.mode);
        if let Some(entry) = self.ledger.current() {
            entry.refused = true;
        }
        if mode == Mode::Continue {
            self.itinerary.refused_to_continue();
        }
        if let Some(attempt) = self.running() {
            attempt.stored = None;
        }
        // Who is not let in now is not let in with the original request either; what is not found
        // may be the stored response, or the endpoint for continuations.
        let of_the_target = placement(refusal, &self.params.policy) == Placement::Next;
        if of_the_target && refusal.class != Class::NotFound {
            self.hold(now, refusal, commons);
            self.itinerary.leave();
        } else if let Some(wait) = refusal.wait {
            self.itinerary.hold(now + wait);
        }
        self.go_on_after(now, cause, false, commons);
    }
}

impl Stored {
    /// Whether the response can be asked for.
    pub fn is_known(&self) -> bool {
        self.cursor.is_some() && !self.response_id.is_empty()
    }
}

impl Attempt {
    /// The provider named its response.
    pub fn is_stored_as(&mut self, response_id: &str) {
        if let Some(stored) = &mut self.stored
            && stored.response_id.is_empty()
        {
            stored.response_id = response_id.into();
        }
    }

    /// The provider named the model.
    pub fn is_of(&mut self, model: &str) {
        model.clone_into(&mut self.model);
        verdict::clip(&mut self.model);
        if let Some(stored) = &mut self.stored {
            stored.model = self.model.as_str().into();
        }
    }

    /// The response was read up to an event.
    pub fn has_read(&mut self, sequence: u64) {
        if let Some(stored) = &mut self.stored {
            stored.cursor = Some(
                stored
                    .cursor
                    .map_or(sequence, |cursor| cursor.max(sequence)),
            );
        }
    }
}
