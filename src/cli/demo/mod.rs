//! `redrive demo`: the whole of it in one process, over loopback sockets.

mod scenes;
mod stage;
mod witness;

use std::{
    io::{self, Write, stdout},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use tokio::signal::unix::{self, SignalKind};

use super::{
    INTERRUPTED,
    terminal::{self, View},
};
use crate::simulator::Recording;
use scenes::Scene;
use stage::Stage;

/// Show a stall, a reset, a replay, a wait and a fallback, live.
///
/// A sidecar, a small provider that does as it is told, and a client, in this process and over
/// loopback sockets: no network, no files, no keys, and nothing that a running sidecar would notice.
/// It takes about 15 seconds.
///
/// Four scenes: a healthy stream; a stream that falls silent, with the timer, the reset, the replay
/// and the commit; a 429 whose Retry-After is honoured; a dead target and its fallback. After each
/// its ledger, the account of what was sent.
///
/// Preview is dim, void text is struck through, committed text is plain; in a pipe void text stands
/// between ~~ and ~~. The demo checks itself: exit status 1 if a scene does not end as it should.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  redrive demo
  redrive demo | less
  redrive demo --recording stream.sse      a recorded OpenAI Chat stream, through the sidecar")]
pub struct DemoArgs {
    /// Play this recorded OpenAI Chat stream (server-sent events, as they came) instead of the scenes
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,

    /// Do not pace the streams for reading
    #[arg(long)]
    pub fast: bool,
}

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The scene did not end as it should.
    #[error("the scene did not end as it should: {}", .0.join("; "))]
    Scene(Vec<String>),
    /// The stage could not be set.
    #[error("{0}")]
    Stage(Box<dyn std::error::Error + Send + Sync>),
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Plays it on standard output; returns the exit code.
pub async fn run(args: DemoArgs) -> ExitCode {
    let end = async {
        // Before anything is played: from here on Ctrl-C is ours.
        let mut interrupt = unix::signal(SignalKind::interrupt())?;
        let mut view = View::new(stdout(), terminal::look_of_stdout());
        tokio::select! {
            end = play(&args, &mut view) => end.map(|()| ExitCode::SUCCESS),
            _ = interrupt.recv() => {
                writeln!(stdout())?;
                Ok(ExitCode::from(INTERRUPTED))
            }
        }
    };
    match end.await {
        Ok(code) => code,
        Err(DemoError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("redrive demo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Plays it into `view`.
///
/// # Errors
/// If it could not be played, or a scene did not end as it should.
pub async fn play(args: &DemoArgs, view: &mut View<impl Write>) -> Result<(), DemoError> {
    let (pace, reading) = match args.fast {
        true => (Duration::from_millis(1), Duration::ZERO),
        false => (Duration::from_millis(80), Duration::from_millis(800)),
    };
    let scenes = match &args.recording {
        Some(file) => {
            let recording = Recording::load(file)
                .map_err(|error| DemoError::Stage(format!("{}: {error}", file.display()).into()))?;
            vec![Scene::recording(&recording, pace)]
        }
        None => scenes::all(pace),
    };
    let stage = Stage::set(&scenes).await.map_err(DemoError::Stage)?;
    introduce(view, &stage)?;
    for (number, scene) in (1..).zip(&scenes) {
        view.heading(&format!("{number}. {}", scene.title))?;
        view.say(scene.look_for)?;
        tokio::time::sleep(reading).await;
        let complaints = stage.play(scene, view).await?;
        if !complaints.is_empty() {
            return Err(DemoError::Scene(complaints));
        }
    }
    stage.clear().await;
    Ok(())
}

fn introduce(view: &mut View<impl Write>, stage: &Stage) -> io::Result<()> {
    view.heading("redrive demo: a sidecar, a provider and a client in one process")?;
    view.say("The sidecar runs on this configuration:\n")?;
    view.say(stage.yaml())
}
