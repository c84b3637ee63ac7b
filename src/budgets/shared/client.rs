//! The connection to the engine: one, shared by all callers, made again when it breaks.
//!
//! A call never waits longer than the time-out, whether for the connection or for its answer. Nothing is
//! repeated below: a call that got no answer is the caller's to repeat.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::{ErrorKind, Value};
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

use super::{
    Inner, Lost, Refused,
    call::{Call, Script},
    door::{Door, Wire},
    keys::Keys,
    ledger::Known,
    server::Server,
    told::Told,
};

/// Pauses between connections that fail double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// One connection.
pub(super) struct Connection {
    number: u64,
    wire: Wire,
    digest: String,
    pub(super) server: Server,
}

/// Whether there is a connection.
#[derive(Clone)]
enum State {
    Up(Arc<Connection>),
    Down(Lost),
}

/// The connection that there is now.
pub(super) struct Link {
    state: watch::Sender<State>,
    /// The last connection that broke, and why.
    broken: Mutex<Option<(u64, Lost)>>,
    breaks: Notify,
}

/// A new connection, with the script loaded.
async fn open(door: &Door, number: u64, inner: &Inner) -> Result<Connection, Lost> {
    let (wire, server, digest) = door.open(&inner.keys, &inner.options.script).await?;
    if let Some(old) = server.too_old() {
        return Err(Lost::Refused(Refused::Other(old)));
    }
    Ok(Connection {
        number,
        wire,
        digest,
        server,
    })
}

impl Connection {
    /// The script's answer to `call`.
    pub(super) async fn ask(
        &self,
        call: &Call,
        keys: &Keys,
        told: &Told,
        life: u64,
        script: &str,
        known: &Known,
    ) -> Result<Value, Lost> {
        let mut wire = self.wire.clone();
        let command = |script| call.command(script, keys, told, life, &self.server.run, known);
        let mut answer = wire.send(&command(Script::Known(&self.digest))).await;
        if let Err(error) = &answer
            && error.kind() == ErrorKind::NoScriptError
        {
            answer = wire.send(&command(Script::Whole(script))).await;
        }
        answer.map_err(|error| Lost::from(&error))
    }
}

impl Link {
    pub(super) fn new() -> Self {
        let down = State::Down(Lost::Disconnected("not connected yet".into()));
        Self {
            state: watch::Sender::new(down),
            broken: Mutex::default(),
            breaks: Notify::new(),
        }
    }

    /// The connection, waited for until whoever calls has enough; at once why there is none, where waiting
    /// does not help.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Lost> {
        let mut states = self.state.subscribe();
        loop {
            match &*states.borrow_and_update() {
                State::Up(connection) => return Ok(Arc::clone(connection)),
                State::Down(refused @ Lost::Refused(_)) => return Err(refused.clone()),
                State::Down(_) => {}
            }
            if states.changed().await.is_err() {
                return Err(Lost::Disconnected("it was let go".into()));
            }
        }
    }

    /// Why there is no connection; `None` where there is one.
    pub(super) fn down(&self) -> Option<Lost> {
        match &*self.state.borrow() {
            State::Up(_) => None,
            State::Down(lost) => Some(lost.clone()),
        }
    }

    /// The server at the other end.
    pub(super) fn server(&self) -> Option<Server> {
        match &*self.state.borrow() {
            State::Up(connection) => Some(connection.server.clone()),
            State::Down(_) => None,
        }
    }

    pub(super) fn watch(&self) -> Watch {
        let mut states = self.state.subscribe();
        let is_up = matches!(&*states.borrow(), State::Up(_));
        if is_up {
            states.mark_changed();
        }
        Watch { states }
    }

    /// This connection is of no use any more.
    pub(super) fn is_broken(&self, connection: &Connection, why: &Lost) {
        let number = connection.number;
        let why = match why {
            Lost::Timeout | Lost::Disconnected(_) => why.clone(),
            // Waiting for another one helps.
            other => Lost::Disconnected(other.to_string()),
        };
        {
            let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
            if broken.as_ref().is_none_or(|(last, _)| *last < number) {
                *broken = Some((number, why));
            }
        }
        self.breaks.notify_one();
    }

    /// Why a connection is of no use any more, if it is not.
    fn broke(&self, number: u64) -> Option<Lost> {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, why) = broken.as_ref().filter(|(last, _)| *last >= number)?;
        Some(why.clone())
    }

    /// The engine is to be greeted again: it does not know what it should.
    pub(super) fn greet_again(&self) {
        self.breaks.notify_one();
    }
}

/// Waits for changes of the connection.
pub struct Watch {
    states: watch::Receiver<State>,
}

/// The connection, as it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linked {
    /// There is a new one.
    To(Server),
    /// There is none, and why.
    Down(Lost),
}

impl Watch {
    /// The next change, or the connection that there is; only the last of several. `None` once the domain is let go.
    pub async fn changed(&mut self) -> Option<Linked> {
        self.states.changed().await.ok()?;
        Some(match &*self.states.borrow_and_update() {
            State::Up(connection) => Linked::To(connection.server.clone()),
            State::Down(lost) => Linked::Down(lost.clone()),
        })
    }
}

/// Connects, greets, waits until the connection breaks, and again; for as long as it is polled.
pub(super) async fn keep(inner: Arc<Inner>, door: Door) {
    let link = &inner.link;
    let mut pause = FIRST_PAUSE;
    for number in 1.. {
        let opened = match open(&door, number, &inner).await {
            Ok(connection) => inner.greet(&connection).await.map(|()| connection),
            Err(lost) => Err(lost),
        };
        let lost = match opened {
            Ok(connection) => {
                pause = FIRST_PAUSE;
                serve(&inner, connection).await
            }
            Err(lost) => lost,
        };
        link.state.send_replace(State::Down(lost));
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(LAST_PAUSE);
    }
}

/// Hands out `connection` until it breaks; why it did.
async fn serve(inner: &Inner, connection: Connection) -> Lost {
    let link = &inner.link;
    let connection = Arc::new(connection);
    link.state.send_replace(State::Up(Arc::clone(&connection)));
    loop {
        link.breaks.notified().await;
        if let Some(why) = link.broke(connection.number) {
            return why;
        }
        if let Err(lost) = inner.greet(&connection).await {
            return lost;
        }
    }
}

/// Half of `pause`, and up to half more: pods must not all come back at once.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    // The low bits of an id are random.
    let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
    let share = (random & 0xffff) as f64 / 65_536.0;
    half + half.mul_f64(share)
}
