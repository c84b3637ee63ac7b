//! A provider whose tokens are numbered and say when they were sent. The model that is asked for says
//! how many there are and at what pace: `TOKENS-MICROSECONDS`.

use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::LazyLock,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Microseconds since this process first asked.
pub fn now() -> u64 {
    ORIGIN.elapsed().as_micros() as u64
}

/// Serves until the runtime ends.
pub async fn start() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let connection =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(connection);
        }
    });
    address
}

async fn answer(request: Request<Incoming>) -> Result<Response<Tokens>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let (tokens, pace) = body["model"].as_str().unwrap().split_once('-').unwrap();
    let pace = Duration::from_micros(pace.parse().unwrap());
    // Streams that began together do not tick together.
    let first = Instant::now() + pace.mul_f64(f64::from(now() as u32 % 100) / 100.0);
    let mut ticks = interval_at(first, pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let tokens = Tokens {
        next: 0,
        count: tokens.parse().unwrap(),
        ticks,
    };
    let response = Response::builder().header("content-type", "text/event-stream");
    Ok(response.body(tokens).unwrap())
}

struct Tokens {
    next: usize,
    count: usize,
    ticks: Interval,
}

impl Body for Tokens {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.next > self.count {
            return Poll::Ready(None);
        }
        ready!(self.ticks.poll_tick(cx));
        let number = self.next;
        self.next += 1;
        let event = if number == self.count {
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
             data: [DONE]\n\n"
                .to_owned()
        } else {
            let token = format!("{number}@{} ", now());
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{token}\"}}}}]}}\n\n"
            )
        };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(event)))))
    }
}
