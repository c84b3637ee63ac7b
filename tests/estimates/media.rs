//! Images, documents and sound in a body: never text, never nothing.

use base64::{Engine, engine::general_purpose::STANDARD};
use redrive::limits::tokens::input;
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0";
const GIF: &[u8] = b"GIF89a";
const WEBP: &[u8] = b"RIFF\x24\0\0\0WEBPVP8 ";
const WAV: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";
const MP3: &[u8] = b"ID3\x04\0\0\0\0\0\0";
const PDF: &[u8] = b"%PDF-1.7\n";

/// A file that begins as one of its kind, in base64.
fn file(begins: &[u8], bytes: usize) -> String {
    let mut content = begins.to_vec();
    content.resize(bytes, 0x5a);
    STANDARD.encode(content)
}

fn uri(kind: &str, content: &str) -> String {
    format!("data:{kind};base64,{content}")
}

/// A request of one message with these parts.
fn request(parts: Value) -> Value {
    json!({"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": parts}]})
}

fn bound(model: &str, body: &Value) -> u64 {
    input(model, body.to_string().as_bytes(), 1)
}

/// What a part adds to a request, beyond its text.
fn added(model: &str, part: &Value) -> u64 {
    bound(model, &request(json!([part]))) - bound(model, &request(json!([])))
}

/// Far more than any of these images costs, as text.
const LARGE: usize = 1 << 16;

/// As every protocol writes an image of `content`.
fn images(content: &str) -> Vec<Value> {
    vec![
        json!({"type": "image_url", "image_url": {"url": uri("image/png", content), "detail": "high"}}),
        json!({"type": "image_url", "image_url": uri("image/png", content)}),
        json!({"type": "input_image", "image_url": uri("image/png", content)}),
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": content}}),
        json!({"type": "tool_result", "content": [{"type": "image", "source": {"data": content}}]}),
        json!({"inlineData": {"mimeType": "image/png", "data": content}}),
        json!({"inline_data": {"mime_type": "image/png", "data": content}}),
        json!({"image": {"format": "png", "source": {"bytes": content}}}),
        json!({"role": "user", "content": "hi", "images": [content]}),
    ]
}

#[test]
fn an_image_counts_as_one_whatever_its_size() {
    for begins in [PNG, JPEG, GIF, WEBP] {
        for part in images(&file(begins, LARGE)) {
            for (model, image) in [
                ("claude-opus-4-7", 4_784),
                ("gpt-4o", 3_779),
                ("gpt-5.4", 10_000),
                ("qwen3-vl", 16_384),
            ] {
                let added = added(model, &part);
                let shown = part.to_string().replace(&file(begins, LARGE), "..");
                assert!(
                    (image..image + 250).contains(&added),
                    "{model}: {added}: {shown}"
                );
            }
        }
    }
}

/// It states 33 times the tokens of gpt-4o for the same image.
#[test]
fn the_one_model_with_dear_images_is_known() {
    let part = &images(&file(PNG, 1_000))[0];
    assert!(added("gpt-4o-mini-2024-07-18", part) >= 48_169);
}

#[test]
fn several_images_add_up() {
    let parts = images(&file(PNG, LARGE));
    let nine = bound("claude", &request(json!(parts)));
    assert!((9 * 4_784..9 * 5_000).contains(&nine), "{nine}");
    let two = json!({"role": "user", "images": [file(PNG, 5_000), file(JPEG, 5_000)]});
    assert!((2 * 4_784..2 * 5_000).contains(&added("claude", &two)));
}

#[test]
fn what_is_only_referred_to_counts_as_an_image() {
    for part in [
        json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}),
        json!({"type": "input_image", "image_url": "https://example.com/a.png"}),
        json!({"type": "input_image", "file_id": "file-abc123"}),
        json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
        json!({"type": "image", "source": {"type": "file", "file_id": "file_011CNha8iCJcU1wXNR6q4V8w"}}),
        json!({"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}}),
    ] {
        let added = added("claude", &part);
        assert!((4_784..4_784 + 150).contains(&added), "{added}: {part}");
    }
}

