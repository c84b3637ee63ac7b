//! The verdict on bytes that are not what the protocol allows.

use super::{Class, Failure, Origin, Stage};
use crate::protocol::{DecodeError, MAX_EVENT_BYTES};

/// The verdict on a stream that could not be decoded.
///
/// Damaged bytes may come whole the next time. An event beyond the bound would come again, and a
/// whole completion was paid for: a replay would pay again.
pub fn classify(error: DecodeError) -> Failure {
    let (class, text) = match error {
        DecodeError::TooLarge => {
            let text = format!("an event of the stream is larger than {MAX_EVENT_BYTES} bytes");
            (Class::TooLarge, text)
        }
        DecodeError::Json => (
            Class::Corrupt,
            "an event of the stream is not what the protocol allows".to_owned(),
        ),
        DecodeError::Utf8 => (Class::Corrupt, "the stream is not UTF-8".to_owned()),
        DecodeError::NotAStream => (
            Class::Corrupt,
            "the body of a successful response is not a stream".to_owned(),
        ),
        DecodeError::Gap => (
            Class::Corrupt,
            "events of the stream are missing: their sequence numbers leave a gap".to_owned(),
        ),
        DecodeError::Restarted => (
            Class::Corrupt,
            "the stream began again as another response".to_owned(),
        ),
        DecodeError::WholeCompletion => (
            Class::Unclassified,
            "a whole completion came where a stream was asked for".to_owned(),
        ),
    };
    Failure::new(class, Origin::Provider, Stage::Stream, text)
}
