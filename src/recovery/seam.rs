//! Where a continuation meets the text that it is to continue: what of it is new, and whether it goes on
//! at all.
//!
//! Providers differ: most give the new text only, some repeat what they were sent first, and one that
//! takes the partial answer for a finished turn begins anew. So nothing of a continuation is shown before
//! it is judged, at the latest when it has [`HELD_CHARS`] characters or its end has come:
//!
//! | the continuation | is |
//! |---|---|
//! | repeats all that was sent | an echo, taken off whatever its length; what follows is judged once more |
//! | begins as the text began, then differs, after [`SAME_OPENING`] characters (half of a short text, at least 2) | begun anew |
//! | the same behind white space, after [`SAME_OPENING_LATER`] characters | begun anew: a sentence may well begin like the first one |
//! | begins with at least [`OVERLAP_CHARS`] characters with which the text ends, and which stand nowhere else in it | an overlap, taken off; shorter or repeated ones are legitimate text: a row of zeros, a table, a refrain |
//! | anything else | new text |
//!
//! White space at the end of the text is not sent, because providers refuse or mistreat it. It was shown,
//! so it stays; a continuation that repeats it loses its own.

use std::sync::Arc;

/// How much of a continuation is held back, in characters. Fixed by the design.
const HELD_CHARS: usize = 64;

/// The same opening, in characters, that tells a new answer from a continuation. A false alarm costs a
/// restart, a missed one a message with two beginnings. Fixed.
const SAME_OPENING: usize = 8;

/// The same where white space comes first, as before most continuations. Fixed.
const SAME_OPENING_LATER: usize = 24;

/// The shortest overlap that no model writes by chance, in characters. Fixed.
const OVERLAP_CHARS: usize = 32;

/// The judge of one continuation.
#[derive(Debug)]
pub struct Seam {
    /// What was sent to be continued.
    sent: Arc<str>,
    /// White space that stands behind it and was not sent.
    trimmed: Box<str>,
    /// What came and is neither echo nor judged.
    held: String,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many bytes of what was sent were repeated, and nothing else came.
    Echo(usize),
    /// Something else came.
    Held,
    /// The same, behind a whole echo or overlap.
    HeldBehindEcho,
    /// What was sent was repeated from the first number of bytes to the second.
    Overlap(usize, usize),
}

/// What a continuation is, as far as it has come.
#[derive(Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It cannot be told yet.
    Open,
    /// It goes on; with the text that is new.
    GoesOn(String),
    /// It begins anew.
    BeginsAnew,
}

impl Seam {
    /// For a continuation of `text`. `None` if there is nothing in it that could be sent.
    pub fn new(text: &str) -> Option<Self> {
        let sent = text.trim_end();
        if sent.is_empty() {
            return None;
        }
        Some(Self {
            sent: sent.into(),
            trimmed: text.get(sent.len()..).unwrap_or_default().into(),
            held: String::new(),
            stage: Stage::Echo(0),
        })
    }

    /// What is to be sent.
    pub fn sent(&self) -> &Arc<str> {
        &self.sent
    }

    /// Whether nothing came yet.
    pub fn is_empty(&self) -> bool {
        self.stage == Stage::Echo(0)
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.sent.len() + self.held.len()
    }

    /// More of the continuation came.
    pub fn push(&mut self, piece: &str) -> Judgement {
        match self.stage {
            Stage::Echo(done) => self.push_echo(done, piece),
            Stage::Overlap(from, to) => self.push_overlap(from, to, piece),
            Stage::Held | Stage::HeldBehindEcho => {
                self.held.push_str(piece);
                self.judge_if_long()
            }
        }
    }

    /// Nothing more comes, or nothing more that could change the judgement. Never [`Judgement::Open`].
    pub fn end(&mut self) -> Judgement {
        match self.stage {
            Stage::Echo(done) if self.is_same_opening(done) => Judgement::BeginsAnew,
            Stage::Echo(done) => {
                self.held = self.sent_from_to(0, done).to_owned();
                self.goes_on()
            }
            Stage::Overlap(from, to) => {
                self.held = self.sent_from_to(from, to).to_owned();
                self.goes_on()
            }
            Stage::Held | Stage::HeldBehindEcho => match self.judge(true) {
                Judgement::Open => self.goes_on(),
                judgement => judgement,
            },
        }
    }

