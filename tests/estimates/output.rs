//! The bound of the output that a request states.

use proptest::prelude::*;
use redrive::limits::tokens::output;

fn stated(body: &str) -> Option<u64> {
    output(body.as_bytes())
}

/// A provider that heeds the other one produces 10,000 tokens against a reservation of one.
#[test]
fn the_largest_bound_counts() {
    let both = r#"{"max_tokens":1,"max_completion_tokens":10000,"messages":[]}"#;
    assert_eq!(stated(both), Some(10_000));
    let turned = r#"{"max_completion_tokens":10000,"messages":[],"max_tokens":1}"#;
    assert_eq!(stated(turned), Some(10_000));
    assert_eq!(stated(r#"{"max_tokens":7,"max_tokens":3}"#), Some(7));
    assert_eq!(stated(r#"{"max_tokens":3,"max_tokens":7}"#), Some(7));
}

#[test]
fn every_protocol_states_it_in_its_own_place() {
    for (body, bound) in [
        (r#"{"max_tokens":300}"#, 300),
        (r#"{"max_completion_tokens":301}"#, 301),
        (r#"{"max_output_tokens":302}"#, 302),
        (
            r#"{"generationConfig":{"temperature":1,"maxOutputTokens":303}}"#,
            303,
        ),
        (r#"{"generation_config":{"max_output_tokens":304}}"#, 304),
        (r#"{"inferenceConfig":{"maxTokens":305}}"#, 305),
        (r#"{"options":{"num_ctx":4096,"num_predict":306}}"#, 306),
        (r#"{"max\u005ftokens":307}"#, 307),
        (r#"{"max_tokens":308.0}"#, 308),
        (r#"{"max_tokens":308.2}"#, 309),
        (r#"{"max_tokens":18446744073709551615}"#, u64::MAX),
        (r#"{"max_tokens":99999999999999999999999}"#, u64::MAX),
    ] {
        assert_eq!(stated(body), Some(bound), "{body}");
    }
}

#[test]
fn what_is_no_positive_number_or_stands_elsewhere_is_no_bound() {
    for body in [
        "{}",
        "",
        "null",
        "7",
        "\"max_tokens\"",
        r#"[{"max_tokens":5}]"#,
        r#"{"max_tokens":0}"#,
        r#"{"max_tokens":-5}"#,
        r#"{"max_tokens":-0.5}"#,
        r#"{"options":{"num_predict":-1}}"#,
        r#"{"max_tokens":null}"#,
        r#"{"max_tokens":"100"}"#,
        r#"{"max_tokens":true}"#,
        r#"{"max_tokens":[100]}"#,
        r#"{"max_tokens":{"max_tokens":100}}"#,
        r#"{"num_predict":100,"maxOutputTokens":100,"maxTokens":100,"":{"max_tokens":100}}"#,
        r#"{"generationConfig":{"max_tokens":100,"options":{"num_predict":100}}}"#,
        r#"{"messages":[{"role":"user","content":"{\"max_tokens\":100}","max_tokens":100}]}"#,
        r#"{"tools":[{"parameters":{"properties":{"max_tokens":{"default":100}}}}]}"#,
    ] {
        assert_eq!(stated(body), None, "{body}");
    }
}

#[test]
fn what_stands_before_an_error_counts() {
    assert_eq!(stated(r#"{"max_tokens":5,"messages":[}"#), Some(5));
    let deep = format!(r#"{{"max_tokens":5,"x":{}"#, "[".repeat(1 << 20));
    assert_eq!(stated(&deep), Some(5));
    let deep = format!(
        r#"{{"x":{}1{},"max_tokens":5}}"#,
        "[".repeat(1 << 20),
        "]".repeat(1 << 20)
    );
    assert_eq!(stated(&deep), Some(5));
}

proptest! {
    #[test]
    fn no_body_makes_it_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = output(&body);
    }

    #[test]
    fn no_nearly_right_body_makes_it_panic(body in "([\\[\\]{}:,]|\"max_tokens\"|\"options\"|-?[0-9]{0,30}(\\.[0-9])?|null){0,30}") {
        let _ = stated(&body);
    }

    #[test]
    fn it_is_the_largest_of_all(bounds in prop::collection::vec((0_usize..5, -5_i64..100_000), 0..8)) {
        let spelled = |&(place, bound): &(usize, i64)| match place {
            0 => format!(r#""max_tokens":{bound}"#),
            1 => format!(r#""max_completion_tokens":{bound}"#),
            2 => format!(r#""max_output_tokens":{bound}"#),
            3 => format!(r#""options":{{"num_predict":{bound}}}"#),
            _ => format!(r#""generationConfig":{{"maxOutputTokens":{bound}}}"#),
        };
        let members: Vec<String> = bounds.iter().map(spelled).collect();
        let largest = bounds.iter().filter_map(|&(_, bound)| u64::try_from(bound).ok()).filter(|&bound| bound > 0).max();
        prop_assert_eq!(stated(&format!("{{{}}}", members.join(","))), largest);
    }
}
