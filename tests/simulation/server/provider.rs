//! What providers do with a send, and an account of what they said.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;

use redrive::{
    proto::FinishReason,
    verdict::{
        Stage,
        transport::TransportKind::{Connect, GoAway, Reset, Truncated},
    },
};

use crate::{
    dice::Dice,
    model::{Block, Stream},
    support::{Script, chat, chat::chunk, connecting, millis, secs, sent, status, stream},
};

/// What was said to one send.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub blocks: Vec<Block>,
    /// There is terminal evidence, and no error object.
    pub is_complete: bool,
    /// Why it ended, if it did.
    pub finish: Option<FinishReason>,
    /// Its tokens are counted.
    pub is_counted: bool,
    /// The longest time without a word, and without output.
    pub silence: Duration,
    pub without_output: Duration,
    /// It says nothing more in the end.
    pub falls_silent: bool,
    /// Kind and index of the block that was last added to.
    pub place: (&'static str, usize),
    /// The wait that was asked for, and whether it binds the credential (else the client).
    pub wait: Option<(Duration, bool)>,
    /// The credential has to rest, for that long or for its own backoff.
    pub is_limited: bool,
    /// The same request must not come back.
    pub is_permanent: bool,
    /// What it was asked to continue.
    pub partial: Option<String>,
    /// It did not continue it but began anew.
    pub begins_anew: bool,
}

impl Said {
    /// How many blocks stand before its own: one for each attempt that wrote a part of the text.
    pub fn offset(&self) -> usize {
        let words = self.partial.as_deref().unwrap_or_default().split(' ');
        let marks: BTreeSet<&str> = words
            .filter_map(|word| Some(word.split_once('w')?.0))
            .collect();
        marks.len()
    }

    /// The whole answer, if this is what was accepted.
    pub fn answer(&self) -> Stream {
        Stream::whole(self.blocks(), self.finish)
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = self.blocks.clone();
        if let Some(partial) = &self.partial {
            // Every word ends with a space, which is not sent but stays.
            let before = format!("{partial} ");
            match blocks.first_mut() {
                Some(first) if first.kind == "text" => first.text.insert_str(0, &before),
                _ => blocks.insert(
                    0,
                    Block {
                        kind: "text",
                        text: before,
                    },
                ),
            }
        }
        blocks
    }
}

/// A script and the account of it.
#[derive(Debug)]
pub struct Speech {
    pub script: Script,
    pub said: Said,
    idle: Duration,
    calls: u32,
    /// Characters that are held back of a continuation, until it is judged.
    held: Option<usize>,
    refuses_the_body: bool,
    kinds: &'static [u64],
}

/// What answers are made of: how often each kind of word comes, and how many there are at most. Half of
/// them are usual ones.
const SHAPES: &[(&[u64], u64)] = &[
    (&[10, 0, 0, 0, 2, 1], 12),
    (&[10, 3, 2, 2, 2, 1], 12),
    (&[10, 0, 0, 0, 2, 1], 12),
    (&[10, 3, 2, 2, 2, 1], 12),
    // Nothing at all, and nothing that is seen.
    (&[1], 1),
    (&[0, 1, 0, 0, 0, 1], 4),
    // Calls alone.
    (&[0, 0, 2, 3, 0, 1], 6),
    (&[0, 0, 2, 1, 0, 0], 4),
];

/// The tokens that an answer is said to have cost.
pub const TOKENS: u64 = 3;

/// How many characters of a continuation are held back.
const HELD: usize = 64;

/// How often providers do what: drawn anew for each seed.
pub struct Habits {
    weights: [u64; 12],
    pauses: &'static [u64],
    /// It treats every attempt of a client alike.
    is_stubborn: bool,
}

impl Habits {
    pub fn draw(dice: &mut Dice) -> Self {
        let usual = [30, 6, 6, 6, 4, 6, 6, 6, 6, 3, 3, 3];
        let pauses = dice.pick::<&[u64]>(&[
            &[0, 1, 30, 400],
            &[0, 20, 3_000, 4_500],
            &[0, 7_000, 46_000, 200],
            &[0, 0, 1],
        ]);
        Self {
            weights: usual.map(|weight| weight * dice.pick(&[0, 1, 1, 4])),
            pauses,
            is_stubborn: dice.chance(15),
        }
    }

