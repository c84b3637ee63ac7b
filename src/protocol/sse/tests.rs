use super::{Item, Splitter};
use crate::protocol::{DecodeError, MAX_EVENT_BYTES};

/// Feeds `reads` one after the other, ends, and returns the items in words.
fn split(reads: &[&[u8]], clean: bool) -> Vec<String> {
    let mut splitter = Splitter::default();
    let mut items = Vec::new();
    for mut read in reads.iter().copied() {
        while let Some(item) = splitter.next(&mut read) {
            items.push(words(item));
        }
        assert!(read.is_empty() || items.last().is_some_and(|item| item.starts_with("Err")));
    }
    while let Some(item) = splitter.end(clean) {
        items.push(words(item));
    }
    items
}

fn words(item: Result<Item<'_>, DecodeError>) -> String {
    let text = String::from_utf8_lossy;
    match item {
        Ok(Item::Event { name: [], data }) => format!("data {}", text(data)),
        Ok(Item::Event { name, data }) => format!("{} {}", text(name), text(data)),
        Ok(Item::Comment) => "comment".to_owned(),
        Ok(Item::Field { name, value }) => format!("field {}={}", text(name), text(value)),
        Ok(Item::Json(json)) => format!("json {}", text(json)),
        Err(error) => format!("Err {error:?}"),
    }
}

/// The same, whole, byte by byte and cut in two at every place: all must agree.
fn split_anyhow(body: &[u8]) -> Vec<String> {
    let whole = split(&[body], true);
    let bytes: Vec<&[u8]> = body.chunks(1).collect();
    assert_eq!(split(&bytes, true), whole, "byte by byte");
    for at in 0..=body.len() {
        let (head, tail) = body.split_at(at);
        assert_eq!(split(&[head, tail], true), whole, "cut at {at}");
    }
    whole
}

#[test]
fn every_line_end_separates_lines_also_when_reads_cut_it() {
    for end in ["\n", "\r", "\r\n"] {
        let body =
            "data: a\n\n: note\ndata: b\ndata:c\n\nevent: x\ndata:  d\n\n".replace('\n', end);
        assert_eq!(
            split_anyhow(body.as_bytes()),
            ["data a", "comment", "data b\nc", "x  d"],
            "{end:?}"
        );
    }
}

#[test]
fn an_event_is_out_as_soon_as_its_blank_line_begins_to_end() {
    let mut splitter = Splitter::default();
    let mut read: &[u8] = b"data: a\r\n\r";
    assert_eq!(
        splitter.next(&mut read).map(words),
        Some("data a".to_owned())
    );
}

#[test]
fn an_event_inside_one_read_is_borrowed_from_it() {
    let body = b"data: borrowed\n\n".as_slice();
    let mut splitter = Splitter::default();
    let mut read = body;
    let Some(Ok(Item::Event { data, .. })) = splitter.next(&mut read) else {
        panic!("no event");
    };
    assert!(body.as_ptr_range().contains(&data.as_ptr()));
    assert_eq!(splitter.held_bytes(), 0);
}

