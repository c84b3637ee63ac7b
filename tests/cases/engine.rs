//! The engine of a case: a real Redis, behind a way to it that has the case's faults.

use std::{
    io::Result,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinSet, spawn_blocking},
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    case::{Faults, FirstEval},
    resp,
    server::{Kind, Server},
};

/// A running one. It ends when this is dropped.
pub struct Engine {
    server: Arc<Server>,
    port: u16,
    faults: Faults,
    /// The calls have begun: their time runs.
    begun: CancellationToken,
    /// Keeps the port of one that is down from the beginning.
    _held: Option<TcpSocket>,
    _end: DropGuard,
}

/// The way to it.
struct Way {
    server: u16,
    faults: Faults,
    /// The answer to a script was lost.
    lost: AtomicBool,
}

impl Engine {
    pub async fn start(faults: &Faults) -> Self {
        let server = spawn_blocking(|| Server::start(Kind::Redis)).await.unwrap();
        let (begun, end) = (CancellationToken::new(), CancellationToken::new());
        let way = Arc::new(Way {
            server: server.port,
            faults: faults.clone(),
            lost: AtomicBool::new(false),
        });
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = socket.local_addr().unwrap().port();
        let held = match faults.down_from_ms {
            // A port that is held and not listened at refuses connections.
            Some(0) => Some(socket),
            down => {
                let listener = socket.listen(64).unwrap();
                let down = down.map(Duration::from_millis);
                tokio::spawn(serve(listener, way, down, begun.clone(), end.clone()));
                None
            }
        };
        Self {
            server: Arc::new(server),
            port,
            faults: faults.clone(),
            begun,
            _held: held,
            _end: end.drop_guard(),
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The first call comes now.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// What an operator does before call `index`.
    pub async fn before_call(&self, index: usize) {
        if index != 1 {
            return;
        }
        let Some(command) = self.faults.before_second_call.clone() else {
            return;
        };
        let server = Arc::clone(&self.server);
        let run = spawn_blocking(move || {
            let words: Vec<&str> = command.split(' ').collect();
            server.beside().run::<()>(&words);
        });
        run.await.unwrap();
    }
}

/// Takes connections until it is down. Then those that there are end, too.
async fn serve(
    listener: TcpListener,
    way: Arc<Way>,
    down: Option<Duration>,
    begun: CancellationToken,
    end: CancellationToken,
) {
    let down = async {
        begun.cancelled().await;
        match down {
            Some(after) => sleep(after).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(down);
    let mut running = JoinSet::new();
    loop {
        let client = tokio::select! {
            () = end.cancelled() => return,
            () = &mut down => return,
            accepted = listener.accept() => accepted.unwrap().0,
        };
        let way = Arc::clone(&way);
        running.spawn(async move {
            let _ = way.carry(client).await;
        });
    }
}

impl Way {
    /// One command after the other, until either side ends, or a fault ends both.
    async fn carry(&self, mut client: TcpStream) -> Result<()> {
        if self.faults.accepts_but_never_replies {
            let mut nowhere = [0; 1024];
            while client.read(&mut nowhere).await? > 0 {}
            return Ok(());
        }
        let mut server = TcpStream::connect(("127.0.0.1", self.server)).await?;
        let (from_client, mut to_client) = client.split();
        let (from_server, mut to_server) = server.split();
        let mut from_client = BufReader::new(from_client);
        let mut from_server = BufReader::new(from_server);
        loop {
            let command = resp::next(&mut from_client).await?;
            let is_script = resp::runs_a_script(&command);
            if let Some(error) = self.faults.script_error.as_ref().filter(|_| is_script) {
                to_client
                    .write_all(format!("-{error}\r\n").as_bytes())
                    .await?;
                continue;
            }
            to_server.write_all(&command).await?;
            let answer = resp::next(&mut from_server).await?;
            if let Some(millis) = self.faults.latency_ms {
                sleep(Duration::from_millis(millis)).await;
            }
            if is_script && self.loses(&answer) {
                return Ok(());
            }
            to_client.write_all(&answer).await?;
        }
    }

    /// Whether the answer to a script is lost: that to the first that ran.
    fn loses(&self, answer: &[u8]) -> bool {
        match self.faults.first_eval {
            None => false,
            Some(FirstEval::LosesItsAnswer) => {
                !answer.starts_with(b"-") && !self.lost.swap(true, Ordering::SeqCst)
            }
        }
    }
}
