//! A slow way to the provider: a proxy that takes its time before it opens a tunnel, which is time between
//! a grant and its send, and before it carries bytes on, which is time between a send and its arrival.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// How long something takes, each time it is asked.
pub type Takes = Box<dyn FnMut() -> Duration + Send>;

pub struct Way {
    pub address: SocketAddr,
}

impl Way {
    /// Serves until the runtime ends.
    pub async fn start(opening: Takes, carrying: Takes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let takes = Arc::new(Mutex::new((opening, carrying)));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(tunnel(stream, Arc::clone(&takes)));
            }
        });
        Self { address }
    }
}

async fn tunnel(mut client: TcpStream, takes: Arc<Mutex<(Takes, Takes)>>) -> Option<()> {
    client.set_nodelay(true).ok()?;
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        asked.push(client.read_u8().await.ok()?);
    }
    let asked = String::from_utf8(asked).ok()?;
    let whither = asked.split(' ').nth(1)?;
    let opening = (takes.lock().unwrap().0)();
    sleep(opening).await;
    let provider = TcpStream::connect(whither).await.ok()?;
    provider.set_nodelay(true).ok()?;
    client.write_all(b"HTTP/1.1 200 Open\r\n\r\n").await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_provider, mut to_provider) = provider.into_split();
    let there = async {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let count = match from_client.read(&mut bytes).await {
                Ok(count) if count > 0 => count,
                _ => break,
            };
            let carrying = (takes.lock().unwrap().1)();
            sleep(carrying).await;
            if to_provider.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    };
    let back = async {
        let _ = copy(&mut from_provider, &mut to_client).await;
    };
    // Who leaves at one end has left at the other.
    tokio::select! {
        () = there => {}
        () = back => {}
    }
    Some(())
}
