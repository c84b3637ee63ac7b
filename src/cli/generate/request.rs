//! From the command line to the first frame.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::GenerateArgs;
use crate::proto::{
    Attach, Conversation, Delivery, GateOptions, Message, NativeBody, Part, RecoveryOptions, Role,
    Sampling, Start, generate_request::Frame, part, start::Input,
};

/// The largest prompt or file, in bytes. Fixed; the sidecar's `listen.max_request_bytes` is smaller
/// by default.
const MAX_INPUT: u64 = 64 << 20;

/// What to send first. `input` is standard input, read only if the prompt or the file is there.
///
/// # Errors
/// What is wrong with what was asked for, for people.
pub(super) fn first_frame(
    args: &GenerateArgs,
    input: &mut impl Read,
    is_terminal: bool,
) -> Result<Frame, String> {
    if let Some(id) = &args.attach {
        return Ok(Frame::Attach(Attach {
            generation_id: id.clone(),
            request_id: String::new(),
        }));
    }
    let content = match &args.file {
        Some(path) => Input::Native(NativeBody {
            protocol: args.protocol.into(),
            json: file(path, input)?.into(),
        }),
        None => Input::Conversation(conversation(args, input, is_terminal)?),
    };
    let text = |option: &Option<String>| option.clone().unwrap_or_default();
    Ok(Frame::Start(Start {
        route: args.route.clone(),
        model: text(&args.model),
        request_id: text(&args.request_id),
        scope: text(&args.scope),
        labels: args.labels.iter().cloned().collect(),
        recovery: recovery(args)?,
        gate: args.gate.clone().map(|preset| GateOptions {
            preset,
            max_attempts: None,
        }),
        delivery: Delivery::from(args.delivery).into(),
        detach_grace: args.detach_grace.map(proto_duration).transpose()?,
        input: Some(content),
        ..Start::default()
    }))
}