    fn push_echo(&mut self, done: usize, piece: &str) -> Judgement {
        let same = common(self.sent_from_to(done, self.sent.len()), piece);
        let done = done + same;
        let rest = piece.get(same..).unwrap_or_default();
        if done == self.sent.len() {
            self.stage = Stage::HeldBehindEcho;
        } else if rest.is_empty() {
            self.stage = Stage::Echo(done);
            return Judgement::Open;
        } else if self.is_same_opening(done) {
            return Judgement::BeginsAnew;
        } else {
            self.held = self.sent_from_to(0, done).to_owned();
            self.stage = Stage::Held;
        }
        self.held.push_str(rest);
        self.judge_if_long()
    }

    fn push_overlap(&mut self, from: usize, to: usize, piece: &str) -> Judgement {
        let same = common(self.sent_from_to(to, self.sent.len()), piece);
        let to = to + same;
        let rest = piece.get(same..).unwrap_or_default();
        if to == self.sent.len() {
            self.stage = Stage::HeldBehindEcho;
            self.held.push_str(rest);
            return self.judge_if_long();
        }
        self.stage = Stage::Overlap(from, to);
        if rest.is_empty() {
            return Judgement::Open;
        }
        // It only quotes what stands before.
        self.held = format!("{}{rest}", self.sent_from_to(from, to));
        self.goes_on()
    }

    /// Judges by the first characters alone, however many came at once.
    fn judge_if_long(&mut self) -> Judgement {
        let Some((at, last)) = self.held.char_indices().nth(HELD_CHARS - 1) else {
            return Judgement::Open;
        };
        let more = self.held.split_off(at + last.len_utf8());
        match self.judge(false) {
            Judgement::Open => self.push(&more),
            Judgement::GoesOn(text) => Judgement::GoesOn(text + &more),
            Judgement::BeginsAnew => Judgement::BeginsAnew,
        }
    }

    fn judge(&mut self, ended: bool) -> Judgement {
        if self.begins_anew() {
            return Judgement::BeginsAnew;
        }
        if self.stage == Stage::Held {
            if let Some(overlap) = self.overlap() {
                self.held.drain(..overlap);
            } else if !ended && let Some(from) = self.quoted() {
                self.stage = Stage::Overlap(from, from + self.held.len());
                self.held.clear();
                return Judgement::Open;
            }
        }
        self.goes_on()
    }

    /// `true` if so many bytes of an answer that then differs are its opening once more.
    fn is_same_opening(&self, bytes: usize) -> bool {
        let half = self.sent.chars().take(2 * SAME_OPENING).count() / 2;
        let opening = self.sent_from_to(0, bytes);
        let enough = match opening.starts_with(char::is_whitespace) {
            true => SAME_OPENING_LATER,
            false => half.clamp(2, SAME_OPENING),
        };
        opening.trim_start().chars().count() >= enough
    }

    fn begins_anew(&self) -> bool {
        let held = self.held.trim_start();
        let sent = self.sent.trim_start();
        let same = common(sent, held);
        match held.len() < self.held.len() || sent.len() < self.sent.len() {
            true => held.get(..same).unwrap_or_default().chars().count() >= SAME_OPENING_LATER,
            false => self.is_same_opening(same),
        }
    }

    /// The length of what stands at the end of the text and at the beginning of what is held.
    fn overlap(&self) -> Option<usize> {
        let ends = self.held.char_indices().map(|(at, c)| at + c.len_utf8());
        let ends: Vec<usize> = ends.skip(OVERLAP_CHARS - 1).collect();
        let longest = ends.into_iter().rev().find(|&end| {
            let begin = self.held.get(..end).unwrap_or_default();
            self.sent.ends_with(begin)
        })?;
        let begin = self.held.get(..longest)?;
        (self.sent.find(begin) == self.sent.len().checked_sub(longest)).then_some(longest)
    }

