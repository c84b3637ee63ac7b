//! `redrive simulate`: a provider that misbehaves on request.

use std::{
    fs,
    io::{self, Write, stdout},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::simulator::{
    self, End, HEADER, Library, MAX_FILE, OnEnd, Options, Pace, Playlist, Protocol, Received,
    Recording, Simulator, ready,
};

/// Run a provider that does as it is told: it stalls, resets, refuses, truncates, on request.
///
/// Point an application (or a sidecar) at it in place of its provider, and choose what happens by the
/// model it asks for: `"model": "stall"` falls silent in mid-sentence, `"model": "429,ok"` refuses
/// the first request and answers the second, and so on in turn. The header `x-redrive-script` does
/// the same and goes before the model. What names no script gets the --answer.
///
/// One port speaks HTTP/1.1, HTTP/2 with prior knowledge, and TLS with a certificate that nobody has
/// signed. Ready-made scripts answer in the protocol of the path: that of OpenAI Responses ends with
/// `/responses`, that of Anthropic Messages with `/messages`, any other is taken for OpenAI Chat
/// Completions. The key does not matter.
///
/// `GET /requests` tells as JSON what was received and what became of it, without credentials;
/// `DELETE /requests` forgets it and starts all turns again. It ends at SIGINT or SIGTERM with 0;
/// exits with 2 if a script cannot be used, with 1 if it cannot listen.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  redrive simulate
  redrive simulate --list                        the ready-made scripts
  redrive simulate --show stall > my-fault.json  one of them, to start a script of one's own
  redrive simulate --show 529 --protocol anthropic_messages
  redrive simulate --load my-fault.json          then ask for the model \"my-fault\"
  redrive simulate --recording stream.sse --pace 50ms
  curl -N http://127.0.0.1:8089/v1/chat/completions -d '{\"model\": \"truncated\"}'
  curl -s http://127.0.0.1:8089/requests

The format of scripts: docs/simulator.md")]
pub struct SimulateArgs {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8089")]
    pub listen: SocketAddr,

    /// The scripts of requests that name none: a name, or several that take turns
    #[arg(long, value_name = "NAME,...", default_value = "ok")]
    pub answer: String,

    /// Take in a file of scripts, or all *.json of a folder; each is known by its file's name
    #[arg(long, value_name = "PATH")]
    pub load: Vec<PathBuf>,

    /// Take in a recorded answer, known by its file's name, and answer with it what names no script
    #[arg(long, value_name = "FILE", conflicts_with = "answer")]
    pub recording: Option<PathBuf>,

    /// Before each write of the recording, for example 50ms; without it: as recorded, where a manifest
    /// tells the times, else no pause
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration, requires = "recording")]
    pub pace: Option<Duration>,

    /// List the scripts, with those that were loaded, and exit
    #[arg(long)]
    pub list: bool,

    /// Print a ready-made script and exit
    #[arg(long, value_name = "NAME", conflicts_with = "list")]
    pub show: Option<String>,

    /// The protocol in which the script that is shown answers
    #[arg(long, value_name = "NAME", requires = "show", default_value = "openai_chat", value_parser = protocols())]
    pub protocol: Protocol,
}

/// Reads a protocol by its name.
fn protocols() -> impl TypedValueParser<Value = Protocol> {
    let names = PossibleValuesParser::new(Protocol::ALL.map(Protocol::name));
    names.try_map(|name| {
        let mut all = Protocol::ALL.into_iter();
        let found = all.find(|protocol| protocol.name() == name);
        found.ok_or("no such protocol")
    })
}

/// Why it does not run.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// A script cannot be used.
    #[error("{0}")]
    Script(String),
    /// It cannot listen.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Runs until a signal comes; returns the exit code.
