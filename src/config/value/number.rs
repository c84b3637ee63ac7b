//! Whole numbers and shares.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Count<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Count<MIN, MAX, DEFAULT> {
    pub(in crate::config) fn u64(self) -> u64 {
        self.0
    }

    /// Saturates, which no `MAX` in use reaches.
    pub(in crate::config) fn u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    /// Saturates, which no `MAX` in use reaches on a 64-bit target.
    pub(in crate::config) fn usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Count<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        Count(DEFAULT)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Serialize for Count<MIN, MAX, DEFAULT> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de, const MIN: u64, const MAX: u64, const DEFAULT: u64> Deserialize<'de>
    for Count<MIN, MAX, DEFAULT>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let n = deserializer.deserialize_any(WholeNumber)?;
        match u64::try_from(n) {
            Ok(n) if (MIN..=MAX).contains(&n) => Ok(Count(n)),
            _ => Err(de::Error::custom(format_args!(
                "{n} is out of range: {MIN} to {MAX}"
            ))),
        }
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Count<MIN, MAX, DEFAULT> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "minimum": MIN, "maximum": MAX})
    }
}

struct WholeNumber;

impl Visitor<'_> for WholeNumber {
    type Value = i128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<i128, E> {
        Ok(n.into())
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<i128, E> {
        Ok(n.into())
    }
}

/// A share, from 0 to `MAX_PERCENT` hundredths.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Share<const MAX_PERCENT: u32, const DEFAULT_PERCENT: u32>(
    pub(in crate::config) f64,
);

impl<const MAX: u32, const DEFAULT: u32> Default for Share<MAX, DEFAULT> {
    fn default() -> Self {
        Share(f64::from(DEFAULT) / 100.0)
    }
}

impl<const MAX: u32, const DEFAULT: u32> Serialize for Share<MAX, DEFAULT> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de, const MAX: u32, const DEFAULT: u32> Deserialize<'de> for Share<MAX, DEFAULT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = deserializer.deserialize_any(Number)?;
        let max = f64::from(MAX) / 100.0;
        if (0.0..=max).contains(&share) {
            Ok(Share(share))
        } else {
            Err(de::Error::custom(format_args!(
                "{share} is out of range: 0 to {max}"
            )))
        }
    }
}

impl<const MAX: u32, const DEFAULT: u32> JsonSchema for Share<MAX, DEFAULT> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number", "minimum": 0, "maximum": f64::from(MAX) / 100.0})
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<f64, E> {
        Ok(n)
    }

    // Whole numbers beyond 2^53 lose their last digits, and are out of any range here.
    fn visit_u64<E: de::Error>(self, n: u64) -> Result<f64, E> {
        Ok(n as f64)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<f64, E> {
        Ok(n as f64)
    }
}
