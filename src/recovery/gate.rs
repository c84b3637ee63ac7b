//! The turn gate between a completed attempt and its commit: what becomes of what it says.
//!
//! | it says | and then |
//! |---|---|
//! | accept | the attempt is committed; broken calls beside good ones are withheld, suppressed text is reset |
//! | try again | what was shown is reset, and the same target gets the original request with a hint: one more attempt of the allowance, at once, without backoff, and not of the retry budget, which is about outages |
//! | deliver | the attempt is committed as it is |
//! | exhausted, or nothing is left to try again with | the generation fails with the reason, unless the gate delivers what was rejected for it |
//!
//! Output that must not become void (effects, a verified continuation, a client without resets) is committed
//! as it is, whatever the gate says of it: there is no trying again, and a failure would take it back.
//! Attempts that fail otherwise are never judged, and their replays carry the hint of the last one that was.

use super::{
    Time,
    commit::{self, LeftOut},
    commons::Access,
    event::{Command, Hint},
    generation::Generation,
    policy::Pick,
    settings::Replay,
    state::Finish,
    transcript::{Block, Kind},
};
use crate::{
    gate::{self, Attempts, Judgement, Piece, Reason, Snapshot, Tools, Turn},
    proto::StoppedBy,
    verdict::{Class, Failure, Origin, Stage},
};

/// The turn gate of one generation.
#[derive(Clone, Debug)]
pub struct Gate {
    turn: Turn,
    tools: Tools,
    /// Of the last attempt that was rejected.
    hint: Option<Hint>,
}

/// A completed attempt that was rejected.
struct Rejected<'a> {
    reason: Reason,
    finish: &'a Finish,
    /// It is committed all the same where it is not tried again.
    delivered: bool,
}

impl Gate {
    /// One that has judged nothing. `tools`: what the request says of them.
    pub fn new(policy: gate::Policy, attempts: Attempts, tools: Tools) -> Self {
        Self {
            turn: Turn::new(policy, attempts),
            tools,
            hint: None,
        }
    }

    /// The blocks of calls that cannot be handed out.
    fn broken(&self, blocks: &[Block]) -> Vec<usize> {
        let broken = |(index, block): (usize, &Block)| match &block.kind {
            Kind::ToolCall { name, .. } => {
                let fault = self.tools.fault(name, &block.text, false);
                fault.map(|_| index)
            }
            _ => None,
        };
        blocks.iter().enumerate().filter_map(broken).collect()
    }
}

impl Generation {
    /// What the next attempt tells the model.
    pub(super) fn hint(&self) -> Option<&Hint> {
        self.params.gate.as_ref()?.hint.as_ref()
    }

    /// Asks the gate about the completed attempt in flight. What is to be left out if it is to be
    /// committed; `None` if it is over.
    pub(super) fn pass_gate(
        &mut self,
        now: Time,
        finish: &Finish,
        commons: &impl Access,
    ) -> Option<LeftOut> {
        let stays = self.holds_on_to(0).is_some();
        let Some(gate) = &mut self.params.gate else {
            return Some(LeftOut::default());
        };
        let blocks = self.transcript.blocks();
        let snapshot = Snapshot::of(blocks.iter().filter_map(piece), finish.reason, &gate.tools);
        let (reason, by) = match gate.turn.judge(snapshot.clone()) {
            Judgement::Accept { suppress_text, .. } => {
                return Some(LeftOut {
                    calls: gate.broken(blocks),
                    text: suppress_text && !stays,
                });
            }
            Judgement::Deliver(_) => return Some(LeftOut::default()),
            Judgement::Retry(_) | Judgement::Exhausted(_) if stays => {
                return Some(LeftOut::default());
            }
            Judgement::Retry(reason) => (reason, None),
            Judgement::Exhausted(reason) => (reason, Some(StoppedBy::Gate)),
        };
        let rejected = Rejected {
            reason,
            finish,
            delivered: matches!(Turn::give_up(reason, &snapshot), Judgement::Deliver(_)),
        };
        match by {
            None => {
                let hint = Hint::new(&gate::hint(reason, &snapshot, &gate.tools));
                self.try_again(now, &rejected, hint, commons)
            }
            Some(by) => self.give_up(now, &rejected, by, commons),
        }
    }

