//! One `Generate` RPC: its opening, its frames out, its end.
//!
//! The transport pulls: a frame is made when it is asked for, nothing queues between the cursor and
//! the transport. What the client sends is read by a task of its own, whether or not it reads.

use std::{
    error::Error as _,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use tokio::task::AbortHandle;
use tonic::{Code, Status, Streaming};

use super::{refusal::Refusal, service::Service, status};
use crate::{
    proto::{
        Failed, GenerateRequest, GenerateResponse, Ledger, StoppedBy, generate_request,
        generate_response::Frame,
    },
    recovery::{self, Event, Next, Time},
    session::{Polled, Session},
    telemetry::{Guard, RpcSpan},
    verdict::{Class, Failure, Origin, Stage},
};

/// Ends an RPC whose client was given up, without a terminal frame: the generation has its own end.
pub(super) const TOO_SLOW: &str =
    "the client took nothing for client_idle; attach to the generation, which lives on or is kept";

/// A session that an RPC is attached to, and which of its RPCs this is.
pub(super) struct Attached {
    pub session: Arc<Session>,
    pub rpc: u64,
    pub inbound: Option<AbortHandle>,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(inbound) = &self.inbound {
            inbound.abort();
        }
        self.session.handle_from(self.rpc, Event::ClientLost);
    }
}

type Opening = Pin<Box<dyn Future<Output = Result<Attached, Refusal>> + Send>>;

/// The response stream of one RPC.
pub struct Rpc {
    state: State,
    last_sequence: u64,
    span: Option<RpcSpan>,
    _alive: Guard,
}

enum State {
    Opening(Opening),
    Open(Attached),
    /// The status that ends it, once the frames are out.
    Ending(Option<Status>),
    Done,
}

impl Rpc {
    /// Reads the first frame and opens the RPC, if its connection is admitted.
    pub(super) fn new(
        service: Arc<Service>,
        inbound: Streaming<GenerateRequest>,
        admitted: Result<(), Refusal>,
        caller_deadline: Option<Time>,
        span: RpcSpan,
    ) -> Self {
        let alive = Guard::new(&service.environment.telemetry.gauges().grpc_streams);
        let parent = span.context();
        let opening = service.open(inbound, admitted, caller_deadline, parent);
        Self {
            state: State::Opening(Box::pin(opening)),
            last_sequence: 0,
            span: Some(span),
            _alive: alive,
        }
    }

    fn end(&mut self, status: Option<Status>) -> Poll<Option<Result<GenerateResponse, Status>>> {
        self.state = State::Done;
        if let Some(span) = self.span.take() {
            span.end(status.as_ref().map_or(Code::Ok, Status::code));
        }
        Poll::Ready(status.map(Err))
    }

    fn poll_open(&mut self, polled: Polled) -> Poll<Option<Result<GenerateResponse, Status>>> {
        match polled {
            Polled::Next(Next::Frame(frame)) => {
                self.last_sequence = frame.sequence;
                // With its terminal frame the RPC has its end, whoever attaches before it is asked
                // for the status.
                if let Some(status) = end_of(&frame) {
                    self.state = State::Ending(status);
                }
                Poll::Ready(Some(Ok(*frame)))
            }
            Polled::Next(Next::Finished) => {
                let failed = match &self.state {
                    State::Open(attached) => attached.session.failed(),
                    _ => None,
                };
                self.end(failed.as_ref().map(status::of_failed))
            }
            Polled::Next(Next::Displaced) => self.end(Some(Status::aborted(
                "another RPC has attached to this generation",
            ))),
            Polled::Next(Next::TooSlow) => self.end(Some(Status::resource_exhausted(TOO_SLOW))),
            Polled::Next(Next::Pending) => Poll::Pending,
            Polled::Crashed(account) => {
                let (frame, status) = crashed(self.last_sequence + 1, *account);
                self.state = State::Ending(Some(status));
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }
}

impl Stream for Rpc {
    type Item = Result<GenerateResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match &mut self.state {
                State::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok(attached)) => {
                        if attached.rpc > 1
                            && let Some(span) = &mut self.span
                        {
                            span.attached(&attached.session.span);
                        }
                        self.state = State::Open(attached);
                    }
                    Poll::Ready(Err(refusal)) => {
                        let (frame, status) = refusal.into_frame_and_status();
                        self.state = State::Ending(Some(status));
                        return Poll::Ready(Some(Ok(frame)));
                    }
                },
                State::Open(attached) => {
                    let Poll::Ready(polled) = attached.session.poll_next(cx, attached.rpc) else {
                        return Poll::Pending;
                    };
                    return self.poll_open(polled);
                }
                State::Ending(status) => {
                    let status = status.take();
                    return self.end(status);
                }
                State::Done => return Poll::Ready(None),
            }
        }
    }
}

