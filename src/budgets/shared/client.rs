//! The connection to the engine: one, shared by all callers, made again when it breaks.
//!
//! A call never waits longer than the time-out, whether for the connection or for its answer. Nothing is
//! repeated below: a call that got no answer is the caller's to repeat.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    IntoConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
};
use secrecy::ExposeSecret;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use super::{
    BadOptions, Inner, Lost, Options, Refused,
    call::{Call, Script},
    keys::Keys,
    ledger::Known,
    server::Server,
    told::Told,
};

/// Pauses between connections that fail double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// How to get connections.
pub(super) struct Door {
    place: Place,
    timeout: Duration,
    connect_timeout: Duration,
}

enum Place {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
}

#[derive(Clone)]
enum Wire {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

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
    /// The last connection that broke.
    broken: AtomicU64,
    breaks: Notify,
}

impl Door {
    pub(super) fn new(options: &Options) -> Result<Self, BadOptions> {
        let refused = |error: RedisError| BadOptions::Url(error.to_string());
        let infos = options.urls.iter().map(|url| info(url, options));
        let infos = infos.collect::<RedisResult<Vec<_>>>().map_err(refused)?;
        let first = infos.first().cloned().ok_or(BadOptions::NoUrl)?;
        let tls = matches!(first.addr, ConnectionAddr::TcpTls { .. });
        let certificates = options.authority.clone().filter(|_| tls);
        let certificates = certificates.map(|authority| TlsCertificates {
            client_tls: None,
            root_cert: Some(authority),
        });
        let place = if options.cluster {
            let builder = cluster(infos, options);
            let builder = match certificates {
                Some(certificates) => builder.certs(certificates),
                None => builder,
            };
            builder.build().map(Box::new).map(Place::Cluster)
        } else if infos.len() > 1 {
            return Err(BadOptions::ManyUrls);
        } else {
            let client = match certificates {
                Some(certificates) => Client::build_with_tls(first, certificates),
                None => Client::open(first),
            };
            client.map(Box::new).map(Place::One)
        };
        Ok(Self {
            place: place.map_err(refused)?,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
        })
    }

    /// A new connection, with the script loaded.
    async fn open(&self, number: u64, script: &str) -> Result<Connection, Lost> {
        let opening = async {
            let mut wire = self.wire().await?;
            let server = match &wire {
                Wire::One(_) => Server::read(&wire.text(info_of("everything")).await?),
                // Calls go to the node that has the domain: the script asks that one.
                Wire::Cluster(_) => Server::unknown(),
            };
            let digest = wire.text(load(script)).await?;
            Ok::<_, RedisError>((wire, server, digest))
        };
        let opened = timeout(self.connect_timeout, opening).await;
        let (wire, server, digest) = opened
            .map_err(|_| Lost::Timeout)?
            .map_err(|error| Lost::from(&error))?;
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

    async fn wire(&self) -> RedisResult<Wire> {
        match &self.place {
            Place::One(client) => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(self.connect_timeout)
                    .set_response_timeout(self.timeout);
                let made = client.get_multiplexed_async_connection_with_config(&config);
                made.await.map(Wire::One)
            }
            Place::Cluster(client) => client.get_async_connection().await.map(Wire::Cluster),
        }
    }
}

fn info(url: &str, options: &Options) -> RedisResult<ConnectionInfo> {
    let mut info = url.into_connection_info()?;
    if let Some(username) = &options.username {
        info.redis.username = Some(username.clone());
    }
    if let Some(password) = &options.password {
        info.redis.password = Some(password.expose_secret().to_owned());
    }
    Ok(info)
}

fn cluster(infos: Vec<ConnectionInfo>, options: &Options) -> ClusterClientBuilder {
    // Its own retries repeat a script whose answer was lost.
    let builder = ClusterClientBuilder::new(infos)
        .retries(0)
        .connection_timeout(options.connect_timeout)
        .response_timeout(options.timeout);
    let builder = match &options.username {
        Some(username) => builder.username(username.clone()),
        None => builder,
    };
    match &options.password {
        Some(password) => builder.password(password.expose_secret().to_owned()),
        None => builder,
    }
}

fn info_of(section: &str) -> Cmd {
    redis::cmd("INFO").arg(section).to_owned()
}

fn load(script: &str) -> Cmd {
    redis::cmd("SCRIPT").arg("LOAD").arg(script).to_owned()
}

impl Wire {
    async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match self {
            Self::One(connection) => connection.req_packed_command(command).await?,
            Self::Cluster(connection) => connection.req_packed_command(command).await?,
        };
        answer.extract_error()
    }

    async fn text(&mut self, command: Cmd) -> RedisResult<String> {
        redis::from_owned_redis_value(self.send(&command).await?)
    }
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
            broken: AtomicU64::new(0),
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
    pub(super) fn is_broken(&self, connection: &Connection) {
        self.broken.fetch_max(connection.number, Ordering::Relaxed);
        self.breaks.notify_one();
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
        let opened = match door.open(number, &inner.options.script).await {
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
        if link.broken.load(Ordering::Relaxed) >= connection.number {
            return Lost::Disconnected("it broke".into());
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
