//! One RPC's client, which checks every frame it is given.

use redrive::proto::{
    Committed, Delivery, Failed, GenerateResponse, delta::Content, generate_response::Frame,
};

use super::provider::{Block, Stream, blocks_of};

/// What an `effects` frame refers to, as the contract has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Beyond,
    Nothing,
    Attempt(u32),
}

/// The client of one RPC.
#[derive(Debug)]
pub struct Reader {
    pub delivery: Delivery,
    pub sequence: u64,
    /// The attempt that was last announced.
    announced: u32,
    /// The attempt whose preview the client holds.
    preview: Option<(u32, Vec<Block>)>,
    /// Sequence, attempt and whether it is a reset.
    history: Vec<(u64, u32, bool)>,
    parts: Vec<Committed>,
    /// It has had the terminal frame.
    pub ended: bool,
    /// What happened to it that a test would want to have happened.
    pub landmarks: Vec<&'static str>,
    /// Control frames since it last asked for any.
    pub control: usize,
}

impl Reader {
    pub fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            sequence: 0,
            announced: 0,
            preview: None,
            history: Vec::new(),
            parts: Vec::new(),
            ended: false,
            landmarks: Vec::new(),
            control: 0,
        }
    }

    /// Takes a frame; the terminal one is given back.
    pub fn take(
        &mut self,
        response: GenerateResponse,
        stream: &Stream,
        left_after: &[u32],
    ) -> Option<End> {
        assert!(!self.ended, "promise 7: a frame after the terminal one");
        self.sequence += 1;
        assert_eq!(response.sequence, self.sequence, "sequence");
        self.control += 1;
        match response.frame.unwrap() {
            Frame::Accepted(_) => assert_eq!(self.sequence, 1),
            Frame::Waiting(waiting) => {
                assert!(
                    waiting
                        .expected
                        .is_none_or(|wait| wait.seconds > 0 || wait.nanos > 0)
                );
            }
            Frame::AttemptStarted(started) => {
                assert!(started.attempt > self.announced);
                self.announced = started.attempt;
                let left = left_after[started.attempt as usize - 1];
                assert!(
                    started.allowance_left <= left,
                    "promise 1: the allowance that is told"
                );
            }
            Frame::Delta(delta) => {
                self.control -= 1;
                self.take_delta(delta.attempt, delta.block, delta.content.unwrap(), stream);
            }
            Frame::Progress(progress) => assert_eq!(progress.attempt, self.announced),
            Frame::PreviewReset(reset) => {
                assert_eq!(
                    self.delivery,
                    Delivery::Preview,
                    "a reset only in a preview"
                );
                self.landmarks.push("reset");
                let (voided, _) = self.preview.take().expect("a reset of nothing");
                assert_eq!(voided, reset.attempt);
                self.history.push((self.sequence, reset.attempt, true));
            }
            Frame::Committed(committed) => return self.take_committed(committed, stream),
            Frame::Failed(failed) => {
                self.ended = true;
                return Some(End::Failed(failed));
            }
        }
        None
    }

    fn take_delta(&mut self, attempt: u32, block: u32, content: Content, stream: &Stream) {
        assert_ne!(
            self.delivery,
            Delivery::CommittedOnly,
            "a delta before it is final"
        );
        assert_eq!(
            attempt, self.announced,
            "a delta before its attempt was announced"
        );
        let (previewed, blocks) = self.preview.get_or_insert_with(|| (attempt, Vec::new()));
        assert_eq!(
            *previewed, attempt,
            "promise 2: a new delta before the old are void"
        );
        let block = block as usize;
        let said = &stream.blocks[block];
        if blocks.len() <= block {
            blocks.resize(
                block + 1,
                Block {
                    kind: "",
                    text: String::new(),
                },
            );
        }
        let held = &mut blocks[block];
        held.kind = said.kind;
        match content {
            Content::Text(text)
            | Content::Reasoning(text)
            | Content::Refusal(text)
            | Content::ToolArguments(text) => {
                held.text.push_str(&text);
            }
            Content::ToolCall(_) => assert!(held.text.is_empty()),
            other => panic!("never said: {other:?}"),
        }
        assert!(
            said.text.starts_with(&held.text),
            "a delta that was not said"
        );
        self.history.push((self.sequence, attempt, false));
    }

    fn take_committed(&mut self, committed: Committed, stream: &Stream) -> Option<End> {
        if !committed.r#final && committed.part == 0 {
            assert!(committed.through_sequence < self.sequence && committed.message.is_empty());
            self.landmarks.push("effects confirmed");
            return None;
        }
        self.control -= 1;
        self.parts.push(committed);
        let last = self.parts.last().filter(|part| part.r#final)?.clone();
        self.ended = true;
        assert!(
            stream.complete,
            "promise 4: committed without terminal evidence"
        );
        let message: Vec<_> = self
            .parts
            .iter()
            .flat_map(|part| part.message.clone())
            .collect();
        self.note_commit(&last);
        let message = blocks_of(&message);
        assert_eq!(
            message,
            stream.message(),
            "promise 3: what was said, less what is withheld"
        );
        if self.delivery != Delivery::CommittedOnly {
            let (_, preview) = self.preview.take().unwrap_or_default();
            assert_eq!(
                preview, stream.blocks,
                "promise 3: what was previewed is what was said"
            );
        }
        Some(End::Committed(last))
    }

    fn note_commit(&mut self, last: &Committed) {
        self.landmarks.push("committed");
        if self.announced > 1 {
            self.landmarks.push("committed after a replay");
        }
        if !last.withheld_tool_calls.is_empty() {
            self.landmarks.push("withheld");
        }
        if !last.message.is_empty() && self.delivery == Delivery::CommittedOnly {
            self.landmarks.push("committed unseen");
        }
    }

    /// What the client means when it acts on everything up to `through`.
    pub fn claim(&self, through: u64) -> Claim {
        if through == 0 || through > self.sequence {
            return Claim::Beyond;
        }
        match self
            .history
            .iter()
            .rev()
            .find(|(sequence, ..)| *sequence <= through)
        {
            Some((_, attempt, false)) => Claim::Attempt(*attempt),
            _ => Claim::Nothing,
        }
    }
}

/// How a generation ended.
#[derive(Debug)]
pub enum End {
    Committed(Committed),
    Failed(Failed),
}
