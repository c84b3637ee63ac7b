//! HTTP/1.1, byte by byte: a server library would not write a body that is cut inside a chunk.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use tokio::time::timeout;

use super::{
    MAX_REQUEST, Protocol,
    choose::Asked,
    log::{End, Received},
    peer::Peer,
    play::{Answer, Desk, Gone},
    script::{Close, ConnectFault, Script},
    speech,
};

mod head;

use head::Head;

/// How long a connection may be idle between requests. Fixed.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// How long a request may take to come. Fixed.
const MAX_ARRIVAL: Duration = Duration::from_secs(60);

/// How long an idle connection stands before it is closed as scripted.
const IDLE_BEFORE_FIN: Duration = Duration::from_millis(50);

/// The path of the log.
const LOG_PATH: &str = "/requests";

/// Answers one request after the other.
pub(super) async fn serve(desk: &Desk, connection: u64, mut peer: Peer) {
    let mut nth = 0;
    loop {
        if peer.inbox.is_empty() && !matches!(timeout(MAX_IDLE, peer.more()).await, Ok(Ok(()))) {
            return;
        }
        nth += 1;
        let about = Received {
            connection,
            nth_on_connection: nth,
            arrived: desk.log.now(),
            ..Received::default()
        };
        let mut exchange = Exchange {
            desk,
            peer: &mut peer,
            chunked: true,
            last: false,
        };
        match exchange.run(about).await {
            Ok(After::Next) => {}
            Ok(After::Over) | Err(Gone) => return,
        }
    }
}

/// What a connection is good for after an exchange.
enum After {
    Next,
    Over,
}

/// One request and its answer.
struct Exchange<'e> {
    desk: &'e Desk,
    peer: &'e mut Peer,
    chunked: bool,
    /// The connection ends after this answer.
    last: bool,
}

impl Exchange<'_> {
    async fn run(&mut self, about: Received) -> Result<After, Gone> {
        let head = match timeout(MAX_ARRIVAL, head::read(self.peer)).await {
            Ok(Ok(head)) => head,
            Ok(Err(head::HeadError::Gone)) | Err(_) => {
                let number = self.desk.log.arrived(about);
                self.desk.log.ended(number, End::ClientLeft);
                return Ok(After::Over);
            }
            Ok(Err(head::HeadError::Wrong(why))) => {
                self.reply(400, "text/plain", why).await?;
                self.peer.fin().await;
                return Ok(After::Over);
            }
        };
        if head.path == LOG_PATH && (head.method == "GET" || head.method == "DELETE") {
            return self.about_the_log(&head).await;
        }
        let number = self.desk.log.arrived(Received {
            method: head.method.clone(),
            path: head.path.clone(),
            headers: head.headers.clone(),
            ..about
        });
        self.last = head.wants_close();
        let script = match timeout(MAX_ARRIVAL, self.script(number, &head)).await {
            Ok(Ok(script)) => script,
            Ok(Err(Gone)) | Err(_) => {
                self.desk.log.ended(number, End::ClientLeft);
                return Ok(After::Over);
            }
        };
        let desk = self.desk;
        let end = match script {
            Some(script) => {
                let end = desk.play(number, &script, self).await;
                if end == End::Clean && script.fin_when_idle {
                    self.peer.pause(IDLE_BEFORE_FIN).await?;
                    self.peer.fin().await;
                    return Ok(After::Over);
                }
                end
            }
            None => {
                desk.play(number, &speech::no_script(Protocol::of(&head.path)), self)
                    .await
            }
        };
        if end == End::Clean && self.last {
            self.peer.fin().await;
        }
        match end == End::Clean && !self.last {
            true => Ok(After::Next),
            false => Ok(After::Over),
        }
    }

    /// Reads the body and chooses the script: half the body may be enough.
    async fn script(&mut self, number: u64, head: &Head) -> Result<Option<Arc<Script>>, Gone> {
        if head.expects_continue() {
            self.peer.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if let Some(length) = head.length {
            while self.peer.inbox.len() < (length / 2).min(64 << 10) {
                self.peer.more().await?;
            }
            let early = Asked {
                path: &head.path,
                headers: &head.headers,
                body: self
                    .peer
                    .inbox
                    .get(..length.min(self.peer.inbox.len()))
                    .unwrap_or_default(),
                complete: false,
            };
            if let Some(script) = self.desk.choose(number, early) {
                if script.connect != Some(ConnectFault::OnReuseResetWhileReadingBody) {
                    let body = head::read_body(self.peer, head).await?;
                    self.desk.log.body(number, body, true);
                }
                return Ok(Some(script));
            }
        }
        let body = head::read_body(self.peer, head).await?;
        self.desk.log.body(number, body.clone(), true);
        let asked = Asked {
            path: &head.path,
            headers: &head.headers,
            body: &body,
            complete: true,
        };
        Ok(self.desk.choose(number, asked))
    }

    async fn about_the_log(&mut self, head: &Head) -> Result<After, Gone> {
        head::read_body(self.peer, head).await?;
        if head.method == "DELETE" {
            self.desk.log.clear();
            self.desk.choose.start_again();
            self.reply(204, "text/plain", "").await?;
        } else {
            let account = serde_json::to_string(&self.desk.log.account()).unwrap_or_default();
            self.reply(200, "application/json", &account).await?;
        }
        match head.wants_close() {
            true => Ok(After::Over),
            false => Ok(After::Next),
        }
    }

    /// An answer of our own.
    async fn reply(&mut self, status: u16, content_type: &str, text: &str) -> Result<(), Gone> {
        let length = match status {
            204 => String::new(),
            _ => format!("content-length: {}\r\n", text.len()),
        };
        let reply = format!(
            "HTTP/1.1 {status} Simulator\r\ncontent-type: {content_type}\r\n{length}\r\n{text}"
        );
        self.peer.write(reply.as_bytes()).await
    }
}

