//! What happens how often: drawn anew for each seed, so that some fleets see nothing but stalls and
//! others every fault at once.

use redrive::{
    proto::{Delivery, FinishReason},
    verdict::Class,
};

use crate::{
    dice::Dice,
    model::{ANNOUNCED, ANSWERS, Op, PERMANENT, Says},
};

/// How often each event comes, before a fleet's own habits.
const EVENTS: [u64; 24] = [
    12, // time passes
    2,  // time passes, unnoticed
    1,  // a time-out that is not due
    8,  // a slot
    1,  // a slot that is not free
    6,  // the hand-over
    30, // the provider speaks
    5,  // an ended exchange speaks
    3,  // the response ends
    10, // a failure
    24, // the client reads
    4,  // effects
    1,  // a cancel
    1,  // a lost client
    1,  // another client
    1,  // a drain
    1,  // memory runs out, a crash
    1,  // no slot at all
    3,  // no lease yet
    1,  // no lease at all
    2,  // a lease of another credential
    3,  // an engine that grants nothing
    1,  // a lease that is cut
    8,  // a whole answer
];

/// More than is held back of a continuation.
const LONG: &str =
    "a text that is longer than what is held back of a continuation before it is judged";

/// How often a provider says what.
const WORDS: [u64; 15] = [16, 4, 2, 4, 6, 6, 2, 2, 5, 1, 2, 1, 6, 6, 1];

/// The habits of one fleet.
pub struct Habits {
    events: [u64; EVENTS.len()],
    words: [u64; WORDS.len()],
    /// How long time passes at most, in milliseconds.
    times: &'static [u64],
    /// A provider that stalls after the same word again and again.
    stubborn: Option<Says>,
}

impl Habits {
    pub fn draw(dice: &mut Dice) -> Self {
        let mut vary = |weight: u64| weight * dice.pick(&[0, 2, 10, 10, 10, 30]);
        Self {
            events: EVENTS.map(&mut vary),
            words: WORDS.map(&mut vary),
            times: dice.pick::<&[u64]>(&[
                &[0, 10, 1_000, 2_000, 3_000, 5_000, 12_000, 50_000],
                &[1_000, 2_000, 3_000],
                &[46_000, 50_000, 310_000],
                &[0, 1, 999, 1_001, 700_000],
            ]),
            stubborn: dice
                .chance(10)
                .then(|| dice.pick(&[Says::Text("a"), Says::Reasoning("hm"), Says::Call(0)])),
        }
    }

    /// What happens next.
    pub fn next(&self, dice: &mut Dice) -> Op {
        if let Some(word) = self.stubborn
            && dice.chance(90)
        {
            return match dice.below(6) {
                0 => Op::Slot,
                1 => Op::Says(word),
                2 => Op::Fails(Class::Stall, None),
                3 => Op::Reads(3),
                // Now and then it comes to an end.
                4 if dice.chance(30) => Op::Answers(dice.pick(ANSWERS)),
                _ => Op::Pass(dice.pick(self.times)),
            };
        }
        match dice.weighted(&self.events) {
            0 => Op::Pass(dice.pick(self.times)),
            1 => Op::Jump(dice.pick(self.times)),
            2 => Op::Spurious,
            3 => Op::Slot,
            4 => Op::Queued,
            5 => Op::Sent,
            6 => Op::Says(self.says(dice)),
            7 => Op::Late(self.says(dice)),
            8 => Op::End,
            9 => fails(dice),
            10 => Op::Reads(dice.below(12) as u8),
            11 => Op::Effects(if dice.chance(5) {
                255
            } else {
                dice.below(4) as u8
            }),
            14 => Op::Attach(dice.pick(&[
                Delivery::Preview,
                Delivery::PreviewNoReset,
                Delivery::CommittedOnly,
            ])),
            18 => Op::Held(dice.pick(&[None, Some(1), Some(5), Some(50), Some(700)])),
            20 => Op::Other(dice.below(2) as u8),
            23 => Op::Answers(dice.pick(ANSWERS)),
            21 => Op::Away(dice.pick(&[None, Some(1), Some(5), Some(50), Some(700)])),
            rare if dice.chance(15) => match rare {
                12 => Op::Cancel,
                13 => Op::Lost,
                15 => Op::Drain(dice.below(60_000)),
                16 if dice.chance(50) => Op::OutOfMemory,
                16 => Op::Crash,
                19 => Op::Never,
                22 => Op::Cut,
                _ => Op::Refused,
            },
            _ => Op::Spurious,
        }
    }

    fn says(&self, dice: &mut Dice) -> Says {
        match dice.weighted(&self.words) {
            0 if dice.chance(10) => ANNOUNCED,
            0 => Says::Text(dice.pick(&["a", "bc", "é", " \n", "a longer piece of text", LONG])),
            1 => Says::Reasoning("hm"),
            2 => Says::Refusal("no"),
            3 => Says::Call(dice.below(2) as u32),
            4 => Says::Arguments(
                dice.below(2) as u32,
                dice.pick(&["{}", "{\"a\":", "1}", "[1]"]),
            ),
            5 => Says::Keepalive(dice.chance(50)),
            6 => Says::Usage(dice.below(50)),
            7 => Says::Started,
            8 => Says::Finish(dice.pick(&[
                FinishReason::Stop,
                FinishReason::Stop,
                FinishReason::Length,
                FinishReason::ToolCalls,
                FinishReason::ContentFilter,
                FinishReason::Refusal,
                FinishReason::Pause,
            ])),
            9 => Says::Done(dice.chance(20)),
            10 => Says::Error(dice.chance(70)),
            11 => Says::Garbage,
            12 => Says::Echo,
            14 => Says::Stray(dice.below(2) as u32),
            _ => Says::Anew,
        }
    }
}

fn fails(dice: &mut Dice) -> Op {
    let class = match dice.weighted(&[12, 4, 2]) {
        0 => dice.pick(&[
            Class::Transport,
            Class::ProviderInternal,
            Class::Stall,
            Class::TimeoutProvider,
        ]),
        1 => dice.pick(&[Class::RateLimited, Class::Overloaded]),
        _ => dice.pick(PERMANENT),
    };
    let wait = dice.pick(&[None, None, None, Some(1), Some(3), Some(30), Some(700)]);
    Op::Fails(class, wait)
}
