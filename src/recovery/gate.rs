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
    event::{Command, Hint, Observation},
    generation::Generation,
    policy::Pick,
    settings::Replay,
    state::Finish,
    transcript::{Block, Kind},
};
use crate::{
    gate::{self, Attempts, Judgement, Piece, Reason, Snapshot, Then, Tools, Turn},
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
                let error = self.tools.error(name, &block.text, false);
                error.map(|_| index)
            }
            _ => None,
        };
        blocks.iter().enumerate().filter_map(broken).collect()
    }

    /// What of an accepted attempt is no part of the message. Text that `stays` is not taken back.
    fn left_out(&self, blocks: &[Block], suppress_text: bool, stays: bool) -> LeftOut {
        LeftOut {
            calls: self.broken(blocks),
            text: suppress_text && !stays,
        }
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
        let attempt = self.attempts;
        let Some(gate) = &mut self.params.gate else {
            return Some(LeftOut::default());
        };
        let blocks = self.transcript.blocks();
        // The text that it goes on with is another attempt's.
        let own = blocks.iter().filter(|block| block.attempt == attempt);
        let snapshot = Snapshot::of(own.map(piece), finish.reason, &gate.tools);
        let (reason, by) = match gate.turn.judge(snapshot.clone()) {
            Judgement::Accept { suppress_text, .. } => {
                return Some(gate.left_out(blocks, suppress_text, stays));
            }
            Judgement::Deliver(reason) => return self.deliver(reason, finish),
            Judgement::Retry(reason) | Judgement::Exhausted(reason) if stays => {
                return self.deliver(reason, finish);
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
        self.observe_rejected(rejected.reason, Then::Retried);
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
            return self.deliver(rejected.reason, rejected.finish);
        }
        self.observe_rejected(rejected.reason, Then::Failed);
        let blocks = self.transcript.blocks();
        let failure = match commit::close(blocks, rejected.finish, &LeftOut::default()) {
            Err(malformed) if rejected.reason == Reason::ToolError => malformed,
            _ => rejection(rejected.reason),
        };
        self.complete_rejected(now, &failure, commons);
        self.end_failed(now, failure, by, commons);
        None
    }

    /// It is committed as it is, if it can be: its broken calls fail as without a gate.
    fn deliver(&mut self, reason: Reason, finish: &Finish) -> Option<LeftOut> {
        let left_out = LeftOut::default();
        let then = match commit::close(self.transcript.blocks(), finish, &left_out) {
            Ok(_) => Then::Delivered,
            Err(_) => Then::Failed,
        };
        self.observe_rejected(reason, then);
        Some(left_out)
    }

    fn observe_rejected(&mut self, reason: Reason, then: Then) {
        self.observe(Observation::GateRejected { reason, then });
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
        self.itinerary.rejected();
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
fn piece(block: &Block) -> Piece<'_> {
    match &block.kind {
        Kind::Text => Piece::Text(&block.text),
        Kind::Refusal => Piece::Refusal(&block.text),
        Kind::ToolCall { name, .. } => Piece::Call {
            name,
            arguments: &block.text,
        },
        Kind::Native => Piece::Native,
        Kind::Reasoning | Kind::Redacted => Piece::Reasoning,
    }
}

fn rejection(reason: Reason) -> Failure {
    let message = format!("the turn gate rejected the answer: {}", reason.as_str());
    let mut failure = Failure::new(Class::GateRejected, Origin::Us, Stage::Stream, message);
    failure.gate_reason = reason.as_str();
    failure
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, time::Duration};

    use super::*;
    use crate::{
        proto::{
            Committed, Delivery, FinishReason, committed::Flag, generate_response::Frame, part,
        },
        protocol::{Delta, Event as Decoded},
        recovery::{
            Commons, Event, Next, Params, Target, Upstream,
            settings::{Backoff, CircuitSettings, Policy, RetryBudgetSettings, Timers},
        },
    };

    fn params() -> Params {
        let target = Target {
            name: "a/m".into(),
            provider: "a".into(),
            domains: vec!["a".into()],
            model: "m".into(),
            context_window: None,
            timers: Timers::HOSTED,
            credentials: 0,
            continues: false,
            resumes: false,
            fallback: false,
        };
        Params {
            id: "g1".into(),
            targets: [target].into(),
            skipped: Box::default(),
            policy: Policy {
                max_attempts: 1,
                deadline: Duration::from_secs(600),
                patience: Duration::ZERO,
                replay: Replay::Restart,
                replay_first_token: false,
                backoff: Backoff {
                    base: Duration::ZERO,
                    max: Duration::ZERO,
                    jitter: 0.0,
                },
                circuit: CircuitSettings {
                    failures: 5,
                    open: Duration::from_secs(30),
                },
            },
            gate: None,
            fallback: true,
            delivery: Delivery::Preview,
            detach_grace: Duration::ZERO,
            max_message_bytes: 1 << 20,
            client_idle: Duration::ZERO,
            scope: None,
            caller_deadline: None,
            wall_origin: Duration::ZERO,
            seed: 7,
        }
    }

    #[test]
    fn text_is_left_out_only_where_it_is_suppressed_and_does_not_stay() {
        let gate = Gate::new(gate::Policy::AGENT, Attempts::default(), Tools::default());
        for (suppressed, stays, left_out) in [
            (false, false, false),
            (false, true, false),
            (true, false, true),
            (true, true, false),
        ] {
            let found = gate.left_out(&[], suppressed, stays).text;
            assert_eq!(found, left_out, "{suppressed} {stays}");
        }
    }

    /// No model whose text could be suppressed is read yet: the verdict is put in here.
    #[test]
    fn suppressed_text_is_reset_and_no_part_of_the_message() {
        let now = Time::default();
        let commons = RefCell::new(Commons::new(RetryBudgetSettings {
            ratio: 1.0,
            floor: 1,
            per: Duration::from_secs(10),
        }));
        let policy = gate::Policy::LENIENT;
        let gated = Params {
            gate: Some(Box::new(Gate::new(
                policy,
                Attempts::default(),
                Tools::default(),
            ))),
            ..params()
        };
        let mut generation = Generation::new(now, gated, &commons).unwrap();
        generation.handle(now, Event::Start, &commons);
        generation.handle(now, Event::Reserved { credential: 0 }, &commons);
        let call = Delta::ToolCallStart {
            call: 0,
            id: "c",
            name: "read",
        };
        let mut frames = Vec::new();
        let mut read = |generation: &mut Generation| {
            while let Next::Frame(frame) = generation.next_frame(now, 1) {
                frames.extend(frame.frame);
            }
        };
        for delta in [Delta::Text("<debris>"), call] {
            let signal = Upstream::Decoded(Decoded::Delta(delta));
            generation.handle(now, Event::Upstream { attempt: 1, signal }, &commons);
            read(&mut generation);
        }
        let finish = Finish {
            reason: FinishReason::ToolCalls,
            native: String::new(),
        };
        let left_out = LeftOut {
            calls: Vec::new(),
            text: true,
        };
        generation.commit(now, &finish, &left_out, &commons);
        read(&mut generation);
        let [.., Frame::PreviewReset(reset), Frame::Committed(committed)] = &frames[..] else {
            panic!("{frames:?}");
        };
        assert_eq!((reset.attempt, &reset.blocks[..]), (1, &[0][..]));
        assert_eq!(reset.verdict.as_ref().unwrap().class(), Class::GateRejected);
        let Committed { message, flags, .. } = committed;
        assert!(flags.contains(&Flag::ContentSuppressed.into()));
        let [part] = &message[..] else {
            panic!("{message:?}");
        };
        assert!(matches!(part.part, Some(part::Part::ToolCall(_))));
        assert!(generation.params.gate.is_none(), "kept although it ended");
        // Who attaches is not given it either.
        let delivery = Delivery::Preview;
        let attach = Event::Attach {
            delivery,
            caller_deadline: None,
        };
        generation.handle(now, attach, &commons);
        while let Next::Frame(frame) = generation.next_frame(now, 2) {
            assert!(!format!("{frame:?}").contains("debris"));
        }
    }
}