/// Reads what the client sends after its first frame, until it has nothing more to say.
pub(super) struct Reader {
    inbound: Streaming<GenerateRequest>,
    session: Arc<Session>,
    rpc: u64,
    _alive: Guard,
}

impl Reader {
    pub(super) fn new(
        inbound: Streaming<GenerateRequest>,
        session: Arc<Session>,
        rpc: u64,
        alive: Guard,
    ) -> Self {
        Self {
            inbound,
            session,
            rpc,
            _alive: alive,
        }
    }
}

/// By hand: as an async function its task would be more than twice as large, for every open RPC.
impl Future for Reader {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match ready!(Pin::new(&mut self.inbound).poll_next(cx)) {
                Some(Ok(request)) => on_frame(&self.session, self.rpc, request),
                // A half-close is no cancel.
                None => return Poll::Ready(()),
                Some(Err(status)) => {
                    if let Some(reason) = broken_frame(&status) {
                        let violation = violation("frame", reason);
                        self.session
                            .handle_from(self.rpc, Event::Violation(violation));
                    }
                    // Otherwise the RPC is gone, which the response stream notices by being dropped.
                    return Poll::Ready(());
                }
            }
        }
    }
}

fn on_frame(session: &Arc<Session>, rpc: u64, request: GenerateRequest) {
    use generate_request::Frame::{Attach, Cancel, Effects, Start};
    let event = match &request.frame {
        Some(Effects(effects)) => Event::Effects {
            through_sequence: effects.through_sequence,
        },
        Some(Cancel(cancel)) => Event::Cancel {
            reason: &cancel.reason,
        },
        Some(Start(_)) => Event::Violation(violation("start", "came twice")),
        Some(Attach(_)) => Event::Violation(violation("attach", "came after the first frame")),
        None => Event::Violation(violation("frame", "is empty or unknown")),
    };
    session.handle_from(rpc, event);
}

/// Why a frame could not be read, if that is the client's doing and not the end of its RPC.
pub(super) fn broken_frame(status: &Status) -> Option<&'static str> {
    // Only the transport's errors have a source: a reset stream has codes of broken frames too.
    if status.source().is_some() {
        return None;
    }
    match status.code() {
        Code::OutOfRange | Code::ResourceExhausted => Some("is larger than max_request_bytes"),
        Code::Internal | Code::InvalidArgument => Some("is not a GenerateRequest"),
        Code::Unimplemented => Some("is compressed in an unsupported way"),
        _ => None,
    }
}

/// The status after a terminal frame; the outer `None` for any other frame.
fn end_of(response: &GenerateResponse) -> Option<Option<Status>> {
    match &response.frame {
        Some(Frame::Committed(committed)) if committed.r#final => Some(None),
        Some(Frame::Failed(failed)) => Some(Some(status::of_failed(failed))),
        _ => None,
    }
}

fn violation(field: &str, reason: &str) -> Failure {
    let message = format!("{field}: {reason}");
    Failure::new(
        Class::InvalidRequest,
        Origin::Client,
        Stage::Admission,
        message,
    )
}

/// The end of an RPC whose generation died of a bug of ours.
pub(super) fn crashed(sequence: u64, ledger: Ledger) -> (GenerateResponse, Status) {
    let message = "redrive: internal error; the generation was lost";
    let failure = Failure::new(Class::Unclassified, Origin::Us, Stage::Admission, message);
    let failed = Failed {
        verdict: Some(recovery::verdict(&failure, 0, "")),
        stopped_by: StoppedBy::NotRetryable.into(),
        safe_to_send_again: false,
        ledger: Some(ledger),
    };
    let status = status::of_failed(&failed);
    (
        GenerateResponse {
            sequence,
            frame: Some(Frame::Failed(failed)),
        },
        status,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each open stream pays for these; docs/performance.md has the whole account.
    #[test]
    fn an_open_rpc_is_small() {
        let sizes = [
            ("response", size_of::<Rpc>(), 384),
            ("reader", size_of::<Reader>(), 288),
        ];
        for (what, size, most) in sizes {
            println!("{what}: {size} bytes");
            assert!(size <= most, "{what}: {size} bytes, over {most}");
        }
    }
}
