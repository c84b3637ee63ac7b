//! A script, played.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    choose::{Asked, Choose, Chosen},
    log::{End, Log},
    script::{Close, ConnectFault, Fill, MAX_TIME, Op, Script},
};

/// After a scripted chunk, so that the client sees the next one as a read of its own.
const BETWEEN_CHUNKS: Duration = Duration::from_millis(4);

/// Before a reset, so that the client reads what was written: a reset overtakes it.
pub(super) const BEFORE_RESET: Duration = Duration::from_millis(60);

/// How much of a fill is written at a time, in bytes.
const SLICE: usize = 256 << 10;

/// The client has closed the connection, or reset the stream.
#[derive(Debug)]
pub(super) struct Gone;

/// What one request is answered through.
pub(super) trait Answer {
    /// Sends the head.
    async fn head(&mut self, status: u16, headers: &[(String, String)]) -> Result<(), Gone>;
    /// Announces a write of so many bytes, which `more` then sends.
    async fn write(&mut self, length: u64) -> Result<(), Gone>;
    /// Bytes of a write.
    async fn more(&mut self, bytes: &Bytes) -> Result<(), Gone>;
    /// The write is complete.
    async fn written(&mut self) -> Result<(), Gone>;
    /// Waits, watching the client.
    async fn pause(&mut self, length: Duration) -> Result<(), Gone>;
    /// Ends the answer, or the connection before one.
    async fn close(&mut self, close: Close) -> Result<End, Gone>;
}

/// What all connections share.
pub(super) struct Desk {
    pub(super) choose: Box<dyn Choose>,
    pub(super) log: Log,
}

impl Desk {
    /// The script for request `number`; it is noted there.
    pub(super) fn choose(&self, number: u64, asked: Asked<'_>) -> Option<Arc<Script>> {
        let Chosen {
            script,
            name,
            place,
        } = self.choose.choose(asked)?;
        self.log.note(number, |request| {
            request.script = Some(name);
            request.place = Some(place);
        });
        Some(script)
    }

    /// Plays `script` as the answer to request `number`; how that ended.
    pub(super) async fn play(&self, number: u64, script: &Script, answer: &mut impl Answer) -> End {
        let mut playing = Playing {
            desk: self,
            number,
            answer,
        };
        let end = match tokio::time::timeout(MAX_TIME, playing.script(script)).await {
            Ok(Ok(end)) => end,
            Ok(Err(Gone)) => End::ClientLeft,
            Err(_) => End::TimeUp,
        };
        self.log.ended(number, end);
        end
    }

    /// The headers of `script` as they are served now.
    pub(super) fn headers<'h>(
        &self,
        headers: impl IntoIterator<Item = (&'h String, &'h String)>,
    ) -> Vec<(String, String)> {
        let headers = headers.into_iter();
        headers
            .map(|(name, value)| (name.clone(), self.dated(value)))
            .collect()
    }

    /// Notes that the head went out.
    pub(super) fn head_sent(&self, number: u64, status: u16, headers: Vec<(String, String)>) {
        let now = self.log.now();
        self.log.note(number, |request| {
            request.head = Some(now);
            request.status = Some(status);
            request.served = headers;
        });
    }

    /// Notes that bytes of the body went out.
    pub(super) fn body_sent(&self, number: u64, bytes: usize) {
        self.log
            .note(number, |request| request.bytes_sent += bytes as u64);
    }

    /// Fills `{{http_date:now+2s}}` in.
    fn dated(&self, value: &str) -> String {
        let filled = || {
            let (before, rest) = value.split_once("{{http_date:now+")?;
            let (seconds, after) = rest.split_once("s}}")?;
            let ahead = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
            let date = self.log.wall_now() + ahead.min(MAX_TIME);
            Some(format!("{before}{}{after}", httpdate::fmt_http_date(date)))
        };
        filled().unwrap_or_else(|| value.to_owned())
    }
}

struct Playing<'d, A> {
    desk: &'d Desk,
    number: u64,
    answer: &'d mut A,
}

impl<A: Answer> Playing<'_, A> {
    async fn script(&mut self, script: &Script) -> Result<End, Gone> {
        if let Some(fault) = script.connect {
            return self.answer.close(instead(fault)).await;
        }
        let headers = self.desk.headers(&script.headers);
        self.answer.head(script.status, &headers).await?;
        self.desk.head_sent(self.number, script.status, headers);
        for op in &script.body {
            match op {
                Op::Write(bytes) => {
                    self.write(bytes).await?;
                    self.answer.pause(BETWEEN_CHUNKS).await?;
                }
                Op::Pause(length) => self.answer.pause(*length).await?,
                Op::Repeat {
                    bytes,
                    every,
                    times,
                } => self.repeat(bytes, *every, *times).await?,
                Op::Fill(fill) => self.fill(fill).await?,
                Op::Close(close) => return self.answer.close(*close).await,
            }
        }
        self.answer.close(Close::Clean).await
    }

    async fn write(&mut self, bytes: &Bytes) -> Result<(), Gone> {
        // An empty chunk would be the last one.
        if bytes.is_empty() {
            return Ok(());
        }
        self.answer.write(bytes.len() as u64).await?;
        self.answer.more(bytes).await?;
        self.answer.written().await?;
        self.desk.body_sent(self.number, bytes.len());
        Ok(())
    }

    /// Writes stand on a grid, so that a late one does not delay all others.
    async fn repeat(&mut self, bytes: &Bytes, every: Duration, times: u64) -> Result<(), Gone> {
        let mut due = self.desk.log.now();
        for turn in 0..times {
            self.write(bytes).await?;
            if !every.is_zero() {
                due += every;
                let left = due.saturating_sub(self.desk.log.now());
                self.answer.pause(left).await?;
            } else if turn % 64 == 63 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    async fn fill(&mut self, fill: &Fill) -> Result<(), Gone> {
        self.answer.write(fill.len()).await?;
        self.answer.more(&fill.before).await?;
        let at_once = (SLICE / fill.byte.len()).max(1);
        let slice = Bytes::from(fill.byte.repeat(at_once));
        let mut left = usize::try_from(fill.count).unwrap_or(usize::MAX);
        while left > 0 {
            let now = left.min(at_once);
            self.answer
                .more(&slice.slice(..now * fill.byte.len()))
                .await?;
            self.desk.body_sent(self.number, now * fill.byte.len());
            left -= now;
        }
        self.answer.more(&fill.after).await?;
        self.answer.written().await
    }
}

/// What a fault of the connection comes to once the request is there.
fn instead(fault: ConnectFault) -> Close {
    match fault {
        ConnectFault::AcceptThenResetBeforeHeaders | ConnectFault::OnReuseResetWhileReadingBody => {
            Close::Reset
        }
        ConnectFault::OnReuseCloseAfterReadingRequest => Close::Fin,
        ConnectFault::AcceptReadRequestNeverReply => Close::Never,
        // Not for a request that has come: a playlist has none of these.
        ConnectFault::Refused
        | ConnectFault::DnsTemporaryFailure
        | ConnectFault::TlsUntrustedCertificate
        | ConnectFault::FinWhileIdleInPool => Close::Fin,
    }
}
