//! The items of an SSE stream, found in the plainest way: line by line. Slow, complete only for what
//! the recordings hold, and without a line of the splitter in it.

use serde_json::Value;

/// One item of a stream and where it stands.
pub struct Item {
    /// The first byte of its first line.
    pub start: usize,
    /// So many bytes show its content in full.
    pub content_end: usize,
    /// So many bytes complete it: the line that ends it has begun to end.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// Kinds of item.
pub enum Kind {
    Comment,
    /// An event: its name and its data.
    Event(String, String),
    /// A field that the grammar does not know, with a JSON object in it.
    Field(String),
}

/// Cuts a recording into its items. An event without its blank line is included if its data is whole.
pub fn items(bytes: &[u8]) -> Vec<Item> {
    let text = std::str::from_utf8(bytes).expect("a recording is UTF-8");
    let mut items = Vec::new();
    let mut name = String::new();
    let mut data: Vec<&str> = Vec::new();
    let (mut first, mut content_end) = (None, 0);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = rest.find(['\r', '\n']).unwrap_or(rest.len());
        let line = &rest[..length];
        let line_end = at + length;
        let next = line_end
            + if rest[length..].starts_with("\r\n") {
                2
            } else {
                usize::from(line_end < text.len())
            };
        if line.is_empty() {
            if let Some(start) = first.take() {
                let kind = Kind::Event(std::mem::take(&mut name), data.join("\n"));
                items.push(Item {
                    start,
                    content_end,
                    end: line_end + 1,
                    kind,
                });
                data.clear();
            }
            at = next;
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let item = |kind| Item {
            start: at,
            content_end: line_end,
            end: line_end + 1,
            kind,
        };
        match field {
            "" => items.push(item(Kind::Comment)),
            "data" => {
                first.get_or_insert(at);
                content_end = line_end;
                data.push(value);
            }
            "event" => {
                first.get_or_insert(at);
                name = value.to_owned();
            }
            _ if value.starts_with('{') && field == "error" => {
                items.push(item(Kind::Field(value.to_owned())));
            }
            _ => {}
        }
        at = next;
    }
    if let Some(start) = first {
        let data = data.join("\n");
        assert!(
            data == "[DONE]" || serde_json::from_str::<Value>(&data).is_ok(),
            "an unterminated event of the recordings is whole: {data}"
        );
        let end = usize::MAX;
        items.push(Item {
            start,
            content_end,
            end,
            kind: Kind::Event(name, data),
        });
    }
    items
}
