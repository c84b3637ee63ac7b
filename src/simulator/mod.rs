//! IO. A provider that does as it is told: it answers each request with a [`Script`], over a real
//! socket.
//!
//! One port speaks HTTP/1.1, HTTP/2 with prior knowledge, and TLS with a certificate that nobody has
//! signed; the first bytes decide. Owns the listener, its connections and a log of what was received.
//! Knows nothing of the sidecar, which must not be able to tell it from a real provider.
//!
//! Every step of a script is under exact control: what is one write, what is cut inside a chunk, which
//! frame comes when. That is why HTTP/1.1 is written by hand here, and why frames of our own can stand
//! between those of the HTTP/2 library.
//!
//! Which script answers which request is a [`Choose`]; [`Library`] is the usual one. Its ready-made
//! scripts answer in the [`Protocol`] of the request.

pub mod chat;
mod choose;
mod http1;
mod http2;
mod log;
mod messages;
mod peer;
mod play;
mod playlist;
mod protocol;
pub mod ready;
mod recording;
mod responses;
mod script;
mod speech;
mod tls;
mod wire;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::{
    choose::{Asked, Choose, Chosen, HEADER, Library, UnknownScript},
    log::{Body, End, OnEnd, Received},
    playlist::{After, MAX_FILE, Playlist, PlaylistError},
    protocol::Protocol,
    recording::{Pace, Recording, RecordingError},
    script::{Close, ConnectFault, Fill, FrameOp, Op, Script},
};
use self::{
    log::Log,
    peer::{Peer, Socket},
    play::Desk,
};
use crate::clock::Clock;

/// The largest request body, in bytes. Fixed.
pub(crate) const MAX_REQUEST: usize = 16 << 20;

/// The most connections at a time; further ones wait to be accepted. Fixed.
const MAX_CONNECTIONS: usize = 10_000;

/// How long a connection may take to show what it speaks. Fixed.
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);

/// How a simulator runs.
#[derive(Default)]
pub struct Options {
    /// Where it listens; `None`: on a free port of 127.0.0.1.
    pub address: Option<SocketAddr>,
    /// Nobody listens: connections to its address are refused.
    pub refuse: bool,
    /// Called with each request whose answer has ended.
    pub on_end: Option<OnEnd>,
}

/// A running provider. It ends, with all its connections, when this is dropped.
pub struct Simulator {
    address: SocketAddr,
    desk: Arc<Desk>,
    _stop: DropGuard,
    _refusing: Option<TcpSocket>,
}

impl Simulator {
    /// Listens, and answers every request as `choose` says.
    ///
    /// # Errors
    /// If the port cannot be opened.
    pub async fn start(options: Options, choose: impl Choose) -> io::Result<Self> {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let address = options.address.unwrap_or(free);
        let desk = Arc::new(Desk {
            choose: Box::new(choose),
            log: Log::new(Clock::start(), options.on_end),
        });
        let stop = CancellationToken::new();
        if options.refuse {
            let socket = refusing(address)?;
            let address = socket.local_addr()?;
            return Ok(Self {
                address,
                desk,
                _stop: stop.drop_guard(),
                _refusing: Some(socket),
            });
        }
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let serving = accept(listener, Arc::clone(&desk), stop.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(serving));
        Ok(Self {
            address,
            desk,
            _stop: stop.drop_guard(),
            _refusing: None,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What stands in a configuration as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was received, the oldest first.
    pub fn received(&self) -> Vec<Received> {
        self.desk.log.requests()
    }

    /// Now, by the clock of [`Received`].
    pub fn now(&self) -> Duration {
        self.desk.log.now()
    }
}

/// Holds `address` without listening there.
///
/// # Errors
/// If it is taken.
pub fn refusing(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.bind(address)?;
    Ok(socket)
}

async fn accept(listener: TcpListener, desk: Arc<Desk>, stop: CancellationToken) {
    /// Before another try after one that failed, for want of descriptors for example.
    const PATIENCE: Duration = Duration::from_millis(50);
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tls = Arc::new(OnceLock::new());
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                sleep(PATIENCE).await;
                continue;
            }
        };
        let connection = serve(stream, Arc::clone(&desk), Arc::clone(&tls), slot);
        tokio::spawn(stop.clone().run_until_cancelled_owned(connection));
    }
}

async fn serve(
    stream: TcpStream,
    desk: Arc<Desk>,
    tls: Arc<OnceLock<Option<TlsAcceptor>>>,
    _slot: OwnedSemaphorePermit,
) {
    // What is one write is to be one read.
    let _ = stream.set_nodelay(true);
    let connection = desk.log.connected();
    let Ok(Some((peer, is_http2))) = timeout(MAX_HANDSHAKE, look(stream, &tls)).await else {
        return;
    };
    match is_http2 {
        true => http2::serve(&desk, connection, peer).await,
        false => http1::serve(&desk, connection, peer).await,
    }
}

/// Finds out what a connection speaks; whether that is HTTP/2. `None`: it left before.
async fn look(stream: TcpStream, tls: &OnceLock<Option<TlsAcceptor>>) -> Option<(Peer, bool)> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    let socket = match first == [tls::HANDSHAKE] {
        false => Socket::Plain(stream),
        true => {
            let acceptor = tls.get_or_init(|| tls::acceptor().ok()).as_ref()?;
            Socket::Tls(Box::new(acceptor.accept(stream).await.ok()?))
        }
    };
    let mut peer = Peer::new(socket, BytesMut::new());
    while peer.inbox.len() < http2::PREFACE.len() && http2::PREFACE.starts_with(&peer.inbox) {
        peer.more().await.ok()?;
    }
    let is_http2 = peer.inbox.starts_with(http2::PREFACE);
    Some((peer, is_http2))
}
