//! One RPC's client, which checks every frame it is given.

use redrive::proto::{
    Committed, Delivery, Failed, GenerateResponse, Mode, committed::Flag, delta::Content,
    generate_response::Frame,
};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    ledger::Attempt,
    provider::{Block, Stream, blocks_of, called},
};

/// What an `effects` frame refers to, as the contract has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Beyond,
    /// This output; none: of nothing.
    Output(BTreeSet<Output>),
}

/// A block of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Output {
    pub attempt: u32,
    pub block: usize,
    /// How often the block had been reset alone before.
    pub version: u32,
}

/// What was shown or taken back.
#[derive(Clone, Copy, Debug)]
enum Event {
    Shown(Output),
    Reset { attempt: u32, block: Option<usize> },
}

#[derive(Debug)]
struct Piece {
    sequence: u64,
    attempt: u32,
    text: String,
}

/// The client of one RPC.
#[derive(Debug)]
pub struct Reader {
    pub delivery: Delivery,
    pub sequence: u64,
    /// The attempt that was last announced.
    announced: u32,
    /// What the client holds: the pieces of each block, with the attempt and the sequence of each.
    preview: BTreeMap<usize, Vec<Piece>>,
    history: Vec<(u64, Event)>,
    /// How often each block was reset alone.
    versions: HashMap<usize, u32>,
    /// Everything it holds up to this sequence is final.
    final_through: u64,
    parts: Vec<Committed>,
    /// It has had the terminal frame.
    pub ended: bool,
    /// What happened to it that a test would want to have happened.
    pub landmarks: Vec<&'static str>,
    /// Control frames since it last asked for any.
    pub control: usize,
}

