//! Where the engine is, and how one gets there: one server, a cluster, or whichever server is the primary.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisError, RedisResult, TlsCertificates, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
};
use secrecy::ExposeSecret;
use tokio::time::timeout;

use super::{
    BadOptions, Lost, Options,
    keys::Keys,
    sentinel::{self, Sentinels},
    server::Server,
};
use crate::config::EnginePlace;

/// How to get connections.
pub(super) struct Door {
    place: Place,
    timeout: Duration,
    connect_timeout: Duration,
}

enum Place {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
    Sentinel(Box<Primary>),
}

/// Whichever server is the primary.
struct Primary {
    sentinels: Sentinels,
    /// As Sentinels are spoken with, so is it.
    like: ConnectionInfo,
    certificates: Option<TlsCertificates>,
}

/// A connection.
#[derive(Clone)]
pub(super) enum Wire {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Door {
    pub(super) fn new(options: &Options) -> Result<Self, BadOptions> {
        let refused = |error: RedisError| BadOptions::Url(error.to_string());
        let urls = match &options.place {
            EnginePlace::One(url) => std::slice::from_ref(url),
            EnginePlace::Cluster(urls) | EnginePlace::Sentinel { urls, .. } => urls,
        };
        let infos = urls.iter().map(|url| info(url, options));
        let infos = infos.collect::<RedisResult<Vec<_>>>().map_err(refused)?;
        let first = infos.first().cloned().ok_or(BadOptions::NoUrl)?;
        let tls = matches!(first.addr, ConnectionAddr::TcpTls { .. });
        let certificates = options.authority.clone().filter(|_| tls);
        let certificates = certificates.map(|authority| TlsCertificates {
            client_tls: None,
            root_cert: Some(authority),
        });
        let place = match &options.place {
            EnginePlace::One(_) => client(first, certificates.as_ref())
                .map(Box::new)
                .map(Place::One),
            EnginePlace::Cluster(_) => {
                let builder = cluster(infos, options);
                let builder = match certificates {
                    Some(certificates) => builder.certs(certificates),
                    None => builder,
                };
                builder.build().map(Box::new).map(Place::Cluster)
            }
            EnginePlace::Sentinel { master, .. } => {
                let asked = |info| client(info, certificates.as_ref());
                Sentinels::new(infos, master, asked).map(|sentinels| {
                    Place::Sentinel(Box::new(Primary {
                        sentinels,
                        like: first,
                        certificates,
                    }))
                })
            }
        };
        Ok(Self {
            place: place.map_err(refused)?,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
        })
    }

    /// A new connection, the server at its other end, and the name under which it knows the script.
    pub(super) async fn open(
        &self,
        keys: &Keys,
        script: &str,
    ) -> Result<(Wire, Server, String), Lost> {
        match &self.place {
            Place::One(client) => self.in_time(self.at_server(client, script)).await,
            Place::Cluster(client) => self.in_time(at_cluster(client, keys, script)).await,
            Place::Sentinel(primary) => {
                let sentinels = &primary.sentinels;
                let place = sentinels.primary(self.connect_timeout).await?;
                let client = primary.client(place).map_err(|error| Lost::from(&error))?;
                let opened = self.in_time(self.at_server(&client, script)).await;
                let opened = opened.and_then(|opened| {
                    let is_primary = opened.1.is_primary;
                    let old = || Lost::NotReady("its Sentinels name one that is no primary".into());
                    is_primary.then_some(opened).ok_or_else(old)
                });
                if opened.is_err() {
                    sentinels.next();
                }
                opened
            }
        }
    }

    async fn in_time<T>(&self, opening: impl Future<Output = RedisResult<T>>) -> Result<T, Lost> {
        let opened = timeout(self.connect_timeout, opening).await;
        opened
            .map_err(|_| Lost::Timeout)?
            .map_err(|error| Lost::from(&error))
    }

    async fn at_server(
        &self,
        client: &Client,
        script: &str,
    ) -> RedisResult<(Wire, Server, String)> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(self.connect_timeout)
            .set_response_timeout(self.timeout);
        let made = client.get_multiplexed_async_connection_with_config(&config);
        let mut wire = Wire::One(made.await?);
        let server = Server::read(&wire.text(info_of("everything")).await?);
        let digest = wire.text(load(script)).await?;
        Ok((wire, server, digest))
    }
}

async fn at_cluster(
    client: &ClusterClient,
    Keys([key, ..]): &Keys,
    script: &str,
) -> RedisResult<(Wire, Server, String)> {
    let mut wire = Wire::Cluster(client.get_async_connection().await?);
    // What goes by the key is answered by the node that has the domain.
    let info = "return redis.call('INFO', 'everything')";
    let info = redis::cmd("EVAL").arg(info).arg(1).arg(key).to_owned();
    let server = Server::read(&wire.text(info).await?);
    let digest = wire.text(load(script)).await?;
    // Another may have it by the next call: the script asks whom it runs in.
    let run = "-".into();
    Ok((wire, Server { run, ..server }, digest))
}

impl Primary {
    fn client(&self, place: (String, u16)) -> RedisResult<Client> {
        let info = ConnectionInfo {
            addr: sentinel::server(&self.like.addr, place),
            redis: self.like.redis.clone(),
        };
        client(info, self.certificates.as_ref())
    }
}

fn client(info: ConnectionInfo, certificates: Option<&TlsCertificates>) -> RedisResult<Client> {
    match certificates {
        Some(certificates) => Client::build_with_tls(info, certificates.clone()),
        None => Client::open(info),
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
    pub(super) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
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
