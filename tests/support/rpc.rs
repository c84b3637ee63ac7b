//! One RPC from the client's side. Each goes through the check, however it ends.

use std::time::Duration;

use redrive::proto::{
    AttemptStarted, Committed, Failed, GenerateRequest, GenerateResponse, Ledger, Mode, Part,
    PreviewReset, VerdictClass as Class, delta::Content, generate_request,
    generate_response::Frame, generation_service_client::GenerationServiceClient, part,
};
use tokio::{sync::mpsc, time::timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};

use super::{
    check::{Seen, check},
    start::request,
};

/// Longer than anything here lasts, by the clock of the test: what takes longer hangs.
const HANGS: Duration = Duration::from_secs(4 * 3600);

/// An open `Generate` stream.
pub struct Rpc {
    requests: Option<mpsc::UnboundedSender<GenerateRequest>>,
    responses: Option<Streaming<GenerateResponse>>,
    /// What came so far.
    pub frames: Vec<GenerateResponse>,
    ended: bool,
}

/// How an RPC ended.
#[derive(Debug)]
pub struct Ended {
    pub frames: Vec<GenerateResponse>,
    pub status: Option<Status>,
}

/// Opens a stream without a first frame; returns once the response headers are here.
pub async fn open(channel: &Channel, deadline: Option<Duration>) -> Rpc {
    let mut client = GenerationServiceClient::new(channel.clone())
        .max_decoding_message_size(16 << 20)
        .max_encoding_message_size(usize::MAX);
    let (requests, outbound) = mpsc::unbounded_channel();
    let mut call = Request::new(UnboundedReceiverStream::new(outbound));
    if let Some(deadline) = deadline {
        call.set_timeout(deadline);
    }
    let responses = client.generate(call).await.expect("response headers");
    Rpc {
        requests: Some(requests),
        responses: Some(responses.into_inner()),
        frames: Vec::new(),
        ended: false,
    }
}

impl Rpc {
    pub fn send(&self, frame: generate_request::Frame) {
        self.send_raw(request(frame));
    }

    pub fn send_raw(&self, request: GenerateRequest) {
        let requests = self.requests.as_ref().expect("half-closed");
        requests.send(request).expect("the stream is gone");
    }

    /// The same after the end, when nobody may be there to take it.
    pub fn send_late(&self, frame: generate_request::Frame) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(request(frame));
        }
    }

    /// Says that nothing more will be sent.
    pub fn half_close(&mut self) {
        self.requests = None;
    }

    async fn message(&mut self) -> Result<Option<GenerateResponse>, Status> {
        let responses = self.responses.as_mut().expect("an open stream");
        let message = timeout(HANGS, responses.message()).await;
        message.unwrap_or_else(|_| panic!("hangs after {:#?}", self.frames.last()))
    }

    /// The next frame.
    pub async fn frame(&mut self) -> Frame {
        let response = self.message().await.expect("a frame").expect("a frame");
        self.frames.push(response.clone());
        response.frame.expect("a frame with content")
    }

    /// The next frame that is a delta of text, and its text.
    pub async fn text(&mut self) -> String {
        loop {
            if let Frame::Delta(delta) = self.frame().await
                && let Some(Content::Text(text)) = delta.content
            {
                return text;
            }
        }
    }

    /// Reads on until `wanted`.
    pub async fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.frame().await;
            if wanted(&frame) {
                return frame;
            }
        }
    }

    /// The generation's id, told by the first frame.
    pub async fn id(&mut self) -> String {
        match self.frame().await {
            Frame::Accepted(accepted) => accepted.generation_id,
            other => panic!("{other:?} instead of accepted"),
        }
    }

    /// The sequence number of the newest frame.
    pub fn sequence(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.sequence)
    }

    /// The next frame, or nothing at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        match self.message().await {
            Ok(Some(response)) => {
                self.frames.push(response.clone());
                response.frame
            }
            Ok(None) => self.at_end(None),
            Err(status) => self.at_end(Some(&status)),
        }
    }

    fn at_end(&mut self, status: Option<&Status>) -> Option<Frame> {
        self.ended = true;
        check(&self.frames, Seen::Ended(status));
        None
    }

    /// Reads to the end.
    pub async fn end(mut self) -> Ended {
        let status = loop {
            match self.message().await {
                Ok(Some(response)) => self.frames.push(response),
                Ok(None) => break None,
                Err(status) => break Some(status),
            }
        };
        self.at_end(status.as_ref());
        Ended {
            frames: std::mem::take(&mut self.frames),
            status,
        }
    }

    /// Goes away without a word.
    pub fn vanish(self) {
        drop(self);
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        if !self.ended && !std::thread::panicking() {
            check(&self.frames, Seen::SoFar);
        }
    }
}

impl Ended {
    /// The frames, without their numbers.
    pub fn told(&self) -> impl Iterator<Item = &Frame> {
        self.frames.iter().filter_map(|frame| frame.frame.as_ref())
    }

