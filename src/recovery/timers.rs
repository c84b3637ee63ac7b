//! The timers of one attempt: what is armed, since when, and what its expiry says.
//!
//! Nothing is scheduled per token: an attempt keeps the times of its last events, and the next expiry
//! is computed when the driver asks for it.
//!
//! | timer | armed from | reset by |
//! |---|---|---|
//! | connect | dispatch | - |
//! | first_token | hand-over of the request | - |
//! | inter_delta | first substantive event | any event |
//! | open_block | in place of inter_delta while a tool call or reasoning is open | any event |
//! | no_progress | first substantive event | substantive events |
//! | tail | finish reason, in place of all others | content; [`TAIL_CAP`] in all |

use std::{fmt, time::Duration};

use super::{Time, settings::Timers};

/// The longest time after the finish reason, however much content still comes. Fixed.
pub const TAIL_CAP: Duration = Duration::from_secs(10);

/// A timer of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// TCP and TLS.
    Connect,
    /// Until the first substantive event.
    FirstToken,
    /// Silence between events.
    InterDelta,
    /// Silence while a tool call or reasoning block is open.
    OpenBlock,
    /// Only keepalives.
    NoProgress,
    /// After the finish reason.
    Tail,
}

impl Timer {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Timer::Connect => "connect",
            Timer::FirstToken => "first_token",
            Timer::InterDelta => "inter_delta",
            Timer::OpenBlock => "open_block",
            Timer::NoProgress => "no_progress",
            Timer::Tail => "tail",
        }
    }
}

impl fmt::Display for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where in its response an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No substantive event yet.
    BeforeFirstToken,
    /// In text or a refusal.
    Text,
    /// In reasoning.
    Reasoning,
    /// In a tool call.
    ToolArguments,
    /// The finish reason has come.
    AfterFinish,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::BeforeFirstToken => "before the first token",
            Phase::Text => "in text",
            Phase::Reasoning => "in reasoning",
            Phase::ToolArguments => "in tool arguments",
            Phase::AfterFinish => "after the finish reason",
        })
    }
}

/// The last thing that was heard of the provider, for the message of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastEvent {
    /// Nothing at all.
    Nothing,
    /// The response head.
    Head,
    /// A keepalive.
    Keepalive,
    /// Output.
    Delta,
    /// Token counts.
    Usage,
}

impl fmt::Display for LastEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LastEvent::Nothing => "none",
            LastEvent::Head => "the response head",
            LastEvent::Keepalive => "a keepalive",
            LastEvent::Delta => "a delta",
            LastEvent::Usage => "a usage count",
        })
    }
}

/// The clockwork of one attempt.
#[derive(Clone, Debug)]
pub struct Clockwork {
    timers: Timers,
    /// Stall windows are this many times as long (1 or 2).
    factor: u32,
    dispatched: Time,
    sent: Option<Time>,
    last_event: Time,
    last_substantive: Option<Time>,
    finished: Option<Time>,
    last_content: Time,
    heard: LastEvent,
    /// Where in its response the attempt stands.
    pub phase: Phase,
    /// Whether a tool call or reasoning block is open, where the protocol says; else the phase tells.
    pub open_block: Option<bool>,
}

impl Clockwork {
    /// An attempt is dispatched; `factor` lengthens its stall windows.
    pub fn dispatched(now: Time, timers: Timers, factor: u32) -> Self {
        Self {
            timers,
            factor,
            dispatched: now,
            sent: None,
            last_event: now,
            last_substantive: None,
            finished: None,
            last_content: now,
            heard: LastEvent::Nothing,
            phase: Phase::BeforeFirstToken,
            open_block: None,
        }
    }

    /// The request was handed over.
    pub fn sent(&mut self, now: Time) {
        self.sent.get_or_insert(now);
        self.last_event = now;
    }

    /// It was not after all.
    pub fn stayed(&mut self) {
        self.sent = None;
    }

    /// The response head came, which proves the hand-over if that was not told.
    pub fn head(&mut self, now: Time) {
        self.sent(now);
        self.event(now, LastEvent::Head, false);
    }

    /// Something came that is not output. Only `content` lengthens the tail.
    pub fn event(&mut self, now: Time, heard: LastEvent, content: bool) {
        self.last_event = now;
        self.heard = heard;
        if content {
            self.last_content = now;
        }
    }

    /// Output came; `true` if it is the attempt's first.
    pub fn substantive(&mut self, now: Time, phase: Phase) -> bool {
        self.event(now, LastEvent::Delta, true);
        if self.phase != Phase::AfterFinish {
            self.phase = phase;
        }
        self.last_substantive.replace(now).is_none()
    }

    /// The finish reason came, and is not enough: an end from here on is a late one, and silence is
    /// still a stall.
    pub fn finishing(&mut self, now: Time) {
        self.event(now, LastEvent::Keepalive, true);
        self.phase = Phase::AfterFinish;
    }

    /// The finish reason came, and the response is complete.
    pub fn finish(&mut self, now: Time) {
        self.event(now, LastEvent::Delta, true);
        self.finished.get_or_insert(now);
        self.phase = Phase::AfterFinish;
    }

    /// When the provider was last heard with output, or the request went out: since then it is silent.
    pub fn silent_since(&self) -> Time {
        self.last_substantive
            .or(self.sent)
            .unwrap_or(self.dispatched)
    }

    /// What fires next, and when. At most one timer is the next one; off timers never are.
    pub fn next(&self) -> Option<(Time, Timer)> {
        let armed = |from: Time, length: Duration, timer: Timer| {
            (!length.is_zero()).then(|| (from + length, timer))
        };
        let Some(sent) = self.sent else {
            return armed(self.dispatched, self.timers.connect, Timer::Connect);
        };
        if let Some(finished) = self.finished {
            let due = (self.last_content + self.timers.tail).min(finished + TAIL_CAP);
            return Some((due, Timer::Tail));
        }
        let Some(progress) = self.last_substantive else {
            return armed(sent, self.timers.first_token, Timer::FirstToken);
        };
        let (silence, timer) = self.silence_timer();
        let silence = armed(self.last_event, silence.saturating_mul(self.factor), timer);
        let no_progress = self.timers.no_progress.saturating_mul(self.factor);
        let no_progress = armed(progress, no_progress, Timer::NoProgress);
        match (silence, no_progress) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// How long `timer` is in this attempt.
    pub fn length(&self, timer: Timer) -> Duration {
        match timer {
            Timer::Connect => self.timers.connect,
            Timer::FirstToken => self.timers.first_token,
            Timer::InterDelta => self.timers.inter_delta.saturating_mul(self.factor),
            Timer::OpenBlock => self.timers.open_block.saturating_mul(self.factor),
            Timer::NoProgress => self.timers.no_progress.saturating_mul(self.factor),
            Timer::Tail => self.timers.tail,
        }
    }

    /// What the expiry of `timer` says: its name and length, the phase and the last event.
    pub fn explain(&self, timer: Timer) -> String {
        let (length, phase, heard) = (self.length(timer), self.phase, self.heard);
        format!(
            "redrive ended the attempt: timer {timer} ({length:?}) ran out {phase}, \
             last event: {heard}"
        )
    }

    fn silence_timer(&self) -> (Duration, Timer) {
        let by_phase = matches!(self.phase, Phase::Reasoning | Phase::ToolArguments);
        if self.open_block.unwrap_or(by_phase) {
            (self.timers.open_block, Timer::OpenBlock)
        } else {
            (self.timers.inter_delta, Timer::InterDelta)
        }
    }
}
