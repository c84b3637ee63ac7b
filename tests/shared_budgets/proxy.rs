//! A way to a server that can lose answers.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// A way on threads of its own; they end with the connections.
pub struct Proxy {
    pub port: u16,
    lost: Arc<AtomicUsize>,
}

impl Proxy {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let lost = Arc::new(AtomicUsize::new(0));
        let losing = Arc::clone(&lost);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server)))
                else {
                    return;
                };
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let losing = Arc::clone(&losing);
                thread::spawn(move || carry(client, server, || false));
                thread::spawn(move || carry(back.0, back.1, || loses(&losing)));
            }
        });
        Self { port, lost }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The next answer is lost, and the connection with it.
    pub fn lose_one(&self) {
        self.lost.store(1, Ordering::SeqCst);
    }
}

fn loses(lost: &AtomicUsize) -> bool {
    lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    })
    .is_ok()
}

fn carry(mut from: TcpStream, mut to: TcpStream, loses: impl Fn() -> bool) {
    let mut buffer = [0; 16_384];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if loses() || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
