//! Errors outside the events of a stream.

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    shape::{Shape, each, object, of_any_other_type},
    text::truthy,
};

object! {
    /// What tells that a JSON text is an error.
    Body {
        error: Option<&'a RawValue>,
        object: Option<&'a RawValue>,
        message: Option<&'a RawValue>,
        detail: Option<&'a RawValue>,
    }
}

impl Body<'_> {
    /// A `message` that is an object is that of an event.
    fn tells(&self) -> bool {
        truthy(self.error)
            || self
                .object
                .is_some_and(|object| object.get() == "\"error\"")
            || (truthy(self.message)
                && self
                    .message
                    .is_some_and(|text| !text.get().starts_with('{')))
            || truthy(self.detail)
    }
}

/// `true` if JSON tells of an error, in any of the shapes that error bodies have: an object with an
/// `error`, a `message` or a `detail`, or a list of one such.
pub(in crate::protocol) fn is_error_body(json: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<&RawValue>(json) else {
        return false;
    };
    if value.get().starts_with('[') {
        let mut any = false;
        let read = each(value, |body: Body<'_>| any |= body.tells());
        return read.is_ok() && any;
    }
    serde_json::from_str(value.get()).is_ok_and(|body: Body<'_>| body.tells())
}
