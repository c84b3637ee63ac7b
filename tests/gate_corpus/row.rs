//! What is recorded of one run, and when that says nothing.

use std::fmt::{self, Display, Formatter};

/// One cell of the corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Scenario, policy, protocol and delivery.
    pub name: String,
    /// What the scenario says it is rejected for, answer by answer.
    pub declared: Vec<String>,
    /// `None`: the models of today cannot have it.
    pub seen: Option<Seen>,
}

/// What was seen of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The code, and the class of a failure.
    pub status: String,
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
    /// The client acted on a part of it, so that this is all there can be.
    pub acted_on: bool,
}

impl Row {
    /// Why this row is not worth keeping, if it is not: it declares what it does not show.
    pub fn hollow(&self) -> Option<String> {
        let declared = self.declared.len();
        let Some(seen) = &self.seen else {
            return (declared > 0)
                .then(|| format!("not applicable, and declares {declared} reasons"));
        };
        let hints = seen.hints.len();
        if hints != declared {
            return Some(format!(
                "declares {declared} reasons and shows {hints} hints"
            ));
        }
        if seen.hints.iter().any(|hint| hint.trim().is_empty()) {
            return Some("a hint says nothing".to_owned());
        }
        if seen.reasons != self.declared {
            return Some(format!("was rejected for {:?}", seen.reasons));
        }
        let wanted = 1 + declared + seen.continuations;
        if seen.sends != wanted {
            return Some(format!("{} sends instead of {wanted}", seen.sends));
        }
        let is_read = |part: &&String| seen.acted_on || !part.starts_with("reasoning");
        if seen.status == "Ok" && seen.message.iter().filter(is_read).count() == 0 {
            return Some("nothing was delivered".to_owned());
        }
        None
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}]", self.name)?;
        let Some(seen) = &self.seen else {
            return writeln!(f, "not applicable");
        };
        writeln!(f, "status:  {}", seen.status)?;
        writeln!(f, "sends:   {}", seen.sends)?;
        writeln!(f, "reasons: {}", listed(&seen.reasons))?;
        for (label, lines) in [
            ("frame", &seen.frames),
            ("hint", &seen.hints),
            ("message", &seen.message),
            ("withheld", &seen.withheld),
        ] {
            for line in lines {
                writeln!(f, "{label}: {line}")?;
            }
        }
        writeln!(f, "flags:   {}", listed(&seen.flags))?;
        writeln!(f, "finish:  {}", seen.finish)
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
