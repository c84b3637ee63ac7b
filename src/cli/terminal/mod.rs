//! Frames as people read them: preview dim, void text struck through, committed text plain.
//!
//! On a terminal the preview is written again in place when its fate is known. Elsewhere, and under
//! `NO_COLOR`, there are no escape codes: a reset is a line, and void text stands between `~~`. What a
//! model writes can move no cursor and ring no bell: control characters are shown, not sent.

mod ink;
mod ledger;
mod preview;
#[cfg(test)]
mod tests;
mod words;

use std::{
    env,
    io::{self, IsTerminal, Write},
};

use crate::proto::{Committed, Failed, Ledger, Part, Progress, generate_response::Frame};

use ink::Ink;
pub(super) use ink::clean;
pub use ink::{Look, Window};
use preview::Preview;

/// What one person sees of generations.
#[derive(Debug)]
pub struct View<W> {
    out: W,
    look: Look,
    preview: Preview,
    /// Parts of the message that came before the last one.
    parts: Vec<Part>,
    shows_message: bool,
}

impl<W: Write> View<W> {
    /// A view that also shows the committed message.
    pub fn new(out: W, look: Look) -> Self {
        Self {
            out,
            look,
            preview: Preview::new(look),
            parts: Vec::new(),
            shows_message: true,
        }
    }

    /// A view that leaves the committed text to someone else.
    pub fn without_message(out: W, look: Look) -> Self {
        Self {
            shows_message: false,
            ..Self::new(out, look)
        }
    }

    /// Shows one frame.
    ///
    /// # Errors
    /// What writing gives.
    pub fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        match frame {
            Frame::Delta(delta) => self.preview.add(&mut self.out, delta)?,
            Frame::Progress(progress) => self.progress(progress)?,
            Frame::PreviewReset(reset) => {
                let void = |owner| Preview::is_void(reset, owner);
                self.preview.void(&mut self.out, void)?;
                self.note(&words::reset(reset))?;
                self.preview.show_rest(&mut self.out, void)?;
            }
            Frame::Committed(committed) => self.committed(committed)?,
            Frame::Failed(failed) => self.failed(failed)?,
            Frame::Accepted(accepted) => self.note(&words::accepted(accepted))?,
            Frame::Waiting(waiting) => self.note(&words::waiting(waiting))?,
            Frame::AttemptStarted(started) => self.note(&words::attempt_started(started))?,
        }
        self.out.flush()
    }

    fn progress(&mut self, progress: &Progress) -> io::Result<()> {
        match words::progress(progress) {
            None => Ok(()),
            Some(line) if self.preview.is_shown() => self.preview.note(&mut self.out, &line),
            Some(line) => self.note(&line),
        }
    }

    fn committed(&mut self, committed: &Committed) -> io::Result<()> {
        self.parts.extend_from_slice(&committed.message);
        if !committed.r#final {
            return Ok(());
        }
        self.preview.clear(&mut self.out)?;
        let parts = std::mem::take(&mut self.parts);
        if self.shows_message {
            self.message(&parts)?;
        } else {
            self.beside_text(&parts)?;
        }
        for call in &committed.withheld_tool_calls {
            self.note(&words::withheld(call))?;
        }
        self.note(&words::committed(committed))
    }

    fn failed(&mut self, failed: &Failed) -> io::Result<()> {
        self.parts.clear();
        self.preview.void(&mut self.out, |_| true)?;
        for line in words::failed(failed) {
            self.note(&line)?;
        }
        self.preview.forget();
        Ok(())
    }

    /// The whole message, in the order of its parts.
    fn message(&mut self, parts: &[Part]) -> io::Result<()> {
        let prefix = match self.look {
            Look::Plain => "committed: ",
            Look::Styled(_) => "",
        };
        let mut open = false;
        for part in parts {
            if let Some(text) = words::text(part) {
                if !std::mem::replace(&mut open, true) {
                    self.out.write_all(prefix.as_bytes())?;
                }
                let text = clean(text);
                self.out
                    .write_all(self.look.ink(Ink::Plain, &text).as_bytes())?;
            } else if let Some(line) = words::beside_text(part) {
                if std::mem::take(&mut open) {
                    writeln!(self.out)?;
                }
                self.note(&line)?;
            }
        }
        if open {
            writeln!(self.out)?;
        }
        Ok(())
    }

    /// What of the message is not its text.
    fn beside_text(&mut self, parts: &[Part]) -> io::Result<()> {
        for line in parts.iter().filter_map(words::beside_text) {
            self.note(&line)?;
        }
        Ok(())
    }

    /// What happened, on a line of its own.
    ///
    /// # Errors
    /// What writing gives.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.preview.leave(&mut self.out)?;
        let text = format!("· {}", clean(text).replace('\n', " "));
        writeln!(self.out, "{}", self.look.ink(Ink::Note, &text))
    }

    /// A heading.
    ///
    /// # Errors
    /// What writing gives.
    pub fn heading(&mut self, text: &str) -> io::Result<()> {
        self.preview.leave(&mut self.out)?;
        writeln!(self.out, "\n{}", self.look.ink(Ink::Heading, text))
    }

    /// Words to the reader, as they are.
    ///
    /// # Errors
    /// What writing gives.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.preview.leave(&mut self.out)?;
        writeln!(self.out, "{text}")
    }

    /// The account, as a table.
    ///
    /// # Errors
    /// What writing gives.
    pub fn ledger(&mut self, ledger: &Ledger) -> io::Result<()> {
        self.preview.leave(&mut self.out)?;
        for line in ledger::table(ledger) {
            writeln!(self.out, "{}", clean(&line))?;
        }
        self.out.flush()
    }
}

/// The text of a message: what an application would show to its user.
pub fn text(parts: &[Part]) -> String {
    parts.iter().filter_map(words::text).collect()
}

/// How standard output is to be written: styled only on a terminal whose owner did not set `NO_COLOR`.
pub fn look_of_stdout() -> Look {
    look_of(&io::stdout())
}

/// How standard error is to be written, likewise.
pub fn look_of_stderr() -> Look {
    look_of(&io::stderr())
}

fn look_of(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Look {
    let unset = |name| env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    if stream.is_terminal() && unset("NO_COLOR") && !dumb {
        Look::Styled(Window::of(stream))
    } else {
        Look::Plain
    }
}
