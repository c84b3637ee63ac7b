//! The beginning of an attempt: nothing is sent that is not debited, written down and told.

use super::{
    Time,
    commons::Access,
    event::{Command, Observation},
    generation::{Generation, ours},
    ledger::Entry,
    sequel::Stored,
    state::{Attempt, State},
    timers::Clockwork,
};
use crate::{
    proto::{AttemptStarted, Executed, Mode, StoppedBy, generate_response::Frame},
    verdict::Class,
};

impl Generation {
    /// Slot and lease are held: debit, write it down, tell it, send.
    pub(super) fn on_reserved(&mut self, now: Time, credential: usize, commons: &impl Access) {
        // What is held is not asked for again.
        if let State::Reserving { returns, .. } = &mut self.state {
            *returns = None;
        }
        // It may come when an end is due already, which then comes first.
        self.on_timer(now, commons);
        let State::Reserving { target, .. } = self.state else {
            return;
        };
        // While it was waited for, a credential may have been told to rest, or another generation may
        // have taken the probe of a circuit.
        let pick = self.pick_again(now, target, commons);
        if !self.suits(now, pick, target, credential, commons) {
            self.commands.push_back(Command::Abort { condemn: false });
            return self.go_on(now, pick, commons);
        }
        if !self.debit(commons) {
            let spent = || ours(Class::ExceedsLimit, "the scope's allowance is spent");
            let failure = self.last_failure().unwrap_or_else(spent);
            return self.stop(now, failure, StoppedBy::Allowance, commons);
        }
        self.dispatch(now, target, credential, commons);
    }

    fn dispatch(&mut self, now: Time, index: usize, credential: usize, commons: &impl Access) {
        let Some(target) = self.itinerary.targets().get(index).cloned() else {
            return;
        };
        self.itinerary.visit(index);
        self.attempts += 1;
        self.credential = credential;
        let first = self.attempts == 1;
        let probe = commons.with(|commons| {
            if first {
                commons.first_attempt(now, target.domain(credential));
            }
            commons.begin(now, &target.name)
        });
        let follow_up = self.follow_up();
        if follow_up.is_none()
            && let Some(sequel) = self.sequel.take()
        {
            self.void_from(0, &sequel.cause, None);
        }
        let mode = match &follow_up {
            Some((mode, _)) => *mode,
            None if first => Mode::First,
            None if self.hint().is_some() => Mode::GateRetry,
            None => Mode::Restart,
        };
        let waited = self.take_waited(now);
        self.ledger.open(Entry {
            attempt: self.attempts,
            target: target.name.to_string(),
            mode,
            started: now,
            ended: None,
            first_token: None,
            executed: Executed::No,
            failure: None,
            usage: None,
            usage_estimated: false,
            waited,
            kept: false,
            refused: false,
        });
        let left = self.attempts_left(commons);
        let started = Frame::AttemptStarted(AttemptStarted {
            attempt: self.attempts,
            target: target.name.to_string(),
            provider: target.provider.to_string(),
            model: target.model.clone(),
            mode: mode.into(),
            fallback: target.fallback,
            allowance_left: left,
        });
        let (block, output_bytes) = self.begin_output(mode);
        let stored = match (mode, &mut self.sequel) {
            (Mode::Resume, Some(sequel)) => sequel.stored.take(),
            _ => target.resumes.then(|| Stored {
                credential,
                ..Stored::default()
            }),
        };
        let reported = stored.as_ref().map(|stored| &*stored.model);
        let model = reported.filter(|model| !model.is_empty());
        let model = model.unwrap_or(&target.model).to_owned();
        match (mode, &mut self.client) {
            (Mode::Continue, Some(client)) => client.push_after(started, self.attempts),
            _ => self.tell(started),
        }
        self.state = State::Running(Box::new(Attempt {
            number: self.attempts,
            probe,
            clockwork: Clockwork::dispatched(now, target.timers, self.same_place.factor()),
            finish: None,
            usage: None,
            model,
            request_id: String::new(),
            block,
            output_bytes,
            stored,
            progress_told: None,
        }));
        self.observe(Observation::AttemptStarted {
            attempt: self.attempts,
            target: index,
            mode,
        });
        self.commands.push_back(Command::Send {
            attempt: self.attempts,
            target: index,
            credential: (target.credentials > 0).then_some(credential),
            hint: self.hint().cloned(),
            follow_up: follow_up.map(|(_, follow_up)| follow_up),
        });
    }

    /// Where output goes from now on: the block that comes first, and what the attempt has already.
    fn begin_output(&mut self, mode: Mode) -> (usize, usize) {
        let blocks = self.transcript.blocks();
        if mode == Mode::Resume {
            let bytes = blocks.iter().map(|block| block.text.len()).sum();
            let newest = blocks.len().saturating_sub(1);
            self.transcript.take_over(self.attempts);
            return (newest, bytes);
        }
        let next = blocks.len();
        self.transcript.begin(self.attempts, mode == Mode::Continue);
        (next, 0)
    }
}
