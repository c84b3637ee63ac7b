//! Every format of rate-limit headers, one behaviour each.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::headers::{MAX_BRAKE, brake};

/// The headers of one response.
type Sent = &'static [(&'static str, &'static str)];

/// 2026-11-30T12:00:00Z, as the provider's clock says it.
const NOON: &str = "Mon, 30 Nov 2026 12:00:00 GMT";
const NOON_EPOCH: u64 = 1_796_040_000;

/// Our own clock is wrong by a day, which must not matter while the response has a date.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOON_EPOCH + 86_400)
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

fn braked(pairs: &[(&str, &str)]) -> Option<Duration> {
    brake(&headers(&[pairs, &[("date", NOON)]].concat()), now())
}

fn ms(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn the_date_of_these_tests_is_what_it_says() {
    let noon = httpdate::parse_http_date(NOON).unwrap();
    assert_eq!(noon, UNIX_EPOCH + Duration::from_secs(NOON_EPOCH));
}

/// What each provider sends when one dimension is used up, and the wait that it means.
#[test]
fn every_format_is_read() {
    let table: &[(&str, Sent, Option<Duration>)] = &[
        (
            "OpenAI, requests",
            &[
                ("x-ratelimit-limit-requests", "5000"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "12ms"),
                ("x-ratelimit-remaining-tokens", "3999982"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            ms(12),
        ),
        (
            "OpenAI, tokens",
            &[
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "19m29.225s"),
            ],
            ms((19 * 60 + 29) * 1000 + 225),
        ),
        (
            "OpenAI, images",
            &[
                ("x-ratelimit-remaining-input-images", "0"),
                ("x-ratelimit-reset-input-images", "1.2s"),
            ],
            ms(1_200),
        ),
        (
            "OpenAI, by usage, underscored",
            &[
                ("x-ratelimit-remaining-tokens_usage_based", "0"),
                ("x-ratelimit-reset-tokens_usage_based", "4ms"),
            ],
            ms(4),
        ),
        (
            "Azure OpenAI",
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "500"),
                ("x-ratelimit-renewalperiod-requests", "60"),
            ],
            ms(500_000),
        ),
        (
            "Azure OpenAI, not known",
            &[
                ("x-ratelimit-remaining-tokens", "-1"),
                ("x-ratelimit-reset-tokens", "7"),
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "0"),
            ],
            None,
        ),
        (
            "Anthropic",
            &[
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                (
                    "anthropic-ratelimit-input-tokens-reset",
                    "2026-11-30T12:00:15Z",
                ),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:59Z"),
            ],
            ms(15_000),
        ),
        (
            "Groq",
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "12m57.599999999s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "224.999999ms"),
            ],
            Some(Duration::new(777, 599_999_999)),
        ),
        (
            "Cerebras",
            &[
                ("x-ratelimit-remaining-tokens-minute", "0"),
                ("x-ratelimit-reset-tokens-minute", "2.5"),
                ("x-ratelimit-remaining-requests-day", "1440000"),
                ("x-ratelimit-reset-requests-day", "24479.8428235054"),
            ],
            ms(2_500),
        ),
        (
            "Mistral, by size",
            &[
                ("ratelimitbysize-remaining", "0"),
                ("ratelimitbysize-reset", "33"),
                ("ratelimitbysize-query-cost", "32018"),
            ],
            ms(33_000),
        ),
        (
            "Mistral, by requests: no reset",
            &[
                ("x-ratelimit-limit-req-minute", "60"),
                ("x-ratelimit-remaining-req-minute", "0"),
                ("x-ratelimitbysize-remaining-minute", "0"),
            ],
            None,
        ),
        (
            "xAI: no reset",
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-remaining-tokens", "0"),
            ],
            None,
        ),
        (
            "Together",
            &[
                ("x-ratelimit", "false"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "2"),
                ("x-ratelimit-remaining-tokens", "3000"),
            ],
            ms(2_000),
        ),
        (
            "OpenRouter, milliseconds since 1970",
            &[
                ("x-ratelimit-limit", "1"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1796040007250"),
            ],
            ms(7_250),
        ),
        (
            "seconds since 1970",
            &[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1796040042"),
            ],
            ms(42_000),
        ),
        (
            "Hugging Face, its draft's items",
            &[
                ("ratelimit", "\"api\";r=0;t=295"),
                ("ratelimit-policy", "\"fixed window\";\"api\";q=1000;w=300"),
            ],
            ms(295_000),
        ),
        (
            "a draft's items, of which one is used up",
            &[("ratelimit", "\"day\";r=7;t=999, \"minute\"; r=0; t=20")],
            ms(20_000),
        ),
        (
            "an older draft, in one header",
            &[("ratelimit", "limit=400, remaining=0, reset=19")],
            ms(19_000),
        ),
        (
            "an older draft, in several",
            &[
                ("ratelimit-limit", "400"),
                ("ratelimit-remaining", "0"),
                ("ratelimit-reset", "19"),
            ],
            ms(19_000),
        ),
        (
            "LiteLLM, passing on",
            &[
                ("llm_provider-x-ratelimit-remaining-requests", "0"),
                ("llm_provider-x-ratelimit-reset-requests", "4ms"),
                ("x-ratelimit-remaining-requests", "14999"),
            ],
            ms(4),
        ),
    ];
    for (provider, pairs, wait) in table {
        assert_eq!(braked(pairs), *wait, "{provider}");
    }
}

