//! A server process, started for one test and stopped by its id.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use redis::{Connection, FromRedisValue, Value};
use tempfile::TempDir;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Valkey,
}

/// A running server. It is killed when this is dropped.
pub struct Server {
    pub kind: Kind,
    pub port: u16,
    program: &'static str,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    /// Its working folder, removed with it.
    _folder: Option<TempDir>,
    _conf: Option<TempDir>,
}

/// Runs `test` against each server that can be had, and says which cannot.
pub fn each(test: impl Fn(Kind)) {
    for kind in [Kind::Redis, Kind::Valkey] {
        if is_there(kind) {
            test(kind);
        }
    }
}

/// Whether such a server can be had; says so if not.
pub fn is_there(kind: Kind) -> bool {
    let found = program(kind);
    if let Err(why) = found {
        eprintln!("SKIPPED: no {kind:?} server: {why}");
    }
    found.is_ok()
}

/// As [`each`], for what has to be waited for; the server is started.
pub fn with_each(test: impl AsyncFn(Server)) {
    each(|kind| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(test(Server::start(kind)));
    });
}

/// The path of a server; asked once.
pub fn program(kind: Kind) -> &'static Result<String, String> {
    static PROGRAMS: [OnceLock<Result<String, String>>; 2] = [OnceLock::new(), OnceLock::new()];
    PROGRAMS[kind as usize].get_or_init(|| installed(["redis", "valkey"][kind as usize]))
}

/// The path of what `tests/servers.sh` finds or installs.
pub fn installed(name: &str) -> Result<String, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers.sh");
    let output = Command::new(script).arg(name).output();
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.lines().last().unwrap_or_default().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Server {
    pub fn start(kind: Kind) -> Self {
        Self::start_with(kind, &[])
    }

    /// A Sentinel, of the primary `main` on that port.
    pub fn sentinel(kind: Kind, primary: u16, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // It keeps what it finds out there.
        let file = folder.path().join("sentinel.conf");
        let rules = [
            format!("sentinel monitor main 127.0.0.1 {primary} 1"),
            "sentinel down-after-milliseconds main 300".into(),
            "sentinel failover-timeout main 3000".into(),
        ];
        std::fs::write(&file, rules.join("\n") + "\n").unwrap();
        let arguments = [&[file.to_str().unwrap(), "--sentinel"][..], more].concat();
        let mut server = Self::start_first(kind, &arguments, &[], &[]);
        server._conf = Some(folder);
        server
    }

    /// With more arguments, as on the command line.
    pub fn start_with(kind: Kind, arguments: &[&str]) -> Self {
        Self::start_in(kind, arguments, &[])
    }

    /// In an environment with these variables, too.
    pub fn start_in(kind: Kind, arguments: &[&str], environment: &[(String, String)]) -> Self {
        let own = ["--save", "", "--appendonly", "no"];
        Self::start_first(kind, &[], &[&own, arguments].concat(), environment)
    }

    fn start_first(
        kind: Kind,
        first: &[&str],
        arguments: &[&str],
        environment: &[(String, String)],
    ) -> Self {
        let program = program(kind).as_ref().expect("asked for by `each`");
        let folder = tempfile::tempdir().unwrap();
        // Another may take the port before the server does: then the next one is tried.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let number = port.to_string();
            let all = [
                first,
                &["--port", &number, "--bind", "127.0.0.1"],
                &["--dir", folder.path().to_str().unwrap()],
                arguments,
            ];
            let arguments: Vec<String> = all.concat().iter().map(|&word| word.into()).collect();
            let child = spawn(program, &arguments, environment);
            let mut server = Self {
                kind,
                port,
                program,
                arguments,
                environment: environment.to_vec(),
                child,
                _folder: None,
                _conf: None,
            };
            if server.comes_up() {
                server._folder = Some(folder);
                return server;
            }
        }
        panic!("no server started");
    }

    fn comes_up(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            let pong = self.connect().and_then(|mut connection| {
                let answer = redis::cmd("PING").query::<Value>(&mut connection);
                // One that wants a password is up, too.
                answer.or_else(|error| match error.code() {
                    Some("NOAUTH") => Ok(Value::Nil),
                    _ => Err(error),
                })
            });
            if pong.is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn connect(&self) -> redis::RedisResult<Connection> {
        redis::Client::open(self.url())?.get_connection()
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection beside the one that is tested.
    pub fn beside(&self) -> Beside {
        Beside(self.connect().unwrap())
    }

    /// Gone at once, with all that it held in memory.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Again on the same port, with what it finds on its disk.
    pub fn start_again(&mut self) {
        self.child = spawn(self.program, &self.arguments, &self.environment);
        assert!(self.comes_up(), "the server came up again");
    }
}

fn spawn(program: &str, arguments: &[String], environment: &[(String, String)]) -> Child {
    let mut command = Command::new(program);
    command.envs(environment.iter().cloned());
    command.args(arguments).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Commands, as an operator would give them.
pub struct Beside(Connection);

impl Beside {
    pub fn run<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        self.try_run(words).unwrap()
    }

    pub fn try_run<T: FromRedisValue>(&mut self, words: &[&str]) -> redis::RedisResult<T> {
        let (name, rest) = words.split_first().unwrap();
        redis::cmd(name).arg(rest).query(&mut self.0)
    }
}
