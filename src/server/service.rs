//! The gRPC service: `Generate` and `Complete`.

use std::{future::poll_fn, sync::Arc, time::Duration};

use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::{
    admission::{Admission, Streams},
    deadline,
    refusal::Refusal,
    rpc::{self, Attached, Reader, Rpc},
    start::{self, Circumstances, Prepared},
    status,
};
use crate::{
    config::Config,
    proto::{
        Attach, Committed, CompleteRequest, CompleteResponse, Delivery, GenerateRequest, Start,
        generate_request, generate_response::Frame, generation_service_server::GenerationService,
    },
    recovery::{self, Event, Next, Time},
    session::{self, Environment, Polled, Registry, RequestKey, Session, StartOutcome},
    telemetry::{self, GenerationObserver, Guard, Pace, RpcSpan, SpanContext},
    verdict::Class,
};

/// How long a client may take to send its first frame. Fixed.
const FIRST_FRAME: Duration = Duration::from_secs(10);

/// The largest answer of `Complete`. Fixed.
const MAX_COMPLETE_BYTES: usize = 3 << 20;

const GENERATE: &str = "redrive.v1.GenerationService/Generate";
const COMPLETE: &str = "redrive.v1.GenerationService/Complete";

/// What the RPCs work with.
pub struct Service {
    pub(super) admission: Admission,
    pub(super) config: Arc<Config>,
    pub(super) environment: Arc<Environment>,
    pub(super) registry: Arc<Registry>,
}

/// The service as tonic takes it.
#[derive(Clone)]
pub struct Grpc(pub(super) Arc<Service>);

#[tonic::async_trait]
impl GenerationService for Grpc {
    type GenerateStream = Rpc;

    async fn generate(
        &self,
        request: Request<Streaming<GenerateRequest>>,
    ) -> Result<Response<Rpc>, Status> {
        let (metadata, extensions, inbound) = request.into_parts();
        let admitted = self.0.admitted(&extensions);
        let telemetry = &self.0.environment.telemetry;
        let span = RpcSpan::start(telemetry, metadata.as_ref(), GENERATE);
        let caller_deadline = self.0.caller_deadline(metadata.as_ref());
        Ok(Response::new(Rpc::new(
            Arc::clone(&self.0),
            inbound,
            admitted,
            caller_deadline,
            span,
        )))
    }

    async fn complete(
        &self,
        request: Request<CompleteRequest>,
    ) -> Result<Response<CompleteResponse>, Status> {
        let (metadata, extensions, CompleteRequest { start }) = request.into_parts();
        let admitted = self.0.admitted(&extensions);
        let telemetry = &self.0.environment.telemetry;
        let _alive = Guard::new(&telemetry.gauges().grpc_streams);
        let span = RpcSpan::start(telemetry, metadata.as_ref(), COMPLETE);
        let caller_deadline = self.0.caller_deadline(metadata.as_ref());
        let result = self
            .0
            .complete(start, admitted, caller_deadline, span.context())
            .await;
        span.end(result.as_ref().err().map_or(tonic::Code::Ok, Status::code));
        result.map(Response::new)
    }
}

impl Service {
    fn caller_deadline(&self, metadata: &http::HeaderMap) -> Option<Time> {
        let timeout = deadline::timeout(metadata)?;
        Some(self.environment.clock.now() + timeout.saturating_sub(deadline::MARGIN))
    }

    /// Whether the connection of a call may open one more stream.
    fn admitted(&self, extensions: &http::Extensions) -> Result<(), Refusal> {
        let streams = extensions.get::<Streams>();
        let admitted = streams.map_or(Ok(()), Streams::open);
        let telemetry = &self.environment.telemetry;
        admitted.inspect_err(|_| telemetry.stream_refused(Pace::Connection))
    }

