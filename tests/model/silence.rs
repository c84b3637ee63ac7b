//! Since when the provider of an attempt is silent, and when that is too long.

use std::time::Duration;

use redrive::recovery::{Time, settings::Timers};

/// After the finish reason nothing is waited for longer than this.
const TAIL_CAP: Duration = Duration::from_secs(10);

/// The times of one attempt.
#[derive(Debug)]
pub struct Silence {
    timers: Timers,
    factor: u32,
    dispatched: Time,
    sent: Option<Time>,
    event: Time,
    token: Option<Time>,
    content: Time,
    finished: Option<Time>,
    inside_a_block: bool,
}

impl Silence {
    pub fn dispatched(now: Time, timers: Timers, doubled: bool) -> Self {
        Self {
            timers,
            factor: if doubled { 2 } else { 1 },
            dispatched: now,
            sent: None,
            event: now,
            token: None,
            content: now,
            finished: None,
            inside_a_block: false,
        }
    }

    pub fn sent(&mut self, now: Time) {
        self.sent.get_or_insert(now);
    }

    /// Anything at all came; `content`: not merely a comment.
    pub fn event(&mut self, now: Time, content: bool) {
        self.event = now;
        if content {
            self.content = now;
        }
    }

    /// Output came.
    pub fn token(&mut self, now: Time, inside_a_block: bool) {
        self.event(now, true);
        self.token = Some(now);
        self.inside_a_block = inside_a_block;
    }

    pub fn finished(&mut self, now: Time) {
        self.event(now, true);
        self.finished.get_or_insert(now);
    }

    /// When the silence is too long; never, where the timer is off.
    pub fn due(&self) -> Option<Time> {
        let after = |since: Time, length: Duration| (!length.is_zero()).then(|| since + length);
        let Some(sent) = self.sent else {
            return after(self.dispatched, self.timers.connect);
        };
        if let Some(finished) = self.finished {
            return Some((self.content + self.timers.tail).min(finished + TAIL_CAP));
        }
        let Some(token) = self.token else {
            return after(sent, self.timers.first_token);
        };
        let silence = if self.inside_a_block {
            self.timers.open_block
        } else {
            self.timers.inter_delta
        };
        let silent = after(self.event, silence * self.factor);
        let idle = after(token, self.timers.no_progress * self.factor);
        [silent, idle].into_iter().flatten().min()
    }
}
