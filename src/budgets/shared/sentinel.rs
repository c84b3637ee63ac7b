//! Sentinels: which server is the primary.
//!
//! They are asked in turn, on each new connection; whoever does not help is asked last the next time. What one
//! says may be old, so that the server is asked, too, before it is used.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind,
    RedisConnectionInfo, RedisError, Value, aio::ConnectionLike, from_redis_value,
};
use tokio::time::timeout;

use super::{Lost, Refused};

/// The Sentinels of one primary.
pub(super) struct Sentinels {
    clients: Vec<Asked>,
    master: String,
    /// Whom to ask first.
    first: AtomicUsize,
}

/// A Sentinel: with the user of the server, and without, since it may have none of its own.
struct Asked {
    as_user: Client,
    as_nobody: Client,
}

impl Sentinels {
    /// `client` makes one of where it is and who asks.
    pub(super) fn new(
        infos: Vec<ConnectionInfo>,
        master: &str,
        client: impl Fn(ConnectionInfo) -> Result<Client, RedisError>,
    ) -> Result<Self, RedisError> {
        let asked = |info: ConnectionInfo| {
            let as_nobody = ConnectionInfo {
                addr: info.addr.clone(),
                redis: RedisConnectionInfo::default(),
            };
            // Sentinels have no databases.
            let redis = RedisConnectionInfo {
                db: 0,
                ..info.redis
            };
            Ok(Asked {
                as_user: client(ConnectionInfo { redis, ..info })?,
                as_nobody: client(as_nobody)?,
            })
        };
        Ok(Self {
            clients: infos
                .into_iter()
                .map(asked)
                .collect::<Result<_, RedisError>>()?,
            master: master.to_owned(),
            first: AtomicUsize::new(0),
        })
    }

    /// Where the primary is, by the first that says so; each has so long.
    pub(super) async fn primary(&self, each: Duration) -> Result<(String, u16), Lost> {
        let mut lost = Lost::Disconnected("there is no Sentinel".into());
        for _ in 0..self.clients.len() {
            let first = self.first.load(Ordering::Relaxed) % self.clients.len();
            let Some(sentinel) = self.clients.get(first) else {
                break;
            };
            match timeout(each, sentinel.primary(&self.master, each)).await {
                Ok(Ok(Some(place))) => return Ok(place),
                Ok(Ok(None)) => {
                    let master = &self.master;
                    let unknown = format!("its Sentinels know no primary `{master}`");
                    lost = Lost::Refused(Refused::Other(unknown));
                }
                Ok(Err(error)) => lost = Lost::from(&error),
                Err(_) => lost = Lost::Timeout,
            }
            self.next();
        }
        Err(lost)
    }

    /// What it said was of no use: another is asked first.
    pub(super) fn next(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }
}

impl Asked {
    async fn primary(
        &self,
        master: &str,
        within: Duration,
    ) -> Result<Option<(String, u16)>, RedisError> {
        match place(&self.as_user, master, within).await {
            Err(error) if error.kind() == ErrorKind::AuthenticationFailed => {
                place(&self.as_nobody, master, within).await
            }
            answer => answer,
        }
    }
}

async fn place(
    client: &Client,
    master: &str,
    within: Duration,
) -> Result<Option<(String, u16)>, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(within)
        .set_response_timeout(within);
    let mut connection = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    let answer = connection.req_packed_command(&question(master)).await?;
    match answer.extract_error()? {
        Value::Nil => Ok(None),
        named => from_redis_value(&named).map(Some),
    }
}

fn question(master: &str) -> Cmd {
    let mut question = redis::cmd("SENTINEL");
    question.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    question
}

/// The server there, spoken with as Sentinels are: with TLS if they are.
pub(super) fn server(like: &ConnectionAddr, (host, port): (String, u16)) -> ConnectionAddr {
    match like {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(host, port),
    }
}
