//! What providers do with a send, and an account of what they said.

use std::time::Duration;

use serde_json::json;

use redrive::verdict::{
    Stage,
    transport::TransportKind::{Connect, GoAway, Reset, Truncated},
};

use crate::{
    dice::Dice,
    support::{Script, chat, chat::chunk, connecting, millis, secs, sent, stream},
};

/// One block of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub kind: &'static str,
    pub text: String,
}

/// What was said to one send.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub blocks: Vec<Block>,
    /// There is terminal evidence, and no error object.
    pub is_complete: bool,
    /// The longest time without a word, and without output.
    pub silence: Duration,
    pub without_output: Duration,
    /// It says nothing more in the end.
    pub falls_silent: bool,
    /// Kind and index of the block that was last added to.
    pub place: (&'static str, usize),
    /// The wait that was asked for, and whether it binds the credential (else the client).
    pub wait: Option<(Duration, bool)>,
    /// The same request must not come back.
    pub is_permanent: bool,
}

/// A script and the account of it.
#[derive(Debug)]
pub struct Speech {
    pub script: Script,
    pub said: Said,
    idle: Duration,
    calls: u32,
}

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
    pub fn speech(&self, seed: u64, client: u64, attempt: u64) -> Speech {
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
        let mark = format!("c{client}a{attempt}");
        for word in 0..dice.below(12) {
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
    let status = dice.pick(&[429, 429, 503, 529, 500, 401, 400]);
    let wait = dice.pick(&[None, Some(1), Some(4), Some(40), Some(2_000)]);
    let wait = wait.filter(|_| matches!(status, 429 | 503 | 529));
    let mut script = sent().wait(millis(dice.below(50)));
    if let Some(wait) = wait {
        script = script.header("retry-after", &wait.to_string());
    }
    let mut speech = Speech::of(script.head(status).end());
    speech.said.wait = wait.map(|wait| (secs(wait), status == 429));
    speech.said.is_permanent = matches!(status, 400 | 401);
    speech
}

impl Speech {
    fn of(script: Script) -> Self {
        Self {
            script,
            said: Said::default(),
            idle: Duration::ZERO,
            calls: 0,
        }
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

    fn raw(&mut self, event: &str) {
        let event = format!("{}\n\n", event.trim_end());
        self.script = std::mem::take(&mut self.script).data(event);
    }

    /// Something of an answer, in one read or in two.
    fn word(&mut self, text: &str, dice: &mut Dice) {
        let event = match dice.weighted(&[10, 3, 2, 2, 2, 1]) {
            0 => {
                self.append("text", text);
                chat::text(text)
            }
            1 => {
                self.append("reasoning", text);
                chunk(json!({ "reasoning_content": text }))
            }
            2 => {
                self.calls += 1;
                self.said.blocks.push(Block {
                    kind: "call",
                    text: String::new(),
                });
                self.said.place = ("call", self.said.blocks.len() - 1);
                chat::tool_call(self.calls - 1, text, "f")
            }
            3 if self.calls > 0 => {
                let call = dice.below(u64::from(self.calls)) as u32;
                let fragment = dice.pick(&["{}", "{}", "{\"a\":", "1}"]);
                let blocks = self.said.blocks.iter_mut().enumerate();
                let mut calls = blocks.filter(|(_, block)| block.kind == "call");
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
        let reason = dice.pick(&["stop", "stop", "stop", "tool_calls", "length"]);
        self.raw(&chat::finish(reason));
        self.said.is_complete = true;
        self.script = std::mem::take(&mut self.script).wait(pause);
        if dice.chance(80) {
            self.raw(&chat::usage(7, 3));
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
