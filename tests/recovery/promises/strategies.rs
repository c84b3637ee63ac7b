//! Random circumstances and random events.

use std::time::Duration;

use proptest::prelude::*;
use redrive::{
    proto::{Delivery, FinishReason},
    recovery::{
        Params,
        settings::{Replay, Timers},
    },
    verdict::Class,
};

use crate::{
    fixtures::{at, change_targets, params, s},
    model::{ANNOUNCED, ANSWERS, CHOICES, OFFERS, Op, PERMANENT, Rules, STRICTNESS, Says},
};

/// Events of up to two generations.
pub fn ops() -> impl Strategy<Value = Vec<(bool, Op)>> {
    let second = prop::bool::weighted(0.3);
    prop::collection::vec((second, op()), 1..110)
}

fn op() -> impl Strategy<Value = Op> {
    let deliveries = prop::sample::select(vec![
        Delivery::Preview,
        Delivery::PreviewNoReset,
        Delivery::CommittedOnly,
    ]);
    prop_oneof![
        12 => prop::sample::select(vec![0u64, 10, 1_000, 2_000, 3_000, 5_000, 12_000, 50_000])
            .prop_map(Op::Pass),
        2 => prop::sample::select(vec![1_000u64, 5_000, 50_000]).prop_map(Op::Jump),
        1 => Just(Op::Spurious),
        8 => Just(Op::Slot),
        1 => Just(Op::Queued),
        2 => prop::sample::select(vec![None, Some(1u64), Some(5), Some(50), Some(700)])
            .prop_map(Op::Held),
        2 => prop::sample::select(vec![None, Some(1u64), Some(5), Some(50), Some(700)])
            .prop_map(Op::Away),
        1 => rarely(Op::Cut),
        1 => (0u8..2).prop_map(Op::Other),
        1 => rarely(Op::Never),
        1 => prop::bool::weighted(0.1).prop_map(|yes| if yes { Op::Refused } else { Op::Queued }),
        6 => Just(Op::Sent),
        30 => says().prop_map(Op::Says),
        8 => prop::sample::select(ANSWERS).prop_map(Op::Answers),
        5 => says().prop_map(Op::Late),
        3 => Just(Op::End),
        10 => (class(), wait()).prop_map(|(class, wait)| Op::Fails(class, wait)),
        24 => (0u8..12).prop_map(Op::Reads),
        4 => prop_oneof![20 => 0u8..4, 1 => Just(255)].prop_map(Op::Effects),
        1 => rarely(Op::Cancel),
        1 => rarely(Op::Lost),
        1 => deliveries.prop_map(Op::Attach),
        1 => prop::bool::weighted(0.05).prop_map(|yes| Op::Pass(if yes { 700_000 } else { 0 })),
        1 => (0u64..60_000).prop_flat_map(|after| rarely(Op::Drain(after))),
        1 => rarely(Op::OutOfMemory),
    ]
}

/// More than is held back of a continuation.
const LONG: &str =
    "a text that is longer than what is held back of a continuation before it is judged";

fn rarely(op: Op) -> impl Strategy<Value = Op> {
    prop::bool::weighted(0.15).prop_map(move |yes| if yes { op.clone() } else { Op::Spurious })
}

fn says() -> impl Strategy<Value = Says> {
    prop_oneof![
        8 => prop::sample::select(vec!["a", "bc", "é", "long text", " \n"]).prop_map(Says::Text),
        2 => Just(Says::Text(LONG)),
        2 => Just(ANNOUNCED),
        3 => Just(Says::Echo),
        3 => Just(Says::Anew),
        2 => Just(Says::Reasoning("hm")),
        3 => (0u32..2).prop_map(Says::Call),
        1 => (0u32..2).prop_map(Says::Stray),
        3 => (0u32..2, prop::sample::select(vec!["{}", "{\"a\":", "1}", "[1]"]))
            .prop_map(|(call, fragment)| Says::Arguments(call, fragment)),
        5 => (0u32..2, prop::sample::select(vec!["{}", "{\"a\":1}"]))
            .prop_map(|(call, whole)| Says::Whole(call, whole)),
        3 => any::<bool>().prop_map(Says::Keepalive),
        1 => (0u64..50).prop_map(Says::Usage),
        1 => Just(Says::Started),
        2 => prop::sample::select(vec![
            FinishReason::Stop,
            FinishReason::Length,
            FinishReason::ToolCalls,
            FinishReason::ContentFilter,
            FinishReason::Pause,
        ])
        .prop_map(Says::Finish),
        2 => prop::bool::weighted(0.2).prop_map(Says::Done),
    ]
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![
        12 => prop::sample::select(vec![Class::Transport, Class::ProviderInternal, Class::Stall]),
        4 => prop::sample::select(vec![Class::RateLimited, Class::Overloaded]),
        2 => prop::sample::select(PERMANENT.to_vec()),
    ]
}

fn wait() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![3 => Just(None), 2 => prop::sample::select(vec![1u64, 3, 30, 700]).prop_map(Some)]
}

/// What the generations are created with.
pub fn circumstances() -> impl Strategy<Value = Params> {
    let shape = (1usize..4, 0usize..3, 1u32..7);
    let times = (
        prop::sample::select(vec![5u64, 60, 600, 600, 600]),
        prop::sample::select(vec![0u64, 20]),
        prop::sample::select(vec![0u64, 0, 30]),
        prop::option::weighted(0.1, Just(50u64)),
    );
    let habits = (
        prop::sample::select(vec![
            Delivery::Preview,
            Delivery::Preview,
            Delivery::PreviewNoReset,
            Delivery::CommittedOnly,
        ]),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.1),
        any::<bool>(),
        (
            any::<u64>(),
            prop::sample::select(vec![
                (true, false),
                (true, false),
                (false, true),
                (false, false),
            ]),
        ),
    );
    (shape, times, habits).prop_map(|(shape, times, habits)| {
        let (targets, credentials, max_attempts) = shape;
        let (deadline, grace, idle, caller) = times;
        let (delivery, scoped, once, no_tail, (seed, (continues, resumes))) = habits;
        let mut params = params(targets);
        change_targets(&mut params, |target| {
            target.credentials = credentials;
            target.continues = continues;
            target.resumes = resumes;
            target.timers.tail = if no_tail {
                Duration::ZERO
            } else {
                Timers::HOSTED.tail
            };
        });
        params.policy.max_attempts = max_attempts;
        params.policy.deadline = s(deadline);
        params.policy.backoff.jitter = 0.25;
        params.policy.circuit.failures = 2;
        params.policy.replay = if once { Replay::None } else { Replay::Restart };
        params.delivery = delivery;
        params.detach_grace = s(grace);
        params.client_idle = s(idle);
        params.caller_deadline = caller.map(at);
        params.scope = scoped.then(|| ("tcp".into(), "turn".into()));
        params.seed = seed;
        params
    })
}

/// What the turn gate goes by, where there is one.
pub fn gates() -> impl Strategy<Value = Option<Rules>> {
    let strictness = prop::sample::select(STRICTNESS);
    let offers = prop::sample::select(OFFERS);
    let choices = prop::sample::select(CHOICES);
    let rules = (strictness, 1u32..7, offers, choices);
    let rules = rules.prop_map(|(strictness, attempts, offer, choice)| Rules {
        strictness,
        attempts,
        offer,
        choice,
    });
    prop::option::weighted(0.5, rules)
}