fn file(path: &Path, input: &mut impl Read) -> Result<Vec<u8>, String> {
    if path == Path::new("-") {
        return bounded(input).map_err(|error| format!("standard input: {error}"));
    }
    File::open(path)
        .and_then(|mut file| bounded(&mut file))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn conversation(
    args: &GenerateArgs,
    input: &mut impl Read,
    is_terminal: bool,
) -> Result<Conversation, String> {
    let prompt = match &args.prompt {
        Some(prompt) => prompt.clone(),
        None => {
            if is_terminal {
                eprintln!("Type the prompt; Ctrl-D ends it.");
            }
            let bytes = bounded(input).map_err(|error| format!("standard input: {error}"))?;
            let text = String::from_utf8(bytes);
            text.map_err(|_| "standard input: the prompt is not UTF-8 text".to_owned())?
        }
    };
    if prompt.trim().is_empty() {
        return Err("the prompt is empty; give it as an argument or on standard input".to_owned());
    }
    let message = Message {
        role: Role::User.into(),
        parts: vec![Part {
            part: Some(part::Part::Text(prompt)),
        }],
    };
    Ok(Conversation {
        system: args.system.clone().unwrap_or_default(),
        messages: vec![message],
        sampling: args.max_output_tokens.map(|most| Sampling {
            max_output_tokens: Some(most),
            ..Sampling::default()
        }),
        ..Conversation::default()
    })
}

fn recovery(args: &GenerateArgs) -> Result<Option<RecoveryOptions>, String> {
    if args.max_attempts.is_none() && args.deadline.is_none() {
        return Ok(None);
    }
    Ok(Some(RecoveryOptions {
        max_attempts: args.max_attempts,
        deadline: args.deadline.map(proto_duration).transpose()?,
        ..RecoveryOptions::default()
    }))
}

fn proto_duration(length: std::time::Duration) -> Result<prost_types::Duration, String> {
    length
        .try_into()
        .map_err(|_| "a duration is too long".to_owned())
}

fn bounded(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    input.take(MAX_INPUT + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_INPUT {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "larger than 64 MiB",
        ));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::proto::Protocol;

    fn parse(words: &[&str]) -> Result<GenerateArgs, clap::Error> {
        let command = Cli::try_parse_from(["redrive", "generate"].iter().chain(words))?.command;
        match command {
            Command::Generate(args) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    fn frame(words: &[&str], input: &str) -> Result<Frame, String> {
        first_frame(&parse(words).unwrap(), &mut input.as_bytes(), false)
    }

    #[test]
    fn a_prompt_and_its_options_become_a_start() {
        let words = [
            "--route=fast",
            "--model=m",
            "--system=Be brief.",
            "--max-output-tokens=9",
            "--delivery=committed-only",
            "--request-id=r",
            "--scope=s",
            "--label=tenant=gold",
            "--label=class=a=b",
            "--max-attempts=2",
            "--gate=agent",
            "--deadline=30s",
            "--detach-grace=1m",
            "Why?",
        ];
        let part = Part {
            part: Some(part::Part::Text("Why?".to_owned())),
        };
        let seconds = |seconds| prost_types::Duration { seconds, nanos: 0 };
        let expected = Start {
            route: "fast".to_owned(),
            model: "m".to_owned(),
            request_id: "r".to_owned(),
            scope: "s".to_owned(),
            labels: [("tenant", "gold"), ("class", "a=b")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            recovery: Some(RecoveryOptions {
                max_attempts: Some(2),
                deadline: Some(seconds(30)),
                ..RecoveryOptions::default()
            }),
            gate: Some(GateOptions {
                preset: "agent".to_owned(),
                max_attempts: None,
            }),
            delivery: Delivery::CommittedOnly.into(),
            detach_grace: Some(seconds(60)),
            input: Some(Input::Conversation(Conversation {
                system: "Be brief.".to_owned(),
                messages: vec![Message {
                    role: Role::User.into(),
                    parts: vec![part],
                }],
                sampling: Some(Sampling {
                    max_output_tokens: Some(9),
                    ..Sampling::default()
                }),
                ..Conversation::default()
            })),
            ..Start::default()
        };
        assert_eq!(frame(&words, ""), Ok(Frame::Start(expected)));
    }

    #[test]
    fn without_an_argument_the_prompt_is_standard_input_as_it_is() {
        let Ok(Frame::Start(start)) = frame(&[], " Why?\n") else {
            panic!("no start");
        };
        let Some(Input::Conversation(conversation)) = start.input else {
            panic!("no conversation");
        };
        let text = conversation.messages[0].parts[0].part.clone();
        assert_eq!(text, Some(part::Part::Text(" Why?\n".to_owned())));
        assert_eq!(start.route, "default");
        assert_eq!(start.recovery, None);
    }

    #[test]
    fn a_file_goes_out_byte_for_byte() {
        let body = "{ \"messages\" : [] }\n";
        let Ok(Frame::Start(start)) = frame(&["--file=-"], body) else {
            panic!("no start");
        };
        let native = |protocol: Protocol| {
            Some(Input::Native(NativeBody {
                protocol: protocol.into(),
                json: body.into(),
            }))
        };
        assert_eq!(start.input, native(Protocol::OpenaiChat));
        let words = ["--file=-", "--protocol=anthropic_messages"];
        let Ok(Frame::Start(start)) = frame(&words, body) else {
            panic!("no start");
        };
        assert_eq!(start.input, native(Protocol::AnthropicMessages));
    }

    #[test]
    fn an_empty_prompt_and_a_missing_file_are_told() {
        let empty = "the prompt is empty; give it as an argument or on standard input";
        assert_eq!(frame(&[], " \n"), Err(empty.to_owned()));
        let missing = frame(&["--file=no/such/file"], "").unwrap_err();
        assert!(missing.starts_with("no/such/file: "), "{missing}");
    }

    #[test]
    fn what_makes_no_sense_together_is_wrong_usage() {
        for words in [
            ["--file=x", "prompt"],
            ["--file=x", "--system=y"],
            ["--attach=x", "prompt"],
            ["--attach=x", "--deadline=1s"],
            ["--attach=x", "--label=a=b"],
            ["--label=tenant", "prompt"],
            ["--json", "--ledger"],
            ["--max-attempts=0", "prompt"],
        ] {
            assert!(parse(&words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn attach_needs_nothing_but_the_id() {
        let attach = Attach {
            generation_id: "0198".to_owned(),
            request_id: String::new(),
        };
        let told = frame(&["--attach=0198", "--ledger"], "");
        assert_eq!(told, Ok(Frame::Attach(attach)));
    }
}
