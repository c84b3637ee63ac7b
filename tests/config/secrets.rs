//! Secrets are read from where the file says, and never told.

use std::path::Path;

use redrive::config::Config;
use secrecy::ExposeSecret as _;

use crate::support::*;

/// A file whose one credential comes from `reference`.
fn with_key(reference: &str) -> String {
    format!(
        "\
providers:
  p:
    base_url: 'http://h'
    credentials: [{{name: main, api_key: {reference}}}]
routes: {{r: {{targets: [{{provider: p, model: m}}]}}}}
"
    )
}

fn key(reference: &str, environment: &Scripted) -> Result<String, String> {
    Config::parse(
        &with_key(reference),
        Path::new("/etc/redrive/redrive.yaml"),
        environment,
    )
    .map(|config| {
        let credential = &config.routes["r"].targets[0].provider.credentials[0];
        credential.api_key.expose_secret().to_owned()
    })
    .map_err(|errors| errors.to_string())
}

#[test]
fn come_from_the_environment() {
    let environment = Scripted::default().variable("KEY", "sk-1");
    assert_eq!(key("{env: KEY}", &environment), Ok("sk-1".to_owned()));
}

#[test]
fn come_from_files_beside_the_configuration_without_their_last_newline() {
    let environment = Scripted::default()
        .file("/etc/redrive/key", "sk-2\n")
        .file("/run/secrets/key", "sk-3\r\n");
    assert_eq!(key("{file: key}", &environment), Ok("sk-2".to_owned()));
    assert_eq!(
        key("{file: /run/secrets/key}", &environment),
        Ok("sk-3".to_owned())
    );
}

#[test]
fn that_cannot_be_read_name_their_key() {
    let environment = Scripted::default();
    let at = "/etc/redrive/redrive.yaml:4:41: providers.p.credentials[0].api_key";
    assert_eq!(
        key("{env: KEY}", &environment),
        Err(format!("{at}: environment variable \"KEY\" is not set"))
    );
    assert_eq!(
        key("{file: key}", &environment),
        Err(format!(
            "{at}: file \"key\" cannot be read: entity not found"
        ))
    );
}

#[test]
fn that_cannot_be_sent_are_refused_without_repeating_them() {
    let environment = Scripted::default()
        .variable("EMPTY", "")
        .variable("SPACED", " sk-spaced ")
        .variable("BROKEN", "sk-broken\nsk-more")
        .file("/etc/redrive/binary", [0xff, 0xfe]);
    for (reference, told) in [
        (
            "{env: EMPTY}",
            "environment variable \"EMPTY\" is empty or not text",
        ),
        (
            "{env: SPACED}",
            "environment variable \"SPACED\" holds spaces around the key, or characters that cannot be \
             sent in a header",
        ),
        (
            "{env: BROKEN}",
            "environment variable \"BROKEN\" holds spaces around the key, or characters that cannot be \
             sent in a header",
        ),
        ("{file: binary}", "file \"binary\" is empty or not text"),
    ] {
        let error = key(reference, &environment).unwrap_err();
        assert!(error.ends_with(told), "{error}");
        assert!(!error.contains("sk-"), "{error}");
    }
}

#[test]
fn inline_are_refused_without_repeating_them() {
    for inline in [
        "sk-inline",
        "{sk-inline: x}",
        "[sk-inline]",
        "{value: sk-inline}",
    ] {
        let error = key(inline, &Scripted::default()).unwrap_err();
        assert!(error.contains("{file: PATH}"), "{error}");
        assert!(!error.contains("sk-inline"), "{error}");
    }
}

#[test]
fn have_one_source_each() {
    let environment = environment();
    for reference in ["{}", "{env: OPENAI_API_KEY, file: key}"] {
        let error = key(reference, &environment).unwrap_err();
        let told = "expected exactly one of {file: PATH} and {env: NAME}";
        assert!(error.ends_with(told), "{error}");
    }
}

#[test]
fn do_not_show_in_debug_output() {
    let environment = Scripted::default().variable("KEY", "sk-hidden");
    let text =
        with_key("{env: KEY}").replace("'http://h'", "'http://h', headers: {X-Team: t-hidden}");
    let text = text.replace(
        "base_url: 'http://h', headers",
        "base_url: 'http://h'\n    headers",
    );
    let config = Config::parse(&text, Path::new("redrive.yaml"), &environment).unwrap();
    let debug = format!("{config:?}");
    assert!(debug.contains("x-team"), "the header itself is there");
    assert!(!debug.contains("hidden"), "{debug}");
}

#[test]
fn are_left_alone_where_only_the_file_is_checked() {
    let environment = Scripted::default().file("redrive.yaml", with_key("{env: NOT_HERE}"));
    let config = Config::load_without_secrets(Path::new("redrive.yaml"), &environment).unwrap();
    assert_eq!(
        config.routes["r"].targets[0].provider.credentials[0].name,
        "main"
    );
}

#[test]
fn certificates_come_from_files_and_must_be_some() {
    let text = "\
providers: {p: {base_url: 'https://h', tls: {ca: {file: ca.crt}}}}
routes: {r: {targets: [{provider: p, model: m}]}}
";
    let certificate = rcgen::generate_simple_self_signed(vec!["h".to_owned()])
        .unwrap()
        .cert
        .pem();
    let parse = |content: &str| {
        let environment = Scripted::default().file("ca.crt", content);
        Config::parse(text, Path::new("redrive.yaml"), &environment)
    };
    let config = parse(&certificate).unwrap();
    let endpoint = &config.routes["r"].targets[0].provider.endpoint;
    assert_eq!(endpoint.extra_ca.as_deref(), Some(certificate.as_bytes()));
    assert_eq!(
        parse("not a certificate").unwrap_err().to_string(),
        "redrive.yaml:1:50: providers.p.tls.ca: file \"ca.crt\" holds no PEM certificates"
    );
}
