//! A recorded answer, as a script.

use std::{fs, io, io::Read, path::Path, time::Duration};

use bytes::Bytes;
use serde::Deserialize;

use super::{
    playlist::{After, MAX_FILE, Playlist},
    script::{Op, Script},
};

/// The name of the list that says what else is known of recordings. It stands in the recording's
/// folder or in the one above, one JSON object a line.
const MANIFEST: &str = "MANIFEST.jsonl";

/// What a provider once answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The body.
    pub body: Bytes,
    /// The status.
    pub status: u16,
    /// The content type.
    pub content_type: String,
    /// Where the reads of the recorder ended, as lengths; empty where that is not known.
    pub chunk_sizes: Vec<usize>,
    /// When each of these reads ended, in milliseconds since the response head; empty where that is not
    /// known.
    pub chunk_times_ms: Vec<u64>,
}

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It is too large.
    #[error("larger than 16 MiB")]
    TooLarge,
}

/// A line of the manifest.
#[derive(Deserialize)]
struct Known {
    file: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    chunk_sizes: Option<Vec<usize>>,
    #[serde(default)]
    chunk_times_ms: Option<Vec<u64>>,
}

/// What lies between the writes of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// The time that lay between them when they were recorded; none where that is not known.
    #[default]
    Recorded,
    /// The same before each.
    Given(Duration),
}

impl Recording {
    /// A body of which nothing else is known: an event stream.
    pub fn new(body: Bytes) -> Self {
        Self {
            body,
            status: 200,
            content_type: "text/event-stream".to_owned(),
            chunk_sizes: Vec::new(),
            chunk_times_ms: Vec::new(),
        }
    }

    /// Reads `file`, and what a manifest beside it says of it.
    ///
    /// # Errors
    /// If the file cannot be read or is too large.
    pub fn load(file: &Path) -> Result<Self, RecordingError> {
        let mut recording = Self::new(read(file)?);
        let folders = file
            .parent()
            .into_iter()
            .flat_map(|folder| [Some(folder), folder.parent()]);
        for folder in folders.flatten() {
            let Ok(manifest) = read(&folder.join(MANIFEST)) else {
                continue;
            };
            let Ok(name) = file.strip_prefix(folder) else {
                continue;
            };
            let lines = manifest.split(|byte| *byte == b'\n');
            let mut known = lines.filter_map(|line| serde_json::from_slice::<Known>(line).ok());
            if let Some(known) = known.find(|known| Path::new(&known.file) == name) {
                recording.learn(known);
                break;
            }
        }
        Ok(recording)
    }

    fn learn(&mut self, known: Known) {
        self.status = known
            .status
            .filter(|s| (200..600).contains(s))
            .unwrap_or(self.status);
        if let Some(content_type) = known.headers.get("content-type").and_then(|v| v.as_str()) {
            content_type.clone_into(&mut self.content_type);
        }
        let sizes = known.chunk_sizes.unwrap_or_default();
        if sizes
            .iter()
            .try_fold(0_usize, |sum, size| sum.checked_add(*size))
            == Some(self.body.len())
        {
            let times = known.chunk_times_ms.unwrap_or_default();
            if times.len() == sizes.len() && times.is_sorted() {
                self.chunk_times_ms = times;
            }
            self.chunk_sizes = sizes;
        }
    }

    /// As a script: the recorded writes where they are known, else one event a write.
    pub fn script(&self, pace: Pace) -> Script {
        let mut script = Script::new(self.status, &self.content_type);
        for (index, write) in self.writes().into_iter().enumerate() {
            let pace = match pace {
                Pace::Given(pace) => pace,
                Pace::Recorded => self.recorded_pause(index),
            };
            if !pace.is_zero() {
                script = script.then(Op::Pause(pace));
            }
            script = script.then(Op::Write(write));
        }
        script
    }

    fn recorded_pause(&self, index: usize) -> Duration {
        let at = |index: usize| self.chunk_times_ms.get(index).copied().unwrap_or_default();
        let before = index.checked_sub(1).map_or(0, at);
        Duration::from_millis(at(index).saturating_sub(before))
    }

    /// Answers every request with it.
    pub fn playlist(&self, pace: Pace) -> Playlist {
        Playlist::new([self.script(pace)], After::RepeatLast)
    }

