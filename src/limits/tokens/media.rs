//! What is in a body and is no text: images, documents, sound.

use base64::{Engine, engine::general_purpose::STANDARD};

/// An hour of sound at the lowest rates in use (6 kb/s) has 23 bytes for each of the 32 tokens a second that
/// Gemini counts, the most of all vendors.
const SOUND_BYTES_PER_TOKEN: u64 = 16;

/// What a page of a document costs beside its bytes: an image of it. Anthropic shows its models both.
const PAGE: u64 = 5_000;

/// How much base64 tells the kind of what it encodes: 12 bytes of it.
const PROBE: usize = 16;

/// The media of one body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Media {
    /// How many bytes of the body encode them.
    pub(super) encoded: usize,
    /// Images, and what is only referred to.
    images: u64,
    /// Documents.
    documents: u64,
    /// Bytes of documents, and of what nobody knows.
    document_bytes: usize,
    /// Bytes of sound and video.
    sound_bytes: usize,
}

impl Media {
    /// Counts a value that stands where media stand. `false` if it is text.
    pub(super) fn add(&mut self, value: &str) -> bool {
        let payload = match value.strip_prefix("data:") {
            Some(uri) => uri.split_once(";base64,").map(|(_, payload)| payload),
            None => Some(value),
        };
        let Some(payload) = payload.filter(|payload| is_base64(payload)) else {
            return false;
        };
        self.encoded = self.encoded.saturating_add(payload.len());
        let bytes = payload.len().div_ceil(4).saturating_mul(3);
        match kind(payload) {
            Kind::Image => self.images += 1,
            Kind::Sound => self.sound_bytes = self.sound_bytes.saturating_add(bytes),
            Kind::Other => self.document_bytes = self.document_bytes.saturating_add(bytes),
        }
        true
    }

    /// Counts something that the provider fetches or keeps: as an image.
    pub(super) fn add_reference(&mut self) {
        self.images += 1;
    }

    /// Counts a block that says that it is a document, for its first page.
    pub(super) fn add_document(&mut self) {
        self.documents += 1;
    }

    /// Their tokens at most, where `by_bytes` counts text.
    pub(super) fn tokens(&self, per_image: u64, by_bytes: impl Fn(usize) -> u64) -> u64 {
        let images = self.images.saturating_mul(per_image);
        let pages = self.documents.saturating_mul(PAGE);
        let sound = (self.sound_bytes as u64).div_ceil(SOUND_BYTES_PER_TOKEN);
        [images, pages, sound]
            .into_iter()
            .fold(by_bytes(self.document_bytes), u64::saturating_add)
    }
}

enum Kind {
    Image,
    /// Sound, or pictures with sound.
    Sound,
    Other,
}

/// By the first bytes, not by what the body declares: the one cannot be wrong, and the other may stand after
/// the data.
fn kind(payload: &str) -> Kind {
    let head = payload
        .get(..PROBE)
        .and_then(|head| STANDARD.decode(head).ok());
    let head = head.as_deref().unwrap_or_default();
    match head {
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] | [b'G', b'I', b'F', b'8', ..] => {
            Kind::Image
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Kind::Image,
        [b'R', b'I', b'F', b'F', ..]
        | [b'O', b'g', b'g', b'S', ..]
        | [b'f', b'L', b'a', b'C', ..] => Kind::Sound,
        [b'I', b'D', b'3', ..] | [_, _, _, _, b'f', b't', b'y', b'p', ..] => Kind::Sound,
        // MPEG audio: eleven set bits, of which a byte order mark would have more.
        [0xff, frame, ..] if (0xe0..0xfe).contains(frame) => Kind::Sound,
        _ => Kind::Other,
    }
}

/// Nothing but base64, in lines or not, and enough of it to tell.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let digit = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'\r' | b'\n')
    };
    text.len() >= PROBE && text.len() - digits.len() <= 2 && digits.bytes().all(digit)
}
