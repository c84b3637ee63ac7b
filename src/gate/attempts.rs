//! How many attempts the gate judges.

use serde_json::Value;

/// The fewest attempts that are judged: one, so that nothing is tried again.
pub const MIN_ATTEMPTS: u32 = 1;

/// The most attempts that are judged.
pub const MAX_ATTEMPTS: u32 = 6;

/// The number where the configuration has none.
pub const DEFAULT_ATTEMPTS: u32 = 3;

/// How many attempts of a generation the gate judges, the first included: 1 to 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempts(u32);

impl Attempts {
    /// What a client asked for, else what is configured. A number that is not finite and above 0 counts
    /// as absent; where neither counts it is one attempt. What counts is rounded down and brought
    /// between [`MIN_ATTEMPTS`] and [`MAX_ATTEMPTS`].
    pub fn resolve(requested: Option<f64>, configured: f64) -> Self {
        let counts = |number: &f64| number.is_finite() && *number > 0.0;
        let number = requested.filter(counts).unwrap_or(configured);
        match counts(&number) {
            // The cast of a number this small is exact.
            true => Self(number.clamp(MIN_ATTEMPTS.into(), MAX_ATTEMPTS.into()) as u32),
            false => Self(MIN_ATTEMPTS),
        }
    }

    /// A number that came as JSON: a number, or a text that is one. `None` for anything else.
    pub fn read(value: &Value) -> Option<f64> {
        match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self(DEFAULT_ATTEMPTS)
    }
}
