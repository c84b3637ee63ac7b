//! The one request of an exchange, as it will stand on the wire.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST,
        PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
        USER_AGENT,
    },
};
use http_body_util::Full;

use super::{super::Request, target::Target};

const AGENT: HeaderValue = HeaderValue::from_static(concat!("redrive/", env!("CARGO_PKG_VERSION")));
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Headers that belong to a connection; the door alone decides them.
const OURS: [HeaderName; 10] = [
    HOST,
    CONTENT_LENGTH,
    ACCEPT_ENCODING,
    CONNECTION,
    TRANSFER_ENCODING,
    TE,
    TRAILER,
    UPGRADE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
];

/// Headers that carry credentials: never indexed by HPACK, never printed.
const SECRET: [HeaderName; 5] = [
    AUTHORIZATION,
    COOKIE,
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-goog-api-key"),
];

/// A request, complete but for the version of HTTP.
pub(super) struct Message {
    method: Method,
    origin_form: Uri,
    absolute_form: Uri,
    host: HeaderValue,
    headers: HeaderMap,
    body: Bytes,
}

impl Message {
    pub(super) fn new(target: &Target, request: Request) -> Result<Self, http::Error> {
        let path = target.join(&request.path)?;
        let mut headers = request.headers;
        for name in OURS {
            headers.remove(name);
        }
        headers.remove("keep-alive");
        headers.remove("proxy-connection");
        for name in SECRET {
            if let http::header::Entry::Occupied(mut entry) = headers.entry(name) {
                entry.iter_mut().for_each(|value| value.set_sensitive(true));
            }
        }
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        headers.entry(USER_AGENT).or_insert(AGENT);
        if request.method == Method::GET {
            headers.remove(CONTENT_LENGTH);
        } else {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(request.body.len()));
        }
        Ok(Self {
            method: request.method,
            origin_form: Uri::from(path.clone()),
            absolute_form: target.absolute(path)?,
            host: target.host_header.clone(),
            headers,
            body: request.body,
        })
    }

    /// For HTTP/1.1: origin form, `host` header, body included.
    pub(super) fn http1(&self) -> http::Request<Full<Bytes>> {
        let mut request = http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.origin_form.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        request.headers_mut().extend(self.headers.clone());
        request
    }

    /// For HTTP/2: absolute form and the body apart.
    pub(super) fn http2(&self) -> (http::Request<()>, Bytes) {
        let mut request = http::Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.absolute_form.clone();
        *request.version_mut() = http::Version::HTTP_2;
        *request.headers_mut() = self.headers.clone();
        (request, self.body.clone())
    }
}