#[test]
fn one_byte_order_mark_is_dropped() {
    assert_eq!(split_anyhow(b"\xEF\xBB\xBFdata: a\n\n"), ["data a"]);
    assert_eq!(
        split_anyhow(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n"),
        ["Err NotAStream"]
    );
    assert_eq!(split_anyhow(b"\xEF\xBBdata: a\n\n"), ["Err NotAStream"]);
}

#[test]
fn a_name_lasts_for_one_event_and_the_last_one_counts() {
    assert_eq!(
        split_anyhow(b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n"),
        ["b 1", "data 2"]
    );
}

#[test]
fn an_event_without_data_proves_life() {
    assert_eq!(
        split_anyhow(b"event: ping\n\ndata\n\ndata:\n\n\n\nid: 7\n\n"),
        ["ping ", "data ", "data "]
    );
}

#[test]
fn id_retry_and_unknown_fields_are_ignored() {
    assert_eq!(
        split_anyhow(b"id: 1\nretry: 5\ncolour: red\ndata: a\n data: b\nDATA: c\n\n"),
        ["data a"]
    );
}

#[test]
fn an_unknown_field_that_may_tell_of_an_error_is_handed_out() {
    assert_eq!(
        split_anyhow(b"data: a\n\nerror: {\"message\":\"m\"}\n\nerror: gone\n\nerror:\n\n"),
        [
            "data a",
            "field error={\"message\":\"m\"}",
            "field error=gone"
        ]
    );
}

#[test]
fn an_unterminated_event_counts_only_after_a_clean_end_and_if_it_is_complete() {
    for whole in [
        "data: {\"a\":1}",
        "data: [DONE]",
        "data: {\"a\":1}\n",
        "data: [DONE]\r\n",
    ] {
        assert_eq!(split(&[whole.as_bytes()], true).len(), 1, "{whole:?}");
        assert_eq!(split(&[whole.as_bytes()], false), [""; 0], "{whole:?}");
    }
    for part in [
        "data: {\"a\":1",
        "data: [DON",
        "data: {\"a\":1}\ndata: {",
        "dat",
        "event: x",
        "",
    ] {
        let body = format!("data: 1\n\n{part}");
        assert_eq!(split(&[body.as_bytes()], true), ["data 1"], "{part:?}");
    }
}

#[test]
fn json_outside_the_fields_is_collected_over_its_lines() {
    let pretty = "[{\n  \"error\": {\n    \"message\": \"no {brackets} \\\" here\"\n  }\n}]\n";
    assert_eq!(split_anyhow(pretty.as_bytes()), [format!("json {pretty}")]);
    assert_eq!(
        split_anyhow(b"data: 1\n\n{\"error\":1}\ndata: 2\n\n"),
        ["data 1", "json {\"error\":1}", "data 2"]
    );
    assert_eq!(
        split_anyhow(b"  \n\n  {\"error\":1}"),
        ["json {\"error\":1}"]
    );
}

#[test]
fn json_outside_the_fields_does_not_swallow_what_follows() {
    assert_eq!(split_anyhow(b"{\"error\":\ndata: 1\n\n"), ["Err Json"]);
    assert_eq!(split_anyhow(b"{\"error\n\":1}"), ["Err Json"]);
    assert_eq!(split_anyhow(b"{\"error\":"), [""; 0]);
}

#[test]
fn what_does_not_begin_like_a_stream_is_refused_at_once() {
    for text in [
        "<!DOCTYPE html>",
        "Internal Server Error",
        "no healthy upstream",
        "\x00",
        "é",
    ] {
        let mut splitter = Splitter::default();
        let mut read = text.as_bytes();
        assert_eq!(
            splitter.next(&mut read).map(words),
            Some("Err NotAStream".into()),
            "{text}"
        );
        assert_eq!(splitter.next(&mut b"data: 1\n\n".as_slice()), None);
        assert_eq!(split_anyhow(text.as_bytes()), ["Err NotAStream"]);
    }
    assert_eq!(split_anyhow(b"unauthorized"), ["Err NotAStream"]);
    assert_eq!(split_anyhow(&[b'a'; 65]), ["Err NotAStream"]);
    assert_eq!(split_anyhow(b" \r\ndata: 1\n\n"), ["data 1"]);
    assert_eq!(split_anyhow(b"\n\t data: 1\n\ndata: 2\n\n"), ["data 2"]);
    assert_eq!(split_anyhow(b"dat"), [""; 0], "cut off, not foreign");
    assert_eq!(split_anyhow(b"dat\n"), ["Err NotAStream"]);
}

#[test]
fn text_between_events_is_ignored() {
    assert_eq!(
        split_anyhow(b"data: 1\n\n<html>\n[note]\n\ndata: 2\n\n"),
        ["data 1", "data 2"]
    );
}

#[test]
fn an_event_of_the_largest_size_passes() {
    let mut body = b"data: ".to_vec();
    body.resize(MAX_EVENT_BYTES, b'a');
    let mut splitter = Splitter::default();
    for mut read in body.chunks(1 << 20).chain([b"\n".as_slice()]) {
        assert_eq!(splitter.next(&mut read), None);
    }
    let mut blank: &[u8] = b"\n";
    let Some(Ok(Item::Event { data, .. })) = splitter.next(&mut blank) else {
        panic!("no event");
    };
    assert_eq!(data.len(), MAX_EVENT_BYTES - 6);
    assert_eq!(
        splitter.next(&mut b"data: 1\n\n".as_slice()).map(words),
        Some("data 1".into())
    );
    assert!(
        splitter.held_bytes() <= MAX_EVENT_BYTES + 1024,
        "{}",
        splitter.held_bytes()
    );
}

#[test]
fn a_larger_event_is_refused_without_being_held() {
    let line = [b'a'; 1 << 16];
    let endless_line: Vec<&[u8]> = [b"data: ".as_slice()]
        .into_iter()
        .chain([line.as_slice(); 300])
        .collect();
    let mut many_lines = Vec::new();
    let mut json = vec![b"{\n".as_slice()];
    for _ in 0..300 {
        many_lines.extend([b"data: ".as_slice(), &line, b"\n"]);
        json.extend([b"\"".as_slice(), &line, b"\":\n"]);
    }
    for reads in [endless_line, many_lines, json] {
        let mut splitter = Splitter::default();
        let mut most = 0;
        let mut found = None;
        for mut read in reads {
            if let Some(item) = splitter.next(&mut read) {
                found = found.or(Some(words(item)));
            }
            most = most.max(splitter.held_bytes());
        }
        assert_eq!(found.as_deref(), Some("Err TooLarge"));
        assert!(most <= 2 * MAX_EVENT_BYTES, "held {most}");
        assert_eq!(splitter.held_bytes(), 0);
    }
}
