//! A way to a server that can be slow, swallow what it carries, or lead elsewhere.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

/// What may be under way on one connection in one direction.
const MOST: usize = 1024;

#[derive(Clone)]
struct State {
    leads_to: SocketAddr,
    /// How long answers take on top.
    delay: Duration,
    /// Nothing arrives, and nobody is told.
    swallows: bool,
    /// Ends the connections that there are.
    cut: CancellationToken,
}

/// A way; it serves until the runtime ends.
pub struct Road {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Road {
    pub async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            leads_to: server,
            delay: Duration::ZERO,
            swallows: false,
            cut: CancellationToken::new(),
        }));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                tokio::spawn(connection(client, Arc::clone(&shared)));
            }
        });
        Self { port, state }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
    }

    /// Answers take so much longer from now on.
    pub fn delay(&self, delay: Duration) {
        self.change(|state| state.delay = delay);
    }

    /// From now on nothing arrives, in either direction.
    pub fn swallow(&self) {
        self.change(|state| state.swallows = true);
    }

    /// Ends all connections; new ones lead elsewhere.
    pub fn lead_to(&self, server: SocketAddr) {
        self.change(|state| {
            state.leads_to = server;
            state.cut.cancel();
            state.cut = CancellationToken::new();
        });
    }
}

async fn connection(client: TcpStream, shared: Arc<Mutex<State>>) {
    let State { leads_to, cut, .. } = shared.lock().unwrap().clone();
    let Ok(server) = TcpStream::connect(leads_to).await else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let there = carry(from_client, to_server, Arc::clone(&shared), false);
    let back = carry(from_server, to_client, shared, true);
    tokio::select! {
        () = there => {}
        () = back => {}
        () = cut.cancelled() => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: Arc<Mutex<State>>,
    is_back: bool,
) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(MOST);
    let reading = async {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let state = shared.lock().unwrap().clone();
            let delay = if is_back { state.delay } else { Duration::ZERO };
            let piece = (Instant::now() + delay, bytes[..count].to_vec());
            if !state.swallows && sender.send(piece).await.is_err() {
                break;
            }
        }
        // Who swallows does not tell that an end is gone.
        while shared.lock().unwrap().swallows {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let writing = async {
        while let Some((at, piece)) = receiver.recv().await {
            sleep_until(at).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}
