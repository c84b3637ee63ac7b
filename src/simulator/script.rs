//! What a provider is told to do with one request.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// One response: its head, then its steps in order, then a clean end of the body.
#[derive(Clone, Debug)]
pub struct Script {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// What happens to the body.
    pub steps: Vec<Step>,
}

/// One thing that happens in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These bytes are sent.
    Send(Bytes),
    /// Nothing happens for this long.
    Pause(Duration),
    /// Nothing happens any more; the connection stays open.
    Hang,
    /// The connection is closed without the end of the body.
    Cut,
}

impl Script {
    /// A response without a body, to be given one.
    pub fn new(status: StatusCode, content_type: &'static str) -> Self {
        let content_type = HeaderValue::from_static(content_type);
        Self {
            status,
            headers: HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]),
            steps: Vec::new(),
        }
    }

    /// An event stream that has begun.
    pub fn event_stream() -> Self {
        Self::new(StatusCode::OK, "text/event-stream")
    }

    /// With one more header.
    pub fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// With one more step.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// A recorded event stream, one event at a time with `pace` before each.
    pub fn recording(recording: &Bytes, pace: Duration) -> Self {
        let mut script = Self::event_stream();
        for event in events(recording) {
            script.steps.push(Step::Pause(pace));
            script.steps.push(Step::Send(event));
        }
        script
    }
}

/// Cuts after each empty line, whatever line ends the recording has. Every byte is kept.
fn events(recording: &Bytes) -> Vec<Bytes> {
    let mut events = Vec::new();
    let mut start = 0;
    let mut line = 0;
    for (at, byte) in recording.iter().enumerate() {
        match byte {
            b'\n' if line == 0 && at > start => {
                events.push(recording.slice(start..=at));
                start = at + 1;
            }
            b'\n' => line = 0,
            b'\r' => {}
            _ => line += 1,
        }
    }
    if start < recording.len() {
        events.push(recording.slice(start..));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_cut_at_its_empty_lines_and_keeps_every_byte() {
        let recording = Bytes::from_static(b"data: 1\n\n\r\ndata: 2\r\n\r\ndata: 3");
        let events = events(&recording);
        let cut: Vec<&[u8]> = events.iter().map(AsRef::as_ref).collect();
        let expected: [&[u8]; 4] = [b"data: 1\n\n", b"\r\n", b"data: 2\r\n\r\n", b"data: 3"];
        assert_eq!(cut, expected);
    }

    #[test]
    fn a_played_recording_paces_every_event_and_ends_cleanly() {
        let pace = Duration::from_millis(5);
        let script = Script::recording(&Bytes::from_static(b"data: 1\n\ndata: 2\n\n"), pace);
        let send = |text: &'static str| Step::Send(Bytes::from_static(text.as_bytes()));
        let expected = [
            Step::Pause(pace),
            send("data: 1\n\n"),
            Step::Pause(pace),
            send("data: 2\n\n"),
        ];
        assert_eq!(script.steps, expected);
    }
}
