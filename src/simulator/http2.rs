//! HTTP/2: the library's state machine, with frames and ends of our own where a script asks for them.

use std::{future::poll_fn, sync::Arc, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use h2::{
    Reason, RecvStream, SendStream,
    server::{self, SendResponse},
};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    MAX_REQUEST, Protocol,
    choose::Asked,
    log::{End, Received},
    peer::{LINGER, Peer},
    play::{Answer, BEFORE_RESET, Desk, Gone},
    script::{Close, FrameOp, MAX_TIME},
    speech,
    wire::{Control, Ending, Wire},
};

/// What every client of HTTP/2 says first (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The most streams of one connection. Fixed.
const MAX_STREAMS: u32 = 1000;

/// How long a client has for the rest of its preface. Fixed.
const MAX_HANDSHAKE: Duration = Duration::from_secs(10);

/// The type of GOAWAY (RFC 9113, section 6.8).
const GOAWAY: u8 = 0x7;

/// Answers requests until the connection ends.
pub(super) async fn serve(desk: &Arc<Desk>, connection: u64, peer: Peer) {
    let control = Arc::new(Control::default());
    let (socket, read) = peer.into_parts();
    let wire = Wire::new(socket, read, Arc::clone(&control));
    let handshake = server::Builder::new()
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .max_header_list_size(64 << 10)
        .handshake::<_, Bytes>(wire);
    let Ok(Ok(mut requests)) = timeout(MAX_HANDSHAKE, handshake).await else {
        return;
    };
    let over = CancellationToken::new();
    let mut streams = JoinSet::new();
    let mut nth = 0;
    loop {
        let request = tokio::select! {
            request = requests.accept() => request,
            () = control.news.notified() => {
                if control.ending().is_some() {
                    break;
                }
                continue;
            }
            Some(_) = streams.join_next() => continue,
        };
        let Some(Ok((request, respond))) = request else {
            break;
        };
        nth += 1;
        let about = Received {
            connection,
            nth_on_connection: nth,
            stream: Some(respond.stream_id().into()),
            arrived: desk.log.now(),
            ..Received::default()
        };
        let stream = Stream {
            desk: Arc::clone(desk),
            control: Arc::clone(&control),
            over: over.clone(),
            id: respond.stream_id().into(),
            half: Half::Head(respond),
        };
        streams.spawn(stream.run(request, about));
    }
    // The client reads what was written and closes; a reset needs one more look at the wire.
    let _ = timeout(LINGER, poll_fn(|cx| requests.poll_closed(cx))).await;
    drop(requests);
    over.cancel();
    while streams.join_next().await.is_some() {}
}

/// One request and its answer.
struct Stream {
    desk: Arc<Desk>,
    control: Arc<Control>,
    /// The connection has ended.
    over: CancellationToken,
    id: u32,
    half: Half,
}

/// Our half of the stream.
enum Half {
    Head(SendResponse<Bytes>),
    Body(SendStream<Bytes>),
}

impl Stream {
    async fn run(mut self, request: Request<RecvStream>, about: Received) {
        let (parts, body) = request.into_parts();
        let path = parts
            .uri
            .path_and_query()
            .map_or("/", |path| path.as_str())
            .to_owned();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect();
        let number = self.desk.log.arrived(Received {
            method: parts.method.to_string(),
            path: path.clone(),
            headers: headers.clone(),
            ..about
        });
        let Ok(body) = self.body(body).await else {
            self.desk.log.ended(number, End::ClientLeft);
            return;
        };
        self.desk.log.body(number, body.clone(), true);
        let asked = Asked {
            path: &path,
            headers: &headers,
            body: &body,
            complete: true,
        };
        let script = self.desk.choose(number, asked);
        let script = script.unwrap_or_else(|| Arc::new(speech::no_script(Protocol::of(&path))));
        let desk = Arc::clone(&self.desk);
        match &script.frames {
            None => drop(desk.play(number, &script, &mut self).await),
            Some(frames) => {
                let end = timeout(MAX_TIME, self.frames(number, frames)).await;
                let end = end.map_or(End::TimeUp, |end| end.unwrap_or(End::ClientLeft));
                desk.log.ended(number, end);
            }
        }
        // A stream that is let go would be reset by the library.
        if self.control.ending().is_some() {
            self.over.cancelled().await;
        }
    }

    async fn body(&self, mut body: RecvStream) -> Result<Bytes, Gone> {
        let mut all = BytesMut::new();
        while let Some(bytes) = self.or_over(body.data()).await? {
            let bytes = bytes.map_err(|_| Gone)?;
            if all.len() + bytes.len() > MAX_REQUEST {
                return Err(Gone);
            }
            let _ = body.flow_control().release_capacity(bytes.len());
            all.put(bytes);
        }
        Ok(all.freeze())
    }

    async fn or_over<T>(&self, work: impl Future<Output = T>) -> Result<T, Gone> {
        self.over.run_until_cancelled(work).await.ok_or(Gone)
    }