    /// What kinds of frames came, in order; repeated deltas once.
    pub fn shape(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.told().map(name).collect();
        names.dedup_by(|a, b| a == b && *a == "delta");
        names
    }

    /// The terminal frame of a success.
    pub fn committed(&self) -> &Committed {
        match self.told().last() {
            Some(Frame::Committed(committed)) => committed,
            other => panic!("{other:?} instead of committed"),
        }
    }

    /// All parts of the message together, its text only.
    pub fn message(&self) -> String {
        self.committed();
        let committed = self.told().filter_map(|frame| match frame {
            Frame::Committed(committed) => Some(&committed.message),
            _ => None,
        });
        committed.flatten().filter_map(text_of).collect()
    }

    /// The terminal frame of a failure.
    pub fn failed(&self) -> &Failed {
        match self.told().last() {
            Some(Frame::Failed(failed)) => failed,
            other => panic!("{other:?} instead of failed"),
        }
    }

    pub fn class(&self) -> Class {
        self.failed()
            .verdict
            .as_ref()
            .map(|v| v.class())
            .unwrap_or_default()
    }

    /// What the verdict says to a person.
    pub fn reason(&self) -> &str {
        let verdict = self.failed().verdict.as_ref();
        verdict.map_or("", |verdict| verdict.message.as_str())
    }

    pub fn code(&self) -> tonic::Code {
        self.status.as_ref().map_or(tonic::Code::Ok, Status::code)
    }

    fn account(&self) -> Option<&Ledger> {
        match self.told().last() {
            Some(Frame::Committed(committed)) => committed.ledger.as_ref(),
            Some(Frame::Failed(failed)) => failed.ledger.as_ref(),
            _ => None,
        }
    }

    /// The account, with either end.
    pub fn ledger(&self) -> &Ledger {
        self.account().expect("a terminal frame with a ledger")
    }

    /// Attempts and sends of the ledger.
    pub fn sends(&self) -> (u32, u32) {
        let ledger = self.account();
        ledger.map_or((0, 0), |ledger| (ledger.attempts, ledger.sends))
    }

    /// Every attempt as it was told.
    pub fn started(&self) -> Vec<&AttemptStarted> {
        let started = self.told().filter_map(|frame| match frame {
            Frame::AttemptStarted(started) => Some(started),
            _ => None,
        });
        started.collect()
    }

    /// How each attempt went on.
    pub fn modes(&self) -> Vec<Mode> {
        let started = self.started();
        started.into_iter().map(AttemptStarted::mode).collect()
    }

    /// Every reset as it was told.
    pub fn resets(&self) -> Vec<&PreviewReset> {
        let resets = self.told().filter_map(|frame| match frame {
            Frame::PreviewReset(reset) => Some(reset),
            _ => None,
        });
        resets.collect()
    }

    /// All deltas of text, void ones too.
    pub fn deltas(&self) -> Vec<&str> {
        let texts = self.told().filter_map(|frame| match frame {
            Frame::Delta(delta) => match &delta.content {
                Some(Content::Text(text)) => Some(text.as_str()),
                _ => None,
            },
            _ => None,
        });
        texts.collect()
    }
}

/// The end that `frames` show, in a word.
pub fn end_of(frames: &[GenerateResponse]) -> String {
    match frames.last().and_then(|last| last.frame.as_ref()) {
        Some(Frame::Committed(committed)) if committed.r#final => "Committed".to_owned(),
        Some(Frame::Failed(failed)) => format!("{:?}", failed.verdict.clone().unwrap().class()),
        _ => "None".to_owned(),
    }
}

/// Asserts that an RPC was refused: one frame, this status, and a reason that starts with `field`.
pub fn refused(ended: Ended, code: tonic::Code, field: &str) {
    assert_eq!(ended.shape(), ["failed"], "{field}");
    let reason = ended.reason();
    assert!(reason.starts_with(field), "{reason:?} instead of {field}");
    assert_eq!(ended.code(), code, "{reason}");
    assert_eq!(ended.sends(), (0, 0));
    assert!(ended.failed().safe_to_send_again);
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.part {
        Some(part::Part::Text(text)) => Some(text),
        _ => None,
    }
}

fn name(frame: &Frame) -> &'static str {
    match frame {
        Frame::Accepted(_) => "accepted",
        Frame::Waiting(_) => "waiting",
        Frame::AttemptStarted(_) => "attempt_started",
        Frame::Delta(_) => "delta",
        Frame::Progress(_) => "progress",
        Frame::PreviewReset(_) => "preview_reset",
        Frame::Committed(c) if c.r#final => "committed",
        Frame::Committed(c) if c.part > 0 => "part",
        Frame::Committed(_) => "confirmed",
        Frame::Failed(_) => "failed",
    }
}
