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
    /// When its reset was given, if it is void.
    reset: Option<u64>,
}

/// What an `effects` frame refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing was previewed up to there, or what was had been reset by then.
    Nothing,
    /// Output of this attempt, whose reset the client had not seen.
    Attempt(u32),
    /// More than was sent.
    Unsent,
}

/// One RPC's view of its generation.
#[derive(Debug)]
pub struct Client {
    /// What it wants to see.
    pub delivery: Delivery,
    /// Boxed: the list is mostly empty, and a frame has room for the largest.
    control: VecDeque<Box<Frame>>,
    sequence: u64,
    previews: Vec<Preview>,
    /// Whether the current attempt was previewed to it.
    pub previewed: bool,
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
            previewed: false,
            parts: PartCursor::default(),
            done: false,
            idle_since: None,
        }
    }

    /// Queues a control frame. A wait that was prolonged before the client saw it is told once.
    pub fn push(&mut self, frame: Frame) {
        let last = self.control.back_mut().map(Box::as_mut);
        if let (Frame::Waiting(new), Some(Frame::Waiting(old))) = (&frame, last)
            && old.reason == new.reason
        {
            old.clone_from(new);
            return;
        }
        self.control.push_back(Box::new(frame));
    }

    /// Queues a confirmation of effects, or widens the one that is queued.
    pub fn confirm(&mut self, through_sequence: u64) {
        for frame in &mut self.control {
            if let Frame::Committed(committed) = frame.as_mut()
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
        self.control.pop_front().map(|frame| *frame)
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
                self.previewed = true;
                if self
                    .previews
                    .last()
                    .is_none_or(|p| p.attempt != delta.attempt)
                {
                    let first = self.sequence;
                    self.previews.push(Preview {
                        attempt: delta.attempt,
                        first,
                        reset: None,
                    });
                }
            }
            Frame::PreviewReset(reset) => {
                for preview in &mut self.previews {
                    if preview.attempt == reset.attempt {
                        preview.reset = Some(self.sequence);
                    }
                }
            }
            _ => {}
        }
        self.sequence
    }

    /// What the client acted on, if it acted on everything up to `through_sequence`.
    pub fn claim(&self, through_sequence: u64) -> Claim {
        if through_sequence == 0 || through_sequence > self.sequence {
            return Claim::Unsent;
        }
        let newest = self
            .previews
            .iter()
            .rev()
            .find(|p| p.first <= through_sequence);
        match newest {
            Some(preview) if preview.reset.is_none_or(|reset| through_sequence < reset) => {
                Claim::Attempt(preview.attempt)
            }
            _ => Claim::Nothing,
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
