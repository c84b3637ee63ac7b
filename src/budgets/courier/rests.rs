//! PURE. What providers said of rest, until the engine has heard it.

use std::{collections::BTreeMap, time::Duration};

use crate::limits::BudgetId;

/// What a provider said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// It asked not to be asked.
    Penalise,
    /// Nothing remains.
    Brake,
}

/// Of each budget the longest rest of each kind that is still to be told. Times are since the clock's
/// origin.
#[derive(Debug, Default)]
pub(super) struct Rests {
    longest: BTreeMap<(Word, BudgetId), Duration>,
    /// How many are being told.
    busy: usize,
}

/// What is told at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) word: Word,
    pub(super) until: Duration,
    pub(super) budgets: Vec<BudgetId>,
}

impl Rests {
    /// To be told.
    pub(super) fn put(&mut self, rest: &Rest) {
        for budget in &rest.budgets {
            let until = self.longest.entry((rest.word, *budget)).or_default();
            *until = rest.until.max(*until);
        }
    }

    /// It was heard, or is to be told again.
    pub(super) fn done(&mut self, rest: Rest, is_heard: bool) {
        self.busy = self.busy.saturating_sub(1);
        if !is_heard {
            self.put(&rest);
        }
    }

    /// Whether nothing is to be told, nor being told.
    pub(super) fn is_told(&self) -> bool {
        self.longest.is_empty() && self.busy == 0
    }

    /// What is to be told next, to be confirmed by [`done`](Self::done): budgets that rest alike. What has passed meanwhile need not be told.
    pub(super) fn take(&mut self, now: Duration) -> Option<Rest> {
        self.longest.retain(|_, until| *until > now);
        let (&(word, _), &until) = self.longest.first_key_value()?;
        let alike = |(other, _): &(Word, BudgetId), to: &Duration| *other == word && *to == until;
        let all = self.longest.iter().filter(|(key, to)| alike(key, to));
        let budgets = all.map(|((_, budget), _)| *budget).collect();
        self.longest.retain(|key, to| !alike(key, to));
        self.busy += 1;
        Some(Rest {
            word,
            until,
            budgets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rest(word: Word, until: u32, budgets: &[BudgetId]) -> Rest {
        Rest {
            word,
            until: until * SECOND,
            budgets: budgets.into(),
        }
    }

    #[test]
    fn the_longest_rest_of_each_budget_is_told_once() {
        let mut rests = Rests::default();
        rests.put(&rest(Word::Penalise, 5, &[0, 1]));
        rests.put(&rest(Word::Penalise, 3, &[0]));
        rests.put(&rest(Word::Penalise, 9, &[1, 2]));
        rests.put(&rest(Word::Brake, 7, &[0]));
        let told = || rests.take(SECOND);
        let told: Vec<_> = std::iter::from_fn(told).collect();
        let expected = [
            rest(Word::Penalise, 5, &[0]),
            rest(Word::Penalise, 9, &[1, 2]),
            rest(Word::Brake, 7, &[0]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_has_passed_is_not_told() {
        let mut rests = Rests::default();
        rests.put(&rest(Word::Brake, 5, &[0]));
        assert_eq!(rests.take(5 * SECOND), None);
    }

    #[test]
    fn what_was_not_heard_is_told_again_unless_there_is_a_longer_one() {
        let mut rests = Rests::default();
        rests.put(&rest(Word::Penalise, 5, &[0, 1]));
        let unheard = rests.take(SECOND).unwrap();
        rests.put(&rest(Word::Penalise, 8, &[0]));
        rests.done(unheard, false);
        assert_eq!(rests.take(SECOND), Some(rest(Word::Penalise, 8, &[0])));
        assert_eq!(rests.take(SECOND), Some(rest(Word::Penalise, 5, &[1])));
    }
}
