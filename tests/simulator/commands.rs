//! `redrive simulate`, the command.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Stdio},
};

fn redrive() -> Command {
    Command::new(env!("CARGO_BIN_EXE_redrive"))
}

/// The exit code and the output of a command that ends by itself.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = redrive().arg("simulate").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn every_script_of_the_list_can_be_shown() {
    let (code, list, _) = run(&["--list"]);
    assert_eq!(code, Some(0));
    let names: Vec<&str> = list
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert!(names.len() > 30, "{list}");
    for name in ["stall", "429", "html", "h2-goaway"] {
        assert!(names.contains(&name), "{list}");
        let (code, script, _) = run(&["--show", name]);
        assert_eq!(code, Some(0));
        redrive::simulator::Playlist::parse(&script).unwrap();
    }
    assert!(
        list.contains("\n…/messages          anthropic_messages\n"),
        "{list}"
    );
}

#[test]
fn a_script_is_shown_in_the_protocol_that_is_named() {
    for (protocol, sign) in [
        (None, "chat.completion.chunk"),
        (Some("openai_chat"), "chat.completion.chunk"),
        (Some("openai_responses"), "response.output_text.delta"),
        (Some("anthropic_messages"), "content_block_delta"),
    ] {
        let mut arguments = vec!["--show", "stall"];
        arguments.extend(protocol.into_iter().flat_map(|name| ["--protocol", name]));
        let (code, script, _) = run(&arguments);
        assert_eq!(code, Some(0));
        assert!(script.contains(sign), "{script}");
    }
    let (code, _, error) = run(&["--show", "stall", "--protocol", "gemini"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("openai_responses"), "{error}");
    assert_eq!(run(&["--protocol", "openai_chat"]).0, Some(2));
}

#[test]
fn a_script_that_cannot_be_used_ends_it_with_2() {
    for (arguments, why) in [
        (
            ["--show", "nothing"],
            "there is no ready-made script \"nothing\"",
        ),
        (
            ["--answer", "ok,nothing"],
            "--answer: there is no script \"nothing\"",
        ),
        (["--load", "nowhere.json"], "nowhere.json: "),
    ] {
        let (code, _, error) = run(&arguments);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.starts_with(&format!("redrive simulate: {why}")),
            "{error}"
        );
    }
}

#[test]
fn it_tells_each_request_and_ends_with_0_at_sigterm() {
    let mut child = redrive()
        .args(["simulate", "--listen", "127.0.0.1:0", "--answer", "503"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let first = line();
    let address = first
        .strip_prefix("listening on http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap();
    assert!(line().starts_with("connections are refused at http://127.0.0.1:"));
    assert!(line().starts_with("received: "));
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stream, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let told = line();
    assert!(told.starts_with("   1  GET /  503[0]: 503, "), "{told}");
    let kill = Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
