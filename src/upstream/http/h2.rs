//! HTTP/2: a task per connection, a lane on it per exchange.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use h2::{
    Ping, PingPong, RecvStream,
    client::{Builder, Connection, ResponseFuture, SendRequest},
};
use http::response::Parts;
use tokio::{sync::Notify, time};

use super::{
    counted::Counted, dial::Io, h1::MAX_HEAD_BYTES, message::Message, pool::Site,
    slots::MAX_STREAMS,
};

/// How often a connection is asked whether its peer is still there, also while idle.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// How long the answer may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle intervals after which a connection is closed: 100 s.
const IDLE_PINGS: u32 = 5;

/// What a stream may send ahead of our reading. Exchanges are read at the provider's pace, so this
/// bounds memory and not speed.
const STREAM_WINDOW: u32 = 1 << 20;

/// Room for every stream at once, so that none starves another.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * MAX_STREAMS as u32;

/// Heads above our own bound but below this one are told apart from other breaches of protocol.
const HARD_HEAD_BYTES: u32 = 4 * MAX_HEAD_BYTES as u32;

/// An open connection as the pool keeps it. Dropping it lets running streams end, then closes.
pub(super) struct Session {
    sender: SendRequest<Bytes>,
    control: Arc<Control>,
    _counted: Counted,
}

/// What a connection, its task and its lanes share.
#[derive(Default)]
pub(super) struct Control {
    streams: AtomicUsize,
    /// There was another stream when the newest one was opened.
    shared: AtomicBool,
    retired: AtomicBool,
    news: Notify,
}

impl Session {
    /// Opens HTTP/2 on a socket: sends the preface, nothing of a request. Its task tells `site` when
    /// the connection has ended.
    #[allow(
        clippy::disallowed_methods,
        reason = "the door: the one opening of HTTP/2"
    )]
    pub(super) async fn start(
        io: Io,
        counted: Counted,
        site: Weak<Site>,
    ) -> Result<Self, h2::Error> {
        let (sender, connection) = builder().handshake(io).await?;
        let control = Arc::new(Control::default());
        tokio::spawn(run(connection, control.clone(), site));
        Ok(Self {
            sender,
            control,
            _counted: counted,
        })
    }

    /// How many exchanges it carries, if it may carry one more.
    pub(super) fn load(&self) -> Option<usize> {
        let streams = self.control.streams.load(Ordering::Relaxed);
        let limit = MAX_STREAMS.min(self.sender.current_max_send_streams());
        (streams < limit).then_some(streams)
    }

    /// A place for one exchange.
    pub(super) fn lane(&self, site: &Arc<Site>, reused: bool) -> Lane {
        let others = self.control.streams.fetch_add(1, Ordering::Relaxed);
        self.control.shared.store(others > 0, Ordering::Relaxed);
        let place = Place {
            control: self.control.clone(),
            site: site.clone(),
        };
        Lane {
            sender: self.sender.clone(),
            place,
            reused,
        }
    }

    /// Whether `control` is this connection's.
    pub(super) fn is(&self, control: &Arc<Control>) -> bool {
        Arc::ptr_eq(&self.control, control)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.control.streams.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.control.retired.store(true, Ordering::Relaxed);
        self.control.news.notify_one();
    }
}

/// RST_STREAM(NO_ERROR): the peer has answered without reading the whole request.
pub(super) fn is_no_error(error: &h2::Error) -> bool {
    error.is_remote() && error.is_reset() && error.reason() == Some(h2::Reason::NO_ERROR)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HARD_HEAD_BYTES)
        .initial_max_send_streams(MAX_STREAMS)
        .max_concurrent_reset_streams(4 * MAX_STREAMS);
    builder
}

/// Drives one connection until its peer ends it, stops answering, or nobody needs it any more.
async fn run(mut connection: Connection<Io, Bytes>, control: Arc<Control>, site: Weak<Site>) {
    let pings = connection.ping_pong();
    let unused = async {
        while !(control.retired.load(Ordering::Relaxed)
            && control.streams.load(Ordering::Relaxed) == 0)
        {
            control.news.notified().await;
        }
    };
    tokio::select! {
        _ = connection => {}
        () = watch(pings, &control, &site) => {}
        () = unused => {}
    }
    if let Some(site) = site.upgrade() {
        site.forget(&control);
    }
}

/// Ends when the peer stops answering; retires the connection when it was long idle.
async fn watch(pings: Option<PingPong>, control: &Arc<Control>, site: &Weak<Site>) {
    let Some(mut pings) = pings else {
        return std::future::pending().await;
    };
    let mut idle = 0;
    loop {
        time::sleep(PING_INTERVAL).await;
        idle = if control.streams.load(Ordering::Relaxed) == 0 {
            idle + 1
        } else {
            0
        };
        if idle >= IDLE_PINGS
            && let Some(site) = site.upgrade()
        {
            site.forget_if_idle(control);
        }
        match time::timeout(PING_TIMEOUT, pings.ping(Ping::opaque())).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// The right to one stream of a connection.
pub(super) struct Lane {
    sender: SendRequest<Bytes>,
    place: Place,
    /// The connection was open before: the peer may have left it since.
    pub(super) reused: bool,
}

/// One stream counted on a connection.
struct Place {
    control: Arc<Control>,
    site: Arc<Site>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.control.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.control.news.notify_one();
        }
        self.site.changed.notify_waiters();
    }
}

impl Lane {
    /// The hand-over. `Err` proves that not a byte of the message was written: the connection was
    /// found closed or going away, and takes no further exchange.
    #[allow(
        clippy::disallowed_methods,
        reason = "the door: the one HTTP/2 hand-over"
    )]
    pub(super) fn send(mut self, message: &Message, cx: &mut Context<'_>) -> Result<Flight, ()> {
        let ready = matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())));
        let (request, body) = message.http2();
        match ready.then(|| self.sender.send_request(request, body.is_empty())) {
            Some(Ok((response, mut stream))) => {
                if !body.is_empty() {
                    // Queued by reference; h2 sends what the peer's window takes. A failure here is
                    // told by the response.
                    let _ = stream.send_data(body, true);
                }
                Ok(Flight {
                    response,
                    body: None,
                    place: self.place,
                })
            }
            Some(Err(_)) | None => {
                self.place.site.forget(&self.place.control);
                Err(())
            }
        }
    }
}

/// A stream with its exchange. Dropping it resets the stream.
pub(super) struct Flight {
    response: ResponseFuture,
    body: Option<RecvStream>,
    place: Place,
}

impl Flight {
    /// The response head; its body is then read by [`poll_data`](Self::poll_data).
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Parts, h2::Error>> {
        let (head, body) = ready!(Pin::new(&mut self.response).poll(cx))?.into_parts();
        self.body = Some(body);
        Poll::Ready(Ok(head))
    }

    /// Body bytes; `None` is END_STREAM. Trailers are passed over.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let data = ready!(body.poll_data(cx));
        if let Some(Ok(data)) = &data {
            // Fails only on a stream that is already gone; the next poll says so.
            let _ = body.flow_control().release_capacity(data.len());
        }
        Poll::Ready(data)
    }

    /// No other stream was open together with this one: what the peer did to the connection, it did to
    /// this one.
    pub(super) fn is_alone(&self) -> bool {
        !self.place.control.shared.load(Ordering::Relaxed)
    }

    /// The connection takes no further exchange.
    pub(super) fn condemn(&self) {
        self.place.site.forget(&self.place.control);
    }
}
