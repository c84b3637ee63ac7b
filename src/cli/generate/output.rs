//! Where a generation is shown: the committed text on standard output, the rest around it.

use std::io::{self, IsTerminal, Write, stderr, stdout};

use super::{GenerateArgs, json::JsonLines};
use crate::{
    cli::terminal::{self, Look, View, Window},
    proto::{Committed, GenerateResponse, Part, generate_response::Frame},
};

/// What a person or a program gets of a generation.
pub(super) struct Output {
    form: Form,
    ledger: bool,
}

enum Form {
    /// A terminal shows everything in one place.
    Terminal(View<io::Stdout>),
    /// A file or a program gets the text; who looks on sees the talk.
    Apart {
        talk: View<io::Stderr>,
        text: Text<io::Stdout>,
    },
    /// For machines.
    Json(JsonLines),
}

/// The committed text alone.
struct Text<W> {
    out: W,
    parts: Vec<Part>,
}

impl Output {
    /// Looks at what standard output and standard error are.
    pub(super) fn new(args: &GenerateArgs) -> io::Result<Self> {
        let form = if args.json {
            Form::Json(JsonLines::new()?)
        } else if stdout().is_terminal() {
            Form::Terminal(View::new(stdout(), terminal::look_of_stdout()))
        } else {
            Form::Apart {
                talk: View::without_message(stderr(), append_only(terminal::look_of_stderr())),
                text: Text {
                    out: stdout(),
                    parts: Vec::new(),
                },
            }
        };
        Ok(Self {
            form,
            ledger: args.ledger,
        })
    }

    /// Shows one frame.
    pub(super) fn show(&mut self, response: &GenerateResponse) -> io::Result<()> {
        let Some(frame) = &response.frame else {
            return Ok(());
        };
        match &mut self.form {
            Form::Json(json) => {
                let mut out = stdout().lock();
                out.write_all(&json.line(response)?)?;
                out.flush()
            }
            Form::Terminal(view) => {
                view.frame(frame)?;
                account(view, frame, self.ledger)
            }
            Form::Apart { talk, text } => {
                if let Frame::Committed(committed) = frame {
                    text.committed(committed)?;
                }
                talk.frame(frame)?;
                account(talk, frame, self.ledger)
            }
        }
    }
}

impl<W: Write> Text<W> {
    fn committed(&mut self, committed: &Committed) -> io::Result<()> {
        self.parts.extend_from_slice(&committed.message);
        if !committed.r#final {
            return Ok(());
        }
        let text = terminal::text(&self.parts);
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// The text may go to the same screen by another way: nothing above may be written again.
fn append_only(look: Look) -> Look {
    match look {
        Look::Plain => Look::Plain,
        Look::Styled(window) => Look::Styled(Window { rows: 0, ..window }),
    }
}

fn account(view: &mut View<impl Write>, frame: &Frame, wanted: bool) -> io::Result<()> {
    let ledger = match frame {
        Frame::Committed(committed) => committed.ledger.as_ref(),
        Frame::Failed(failed) => failed.ledger.as_ref(),
        _ => None,
    };
    match ledger {
        Some(ledger) if wanted => view.ledger(ledger),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::part;

    #[test]
    fn a_pipe_gets_the_text_byte_for_byte_whatever_its_parts() {
        let mut text = Text {
            out: Vec::new(),
            parts: Vec::new(),
        };
        let part = |text: &str| Part {
            part: Some(part::Part::Text(text.to_owned())),
        };
        let mut committed = Committed {
            message: vec![part("one\x1b["), part("2J")],
            part: 1,
            ..Committed::default()
        };
        text.committed(&committed).unwrap();
        assert!(text.out.is_empty(), "the first part is not the end");
        committed.r#final = true;
        committed.message = vec![part(" two")];
        text.committed(&committed).unwrap();
        assert_eq!(text.out, b"one\x1b[2J two");
    }
}
