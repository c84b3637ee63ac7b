//! The bound of the output that a request states.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Key;

/// Where a bound may stand: the member of the body and the member of that, of which the first may be empty.
const BOUNDS: &[(&str, &str)] = &[
    ("", "max_tokens"),
    ("", "max_completion_tokens"),
    ("", "max_output_tokens"),
    ("generationConfig", "maxOutputTokens"),
    ("generation_config", "max_output_tokens"),
    ("inferenceConfig", "maxTokens"),
    ("options", "num_predict"),
];

/// The largest bound of the output that the request states, in tokens; `None` if it states none.
///
/// The largest, since providers differ in which of several they heed, and a limit that holds must hold for
/// each. Only positive numbers count, and of a name that stands twice both do. What follows the first error in a body that is not JSON is not read.
pub fn output(body: &[u8]) -> Option<u64> {
    let mut bounds = Bounds {
        place: Place::Body,
        largest: &mut None,
    };
    // What was read before an error counts.
    let _ = bounds
        .within(Place::Body)
        .deserialize(&mut serde_json::Deserializer::from_slice(body));
    *bounds.largest
}

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Body,
    /// A member of the body that may hold bounds.
    Member(&'static str),
    Bound,
    Elsewhere,
}

impl Place {
    fn of(self, key: &str) -> Self {
        let inside = match self {
            Self::Body => "",
            Self::Member(name) => name,
            Self::Bound | Self::Elsewhere => return Self::Elsewhere,
        };
        if BOUNDS.contains(&(inside, key)) {
            return Self::Bound;
        }
        let member = BOUNDS.iter().find(|(member, _)| *member == key);
        match member {
            Some((member, _)) if self == Self::Body && !member.is_empty() => Self::Member(member),
            _ => Self::Elsewhere,
        }
    }
}

/// Reads one value.
struct Bounds<'a> {
    place: Place,
    largest: &'a mut Option<u64>,
}

impl Bounds<'_> {
    fn within(&mut self, place: Place) -> Bounds<'_> {
        Bounds {
            place,
            largest: self.largest,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Bounds<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.place {
            Place::Elsewhere => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Bounds<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        if self.place == Place::Bound && number > 0 {
            *self.largest = (*self.largest).max(Some(number));
        }
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // Saturates, and makes nothing of what is negative.
        self.visit_u64(number.ceil() as u64)
    }

    fn visit_i64<E>(self, _negative: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(Key(key)) = members.next_key()? {
            let place = self.place.of(&key);
            members.next_value_seed(self.within(place))?;
        }
        Ok(())
    }
}
