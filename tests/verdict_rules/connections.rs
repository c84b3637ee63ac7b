//! Bytes that are not the protocol, and connections that broke.

use redrive::{
    protocol::DecodeError,
    verdict::{
        Class, Failure, Origin, Stage, decode,
        transport::{self, TransportError, TransportKind},
    },
};

#[test]
fn bytes_that_are_not_the_protocol_have_their_class() {
    let table = [
        (DecodeError::TooLarge, Class::TooLarge, false),
        (DecodeError::Json, Class::Corrupt, true),
        (DecodeError::Utf8, Class::Corrupt, true),
        (DecodeError::NotAStream, Class::Corrupt, true),
        (DecodeError::WholeCompletion, Class::Unclassified, false),
    ];
    for (error, expected, replayable) in table {
        let failure = decode::classify(error);
        assert_eq!(failure.class, expected, "{error:?}");
        assert_eq!(failure.retryable, replayable, "{error:?}");
        assert_eq!(failure.replayable(), replayable, "{error:?}");
        assert_eq!(
            (failure.origin, failure.stage),
            (Origin::Provider, Stage::Stream)
        );
        assert!(!failure.message.is_empty());
    }
}

#[test]
fn a_broken_connection_is_transport_and_never_a_rate_limit() {
    use TransportKind::*;
    let kinds = [
        Dns,
        Connect,
        Tls,
        Reset,
        Truncated,
        GoAway,
        RefusedStream,
        StreamReset,
        Protocol,
        Proxy,
    ];
    for kind in kinds {
        let failure = broken(kind, Stage::Request);
        assert_eq!(failure.class, Class::Transport, "{kind:?}");
        assert!(failure.replayable() && !failure.not_sent, "{kind:?}");
        assert_eq!((failure.wait, failure.http_status), (None, None));
    }
}

#[test]
fn the_other_kinds_of_transport_failure_have_their_class() {
    assert_eq!(
        broken(TransportKind::Encoding, Stage::Stream).class,
        Class::Corrupt
    );
    assert_eq!(
        broken(TransportKind::HeadTooLarge, Stage::Request).class,
        Class::TooLarge
    );
    let late = broken(TransportKind::NotSentInTime, Stage::Connect);
    assert_eq!((late.class, late.not_sent), (Class::TimeoutConnect, true));
}

#[test]
fn an_untrusted_certificate_is_transport_and_not_retryable() {
    let failure = broken(TransportKind::UntrustedCertificate, Stage::Connect);
    assert_eq!(failure.class, Class::Transport);
    assert!(!failure.retryable && !failure.replayable());
    assert!(failure.not_sent);
}

#[test]
fn the_detail_of_a_transport_failure_carries_no_credential() {
    let failure = transport::classify(&TransportError {
        kind: TransportKind::Proxy,
        stage: Stage::Connect,
        detail: "proxy said 407 to Authorization: Basic dXNlcjpwYXNz".to_owned(),
    });
    assert_eq!(
        failure.message,
        "proxy said 407 to Authorization: Basic [redacted]"
    );
}

fn broken(kind: TransportKind, stage: Stage) -> Failure {
    transport::classify(&TransportError {
        kind,
        stage,
        detail: "connection lost".to_owned(),
    })
}
