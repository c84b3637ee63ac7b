//! The configured way out: a tunnel by CONNECT. Environment variables play no part.

use std::{net::IpAddr, str::FromStr};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::Uri;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    dial::{self, Unreachable},
    errors::unsent,
    target::{Target, bare},
};
use crate::verdict::transport::{TransportError, TransportKind};

/// The largest answer to CONNECT, in bytes.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// Whether a host is reached directly: by a name, a `.suffix`, an address, a range in CIDR notation
/// or `*`; each but the last two with an optional port.
pub(super) fn bypasses(no_proxy: &[String], host: &str, port: u16) -> bool {
    let host = bare(host).trim_end_matches('.');
    no_proxy
        .iter()
        .any(|entry| matches_entry(entry.trim(), host, port))
}

fn matches_entry(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    let address = host.parse::<IpAddr>().ok();
    if let (Some(address), Some((network, bits))) = (address, entry.split_once('/')) {
        return in_range(address, network, bits);
    }
    if let (Some(address), Ok(same)) = (address, bare(entry).parse::<IpAddr>()) {
        return address == same;
    }
    let (name, wanted_port) = match entry.rsplit_once(':') {
        Some((name, digits)) => (name, Some(digits)),
        None => (entry, None),
    };
    if wanted_port.is_some_and(|digits| digits.parse() != Ok(port)) {
        return false;
    }
    match (
        name.strip_prefix("*.").or_else(|| name.strip_prefix('.')),
        address,
    ) {
        (Some(suffix), None) => is_below(host, suffix) || host.eq_ignore_ascii_case(suffix),
        (Some(_), Some(_)) => false,
        (None, Some(address)) => bare(name).parse() == Ok(address),
        (None, None) => host.eq_ignore_ascii_case(name),
    }
}

/// Whether `host` is a subdomain of `suffix`.
fn is_below(host: &str, suffix: &str) -> bool {
    let Some(at) = host.len().checked_sub(suffix.len() + 1) else {
        return false;
    };
    host.get(at..).is_some_and(|tail| {
        tail.strip_prefix('.')
            .is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
    })
}

fn in_range(address: IpAddr, network: &str, bits: &str) -> bool {
    let (Ok(network), Ok(bits)) = (IpAddr::from_str(network), bits.parse::<u32>()) else {
        return false;
    };
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) if bits <= 32 => {
            (a.to_bits() ^ n.to_bits())
                .checked_shr(32 - bits)
                .unwrap_or(0)
                == 0
        }
        (IpAddr::V6(a), IpAddr::V6(n)) if bits <= 128 => {
            (a.to_bits() ^ n.to_bits())
                .checked_shr(128 - bits)
                .unwrap_or(0)
                == 0
        }
        _ => false,
    }
}

/// A connection to `target` through the proxy at `url`.
pub(super) async fn tunnel(url: &Uri, target: &Target) -> Result<TcpStream, TransportError> {
    let proxy = Target::parse(url).map_err(|_| failed("its URL is not http://host:port"))?;
    if proxy.tls {
        return Err(failed("only http:// proxies are supported"));
    }
    let mut tcp = dial::tcp(&proxy.host, proxy.port)
        .await
        .map_err(|error| match error {
            Unreachable::Name(error) => failed(format!("its name does not resolve: {error}")),
            Unreachable::Peer(error) => failed(format!("no connection to it: {error}")),
        })?;
    let ask = connect_request(url, target);
    tcp.write_all(ask.as_bytes())
        .await
        .map_err(|error| failed(error.to_string()))?;
    match answer(&mut tcp).await? {
        200..300 => Ok(tcp),
        status => Err(failed(format!("it answered CONNECT with status {status}"))),
    }
}

fn connect_request(url: &Uri, target: &Target) -> String {
    let host = match target.host.contains(':') {
        true => format!("[{}]:{}", target.host, target.port),
        false => format!("{}:{}", target.host, target.port),
    };
    let credentials = url
        .authority()
        .and_then(|authority| authority.as_str().rsplit_once('@'));
    let authorization = credentials
        .map(|(user, _)| {
            format!(
                "Proxy-Authorization: Basic {}\r\n",
                BASE64_STANDARD.encode(decoded(user))
            )
        })
        .unwrap_or_default();
    let agent = env!("CARGO_PKG_VERSION");
    format!(
        "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: redrive/{agent}\r\n{authorization}\r\n"
    )
}

/// The status of the proxy's answer. Read byte by byte, because what follows its head belongs to the
/// tunnel.
async fn answer(tcp: &mut TcpStream) -> Result<u16, TransportError> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_ANSWER_BYTES {
            return Err(failed("its answer to CONNECT is too long"));
        }
        let byte = tcp.read_u8().await;
        head.push(byte.map_err(|error| failed(format!("it closed the connection: {error}")))?);
    }
    let mut words = head.split(|byte| *byte == b' ');
    let version = words.next().unwrap_or_default();
    let status = words
        .next()
        .and_then(|word| std::str::from_utf8(word).ok()?.get(..3)?.parse().ok());
    match status {
        Some(status) if version.starts_with(b"HTTP/1.") => Ok(status),
        _ => Err(failed("its answer is not HTTP")),
    }
}

fn failed(detail: impl std::fmt::Display) -> TransportError {
    unsent(
        TransportKind::Proxy,
        format!("the configured proxy failed: {detail}"),
    )
}

/// Undoes percent-encoding, as userinfo in a URL has it.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let pair = (byte == b'%')
            .then(|| Some((hex(ahead.next()?)?, hex(ahead.next()?)?)))
            .flatten();
        match pair {
            Some((high, low)) => {
                out.push(high << 4 | low);
                bytes = ahead;
            }
            None => out.push(byte),
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(entry: &str, host: &str) -> bool {
        bypasses(&[entry.to_owned()], host, 443)
    }

    #[test]
    fn names_suffixes_and_ports_are_exceptions() {
        assert!(direct("llm.internal", "LLM.internal"));
        assert!(direct("llm.internal:443", "llm.internal"));
        assert!(!direct("llm.internal:80", "llm.internal"));
        assert!(!direct("internal", "llm.internal"));
        assert!(direct(".internal", "llm.internal"));
        assert!(direct("*.internal", "a.b.internal"));
        assert!(!direct(".internal", "notinternal"));
        assert!(direct("*", "anything"));
    }

    #[test]
    fn addresses_and_ranges_are_exceptions() {
        assert!(direct("10.0.0.1", "10.0.0.1"));
        assert!(direct("10.0.0.1:443", "10.0.0.1"));
        assert!(!direct("10.0.0.1:80", "10.0.0.1"));
        assert!(direct("::1", "[::1]"));
        assert!(direct("[::1]:443", "::1"));
        assert!(!direct("[::1]:80", "::1"));
        assert!(direct("10.0.0.0/8", "10.200.0.1"));
        assert!(!direct("10.0.0.0/8", "11.0.0.1"));
        assert!(direct("0.0.0.0/0", "11.0.0.1"));
        assert!(direct("fd00::/8", "fd12::1"));
        assert!(!direct("10.0.0.0/33", "10.0.0.1"));
        assert!(!direct("10.0.0.0/8", "ten.example"));
    }

    #[test]
    fn proxy_credentials_lose_their_percent_encoding() {
        assert_eq!(decoded("user:p%40ss"), b"user:p@ss");
        assert_eq!(decoded("a%zz%4"), b"a%zz%4");
    }
}
