//! Whatever stands in the file: an answer within bounds, never a panic.

use proptest::prelude::*;

use crate::support::*;

/// Nested anchors, each of which repeats the one before nine times: 9^levels values in a few lines.
fn bomb(levels: usize) -> String {
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..=levels {
        let below = vec![format!("*a{}", level - 1); 9].join(",");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    text
}

#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    // Expanded it would be 10^19 values: that the test ends is the proof.
    let error = refusal(&bomb(20));
    assert_eq!(
        error,
        "redrive.yaml:6:14: not readable as YAML: YAML document too large or too complex: \
         total_replayed_events=50001 > 50000"
    );
}

#[test]
fn nesting_has_an_end() {
    for text in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
    ] {
        assert!(refusal(&text).contains("not readable as YAML"));
    }
}

#[test]
fn a_file_above_a_mebibyte_is_not_parsed() {
    let text = format!("{MINIMAL}# {}\n", "x".repeat(1 << 20));
    assert_eq!(
        refusal(&text),
        "redrive.yaml: the file is larger than 1 MiB"
    );
}

#[test]
fn a_file_that_is_not_there_or_not_text() {
    let environment = Scripted::default().file("latin1.yaml", b"listen:\n  \xe9");
    let load = |path: &str| {
        redrive::config::Config::load(std::path::Path::new(path), &environment)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        load("none.yaml"),
        "none.yaml: cannot be read: entity not found"
    );
    assert_eq!(load("latin1.yaml"), "latin1.yaml:2:3: not UTF-8 text");
}

/// Pieces that a configuration is made of, so that random files get past the YAML parser.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "listen",
            "grpc",
            "providers",
            "p",
            "base_url",
            "'http://h'",
            "routes",
            "r",
            "targets",
            "provider",
            "model",
            "m",
            "timers",
            "connect",
            "10s",
            "0",
            "-1",
            "1e400",
            ".nan",
            "~",
            "true",
            "off",
            "budgets",
            "credentials",
            "api_key",
            "{env: OPENAI_API_KEY}",
            "headers",
            ": ",
            ":\n  ",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ", ",
            "&a ",
            "*a",
            "<<",
            "!!str ",
            "!!binary ",
            "? ",
            "| ",
            "> ",
            "'",
            "\"",
            "#",
            "---\n",
            "%YAML 1.2\n",
            "\u{feff}",
            "\0",
            "99999999999999999999999999",
            "0x10",
            "é",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,200}") {
        let _ = parse(&text).map_err(|errors| errors.to_string());
    }

    #[test]
    fn arbitrary_files_never_panic_and_errors_have_positions(pieces in prop::collection::vec(piece(), 0..60)) {
        let text = pieces.concat();
        if let Err(errors) = parse(&text) {
            prop_assert!(!errors.errors().is_empty());
            for error in errors.errors() {
                if let Some((line, column)) = error.position {
                    prop_assert!(line >= 1 && column >= 1);
                }
            }
        }
    }

    #[test]
    fn damage_to_the_example_never_panics(at in any::<prop::sample::Index>(), with in piece()) {
        let example = include_str!("../../examples/redrive.yaml");
        let mut at = at.index(example.len());
        while !example.is_char_boundary(at) {
            at -= 1;
        }
        let damaged = format!("{}{with}{}", &example[..at], &example[at..]);
        let _ = parse(&damaged).map_err(|errors| errors.to_string());
    }
}
