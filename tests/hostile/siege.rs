//! An attack on the sidecar, and what must hold meanwhile and afterwards: generations of others are
//! whole, memory and the log stay bounded, and nothing of the attack is left.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    future::Future,
    net::SocketAddr,
    pin::pin,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time,
};

use crate::{
    sidecar::{PATIENCE, Sidecar},
    support::{DONE, finish, text},
};

/// Resident memory that an attack may cost at most: several times what any of these was seen to cost.
const GROWTH_BYTES: u64 = 16 << 20;

/// Lines that one attack may add to the log, beside those of generations.
const LOG_LINES: usize = 10;

/// The words of the good provider's answer.
const WORDS: usize = 20;

/// What each generation of the good client ends with.
fn message() -> String {
    (0..WORDS).fold(String::new(), |mut message, word| {
        write!(message, "word {word} ").unwrap();
        message
    })
}

/// A provider that says [`message`] word by word, in a tenth of a second.
pub async fn good_provider() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = [0; 16 << 10];
                let _ = stream.read(&mut request).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                            connection: close\r\n\r\n";
                let words = (0..WORDS).map(|word| text(&format!("word {word} ")));
                let rest = [finish("stop"), DONE.to_owned()];
                for piece in [head.to_owned()].into_iter().chain(words).chain(rest) {
                    // Fails where the sidecar has cancelled, which it does with what an attacker asked.
                    let _ = stream.write_all(piece.as_bytes()).await;
                    time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
    });
    address
}

/// What must be as before when an attack is over. Connections to providers may stay, idle.
async fn alive(sidecar: &Sidecar) -> BTreeMap<String, i64> {
    let mut gauges = sidecar.gauges().await;
    gauges.remove("redrive_provider_connections_active");
    gauges
}

/// Runs `attack` while a good client has one generation of `route` after the other on a connection of
/// its own, two at least. What the attack returns is kept until everything else is checked.
pub async fn besieged<T>(sidecar: &Sidecar, route: &str, attack: impl Future<Output = T>) -> T {
    let base = alive(sidecar).await;
    let logged = sidecar.log().len();
    let channel = sidecar.channel().await;
    let whole = || async {
        let ended = sidecar.generate_on(&channel, route).await;
        assert_eq!(ended.message(), message());
    };
    whole().await;
    let (before, _) = sidecar.resident();

    let mut attack = pin!(attack);
    let mut outcome = None;
    while outcome.is_none() {
        let mut one = pin!(whole());
        loop {
            tokio::select! {
                done = &mut attack, if outcome.is_none() => outcome = Some(done),
                () = &mut one => break,
            }
        }
    }
    whole().await;
    drop(channel);

    let (_, most) = sidecar.resident();
    let grown = most.saturating_sub(before);
    assert!(grown < GROWTH_BYTES, "grown by {grown} bytes");
    let log = sidecar.log().split_off(logged);
    let lines: Vec<_> = log
        .lines()
        .filter(|line| !line.contains("generation ended"))
        .collect();
    assert!(
        lines.len() <= LOG_LINES,
        "{} lines, such as {}",
        lines.len(),
        lines[0]
    );
    assert!(!log.contains("panicked"), "{lines:#?}");
    let until = Instant::now() + PATIENCE;
    loop {
        let gauges = alive(sidecar).await;
        if gauges == base {
            return outcome.unwrap();
        }
        assert!(Instant::now() < until, "{gauges:#?} instead of {base:#?}");
        time::sleep(Duration::from_millis(20)).await;
    }
}
