//! What one RPC has been given, and what it is given next.
//!
//! Control frames stand in a short list; output does not queue (see `transcript`). The list is bounded
//! by the allowance: each attempt adds a handful, confirmations and progress are merged.

use std::{collections::VecDeque, time::Duration};

use super::{Time, commit::PartCursor};
use crate::proto::{Committed, Delivery, generate_response::Frame};

/// The sequence numbers at which an attempt was previewed.
#[derive(Clone, Copy, Debug)]
struct Preview {
    attempt: u32,
    first: u64,
    /// It is void, whether the client knows it or not.
    void: bool,
    /// When its reset was given, if it is void.
    reset: Option<u64>,
}

/// The sequence numbers at which a block of an attempt was previewed.
#[derive(Clone, Copy, Debug)]
struct BlockPreview {
    attempt: u32,
    block: u32,
    first: u64,
    /// It is void alone, while its attempt goes on.
    void: bool,
    /// When its reset was given, if it is void.
    reset: Option<u64>,
}

/// A control frame in line.
#[derive(Debug)]
struct Queued {
    /// Boxed: the list is mostly empty, and a frame has room for the largest.
    frame: Box<Frame>,
    /// Output of attempts below this one is given first.
    after: u32,
    /// It tells that everything before it is final.
    fixes: bool,
}

/// What an `effects` frame refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing was previewed up to there, or what was had been reset by then.
    Nothing,
    /// Output that is not void.
    Living,
    /// Output that is void, of which the client had not seen the reset.
    Void,
    /// More than was sent.
    Unsent,
}

/// One RPC's view of its generation.
#[derive(Debug)]
pub struct Client {
    /// What it wants to see.
    pub delivery: Delivery,
    control: VecDeque<Queued>,
    sequence: u64,
    previews: Vec<Preview>,
    blocks: Vec<BlockPreview>,
    /// How far it has the final message.
    pub parts: PartCursor,
    /// Whether it has the terminal frame.
    pub done: bool,
    /// Since when something waits for it.
    idle_since: Option<Time>,
}

impl Client {
    /// An RPC that has got nothing yet.
    pub fn new(delivery: Delivery) -> Self {
        let delivery = match delivery {
            Delivery::Unspecified => Delivery::Preview,
            delivery => delivery,
        };
        Self {
            delivery,
            control: VecDeque::new(),
            sequence: 0,
            previews: Vec::new(),
            blocks: Vec::new(),
            parts: PartCursor::default(),
            done: false,
            idle_since: None,
        }
    }

    /// Queues a control frame.
    pub fn push(&mut self, frame: Frame) {
        self.push_after(frame, 0);
    }

    /// Queues a control frame that is given behind all output of attempts below `after`. A wait that was
    /// prolonged before the client saw it is told once.
    pub fn push_after(&mut self, frame: Frame, after: u32) {
        let last = self.control.back_mut().map(|queued| queued.frame.as_mut());
        if let (Frame::Waiting(new), Some(Frame::Waiting(old))) = (&frame, last)
            && old.reason == new.reason
        {
            old.clone_from(new);
            return;
        }
        self.control.push_back(Queued {
            frame: Box::new(frame),
            after,
            fixes: false,
        });
    }

    /// Queues the word that all output of attempts below `attempt` is final; it is given behind it.
    pub fn fix(&mut self, attempt: u32) {
        self.push_after(Frame::Committed(Committed::default()), attempt);
        if let Some(queued) = self.control.back_mut() {
            queued.fixes = true;
        }
    }

    /// The output of `attempt` and later ones is void: those that were previewed, in order.
    pub fn void_from(&mut self, attempt: u32) -> Vec<u32> {
        // Blocks that were void before have resets of their own.
        self.blocks
            .retain(|block| block.void || block.attempt < attempt);
        let mut voided = Vec::new();
        for preview in &mut self.previews {
            if preview.attempt >= attempt && !std::mem::replace(&mut preview.void, true) {
                voided.push(preview.attempt);
            }
        }
        voided
    }

    /// What was previewed of `block` is void, in whichever attempts it was.
    pub fn void_block(&mut self, block: u32) -> Vec<u32> {
        let living = |preview: &&mut BlockPreview| preview.block == block && !preview.void;
        let mut voided = Vec::new();
        for preview in self.blocks.iter_mut().filter(living) {
            preview.void = true;
            voided.push(preview.attempt);
        }
        voided
    }