#[test]
fn a_document_counts_by_its_bytes_and_a_page() {
    let content = file(PDF, 30_000);
    for part in [
        json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": content}}),
        json!({"type": "input_file", "filename": "a.pdf", "file_data": uri("application/pdf", &content)}),
        json!({"type": "file", "file": {"filename": "a.pdf", "file_data": uri("application/pdf", &content)}}),
    ] {
        for model in ["claude", "gpt-4o"] {
            let added = added(model, &part);
            assert!((35_000..35_250).contains(&added), "{model}: {added}");
            let body = request(json!([part])).to_string();
            let fewer = input(model, body.as_bytes(), 4);
            assert!((12_500..12_800).contains(&fewer), "{model}: {fewer}");
        }
    }
    let elsewhere =
        json!({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}});
    assert!((9_784..9_900).contains(&added("claude", &elsewhere)));
}

#[test]
fn sound_counts_by_its_bytes() {
    for begins in [
        WAV,
        MP3,
        b"OggS\0\x02",
        b"fLaC\0\0\0\x22",
        b"\xff\xfb\x90\x64",
        b"\0\0\0\x20ftypM4A ",
    ] {
        let content = file(begins, 160_000);
        for part in [
            json!({"type": "input_audio", "input_audio": {"data": content, "format": "wav"}}),
            json!({"inlineData": {"mimeType": "audio/wav", "data": content}}),
        ] {
            let added = added("gpt-4o-audio-preview", &part);
            assert!((10_000..10_100).contains(&added), "{added} for {begins:?}");
        }
    }
}

/// What an application makes up, and what a message says, is text to the model whatever it looks like.
#[test]
fn text_that_looks_like_an_image_is_text() {
    let content = file(PNG, 30_000);
    let uri = uri("image/png", &content);
    for part in [
        json!({"type": "text", "text": uri}),
        json!({"type": "text", "text": content}),
        json!({"type": "tool_use", "name": "f", "input": {"image_url": {"url": uri}}}),
        json!({"type": "tool_use", "name": "f", "input": {"source": {"data": content}}}),
        json!({"functionCall": {"args": {"images": [content]}}}),
        json!({"functionResponse": {"response": {"inlineData": {"data": content}}}}),
        json!({"url": uri, "data": content}),
        json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "word ".repeat(8_000)}}),
    ] {
        let shown = part.to_string().chars().take(60).collect::<String>();
        assert!(
            added("claude", &part) >= 40_000,
            "{}: {shown}",
            added("claude", &part)
        );
        assert!(
            added("gpt-4o", &part) >= 8_000,
            "{}: {shown}",
            added("gpt-4o", &part)
        );
    }
}

/// In a list of responses the messages are named `input`, as a call's arguments are elsewhere.
#[test]
fn an_image_in_a_responses_input_is_an_image() {
    let content = uri("image/png", &file(PNG, LARGE));
    let body = json!({"model": "gpt-4o", "input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": content},
    ]}]});
    let bound = bound("gpt-4o", &body);
    assert!((3_779..4_000).contains(&bound), "{bound}");
}

#[test]
fn base64_in_lines_and_escaped_is_not_text_either() {
    let content = file(PNG, LARGE);
    let lines: Vec<&str> = (0..content.len())
        .step_by(76)
        .map(|at| &content[at..content.len().min(at + 76)])
        .collect();
    let wrapped = json!({"type": "image", "source": {"data": lines.join("\r\n")}});
    // Each line keeps the two bytes by which its end is escaped.
    let kept = 2 * lines.len() as u64;
    assert!((4_784..4_784 + kept + 200).contains(&added("claude", &wrapped)));
    let escaped = request(json!([{"type": "image", "source": {"data": content}}]))
        .to_string()
        .replace('/', "\\/");
    assert!(input("claude", escaped.as_bytes(), 1) < 30_000);
}
