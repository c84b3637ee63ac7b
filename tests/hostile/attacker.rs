//! A client's connection in the hands of an attacker.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncWriteExt, BufReader},
    net::{
        TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time,
};

use crate::{
    frames::{
        ACK, DATA, Frame, GOAWAY, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE,
        frame, next, settings,
    },
    sidecar::PATIENCE,
};

/// How long a flood lasts at most, whatever its length.
const FLOOD: Duration = Duration::from_millis(1500);

/// A peer that takes no byte for this long has stopped reading.
const BLOCKED: Duration = Duration::from_millis(500);

/// Frames that go out together.
const BATCH_BYTES: usize = 64 << 10;

/// The PING behind everything: who answers it has dealt with all before it.
const LAST: [u8; 8] = *b"the last";

pub struct Attacker {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

/// What came back.
#[derive(Debug, Default, PartialEq)]
pub struct Seen {
    /// The code of the GOAWAY.
    pub go_away: Option<u32>,
    /// The sidecar ended the connection.
    pub closed: bool,
    /// How many streams were reset with which code.
    pub resets: BTreeMap<u32, usize>,
    /// Response heads and trailers.
    pub heads: usize,
    /// Answers to PING and SETTINGS.
    pub acks: usize,
    /// Bytes of response bodies.
    pub data: usize,
}

impl Attacker {
    /// With everything that a client says first.
    pub async fn connect(address: SocketAddr, values: &[(u16, u32)]) -> Attacker {
        let attacker = Self::silent(address).await;
        attacker.say(&[PREFACE, &settings(values)].concat()).await
    }

    /// Without a word.
    pub async fn silent(address: SocketAddr) -> Attacker {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    /// Which lets as little as possible lie between itself and the sidecar.
    pub async fn deaf(address: SocketAddr) -> Attacker {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4 << 10).unwrap();
        let attacker = Self::over(socket.connect(address).await.unwrap());
        attacker.say(&[PREFACE, &settings(&[])].concat()).await
    }

    fn over(stream: TcpStream) -> Attacker {
        let (read, write) = stream.into_split();
        Attacker {
            read: BufReader::new(read),
            write,
        }
    }

    pub async fn say(mut self, bytes: &[u8]) -> Attacker {
        self.write.write_all(bytes).await.unwrap();
        self
    }

    /// Sends all of `frames`, reading what comes meanwhile, until the sidecar has ended the connection
    /// or has dealt with all of it.
    pub async fn flood(&mut self, frames: impl Iterator<Item = Vec<u8>>) -> Seen {
        let Attacker { read, write } = self;
        let mut seen = Seen::default();
        let send = async {
            // Fails where the sidecar ends the connection first.
            let _ = pour(write, frames).await;
            let _ = write.write_all(&frame(PING, 0, 0, &LAST)).await;
        };
        let receive = seen.read(read, |_, frame| frame.payload == LAST);
        let both = async { tokio::join!(send, receive) };
        time::timeout(PATIENCE, both).await.expect("no end");
        seen
    }

    /// The same without reading, until the sidecar takes no more.
    pub async fn flood_unread(&mut self, frames: impl Iterator<Item = Vec<u8>>) {
        let _ = pour(&mut self.write, frames).await;
    }

    /// Reads on until there are as many response heads.
    pub async fn until_heads(&mut self, seen: &mut Seen, heads: usize) {
        if seen.heads < heads {
            let all = seen.read(&mut self.read, |seen, _| seen.heads == heads);
            time::timeout(PATIENCE, all).await.expect("too few heads");
        }
    }

    /// What comes until the sidecar ends the connection.
    pub async fn until_closed(&mut self) -> Seen {
        let mut seen = Seen::default();
        let all = seen.read(&mut self.read, |_, _| false);
        time::timeout(PATIENCE, all).await.expect("not closed");
        seen
    }
}

/// Sends `frames` until they, the time or the peer's patience run out.
async fn pour(
    write: &mut OwnedWriteHalf,
    mut frames: impl Iterator<Item = Vec<u8>>,
) -> Result<(), ()> {
    let until = Instant::now() + FLOOD;
    let mut batch = Vec::new();
    while Instant::now() < until {
        batch.clear();
        while batch.len() < BATCH_BYTES
            && let Some(frame) = frames.next()
        {
            batch.extend(frame);
        }
        if batch.is_empty() {
            return Ok(());
        }
        let sent = time::timeout(BLOCKED, write.write_all(&batch)).await;
        sent.map_err(drop)?.map_err(drop)?;
    }
    Ok(())
}

impl Seen {
    /// Reads on to the frame that is the `last`, or to the end.
    async fn read(
        &mut self,
        read: &mut BufReader<OwnedReadHalf>,
        last: impl Fn(&Seen, &Frame) -> bool,
    ) {
        while let Some(frame) = next(read).await {
            match (frame.kind, frame.flags & ACK) {
                (GOAWAY, _) => self.go_away = Some(frame.code()),
                (RST_STREAM, _) => *self.resets.entry(frame.code()).or_default() += 1,
                (HEADERS, _) => self.heads += 1,
                (DATA, _) => self.data += frame.payload.len(),
                (PING | SETTINGS, ACK) => self.acks += 1,
                (SETTINGS | PING | WINDOW_UPDATE, _) => {}
                other => panic!("{other:?} from the sidecar"),
            }
            if last(self, &frame) {
                return;
            }
        }
        self.closed = true;
    }
}
