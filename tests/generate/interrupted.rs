//! Ctrl-C, and a generation that changes hands.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command},
    time::{Duration, Instant},
};

use redrive::simulator::{Close, Op, chat};

use crate::support::World;

/// A client process and what it has told so far.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    told: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self {
            child,
            stderr,
            told: String::new(),
        }
    }

    /// Reads on until `text` has been told.
    fn until(&mut self, text: &str) {
        let mut byte = [0];
        while !self.told.contains(text) {
            self.stderr.read_exact(&mut byte).unwrap();
            self.told.push(char::from(byte[0]));
        }
    }

    fn interrupt(&self) {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
    }

    /// Waits for its end; its exit status and all it told.
    fn end(mut self) -> (Option<i32>, String) {
        for line in self.stderr.by_ref().lines() {
            self.told.push_str(&line.unwrap());
            self.told.push('\n');
        }
        (self.child.wait().unwrap().code(), self.told)
    }
}

/// A generation that begins and then hangs.
async fn hanging() -> World {
    let words = || chat::beginning("m", "So far so", Duration::from_millis(1));
    World::new(move |_| words().then(Op::Close(Close::Never))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_generation_and_shows_its_end() {
    let world = hanging().await;
    let mut running = Running::start(world.command(&["--ledger", "Say it."]));
    running.until("preview: So far so");
    let start = Instant::now();
    running.interrupt();
    let (code, told) = running.end();
    assert_eq!(code, Some(130), "{told}");
    assert!(start.elapsed() < Duration::from_secs(2), "{told}");
    for line in [
        "void: ~~So far so~~\n",
        "· failed: cancelled (",
        "· stopped by: cancel\n",
        "1  local/default  yes       cancelled",
    ] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_is_taken_over_by_its_id() {
    let world = hanging().await;
    let mut first = Running::start(world.command(&["Say it."]));
    first.until("preview: So far so");
    let id = first.told.split("generation ").nth(1).unwrap();
    let id = id.split(',').next().unwrap().to_owned();
    let mut second = Running::start(world.command(&["--attach", &id]));
    second.until(&format!("· attached to generation {id}"));
    second.until("preview: So far so");
    let (code, told) = first.end();
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("another RPC has attached"), "{told}");
    second.interrupt();
    let (code, told) = second.end();
    assert_eq!(code, Some(130), "{told}");
    assert!(told.contains("· failed: cancelled ("), "{told}");
    assert_eq!(world.bodies().len(), 1);
}
