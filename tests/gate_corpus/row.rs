//! What is recorded of one run, and when that is not what its scenario declares.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
};

use redrive::gate::Then;

use crate::scenario::{ACCEPTED, Course, Ending};

/// One cell of the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Scenario, protocol, policy and delivery.
    pub name: String,
    /// What the scenario says that becomes of it.
    pub declared: Course,
    /// `None`: the models of today cannot have it.
    pub seen: Option<Seen>,
}

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The code.
    pub status: String,
    /// Of a failure: its class, and why the gate rejected, if it did.
    pub class: String,
    /// Of a failure: what ended recovery.
    pub stopped_by: String,
    pub sends: usize,
    /// How many of them go on with a text where it was cut off.
    pub continuations: usize,
    pub frames: Vec<String>,
    /// The parts that were delivered.
    pub message: Vec<String>,
    pub withheld: Vec<String>,
    pub flags: Vec<String>,
    pub finish: String,
    /// What each retry adds to the first request.
    pub hints: Vec<String>,
    /// What the ledger says that answers were rejected for.
    pub reasons: Vec<String>,
    /// What the metrics say: reason, what became of it, how often.
    pub rejected: Vec<String>,
    /// What the client has must not become void, so that this is all there can be.
    pub is_kept: bool,
}

impl Row {
    /// Why this row must not be kept, if so: it does not show what it declares, or shows more.
    pub fn hollow(&self) -> Option<String> {
        let declared = &self.declared;
        let Some(seen) = &self.seen else {
            let declares = *declared != ACCEPTED;
            return declares.then(|| "not applicable, and declares what becomes of it".to_owned());
        };
        let retries = declared.retried.len();
        let hints = seen.hints.len();
        if hints != retries {
            return Some(format!(
                "declares {retries} retries and shows {hints} hints"
            ));
        }
        if seen.hints.iter().any(|hint| hint.trim().is_empty()) {
            return Some("a hint says nothing".to_owned());
        }
        if seen.reasons != declared.in_ledger() {
            return Some(format!("was rejected for {:?}", seen.reasons));
        }
        if seen.rejected != counted(declared.rejections()) {
            return Some(format!("counts as rejected {:?}", seen.rejected));
        }
        let wanted = 1 + retries + seen.continuations;
        if seen.sends != wanted {
            return Some(format!("{} sends instead of {wanted}", seen.sends));
        }
        seen.ends_otherwise_than(declared.end)
    }

    /// The row without its name.
    pub fn body(&self) -> String {
        match &self.seen {
            None => "not applicable\n".to_owned(),
            Some(seen) => seen.to_string(),
        }
    }
}

impl Seen {
    /// What about the end is not as declared.
    fn ends_otherwise_than(&self, declared: Ending) -> Option<String> {
        let is_terminal = |frame: &&String| matches!(frame.as_str(), "committed" | "failed");
        let terminals: Vec<_> = self.frames.iter().filter(is_terminal).collect();
        let (terminal, class, by) = match declared {
            Ending::Accepted | Ending::Delivered(_) => ("committed", String::new(), ""),
            Ending::Failed(reason, class, by) => (
                "failed",
                told(class.as_str_name(), reason),
                by.as_str_name(),
            ),
        };
        if terminals != [terminal] || self.frames.last() != terminals.last().copied() {
            return Some(format!("ends with {terminals:?} instead of {terminal}"));
        }
        if (self.status == "Ok") != class.is_empty() {
            return Some(format!("the status of {terminal} is {}", self.status));
        }
        if (&self.class, &*self.stopped_by) != (&class, by) {
            let (class, by) = (&self.class, &self.stopped_by);
            return Some(format!("failed with {class:?} by {by:?}"));
        }
        let is_read = |part: &&String| self.is_kept || !part.starts_with("reasoning");
        let is_empty = !self.message.iter().any(|part| is_read(&part));
        if terminal == "committed" && is_empty {
            return Some("nothing was delivered".to_owned());
        }
        None
    }
}

/// A class, and why the gate rejected where it is that of the gate.
pub fn told(class: &str, reason: &str) -> String {
    match class {
        "VERDICT_CLASS_GATE_REJECTED" => format!("{class} {reason}"),
        class => class.to_owned(),
    }
}

/// Rejections in the order of their reasons, each with how often it was.
pub fn counted<'a>(rejections: impl IntoIterator<Item = (&'a str, Then)>) -> Vec<String> {
    let mut counts = BTreeMap::new();
    for (reason, then) in rejections {
        let place = Then::ALL.iter().position(|one| *one == then);
        *counts.entry((reason, place, then.as_str())).or_insert(0) += 1;
    }
    let lines = counts
        .into_iter()
        .map(|((reason, _, then), count)| format!("{reason} {then} {count}"));
    lines.collect()
}

impl Display for Seen {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "status:  {}", self.status)?;
        if !self.class.is_empty() {
            writeln!(f, "class:   {}", self.class)?;
            writeln!(f, "stopped_by: {}", self.stopped_by)?;
        }
        writeln!(f, "sends:   {}", self.sends)?;
        writeln!(f, "reasons: {}", listed(&self.reasons))?;
        writeln!(f, "rejected: {}", listed(&self.rejected))?;
        for (label, lines) in [
            ("frame", &self.frames),
            ("hint", &self.hints),
            ("message", &self.message),
            ("withheld", &self.withheld),
        ] {
            for line in lines {
                writeln!(f, "{label}: {line}")?;
            }
        }
        writeln!(f, "flags:   {}", listed(&self.flags))?;
        writeln!(f, "finish:  {}", self.finish)
    }
}

fn listed(words: &[String]) -> String {
    match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(", "),
    }
}

/// `text` with ids as `<id>`, and one that a provider numbers as `call_<n>`.
pub fn scrubbed(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let end = end.max(if is_word(first) { 1 } else { first.len_utf8() });
        let (word, after) = rest.split_at(end);
        let number = word.strip_prefix("call_").unwrap_or_default();
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        match word {
            _ if is_number => out.push_str("call_<n>"),
            _ if uuid::Uuid::try_parse(word).is_ok() => out.push_str("<id>"),
            _ => out.push_str(word),
        }
        rest = after;
    }
    out
}
