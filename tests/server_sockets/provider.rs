//! A provider in raw HTTP/1.1: for each request a script of bytes, waits and an end.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::support::{DONE, finish, text, usage};

/// What the provider does with one request. Where a script ends it waits for the other side to close.
#[derive(Clone, Debug, Default)]
pub struct Script(VecDeque<Step>);

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u8>),
    Wait(Duration),
    /// Answers the next request on this connection.
    Keep,
    Close,
    Reset,
}

pub const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub fn script() -> Script {
    Script::default()
}

/// The head of a stream, and a first token.
pub fn begun() -> Script {
    script().bytes(STREAM).chunk(&text("Hel"))
}

/// A whole answer, the connection kept.
pub fn whole() -> Script {
    begun()
        .chunk(&text("lo"))
        .chunk(&finish("stop"))
        .chunk(&usage(7, 3))
        .chunk(DONE)
        .bytes("0\r\n\r\n")
        .keep()
}

impl Script {
    fn step(mut self, step: Step) -> Script {
        self.0.push_back(step);
        self
    }

    pub fn bytes(self, bytes: impl AsRef<[u8]>) -> Script {
        self.step(Step::Write(bytes.as_ref().to_vec()))
    }

    pub fn chunk(self, data: &str) -> Script {
        self.bytes(format!("{:x}\r\n{data}\r\n", data.len()))
    }

    pub fn wait(self, millis: u64) -> Script {
        self.step(Step::Wait(Duration::from_millis(millis)))
    }

    pub fn keep(self) -> Script {
        self.step(Step::Keep)
    }

    pub fn close(self) -> Script {
        self.step(Step::Close)
    }

    pub fn reset(self) -> Script {
        self.step(Step::Reset)
    }
}

#[derive(Default)]
struct Seen {
    scripts: VecDeque<Script>,
    /// Played when there is no other; else a request is a failure of the test.
    always: Option<Script>,
    requests: usize,
    open: usize,
    closed_at: Option<Instant>,
}

/// A listening provider.
pub struct Provider {
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Provider {
    pub async fn start() -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                shared.lock().unwrap().open += 1;
                connections.spawn(connection(stream, Arc::clone(&shared)));
            }
        });
        Provider {
            address,
            seen,
            task,
        }
    }

    pub fn then(&self, script: Script) {
        self.seen.lock().unwrap().scripts.push_back(script);
    }

    pub fn always(&self, script: Script) {
        self.seen.lock().unwrap().always = Some(script);
    }

    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().requests
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.seen.lock().unwrap().open
    }

    /// When the other side last closed a connection.
    pub fn closed_at(&self) -> Option<Instant> {
        self.seen.lock().unwrap().closed_at
    }

    /// Closes the listener and all connections.
    pub async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

async fn connection(mut stream: TcpStream, seen: Arc<Mutex<Seen>>) {
    while request(&mut stream).await {
        let script = {
            let mut seen = seen.lock().unwrap();
            seen.requests += 1;
            let script = seen.scripts.pop_front();
            script.or_else(|| seen.always.clone())
        };
        let script = script.expect("a request that no script expects");
        if !play(&mut stream, script).await {
            break;
        }
    }
    let mut seen = seen.lock().unwrap();
    seen.open -= 1;
    seen.closed_at = Some(Instant::now());
}

/// Reads one request, head and body; `false` if the other side closes.
async fn request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if read.len() >= end + 4 + length {
                return true;
            }
        }
        match stream.read_buf(&mut read).await {
            Ok(count) if count > 0 => {}
            _ => return false,
        }
    }
}

/// Whether the connection goes on.
async fn play(stream: &mut TcpStream, script: Script) -> bool {
    for step in script.0 {
        match step {
            Step::Write(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return false;
                }
            }
            Step::Wait(length) => {
                // A close in the middle is noticed.
                let mut byte = [0];
                tokio::select! {
                    () = tokio::time::sleep(length) => {}
                    _ = stream.peek(&mut byte) => return false,
                }
            }
            Step::Keep => return true,
            Step::Close => return false,
            Step::Reset => {
                SockRef::from(&*stream)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
                return false;
            }
        }
    }
    let mut rest = [0; 1024];
    while matches!(stream.read(&mut rest).await, Ok(count) if count > 0) {}
    false
}