impl Answer for Exchange<'_> {
    async fn head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), Gone> {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in headers {
            match name.as_str() {
                "content-length" => self.chunked = false,
                "connection" if value.eq_ignore_ascii_case("close") => self.last = true,
                _ => {}
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        self.peer.write(head.as_bytes()).await
    }

    async fn write(&mut self, length: u64) -> Result<(), Gone> {
        match self.chunked {
            true => self.peer.write(format!("{length:x}\r\n").as_bytes()).await,
            false => Ok(()),
        }
    }

    async fn more(&mut self, bytes: &Bytes) -> Result<(), Gone> {
        self.peer.write(bytes).await
    }

    async fn written(&mut self) -> Result<(), Gone> {
        match self.chunked {
            true => self.peer.write(b"\r\n").await,
            false => Ok(()),
        }
    }

    async fn pause(&mut self, length: Duration) -> Result<(), Gone> {
        self.peer.pause(length).await
    }

    async fn close(&mut self, close: Close) -> Result<End, Gone> {
        match close {
            Close::Clean => {
                if self.chunked {
                    self.peer.write(b"0\r\n\r\n").await?;
                }
                Ok(End::Clean)
            }
            Close::TruncatedChunked => {
                self.peer.write(b"40\r\n: cu").await?;
                self.peer.fin().await;
                Ok(End::Fin)
            }
            Close::Fin | Close::TruncatedChunkedAtBoundary => {
                self.peer.fin().await;
                Ok(End::Fin)
            }
            Close::Reset => {
                self.peer.reset().await?;
                Ok(End::Reset)
            }
            Close::Never => {
                self.peer.until_gone().await;
                Err(Gone)
            }
        }
    }
}

/// Takes `length` bytes that must have come.
fn take(peer: &mut Peer, length: usize) -> Bytes {
    let length = length.min(peer.inbox.len());
    peer.inbox.split_to(length).freeze()
}

/// Drops `length` bytes.
fn skip(peer: &mut Peer, length: usize) {
    let length = length.min(peer.inbox.len());
    peer.inbox.advance(length);
}

/// Bodies above this are refused.
const MAX_BODY: usize = MAX_REQUEST;
