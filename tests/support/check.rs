//! What holds for every RPC, whatever it was about: the contract's order, its one end, and that what
//! was committed is what was shown.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use prost::Message;
use redrive::proto::{
    AttemptStarted, Committed, Failed, GenerateResponse, Mode, Part, ToolCall,
    VerdictClass as Class, delta::Content, generate_response::Frame, part,
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// How an RPC was seen to end.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// The client went away, or looks at what there is so far.
    SoFar,
    /// It ended, well or with a status.
    Ended(Option<&'a Status>),
}

/// The status of each class: the design's mapping, written down a second time.
pub fn code_of(class: Class) -> Code {
    use Class::*;
    match class {
        RateLimited | QuotaExhausted | ClientTooSlow | TooLarge => Code::ResourceExhausted,
        Overloaded | ProviderInternal | Transport | PrematureEof | Corrupt | Stall => {
            Code::Unavailable
        }
        TimeoutConnect | TimeoutFirstToken | TimeoutProvider => Code::Unavailable,
        NoTarget | LimiterUnavailable | Draining => Code::Unavailable,
        Deadline => Code::DeadlineExceeded,
        InvalidRequest | ContextOverflow | ExceedsLimit | ContentFiltered => Code::InvalidArgument,
        NotFound => Code::NotFound,
        Auth | Permission | RedirectRefused => Code::FailedPrecondition,
        GateRejected | MalformedOutput => Code::Aborted,
        Cancelled => Code::Cancelled,
        Unclassified => Code::Unknown,
        Unspecified => panic!("a verdict without a class"),
    }
}

/// Asserts everything that holds for one RPC.
pub fn check(frames: &[GenerateResponse], seen: Seen<'_>) {
    let mut shown = Shown::default();
    for (index, response) in frames.iter().enumerate() {
        assert_eq!(response.sequence, index as u64 + 1, "sequence");
        let size = response.encoded_len();
        let unsplit = match &response.frame {
            Some(Frame::Committed(committed)) => is_unsplit(committed),
            Some(Frame::Delta(delta)) => matches!(
                delta.content,
                Some(Content::NativeEvent(_) | Content::NativeBlock(_))
            ),
            _ => false,
        };
        assert!(size < 1 << 20 || unsplit, "a frame of {size} bytes");
        assert!(size < (3 << 20) + (1 << 16), "a frame of {size} bytes");
        shown.sequence = response.sequence;
        shown.take(response.frame.as_ref().expect("a frame without content"));
    }
    let Seen::Ended(status) = seen else { return };
    match (shown.end, status) {
        (Some(End::Committed), None) => {}
        (Some(End::Failed(failed)), Some(status)) => {
            check_status(&failed, status, frames.len() == 1)
        }
        // Another RPC took over, or this one took nothing while its generation lives on.
        (None, Some(status)) if matches!(status.code(), Code::Aborted) => {
            assert!(status.message().contains("attached"), "{status:?}");
        }
        (None, Some(status)) if status.message().contains("lives on") => {
            assert_eq!(status.code(), Code::ResourceExhausted);
        }
        (end, status) => panic!("ended with {end:?} and {status:?}"),
    }
}

/// One part that cannot be split.
fn is_unsplit(committed: &Committed) -> bool {
    matches!(
        committed.message.as_slice(),
        [Part {
            part: Some(part::Part::ToolCall(_) | part::Part::NativeJson(_))
        }]
    )
}

#[derive(Clone, Debug)]
enum End {
    Committed,
    Failed(Box<Failed>),
}

/// What a client has been shown so far.
#[derive(Debug, Default)]
struct Shown {
    accepted: bool,
    attempt: u32,
    sequence: u64,
    /// What was shown of each block, by the attempts that it is of.
    blocks: BTreeMap<u32, Vec<Given>>,
    /// Attempts of which native events were shown.
    native: BTreeSet<u32>,
    /// Everything up to here is final.
    final_through: u64,
    had_delta: bool,
    parts: u32,
    message: Vec<Piece>,
    end: Option<End>,
}

/// Deltas of one attempt.
#[derive(Debug)]
struct Given {
    attempt: u32,
    first: u64,
    piece: Piece,
}

/// A block, comparable between its deltas and its final form.
#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Reasoning(String),
    Refusal(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    /// A block of the provider's own, given whole.
    Native(Vec<u8>),
    /// Reasoning that the provider hides: never previewed.
    Redacted,
}

impl Shown {
    fn take(&mut self, frame: &Frame) {
        assert!(self.end.is_none(), "after the terminal frame: {frame:?}");
        if let (false, Frame::Failed(_)) = (self.accepted, frame) {
            // A refusal.
        } else {
            let first = matches!(frame, Frame::Accepted(_));
            assert_eq!(
                first, !self.accepted,
                "accepted comes first, once: {frame:?}"
            );
        }
        assert!(
            self.parts == 0 || matches!(frame, Frame::Committed(_)),
            "between the parts of a message: {frame:?}"
        );
        match frame {
            Frame::Accepted(_) => self.accepted = true,
            Frame::Waiting(_) | Frame::Progress(_) => {}
            Frame::AttemptStarted(started) => self.start(started),
            Frame::Delta(delta) => {
                assert!(delta.attempt <= self.attempt, "a delta of a later attempt");
                self.had_delta = true;
                let content = delta.content.as_ref().expect("an empty delta");
                self.add(delta.attempt, delta.block, content);
            }
            Frame::PreviewReset(reset) => {
                assert!(reset.verdict.is_some(), "a reset without a reason");
                self.void(reset.attempt, &reset.blocks);
            }
            Frame::Committed(committed) => self.commit(committed),
            Frame::Failed(failed) => self.end = Some(End::Failed(Box::new(failed.clone()))),
        }
    }

    /// What an attempt does not go on with is void before it starts.
    fn start(&mut self, started: &AttemptStarted) {
        assert!(started.attempt > self.attempt, "attempts go up");
        let goes_on = matches!(started.mode(), Mode::Continue | Mode::Resume);
        let void = self.blocks.is_empty() && self.native.is_empty();
        assert!(void || goes_on, "void before new: {:?}", self.blocks);
        self.attempt = started.attempt;
    }

    /// What was shown of an attempt is void, or of some of its blocks.
    fn void(&mut self, attempt: u32, blocks: &[u32]) {
        let native = blocks.is_empty() && self.native.remove(&attempt);
        let mut voided = 0;
        for (block, given) in &mut self.blocks {
            given.retain(|given| {
                let named = blocks.is_empty() || blocks.contains(block);
                let gone = given.attempt == attempt && named;
                assert!(
                    !gone || given.first > self.final_through,
                    "final output is void"
                );
                voided += usize::from(gone);
                !gone
            });
        }
        self.blocks.retain(|_, given| !given.is_empty());
        assert!(native || voided > 0, "a reset of what was not shown");
    }

    fn add(&mut self, attempt: u32, block: u32, content: &Content) {
        if let Content::NativeEvent(_) = content {
            self.native.insert(attempt);
            return;
        }
        let first = self.sequence;
        let given = self.blocks.entry(block).or_default();
        if let Content::NativeBlock(json) = content {
            assert!(given.is_empty(), "a native block that opens an open block");
            return given.push(Given {
                attempt,
                first,
                piece: Piece::Native(json.clone()),
            });
        }
        if let Content::ToolCall(start) = content {
            let piece = Piece::Call {
                id: start.id.clone(),
                name: start.name.clone(),
                arguments: String::new(),
            };
            assert!(given.is_empty(), "a call that opens an open block");
            return given.push(Given {
                attempt,
                first,
                piece,
            });
        }
        let (empty, more) = match content {
            Content::Text(text) => (Piece::Text(String::new()), text),
            Content::Reasoning(text) => (Piece::Reasoning(String::new()), text),
            Content::Refusal(text) => (Piece::Refusal(String::new()), text),
            Content::ToolArguments(text) => {
                let open = given.last().expect("arguments without a call");
                (open.piece.without_body(), text)
            }
            other => panic!("content that is not built: {other:?}"),
        };
        assert!(!more.is_empty(), "an empty delta");
        if given.last().is_none_or(|last| last.attempt != attempt) {
            given.push(Given {
                attempt,
                first,
                piece: empty.clone(),
            });
        }
        let last = given.last_mut().expect("just added");
        assert!(last.piece.same_kind(&empty), "a block of two kinds");
        last.piece.push(more);
    }

    /// Every block, those that go on with the text of another attempt joined to it.
    fn whole(&self) -> Vec<Piece> {
        let mut whole: Vec<Piece> = Vec::new();
        let mut before = 0;
        for given in self.blocks.values() {
            let mut block = given[0].piece.clone();
            given[1..]
                .iter()
                .for_each(|more| block.push(more.piece.body()));
            let attempt = given[0].attempt;
            match (whole.last_mut(), &block) {
                (Some(Piece::Text(text)), Piece::Text(more)) if attempt != before => {
                    text.push_str(more);
                }
                _ => whole.push(block),
            }
            before = given[given.len() - 1].attempt;
        }
        whole
    }

    fn commit(&mut self, committed: &Committed) {
        if !committed.r#final && committed.part == 0 {
            assert!(committed.through_sequence > 0, "a confirmation of nothing");
            let bare = Committed {
                through_sequence: committed.through_sequence,
                ..Committed::default()
            };
            self.final_through = self.final_through.max(committed.through_sequence);
            return assert_eq!(committed, &bare, "a confirmation carries nothing else");
        }
        if committed.part > 0 || self.parts > 0 {
            self.parts += 1;
            assert_eq!(committed.part, self.parts, "parts count from 1");
        }
        for (index, part) in committed.message.iter().enumerate() {
            let piece = Piece::of(part);
            match self.message.last_mut() {
                Some(last) if index == 0 && self.parts > 1 && last.continues(&piece) => {
                    last.push(piece.body());
                }
                _ => self.message.push(piece),
            }
        }
        if !committed.r#final {
            let bare = Committed {
                part: committed.part,
                message: committed.message.clone(),
                ..Committed::default()
            };
            return assert_eq!(committed, &bare, "a part that is not the last");
        }
        assert_ne!(committed.finish_reason, 0, "no finish reason");
        self.check_message(&committed.withheld_tool_calls);
        check_ledger(committed.ledger.as_ref());
        self.end = Some(End::Committed);
    }

    /// The message is what was shown, less the withheld calls.
    fn check_message(&self, withheld: &[ToolCall]) {
        for piece in &self.message {
            match piece {
                Piece::Call { arguments, .. } => {
                    serde_json::from_str::<serde_json::Value>(arguments).expect("a broken call");
                }
                Piece::Native(json) => {
                    serde_json::from_slice::<serde_json::Value>(json).expect("a broken block");
                }
                _ => {}
            }
        }
        if !self.had_delta {
            return;
        }
        let mut shown = self.whole();
        for call in withheld {
            let call = Piece::Call {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments_json.clone(),
            };
            let at = shown.iter().position(|piece| *piece == call);
            shown.remove(at.expect("a withheld call that was not shown"));
        }
        for piece in &mut shown {
            if let Piece::Call { arguments, .. } = piece
                && arguments.is_empty()
            {
                "{}".clone_into(arguments);
            }
        }
        // Reasoning without text, hidden or only signed, has nothing to show.
        let message = self.message.iter().filter(|piece| match piece {
            Piece::Reasoning(text) => !text.is_empty(),
            piece => **piece != Piece::Redacted,
        });
        assert!(shown.iter().eq(message), "committed is not what was shown");
    }
}

