//! What was received, and what became of it.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde::{Serialize, Serializer};

use crate::clock::Clock;

/// The most requests that are kept; older ones are only counted. Fixed.
const MAX_KEPT: usize = 10_000;

/// The most bytes of bodies that are kept; of older requests only the length remains. Fixed.
const MAX_BODIES: usize = 256 << 20;

/// Headers whose values are credentials, and are never kept.
const CREDENTIALS: &[&str] = &[
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-amz-security-token",
    "x-api-key",
    "x-goog-api-key",
];

/// One request. Times are since the simulator's start.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Received {
    /// Counted from 1.
    pub number: u64,
    /// Its connection, counted from 1.
    pub connection: u64,
    /// Which request of its connection it is, counted from 1.
    pub nth_on_connection: u64,
    /// Its HTTP/2 stream.
    pub stream: Option<u32>,
    /// The method; empty if the head did not come.
    pub method: String,
    /// The path and the query, less the values of keys.
    pub path: String,
    /// The headers, in order; credentials are `[redacted]`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
    /// Whether the body came to its end.
    pub complete: bool,
    /// The name by which its script was found; `None`: there was none.
    pub script: Option<String>,
    /// The script's place under that name, counted from 0.
    pub place: Option<usize>,
    /// The status of the answer.
    pub status: Option<u16>,
    /// The headers of the answer, as they were served.
    pub served: Vec<(String, String)>,
    /// Bytes of the answer's body.
    pub bytes_sent: u64,
    /// When its first byte came.
    #[serde(rename = "arrived_ms", serialize_with = "millis")]
    pub arrived: Duration,
    /// When the answer's head went out.
    #[serde(rename = "head_ms", serialize_with = "maybe_millis")]
    pub head: Option<Duration>,
    /// When the answer had ended, however.
    #[serde(rename = "ended_ms", serialize_with = "maybe_millis")]
    pub ended: Option<Duration>,
    /// How.
    pub end: Option<End>,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With the last chunk, or END_STREAM.
    Clean,
    /// We closed the connection.
    Fin,
    /// We reset the connection.
    Reset,
    /// We reset the stream.
    RstStream,
    /// We sent GOAWAY.
    Goaway,
    /// The client closed the connection, or reset the stream.
    ClientLeft,
    /// It took longer than a script may.
    TimeUp,
}

/// The body of a request.
#[derive(Clone, Default)]
pub struct Body {
    /// The bytes; empty of older requests.
    pub bytes: Bytes,
    /// How many there were.
    pub length: usize,
}

impl fmt::Debug for Body {
    /// Prompts do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

impl Serialize for Body {
    /// As JSON if it is, else as text; `null` where it is not kept.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.bytes.is_empty() {
            return serializer.serialize_none();
        }
        match serde_json::from_slice::<serde_json::Value>(&self.bytes) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_str(&String::from_utf8_lossy(&self.bytes)),
        }
    }
}

/// With its microseconds: windows of a limit are swept over these times.
fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_micros() as f64 / 1e3)
}

fn maybe_millis<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => millis(time, to),
        None => to.serialize_none(),
    }
}

/// Called with each request whose answer has ended.
pub type OnEnd = Box<dyn Fn(&Received) + Send + Sync>;

/// The log of one simulator.
pub(super) struct Log {
    clock: Clock,
    on_end: Option<OnEnd>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    connections: u64,
    requests: VecDeque<Received>,
    count: u64,
    body_bytes: usize,
}

/// What `GET /requests` answers.
#[derive(Debug, Serialize)]
pub(super) struct Account {
    connections: u64,
    count: u64,
    requests: Vec<Received>,
}

impl Log {
    pub(super) fn new(clock: Clock, on_end: Option<OnEnd>) -> Self {
        let kept = Mutex::default();
        Self {
            clock,
            on_end,
            kept,
        }
    }

    /// Now.
    pub(super) fn now(&self) -> Duration {
        self.clock.now().since_origin()
    }

    /// The wall clock, for dates in headers.
    pub(super) fn wall_now(&self) -> std::time::SystemTime {
        self.clock.wall_now()
    }

    /// One more connection; which it is.
    pub(super) fn connected(&self) -> u64 {
        let mut kept = self.lock();
        kept.connections += 1;
        kept.connections
    }

    /// One more request; its number.
    pub(super) fn arrived(&self, mut request: Received) -> u64 {
        redact(&mut request);
        let mut kept = self.lock();
        kept.count += 1;
        request.number = kept.count;
        kept.requests.push_back(request);
        if kept.requests.len() > MAX_KEPT {
            let oldest = kept.requests.pop_front();
            kept.body_bytes -= oldest.map_or(0, |oldest| oldest.body.bytes.len());
        }
        kept.count
    }

