//! Whom we trust, and what we offer in the handshake.

use std::sync::Arc;

use bytes::Bytes;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    super::{Endpoint, Http2},
    errors::{handshake, unsent},
};
use crate::verdict::transport::{TransportError, TransportKind};

const H2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// TLS towards one endpoint.
pub(super) struct Tls {
    connector: TlsConnector,
    http2: Http2,
}

/// Reads PEM certificate authorities; the error is for a person.
pub fn parse_authorities(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("not a PEM file of certificates: {error}"))?;
    match certificates.is_empty() {
        true => Err("holds no certificate".into()),
        false => Ok(certificates),
    }
}

/// The public authorities and the endpoint's own.
pub(super) fn configure(endpoint: &Endpoint) -> Result<Tls, String> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for authority in authorities(endpoint.extra_ca.as_ref())? {
        roots
            .add(authority)
            .map_err(|error| format!("extra_ca: {error}"))?;
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = match endpoint.http2 {
        Http2::Auto => vec![H2.to_vec(), HTTP1.to_vec()],
        Http2::Off => vec![HTTP1.to_vec()],
        Http2::PriorKnowledge => vec![H2.to_vec()],
    };
    Ok(Tls {
        connector: TlsConnector::from(Arc::new(config)),
        http2: endpoint.http2,
    })
}

fn authorities(extra: Option<&Bytes>) -> Result<Vec<CertificateDer<'static>>, String> {
    match extra {
        Some(pem) => parse_authorities(pem).map_err(|error| format!("extra_ca: {error}")),
        None => Ok(Vec::new()),
    }
}

impl Tls {
    /// The handshake; `true` where HTTP/2 was agreed on.
    pub(super) async fn connect(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, bool), TransportError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            unsent(
                TransportKind::Tls,
                "the host is not a name a certificate can be for",
            )
        })?;
        let stream = self
            .connector
            .connect(name, tcp)
            .await
            .map_err(|error| handshake(&error))?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(H2);
        if self.http2 == Http2::PriorKnowledge && !http2 {
            return Err(unsent(
                TransportKind::Tls,
                "the server did not agree to HTTP/2",
            ));
        }
        Ok((stream, http2))
    }
}
