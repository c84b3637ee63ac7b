//! Content-encoding undone as it arrives.
//!
//! We ask for `identity`. Some gateways compress all the same: gzip is decoded with a flush after
//! every few bytes, so that an event comes out as soon as its bytes are in; every other encoding is
//! refused by name.

use std::{io::Write, mem};

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http::{HeaderMap, header::CONTENT_ENCODING};

/// Compressed bytes decoded at a time. Deflate expands at most 1032-fold, so that one step yields
/// less than 67 KiB.
const STEP_BYTES: usize = 64;

/// A piece goes out once it has this many bytes.
const PIECE_BYTES: usize = 16 << 10;

/// Undoes the encoding of one body.
pub(super) enum Decoder {
    /// Nothing to undo.
    Identity,
    /// gzip.
    Gzip(Box<Gunzip>),
    /// An encoding that was not asked for and that we cannot undo.
    Unknown(String),
}

impl Decoder {
    /// The decoder that a response head asks for.
    pub(super) fn new(headers: &HeaderMap) -> Self {
        let values = headers.get_all(CONTENT_ENCODING).iter();
        let named: Vec<String> = values
            .flat_map(|value| {
                String::from_utf8_lossy(value.as_bytes())
                    .into_owned()
                    .into_codings()
            })
            .collect();
        match named.as_slice() {
            [] => Self::Identity,
            [one] if one == "gzip" || one == "x-gzip" => Self::Gzip(Box::new(Gunzip::new())),
            several => Self::Unknown(several.join(", ").chars().take(64).collect()),
        }
    }

    /// The body has ended: is it whole?
    pub(super) fn finish(&mut self) -> Result<(), BadGzip> {
        match self {
            Self::Gzip(gunzip) => gunzip.finish(),
            Self::Identity | Self::Unknown(_) => Ok(()),
        }
    }
}

trait Codings {
    fn into_codings(self) -> Vec<String>;
}

impl Codings for String {
    /// The codings of one header value, without those that change nothing.
    fn into_codings(self) -> Vec<String> {
        let codings = self
            .split(',')
            .map(|coding| coding.trim().to_ascii_lowercase());
        codings
            .filter(|coding| !coding.is_empty() && coding != "identity")
            .collect()
    }
}

/// A gzip stream being decoded.
pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    input: Bytes,
    started: bool,
}

/// The bytes are not gzip, or the stream ended early.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadGzip;

impl Gunzip {
    fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Vec::new()),
            input: Bytes::new(),
            started: false,
        }
    }

    /// Adds compressed bytes; what was added before must have been taken.
    pub(super) fn push(&mut self, input: Bytes) {
        self.started |= !input.is_empty();
        self.input = input;
    }

    /// The next piece, bounded; `None` when more input is needed.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, BadGzip> {
        while self.input.has_remaining() && self.decoder.get_ref().len() < PIECE_BYTES {
            let step = self.input.split_to(self.input.len().min(STEP_BYTES));
            self.decoder.write_all(&step).map_err(|_| BadGzip)?;
            self.decoder.flush().map_err(|_| BadGzip)?;
        }
        let piece = mem::take(self.decoder.get_mut());
        Ok((!piece.is_empty()).then(|| piece.into()))
    }

    /// The body has ended: has the gzip stream, too?
    fn finish(&mut self) -> Result<(), BadGzip> {
        match self.started {
            true => self.decoder.try_finish().map_err(|_| BadGzip),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(gunzip: &mut Gunzip, input: &[u8]) -> Vec<u8> {
        gunzip.push(Bytes::copy_from_slice(input));
        let mut out = Vec::new();
        while let Some(piece) = gunzip.next().unwrap() {
            out.extend_from_slice(&piece);
        }
        out
    }

    #[test]
    fn an_event_comes_out_as_soon_as_its_bytes_are_in() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut gunzip = Gunzip::new();
        for event in ["data: one\n\n", "data: two\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            let wire = mem::take(encoder.get_mut());
            assert_eq!(decode(&mut gunzip, &wire), event.as_bytes());
        }
        let rest = encoder.finish().unwrap();
        assert_eq!(decode(&mut gunzip, &rest), b"");
        assert_eq!(gunzip.finish(), Ok(()));
    }

    #[test]
    fn members_follow_one_another_at_any_split() {
        let wire = [gzip(b"first "), gzip(b"second")].concat();
        for cut in 0..=wire.len() {
            let mut gunzip = Gunzip::new();
            let mut out = decode(&mut gunzip, &wire[..cut]);
            out.extend(decode(&mut gunzip, &wire[cut..]));
            assert_eq!(out, b"first second", "cut at {cut}");
            assert_eq!(gunzip.finish(), Ok(()), "cut at {cut}");
        }
    }

    #[test]
    fn a_stream_that_ends_early_is_not_whole() {
        let wire = gzip(b"all of it");
        for cut in 1..wire.len() {
            let mut gunzip = Gunzip::new();
            decode(&mut gunzip, &wire[..cut]);
            assert_eq!(gunzip.finish(), Err(BadGzip), "cut at {cut}");
        }
        assert_eq!(
            Gunzip::new().finish(),
            Ok(()),
            "an empty body has nothing to end"
        );
    }

    #[test]
    fn a_bomb_goes_out_in_bounded_pieces() {
        let mut gunzip = Gunzip::new();
        gunzip.push(gzip(&vec![0; 32 << 20]).into());
        let mut total = 0;
        while let Some(piece) = gunzip.next().unwrap() {
            assert!(
                piece.len() < PIECE_BYTES + 1032 * STEP_BYTES,
                "{} bytes",
                piece.len()
            );
            total += piece.len();
        }
        assert_eq!(total, 32 << 20);
    }

    #[test]
    fn what_is_not_gzip_is_an_error() {
        let mut gunzip = Gunzip::new();
        gunzip.push(Bytes::from_static(
            b"data: plain text although the head says gzip\n\n",
        ));
        assert_eq!(gunzip.next(), Err(BadGzip));
        let mut wire = gzip(b"some text");
        let last = wire.len() - 6;
        wire[last] ^= 1;
        let mut gunzip = Gunzip::new();
        decode(&mut gunzip, &wire);
        assert_eq!(gunzip.finish(), Err(BadGzip), "the checksum counts");
    }

    #[test]
    fn encodings_are_read_from_the_head() {
        let head = |value: &'static str| {
            let headers =
                HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(value))]);
            Decoder::new(&headers)
        };
        assert!(matches!(Decoder::new(&HeaderMap::new()), Decoder::Identity));
        assert!(matches!(head("identity"), Decoder::Identity));
        assert!(matches!(head("GZIP"), Decoder::Gzip(_)));
        assert!(matches!(head("identity, x-gzip"), Decoder::Gzip(_)));
        for refused in ["br", "gzip, br", "zstd"] {
            let Decoder::Unknown(name) = head(refused) else {
                panic!("{refused} was accepted")
            };
            assert_eq!(name, refused);
        }
    }
}
