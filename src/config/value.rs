//! The kinds of values in the file. Bounds and defaults are part of the type: what parses is in range,
//! and the JSON Schema states the same bounds.

mod later;
mod number;
mod size;
mod span;

pub(crate) use self::span::in_words;
pub(super) use self::{
    later::{Later, NOT_AVAILABLE},
    number::{Count, Share},
    size::{GIB, KIB, MIB, Size, TIB},
    span::{DAY, HOUR, SECOND, Span},
};
