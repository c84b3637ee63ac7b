//! A sidecar process on free ports, the provider behind it, and the client as a process.

use std::{
    collections::HashMap,
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use redrive::simulator::{self, Choose, Chosen, Close, Op, Options, Script, Simulator, chat};
use tempfile::TempDir;

/// An answer that is cut once `text` has been seen: what a client has not taken by then, a reset drops
/// silently.
pub fn broken(text: &str) -> Script {
    chat::beginning("m", text, Duration::from_millis(1))
        .then(Op::Pause(Duration::from_millis(300)))
        .then(Op::Close(Close::Fin))
}

/// What a test answers to.
pub struct Asked {
    pub model: String,
    /// Which request for this model it is, counted from 1.
    pub nth: usize,
}

type Answer = Box<dyn Fn(&Asked) -> Script + Send + Sync>;

/// Answers each request for a model by its number.
struct Answers {
    answer: Answer,
    count: Mutex<HashMap<String, usize>>,
}

impl Choose for Answers {
    fn choose(&self, asked: simulator::Asked<'_>) -> Option<Chosen> {
        if !asked.complete {
            return None;
        }
        let model = asked.model()?;
        let mut count = self.count.lock().unwrap();
        let nth = count.entry(model.clone()).or_default();
        *nth += 1;
        let asked = Asked { model, nth: *nth };
        Some(Chosen {
            script: Arc::new((self.answer)(&asked)),
            place: asked.nth - 1,
            name: asked.model,
        })
    }
}

/// The routes of the sidecar; each asks for the model of its own name.
const ROUTES: &[&str] = &["default", "other"];

/// A sidecar whose provider answers as told.
pub struct World {
    sidecar: Child,
    address: SocketAddr,
    provider: Simulator,
    _folder: TempDir,
}

impl World {
    /// Starts provider and sidecar, and waits until the sidecar takes connections.
    pub async fn new(answer: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Self {
        let answers = Answers {
            answer: Box::new(answer),
            count: Mutex::default(),
        };
        Self::speaking("openai_chat", answers).await
    }

    /// The same with a provider of `protocol` that answers as `choose` says.
    pub async fn speaking(protocol: &str, choose: impl Choose) -> Self {
        Self::configured(choose, |address| config(address, protocol)).await
    }

    /// The same with the configuration that `config` makes of the provider's address, but for where the
    /// sidecar listens.
    pub async fn configured(
        choose: impl Choose,
        config: impl FnOnce(SocketAddr) -> String,
    ) -> Self {
        let provider = Simulator::start(Options::default(), choose).await.unwrap();
        let [grpc, public, admin] = free();
        let listen =
            format!("listen: {{grpc: \"{grpc}\", public: \"{public}\", admin: \"{admin}\"}}\n");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redrive.yaml");
        std::fs::write(&file, listen + &config(provider.address())).unwrap();
        let sidecar = Command::new(env!("CARGO_BIN_EXE_redrive"))
            .args(["serve", "--config"])
            .arg(file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(grpc).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self {
            sidecar,
            address: grpc,
            provider,
            _folder: folder,
        }
    }

    /// The bodies that the provider got.
    pub fn bodies(&self) -> Vec<String> {
        let received = self.provider.received().into_iter();
        let bodies = received.map(|one| String::from_utf8(one.body.bytes.to_vec()).unwrap());
        bodies.collect()
    }

    /// `redrive generate`, to be run against this sidecar.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
        command
            .arg("generate")
            .env("REDRIVE_ADDRESS", format!("http://{}", self.address))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn generate(&self, arguments: &[&str]) -> Ended {
        self.command(arguments).output().unwrap().into()
    }

    /// Runs it to its end with `input` on its standard input.
    pub fn generate_from(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.sidecar.kill();
        let _ = self.sidecar.wait();
    }
}

/// What a process left.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    /// All of `lines` were told, in this order.
    #[track_caller]
    pub fn told(&self, lines: &[&str]) {
        let mut rest = self.stderr.as_str();
        for line in lines {
            let Some(at) = rest.find(line) else {
                panic!("{line:?} is missing, or comes too early, in {self:#?}");
            };
            rest = &rest[at + line.len()..];
        }
    }
}

fn config(provider: SocketAddr, protocol: &str) -> String {
    let mut config = format!(
        "providers:\n  \
           local: {{protocol: {protocol}, base_url: \"http://{provider}/v1\"}}\n\
         routes:\n"
    );
    for route in ROUTES {
        config.push_str(&format!(
            "  {route}:\n    \
                 targets: [{{provider: local, model: {route}}}]\n    \
                 recovery: {{backoff: {{base: 20ms}}}}\n"
        ));
    }
    config
}

/// Three ports that nobody has. Somebody else could take one before the sidecar does, but not
/// another test: the system hands out others first.
fn free() -> [SocketAddr; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap())
}