    /// Where all that is held stands in the text, if that is one place, behind which there is more.
    fn quoted(&self) -> Option<usize> {
        let from = self.sent.find(&self.held)?;
        let once = self.sent.rfind(&self.held) == Some(from);
        (once && from + self.held.len() < self.sent.len()).then_some(from)
    }

    /// It is a continuation: white space that stands there already is not given again.
    fn goes_on(&mut self) -> Judgement {
        let mut text = std::mem::take(&mut self.held);
        let space = text.len() - text.trim_start().len();
        let space = text.get(..space).unwrap_or_default();
        let repeated = match common(&self.trimmed, space) {
            0 if self.trimmed.ends_with(space) => space.len(),
            same => same,
        };
        text.drain(..repeated);
        Judgement::GoesOn(text)
    }

    fn sent_from_to(&self, from: usize, to: usize) -> &str {
        self.sent.get(from..to).unwrap_or_default()
    }
}

/// The length of the longest common prefix, in bytes, at a character boundary.
fn common(a: &str, b: &str) -> usize {
    let pairs = a.chars().zip(b.chars());
    let same = pairs.take_while(|(a, b)| a == b);
    same.map(|(a, _)| a.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a continuation of `text` that comes in one piece, in single characters, and in pieces of
    /// seven: always the same.
    fn judged(text: &str, continuation: &str) -> Option<String> {
        let split = |size: usize| {
            let mut seam = Seam::new(text).unwrap();
            let characters: Vec<char> = continuation.chars().collect();
            let mut shown = None::<String>;
            for piece in characters.chunks(size) {
                let piece: String = piece.iter().collect();
                match &mut shown {
                    Some(shown) => shown.push_str(&piece),
                    None => match seam.push(&piece) {
                        Judgement::Open => {}
                        Judgement::GoesOn(text) => shown = Some(text),
                        Judgement::BeginsAnew => return None,
                    },
                }
            }
            shown.or_else(|| match seam.end() {
                Judgement::GoesOn(text) => Some(text),
                _ => None,
            })
        };
        let whole = split(continuation.chars().count().max(1));
        assert_eq!(split(1), whole, "character by character");
        assert_eq!(split(7), whole, "in pieces of seven");
        whole.map(|new| format!("{text}{new}"))
    }

    /// The whole message that comes of it.
    fn message(text: &str, continuation: &str) -> String {
        judged(text, continuation).unwrap_or_else(|| "begun anew".into())
    }

    const LONG: &str = "The quick brown fox jumps over the lazy dog and runs into the dark forest, \
                        where nobody has seen it since the last winter";

    #[test]
    fn new_text_is_appended_wherever_the_text_was_cut() {
        assert_eq!(message("Hel", "lo"), "Hello");
        assert_eq!(message("Hello", "! How are you?"), "Hello! How are you?");
        assert_eq!(message("{", "\n  \"a\": 1\n}"), "{\n  \"a\": 1\n}");
        assert_eq!(message("e", "\u{301}tude"), "e\u{301}tude");
        assert_eq!(message(LONG, " was cold."), format!("{LONG} was cold."));
    }

    #[test]
    fn nothing_more_is_a_continuation() {
        assert_eq!(message("Done.", ""), "Done.");
        assert_eq!(message("Done.\n\n", ""), "Done.\n\n");
        assert_eq!(message("Done.\n", "\n"), "Done.\n");
    }

    #[test]
    fn a_whole_echo_is_taken_off_whatever_its_length() {
        for text in ["T", "The", "The sky is", LONG] {
            assert_eq!(
                message(text, &format!("{text} blue")),
                format!("{text} blue")
            );
            assert_eq!(message(text, text), text);
        }
    }

    #[test]
    fn an_echo_that_stops_on_the_way_is_an_answer_begun_anew() {
        assert_eq!(message(LONG, "The quick brown fox"), "begun anew");
        assert_eq!(message(LONG, "The quick answer is no."), "begun anew");
        assert_eq!(message("The sky is", "The sky was"), "begun anew");
        let twice = format!("{LONG}{LONG}");
        assert_eq!(message(LONG, &twice), "begun anew", "behind an echo too");
    }

    #[test]
    fn a_short_likeness_is_no_new_beginning() {
        assert_eq!(message("The sky is not", "They"), "The sky is notThey");
        assert_eq!(message("- a\n- b\n-", " c"), "- a\n- b\n- c");
        assert_eq!(message("\n\na", "\n\nb"), "\n\na\n\nb");
        let text = "The sky is blue. The sea is";
        assert_eq!(message(text, " The sky is"), format!("{text} The sky is"));
    }

    #[test]
    fn a_long_likeness_behind_white_space_is_a_new_beginning() {
        let anew = "\n\nThe quick brown fox jumps over a fence";
        assert_eq!(message(LONG, anew), "begun anew");
    }

    #[test]
    fn a_long_overlap_is_taken_off() {
        let overlap = "has seen it since the last winter";
        assert!(LONG.ends_with(overlap));
        let whole = format!("{LONG} was cold.");
        assert_eq!(message(LONG, &format!("{overlap} was cold.")), whole);
        let longer = &LONG[20..];
        assert!(longer.len() > HELD_CHARS, "longer than what is held");
        assert_eq!(message(LONG, &format!("{longer} was cold.")), whole);
    }

    #[test]
    fn a_short_overlap_is_text() {
        let text = "no, no, no";
        assert_eq!(message(text, "o, no"), "no, no, noo, no");
        let overlap = "since the last winter";
        let whole = format!("{LONG}{overlap} came");
        assert_eq!(message(LONG, &format!("{overlap} came")), whole);
    }

    #[test]
    fn what_repeats_itself_goes_on_repeating_itself() {
        let row = |cells: usize| "0, ".repeat(cells);
        let text = format!("A row: {}", row(40));
        let whole = format!("A row: {}", row(60));
        assert_eq!(message(text.trim_end(), &format!(" {}", row(20))), whole);
        assert_eq!(message(&text, &row(20)), whole);
    }

    #[test]
    fn a_quotation_of_what_stands_before_is_text() {
        let quotation = format!("{} as I said.", &LONG[4..80]);
        assert_eq!(message(LONG, &quotation), format!("{LONG}{quotation}"));
        let quotation = &LONG[4..80];
        assert_eq!(message(LONG, quotation), format!("{LONG}{quotation}"));
    }

    #[test]
    fn a_passage_that_stands_there_twice_may_come_again() {
        let passage = &LONG[..80];
        let text = format!("As they say: {passage}{passage}");
        let again = format!("{passage}{passage} And so on.");
        assert_eq!(message(&text, &again), format!("{text}{again}"));
    }

    #[test]
    fn white_space_at_the_seam_stands_once() {
        for (text, continuation, whole) in [
            ("a\n\n", "\n\nb", "a\n\nb"),
            ("a\n", "\n\nb", "a\n\nb"),
            ("a\n\n", "\nb", "a\n\nb"),
            ("a ", " b", "a b"),
            ("a ", "b", "a b"),
            ("a", " b", "a b"),
            ("a \n", "\nb", "a \nb"),
            ("a\n", "  b", "a\n  b"),
            ("a\r\n", "\r\nb", "a\r\nb"),
        ] {
            assert_eq!(
                message(text, continuation),
                whole,
                "{text:?} {continuation:?}"
            );
        }
    }

    #[test]
    fn what_is_sent_has_no_white_space_at_its_end_and_is_not_empty() {
        let seam = Seam::new(" a b\u{a0}\n\u{2003}").unwrap();
        assert_eq!(&**seam.sent(), " a b");
        assert!(Seam::new(" \n\t").is_none());
        assert!(Seam::new("").is_none());
    }

    #[test]
    fn no_more_is_held_than_is_needed() {
        let mut seam = Seam::new(LONG).unwrap();
        for _ in 0..HELD_CHARS - 1 {
            assert_eq!(seam.push("é"), Judgement::Open);
        }
        assert_eq!(seam.push("é"), Judgement::GoesOn("é".repeat(HELD_CHARS)));
    }
}