impl Piece {
    fn of(part: &Part) -> Piece {
        match part.part.as_ref().expect("an empty part") {
            part::Part::Text(text) => Piece::Text(text.clone()),
            part::Part::Reasoning(reasoning) if !reasoning.redacted.is_empty() => Piece::Redacted,
            part::Part::Reasoning(reasoning) => Piece::Reasoning(reasoning.text.clone()),
            part::Part::NativeJson(json) => Piece::Native(json.clone()),
            part::Part::Refusal(text) => Piece::Refusal(text.clone()),
            part::Part::ToolCall(call) => Piece::Call {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments_json.clone(),
            },
            other => panic!("a part that is not built: {other:?}"),
        }
    }

    fn without_body(&self) -> Piece {
        match self {
            Piece::Call { id, name, .. } => Piece::Call {
                id: id.clone(),
                name: name.clone(),
                arguments: String::new(),
            },
            Piece::Text(_) => Piece::Text(String::new()),
            Piece::Reasoning(_) => Piece::Reasoning(String::new()),
            Piece::Refusal(_) => Piece::Refusal(String::new()),
            Piece::Native(_) => Piece::Native(Vec::new()),
            Piece::Redacted => Piece::Redacted,
        }
    }

    fn same_kind(&self, other: &Piece) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    fn continues(&self, other: &Piece) -> bool {
        let splits = matches!(
            self,
            Piece::Text(_) | Piece::Reasoning(_) | Piece::Refusal(_)
        );
        splits && self.same_kind(other)
    }

