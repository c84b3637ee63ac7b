//! Styles, the size of the window, and what may be written into it.

use std::{borrow::Cow, fmt::Write, os::fd::AsFd};

/// How a stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Without escape codes, never written twice.
    Plain,
    /// With styles, in a window of this size.
    Styled(Window),
}

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How wide.
    pub columns: usize,
    /// How high. 0: unknown, so nothing is written again in place.
    pub rows: usize,
}

/// What a piece of writing means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Final.
    Plain,
    /// Not final.
    Preview,
    /// Not final, and not for the user.
    Reasoning,
    /// Taken back.
    Void,
    /// What happened.
    Note,
    /// A heading.
    Heading,
}

impl Look {
    /// `text` in `ink`. In a plain look only void text is marked.
    pub fn ink<'a>(self, ink: Ink, text: &'a str) -> Cow<'a, str> {
        if self == Look::Plain {
            return match ink {
                Ink::Void => Cow::Owned(format!("~~{text}~~")),
                _ => Cow::Borrowed(text),
            };
        }
        // Select Graphic Rendition, ECMA-48 8.3.117.
        let codes = match ink {
            Ink::Plain => return Cow::Borrowed(text),
            Ink::Preview => "2",
            Ink::Reasoning => "2;3",
            Ink::Void => "2;9",
            Ink::Note => "36",
            Ink::Heading => "1",
        };
        Cow::Owned(format!("\x1b[{codes}m{text}\x1b[0m"))
    }
}

impl Window {
    /// The window of a terminal; of unknown height if it does not say.
    pub fn of(stream: &impl AsFd) -> Self {
        match rustix::termios::tcgetwinsize(stream) {
            Ok(size) if size.ws_col > 1 => Self {
                columns: size.ws_col.into(),
                rows: size.ws_row.into(),
            },
            _ => Self {
                columns: 80,
                rows: 0,
            },
        }
    }
}

/// `text` without anything that a terminal would obey, but for line feeds: a tab becomes spaces, any
/// other control character is shown by its code point.
pub fn clean(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c != '\n' && (c.is_control() || is_bidi_control(c));
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c == '\t' {
            cleaned.push_str("    ");
        } else if obeyed(c) {
            let _ = write!(cleaned, "\\u{{{:x}}}", u32::from(c));
        } else {
            cleaned.push(c);
        }
    }
    Cow::Owned(cleaned)
}

/// They reorder what stands around them (Unicode Standard Annex 9, 2).
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// How many columns `c` takes at most. Too many only wraps a line early.
pub(super) fn columns(c: char) -> usize {
    // The first block with wide characters is Hangul Jamo (Unicode Standard Annex 11).
    if c < '\u{1100}' { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_a_model_writes() {
        assert_eq!(clean("a\x1b[2Jb\x07"), "a\\u{1b}[2Jb\\u{7}");
        assert_eq!(clean("\u{202e}evil\u{9b}1m"), "\\u{202e}evil\\u{9b}1m");
        assert_eq!(clean("one\r\ntwo\tthree"), "one\\u{d}\ntwo    three");
        assert_eq!(clean("plain\nword ü 語"), "plain\nword ü 語");
    }

    #[test]
    fn a_plain_look_marks_only_what_is_void() {
        for ink in [
            Ink::Plain,
            Ink::Preview,
            Ink::Reasoning,
            Ink::Note,
            Ink::Heading,
        ] {
            assert_eq!(Look::Plain.ink(ink, "word"), "word");
        }
        assert_eq!(Look::Plain.ink(Ink::Void, "word"), "~~word~~");
    }
}