pub async fn run(args: SimulateArgs) -> ExitCode {
    match simulate(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(SimulateError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("redrive simulate: {error}");
            match error {
                SimulateError::Script(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

async fn simulate(args: &SimulateArgs) -> Result<(), SimulateError> {
    if let Some(name) = &args.show {
        let unknown = || SimulateError::Script(format!("there is no ready-made script {name:?}"));
        let text = ready::text(name, args.protocol).ok_or_else(unknown)?;
        write!(stdout(), "{text}")?;
        return Ok(());
    }
    let library = library(args)?;
    if args.list {
        return list(&library);
    }
    // Before anything is told: from here on both are ours.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let cannot_listen = |error| SimulateError::Listen(args.listen, error);
    let options = Options {
        address: Some(args.listen),
        on_end: Some(teller()),
        ..Options::default()
    };
    let simulator = Simulator::start(options, library)
        .await
        .map_err(cannot_listen)?;
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let refusing =
        simulator::refusing(nobody).map_err(|error| SimulateError::Listen(nobody, error))?;
    let mut out = stdout();
    writeln!(out, "listening on {}", simulator.base_url())?;
    writeln!(
        out,
        "connections are refused at http://{}/v1",
        refusing.local_addr()?
    )?;
    writeln!(
        out,
        "received: http://{}/requests; scripts: the model, or {HEADER}",
        simulator.address()
    )?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// The ready-made scripts, and what was loaded.
fn library(args: &SimulateArgs) -> Result<Library, SimulateError> {
    let mut library = Library::ready_made();
    for path in &args.load {
        for file in files(path)? {
            library.insert(&name_of(&file)?, load(&file)?);
        }
    }
    let mut others = args.answer.clone();
    if let Some(file) = &args.recording {
        let recording = Recording::load(file).map_err(|error| wrong(file, &error))?;
        others = name_of(file)?;
        library.insert(
            &others,
            recording.playlist(args.pace.map_or(Pace::Recorded, Pace::Given)),
        );
    }
    let unknown =
        |error: simulator::UnknownScript| SimulateError::Script(format!("--answer: {error}"));
    library.answer_others_with(&others).map_err(unknown)?;
    Ok(library)
}

/// The file itself, or the scripts of a folder.
fn files(path: &Path) -> Result<Vec<PathBuf>, SimulateError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| wrong(path, &error))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    Ok(files)
}

fn load(file: &Path) -> Result<Playlist, SimulateError> {
    let size = fs::metadata(file)
        .map_err(|error| wrong(file, &error))?
        .len();
    if size > MAX_FILE {
        return Err(wrong(file, &"larger than 16 MiB"));
    }
    let text = fs::read_to_string(file).map_err(|error| wrong(file, &error))?;
    Playlist::parse(&text).map_err(|error| wrong(file, &error))
}

/// The file's name, less its last extension. A comma would stand between two names.
fn name_of(file: &Path) -> Result<String, SimulateError> {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let name = stem.filter(|stem| !stem.contains(','));
    let unfit = || wrong(file, &"its name is not fit for a script's: no comma, UTF-8");
    Ok(name.ok_or_else(unfit)?.to_owned())
}

fn wrong(file: &Path, why: &dyn std::fmt::Display) -> SimulateError {
    SimulateError::Script(format!("{}: {why}", file.display()))
}

fn list(library: &Library) -> Result<(), SimulateError> {
    let width = library
        .playlists(Protocol::default())
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let mut out = stdout();
    for (name, playlist) in library.playlists(Protocol::default()) {
        writeln!(out, "{name:width$}  {}", playlist.about)?;
    }
    writeln!(
        out,
        "\nReady-made scripts answer in the protocol of the path:"
    )?;
    for protocol in Protocol::ALL {
        writeln!(out, "…{:17}  {}", protocol.path(), protocol.name())?;
    }
    Ok(())
}

/// Says what became of each request. A closed pipe behind us does not end the simulator.
fn teller() -> OnEnd {
    Box::new(|request| {
        let _ = writeln!(stdout(), "{}", line(request));
    })
}

/// A request in one line.
fn line(request: &Received) -> String {
    let script = request.script.as_deref().unwrap_or("no script");
    let turn = request
        .place
        .map(|place| format!("[{place}]"))
        .unwrap_or_default();
    let status = match request.status {
        Some(status) => status.to_string(),
        None => "no head".to_owned(),
    };
    let end = match request.end {
        Some(End::Clean) => "clean end",
        Some(End::Fin) => "closed",
        Some(End::Reset) => "reset",
        Some(End::RstStream) => "stream reset",
        Some(End::Goaway) => "GOAWAY",
        Some(End::ClientLeft) => "the client left",
        Some(End::TimeUp) => "time is up",
        None => "under way",
    };
    let took = request
        .ended
        .unwrap_or_default()
        .saturating_sub(request.arrived);
    format!(
        "{:>4}  {} {}  {script}{turn}: {status}, {} bytes, {end} after {} ms",
        request.number,
        request.method,
        request.path,
        request.bytes_sent,
        took.as_millis(),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn args(line: &[&str]) -> SimulateArgs {
        #[derive(clap::Parser)]
        struct Simulate {
            #[command(flatten)]
            args: SimulateArgs,
        }
        let line = ["simulate"].iter().chain(line);
        <Simulate as clap::Parser>::try_parse_from(line)
            .unwrap()
            .args
    }

    fn names(library: &Library) -> Vec<&str> {
        let playlists = library.playlists(Protocol::default());
        playlists.map(|(name, _)| name).collect()
    }

    #[test]
    fn every_protocol_of_the_sidecar_is_simulated_under_its_name() {
        let built = crate::protocol::adapter::ADAPTERS.iter();
        let built: Vec<&str> = built.map(|(_, name, _)| *name).collect();
        assert_eq!(Protocol::ALL.map(Protocol::name).as_slice(), built);
        for (protocol, name) in Protocol::ALL.into_iter().zip(built) {
            assert_eq!(
                args(&["--show", "ok", "--protocol", name]).protocol,
                protocol
            );
        }
    }

    #[test]
    fn a_folder_and_a_recording_are_known_by_their_files_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("mine.json"), r#"{"status": 418}"#).unwrap();
        fs::write(path("notes.txt"), "no script").unwrap();
        fs::write(path("tape.sse"), "data: 1\n\n").unwrap();
        let args = args(&[
            "--load",
            &path(""),
            "--recording",
            &path("tape.sse"),
            "--pace",
            "5ms",
        ]);
        let library = library(&args).unwrap();
        let names = names(&library);
        assert!(
            names.contains(&"mine") && names.contains(&"tape"),
            "{names:?}"
        );
        assert!(!names.contains(&"notes"), "{names:?}");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.json").display().to_string();
        fs::write(&file, r#"{"stats": 1}"#).unwrap();
        let error = |line: &[&str]| library(&args(line)).unwrap_err().to_string();
        assert!(error(&["--load", &file]).starts_with(&format!("{file}: script 1: unknown field")));
        assert!(error(&["--load", "nowhere.json"]).starts_with("nowhere.json: "));
        assert_eq!(
            error(&["--answer", "bad"]),
            "--answer: there is no script \"bad\""
        );
    }

    #[test]
    fn a_line_says_what_became_of_a_request() {
        let request = Received {
            number: 3,
            method: "POST".to_owned(),
            path: "/v1/chat/completions".to_owned(),
            script: Some("429,ok".to_owned()),
            place: Some(1),
            status: Some(200),
            bytes_sent: 12,
            arrived: Duration::from_millis(10),
            ended: Some(Duration::from_millis(35)),
            end: Some(End::Clean),
            ..Received::default()
        };
        let expected =
            "   3  POST /v1/chat/completions  429,ok[1]: 200, 12 bytes, clean end after 25 ms";
        assert_eq!(line(&request), expected);
    }
}
