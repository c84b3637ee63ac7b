//! What the client does to a generation, and what it is told at the end.

use std::time::Duration;

use redrive::{
    proto::{Delivery, StoppedBy, VerdictClass},
    recovery::{Event, Next, Time},
};

use super::{
    ledger,
    reader::{Claim, End, Reader},
    shared::Shared,
    world::{Access, World},
};

impl World {
    /// The client takes frames; that moves no timer of the provider.
    pub(super) fn read(&mut self, now: Time, count: usize) {
        let before = self.due();
        for _ in 0..count {
            let Next::Frame(frame) = self.generation.next_frame(now, self.rpc) else {
                break;
            };
            let reader = self.reader.as_mut().expect("a frame for nobody");
            let end = reader.take(*frame, &self.stream, &self.void, &self.attempts);
            self.landmarks.extend(reader.landmarks.drain(..));
            if let Some(end) = end {
                self.check_end(&end);
            }
            let bound = 6 + 6 * self.params.policy.max_attempts as usize;
            let control = self.reader.as_ref().map_or(0, |reader| reader.control);
            assert!(
                control <= bound,
                "promise 13: {control} control frames stood in line"
            );
        }
        if count > 0
            && !self.generation.has_frame()
            && let Some(reader) = &mut self.reader
        {
            reader.control = 0;
        }
        if self.params.client_idle.is_zero() {
            assert_eq!(self.due(), before, "promise 11: reading moved a timer");
        }
    }

    /// A client that was given up as too slow has no RPC any more.
    pub(super) fn notice_loss(&mut self, now: Time) {
        if !self.generation.has_frame()
            && self.generation.next_frame(now, self.rpc) == Next::TooSlow
        {
            self.reader = None;
        }
    }

    pub(super) fn effects(&mut self, now: Time, back: u8, commons: &Access, shared: &mut Shared) {
        self.notice_loss(now);
        let Some(reader) = self.reader.as_ref().filter(|reader| reader.sequence > 0) else {
            return;
        };
        let through = match back {
            255 => reader.sequence + 1,
            back => reader.sequence.saturating_sub(u64::from(back)).max(1),
        };
        let claim = reader.claim(through);
        let had_ended = self.generation.has_ended();
        let is_output = matches!(&claim, Claim::Output(output) if !output.is_empty());
        let is_void = matches!(&claim, Claim::Output(output) if output.iter().any(|output| {
            let version = self.versions.get(&output.block).copied().unwrap_or_default();
            self.void.contains(&output.attempt) || output.version < version
        }));
        self.claimed |= is_output;
        if !had_ended && is_output && !is_void {
            self.confirmed = true;
            self.landmarks.insert("effects confirmed");
        }
        let event = Event::Effects {
            through_sequence: through,
        };
        self.handle(now, event, commons, shared);
        if had_ended {
            return;
        }
        let stopped_by = self.generation.failed().map(|failed| failed.stopped_by());
        let expected = match claim {
            Claim::Beyond => Some(StoppedBy::Client),
            Claim::Output(_) if is_void => Some(StoppedBy::Effects),
            Claim::Output(_) => None,
        };
        assert_eq!(stopped_by, expected, "promise 6");
    }

    pub(super) fn cancel(
        &mut self,
        now: Time,
        event: Event<'_>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        self.handle(now, event, commons, shared);
        self.cancelled = true;
        assert!(self.generation.has_ended(), "promise 8: it ends at once");
    }

    pub(super) fn lose(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        let had_reader = self.reader.take().is_some();
        if had_reader {
            self.must_end = Some(now + self.params.detach_grace);
        }
        if self.params.detach_grace.is_zero() {
            self.must_end = None;
        }
        self.handle(now, Event::ClientLost, commons, shared);
        if self.params.detach_grace.is_zero() {
            assert!(
                self.generation.has_ended(),
                "promise 8: a lost client cancels"
            );
        }
    }

    pub(super) fn attach(
        &mut self,
        now: Time,
        delivery: Delivery,
        commons: &Access,
        shared: &mut Shared,
    ) {
        self.must_end = None;
        let event = Event::Attach {
            delivery,
            caller_deadline: None,
        };
        self.handle(now, event, commons, shared);
        assert_eq!(self.generation.next_frame(now, self.rpc), Next::Displaced);
        self.rpc += 1;
        self.reader = Some(Reader::new(delivery, &self.versions));
    }

    /// After everything: whoever reads to the end gets exactly one terminal frame.
    pub fn finish(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        self.cancel(now, Event::Cancel { reason: "over" }, commons, shared);
        self.attach(now, Delivery::Preview, commons, shared);
        self.read(now, usize::MAX);
        assert!(
            self.reader.as_ref().unwrap().ended,
            "promise 7: no terminal frame"
        );
        assert_eq!(self.generation.next_frame(now, self.rpc), Next::Finished);
    }

    fn check_end(&self, end: &End) {
        assert!(self.generation.has_ended());
        let ledger = match end {
            End::Committed(committed) => committed.ledger.as_ref(),
            End::Failed(failed) => {
                assert_eq!(
                    failed.safe_to_send_again, !self.claimed,
                    "safe_to_send_again"
                );
                let verdict = failed.verdict.as_ref().unwrap();
                if let Some(told) = verdict.retry_after {
                    let told = Duration::new(told.seconds as u64, told.nanos as u32);
                    let ours = verdict.class() == VerdictClass::NoTarget;
                    let known = self.supplied.contains(&told);
                    // What has room by now was noticed late.
                    let room = Some(self.ended_at + told);
                    let has_room = |until: Time| Some(until.max(self.ended_at)) == room;
                    let budgets = verdict.budget == "b"
                        && self
                            .denied
                            .values()
                            .any(|(until, _)| until.is_some_and(has_room));
                    assert!(
                        ours || known || budgets,
                        "promise 9: a wait that nobody asked for"
                    );
                }
                failed.ledger.as_ref()
            }
        };
        ledger::check(ledger.expect("a ledger"), end, &self.attempts);
    }
}