    /// Plays a script of frames.
    async fn frames(&mut self, number: u64, frames: &[FrameOp]) -> Result<End, Gone> {
        let mut end = None;
        for frame in frames {
            match frame {
                FrameOp::Headers(status, headers) => {
                    let headers = self.desk.headers(headers);
                    self.head(*status, &headers).await?;
                    self.desk.head_sent(number, *status, headers);
                }
                FrameOp::Data(bytes) => {
                    self.more(bytes).await?;
                    self.desk.body_sent(number, bytes.len());
                }
                FrameOp::Pause(length) => self.pause(*length).await?,
                FrameOp::GoAway { code, processed } => {
                    // What was sent before it is to be read before it.
                    self.pause(BEFORE_RESET).await?;
                    let last = if *processed {
                        self.id
                    } else {
                        self.id.saturating_sub(2)
                    };
                    self.control.send(goaway(last, *code));
                    end = Some(End::Goaway);
                }
                FrameOp::RstStream(code) => {
                    self.pause(BEFORE_RESET).await?;
                    match &mut self.half {
                        Half::Head(head) => head.send_reset(Reason::from(*code)),
                        Half::Body(body) => body.send_reset(Reason::from(*code)),
                    }
                    return Ok(End::RstStream);
                }
                FrameOp::EndStream => end = Some(self.close(Close::Clean).await?),
                FrameOp::Close => {
                    // After a GOAWAY the client may well have closed first.
                    let fin = self.close(Close::Fin).await;
                    return end.map_or(fin, Ok);
                }
            }
        }
        match end {
            // A stream that is let go would be reset by the library.
            Some(End::Goaway) => {
                self.until_reset().await;
                Ok(End::Goaway)
            }
            Some(end) => Ok(end),
            None => self.close(Close::Never).await,
        }
    }

    /// Waits until the client resets the stream, or the connection ends.
    async fn until_reset(&mut self) {
        let over = self.over.clone();
        let reset = poll_fn(|cx| match &mut self.half {
            Half::Head(head) => head.poll_reset(cx),
            Half::Body(body) => body.poll_reset(cx),
        });
        // A reset or a broken connection: the client has left either way.
        let _ = over.run_until_cancelled(reset).await;
    }
}

impl Answer for Stream {
    async fn head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), Gone> {
        let Half::Head(respond) = &mut self.half else {
            return Err(Gone);
        };
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).map_err(|_| Gone)?;
        for (name, value) in headers {
            // Of HTTP/1.1 only (RFC 9113, section 8.2.2).
            if name == "connection" || name == "transfer-encoding" {
                continue;
            }
            let name = HeaderName::try_from(name).map_err(|_| Gone)?;
            let value = HeaderValue::try_from(value).map_err(|_| Gone)?;
            response.headers_mut().append(name, value);
        }
        self.half = Half::Body(respond.send_response(response, false).map_err(|_| Gone)?);
        Ok(())
    }

    async fn write(&mut self, _length: u64) -> Result<(), Gone> {
        Ok(())
    }

    async fn more(&mut self, bytes: &Bytes) -> Result<(), Gone> {
        let over = self.over.clone();
        let Half::Body(body) = &mut self.half else {
            return Err(Gone);
        };
        let mut bytes = bytes.clone();
        while !bytes.is_empty() {
            body.reserve_capacity(bytes.len());
            let capacity = over
                .run_until_cancelled(poll_fn(|cx| body.poll_capacity(cx)))
                .await;
            let Some(Some(Ok(capacity))) = capacity else {
                return Err(Gone);
            };
            let now = bytes.split_to(capacity.min(bytes.len()));
            body.send_data(now, false).map_err(|_| Gone)?;
        }
        Ok(())
    }

    async fn written(&mut self) -> Result<(), Gone> {
        Ok(())
    }

    async fn pause(&mut self, length: Duration) -> Result<(), Gone> {
        tokio::select! {
            biased;
            () = self.until_reset() => Err(Gone),
            () = sleep(length) => Ok(()),
        }
    }

    async fn close(&mut self, close: Close) -> Result<End, Gone> {
        match close {
            Close::Clean => {
                let Half::Body(body) = &mut self.half else {
                    return Err(Gone);
                };
                body.send_data(Bytes::new(), true).map_err(|_| Gone)?;
                Ok(End::Clean)
            }
            Close::Fin | Close::TruncatedChunked | Close::TruncatedChunkedAtBoundary => {
                self.pause(BEFORE_RESET).await?;
                self.control.end(Ending::Fin);
                Ok(End::Fin)
            }
            Close::Reset => {
                self.pause(BEFORE_RESET).await?;
                self.control.end(Ending::Reset);
                Ok(End::Reset)
            }
            Close::Never => {
                self.until_reset().await;
                Err(Gone)
            }
        }
    }
}

fn goaway(last_stream: u32, code: u32) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_slice(&[0, 0, 8, GOAWAY, 0, 0, 0, 0, 0]);
    frame.put_u32(last_stream);
    frame.put_u32(code);
    frame.freeze()
}
