//! What a fleet and its generations are created with.

use std::time::Duration;

use redrive::{
    proto::Delivery,
    recovery::{
        Params,
        settings::{Replay, Timers},
    },
};

use crate::{
    dice::Dice,
    fixtures::{at, change_targets, params, s},
    model::{CHOICES, OFFERS, Rules, STRICTNESS},
};

/// Timers that run out within the times that pass here.
const SHORT: Timers = Timers {
    connect: Duration::from_secs(1),
    first_token: Duration::from_secs(4),
    inter_delta: Duration::from_secs(2),
    open_block: Duration::from_secs(3),
    no_progress: Duration::from_secs(5),
    tail: Duration::from_secs(1),
};

/// Nothing but the deadline ends an attempt.
const OFF: Timers = Timers {
    connect: Duration::ZERO,
    first_token: Duration::ZERO,
    inter_delta: Duration::ZERO,
    open_block: Duration::ZERO,
    no_progress: Duration::ZERO,
    tail: Duration::ZERO,
};

/// What a generation's turn gate goes by, where it has one.
pub fn gate(dice: &mut Dice) -> Option<Rules> {
    dice.chance(50).then(|| Rules {
        strictness: dice.pick(STRICTNESS),
        attempts: 1 + dice.below(6) as u32,
        offer: dice.pick(OFFERS),
        choice: dice.pick(CHOICES),
    })
}

/// What all generations of a fleet have in common.
pub struct House {
    credentials: usize,
    timers: Timers,
    circuit_failures: u32,
    base: Duration,
    continues: bool,
    resumes: bool,
}

impl House {
    pub fn draw(dice: &mut Dice) -> Self {
        Self {
            credentials: dice.below(4) as usize,
            timers: dice.pick(&[Timers::HOSTED, Timers::HOSTED, SHORT, SHORT, OFF]),
            circuit_failures: dice.pick(&[1, 2, 5, 1_000]),
            base: dice.pick(&[s(1), s(1), s(10), Duration::from_millis(50)]),
            continues: false,
            resumes: false,
        }
        .going_on(dice.below(4))
    }

    /// Some continue, some read on, some restart only.
    fn going_on(self, how: u64) -> Self {
        Self {
            continues: how < 2,
            resumes: how == 2,
            ..self
        }
    }

    /// One generation's.
    pub fn params(&self, dice: &mut Dice) -> Params {
        let mut params = params(1 + dice.below(4) as usize);
        let tail = dice.pick(&[self.timers.tail, self.timers.tail, Duration::ZERO]);
        change_targets(&mut params, |target| {
            target.credentials = self.credentials;
            target.continues = self.continues;
            target.resumes = self.resumes;
            target.timers = Timers {
                tail,
                ..self.timers
            };
        });
        let policy = &mut params.policy;
        policy.max_attempts = dice.pick(&[1, 2, 3, 4, 6, 11, 11]);
        policy.deadline = s(dice.pick(&[5, 60, 600, 600, 600]));
        policy.patience = s(dice.pick(&[0, 5, 5, 60]));
        policy.backoff.base = self.base;
        policy.backoff.jitter = dice.pick(&[0.0, 0.25]);
        policy.circuit.failures = self.circuit_failures;
        policy.replay_first_token = dice.chance(30);
        if dice.chance(10) {
            policy.replay = Replay::None;
        }
        params.fallback = dice.chance(85);
        params.delivery = dice.pick(&[
            Delivery::Preview,
            Delivery::Preview,
            Delivery::Preview,
            Delivery::PreviewNoReset,
            Delivery::CommittedOnly,
        ]);
        params.detach_grace = s(dice.pick(&[0, 0, 20]));
        params.client_idle = s(dice.pick(&[0, 0, 3, 30]));
        params.caller_deadline = dice.chance(10).then(|| at(50));
        params.max_message_bytes = dice.pick(&[8 << 20, 8 << 20, 8 << 20, 8 << 20, 400]);
        let scope = dice.pick(&[None, None, Some("turn"), Some("retry")]);
        params.scope = scope.map(|scope| ("tcp".into(), scope.into()));
        params.seed = dice.roll();
        params
    }
}
