//! What goes wrong on the wire to a provider: each ends in the one right terminal.

use redrive::proto::VerdictClass as Class;

use crate::{
    bench::{Bench, alone},
    provider::{STREAM, Script, begun, script},
    support::{Ended, error, start, text},
};

/// The one attempt that `script` answers.
async fn answered(script: Script) -> Ended {
    let bench = Bench::start().await;
    bench.provider.then(script);
    let ended = bench.generate(start()).await.end().await;
    assert_eq!(bench.provider.requests(), 1);
    assert_eq!(ended.sends(), (1, 1));
    bench.finish().await;
    ended
}

#[test]
fn a_body_that_breaks_off_is_a_transport_failure_however_it_breaks() {
    alone(async {
        let short =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
        for script in [
            begun().close(),
            begun().wait(20).reset(),
            begun().bytes("zz\r\n"),
            script().bytes(short).bytes(text("Hel")).close(),
        ] {
            assert_eq!(answered(script).await.class(), Class::Transport);
        }
    });
}

#[test]
fn an_answer_that_is_no_http_is_a_transport_failure() {
    alone(async {
        for bytes in ["SSH-2.0-OpenSSH_9.6\r\n", "\0\0\0\0\0\0\0\0\r\n\r\n"] {
            assert_eq!(
                answered(script().bytes(bytes)).await.class(),
                Class::Transport
            );
        }
        assert_eq!(answered(script().close()).await.class(), Class::Transport);
    });
}

#[test]
fn a_head_without_end_is_bounded() {
    alone(async {
        let mut endless = script().bytes("HTTP/1.1 200 OK\r\n");
        for index in 0..200 {
            endless = endless.bytes(format!("x-{index}: {}\r\n", "y".repeat(4096)));
        }
        let class = answered(endless).await.class();
        assert!(
            matches!(class, Class::TooLarge | Class::Transport),
            "{class:?}"
        );
    });
}

#[test]
fn a_line_without_end_is_too_large_and_is_not_read_on() {
    alone(async {
        let mut endless = script().bytes(STREAM).chunk("data: ");
        for _ in 0..40 {
            endless = endless.chunk(&"x".repeat(512 << 10));
        }
        assert_eq!(answered(endless).await.class(), Class::TooLarge);
    });
}

#[test]
fn an_encoding_that_was_not_asked_for_is_corrupt() {
    alone(async {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: br\r\n\
                transfer-encoding: chunked\r\n\r\n";
        let ended = answered(script().bytes(head).chunk("abc")).await;
        assert_eq!(ended.class(), Class::Corrupt);
        assert!(ended.reason().contains("br"), "{}", ended.reason());
    });
}

#[test]
fn an_error_page_is_judged_by_its_status() {
    alone(async {
        let page = "<html><body>502 Bad Gateway</body></html>";
        let head = format!(
            "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n",
            page.len()
        );
        let ended = answered(script().bytes(head).bytes(page)).await;
        assert_eq!(ended.class(), Class::ProviderInternal);
    });
}

#[test]
fn an_error_without_end_is_read_to_its_bound() {
    alone(async {
        let mut endless = script().bytes("HTTP/1.1 500 Oh\r\ntransfer-encoding: chunked\r\n\r\n");
        for _ in 0..40 {
            endless = endless.chunk(&"x".repeat(8 << 10));
        }
        assert_eq!(answered(endless).await.class(), Class::ProviderInternal);
    });
}

#[test]
fn a_rate_limit_is_told_with_its_wait() {
    alone(async {
        let body = error("Slow down", "requests", "rate_limit_exceeded");
        let head = format!(
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let ended = answered(script().bytes(head).bytes(body)).await;
        assert_eq!(ended.class(), Class::RateLimited);
        let verdict = ended.failed().verdict.as_ref().unwrap();
        assert_eq!(verdict.retry_after.unwrap().seconds, 7);
    });
}

#[test]
fn a_redirect_is_not_followed() {
    alone(async {
        let head = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /v2\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(
            answered(script().bytes(head)).await.class(),
            Class::RedirectRefused
        );
    });
}