#[test]
fn only_exactly_zero_brakes() {
    for (left, wait) in [
        ("0", ms(5_000)),
        (" 0 ", ms(5_000)),
        ("1", None),
        ("-0", None),
        ("0.5", None),
        ("-1", None),
        ("", None),
        ("false", None),
        ("9223372036854767616", None),
        ("99999999999999999999999999", None),
    ] {
        let pairs = [
            ("x-ratelimit-remaining-tokens", left),
            ("x-ratelimit-reset-tokens", "5s"),
        ];
        assert_eq!(braked(&pairs), wait, "{left:?}");
        let item = format!("\"api\";r={left};t=5");
        assert_eq!(braked(&[("ratelimit", &item)]), wait, "{item}");
    }
}

#[test]
fn a_dimension_brakes_by_its_own_reset_only() {
    let pairs = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-tokens", "30s"),
        ("x-ratelimit-remaining-tokens", "80"),
        ("ratelimit-reset", "40"),
        ("retry-after", "24"),
    ];
    assert_eq!(braked(&pairs), None);
    let own = [("x-ratelimit-reset-requests", "2s")];
    assert_eq!(braked(&[&pairs[..], &own].concat()), ms(2_000));
}

#[test]
fn the_longest_of_several_wins() {
    let pairs = [
        ("anthropic-ratelimit-requests-remaining", "0"),
        ("anthropic-ratelimit-requests-reset", "2026-11-30T12:00:05Z"),
        ("anthropic-ratelimit-output-tokens-remaining", "0"),
        (
            "anthropic-ratelimit-output-tokens-reset",
            "2026-11-30T12:00:41Z",
        ),
        ("anthropic-ratelimit-tokens-remaining", "0"),
        ("anthropic-ratelimit-tokens-reset", "2026-11-30T12:00:09Z"),
    ];
    assert_eq!(braked(&pairs), ms(41_000));
}

/// As Anthropic sends it with answers that leave a million tokens.
#[test]
fn a_wait_of_a_success_is_no_brake() {
    let pairs = [
        ("retry-after", "24"),
        ("anthropic-ratelimit-input-tokens-remaining", "1999000"),
        (
            "anthropic-ratelimit-input-tokens-reset",
            "2026-11-30T12:00:15Z",
        ),
    ];
    assert_eq!(braked(&pairs), None);
}

#[test]
fn no_brake_is_longer_than_an_hour() {
    for reset in [
        "83h10m39.057s",
        "24479.8428235054",
        "1h0m0.001s",
        "2026-12-24T18:00:00Z",
    ] {
        let pairs = [
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", reset),
        ];
        assert_eq!(braked(&pairs), Some(MAX_BRAKE), "{reset}");
    }
    assert_eq!(MAX_BRAKE, Duration::from_secs(3_600));
}

