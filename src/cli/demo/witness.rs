//! Watches a scene, and says whether it was as it should be.

use std::time::Duration;

use super::scenes::{Expected, Scene};
use crate::{
    cli::terminal,
    proto::{Ledger, LedgerEntry, Part, WaitSource, delta::Content, generate_response::Frame},
    verdict::class::{self, Class},
};

/// What was seen of a generation.
#[derive(Debug, Default)]
pub(super) struct Witness {
    /// Its account, once it has ended.
    pub ledger: Ledger,
    message: Vec<Part>,
    committed: bool,
    /// The text of the preview that is not void.
    preview: String,
    /// Which attempt it is of.
    attempt: u32,
    mixed: bool,
    resets: usize,
    /// The longest wait that was told.
    told: Duration,
}

impl Witness {
    /// One more frame.
    pub(super) fn saw(&mut self, frame: &Frame) {
        match frame {
            Frame::Delta(delta) => {
                self.mixed |= !self.preview.is_empty() && self.attempt != delta.attempt;
                self.attempt = delta.attempt;
                if let Some(Content::Text(text) | Content::Refusal(text)) = &delta.content {
                    self.preview.push_str(text);
                }
            }
            Frame::PreviewReset(_) => {
                self.preview.clear();
                self.resets += 1;
            }
            Frame::Waiting(waiting) => {
                let told = waiting
                    .expected
                    .and_then(|wait| Duration::try_from(wait).ok());
                self.told = self.told.max(told.unwrap_or_default());
            }
            Frame::Committed(committed) => {
                self.message.extend_from_slice(&committed.message);
                self.committed |= committed.r#final;
                self.ledger = committed.ledger.clone().unwrap_or_default();
            }
            Frame::Failed(failed) => self.ledger = failed.ledger.clone().unwrap_or_default(),
            Frame::Accepted(_) | Frame::AttemptStarted(_) | Frame::Progress(_) => {}
        }
    }

    /// What was not as `scene` says, after `requests` requests in the provider's log.
    pub(super) fn complaints(&self, scene: &Scene, requests: usize) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut expect = |holds: bool, complaint: &str| {
            if !holds {
                complaints.push(complaint.to_owned());
            }
        };
        expect(self.committed, "it was not committed");
        expect(!self.mixed, "two attempts were mixed in one preview");
        let text = terminal::text(&self.message);
        expect(text == self.preview, "the message is not what was shown");
        let right = scene.message.is_none_or(|message| message == text);
        expect(right, "the message is not what the provider wrote");
        let sends = usize::try_from(self.ledger.sends).unwrap_or(usize::MAX);
        let account = format!("the provider got {requests} requests, the ledger has {sends} sends");
        expect(sends == requests, &account);
        let stalls = scene
            .attempts
            .iter()
            .filter(|attempt| attempt.verdict == Some(Class::Stall));
        expect(
            self.resets == stalls.count(),
            "resets are missing, or there are too many",
        );
        let count = self.ledger.entries.len() == scene.attempts.len();
        expect(count, "the ledger has another number of attempts");
        for (entry, expected) in self.ledger.entries.iter().zip(&scene.attempts) {
            expect(
                expected.is(entry),
                &format!("attempt {} is not as it should be", entry.attempt),
            );
            if let Some(wait) = expected.asked_wait {
                expect(self.told >= wait, "the wait was not told");
            }
        }
        complaints
    }

    /// What the reader may rely on.
    pub(super) fn praise(&self, requests: usize) -> String {
        format!(
            "  checked: the message is what was shown and not void; requests {requests}, sends {}",
            self.ledger.sends
        )
    }
}

impl Expected {
    fn is(&self, entry: &LedgerEntry) -> bool {
        let verdict = entry.verdict.as_ref().map(|verdict| verdict.class());
        let provider = entry.target.split('/').next();
        let waited = entry.waited.and_then(|wait| Duration::try_from(wait).ok());
        let waited_as_asked = self.asked_wait.is_none_or(|wait| {
            entry.wait_source() == WaitSource::Provider && waited.is_some_and(|w| w >= wait)
        });
        provider == Some(self.provider)
            && entry.executed() == self.executed
            && verdict.map(class::label) == self.verdict.map(class::label)
            && waited_as_asked
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        cli::demo::scenes,
        proto::{Committed, Delta, Executed, PreviewReset, Verdict, Waiting, part},
    };

    use super::*;