    /// Whether it holds output of `attempt` or later ones that is not void.
    pub fn has_preview_from(&self, attempt: u32) -> bool {
        let living = |preview: &Preview| preview.attempt >= attempt && !preview.void;
        self.previews.iter().any(living)
    }

    /// Queues a confirmation of effects, or widens the one that is queued.
    pub fn confirm(&mut self, through_sequence: u64) {
        for queued in &mut self.control {
            if let Frame::Committed(committed) = queued.frame.as_mut()
                && !committed.r#final
            {
                committed.through_sequence = committed.through_sequence.max(through_sequence);
                return;
            }
        }
        self.push(Frame::Committed(Committed {
            through_sequence,
            ..Committed::default()
        }));
    }

    /// The next control frame.
    pub fn pop(&mut self) -> Option<Frame> {
        let queued = self.control.pop_front()?;
        let mut frame = *queued.frame;
        if let (true, Frame::Committed(committed)) = (queued.fixes, &mut frame) {
            committed.through_sequence = self.sequence;
        }
        Some(frame)
    }

    /// Output of attempts below this one comes before the next control frame.
    pub fn output_first(&self) -> u32 {
        let next = self.control.front().filter(|_| self.wants_deltas());
        next.map_or(0, |queued| queued.after)
    }

    /// Whether control frames wait for it.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Whether it is given deltas.
    pub fn wants_deltas(&self) -> bool {
        self.delivery != Delivery::CommittedOnly
    }

    /// Gives the next frame its number and remembers what it showed.
    pub fn number(&mut self, frame: &Frame) -> u64 {
        self.sequence += 1;
        match frame {
            Frame::Delta(delta) => {
                let known = self.previews.last().map(|preview| preview.attempt);
                if known != Some(delta.attempt) {
                    self.previews.push(Preview {
                        attempt: delta.attempt,
                        first: self.sequence,
                        void: false,
                        reset: None,
                    });
                }
                self.note_block(delta.attempt, delta.block);
            }
            Frame::PreviewReset(reset) if reset.blocks.is_empty() => {
                for preview in &mut self.previews {
                    if preview.attempt == reset.attempt {
                        preview.reset = Some(self.sequence);
                    }
                }
            }
            Frame::PreviewReset(reset) => {
                for preview in &mut self.blocks {
                    let named = preview.void && reset.blocks.contains(&preview.block);
                    if named && preview.attempt == reset.attempt {
                        preview.reset.get_or_insert(self.sequence);
                    }
                }
            }
            _ => {}
        }
        self.sequence
    }

    fn note_block(&mut self, attempt: u32, block: u32) {
        let same = |preview: &BlockPreview| {
            preview.attempt == attempt && preview.block == block && !preview.void
        };
        // The newest block is nearly always the one that is given.
        if !self.blocks.iter().rev().any(same) {
            self.blocks.push(BlockPreview {
                attempt,
                block,
                first: self.sequence,
                void: false,
                reset: None,
            });
        }
    }

    /// What the client acted on, if it acted on everything up to `through_sequence`.
    pub fn claim(&self, through_sequence: u64) -> Claim {
        if through_sequence == 0 || through_sequence > self.sequence {
            return Claim::Unsent;
        }
        let seen = |p: &&Preview| {
            p.first <= through_sequence && p.reset.is_none_or(|reset| through_sequence < reset)
        };
        let acted_on_void = self.blocks.iter().any(|block| {
            let seen = block.reset.is_none_or(|reset| through_sequence < reset);
            block.void && block.first <= through_sequence && seen
        });
        if acted_on_void {
            return Claim::Void;
        }
        let acted_on = self
            .previews
            .iter()
            .filter(seen)
            .map(|preview| preview.void);
        match acted_on.reduce(|any, void| any | void) {
            None => Claim::Nothing,
            Some(true) => Claim::Void,
            Some(false) => Claim::Living,
        }
    }

    /// Notes whether something waits for the client.
    pub fn note_pending(&mut self, now: Time, pending: bool) {
        match (pending, self.idle_since) {
            (true, None) => self.idle_since = Some(now),
            (false, Some(_)) => self.idle_since = None,
            _ => {}
        }
    }

    /// The client took a frame.
    pub fn took(&mut self, now: Time) {
        if self.idle_since.is_some() {
            self.idle_since = Some(now);
        }
    }

    /// When a client that takes nothing is given up, if something waits for it.
    pub fn idle_deadline(&self, client_idle: Duration) -> Option<Time> {
        if client_idle.is_zero() {
            None
        } else {
            self.idle_since.map(|since| since + client_idle)
        }
    }
}
