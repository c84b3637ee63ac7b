//! What was seen: by the clients, and by the provider.

use std::{sync::Arc, time::Duration};

use redrive::{
    proto::{
        Committed, Failed, GenerateResponse, Ledger, Mode, Part, VerdictClass,
        generate_response::Frame, part,
    },
    simulator::{End, Received, Script},
};
use tonic::Status;

use crate::provider::call_of;

/// One call. Times are by the provider's clock.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub index: usize,
    pub frames: Vec<GenerateResponse>,
    /// When each frame came.
    pub times: Vec<Duration>,
    /// `None`: it went well, or the client left.
    pub status: Option<Status>,
    pub ended: Duration,
    /// When the client left.
    pub left: Option<Duration>,
}

/// A case, played.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub calls: Vec<Call>,
    pub requests: Vec<Received>,
    pub scripts: Vec<Arc<Script>>,
}

impl Outcome {
    /// The requests of one call.
    pub fn requests_of(&self, call: &Call) -> Vec<&Received> {
        let only = self.calls.len() == 1;
        let mine = |request: &&Received| match call_of(request) {
            Some(index) => index == call.index,
            None => only,
        };
        self.requests.iter().filter(mine).collect()
    }

    pub fn script_of(&self, request: &Received) -> Option<&Script> {
        self.scripts.get(request.place?).map(AsRef::as_ref)
    }
}

impl Call {
    pub fn told(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter_map(|frame| frame.frame.as_ref())
    }

    /// How long after its first frame an attempt began.
    pub fn began_after(&self) -> Option<Duration> {
        let begun = |frame: &Frame| matches!(frame, Frame::AttemptStarted(_));
        let place = self.told().position(begun)?;
        Some(self.times[place].saturating_sub(self.times[0]))
    }

    /// The message in one piece, if it was committed.
    pub fn committed(&self) -> Option<Committed> {
        let parts = self.told().filter_map(|frame| match frame {
            Frame::Committed(committed) => Some(committed),
            _ => None,
        });
        let parts: Vec<&Committed> = parts.collect();
        let last = parts.last().filter(|last| last.r#final)?;
        let message = parts.iter().flat_map(|part| part.message.iter().cloned());
        Some(Committed {
            message: message.collect(),
            ..(*last).clone()
        })
    }

    /// Which of its attempts had a hint of the gate.
    pub fn hinted(&self) -> Vec<bool> {
        let modes = self.told().filter_map(|frame| match frame {
            Frame::AttemptStarted(started) => Some(started.mode()),
            _ => None,
        });
        modes.map(|mode| mode == Mode::GateRetry).collect()
    }

    /// Which of its attempts the gate rejected. Nothing is known of a client that has left.
    pub fn rejected(&self) -> Vec<bool> {
        let entries = self.ledger().unwrap_or_default().entries.into_iter();
        let classes = entries.map(|entry| entry.verdict.map(|verdict| verdict.class()));
        let rejected = classes.map(|class| class == Some(VerdictClass::GateRejected));
        rejected.collect()
    }

    pub fn failed(&self) -> Option<&Failed> {
        self.told().find_map(|frame| match frame {
            Frame::Failed(failed) => Some(failed),
            _ => None,
        })
    }

    pub fn ledger(&self) -> Option<Ledger> {
        let committed = self.committed().and_then(|committed| committed.ledger);
        committed.or_else(|| self.failed()?.ledger.clone())
    }
}

/// Whether the client still had something to close.
pub fn was_left_open(request: &Received) -> bool {
    matches!(request.end, None | Some(End::ClientLeft))
}

/// When the client closed it.
pub fn closed_by_client(request: &Received) -> Option<Duration> {
    request
        .ended
        .filter(|_| request.end == Some(End::ClientLeft))
}

pub fn text_of(message: &[Part]) -> String {
    let texts = message.iter().filter_map(|part| match &part.part {
        Some(part::Part::Text(text)) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

pub fn reasoning_of(message: &[Part]) -> String {
    let texts = message.iter().filter_map(|part| match &part.part {
        Some(part::Part::Reasoning(reasoning)) => Some(reasoning.text.as_str()),
        _ => None,
    });
    texts.collect()
}
