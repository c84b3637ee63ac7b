//! The preview of one attempt, or of several that go on with each other: shown as it comes, and
//! written again when its fate is known.

use std::io::{self, Write};

use super::ink::{Ink, Look, Window, clean, columns};
use crate::proto::{Delta, PreviewReset, delta::Content};

/// How much of a preview is kept for writing it again, in bytes. Longer ones stand as they are.
const MAX_KEPT: usize = 64 << 10;

/// Output, as far as it is neither final nor void.
#[derive(Debug)]
pub(super) struct Preview {
    look: Look,
    pieces: Vec<Piece>,
    /// More came than is kept.
    overflowed: bool,
    /// The block that was written last.
    block: Option<u32>,
    kept: usize,
    /// Rows above the one that is written.
    rows: usize,
    column: usize,
}

/// The attempt and the block that a piece is of.
type Owner = (u32, u32);

#[derive(Clone, Debug)]
struct Piece {
    /// `None`: a note of ours.
    owner: Option<Owner>,
    ink: Ink,
    text: String,
}

impl Preview {
    /// Nothing yet.
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            pieces: Vec::new(),
            overflowed: false,
            block: None,
            kept: 0,
            rows: 0,
            column: 0,
        }
    }

    /// Whether there is any.
    pub(super) fn is_shown(&self) -> bool {
        self.kept > 0
    }

    /// Writes a delta.
    pub(super) fn add(&mut self, out: &mut impl Write, delta: &Delta) -> io::Result<()> {
        let Some(content) = &delta.content else {
            return Ok(());
        };
        let (ink, text) = match content {
            Content::Text(text) | Content::Refusal(text) | Content::ToolArguments(text) => {
                (Ink::Preview, clean(text).into_owned())
            }
            Content::Reasoning(text) => (Ink::Reasoning, clean(text).into_owned()),
            Content::ToolCall(call) => {
                let call = format!("tool call {}: ", clean(&call.name));
                (Ink::Preview, call)
            }
            Content::Media(media) => {
                let media = format!("[{}]", clean(&media.mime_type));
                (Ink::Preview, media)
            }
            Content::NativeEvent(_) | Content::NativeBlock(_) => return Ok(()),
        };
        self.append(out, (delta.attempt, delta.block), ink, text)
    }

    /// Whether a reset takes back what is of `owner`.
    pub(super) fn is_void(reset: &PreviewReset, (attempt, block): Owner) -> bool {
        attempt == reset.attempt && (reset.blocks.is_empty() || reset.blocks.contains(&block))
    }

    /// Writes a piece of a block; another block begins on another line.
    fn append(
        &mut self,
        out: &mut impl Write,
        owner: Owner,
        ink: Ink,
        text: String,
    ) -> io::Result<()> {
        let (_, block) = owner;
        if self.block.replace(block) != Some(block) {
            let mut lead = String::from(if self.column > 0 { "\n" } else { "" });
            if self.look == Look::Plain {
                lead.push_str(match ink {
                    Ink::Reasoning => "preview (reasoning): ",
                    _ => "preview: ",
                });
            }
            if !lead.is_empty() {
                self.push(out, None, Ink::Plain, lead)?;
            }
        }
        self.push(out, Some(owner), ink, text)
    }

    /// Writes a note below it that goes when it is written again.
    pub(super) fn note(&mut self, out: &mut impl Write, text: &str) -> io::Result<()> {
        let lead = if self.column > 0 { "\n" } else { "" };
        self.block = None;
        self.push(out, None, Ink::Note, format!("{lead}· {}\n", clean(text)))
    }

    /// What is of such an owner is void: strikes it through, in place where it can.
    pub(super) fn void(
        &mut self,
        out: &mut impl Write,
        is_void: impl Fn(Owner) -> bool,
    ) -> io::Result<()> {
        if !self.is_shown() {
            return Ok(());
        }
        let pieces = std::mem::take(&mut self.pieces);
        let gone = |piece: &Piece| piece.owner.is_some_and(&is_void);
        match self.look {
            _ if self.overflowed => {}
            Look::Plain => {
                self.leave_line(out)?;
                for piece in pieces.iter().filter(|piece| gone(piece)) {
                    writeln!(out, "void: {}", self.look.ink(Ink::Void, &piece.text))?;
                }
            }
            Look::Styled(window) => {
                if self.fits(window) {
                    self.erase(out)?;
                } else {
                    self.leave_line(out)?;
                }
                for piece in &pieces {
                    let ink = if gone(piece) { Ink::Void } else { piece.ink };
                    self.write(out, window, ink, &piece.text)?;
                }
            }
        }
        self.pieces = pieces;
        self.leave_line(out)
    }

    /// After a reset: what it left, as the preview that goes on.
    pub(super) fn show_rest(
        &mut self,
        out: &mut impl Write,
        is_void: impl Fn(Owner) -> bool,
    ) -> io::Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        self.forget();
        for piece in pieces {
            if let Some(owner) = piece.owner.filter(|owner| !is_void(*owner)) {
                self.append(out, owner, piece.ink, piece.text)?;
            }
        }
        Ok(())
    }

    /// It became final: the message takes its place where it can, else stands below it.
    pub(super) fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        match self.look {
            Look::Styled(window) if self.is_shown() && self.fits(window) => self.erase(out)?,
            _ => self.leave_line(out)?,
        }
        self.forget();
        Ok(())
    }

    /// Something else is written next.
    pub(super) fn leave(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.leave_line(out)?;
        if self.rows > 0 {
            // What stands above it cannot be reached any more.
            self.overflowed = true;
        }
        Ok(())
    }

    fn leave_line(&mut self, out: &mut impl Write) -> io::Result<()> {
        if self.column > 0 {
            self.column = 0;
            self.rows += 1;
            writeln!(out)?;
        }
        Ok(())
    }

    /// There is none any more.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.look);
    }

    fn push(
        &mut self,
        out: &mut impl Write,
        owner: Option<Owner>,
        ink: Ink,
        text: String,
    ) -> io::Result<()> {
        match self.look {
            Look::Styled(window) => self.write(out, window, ink, &text)?,
            Look::Plain => {
                out.write_all(text.as_bytes())?;
                self.column = usize::from(!text.ends_with('\n'));
            }
        }
        self.kept += text.len();
        if self.kept > MAX_KEPT {
            self.overflowed = true;
        }
        if self.overflowed {
            return Ok(());
        }
        match self.pieces.last_mut() {
            Some(last) if last.owner == owner && last.ink == ink => last.text.push_str(&text),
            _ => self.pieces.push(Piece { owner, ink, text }),
        }
        Ok(())
    }

    /// Breaks lines by itself, so that it always knows how many rows there are.
    fn write(
        &mut self,
        out: &mut impl Write,
        window: Window,
        ink: Ink,
        text: &str,
    ) -> io::Result<()> {
        let mut line = String::new();
        for c in text.chars() {
            let width = if c == '\n' { 0 } else { columns(c) };
            if c == '\n' || self.column + width >= window.columns {
                self.column = 0;
                self.rows += 1;
                line.push('\n');
            }
            if c != '\n' {
                self.column += width;
                line.push(c);
            }
        }
        out.write_all(self.look.ink(ink, &line).as_bytes())
    }

    /// Whether all of it is still on the screen.
    fn fits(&self, window: Window) -> bool {
        !self.overflowed && self.rows + 1 < window.rows
    }

    /// Up to where it began, and everything from there on is gone (ECMA-48 8.3.22 and 8.3.39).
    fn erase(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"\r")?;
        if self.rows > 0 {
            write!(out, "\x1b[{}A", self.rows)?;
        }
        self.rows = 0;
        self.column = 0;
        out.write_all(b"\x1b[J")
    }
}
