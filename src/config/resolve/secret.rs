//! Secrets and certificates, read from where the file says. No error repeats what was read.

use std::{env::VarError, path};

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use secrecy::{ExposeSecret as _, SecretString};

use super::Resolver;
use crate::config::{environment::Environment, hint, path::Path, raw};

/// The longest secret, in bytes. Fixed; it becomes a header.
const MAX_SECRET_BYTES: usize = 16 << 10;
/// The largest bundle of certificates, in bytes. Fixed.
const MAX_CA_BYTES: usize = 4 << 20;

/// Whether secrets are read.
#[derive(Clone, Copy)]
pub(in crate::config) enum Secrets<'a> {
    /// From here.
    Read(&'a dyn Environment),
    /// Not at all: a placeholder stands for each.
    Unread,
}

impl Resolver<'_> {
    /// An API key: what can be sent as a header.
    pub(super) fn api_key(&mut self, at: &Path, source: &raw::Secret) -> Option<SecretString> {
        let secret = self.password(at, source)?;
        let key = secret.expose_secret();
        let printable = |b: u8| matches!(b, b' '..=b'~');
        if key.trim() != key || !key.bytes().all(printable) {
            let message = format!(
                "{} holds spaces around the key, or characters that cannot be sent in a header",
                name(source)
            );
            self.refuse(at, message);
            return None;
        }
        Some(secret)
    }

    /// Any text that is not empty, without the line ends after it.
    pub(super) fn password(&mut self, at: &Path, source: &raw::Secret) -> Option<SecretString> {
        let bytes = match self.secrets {
            Secrets::Unread => return Some(SecretString::from("unread")),
            Secrets::Read(environment) => {
                self.content(at, source, environment, MAX_SECRET_BYTES)?
            }
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        let secret = text.trim_end_matches(['\r', '\n']);
        if secret.is_empty() {
            self.refuse(at, format!("{} is empty or not text", name(source)));
            return None;
        }
        Some(SecretString::from(secret))
    }

    /// PEM of certificate authorities; at least one.
    pub(super) fn certificates(&mut self, at: &Path, source: &raw::Secret) -> Option<Bytes> {
        let Secrets::Read(environment) = self.secrets else {
            return None;
        };
        let pem = self.content(at, source, environment, MAX_CA_BYTES)?;
        let mut certificates = CertificateDer::pem_slice_iter(&pem).peekable();
        if certificates.peek().is_none() || certificates.any(|certificate| certificate.is_err()) {
            self.refuse(at, format!("{} holds no PEM certificates", name(source)));
            return None;
        }
        Some(pem.into())
    }

    fn content(
        &mut self,
        at: &Path,
        source: &raw::Secret,
        environment: &dyn Environment,
        limit: usize,
    ) -> Option<Vec<u8>> {
        let problem = match source {
            raw::Secret::Env(variable) => match environment.variable(variable) {
                Ok(value) if value.len() <= limit => return Some(value.into_bytes()),
                Ok(_) => format!("is larger than {limit} bytes"),
                Err(VarError::NotPresent) => "is not set".to_owned(),
                Err(VarError::NotUnicode(_)) => "is not text".to_owned(),
            },
            raw::Secret::File(file) => {
                match environment.file(&self.base.join(path::Path::new(file)), limit) {
                    Ok(content) => return Some(content),
                    Err(error) => format!("cannot be read: {error}"),
                }
            }
        };
        self.refuse(at, format!("{} {problem}", name(source)));
        None
    }
}

fn name(source: &raw::Secret) -> String {
    match source {
        raw::Secret::Env(variable) => format!("environment variable {}", hint::shown(variable)),
        raw::Secret::File(file) => format!("file {}", hint::shown(file)),
    }
}
