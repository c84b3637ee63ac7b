//! How budgets are told to the script: their limits as a list of numbers.

use std::fmt::Write as _;

use super::{Options, micros};
use crate::limits::{Measure, Micros, Refund, Settings, Weights};

/// The most that Lua counts exactly, less room to add.
const MOST: u64 = 1 << 52;

/// The longest time that is told: 35 years.
const LONGEST: Micros = 1 << 50;

/// The most tokens of one send that count: no sum of as many sends as a budget remembers is more than
/// Lua counts exactly.
pub(super) const MOST_TOKENS: u64 = u32::MAX as u64;

/// A domain's budgets as the script knows them.
#[derive(Debug)]
pub(super) struct Told {
    /// Name and limits of each.
    pub(super) budgets: Vec<(String, String)>,
    /// All of them, a line each.
    pub(super) lines: String,
    /// What names this configuration.
    pub(super) revision: String,
    /// The longest that a lease may be unsent.
    pub(super) unsent: Micros,
    /// How long an idle domain is kept.
    pub(super) keep: Micros,
}

impl Told {
    pub(super) fn new(settings: &[Settings], options: &Options) -> Self {
        let most = options.most_entries;
        let budgets = settings.iter();
        let budgets: Vec<_> = budgets
            .map(|settings| (settings.name.clone(), line(settings, most)))
            .collect();
        let mut lines = String::new();
        for (name, line) in &budgets {
            let _ = writeln!(lines, "{name} {line}");
        }
        let lengths = settings.iter().flat_map(|settings| {
            let windows = settings.windows.iter();
            windows.map(|window| window.window.saturating_add(settings.margin))
        });
        let longest = lengths.max().unwrap_or(0).min(LONGEST);
        let told = |time| micros(time).min(LONGEST);
        let unsent = told(options.longest_unsent);
        // A lease lives so long, unrenewed; what it was counts for the longest window more.
        let lives = unsent.max(told(options.life));
        // A day may have 25 hours, and its end may lie in another zone.
        let daily = settings.iter().any(|settings| !settings.daily.is_empty());
        let day = if daily { 50 * 3_600_000_000 } else { 0 };
        let keep = longest.saturating_add(2 * lives).max(day);
        Self {
            revision: format!("r{:016x}", fnv(lines.as_bytes())),
            budgets,
            lines,
            unsent,
            keep,
        }
    }
}

fn line(settings: &Settings, most_entries: u64) -> String {
    let refund = match settings.refund {
        Refund::Never => 0,
        Refund::InputOnly => 1,
        Refund::All => 2,
    };
    let margin = settings.margin.min(LONGEST);
    let mut line = format!("[{most_entries},{margin},{refund},");
    let _ = match settings.concurrent {
        Some(concurrent) => write!(line, "{}", concurrent.min(MOST)),
        None => write!(line, "-1"),
    };
    let _ = write!(line, ",{}", settings.windows.len());
    for window in &settings.windows {
        let measure = measure(window.measure);
        let (limit, length) = (window.limit.min(MOST), window.window.min(LONGEST));
        let _ = write!(line, ",{measure},{limit},{length}");
    }
    for daily in &settings.daily {
        let _ = write!(
            line,
            ",{},{}",
            measure(daily.measure),
            daily.limit.min(MOST)
        );
    }
    line.push(']');
    line
}

fn measure(measure: Measure) -> u8 {
    match measure {
        Measure::Requests => 1,
        Measure::InputTokens => 2,
        Measure::OutputTokens => 3,
    }
}

/// What the script counts of `weights`.
pub(super) fn counted(weights: Weights) -> [u64; 2] {
    [weights.input_tokens, weights.output_tokens].map(|tokens| tokens.min(MOST_TOKENS))
}

/// How the script knows a flow: labels are long, and nobody else's business.
pub(super) fn flow(label: &str) -> String {
    format!("{:016x}", fnv(label.as_bytes()))
}

/// FNV-1a: the same in every build, which the standard library's hashes do not promise.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{DailyLimit, WindowLimit};

    #[test]
    fn limits_are_told_as_integers_that_lua_counts_exactly() {
        let settings = Settings {
            name: "a".into(),
            windows: vec![WindowLimit {
                measure: Measure::OutputTokens,
                limit: u64::MAX,
                window: 60_000_000,
            }],
            concurrent: None,
            daily: vec![DailyLimit {
                measure: Measure::Requests,
                limit: 7,
            }],
            refund: Refund::InputOnly,
            margin: 250_000,
        };
        let line = line(&settings, 1_000);
        assert_eq!(line, "[1000,250000,1,-1,1,3,4503599627370496,60000000,1,7]");
    }

    #[test]
    fn a_revision_is_of_the_limits_alone() {
        assert_eq!(fnv(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
