//! A case as it stands in the file. What runs is read strictly: a field that is not understood would
//! be a promise that is not checked.

use std::{collections::BTreeMap, fmt, path::Path, time::Duration};

use serde::Deserialize;
use serde_json::Value;

/// A line of the file, whatever else it holds.
#[derive(Debug)]
pub struct Line {
    pub id: String,
    value: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub id: String,
    /// What the provider speaks, or another name where that does not matter.
    pub protocol: String,
    pub input: Input,
    #[serde(default)]
    pub client_actions: Vec<Action>,
    pub expect: Expect,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    pub upstream: Vec<Value>,
    #[serde(default)]
    pub repeat_for_all_sends: bool,
    #[serde(default)]
    pub repeat_cycle: bool,
    #[serde(default)]
    pub config: Config,
    #[serde(default)]
    pub requests: Vec<Requests>,
    #[serde(default)]
    pub assert_request: AssertRequest,
    #[serde(default)]
    pub otel: Option<Value>,
    #[serde(default)]
    pub limits: Limits,
    /// How many sidecars there are, if more than one.
    pub brokers: Option<usize>,
    /// What is wrong with the engine of shared budgets.
    #[serde(default)]
    pub redis: Faults,
    pub kill_broker: Option<Kill>,
    /// Ours is real: a window of a minute is looked at while it fills.
    #[serde(default, rename = "virtual_clock")]
    _virtual_clock: bool,
    #[serde(default, rename = "clock")]
    _clock: Vec<Suspend>,
}

/// The machine sleeps. Nothing is played for it: the monotonic clock stands still meanwhile, so all
/// that the sidecar can notice is a provider that is silent afterwards. (A process that is stopped
/// would be something else: its clock goes on, and its deadline passes.)
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suspend {
    #[serde(rename = "at_ms")]
    _at_ms: u64,
    #[serde(rename = "suspend_ms")]
    _suspend_ms: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub scale: Option<String>,
    /// Ours is always scaled.
    #[serde(rename = "backoff_scale")]
    _backoff_scale: Option<String>,
    pub inactivity_ms: Option<u64>,
    pub admission_backoff_deadline_ms: Option<u64>,
    pub max_sends: Option<u64>,
    pub drain_ms: Option<u64>,
    pub tail_ms: Option<u64>,
    pub max_message_bytes: Option<u64>,
    pub redis_timeout_ms: Option<u64>,
    /// What judges completed answers, if anything does.
    pub gate: Option<Gate>,
}

/// The turn gate of the case's route.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Gate {
    /// A preset, of which three attempts are judged.
    Preset(String),
    Whole(WholeGate),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeGate {
    pub preset: String,
    pub max_attempts: u64,
}

/// What is wrong with an engine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Nobody listens from then on.
    pub down_from_ms: Option<u64>,
    /// Each answer comes so much later.
    pub latency_ms: Option<u64>,
    /// What becomes of the first script that ran.
    pub first_eval: Option<FirstEval>,
    /// What an operator does before the second call.
    pub before_second_call: Option<String>,
    #[serde(default)]
    pub accepts_but_never_replies: bool,
    /// What each script is answered with, without being run.
    pub script_error: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub enum FirstEval {
    #[serde(rename = "commit, then drop the connection before replying")]
    LosesItsAnswer,
}

/// A sidecar is killed, as by SIGKILL.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    pub broker: usize,
    pub at_ms: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    pub count: Option<usize>,
    #[serde(default)]
    pub sequential: bool,
    #[serde(default)]
    pub gap_ms: u64,
    /// What a call is to reserve.
    pub estimated_tokens: Option<u64>,
    /// Over how many connections calls at the same time come.
    pub threads: Option<usize>,
    /// Members of the body.
    #[serde(default)]
    pub body: serde_json::Map<String, Value>,
    /// When the first comes. Those that do not come one after the other come at once.
    #[serde(default)]
    pub at_ms: u64,
    /// Which sidecar they come to.
    #[serde(default)]
    pub broker: Broker,
    /// Which route they ask for, if not the case's.
    pub route: Option<String>,
    /// What their clients are shown before it is final, if not all.
    pub delivery: Option<Shown>,
    /// When their clients leave, once the provider has their request.
    pub client_cancel_at_ms: Option<u64>,
}

/// What a client is shown before it is final.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    PreviewNoReset,
    CommittedOnly,
}

/// Which sidecar a call comes to.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Broker {
    Number(usize),
    /// `i mod 2`: in turn.
    Turn(String),
}

