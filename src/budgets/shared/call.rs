//! One call of the script, as a command.

use std::fmt::Display;

use redis::{Cmd, cmd};

use super::{keys::Keys, ledger::Known, told::Told};
use crate::limits::Micros;

/// A verb and what it says.
#[derive(Clone, Debug)]
pub(super) struct Call {
    verb: &'static str,
    says: Vec<String>,
}

/// How the script is named.
#[derive(Clone, Copy)]
pub(super) enum Script<'a> {
    /// By the digest under which the server knows it.
    Known(&'a str),
    /// In full; from then on the server knows it.
    Whole(&'a str),
}

impl Call {
    pub(super) fn new(verb: &'static str) -> Self {
        Self {
            verb,
            says: Vec::new(),
        }
    }

    pub(super) fn say(mut self, word: impl Display) -> Self {
        self.says.push(word.to_string());
        self
    }

    /// The command; `run` is the server's own id, or `-`, `known` what was known when it was sent.
    pub(super) fn command(
        &self,
        script: Script<'_>,
        keys: &Keys,
        told: &Told,
        life: Micros,
        run: &str,
        known: &Known,
    ) -> Cmd {
        let mut command = match script {
            Script::Known(digest) => cmd("EVALSHA").arg(digest).to_owned(),
            Script::Whole(text) => cmd("EVAL").arg(text).to_owned(),
        };
        let Keys(keys) = keys;
        command.arg(keys.len()).arg(keys.as_slice());
        // A name for the epoch, should one begin with this call.
        command
            .arg(self.verb)
            .arg(uuid::Uuid::now_v7().simple().to_string());
        command.arg(run).arg(&told.revision);
        command.arg(told.unsent).arg(life).arg(told.keep);
        command
            .arg(&known.epoch)
            .arg(known.at_least)
            .arg(known.slack);
        command.arg(self.says.as_slice());
        command
    }
}