#[test]
fn our_own_clock_stands_in_for_a_missing_date() {
    let pairs = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "2026-12-01T12:00:03Z"),
    ];
    assert_eq!(brake(&headers(&pairs), now()), ms(3_000));
    let unreadable = [&pairs[..], &[("date", "soon")]].concat();
    assert_eq!(brake(&headers(&unreadable), now()), ms(3_000));
}

#[test]
fn what_is_past_zero_negative_or_unreadable_is_absent() {
    for reset in [
        "0",
        "0s",
        "0.0",
        "-1",
        "-5s",
        "",
        " ",
        ".",
        "1.2.3",
        "+5",
        "1e3",
        "0x10",
        "NaN",
        "inf",
        "soon",
        "5 s ago",
        "2026-11-30T12:00:00Z",
        "2026-11-30T11:59:59Z",
        "2026-13-99T99:99:99Z",
        "1796040000",
        "1796039999000",
        "99999999999999999999h",
        "0s, req_b176c7aa266e48aa8eff647b6b309bb8",
        "１２",
    ] {
        let value = HeaderValue::from_bytes(reset.as_bytes()).unwrap();
        let mut headers = headers(&[("x-ratelimit-remaining", "0"), ("date", NOON)]);
        headers.insert("x-ratelimit-reset", value);
        assert_eq!(brake(&headers, now()), None, "{reset:?}");
    }
}

#[test]
fn a_value_that_cannot_be_read_hides_no_other() {
    let pairs = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "soon"),
        ("x-ratelimit-reset", "3"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "99999999999999999999999h"),
    ];
    assert_eq!(braked(&pairs), ms(3_000));
}

/// Values that are nearly right, and others that are not.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(
            any::<u8>().prop_filter("a header's", |b| *b >= 32 && *b != 127),
            0..40
        ),
        "[-+]?[0-9]{0,30}(\\.[0-9]{0,30})?(h|m|s|ms|us|ns)?([0-9]{1,20}(m|s))?"
            .prop_map(String::into_bytes),
        "[0-9]{1,12}-[0-9]{1,3}-[0-9]{1,3}T[0-9]{1,3}:[0-9]{1,3}:[0-9]{1,3}Z?"
            .prop_map(String::into_bytes),
        "(\"[a-z,;=]{0,4}\")?(;[rt]=[0-9]{0,25}){0,3}(, ?(remaining|reset)=[0-9]{0,25}){0,3}"
            .prop_map(String::into_bytes),
        select(vec!["0", "1", "0s", "60"]).prop_map(|text| text.as_bytes().to_vec()),
    ]
}

const NAMES: &[&str] = &[
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "ratelimitbysize-remaining",
    "ratelimitbysize-reset",
    "ratelimit",
    "remaining-ratelimit-remaining",
    "reset-ratelimit-reset",
    "date",
];

proptest! {
    #[test]
    fn no_header_makes_it_panic_or_brake_for_nothing_or_too_long(
        pairs in vec((select(NAMES), value()), 0..12),
        now in any::<u32>(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        let wait = brake(&headers, UNIX_EPOCH + Duration::from_secs(now.into()));
        prop_assert!(wait.is_none_or(|wait| !wait.is_zero() && wait <= MAX_BRAKE), "{wait:?}");
    }

    #[test]
    fn a_wait_is_never_longer_than_stated(millis in 1_u64..3_600_000, dimensions in 1_usize..4) {
        let spelled = [
            format!("{millis}ms"),
            format!("{}.{:03}", millis / 1000, millis % 1000),
            format!("{}m{}.{:03}s", millis / 60_000, millis / 1000 % 60, millis % 1000),
            (NOON_EPOCH * 1000 + millis).to_string(),
        ];
        for text in spelled {
            let names = (0..dimensions).flat_map(|d| {
                [(format!("x-ratelimit-remaining-{d}"), "0"), (format!("x-ratelimit-reset-{d}"), text.as_str())]
            });
            let names: Vec<_> = names.collect();
            let pairs: Vec<_> = names.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let wait = braked(&pairs).unwrap();
            let stated = Duration::from_millis(millis);
            // A number of milliseconds since 1970 is exact to a quarter of a microsecond.
            prop_assert!(wait.abs_diff(stated) < Duration::from_micros(1), "{text}: {wait:?}");
        }
    }
}