    /// What is written at a time.
    pub fn writes(&self) -> Vec<Bytes> {
        if self.chunk_sizes.is_empty() {
            return events(&self.body);
        }
        let mut rest = self.body.clone();
        let sizes = self.chunk_sizes.iter();
        sizes
            .map(|size| rest.split_to((*size).min(rest.len())))
            .collect()
    }
}

fn read(file: &Path) -> Result<Bytes, RecordingError> {
    let mut content = Vec::new();
    fs::File::open(file)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut content)?;
    match content.len() as u64 > MAX_FILE {
        true => Err(RecordingError::TooLarge),
        false => Ok(Bytes::from(content)),
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
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn of(body: &'static str) -> Recording {
        Recording::new(Bytes::from_static(body.as_bytes()))
    }

    fn write(text: &'static str) -> Op {
        Op::Write(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_recording_is_cut_at_its_empty_lines_and_keeps_every_byte() {
        let writes = of("data: 1\n\n\r\ndata: 2\r\n\r\ndata: 3").writes();
        let cut: Vec<&[u8]> = writes.iter().map(AsRef::as_ref).collect();
        let expected: [&[u8]; 4] = [b"data: 1\n\n", b"\r\n", b"data: 2\r\n\r\n", b"data: 3"];
        assert_eq!(cut, expected);
    }

    #[test]
    fn a_pace_stands_before_every_write() {
        let pace = Duration::from_millis(5);
        let recording = of("data: 1\n\ndata: 2\n\n");
        let expected = [
            Op::Pause(pace),
            write("data: 1\n\n"),
            Op::Pause(pace),
            write("data: 2\n\n"),
        ];
        assert_eq!(recording.script(Pace::Given(pace)).body, expected);
        let unpaced = [write("data: 1\n\n"), write("data: 2\n\n")];
        assert_eq!(recording.script(Pace::Recorded).body, unpaced);
    }

    #[test]
    fn a_manifest_tells_writes_status_and_type() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("kind")).unwrap();
        fs::write(folder.path().join("kind/a.sse"), "data: 1\n\ndata: 2\n\n").unwrap();
        let manifest = concat!(
            "not JSON\n",
            r#"{"file": "kind/b.sse", "chunk_sizes": [18]}"#,
            "\n",
            r#"{"file": "kind/a.sse", "status": 529, "headers": {"content-type": "a/b"}, "chunk_sizes": [3, 15]}"#,
            "\n",
        );
        fs::write(folder.path().join(MANIFEST), manifest).unwrap();
        let script = Recording::load(&folder.path().join("kind/a.sse")).unwrap();
        let script = script.script(Pace::Recorded);
        assert_eq!(script.status, 529);
        assert_eq!(script.headers["content-type"], "a/b");
        assert_eq!(script.body, [write("dat"), write("a: 1\n\ndata: 2\n\n")]);
    }

    #[test]
    fn recorded_times_are_kept_unless_another_pace_is_given() {
        let mut recording = of("data: 1\n\ndata: 2\n\n");
        let known = r#"{"file": "a", "chunk_sizes": [9, 9], "chunk_times_ms": [40, 100]}"#;
        recording.learn(serde_json::from_str(known).unwrap());
        let pause = |ms| Op::Pause(Duration::from_millis(ms));
        let writes = [write("data: 1\n\n"), write("data: 2\n\n")];
        let paced = [pause(40), writes[0].clone(), pause(60), writes[1].clone()];
        assert_eq!(recording.script(Pace::Recorded).body, paced);
        let unpaced = recording.script(Pace::Given(Duration::ZERO));
        assert_eq!(unpaced.body, writes);
    }

    #[test]
    fn times_that_do_not_fit_the_writes_are_not_believed() {
        for times in ["[40]", "[100, 40]"] {
            let mut recording = of("data: 1\n\ndata: 2\n\n");
            let known =
                format!(r#"{{"file": "a", "chunk_sizes": [9, 9], "chunk_times_ms": {times}}}"#);
            recording.learn(serde_json::from_str(&known).unwrap());
            assert_eq!(recording.chunk_times_ms, [0_u64; 0], "{times}");
        }
    }

    #[test]
    fn sizes_that_are_not_the_body_s_are_not_believed() {
        let mut recording = of("data: 1\n\n");
        let wrong = r#"{"file": "a", "status": 99, "chunk_sizes": [4]}"#;
        recording.learn(serde_json::from_str(wrong).unwrap());
        assert_eq!(recording, of("data: 1\n\n"));
    }
}
