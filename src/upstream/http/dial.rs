//! From a host to an open socket: DNS, both families, proxy, TLS.

use std::{io, net::SocketAddr, time::Duration};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time,
};

use super::{
    super::Http2,
    errors::unsent,
    pool::Site,
    proxy,
    target::{Target, bare},
};
use crate::verdict::transport::{TransportError, TransportKind};

/// The head start of one address before the next is tried beside it (RFC 8305, section 5).
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried at most.
const MAX_ADDRESSES: usize = 8;

/// A silent connection is probed after this long.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// How far probes lie apart.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Unanswered probes that mean the peer is gone.
const KEEPALIVE_PROBES: u32 = 3;

/// An open socket, with or without TLS.
pub(super) type Io = Box<dyn Stream>;

/// What HTTP runs on.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens a connection to the site; `true` where it speaks HTTP/2.
pub(super) async fn connect(site: &Site) -> Result<(Io, bool), TransportError> {
    let target = site
        .target
        .as_ref()
        .map_err(|e| unsent(TransportKind::Connect, e.as_str()))?;
    let tls = site
        .tls
        .as_ref()
        .map_err(|e| unsent(TransportKind::Tls, e.as_str()));
    let tls = if target.tls { Some(tls?) } else { None };
    let tcp = match &site.endpoint.proxy {
        Some(proxy) if !proxy::bypasses(&proxy.no_proxy, &target.host, target.port) => {
            proxy::tunnel(&proxy.url, target).await?
        }
        _ => reach(target).await?,
    };
    match tls {
        Some(tls) => {
            let (stream, http2) = tls.connect(&target.host, tcp).await?;
            Ok((Box::new(stream), http2))
        }
        None => Ok((Box::new(tcp), site.endpoint.http2 == Http2::PriorKnowledge)),
    }
}

async fn reach(target: &Target) -> Result<TcpStream, TransportError> {
    tcp(&target.host, target.port)
        .await
        .map_err(|error| match error {
            Unreachable::Name(error) => unsent(
                TransportKind::Dns,
                format!("{} does not resolve: {error}", target.host),
            ),
            Unreachable::Peer(error) => unsent(
                TransportKind::Connect,
                format!(
                    "no connection to {} port {}: {error}",
                    target.host, target.port
                ),
            ),
        })
}

/// Why there is no TCP connection.
pub(super) enum Unreachable {
    Name(io::Error),
    Peer(io::Error),
}

/// TCP to a name or an address.
pub(super) async fn tcp(host: &str, port: u16) -> Result<TcpStream, Unreachable> {
    let found = lookup_host((bare(host), port))
        .await
        .map_err(Unreachable::Name)?;
    let mut addresses = interleave(found.collect());
    addresses.truncate(MAX_ADDRESSES);
    if addresses.is_empty() {
        let nothing = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        return Err(Unreachable::Name(nothing));
    }
    race(addresses).await.map_err(Unreachable::Peer)
}

/// Alternates the families, beginning with the resolver's first choice.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_ipv6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut mixed = Vec::new();
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return mixed;
        }
        mixed.extend(pair.into_iter().flatten());
    }
}

/// Tries one address after the other, each with a head start; the first connection wins. A failure
/// starts the next at once.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut running = JoinSet::new();
    let mut last = io::Error::from(io::ErrorKind::NotConnected);
    loop {
        if let Some(address) = waiting.next() {
            running.spawn(open(address));
        } else if running.is_empty() {
            return Err(last);
        }
        let patience = if waiting.len() == 0 {
            Duration::MAX
        } else {
            STAGGER
        };
        match time::timeout(patience, running.join_next()).await {
            Ok(Some(Ok(Ok(stream)))) => return Ok(stream),
            Ok(Some(Ok(Err(error)))) => last = error,
            Ok(Some(Err(_)) | None) | Err(_) => {}
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the door: the one place that connects"
)]
async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_from_the_resolvers_first_choice() {
        let parse = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<_>>();
        let found = parse(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"]);
        let wanted = parse(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]);
        assert_eq!(interleave(found), wanted);
    }

    /// An address on which connections are neither taken nor refused: its queue is full.
    fn silent() -> (SocketAddr, impl Sized) {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket
            .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
            .unwrap();
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let fill = || {
            let filler =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
            filler
                .connect_timeout(&address.into(), Duration::from_millis(50))
                .ok()?;
            Some(filler)
        };
        let held: Vec<_> = std::iter::from_fn(fill).take(16).collect();
        (address, (socket, held))
    }

    #[tokio::test]
    async fn an_address_that_stays_silent_or_refuses_holds_up_no_other() {
        let (silent, _held) = silent();
        let refused = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let live = listener.local_addr().unwrap();
        let stream = race(vec![silent, refused, live]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), live);
    }

    #[tokio::test]
    async fn where_no_address_answers_the_last_error_is_told() {
        let refused = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let error = race(vec![refused, refused]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
