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
            "  checked: the message is what was shown and not void; requests in the provider's log: \
             {requests}, sends in the ledger: {}",
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
