//! Where an endpoint is: its base URL taken apart once.

use http::{
    HeaderValue, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};

/// An endpoint's base URL, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// `https`.
    pub(super) tls: bool,
    /// A name or an address, IPv6 without its brackets.
    pub(super) host: String,
    /// The port, the scheme's own where none is given.
    pub(super) port: u16,
    /// What the `host` header says: without credentials, without a default port.
    pub(super) host_header: HeaderValue,
    scheme: Scheme,
    authority: Authority,
    path: String,
    query: Option<String>,
}

impl Target {
    /// Reads a base URL; the error is for a person.
    pub(super) fn parse(base: &Uri) -> Result<Self, String> {
        let tls = match base.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("the base URL must be http or https".into()),
        };
        let default_port = if tls { 443 } else { 80 };
        let bracketed = base
            .host()
            .filter(|host| !host.is_empty())
            .ok_or("the base URL names no host")?;
        let port = base.port_u16().unwrap_or(default_port);
        let name = match port == default_port {
            true => bracketed.to_owned(),
            false => format!("{bracketed}:{port}"),
        };
        let unreadable = |_| "the base URL's host is not valid".to_owned();
        Ok(Self {
            tls,
            host: bare(bracketed).to_owned(),
            port,
            host_header: HeaderValue::try_from(name.as_str()).map_err(|_| unreadable(()))?,
            scheme: if tls { Scheme::HTTPS } else { Scheme::HTTP },
            authority: name.parse().map_err(|_| unreadable(()))?,
            path: base.path().trim_end_matches('/').to_owned(),
            query: base.query().map(str::to_owned),
        })
    }

    /// The base URL's path with `path` appended, and both queries.
    pub(super) fn join(&self, path: &str) -> Result<PathAndQuery, http::Error> {
        let mut joined = format!("{}{path}", self.path);
        if let Some(query) = &self.query {
            joined.push(if path.contains('?') { '&' } else { '?' });
            joined.push_str(query);
        }
        Ok(PathAndQuery::try_from(joined)?)
    }

    /// The absolute form, as HTTP/2 wants it.
    pub(super) fn absolute(&self, path: PathAndQuery) -> Result<Uri, http::Error> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
    }
}

/// `host` without the brackets of an IPv6 address.
pub(super) fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_port_follows_the_scheme_and_stays_out_of_the_host_header() {
        let https = target("https://api.example.com/v1");
        assert_eq!((https.tls, https.port), (true, 443));
        assert_eq!(https.host_header, "api.example.com");
        assert_eq!(
            target("http://api.example.com:443").host_header,
            "api.example.com:443"
        );
    }

    #[test]
    fn an_ipv6_literal_is_dialled_bare_and_named_in_brackets() {
        let six = target("http://[::1]:8080/");
        assert_eq!(six.host, "::1");
        assert_eq!(six.host_header, "[::1]:8080");
    }

    #[test]
    fn credentials_in_the_url_never_reach_a_header() {
        assert_eq!(target("http://user:secret@host:81").host_header, "host:81");
    }

    #[test]
    fn paths_are_appended_to_the_prefix_and_queries_joined() {
        assert_eq!(target("http://h/v1/").join("/chat").unwrap(), "/v1/chat");
        assert_eq!(target("http://h").join("/chat?a=1").unwrap(), "/chat?a=1");
        assert_eq!(
            target("http://h/v1?b=2").join("/chat?a=1").unwrap(),
            "/v1/chat?a=1&b=2"
        );
        assert_eq!(
            target("http://h/v1?b=2").join("/chat").unwrap(),
            "/v1/chat?b=2"
        );
        assert!(target("http://h/v1").join("/a b").is_err());
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(Target::parse(&"ftp://h/".parse().unwrap()).is_err());
        assert!(Target::parse(&"/only/a/path".parse().unwrap()).is_err());
    }
}