impl Reader {
    pub fn new(delivery: Delivery, versions: &HashMap<usize, u32>) -> Self {
        Self {
            delivery,
            sequence: 0,
            announced: 0,
            preview: BTreeMap::new(),
            history: Vec::new(),
            versions: versions.clone(),
            final_through: 0,
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
        void: &BTreeSet<u32>,
        attempts: &[Attempt],
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
                let known = &attempts[started.attempt as usize - 1];
                assert!(
                    started.allowance_left <= known.left,
                    "promise 1: the allowance that is told"
                );
                assert_eq!(started.mode(), known.mode, "the mode that is told");
                let begins = !matches!(known.mode, Mode::Continue | Mode::Resume);
                assert!(
                    !begins || self.preview.is_empty(),
                    "promise 2: an attempt begins before what was shown is void"
                );
            }
            Frame::Delta(delta) => {
                self.control -= 1;
                self.take_delta(delta.attempt, delta.block, delta.content.unwrap(), stream);
                let held = self.preview.values().flatten();
                let voided = held.filter(|piece| void.contains(&piece.attempt)).count();
                assert_eq!(voided, 0, "promise 2: a new delta before the old are void");
            }
            Frame::Progress(progress) => assert_eq!(progress.attempt, self.announced),
            Frame::PreviewReset(reset) => {
                assert_eq!(
                    self.delivery,
                    Delivery::Preview,
                    "a reset only in a preview"
                );
                self.landmarks.push("reset");
                let attempt = reset.attempt;
                match reset.blocks.as_slice() {
                    [] => self.take_reset(attempt, None),
                    [block] => self.take_reset(attempt, Some(*block as usize)),
                    other => panic!("several blocks at once: {other:?}"),
                }
            }
            Frame::Committed(committed) => return self.take_committed(committed, stream),
            Frame::Failed(failed) => {
                self.ended = true;
                return Some(End::Failed(failed));
            }
        }
        None
    }

    /// Whether it was given more of a block than that there is one, of the `version` that stands. What
    /// `void` attempts gave it, or an earlier version, and whose reset it has not read yet, is another
    /// block.
    pub fn holds_text_of(&self, block: usize, version: u32, void: &BTreeSet<u32>) -> bool {
        if self.versions.get(&block).copied().unwrap_or_default() != version {
            return false;
        }
        let mut pieces = self.preview.get(&block).into_iter().flatten();
        pieces.any(|piece| !void.contains(&piece.attempt) && !piece.text.is_empty())
    }

    /// Whether it was given anything that is not void, neither with its attempt nor alone.
    pub fn holds_output(&self, versions: &HashMap<usize, u32>, void: &BTreeSet<u32>) -> bool {
        let stands = |block: &usize| self.versions.get(block) == versions.get(block);
        let blocks = self.preview.iter().filter(|(block, _)| stands(block));
        let mut pieces = blocks.flat_map(|(_, pieces)| pieces);
        pieces.any(|piece| !void.contains(&piece.attempt))
    }

    fn take_reset(&mut self, attempt: u32, only: Option<usize>) {
        let mut voided = 0;
        for (block, pieces) in &mut self.preview {
            pieces.retain(|piece| {
                let named = only.is_none_or(|only| only == *block);
                let is_void = piece.attempt == attempt && named;
                let is_final = piece.sequence <= self.final_through;
                assert!(!is_void || !is_final, "promise 3: final output is void");
                voided += usize::from(is_void);
                !is_void
            });
        }
        self.preview.retain(|_, pieces| !pieces.is_empty());
        assert!(voided > 0, "a reset of nothing");
        if let Some(block) = only.filter(|block| !self.preview.contains_key(block)) {
            *self.versions.entry(block).or_default() += 1;
            self.landmarks.push("a block reset");
        }
        let reset = Event::Reset {
            attempt,
            block: only,
        };
        self.history.push((self.sequence, reset));
    }

    fn take_delta(&mut self, attempt: u32, block: u32, content: Content, stream: &Stream) {
        assert_ne!(
            self.delivery,
            Delivery::CommittedOnly,
            "a delta before it is final"
        );
        assert!(
            attempt <= self.announced,
            "a delta before its attempt was announced"
        );
        let block = block as usize;
        let said = stream.blocks.get(block).expect("a block that was not said");
        assert_eq!(attempt, stream.of[block], "a delta of another attempt");
        let held = self.preview.entry(block).or_default();
        let text = match content {
            Content::Text(text)
            | Content::Reasoning(text)
            | Content::Refusal(text)
            | Content::ToolArguments(text) => text,
            Content::ToolCall(_) => {
                assert!(held.is_empty());
                String::new()
            }
            other => panic!("never said: {other:?}"),
        };
        held.push(Piece {
            sequence: self.sequence,
            attempt,
            text,
        });
        let held: String = held.iter().map(|piece| &*piece.text).collect();
        assert!(said.text.starts_with(&held), "a delta that was not said");
        let version = self.versions.get(&block).copied().unwrap_or_default();
        let shown = Output {
            attempt,
            block,
            version,
        };
        self.history.push((self.sequence, Event::Shown(shown)));
    }

    fn take_committed(&mut self, committed: Committed, stream: &Stream) -> Option<End> {
        if !committed.r#final && committed.part == 0 {
            assert!(committed.through_sequence < self.sequence && committed.message.is_empty());
            self.final_through = self.final_through.max(committed.through_sequence);
            self.landmarks.push("told what is final");
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
        assert_eq!(
            last.flags.contains(&(Flag::SnapshotMismatch as i32)),
            !stream.differs.is_empty(),
            "a snapshot that differs is told"
        );
        let withheld: Vec<Block> = last.withheld_tool_calls.iter().map(called).collect();
        assert_eq!(withheld, stream.withheld(), "the calls that are withheld");
        assert_eq!(
            last.flags.contains(&(Flag::ToolCallsWithheld as i32)),
            !withheld.is_empty(),
            "that calls are withheld is told"
        );
        let suppressed = last.flags.contains(&(Flag::ContentSuppressed as i32));
        assert!(!suppressed, "there is no text that a gate could mind");
        let message = blocks_of(&message);
        assert_eq!(
            message,
            stream.message(),
            "promise 3: what was said, less what is withheld"
        );
        if self.delivery != Delivery::CommittedOnly {
            let held = std::mem::take(&mut self.preview);
            let text = |pieces: Vec<Piece>| pieces.into_iter().map(|piece| piece.text).collect();
            let held: Vec<String> = held.into_values().map(text).collect();
            let said: Vec<String> = stream
                .blocks
                .iter()
                .map(|block| block.text.clone())
                .collect();
            assert_eq!(held, said, "promise 3: what was previewed is what was said");
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
        let mut output = BTreeSet::new();
        for (_, event) in self.history.iter().filter(|(at, _)| *at <= through) {
            match event {
                Event::Shown(shown) => {
                    output.insert(*shown);
                }
                Event::Reset { attempt, block } => output.retain(|shown: &Output| {
                    let named = block.is_none_or(|block| block == shown.block);
                    shown.attempt != *attempt || !named
                }),
            }
        }
        Claim::Output(output)
    }
}

/// How a generation ended.
#[derive(Debug)]
pub enum End {
    Committed(Committed),
    Failed(Failed),
}
