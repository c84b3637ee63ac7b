//! The provider, in a process of its own. What it does stands in the name of the model that is asked
//! for: `KIND-TOKENS-PACE`, with the pace in microseconds.
//!
//! - `plain`: that many tokens, then finish and `[DONE]`.
//! - `open`: that many tokens, then nothing more.
//! - `cut`: each first request of two is cut after its tokens; the tokens of the second are stamped
//!   with the time of the cut.

use std::{
    convert::Infallible,
    io,
    net::Ipv4Addr,
    pin::Pin,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::{
    net::TcpListener,
    time::{Instant, Sleep, sleep_until},
};

use super::stamp;

/// How many streams are spread over one pace, so that they do not all tick together.
const SPREAD: usize = 32;

/// For a cut: what was sent leaves before the connection closes.
const BEFORE_CUT: Duration = Duration::from_millis(5);

static REQUESTS: AtomicUsize = AtomicUsize::new(0);
static CUTS: AtomicUsize = AtomicUsize::new(0);
static CUT_AT: AtomicU64 = AtomicU64::new(0);

/// Serves until the process is killed; the first line of its output is its port.
pub async fn run() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let connection =
            http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(connection);
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Tokens>, Infallible> {
    #[derive(Deserialize)]
    struct Wanted {
        model: String,
    }
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let wanted: Wanted = serde_json::from_slice(&body).unwrap();
    let response = Response::builder().header("content-type", "text/event-stream");
    Ok(response.body(Tokens::new(&wanted.model)).unwrap())
}

#[derive(Clone, Copy, PartialEq)]
enum End {
    Whole,
    Open,
    Cut,
}

/// A response: tokens, each stamped when it is written.
struct Tokens {
    left: usize,
    pace: Duration,
    next: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
    stamped_with_cut: bool,
    end: End,
    closing: usize,
}

impl Tokens {
    fn new(model: &str) -> Self {
        let [kind, tokens, pace] = model.split('-').collect::<Vec<_>>()[..] else {
            panic!("{model}: not KIND-TOKENS-PACE");
        };
        let pace = Duration::from_micros(pace.parse().unwrap());
        let nth = REQUESTS.fetch_add(1, Ordering::Relaxed) % SPREAD;
        let is_cut = kind == "cut" && CUTS.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        Self {
            left: tokens.parse().unwrap(),
            pace,
            next: Instant::now() + pace * nth as u32 / SPREAD as u32,
            sleep: None,
            stamped_with_cut: kind == "cut" && !is_cut,
            end: match kind {
                "open" => End::Open,
                _ if is_cut => End::Cut,
                _ => End::Whole,
            },
            closing: 0,
        }
    }

    fn poll_until(&mut self, time: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .sleep
            .get_or_insert_with(|| Box::pin(sleep_until(time)));
        if sleep.deadline() != time {
            sleep.as_mut().reset(time);
        }
        sleep.as_mut().poll(cx)
    }
}

impl Body for Tokens {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left > 0 {
            if !self.pace.is_zero() {
                let next = self.next;
                ready!(self.poll_until(next, cx));
                self.next = next + self.pace;
            }
            self.left -= 1;
            let stamp = match self.stamped_with_cut {
                true => CUT_AT.load(Ordering::Relaxed),
                false => stamp::now(),
            };
            let content = format!("{{\"content\":\"{}\"}}", stamp::token(stamp));
            return Poll::Ready(Some(Ok(Frame::data(chunk(&content, "null")))));
        }
        match (self.end, self.closing) {
            (End::Open, _) => Poll::Pending,
            (End::Cut, 0) => {
                self.next = Instant::now() + BEFORE_CUT;
                self.closing = 1;
                self.poll_frame(cx)
            }
            (End::Cut, _) => {
                let next = self.next;
                ready!(self.poll_until(next, cx));
                CUT_AT.store(stamp::now(), Ordering::Relaxed);
                Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
            }
            (End::Whole, 0) => {
                self.closing = 1;
                Poll::Ready(Some(Ok(Frame::data(chunk("{}", "\"stop\"")))))
            }
            (End::Whole, 1) => {
                self.closing = 2;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(
                    b"data: [DONE]\n\n",
                )))))
            }
            (End::Whole, _) => Poll::Ready(None),
        }
    }
}

/// One event, of the size and shape that OpenAI sends.
fn chunk(delta: &str, finish: &str) -> Bytes {
    Bytes::from(format!(
        "data: {{\"id\":\"chatcmpl-C7hUfTzhYvCKBVWvbSiKiuKu\",\
         \"object\":\"chat.completion.chunk\",\"created\":1755878837,\
         \"model\":\"gpt-4o-mini-2024-07-18\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_560af6e559\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"logprobs\":null,\
         \"finish_reason\":{finish}}}],\"usage\":null,\"obfuscation\":\"Zk3hVbqX\"}}\n\n"
    ))
}