    /// What the provider does with the send of a client's attempt.
    pub fn speech(&self, seed: u64, client: u64, attempt: u64, partial: Option<String>) -> Speech {
        let mut speech = self.speech_of(seed, client, attempt, partial.as_deref());
        // A request for the rest that is refused is not the original request refused.
        let only_this = partial.is_some() && speech.refuses_the_body;
        speech.said.is_permanent &= !only_this;
        speech.said.partial = partial;
        speech.said.place.1 += speech.said.offset();
        speech
    }

    fn speech_of(&self, seed: u64, client: u64, attempt: u64, partial: Option<&str>) -> Speech {
        let which = if self.is_stubborn { 1 } else { attempt };
        let dice = &mut Dice::of(seed, client, which);
        let fault = dice.weighted(&self.weights);
        let pause = |dice: &mut Dice| millis(dice.pick(self.pauses));
        match fault {
            1 => return Speech::of(connecting().fail(Connect, Stage::Connect)),
            2 => return Speech::of(connecting()),
            3 => return Speech::of(sent()),
            4 => {
                let kind = dice.pick(&[Reset, GoAway]);
                return Speech::of(sent().wait(pause(dice)).fail(kind, Stage::Request));
            }
            5 => return refusal(dice),
            _ => {}
        }
        let mut speech = Speech::of(stream());
        if let Some(partial) = partial {
            match dice.below(10) {
                0 | 1 => return Speech::refusing(),
                2 => speech.anew(partial),
                3 | 4 => speech.echo(partial),
                _ => speech.held = Some(0),
            }
        }
        let (kinds, most) = dice.pick(SHAPES);
        speech.kinds = kinds;
        // No two attempts begin alike, unless they begin anew anyway.
        let mark = format!("a{attempt}c{client}");
        if partial.is_none() && dice.chance(15) {
            speech.wait(pause(dice));
            speech.announce(&mark);
        }
        for word in 0..dice.below(most) {
            speech.wait(pause(dice));
            speech.word(&format!("{mark}w{word} "), dice);
        }
        match fault {
            6 => {
                speech.script = speech
                    .script
                    .fail(dice.pick(&[Reset, Truncated]), Stage::Stream)
            }
            7 => speech.script = speech.script.end(),
            8 => speech.said.falls_silent = true,
            9 => speech.raw(r#"data: {"error":{"message":"m","type":"server_error"}}"#),
            10 => speech.raw("data: {oh"),
            11 => {
                speech.raw(&chat::finish("stop"));
                speech.raw(r#"data: {"error":{"message":"m","type":"server_error"}}"#);
            }
            _ => speech.finish(pause(dice), dice),
        }
        speech
    }
}

fn refusal(dice: &mut Dice) -> Speech {
    let code = dice.pick(&[429, 429, 503, 529, 500, 401, 400]);
    let wait = dice.pick(&[None, Some(1), Some(4), Some(40), Some(2_000)]);
    let wait = wait.filter(|_| matches!(code, 429 | 503 | 529));
    let mut script = sent().wait(millis(dice.below(50)));
    if let Some(wait) = wait {
        script = script.header("retry-after", &wait.to_string());
    }
    let mut speech = Speech::of(script.head(code).end());
    speech.said.wait = wait.map(|wait| (secs(wait), code == 429));
    speech.said.is_permanent = matches!(code, 400 | 401);
    speech.said.is_limited = code == 429;
    speech.refuses_the_body = code == 400;
    speech
}

impl Speech {
    fn of(script: Script) -> Self {
        Self {
            script,
            said: Said::default(),
            idle: Duration::ZERO,
            calls: 0,
            held: None,
            refuses_the_body: false,
            kinds: SHAPES[0].0,
        }
    }

    /// It does not continue what somebody else has written.
    fn refusing() -> Self {
        let refusal = chat::error("no prefill here", "invalid_request_error", "unsupported");
        let mut speech = Speech::of(status(400).data(refusal).end());
        speech.refuses_the_body = true;
        speech
    }

    /// What it was asked to continue, once more.
    fn echo(&mut self, partial: &str) {
        self.raw(&chat::text(partial));
        self.said.place.0 = "text";
        self.held = Some(0);
    }

    /// Another answer that begins like the first one.
    fn anew(&mut self, partial: &str) {
        let length = (partial.len() - 1).min(10);
        self.raw(&chat::text(&format!("{}#", &partial[..length])));
        self.said.begins_anew = true;
        self.held = Some(0);
    }

    fn wait(&mut self, length: Duration) {
        if length.is_zero() {
            return;
        }
        self.script = std::mem::take(&mut self.script).wait(length);
        self.idle += length;
        self.said.silence = self.said.silence.max(length);
        self.said.without_output = self.said.without_output.max(self.idle);
    }

    /// What it is about to do, and perhaps does not.
    fn announce(&mut self, mark: &str) {
        let text = format!("Let me read it. {mark}w ");
        self.append("text", &text);
        self.raw(&chat::text(&text));
        self.idle = Duration::ZERO;
    }

    fn raw(&mut self, event: &str) {
        let event = format!("{}\n\n", event.trim_end());
        self.script = std::mem::take(&mut self.script).data(event);
    }

    /// Something of an answer, in one read or in two.
    fn word(&mut self, text: &str, dice: &mut Dice) {
        let event = match dice.weighted(self.kinds) {
            0 => {
                self.append("text", text);
                chat::text(text)
            }
            1 => {
                // A turn of its own, unless it is known to be a continuation.
                self.said.begins_anew |= self.held.is_some();
                self.append("reasoning", text);
                chunk(json!({ "reasoning_content": text }))
            }
            2 => {
                self.calls += 1;
                self.held = None;
                let (kind, name) = dice.pick(&[("call", "f"), ("call", "f"), ("stray call", "g")]);
                self.said.blocks.push(Block {
                    kind,
                    text: String::new(),
                });
                self.said.place = ("call", self.said.blocks.len() - 1);
                chat::tool_call(self.calls - 1, text, name)
            }
            3 if self.calls > 0 => {
                let call = dice.below(u64::from(self.calls)) as u32;
                let fragment = dice.pick(&["{}", "{\"a\":1}", "{\"a\":", "1}", "[1]"]);
                let blocks = self.said.blocks.iter_mut().enumerate();
                let mut calls = blocks.filter(|(_, block)| block.is_call());
                let (index, block) = calls.nth(call as usize).unwrap();
                block.text.push_str(fragment);
                self.said.place = ("call", index);
                chat::tool_arguments(call, fragment)
            }
            4 => {
                // Now and then more than the transport has room for.
                let long = text.repeat(dice.pick(&[40, 40, 15_000]));
                self.append("text", &long);
                chat::text(&long)
            }
            _ => {
                self.script = std::mem::take(&mut self.script).keepalive();
                return;
            }
        };
        self.idle = Duration::ZERO;
        let cut = dice.below(event.len() as u64 * 2) as usize;
        let script = std::mem::take(&mut self.script);
        self.script = match event.as_bytes().split_at_checked(cut) {
            Some((first, second)) => script.data(first.to_vec()).data(second.to_vec()),
            None => script.data(event),
        };
    }

    fn append(&mut self, kind: &'static str, text: &str) {
        if kind == "text" {
            self.held = self
                .held
                .map(|held| held + text.len())
                .filter(|held| *held < HELD);
        }
        match self.said.blocks.last_mut() {
            Some(block) if block.kind == kind => block.text.push_str(text),
            _ => self.said.blocks.push(Block {
                kind,
                text: text.to_owned(),
            }),
        }
        self.said.place = (kind, self.said.blocks.len() - 1);
    }

    /// Finish reason, usage, `[DONE]` and the end, each perhaps missing.
    fn finish(&mut self, pause: Duration, dice: &mut Dice) {
        let (reason, finish) = dice.pick(&[
            ("stop", FinishReason::Stop),
            ("stop", FinishReason::Stop),
            ("stop", FinishReason::Stop),
            ("tool_calls", FinishReason::ToolCalls),
            ("length", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
        ]);
        self.raw(&chat::finish(reason));
        self.said.is_complete = true;
        self.said.finish = Some(finish);
        self.script = std::mem::take(&mut self.script).wait(pause);
        if dice.chance(80) {
            self.said.is_counted = true;
            self.raw(&chat::usage(7, TOKENS));
        }
        if dice.chance(80) {
            self.raw(chat::DONE);
        }
        let script = std::mem::take(&mut self.script);
        self.script = match dice.below(4) {
            0 => script,
            1 => script.fail(Reset, Stage::Stream),
            _ => script.end(),
        };
    }
}
