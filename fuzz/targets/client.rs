//! Any sequence of what clients, providers and time can do, through the core; every promise is checked
//! at every step.

use redrive::{
    proto::{Delivery, FinishReason},
    verdict::Class,
};

use crate::{
    fixtures::{change_targets, params, s},
    model::{ANNOUNCED, ANSWERS, CHOICES, Fleet, OFFERS, Op, PERMANENT, Rules, STRICTNESS, Says},
};

/// Four bytes of circumstances for each of two generations, then two bytes for each thing that
/// happens: what, and with which argument.
pub fn run(data: &[u8]) {
    let Some((circumstances, events)) = data.split_at_checked(8) else {
        return;
    };
    let mut fleet = Fleet::new(if circumstances[0] & 0x80 == 0 {
        1_000
    } else {
        1
    });
    for (index, four) in circumstances.chunks_exact(4).enumerate() {
        let mut params = params(1 + usize::from(four[0] % 3));
        change_targets(&mut params, |target| {
            target.credentials = usize::from(four[0] / 4 % 3);
        });
        params.policy.max_attempts = 1 + u32::from(four[1] % 6);
        params.policy.deadline = s([5, 60, 600, 600][usize::from(four[1] / 8 % 4)]);
        params.delivery = delivery(four[2]);
        params.detach_grace = s(u64::from(four[2] / 4 % 2) * 20);
        params.client_idle = s(u64::from(four[2] / 8 % 2) * 30);
        params.scope = (four[3] % 2 == 1).then(|| ("tcp".into(), "turn".into()));
        fleet.join(params, gate(four));
        fleet.start(index);
    }
    for two in events.chunks_exact(2).take(1_000) {
        fleet.act(usize::from(two[0] >> 7), event(two[0] & 0x7f, two[1]));
    }
    fleet.finish();
}

/// What a turn gate goes by, where there is one.
fn gate(four: &[u8]) -> Option<Rules> {
    (four[3] & 2 == 2).then(|| Rules {
        strictness: STRICTNESS[usize::from(four[2] / 16) % STRICTNESS.len()],
        attempts: 1 + u32::from(four[1] / 32 % 6),
        offer: OFFERS[usize::from(four[3] / 4) % OFFERS.len()],
        choice: CHOICES[usize::from(four[3] / 16) % CHOICES.len()],
    })
}

fn delivery(byte: u8) -> Delivery {
    [
        Delivery::Preview,
        Delivery::PreviewNoReset,
        Delivery::CommittedOnly,
    ][usize::from(byte % 3)]
}

fn event(what: u8, with: u8) -> Op {
    let time = [0, 10, 1_000, 3_000, 12_000, 50_000, 310_000, 700_000][usize::from(with % 8)];
    match what % 32 {
        0 | 1 => Op::Pass(time),
        2 => Op::Jump(time),
        3 => Op::Spurious,
        4 => Op::Slot,
        5 => Op::Other(with),
        6 => match with % 8 {
            0..=2 => Op::Queued,
            3 => Op::Held(None),
            4 => Op::Never,
            _ => Op::Held(Some(u64::from(with))),
        },
        7 => Op::Refused,
        8 | 9 => Op::Sent,
        10..=14 => Op::Says(says(with)),
        15 => Op::Answers(ANSWERS[usize::from(with) % ANSWERS.len()]),
        16 => Op::Late(says(with)),
        17 => Op::End,
        18..=20 => Op::Fails(
            class(with),
            [None, Some(1), Some(30), Some(700)][usize::from(with / 64)],
        ),
        21..=24 => Op::Reads(with % 12),
        25 | 26 => Op::Effects(with),
        27 => Op::Cancel,
        28 => Op::Lost,
        29 => Op::Attach(delivery(with)),
        30 => Op::Drain(u64::from(with) * 250),
        _ if with.is_multiple_of(2) => Op::OutOfMemory,
        _ => Op::Crash,
    }
}

fn says(with: u8) -> Says {
    match with % 16 {
        2 if with & 16 == 16 => ANNOUNCED,
        0..=2 => Says::Text("a"),
        3 => Says::Text("é"),
        4 => Says::Reasoning("hm"),
        5 => Says::Refusal("no"),
        6 if with & 32 == 32 => Says::Stray(u32::from(with / 16 % 2)),
        6 => Says::Call(u32::from(with / 16 % 2)),
        7 => Says::Arguments(u32::from(with / 16 % 2), "{}"),
        8 => Says::Arguments(u32::from(with / 16 % 2), "{\"a\":"),
        9 => Says::Keepalive(with & 16 == 0),
        10 => Says::Usage(u64::from(with)),
        11 => Says::Finish(
            [
                FinishReason::Stop,
                FinishReason::Length,
                FinishReason::ToolCalls,
                FinishReason::ContentFilter,
            ][usize::from(with / 16 % 4)],
        ),
        12 => Says::Done(with & 16 == 0),
        13 => Says::Error(with & 16 == 0),
        14 => Says::Garbage,
        _ => Says::Started,
    }
}

fn class(with: u8) -> Class {
    let transient = [
        Class::Transport,
        Class::ProviderInternal,
        Class::Stall,
        Class::RateLimited,
        Class::Overloaded,
    ];
    let classes: Vec<Class> = transient.iter().chain(PERMANENT).copied().collect();
    classes[usize::from(with % 64) % classes.len()]
}
