//! What ready-made scripts say, in whichever protocol: the steps `{"say": …}` of their files.
//!
//! A script says one answer: text, or one tool call. How a protocol puts that is a [`Voice`], one file
//! for each.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::{Op, Protocol, Script, chat::Chat, messages::Messages, responses::Responses};

/// The name of the one tool that is called.
pub(super) const TOOL: &str = "lookup";

/// The tokens of every prompt.
pub(super) const PROMPT: usize = 12;

/// One thing to say.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// A response begins.
    Begin,
    /// A piece of text.
    Text(String),
    /// A tool call begins.
    Call,
    /// A piece of its arguments.
    Arguments(String),
    /// The model has stopped of itself, and all was said.
    Finish,
    /// The model was stopped by the output limit.
    Limit,
    /// What follows a finish.
    Tail,
    /// The mark at the end of a stream, whatever came before.
    Done,
    /// An error inside the stream.
    Fail(Failure),
    /// The body of an error response.
    Refuse(Failure),
    /// The body of a response that was not streamed, with this text.
    Whole(String),
    /// An event that breaks off inside its JSON.
    Broken,
    /// One event that goes on for so many bytes and has no end.
    Huge(u64),
    /// Signs of life, so many, at this distance.
    Keepalives { every_ms: u64, times: u64 },
}

/// What went wrong.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Failure {
    Key,
    Model,
    RateLimit,
    Quota,
    Internal,
    Overloaded,
    Context,
    Filter,
    /// There is no script for the request.
    NoScript,
}

/// What has been said of the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) block: Block,
    /// Pieces, and with them tokens, of output.
    pub(super) pieces: usize,
}

/// What the answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Block {
    #[default]
    Nothing,
    Text(String),
    /// A tool call with these arguments.
    Call(String),
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Itself,
    Limit,
}

/// How one protocol says it. Each string is one event, or several that come in one write.
pub(super) trait Voice {
    /// The response begins.
    fn begin(&mut self) -> String;
    /// A piece of text, which is the end of what was `said`; the first one opens it.
    fn text(&mut self, piece: &str, said: &Said) -> String;
    /// A tool call begins.
    fn call(&mut self) -> String;
    /// A piece of its arguments.
    fn arguments(&mut self, piece: &str) -> String;
    /// The answer is over, up to what says why.
    fn finish(&mut self, stop: Stop, said: &Said) -> Vec<String>;
    /// What follows that.
    fn tail(&mut self, said: &Said) -> Vec<String>;
    /// The mark at the end of a stream.
    fn done(&mut self) -> String;
    /// An error inside the stream.
    fn fail(&mut self, failure: Failure) -> Vec<String>;
    /// The body of an error response.
    fn refuse(&self, failure: Failure) -> Value;
    /// A response that was not streamed.
    fn whole(&self, said: &Said) -> Value;
    /// The beginning of an event of text, up to where the text would stand.
    fn half(&mut self) -> String;
    /// A sign of life.
    fn keepalive(&self) -> String {
        ": keep-alive\n\n".to_owned()
    }
}

/// Says the words of one script.
pub(super) struct Speaker {
    voice: Box<dyn Voice>,
    said: Said,
    /// The name of the step that is one write: `chunk`, among frames of HTTP/2 `data`.
    write: &'static str,
}

impl Speaker {
    pub(super) fn new(protocol: Protocol, write: &'static str) -> Self {
        Self {
            voice: voice(protocol),
            said: Said::default(),
            write,
        }
    }

    /// The steps of a script file that say `word`, in JSON.
    pub(super) fn steps(&mut self, word: Word) -> Vec<String> {
        let voice = &mut self.voice;
        let writes = match word {
            Word::Begin => vec![voice.begin()],
            Word::Text(piece) => {
                self.said.text(&piece);
                vec![voice.text(&piece, &self.said)]
            }
            Word::Call => {
                self.said.arguments("");
                vec![voice.call()]
            }
            Word::Arguments(piece) => {
                self.said.arguments(&piece);
                vec![voice.arguments(&piece)]
            }
            Word::Finish => voice.finish(Stop::Itself, &self.said),
            Word::Limit => voice.finish(Stop::Limit, &self.said),
            Word::Tail => voice.tail(&self.said),
            Word::Done => vec![voice.done()],
            Word::Fail(failure) => voice.fail(failure),
            Word::Refuse(failure) => vec![voice.refuse(failure).to_string()],
            Word::Whole(text) => {
                self.said.text(&text);
                vec![voice.whole(&self.said).to_string()]
            }
            Word::Broken => vec![voice.half() + "\n\n"],
            Word::Huge(bytes) => {
                let before = Value::from(voice.half());
                let fill = format!(r#"{{"before": {before}, "byte": "x", "count": {bytes}}}"#);
                return vec![format!(r#"{{"fill": {fill}}}"#)];
            }
            Word::Keepalives { every_ms, times } => {
                let chunk = Value::from(voice.keepalive());
                let grid = format!(r#""every_ms": {every_ms}, "times": {times}"#);
                return vec![format!(r#"{{"repeat": {{"chunk": {chunk}, {grid}}}}}"#)];
            }
        };
        let step = |text| format!(r#"{{"{}": {}}}"#, self.write, Value::from(text));
        writes.into_iter().map(step).collect()
    }
}

impl Said {
    fn text(&mut self, piece: &str) {
        self.pieces += 1;
        match &mut self.block {
            Block::Text(text) => text.push_str(piece),
            block => *block = Block::Text(piece.to_owned()),
        }
    }

    fn arguments(&mut self, piece: &str) {
        self.pieces += 1;
        match &mut self.block {
            Block::Call(arguments) => arguments.push_str(piece),
            block => *block = Block::Call(piece.to_owned()),
        }
    }

    /// The piece that was said last was the first.
    pub(super) fn is_first(&self) -> bool {
        self.pieces == 1
    }
}

/// The answer to a request that no script is for.
pub(super) fn no_script(protocol: Protocol) -> Script {
    let body = voice(protocol).refuse(Failure::NoScript).to_string();
    Script::new(400, "application/json").then(Op::Write(Bytes::from(body)))
}

fn voice(protocol: Protocol) -> Box<dyn Voice> {
    match protocol {
        Protocol::OpenaiChat => Box::new(Chat),
        Protocol::OpenaiResponses => Box::new(Responses::default()),
        Protocol::AnthropicMessages => Box::new(Messages),
    }
}

/// An event that has a name besides its data, which is the `type` of the data.
pub(super) fn named_event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
