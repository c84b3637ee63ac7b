//! TLS with a certificate that nobody has signed: a client that takes it checks nothing.

use std::sync::Arc;

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio_rustls::TlsAcceptor;

/// The type of a handshake record (RFC 8446, section 5.1), with which every TLS client begins.
pub(super) const HANDSHAKE: u8 = 0x16;

/// An acceptor with a new certificate for localhost.
pub(super) fn acceptor() -> Result<TlsAcceptor, Box<dyn std::error::Error + Send + Sync>> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names)?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certified.cert.der().clone()],
            PrivateKeyDer::Pkcs8(key),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