    /// From the first frame to an attached session.
    pub(super) async fn open(
        self: Arc<Self>,
        mut inbound: Streaming<GenerateRequest>,
        admitted: Result<(), Refusal>,
        caller_deadline: Option<Time>,
        parent: SpanContext,
    ) -> Result<Attached, Refusal> {
        admitted?;
        let first = tokio::time::timeout(FIRST_FRAME, inbound.message()).await;
        let first = first
            .map_err(|_| Refusal::of_class(Class::Deadline, "no first frame came within 10 s"))?;
        let frame = match first {
            Ok(Some(request)) => request.frame,
            Ok(None) => return Err(Refusal::invalid("start", "the stream ended before it")),
            Err(status) => {
                let reason = rpc::broken_frame(&status).unwrap_or("could not be read");
                return Err(Refusal::invalid("frame", reason));
            }
        };
        let mut attached = match frame {
            Some(generate_request::Frame::Start(start)) => {
                self.start(start, caller_deadline, &parent)?
            }
            Some(generate_request::Frame::Attach(attach)) => {
                self.attach(&attach, caller_deadline)?
            }
            Some(_) => return Err(Refusal::invalid("frame", "start or attach comes first")),
            None => return Err(Refusal::invalid("frame", "is empty or unknown")),
        };
        let alive = self.environment.count_task();
        let reader = Reader::new(inbound, Arc::clone(&attached.session), attached.rpc, alive);
        attached.inbound = Some(tokio::spawn(reader).abort_handle());
        Ok(attached)
    }

    fn start(
        &self,
        mut start: Start,
        caller_deadline: Option<Time>,
        parent: &SpanContext,
    ) -> Result<Attached, Refusal> {
        let delivery = start::delivery(&start)?;
        let request = start::request_key(&mut start);
        if let Some(outcome) = request.as_ref().and_then(|key| self.registry.find(key)) {
            return settle(outcome, delivery, caller_deadline);
        }
        if self.registry.is_draining() {
            return Err(Refusal::draining());
        }
        if !self.registry.make_room() {
            let message = "transcripts fill limits.max_total_bytes; no new generations";
            return Err(Refusal::of_class(Class::TooLarge, message));
        }
        start::check_plain_fields(&start)?;
        let telemetry = &self.environment.telemetry;
        self.admission
            .start(&start.labels)
            .inspect_err(|_| telemetry.stream_refused(Pace::Label))?;
        let id = uuid::Uuid::now_v7();
        let prepared = start::prepare(
            &self.config,
            &start,
            Circumstances {
                budgets: &self.environment.budgets,
                id: id.to_string(),
                caller_deadline,
                wall_origin: self.environment.clock.wall_origin(),
                seed: id.as_u64_pair().1,
            },
        )?;
        drop(start);
        let outcome = self.registry.insert(request.as_ref(), || {
            self.session(prepared, request.clone(), parent)
        })?;
        settle(outcome, delivery, caller_deadline)
    }

    fn session(
        &self,
        prepared: Prepared,
        request: Option<RequestKey>,
        parent: &SpanContext,
    ) -> Result<Arc<Session>, Refusal> {
        let Prepared {
            params,
            plan,
            route,
            model,
        } = prepared;
        let id = params.id.clone();
        let about = telemetry::Generation {
            id: &id,
            route: &route,
            model: &model,
        };
        let now = self.environment.clock.now();
        let core = recovery::Generation::new(now, params, &*self.environment)
            .map_err(|error| Refusal::of_class(Class::TooLarge, format!("start.scope: {error}")))?;
        let observer = GenerationObserver::start(&self.environment.telemetry, parent, &about);
        let parts = session::Parts {
            id,
            request,
            core,
            plan,
            observer,
        };
        let environment = Arc::clone(&self.environment);
        Ok(Session::new(parts, Arc::clone(&self.registry), environment))
    }

    fn attach(&self, attach: &Attach, caller_deadline: Option<Time>) -> Result<Attached, Refusal> {
        let (field, session) = match (attach.generation_id.as_str(), attach.request_id.as_str()) {
            ("", "") => {
                let reason = "is required (or attach.request_id)";
                return Err(Refusal::invalid("attach.generation_id", reason));
            }
            ("", request_id) => ("attach.request_id", self.registry.by_request(request_id)),
            (id, "") => ("attach.generation_id", self.registry.by_id(id)),
            _ => {
                let reason = "give this or attach.request_id, not both";
                return Err(Refusal::invalid("attach.generation_id", reason));
            }
        };
        let session = session.ok_or_else(|| Refusal::not_found(field))?;
        // `Attach` names no delivery: what its generation was started with holds.
        let delivery = session.delivery();
        take_over(session, field, delivery, caller_deadline)
    }

