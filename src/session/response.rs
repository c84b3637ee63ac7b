//! What comes back on an exchange, handed to the core as it is understood.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::{
    Work,
    driver::{Driver, Running},
};
use crate::{
    limits::headers,
    protocol::Decoder,
    recovery::{Event, Time, Upstream as Seen},
    upstream::Signal,
    verdict::{self, http::HttpEvidence},
};

/// How much of an error's body is read. Fixed.
const ERROR_BODY_BYTES: usize = 64 << 10;

/// For how long an error's body is read. Fixed.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

/// Headers in which providers give their id of a request.
const REQUEST_ID_HEADERS: [&str; 4] = [
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-generation-id",
];

/// What is done with body bytes.
pub(super) enum Response {
    /// No head yet.
    Awaited,
    /// They are the stream.
    Stream(Box<dyn Decoder>),
    /// They are an error's body.
    Error(ErrorBody),
}

pub(super) struct ErrorBody {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    pub(super) until: Time,
}

impl Driver {
    pub(super) fn on_signal(&mut self, signal: Signal) {
        let Some(running) = &mut self.running else {
            return;
        };
        let attempt = running.attempt;
        match (signal, &mut running.response) {
            (Signal::Sent, _) => self.tell(attempt, Seen::Sent),
            (Signal::Head { status, headers }, _) => self.on_head(status, headers),
            (Signal::Data(bytes), Response::Stream(_)) => self.decode(&bytes),
            (Signal::Data(bytes), Response::Error(error)) => {
                let room = ERROR_BODY_BYTES.saturating_sub(error.body.len());
                let piece = bytes.get(..room).unwrap_or(&bytes);
                error.body.extend_from_slice(piece);
                if error.body.len() >= ERROR_BODY_BYTES {
                    self.error_body_ended(false);
                }
            }
            (Signal::End, Response::Error(_)) => self.error_body_ended(true),
            (Signal::Failed(_), Response::Error(_)) => self.error_body_ended(false),
            (Signal::End, _) => self.stream_ended(true, Seen::End),
            (Signal::Failed(error), _) => {
                let failure = verdict::transport::classify(&error);
                self.stream_ended(false, Seen::Failed(failure));
            }
            (Signal::Data(_), Response::Awaited) => {}
        }
    }

    fn on_head(&mut self, status: StatusCode, headers: HeaderMap) {
        let Some(running) = &mut self.running else {
            return;
        };
        let (attempt, target, after) = (running.attempt, running.target, running.after);
        // What remains is read only where there is something to hold back.
        if let Some(lease) = &running.lease {
            let wall_now = self.session.environment.clock.wall_now();
            if let Some(wait) = headers::brake(&headers, wall_now) {
                lease.brake(wait);
            }
        }
        let request_id = REQUEST_ID_HEADERS
            .iter()
            .find_map(|name| headers.get(*name)?.to_str().ok());
        let request_id = request_id.map(|id| id.chars().take(256).collect::<String>());
        let decoder = self.work.as_ref().and_then(|Work { plan, .. }| {
            let planned = plan.targets.get(target)?;
            planned.decoder(plan.native_events, after)
        });
        running.response = match decoder {
            Some(decoder) if status.is_success() => Response::Stream(decoder),
            _ => Response::Error(ErrorBody {
                status,
                headers,
                body: Vec::new(),
                until: self.session.environment.clock.now() + ERROR_BODY_TIME,
            }),
        };
        let status = status.as_u16();
        self.tell(
            attempt,
            Seen::Head {
                status,
                request_id: request_id.as_deref(),
            },
        );
    }

    /// Decodes one read: one lock, and one wake-up of the client, for all its events.
    fn decode(&mut self, bytes: &[u8]) {
        let Some(Running {
            attempt,
            response: Response::Stream(decoder),
            ..
        }) = &mut self.running
        else {
            return;
        };
        let attempt = *attempt;
        self.session.with_core(|now, core, environment| {
            decoder.feed(bytes, &mut |event| {
                let event = Event::Upstream {
                    attempt,
                    signal: Seen::Decoded(event),
                };
                core.handle(now, event, environment);
            });
        });
    }

    fn stream_ended(&mut self, clean: bool, end: Seen<'_>) {
        let Some(running) = &mut self.running else {
            return;
        };
        let attempt = running.attempt;
        let response = &mut running.response;
        self.session.with_core(|now, core, environment| {
            if let Response::Stream(decoder) = response {
                decoder.end(clean, &mut |event| {
                    let event = Event::Upstream {
                        attempt,
                        signal: Seen::Decoded(event),
                    };
                    core.handle(now, event, environment);
                });
            }
            core.handle(
                now,
                Event::Upstream {
                    attempt,
                    signal: end,
                },
                environment,
            );
        });
    }

    pub(super) fn error_body_ended(&mut self, body_complete: bool) {
        let Some(Running {
            attempt,
            response: Response::Error(error),
            ..
        }) = &self.running
        else {
            return;
        };
        let failure = verdict::http::classify(&HttpEvidence {
            status: error.status.as_u16(),
            headers: &error.headers,
            body: &error.body,
            body_complete,
            now_wall: Some(self.session.environment.clock.wall_now()),
        });
        self.tell(*attempt, Seen::Failed(failure));
    }
}
