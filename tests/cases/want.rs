//! The frames that a case expects, attempt by attempt.

use serde_json::Value;

/// What one call is to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Want {
    pub attempts: Vec<Attempt>,
    pub end: End,
}

/// What one attempt is to show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempt {
    pub text: Text,
    pub reasoning: Text,
    pub reset: Option<Reset>,
}

/// A reset that voids an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Reset {
    pub class: String,
    /// Only if something was shown.
    pub maybe: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum End {
    #[default]
    Cancelled,
    Committed(Value),
    Failed(Value),
    /// The case looks at all calls together.
    Unsaid,
}

/// A text, or a way to write one.
#[derive(Clone, Debug, PartialEq)]
pub enum Text {
    Is(String),
    /// The same again and again, until it was cut off.
    Some {
        first: &'static str,
        more: &'static str,
    },
}

impl Default for Text {
    fn default() -> Self {
        Self::Is(String::new())
    }
}

impl Text {
    pub fn read(text: &str) -> Self {
        match text {
            "x (some)" => {
                return Self::Some {
                    first: "",
                    more: "x",
                };
            }
            "The (and some more)" => {
                return Self::Some {
                    first: "The",
                    more: " more",
                };
            }
            _ => {}
        }
        let repeated = text.split_once('*').and_then(|(piece, times)| {
            let short = piece.len() <= 4 && piece.chars().all(char::is_alphanumeric);
            times
                .parse()
                .ok()
                .filter(|_| short)
                .map(|times| piece.repeat(times))
        });
        Self::Is(repeated.unwrap_or_else(|| text.to_owned()))
    }

    /// Whether `seen` is it, or with `part` a beginning of it.
    pub fn is(&self, seen: &str, part: bool) -> bool {
        match self {
            Self::Is(text) => text == seen || (part && text.starts_with(seen)),
            Self::Some { first, more } => {
                let rest = seen.strip_prefix(first).map(|rest| rest.replace(more, ""));
                seen.is_empty() || rest.is_some_and(|rest| rest.is_empty())
            }
        }
    }

    fn then(self, more: Text) -> Self {
        match (self, more) {
            (Self::Is(text), Self::Is(more)) => Self::Is(text + &more),
            (_, more) => more,
        }
    }
}

/// What call `index` is to show.
pub fn of(frames: &[Value], index: usize) -> Want {
    let mut want = Want::default();
    for frame in frames {
        let (kind, value) = frame.as_object().unwrap().iter().next().unwrap();
        match kind.as_str() {
            "call_1" | "call_2" | "call_3" | "call_4" | "third_call" => {
                let is_third = kind == "third_call" && index == 2;
                if is_third || *kind == format!("call_{}", index + 1) {
                    return of(value.as_array().unwrap(), index);
                }
            }
            "each" | "both" | "per_call" => return of(value.as_array().unwrap(), index),
            "AttemptStarted" => {
                want.attempts.push(Attempt::default());
                assert_eq!(value.as_u64().unwrap() as usize, want.attempts.len());
            }
            "Delta" => {
                let attempt = want.attempts.last_mut().unwrap();
                for (kind, text) in value.as_object().unwrap() {
                    let text = Text::read(text.as_str().unwrap());
                    let field = match kind.as_str() {
                        "text" => &mut attempt.text,
                        "reasoning" => &mut attempt.reasoning,
                        other => panic!("a delta of {other}"),
                    };
                    *field = std::mem::take(field).then(text);
                }
            }
            "PreviewReset" => {
                let why = value["why"].as_str().unwrap();
                let (class, condition) = why.split_once(" (").unwrap_or((why, ""));
                let number = value["attempt"].as_u64().unwrap() as usize;
                let maybe = !condition.is_empty();
                want.attempts[number - 1].reset = Some(Reset {
                    class: class.to_owned(),
                    maybe,
                });
            }
            "repeat_until_attempt" => {
                let first = want.attempts[0].clone();
                want.attempts
                    .resize(value.as_u64().unwrap() as usize, first);
            }
            "Committed" => want.end = End::Committed(value.clone()),
            "Failed" => want.end = End::Failed(value.clone()),
            "tokens_reserved_in_any_60s_window" | "admitted_within_first_60s" | "rest" => {
                want.end = End::Unsaid;
            }
            "cancelled" => want.end = End::Cancelled,
            other => panic!("an expectation of {other}"),
        }
    }
    want
}