    fn text(attempt: u32, text: &str) -> Frame {
        Frame::Delta(Delta {
            attempt,
            block: 0,
            content: Some(Content::Text(text.to_owned())),
        })
    }

    fn entry(attempt: u32, verdict: Option<Class>) -> LedgerEntry {
        LedgerEntry {
            attempt,
            target: "provider/model".to_owned(),
            executed: Executed::Yes.into(),
            verdict: verdict.map(|class| Verdict {
                class: class.into(),
                ..Verdict::default()
            }),
            ..LedgerEntry::default()
        }
    }

    fn committed(text: &str, entries: Vec<LedgerEntry>) -> Frame {
        let sends = entries.len() as u32;
        Frame::Committed(Committed {
            r#final: true,
            message: vec![Part {
                part: Some(part::Part::Text(text.to_owned())),
            }],
            ledger: Some(Ledger {
                entries,
                attempts: sends,
                sends,
                ..Ledger::default()
            }),
            ..Committed::default()
        })
    }

    /// The scene with this title.
    fn scene(route: &str) -> Scene {
        let mut scenes = scenes::all(Duration::ZERO).into_iter();
        scenes.find(|scene| scene.route == route).unwrap()
    }

    fn complaints(scene: &Scene, frames: &[Frame], requests: usize) -> Vec<String> {
        let mut witness = Witness::default();
        for frame in frames {
            witness.saw(frame);
        }
        witness.complaints(scene, requests)
    }

    /// The frames of a stall as it should be.
    fn stall(scene: &Scene) -> [Frame; 4] {
        let message = scene.message.unwrap();
        [
            text(1, "wrong"),
            Frame::PreviewReset(PreviewReset::default()),
            text(2, message),
            committed(message, vec![entry(1, Some(Class::Stall)), entry(2, None)]),
        ]
    }

    #[test]
    fn a_scene_as_it_should_be_is_not_complained_of() {
        let scene = scene("stalls");
        assert_eq!(complaints(&scene, &stall(&scene), 2), [""; 0]);
    }

    #[test]
    fn a_send_that_the_ledger_does_not_know_is_found() {
        let scene = scene("stalls");
        let said = ["the provider got 3 requests, the ledger has 2 sends"];
        assert_eq!(complaints(&scene, &stall(&scene), 3), said);
    }

    #[test]
    fn a_missing_reset_is_found() {
        let scene = scene("stalls");
        let mut frames = stall(&scene).to_vec();
        frames.remove(1);
        let said = [
            "two attempts were mixed in one preview",
            "the message is not what was shown",
            "resets are missing, or there are too many",
        ];
        assert_eq!(complaints(&scene, &frames, 2), said);
    }

    #[test]
    fn another_message_and_another_verdict_are_found() {
        let scene = scene("stalls");
        let mut frames = stall(&scene);
        let entries = vec![entry(1, Some(Class::Transport)), entry(2, None)];
        frames[3] = committed("another", entries);
        let said = [
            "the message is not what was shown",
            "the message is not what the provider wrote",
            "attempt 1 is not as it should be",
        ];
        assert_eq!(complaints(&scene, &frames, 2), said);
    }

    #[test]
    fn a_stream_that_just_ends_is_found() {
        let scene = scene("healthy");
        let frames = [text(1, scene.message.unwrap())];
        let said = [
            "it was not committed",
            "the message is not what was shown",
            "the message is not what the provider wrote",
            "the provider got 1 requests, the ledger has 0 sends",
            "the ledger has another number of attempts",
        ];
        assert_eq!(complaints(&scene, &frames, 1), said);
    }

    #[test]
    fn a_wait_that_is_cut_short_or_not_told_is_found() {
        let scene = scene("limited");
        let frames = |told: i64, waited: i64| {
            let length = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
            let mut second = entry(2, None);
            second.waited = length(waited);
            second.wait_source = WaitSource::Provider.into();
            let message = scene.message.unwrap();
            [
                Frame::Waiting(Waiting {
                    expected: length(told),
                    ..Waiting::default()
                }),
                text(2, message),
                committed(message, vec![entry(1, Some(Class::RateLimited)), second]),
            ]
        };
        assert_eq!(complaints(&scene, &frames(1, 1), 2), [""; 0]);
        let said = ["the wait was not told"];
        assert_eq!(complaints(&scene, &frames(0, 1), 2), said);
        let said = ["attempt 2 is not as it should be"];
        assert_eq!(complaints(&scene, &frames(1, 0), 2), said);
    }
}