    fn body(&self) -> &str {
        match self {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => text,
            Piece::Call { arguments, .. } => arguments,
            Piece::Native(_) | Piece::Redacted => panic!("a split {self:?}"),
        }
    }

    fn push(&mut self, more: &str) {
        match self {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Refusal(text) => {
                text.push_str(more);
            }
            Piece::Call { arguments, .. } => arguments.push_str(more),
            Piece::Native(_) | Piece::Redacted => panic!("more of a whole {self:?}"),
        }
    }
}

/// The account adds up.
fn check_ledger(ledger: Option<&redrive::proto::Ledger>) {
    use redrive::proto::Executed;
    let ledger = ledger.expect("an end without a ledger");
    assert_eq!(ledger.attempts as usize, ledger.entries.len(), "attempts");
    let sends = ledger.entries.iter();
    let sends = sends
        .filter(|entry| entry.executed() != Executed::No)
        .count();
    assert_eq!(ledger.sends as usize, sends, "sends");
    for (index, entry) in ledger.entries.iter().enumerate() {
        assert_eq!(entry.attempt as usize, index + 1, "the ledger's order");
        assert_ne!(entry.executed(), Executed::Unspecified);
    }
}

fn check_status(failed: &Failed, status: &Status, refused: bool) {
    check_ledger(failed.ledger.as_ref());
    let verdict = failed
        .verdict
        .as_ref()
        .expect("a failure without a verdict");
    let class = verdict.class();
    let own = [Code::Unimplemented, Code::AlreadyExists, Code::NotFound];
    if !(refused && class == Class::InvalidRequest && own.contains(&status.code())) {
        assert_eq!(status.code(), code_of(class), "the status of {class:?}");
    }
    assert!(
        verdict.message.len() <= 512,
        "a message of {}",
        verdict.message.len()
    );
    assert_eq!(status.message(), verdict.message);
    let ledger = failed.ledger.clone().unwrap_or_default();
    check_details(
        status,
        class,
        &[
            ("attempts", ledger.attempts.to_string()),
            ("sends", ledger.sends.to_string()),
            ("target", verdict.target.clone()),
            ("stopped_by", upper(failed.stopped_by(), "StoppedBy")),
        ],
    );
    let details = status.get_error_details();
    let wait = details.retry_info().and_then(|info| info.retry_delay);
    let told = verdict.retry_after.and_then(|wait| wait.try_into().ok());
    assert_eq!(wait, told, "RetryInfo is the supplied wait");
}

/// The details that follow every failure.
pub fn check_details(status: &Status, class: Class, metadata: &[(&str, String)]) {
    assert!(status.details().len() < 4 << 10, "details of 4 KiB");
    let details = status.check_error_details().expect("unreadable details");
    let info = details.error_info().expect("no ErrorInfo");
    assert_eq!(info.domain, "redrive");
    assert_eq!(info.reason, upper(class, "Class"));
    for (key, value) in metadata {
        let found = info.metadata.get(*key).map_or("", String::as_str);
        assert_eq!(found, value, "metadata {key}");
    }
}

/// `RateLimited` as `RATE_LIMITED`.
fn upper(value: impl Debug, what: &str) -> String {
    let name = format!("{value:?}");
    assert!(!name.is_empty(), "{what}");
    let mut upper = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && index > 0 {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    upper
}
