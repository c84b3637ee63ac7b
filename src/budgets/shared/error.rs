//! Why the engine gave no answer.

use redis::{ErrorKind, RedisError};

/// The engine gave no answer that can be acted on. What was asked may have happened all the same: asking
/// again with the same lease takes nothing twice.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Lost {
    /// No answer within the time-out, or none in time for the caller.
    #[error("no answer from the engine in time")]
    Timeout,
    /// There is no connection, or it broke.
    #[error("no connection to the engine: {0}")]
    Disconnected(String),
    /// The server says to come back: it loads, fails over or moves the domain.
    #[error("the engine is not ready: {0}")]
    NotReady(String),
    /// Somebody has to do something about it; asking again does not help.
    #[error("the engine refuses: {0}")]
    Refused(Refused),
    /// No answer of the script's.
    #[error("the engine's answer makes no sense: {0}")]
    Garbled(&'static str),
}

/// Why the server refuses.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refused {
    /// `OOM`: no memory is left for writes.
    #[error("its memory is full (raise `maxmemory`)")]
    Memory,
    /// `READONLY`: it is a replica.
    #[error("it is a read-only replica (name the primary, or its Sentinels)")]
    ReadOnly,
    /// `NOPERM`: the user may not do it.
    #[error(
        "its user lacks a permission (EVAL, EVALSHA, SCRIPT LOAD, INFO and the keys `{{redrive:*`): {0}"
    )]
    Permission(String),
    /// `NOAUTH` or `WRONGPASS`.
    #[error("it wants another user name or password")]
    Authentication,
    /// `MISCONF`: it cannot write to its disk.
    #[error("it cannot save to its disk")]
    Disk,
    /// `WRONGTYPE`: the keys hold something else.
    #[error("the domain's keys hold something else: delete them, or name another domain")]
    Keys,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Lost {
    /// Whether the same may be asked again at once.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Timeout | Self::Disconnected(_) | Self::NotReady(_)
        )
    }

    /// Whether another connection may help.
    pub(super) fn of_the_connection(&self) -> bool {
        let read_only = Self::Refused(Refused::ReadOnly);
        matches!(
            self,
            Self::Timeout | Self::Disconnected(_) | Self::Garbled(_)
        ) || *self == read_only
    }
}

impl From<&RedisError> for Lost {
    fn from(error: &RedisError) -> Self {
        let said = || error.to_string();
        if error.is_timeout() {
            return Self::Timeout;
        }
        match error.kind() {
            ErrorKind::IoError | ErrorKind::ParseError | ErrorKind::ClusterConnectionNotFound => {
                Self::Disconnected(said())
            }
            ErrorKind::BusyLoadingError
            | ErrorKind::Moved
            | ErrorKind::Ask
            | ErrorKind::TryAgain
            | ErrorKind::ClusterDown
            | ErrorKind::MasterDown
            | ErrorKind::NoScriptError => Self::NotReady(said()),
            ErrorKind::ReadOnly => Self::Refused(Refused::ReadOnly),
            ErrorKind::AuthenticationFailed => Self::Refused(Refused::Authentication),
            ErrorKind::ExtensionError => extension(error),
            _ if said().contains("WRONGTYPE") => Self::Refused(Refused::Keys),
            _ => Self::Refused(Refused::Other(said())),
        }
    }
}

fn extension(error: &RedisError) -> Lost {
    match error.code().unwrap_or_default() {
        "OOM" => Lost::Refused(Refused::Memory),
        "MISCONF" => Lost::Refused(Refused::Disk),
        "WRONGTYPE" => Lost::Refused(Refused::Keys),
        "NOPERM" => Lost::Refused(Refused::Permission(
            error.detail().unwrap_or_default().into(),
        )),
        "NOAUTH" | "WRONGPASS" => Lost::Refused(Refused::Authentication),
        "BUSY" | "NOREPLICAS" => Lost::NotReady(error.to_string()),
        _ => Lost::Refused(Refused::Other(error.to_string())),
    }
}