    fn try_again(
        &mut self,
        now: Time,
        rejected: &Rejected<'_>,
        hint: Hint,
        commons: &impl Access,
    ) -> Option<LeftOut> {
        let failure = rejection(rejected.reason);
        let pick = match self.may_try_again(now, &failure, commons) {
            Ok(pick) => pick,
            Err(by) => return self.give_up(now, rejected, by, commons),
        };
        self.complete_rejected(now, &failure, commons);
        self.failed_at = Some(now);
        if let Some(gate) = &mut self.params.gate {
            gate.hint = Some(hint);
        }
        self.replay(now, &failure, pick, None, commons);
        None
    }

    /// Whether the target that answered may be asked again.
    fn may_try_again(
        &mut self,
        now: Time,
        failure: &Failure,
        commons: &impl Access,
    ) -> Result<Pick, StoppedBy> {
        self.share_deadline(commons);
        if self.params.policy.replay == Replay::None {
            return Err(StoppedBy::ReplayDisabled);
        }
        if self.attempts_left(commons) == 0 {
            return Err(StoppedBy::Allowance);
        }
        if now >= self.allowance.deadline {
            return Err(StoppedBy::Deadline);
        }
        let pick = commons.with(|commons| self.itinerary.stay(now, commons));
        if pick == Pick::None {
            return Err(StoppedBy::NoTarget);
        }
        self.check_fit(now, failure, pick)?;
        Ok(pick)
    }

    /// It is not tried again, because of `by`. A call that nobody could run is told as that.
    fn give_up(
        &mut self,
        now: Time,
        rejected: &Rejected<'_>,
        by: StoppedBy,
        commons: &impl Access,
    ) -> Option<LeftOut> {
        if rejected.delivered {
            return Some(LeftOut::default());
        }
        let blocks = self.transcript.blocks();
        let failure = match commit::close(blocks, rejected.finish, &LeftOut::default()) {
            Err(malformed) if rejected.reason == Reason::ToolError => malformed,
            _ => rejection(rejected.reason),
        };
        self.complete_rejected(now, &failure, commons);
        self.end_failed(now, failure, by, commons);
        None
    }

    /// Closes the entry of the attempt in flight, whose response is complete.
    fn complete_rejected(&mut self, now: Time, failure: &Failure, commons: &impl Access) {
        if let Some(attempt) = self.running() {
            // There is no rest to read.
            attempt.stored = None;
        }
        if let Some(place) = self.close_running(now, failure, commons) {
            // A stall before and one after it are not in a row.
            self.same_place.failed(failure.class, place);
        }
        self.itinerary.answered();
        self.commands.push_back(Command::Finish);
    }

    /// All text of the attempt is void, and was never part of the message.
    pub(super) fn void_text(&mut self) {
        let blocks = self.transcript.blocks().iter().enumerate();
        let texts = blocks.filter(|(_, block)| block.kind == Kind::Text);
        let texts: Vec<usize> = texts.map(|(index, _)| index).collect();
        let message = "the turn gate left this text out of the message";
        let failure = Failure::new(Class::GateRejected, Origin::Us, Stage::Stream, message);
        for index in texts {
            self.transcript.replace(index, "");
            self.tell_block_reset(index as u32, &failure);
        }
    }
}

/// What the gate sees of a block; nothing of what a client is not to read.
fn piece(block: &Block) -> Option<Piece<'_>> {
    match &block.kind {
        Kind::Text | Kind::Refusal => Some(Piece::Text(&block.text)),
        Kind::ToolCall { name, .. } => Some(Piece::Call {
            name,
            arguments: &block.text,
        }),
        Kind::Native => Some(Piece::Native),
        Kind::Reasoning | Kind::Redacted => None,
    }
}

fn rejection(reason: Reason) -> Failure {
    let message = format!("the turn gate rejected the answer: {}", reason.as_str());
    let mut failure = Failure::new(Class::GateRejected, Origin::Us, Stage::Stream, message);
    failure.gate_reason = reason.as_str();
    failure
}
