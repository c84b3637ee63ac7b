//! A script as the body of an HTTP response.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use super::{Script, Step};

/// What is left of a script.
pub(super) struct Playback {
    steps: vec::IntoIter<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    cutting: bool,
}

/// The response whose body plays `script`.
pub(super) fn response(script: Script) -> Response<Playback> {
    let mut response = Response::new(Playback {
        steps: script.steps.into_iter(),
        pause: None,
        cutting: false,
    });
    *response.status_mut() = script.status;
    *response.headers_mut() = script.headers;
    response
}

impl Body for Playback {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                if pause.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.pause = None;
            }
            match self.steps.next() {
                None => return Poll::Ready(None),
                Some(Step::Send(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Pause(length)) => self.pause = Some(Box::pin(sleep(length))),
                // Nobody wakes it. It ends when hyper sees the client's close and drops it.
                Some(Step::Hang) => {
                    self.steps = vec![Step::Hang].into_iter();
                    return Poll::Pending;
                }
                Some(Step::Cut) if self.cutting => {
                    let error = io::Error::new(io::ErrorKind::ConnectionAborted, "as scripted");
                    return Poll::Ready(Some(Err(error)));
                }
                // hyper drops what it has not flushed, and flushes when nothing more is there.
                Some(Step::Cut) => {
                    self.cutting = true;
                    self.steps = vec![Step::Cut].into_iter();
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
    }
}
