use super::*;

fn text(content: Option<(u32, u32, delta::Content)>) -> Option<(u32, String)> {
    match content {
        Some((_, block, delta::Content::Text(t) | delta::Content::ToolArguments(t))) => {
            Some((block, t))
        }
        _ => None,
    }
}

#[test]
fn a_reader_that_keeps_up_gets_every_piece_and_one_that_lags_gets_them_merged() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::Text("a"));
    assert_eq!(text(transcript.next_delta()), Some((0, "a".into())));
    assert_eq!(transcript.next_delta(), None);
    transcript.append(&Delta::Text("b"));
    transcript.append(&Delta::Text("c"));
    assert_eq!(text(transcript.next_delta()), Some((0, "bc".into())));
    assert!(!transcript.has_pending());
}

#[test]
fn a_change_of_kind_opens_a_new_block_and_calls_are_kept_apart() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::Reasoning("r"));
    transcript.append(&Delta::Text("t"));
    transcript.append(&Delta::ToolCallStart {
        call: 0,
        id: "a",
        name: "f",
    });
    transcript.append(&Delta::ToolCallStart {
        call: 1,
        id: "b",
        name: "g",
    });
    transcript.append(&Delta::ToolArguments {
        call: 0,
        fragment: "{}",
    });
    transcript.append(&Delta::ToolArguments {
        call: 1,
        fragment: "[]",
    });
    let texts: Vec<&str> = transcript
        .blocks()
        .iter()
        .map(|b| b.text.as_str())
        .collect();
    assert_eq!(texts, ["r", "t", "{}", "[]"]);
}

#[test]
fn blocks_that_the_protocol_numbers_are_kept_apart_and_found_again() {
    let mut transcript = Transcript::default();
    transcript.select(Some(0));
    transcript.append(&Delta::Text("a"));
    transcript.select(Some(1));
    transcript.append(&Delta::Text("b"));
    transcript.select(Some(0));
    transcript.append(&Delta::Text("c"));
    let blocks: Vec<&str> = transcript.blocks().iter().map(|b| &*b.text).collect();
    assert_eq!(blocks, ["ac", "b"]);
}

#[test]
fn a_signature_ends_its_reasoning_block_and_may_stand_alone() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::Reasoning("a"));
    transcript.append(&Delta::ReasoningSignature("s"));
    transcript.append(&Delta::Reasoning("b"));
    transcript.append(&Delta::Text("t"));
    transcript.append(&Delta::ReasoningSignature("u"));
    let blocks: Vec<(&str, Option<&str>)> = transcript
        .blocks()
        .iter()
        .map(|b| (&*b.text, b.signature.as_deref()))
        .collect();
    let signed = [("a", Some("s")), ("b", None), ("t", None), ("", Some("u"))];
    assert_eq!(blocks, signed);
}

#[test]
fn native_blocks_are_given_whole_and_hidden_reasoning_is_not_previewed() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::RedactedReasoning("secret"));
    transcript.append(&Delta::NativeBlock("{}"));
    let block = Some((0, 1, delta::Content::NativeBlock(b"{}".to_vec())));
    assert_eq!(transcript.next_delta(), block);
    assert_eq!(transcript.next_delta(), None);
    assert!(!transcript.has_pending());
}

#[test]
fn rewinding_gives_everything_again() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::Text("abc"));
    transcript.next_delta();
    transcript.rewind();
    assert_eq!(text(transcript.next_delta()), Some((0, "abc".into())));
}

#[test]
fn a_large_backlog_is_cut_at_character_boundaries() {
    let mut transcript = Transcript::default();
    transcript.append(&Delta::Text(&"ä".repeat(MAX_DELTA_BYTES)));
    let mut total = 0;
    while let Some((_, piece)) = text(transcript.next_delta()) {
        assert!(piece.len() <= MAX_DELTA_BYTES);
        total += piece.len();
    }
    assert_eq!(total, 2 * MAX_DELTA_BYTES);
}

#[test]
fn native_events_are_given_once_and_again_after_a_rewind() {
    let mut transcript = Transcript::default();
    transcript.append_native(0, b"{}");
    transcript.append(&Delta::Text("t"));
    let native = Some((0, 0, delta::Content::NativeEvent(Bytes::from_static(b"{}"))));
    assert_eq!(transcript.next_delta(), native);
    assert_eq!(text(transcript.next_delta()), Some((0, "t".into())));
    assert!(!transcript.has_pending());
    transcript.rewind();
    assert_eq!(transcript.next_delta(), native);
}
