//! Sequence numbers. They begin at 0 and leave no gap (no recording of OpenAI has one), so a gap is
//! lost data; a stream that is resumed after a number begins with the next one. Servers that do not
//! number their events are taken as they are.

use super::super::super::DecodeError;

/// What number comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequence {
    next: Next,
    resumed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Before the first event.
    First(u64),
    /// After a numbered one.
    Number(u64),
    /// The server does not number its events, or not in a way that tells anything.
    Any,
}

/// What to do with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is the next one; its number, where it has one.
    Take(Option<u64>),
    /// It was there before.
    Known,
}

impl Sequence {
    pub(super) fn new(after: Option<u64>) -> Self {
        Self {
            next: Next::First(after.map_or(0, |after| after.saturating_add(1))),
            resumed: after.is_some(),
        }
    }

    /// Judges an event with this `number`.
    ///
    /// # Errors
    /// [`DecodeError::Gap`] where numbers are missing before it.
    pub(super) fn take(&mut self, number: Option<u64>) -> Result<Verdict, DecodeError> {
        match (self.next, number) {
            (Next::Any, _) => Ok(Verdict::Take(None)),
            (Next::First(_), None) if !self.resumed => {
                self.next = Next::Any;
                Ok(Verdict::Take(None))
            }
            // Something that a proxy put in, or an error that lacks its number.
            (Next::First(_) | Next::Number(_), None) => Ok(Verdict::Take(None)),
            (Next::First(next) | Next::Number(next), Some(number)) if number > next => {
                Err(DecodeError::Gap)
            }
            (Next::First(next) | Next::Number(next), Some(number)) if number == next => {
                self.next = Next::Number(next.saturating_add(1));
                Ok(Verdict::Take(Some(number)))
            }
            // More was asked for than was missing.
            (_, Some(_)) if self.resumed => Ok(Verdict::Known),
            // A server that counts in its own way: it says nothing about what is missing.
            (_, Some(_)) => {
                self.next = Next::Any;
                Ok(Verdict::Take(None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(after: Option<u64>, numbers: &[Option<u64>]) -> Vec<Result<Verdict, DecodeError>> {
        let mut sequence = Sequence::new(after);
        numbers.iter().map(|n| sequence.take(*n)).collect()
    }

    const fn taken(number: u64) -> Result<Verdict, DecodeError> {
        Ok(Verdict::Take(Some(number)))
    }

    const UNNUMBERED: Result<Verdict, DecodeError> = Ok(Verdict::Take(None));

    #[test]
    fn a_fresh_stream_begins_at_zero_and_has_no_gap() {
        let numbers = [Some(0), Some(1), None, Some(2), Some(4)];
        let gap = Err(DecodeError::Gap);
        let expected = [taken(0), taken(1), UNNUMBERED, taken(2), gap];
        assert_eq!(run(None, &numbers), expected);
        assert_eq!(run(None, &[Some(1)]), [gap]);
    }

    #[test]
    fn a_resumed_stream_begins_after_its_number_and_what_is_known_is_passed_over() {
        let numbers = [Some(7), Some(3), Some(8), Some(8), Some(9), Some(11)];
        let known = Ok(Verdict::Known);
        let gap = Err(DecodeError::Gap);
        let expected = [known, known, taken(8), known, taken(9), gap];
        assert_eq!(run(Some(7), &numbers), expected);
        assert_eq!(run(Some(7), &[Some(9)]), [gap]);
        assert_eq!(run(Some(u64::MAX), &[Some(0)]), [known]);
    }

    #[test]
    fn a_stream_that_begins_without_numbers_is_not_judged() {
        assert_eq!(run(None, &[None, Some(3), Some(9)]), [UNNUMBERED; 3]);
    }

    #[test]
    fn numbers_that_do_not_grow_tell_nothing() {
        assert_eq!(
            run(None, &[Some(0), Some(0), Some(0)])[1..],
            [UNNUMBERED; 2]
        );
    }
}
