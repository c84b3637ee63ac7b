//! A simulator, and a client that sees bytes.

use std::{io, time::Duration};

use redrive::simulator::{Library, Options, Playlist, Simulator};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Nothing here takes as long.
pub const LIMIT: Duration = Duration::from_secs(10);

/// A simulator that answers everything with `playlist`.
pub async fn playing(playlist: &str) -> Simulator {
    let mut library = Library::default();
    library.insert("it", Playlist::parse(playlist).unwrap());
    library.answer_others_with("it").unwrap();
    Simulator::start(Options::default(), library).await.unwrap()
}

/// One script with this body.
pub async fn body(ops: &str) -> Simulator {
    playing(&format!(
        r#"{{"headers": {{"content-type": "text/plain"}}, "body": {ops}}}"#
    ))
    .await
}

pub async fn connect(simulator: &Simulator) -> TcpStream {
    TcpStream::connect(simulator.address()).await.unwrap()
}

pub async fn post(stream: &mut TcpStream, body: &str) {
    let length = body.len();
    let head = format!("POST /v1/x HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    stream
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
}

/// What came, and how it ended.
#[derive(Debug)]
pub struct Seen {
    pub text: String,
    pub end: io::Result<()>,
}

/// Reads to the end, however that comes.
pub async fn to_end(stream: &mut TcpStream) -> Seen {
    let mut bytes = Vec::new();
    let end = timeout(LIMIT, stream.read_to_end(&mut bytes))
        .await
        .expect("an end");
    Seen {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        end: end.map(drop),
    }
}

/// Reads until `end` has come.
pub async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    let read = async {
        while !bytes.ends_with(end.as_bytes()) {
            bytes.push(stream.read_u8().await.unwrap());
        }
    };
    timeout(LIMIT, read)
        .await
        .expect("as much as was asked for");
    String::from_utf8(bytes).unwrap()
}

/// Everything that answers one request on a connection of its own.
pub async fn answer(simulator: &Simulator) -> Seen {
    let mut stream = connect(simulator).await;
    post(&mut stream, "{}").await;
    to_end(&mut stream).await
}

/// Returns when `simulator` has logged the end of request `number`.
pub async fn ended(simulator: &Simulator, number: u64) -> redrive::simulator::Received {
    let look = async {
        loop {
            let found = simulator
                .received()
                .into_iter()
                .find(|one| one.number == number);
            if let Some(found) = found.filter(|one| one.end.is_some()) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(LIMIT, look).await.expect("an end in the log")
}
