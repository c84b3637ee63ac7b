//! What one RPC has been given, and what it is given next.
//!
//! Control frames stand in a short list; output does not queue (see `transcript`). The list is bounded
//! by the allowance: each attempt adds a handful, confirmations and progress are merged.

use std::{collections::VecDeque, time::Duration};

use super::{Time, commit::PartCursor};
use crate::proto::{
    Committed, Delivery, delta::Content, generate_response::Frame, waiting::Reason,
};

/// What was shown of one block of an attempt, or of its native events.
#[derive(Clone, Copy, Debug)]
struct Shown {
    attempt: u32,
    /// `None`: native events.
    block: Option<u32>,
    /// The sequence number of the first delta.
    first: u64,
    /// It is void, whether the client knows it or not.
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
    shown: Vec<Shown>,
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
            shown: Vec::new(),
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
            && (old.reason == new.reason || old.reason() != Reason::Backoff)
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

    /// The output of `attempt` and later ones is void: those of which some was shown, in order.
    pub fn void_from(&mut self, attempt: u32) -> Vec<u32> {
        self.void(|shown| shown.attempt >= attempt)
    }

    /// What was shown of `block` is void: the attempts of which it was.
    pub fn void_block(&mut self, block: u32) -> Vec<u32> {
        self.void(|shown| shown.block == Some(block))
    }

    fn void(&mut self, which: impl Fn(&Shown) -> bool) -> Vec<u32> {
        let mut voided = Vec::new();
        for shown in &mut self.shown {
            if which(shown) && !std::mem::replace(&mut shown.void, true) {
                voided.push(shown.attempt);
            }
        }
        voided.sort_unstable();
        voided.dedup();
        voided
    }

    /// Whether it holds output of `attempt` or later ones that is not void.
    pub fn has_preview_from(&self, attempt: u32) -> bool {
        let living = |shown: &Shown| shown.attempt >= attempt && !shown.void;
        self.shown.iter().any(living)
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
                let native = matches!(delta.content, Some(Content::NativeEvent(_)));
                self.note(delta.attempt, (!native).then_some(delta.block));
            }
            Frame::PreviewReset(reset) => {
                for shown in &mut self.shown {
                    let named = reset.blocks.is_empty()
                        || shown
                            .block
                            .is_some_and(|block| reset.blocks.contains(&block));
                    if shown.void && named && shown.attempt == reset.attempt {
                        shown.reset.get_or_insert(self.sequence);
                    }
                }
            }
            _ => {}
        }
        self.sequence
    }

    fn note(&mut self, attempt: u32, block: Option<u32>) {
        let known = |shown: &Shown| shown.attempt == attempt && shown.block == block && !shown.void;
        // The newest block is nearly always the one that is given.
        if !self.shown.iter().rev().any(known) {
            self.shown.push(Shown {
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
        let seen = |shown: &&Shown| {
            let known = shown.reset.is_some_and(|reset| through_sequence >= reset);
            shown.first <= through_sequence && !known
        };
        let acted_on = self.shown.iter().filter(seen).map(|shown| shown.void);
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