    async fn complete(
        self: &Arc<Self>,
        start: Option<Start>,
        admitted: Result<(), Refusal>,
        caller_deadline: Option<Time>,
        parent: SpanContext,
    ) -> Result<CompleteResponse, Status> {
        admitted.map_err(Refusal::into_status)?;
        let attached = self.open_complete(start, caller_deadline, &parent)?;
        let session = Arc::clone(&attached.session);
        let mut whole = Committed::default();
        loop {
            let polled = poll_fn(|cx| session.poll_next(cx, attached.rpc)).await;
            match polled {
                Polled::Next(Next::Frame(frame)) => match frame.frame {
                    Some(Frame::Committed(part)) => {
                        let is_last = part.r#final;
                        join(&mut whole, part);
                        if is_last {
                            break;
                        }
                    }
                    Some(Frame::Failed(failed)) => return Err(status::of_failed(&failed)),
                    _ => {}
                },
                Polled::Next(Next::Finished) => break,
                Polled::Next(Next::Displaced) => {
                    return Err(Status::aborted(
                        "another RPC has attached to this generation",
                    ));
                }
                Polled::Next(Next::TooSlow | Next::Pending) => {
                    return Err(Status::resource_exhausted(rpc::TOO_SLOW));
                }
                Polled::Crashed(account) => return Err(rpc::crashed(1, *account).1),
            }
        }
        let generation_id = session.id.clone();
        if whole.encoded_len() > MAX_COMPLETE_BYTES {
            let message = "the message is larger than 3 MiB; use Generate";
            let refusal = Refusal::of_class(Class::TooLarge, message);
            return Err(refusal
                .after(whole.ledger.unwrap_or_default())
                .into_status());
        }
        Ok(CompleteResponse {
            generation_id,
            committed: Some(whole),
        })
    }

    fn open_complete(
        &self,
        start: Option<Start>,
        caller_deadline: Option<Time>,
        parent: &SpanContext,
    ) -> Result<Attached, Status> {
        let missing = Refusal::invalid("start", "is required");
        let mut start = start.ok_or_else(|| missing.into_status())?;
        if start.request_id.is_empty() {
            let reason = "is required by Complete, so that a client's retry attaches";
            return Err(Refusal::invalid("start.request_id", reason).into_status());
        }
        start.delivery = Delivery::CommittedOnly.into();
        self.start(start, caller_deadline, parent)
            .map_err(Refusal::into_status)
    }
}

/// From what the registry says to an attached session.
fn settle(
    outcome: StartOutcome,
    delivery: Delivery,
    caller_deadline: Option<Time>,
) -> Result<Attached, Refusal> {
    match outcome {
        StartOutcome::New(session) => {
            session.handle(Event::Start);
            Ok(Attached {
                rpc: 1,
                session,
                inbound: None,
            })
        }
        StartOutcome::Known(session) => {
            take_over(session, "start.request_id", delivery, caller_deadline)
        }
        StartOutcome::Conflict => Err(Refusal::already_exists()),
        StartOutcome::Draining => Err(Refusal::draining()),
    }
}

fn take_over(
    session: Arc<Session>,
    field: &str,
    delivery: Delivery,
    caller_deadline: Option<Time>,
) -> Result<Attached, Refusal> {
    let rpc = session.attach(delivery, caller_deadline);
    let rpc = rpc.ok_or_else(|| Refusal::not_found(field))?;
    Ok(Attached {
        session,
        rpc,
        inbound: None,
    })
}

/// Adds a part to the whole message: the first piece continues the last one if it is of the same kind.
fn join(whole: &mut Committed, part: Committed) {
    use crate::proto::part::Part::{Reasoning, Refusal, Text};
    let mut message = std::mem::take(&mut whole.message);
    let mut pieces = part.message.iter().cloned();
    if let Some(first) = pieces.next() {
        match (
            message.last_mut().and_then(|last| last.part.as_mut()),
            first.part,
        ) {
            (Some(Text(a)), Some(Text(b))) | (Some(Refusal(a)), Some(Refusal(b))) => {
                a.push_str(&b);
            }
            (Some(Reasoning(a)), Some(Reasoning(b))) => a.text.push_str(&b.text),
            (_, part) => message.push(crate::proto::Part { part }),
        }
    }
    message.extend(pieces);
    *whole = Committed {
        message,
        part: 0,
        ..part
    };
}
