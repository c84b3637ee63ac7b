//! Scripts in order: what a file holds.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::script::{ConnectFault, Script};

/// The largest file of scripts, in bytes. Fixed.
pub const MAX_FILE: u64 = 16 << 20;

/// Scripts, one per request, in order.
#[derive(Clone, Debug, Default)]
pub struct Playlist {
    /// What the file says it is about.
    pub about: String,
    /// The scripts of requests. Faults that stand for no request are not among them.
    pub scripts: Vec<Arc<Script>>,
    /// What follows the last one.
    pub after: After,
    /// Nobody is to listen.
    pub refused: bool,
}

/// What follows the last script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// The first one again.
    #[default]
    StartAgain,
    /// The last one again.
    RepeatLast,
    /// Nothing: the request is refused with 400.
    Refuse,
}

/// Why a file is no playlist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PlaylistError(String);

/// The object form. Whatever else it holds (as a whole case does) is not ours to read.
#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    about: String,
    upstream: Vec<Value>,
    #[serde(default)]
    repeat_for_all_sends: bool,
    #[serde(default)]
    repeat_cycle: bool,
}

impl Playlist {
    /// These scripts, then `after`.
    pub fn new(scripts: impl IntoIterator<Item = Script>, after: After) -> Self {
        Self {
            scripts: scripts.into_iter().map(Arc::new).collect(),
            after,
            ..Self::default()
        }
    }

    /// Reads a file: one script, a list of scripts, an object with `upstream`, or a whole case with
    /// `input.upstream`.
    ///
    /// # Errors
    /// If it is none of these, naming the script and what is wrong in it.
    pub fn parse(text: &str) -> Result<Self, PlaylistError> {
        let value = serde_json::from_str(text);
        let value = value.map_err(|error| PlaylistError(format!("not JSON: {error}")))?;
        Self::read(value)
    }

    /// The same of JSON that has been read.
    ///
    /// # Errors
    /// As [`Playlist::parse`].
    pub fn read(mut value: Value) -> Result<Self, PlaylistError> {
        if let Some(input) = value.get_mut("input") {
            value = input.take();
        }
        match value {
            Value::Array(scripts) => Self::of(scripts, After::StartAgain),
            Value::Object(ref object) if object.contains_key("upstream") => {
                let listed = Listed::deserialize(value);
                let listed = listed.map_err(|error| PlaylistError(error.to_string()))?;
                let after = match (listed.repeat_for_all_sends, listed.repeat_cycle) {
                    (true, true) => return Err(both()),
                    (true, false) => After::RepeatLast,
                    (false, true) => After::StartAgain,
                    (false, false) => After::Refuse,
                };
                let playlist = Self::of(listed.upstream, after)?;
                Ok(Self {
                    about: listed.about,
                    ..playlist
                })
            }
            script => Self::of(vec![script], After::RepeatLast),
        }
    }

    fn of(values: Vec<Value>, after: After) -> Result<Self, PlaylistError> {
        let mut scripts: Vec<Script> = Vec::new();
        let mut refused = false;
        for (number, value) in (1..).zip(values) {
            let script = Script::deserialize(value);
            let script =
                script.map_err(|error| PlaylistError(format!("script {number}: {error}")))?;
            match script.connect {
                Some(ConnectFault::Refused) => refused = true,
                // The first is not a server's to make, the second is what TLS clients meet anyway.
                Some(ConnectFault::DnsTemporaryFailure)
                | Some(ConnectFault::TlsUntrustedCertificate) => {}
                Some(ConnectFault::FinWhileIdleInPool) => {
                    let before = scripts.last_mut();
                    let none = || format!("script {number}: no answer comes before it");
                    before.ok_or_else(|| PlaylistError(none()))?.fin_when_idle = true;
                }
                _ => scripts.push(script),
            }
        }
        Ok(Self {
            refused,
            ..Self::new(scripts, after)
        })
    }

    /// The script of the `turn`th request, counted from 0, and its place.
    pub fn script(&self, turn: usize) -> Option<(usize, &Arc<Script>)> {
        let count = self.scripts.len();
        let place = match self.after {
            After::StartAgain => turn.checked_rem(count)?,
            After::RepeatLast => turn.min(count.checked_sub(1)?),
            After::Refuse => turn,
        };
        self.scripts.get(place).map(|script| (place, script))
    }
}

fn both() -> PlaylistError {
    let both = "either `repeat_for_all_sends` or `repeat_cycle`, not both";
    PlaylistError(both.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn places(playlist: &Playlist, turns: usize) -> Vec<Option<usize>> {
        let place = |turn| playlist.script(turn).map(|(place, _)| place);
        (0..turns).map(place).collect()
    }

    #[test]
    fn one_script_answers_every_request() {
        let one = Playlist::parse(r#"{"status": 503}"#).unwrap();
        assert_eq!(places(&one, 3), [Some(0), Some(0), Some(0)]);
        assert_eq!(one.scripts[0].status, 503);
    }

    #[test]
    fn a_list_starts_again() {
        let list = Playlist::parse(r#"[{"status": 503}, {}]"#).unwrap();
        assert_eq!(places(&list, 3), [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn a_case_is_played_once_unless_it_says_otherwise() {
        let case = |more: &str| {
            let text = format!(r#"{{"id": "C1", "input": {{"upstream": [{{}}, {{}}]{more}}}}}"#);
            places(&Playlist::parse(&text).unwrap(), 4)
        };
        assert_eq!(case(""), [Some(0), Some(1), None, None]);
        let last = case(r#", "repeat_for_all_sends": true"#);
        assert_eq!(last, [Some(0), Some(1), Some(1), Some(1)]);
        let cycle = case(r#", "repeat_cycle": true"#);
        assert_eq!(cycle, [Some(0), Some(1), Some(0), Some(1)]);
    }

    #[test]
    fn faults_that_are_no_request_have_no_turn() {
        let text = r#"[{}, {"connect": "fin_while_idle_in_pool"}, {"connect": "refused"}]"#;
        let list = Playlist::parse(text).unwrap();
        assert_eq!(list.scripts.len(), 1);
        assert!(list.scripts[0].fin_when_idle);
        assert!(list.refused);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_script() {
        let wrong = |text: &str| Playlist::parse(text).unwrap_err().to_string();
        assert!(wrong("nonsense").starts_with("not JSON: "));
        assert!(wrong(r#"[{}, {"bdy": []}]"#).starts_with("script 2: unknown field `bdy`"));
        assert!(wrong(r#"{"body": [{"close": "soon"}]}"#).contains("unknown variant `soon`"));
        let long = wrong(r#"{"body": [{"sleep_ms": 3600001}]}"#);
        assert_eq!(long, "script 1: 3600001 ms is longer than an hour");
        let fill = r#"{"body": [{"fill": {"byte": "x", "count": 99999999999}}]}"#;
        assert!(wrong(fill).contains("99999999999 bytes are not between 1 and"));
        let header = wrong(r#"{"headers": {"a": "b\r\nc: d"}}"#);
        assert_eq!(header, "script 1: headers: the value of \"a\"");
        let code = wrong(r#"{"h2": [{"rst_stream": "OOPS"}]}"#);
        assert_eq!(code, "script 1: \"OOPS\" is no error code of HTTP/2");
        let first = wrong(r#"[{"connect": "fin_while_idle_in_pool"}]"#);
        assert_eq!(first, "script 1: no answer comes before it");
    }
}