    /// The body of a request, as far as it came.
    pub(super) fn body(&self, number: u64, bytes: Bytes, complete: bool) {
        let mut kept = self.lock();
        let length = bytes.len();
        let Some(request) = kept.find(number) else {
            return;
        };
        request.body = Body { bytes, length };
        request.complete = complete;
        kept.body_bytes += length;
        kept.forget_bodies();
    }

    /// What else is known of a request.
    pub(super) fn note(&self, number: u64, note: impl FnOnce(&mut Received)) {
        if let Some(request) = self.lock().find(number) {
            note(request);
        }
    }

    /// The end of an answer.
    pub(super) fn ended(&self, number: u64, end: End) {
        let now = self.now();
        let mut kept = self.lock();
        let Some(request) = kept.find(number) else {
            return;
        };
        request.end = Some(end);
        request.ended = Some(now);
        if let Some(on_end) = &self.on_end {
            let request = request.clone();
            drop(kept);
            on_end(&request);
        }
    }

    /// All requests that are kept.
    pub(super) fn requests(&self) -> Vec<Received> {
        self.lock().requests.iter().cloned().collect()
    }

    /// Everything, for a reader.
    pub(super) fn account(&self) -> Account {
        let kept = self.lock();
        Account {
            connections: kept.connections,
            count: kept.count,
            requests: kept.requests.iter().cloned().collect(),
        }
    }

    /// Forgets what is kept; the count goes on.
    pub(super) fn clear(&self) {
        let mut kept = self.lock();
        kept.requests.clear();
        kept.body_bytes = 0;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&mut self, number: u64) -> Option<&mut Received> {
        let oldest = self.requests.front()?.number;
        let place = usize::try_from(number.checked_sub(oldest)?).ok()?;
        self.requests.get_mut(place)
    }

    fn forget_bodies(&mut self) {
        for request in &mut self.requests {
            if self.body_bytes <= MAX_BODIES {
                return;
            }
            self.body_bytes -= request.body.bytes.len();
            request.body.bytes = Bytes::new();
        }
    }
}

/// Takes credentials out.
fn redact(request: &mut Received) {
    const REDACTED: &str = "[redacted]";
    for (name, value) in &mut request.headers {
        if CREDENTIALS.contains(&name.as_str()) {
            REDACTED.clone_into(value);
        }
    }
    let Some((path, query)) = request.path.split_once('?') else {
        return;
    };
    let parameters = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if name.contains("key") || name.contains("token") => {
                format!("{name}={REDACTED}")
            }
            _ => parameter.to_owned(),
        });
    request.path = format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn request(path: &str, headers: &[(&str, &str)]) -> Received {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        Received {
            path: path.to_owned(),
            headers: headers.collect(),
            ..Received::default()
        }
    }

    #[tokio::test]
    async fn credentials_are_never_kept() {
        let log = Log::new(Clock::start(), None);
        let headers = [
            ("authorization", "Bearer s3cret"),
            ("x-api-key", "s3cret"),
            ("a", "b"),
        ];
        log.arrived(request("/v1?key=s3cret&alt=sse", &headers));
        let kept = serde_json::to_string(&log.account()).unwrap();
        assert!(!kept.contains("s3cret"), "{kept}");
        assert!(kept.contains("/v1?key=[redacted]&alt=sse"), "{kept}");
        assert!(kept.contains(r#"["a","b"]"#), "{kept}");
    }

    #[tokio::test]
    async fn prompts_are_served_and_not_debugged() {
        let log = Log::new(Clock::start(), None);
        let number = log.arrived(request("/", &[]));
        log.body(number, Bytes::from_static(br#"{"model": "m"}"#), true);
        let kept = serde_json::to_string(&log.account()).unwrap();
        assert!(kept.contains(r#""body":{"model":"m"}"#), "{kept}");
        assert!(format!("{:?}", log.requests()).contains("body: 14 bytes"));
    }

    #[tokio::test]
    async fn old_requests_and_bodies_are_forgotten_and_counted() {
        let log = Log::new(Clock::start(), None);
        for _ in 0..MAX_KEPT + 5 {
            log.arrived(request("/", &[]));
        }
        assert_eq!(log.requests().len(), MAX_KEPT);
        assert_eq!(log.account().count, MAX_KEPT as u64 + 5);
        assert_eq!(log.requests()[0].number, 6);
        let large = Bytes::from(vec![b'x'; MAX_BODIES]);
        log.body(7, large.clone(), true);
        log.body(8, large, true);
        let requests = log.requests();
        assert_eq!(requests[1].body.bytes.len(), 0);
        assert_eq!(requests[1].body.length, MAX_BODIES);
        assert_eq!(requests[2].body.bytes.len(), MAX_BODIES);
    }
}