impl Default for Broker {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// The budget of a case.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default)]
    pub local: bool,
    /// The engine that keeps it.
    pub shared: Option<String>,
    pub tokens_per_minute: Option<u64>,
    pub requests_per_minute: Option<u64>,
    pub requests_per_second: Option<u64>,
    pub concurrent: Option<u64>,
    /// There is a route `local_only` beside the case's, of which no budget takes part.
    #[serde(default)]
    pub also_route_without_shared_limit: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssertRequest {
    #[serde(default)]
    pub header_equals: BTreeMap<String, String>,
    #[serde(default)]
    pub body_contains: BTreeMap<String, Value>,
    #[serde(default)]
    pub bodies_identical: bool,
    pub count: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    pub at_ms: Option<u64>,
    pub after: Option<String>,
    pub cancel: Option<String>,
    /// The client acts on what it has got.
    pub effects: Option<bool>,
    pub rst_stream: Option<bool>,
    pub pause_reading_ms: Option<u64>,
    pub signal: Option<String>,
    pub new_call: Option<String>,
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    pub frames: Vec<Value>,
    pub physical_sends: Sends,
    #[serde(default)]
    pub attempt_failure_classes: Vec<String>,
    /// Why the gate rejected attempts.
    #[serde(default)]
    pub gate_reasons: Vec<String>,
    #[serde(default)]
    pub retry_wait: RetryWait,
    #[serde(default, rename = "final")]
    _final: Value,
    #[serde(default, rename = "note")]
    _note: Value,
    /// What another answer to an open question would give. The design has answered it.
    #[serde(default, rename = "alternatives")]
    _alternatives: Value,
}

/// How many requests reach the provider.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Sends {
    Exactly(usize),
    /// `<=120 in the first minute`: at most, and at least one.
    Some(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct RetryWait {
    pub min_ms: Option<u64>,
    pub max_ms: Option<u64>,
    pub source: Option<String>,
}

impl Line {
    pub fn of(value: Value) -> Self {
        let id = value["id"].as_str().unwrap().to_owned();
        Self { id, value }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn into_value(self) -> Value {
        self.value
    }

    pub fn case(self) -> Case {
        let id = self.id;
        Case::deserialize(self.value).unwrap_or_else(|error| panic!("{id}: {error}"))
    }
}

impl Input {
    /// Whether its budget is kept by an engine.
    pub fn is_shared(&self) -> bool {
        let engine = self.limits.shared.as_deref();
        assert!(matches!(engine, None | Some("redis")), "engine {engine:?}");
        engine.is_some()
    }

    /// What call `index` asks for.
    pub fn requests_of(&self, index: usize) -> Option<&Requests> {
        let mut before = 0;
        self.requests.iter().find(|requests| {
            before += requests.count.unwrap_or(1);
            index < before
        })
    }
}

impl Sends {
    /// What is wrong with `sends` requests.
    pub fn complaint(&self, sends: usize) -> Option<String> {
        let right = match self {
            Self::Exactly(expected) => sends == *expected,
            Self::Some(text) => (1..=at_most(text)).contains(&(sends as u64)),
        };
        (!right).then(|| format!("{sends} sends, not {self}"))
    }
}

impl fmt::Display for Sends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(expected) => expected.fmt(f),
            Self::Some(text) => text.fmt(f),
        }
    }
}

impl Config {
    /// The preset and the attempts that are judged, if the case has a gate.
    pub fn gate(&self) -> Option<(&str, u64)> {
        match self.gate.as_ref()? {
            Gate::Preset(preset) => Some((preset, 3)),
            Gate::Whole(gate) => Some((&gate.preset, gate.max_attempts)),
        }
    }

    /// Whether times are a hundredth.
    pub fn is_scaled(&self) -> bool {
        match self.scale.as_deref() {
            None => false,
            Some("1:100") => true,
            Some(other) => panic!("scale {other}"),
        }
    }
}

impl Action {
    /// When it is due after the start of its call, or of the case.
    pub fn at(&self) -> Option<Duration> {
        self.at_ms.map(Duration::from_millis)
    }

    /// Whether the client acts on what it has got, after its first delta.
    pub fn takes_effect(&self) -> bool {
        let takes = self.effects == Some(true);
        let after = self.after.as_deref();
        assert!(!takes || after == Some("first Delta"), "effects {self:?}");
        takes
    }

    pub fn cancels(&self) -> bool {
        self.cancel.is_some() || self.rst_stream == Some(true)
    }
}

/// The number of `<=120 in the first minute`.
pub fn at_most(text: &str) -> u64 {
    let number = text
        .strip_prefix("<=")
        .and_then(|rest| rest.split(' ').next());
    let number = number.and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text:?} is no bound"))
}

impl Case {
    /// Whether some of its clients leave in the midst of their calls. The others stay.
    pub fn leaves_in_its_midst(&self) -> bool {
        let mut requests = self.input.requests.iter();
        requests.any(|requests| requests.client_cancel_at_ms.is_some())
    }
}

/// The cases from public reports, and those of the turn gate.
pub const FILES: [&str; 2] = ["cases.jsonl", "gate.jsonl"];

/// All cases of all files.
pub fn all() -> Vec<Line> {
    FILES.iter().flat_map(|file| of_file(file)).collect()
}

/// All cases of `file`.
pub fn of_file(file: &str) -> Vec<Line> {
    let text = read(file);
    let lines = text
        .lines()
        .map(|line| Line::of(serde_json::from_str(line).unwrap()));
    lines.collect()
}

/// The ids of `not_run.txt` with their reasons.
pub fn not_run() -> BTreeMap<String, String> {
    let text = read("not_run.txt");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|line| {
        let (id, reason) = line
            .split_once("  ")
            .unwrap_or_else(|| panic!("no reason: {line}"));
        (id.to_owned(), reason.trim().to_owned())
    });
    let listed: Vec<_> = entries.collect();
    let count = listed.len();
    let map: BTreeMap<_, _> = listed.into_iter().collect();
    assert_eq!(map.len(), count, "an id is listed twice");
    map
}

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    std::fs::read_to_string(folder.join(name)).unwrap()
}
