//! What the script answers, read without trust: a server may be another's, or old.

use redis::Value;

use super::Lost;
use crate::limits::{Account, BudgetId, DailyLimit, Limit, Measure, Micros, WindowLimit};

/// What stands at the head of every answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) code: Code,
    /// The engine's clock.
    pub(super) now: Micros,
    /// Names the stretch of time of which everything is known.
    pub(super) epoch: String,
    /// Pods with another configuration are at work too: the stricter of both counts.
    pub(super) other_revision: bool,
    /// This configuration was not told yet.
    pub(super) untold: bool,
}

/// What it comes down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Ok,
    Granted,
    Denied,
    Turn,
    Never,
    Learning,
    Refused,
    Over,
    Unknown,
}

/// Reads an answer from its beginning on.
pub(super) struct Reader {
    rest: std::vec::IntoIter<Value>,
}

const SHORT: Lost = Lost::Garbled("it is too short");

impl Reader {
    pub(super) fn open(value: Value) -> Result<(Head, Self), Lost> {
        let Value::Array(items) = value else {
            return Err(Lost::Garbled("it is no list"));
        };
        let mut reader = Self {
            rest: items.into_iter(),
        };
        let code = match reader.text()?.as_str() {
            "ok" => Code::Ok,
            "granted" => Code::Granted,
            "denied" => Code::Denied,
            "turn" => Code::Turn,
            "never" => Code::Never,
            "learning" => Code::Learning,
            "refused" => Code::Refused,
            "over" => Code::Over,
            "unknown" => Code::Unknown,
            _ => return Err(Lost::Garbled("its code is unknown")),
        };
        let now = reader.number()?;
        let epoch = reader.text()?;
        let flags = reader.number()?;
        let head = Head {
            code,
            now,
            epoch,
            other_revision: flags & 1 != 0,
            untold: flags & 2 != 0,
        };
        Ok((head, reader))
    }

    fn text(&mut self) -> Result<String, Lost> {
        match self.rest.next().ok_or(SHORT)? {
            Value::BulkString(bytes) => {
                String::from_utf8(bytes).map_err(|_| Lost::Garbled("it is no text"))
            }
            Value::SimpleString(text) => Ok(text),
            _ => Err(Lost::Garbled("a word is missing")),
        }
    }

    pub(super) fn integer(&mut self) -> Result<i64, Lost> {
        match self.rest.next().ok_or(SHORT)? {
            Value::Int(number) => Ok(number),
            _ => Err(Lost::Garbled("a number is missing")),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, Lost> {
        u64::try_from(self.integer()?).map_err(|_| Lost::Garbled("a number is negative"))
    }

    pub(super) fn index(&mut self, below: usize) -> Result<usize, Lost> {
        let index = usize::try_from(self.number()?).ok();
        index
            .filter(|index| *index < below)
            .ok_or(Lost::Garbled("a number is out of range"))
    }

    /// Which budget of `asked`.
    pub(super) fn budget(&mut self, asked: &[BudgetId]) -> Result<BudgetId, Lost> {
        let index = self.index(asked.len())?;
        asked.get(index).copied().ok_or(SHORT)
    }

    /// Which budget of `asked`, and which of its limits.
    pub(super) fn limit(&mut self, asked: &[BudgetId]) -> Result<(BudgetId, Limit), Lost> {
        let budget = self.budget(asked)?;
        let what = self.text()?;
        let measure = self.number()?;
        let limit = self.number()?;
        let window = self.number()?;
        let measure = || match measure {
            1 => Ok(Measure::Requests),
            2 => Ok(Measure::InputTokens),
            3 => Ok(Measure::OutputTokens),
            _ => Err(Lost::Garbled("a measure is unknown")),
        };
        let limit = match what.as_str() {
            "window" => Limit::Window(WindowLimit {
                measure: measure()?,
                limit,
                window,
            }),
            "daily" => Limit::Daily(DailyLimit {
                measure: measure()?,
                limit,
            }),
            "concurrent" => Limit::Concurrent(limit),
            "cooldown" => Limit::Cooldown,
            "probe" => Limit::Probe,
            _ => return Err(Lost::Garbled("a limit is unknown")),
        };
        Ok((budget, limit))
    }

    pub(super) fn account(&mut self) -> Result<Account, Lost> {
        Ok(Account {
            granted: self.number()?,
            sent: self.number()?,
            returned: self.number()?,
            expired: self.number()?,
        })
    }

    pub(super) fn is_over(&self) -> bool {
        self.rest.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(code: &str) -> Vec<Value> {
        let word = |text: &str| Value::BulkString(text.into());
        vec![word(code), Value::Int(5), word("e"), Value::Int(3)]
    }

    #[test]
    fn an_answer_has_a_head() {
        let (head, rest) = Reader::open(Value::Array(head("granted"))).unwrap();
        assert!(rest.is_over());
        let expected = Head {
            code: Code::Granted,
            now: 5,
            epoch: "e".into(),
            other_revision: true,
            untold: true,
        };
        assert_eq!(head, expected);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let word = |text: &str| Value::BulkString(text.into());
        let negative = [word("ok"), Value::Int(-1), word("e"), Value::Int(0)];
        let bytes = [Value::BulkString(vec![0xff])];
        for bad in [
            Value::Nil,
            Value::Okay,
            Value::Int(1),
            Value::Array(Vec::new()),
            Value::Array(head("yes")),
            Value::Array(head("ok").into_iter().take(3).collect()),
            Value::Array(negative.into()),
            Value::Array(bytes.into()),
            Value::Array(vec![Value::Array(head("ok"))]),
        ] {
            assert!(
                matches!(Reader::open(bad.clone()), Err(Lost::Garbled(_))),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_budget_that_nobody_asked_for_is_refused() {
        let mut items = head("denied");
        let word = |text: &str| Value::BulkString(text.into());
        let full = [
            Value::Int(2),
            word("window"),
            Value::Int(1),
            Value::Int(9),
            Value::Int(60),
        ];
        items.extend(full);
        let (_, mut reader) = Reader::open(Value::Array(items)).unwrap();
        assert_eq!(
            reader.limit(&[7, 8]),
            Err(Lost::Garbled("a number is out of range"))
        );
    }
}
