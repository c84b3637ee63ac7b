//! Sizes in bytes.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::config::hint;

/// Bytes in a KiB, for the bounds of [`Size`].
pub(in crate::config) const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub(in crate::config) const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub(in crate::config) const GIB: u64 = 1 << 30;
/// Bytes in a TiB.
pub(in crate::config) const TIB: u64 = 1 << 40;

/// A number of bytes from `MIN` to `MAX`, plain or with `KiB`, `MiB` or `GiB`.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Size<const MIN: u64, const MAX: u64, const DEFAULT: u64>(u64);

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Size<MIN, MAX, DEFAULT> {
    /// Saturates, which no `MAX` in use reaches on a 64-bit target.
    pub(in crate::config) fn usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Default for Size<MIN, MAX, DEFAULT> {
    fn default() -> Self {
        Size(DEFAULT)
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> Serialize for Size<MIN, MAX, DEFAULT> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&in_bytes(self.0))
    }
}

impl<'de, const MIN: u64, const MAX: u64, const DEFAULT: u64> Deserialize<'de>
    for Size<MIN, MAX, DEFAULT>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = deserializer.deserialize_any(Bytes)?;
        if (MIN..=MAX).contains(&bytes) {
            Ok(Size(bytes))
        } else {
            Err(de::Error::custom(format_args!(
                "{} is out of range: {} to {}",
                in_bytes(bytes),
                in_bytes(MIN),
                in_bytes(MAX),
            )))
        }
    }
}

impl<const MIN: u64, const MAX: u64, const DEFAULT: u64> JsonSchema for Size<MIN, MAX, DEFAULT> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+\s*(B|KiB|MiB|GiB|TiB)?\s*$"},
            {"type": "integer", "minimum": MIN, "maximum": MAX},
        ]})
    }
}

/// The units of sizes, largest first.
const UNITS: [(&str, u64); 5] = [
    ("TiB", TIB),
    ("GiB", GIB),
    ("MiB", MIB),
    ("KiB", KIB),
    ("B", 1),
];

struct Bytes;

impl Visitor<'_> for Bytes {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size, such as \"16MiB\" or a number of bytes")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        let (digits, factor) = UNITS
            .iter()
            .find_map(|(unit, factor)| Some((text.trim().strip_suffix(unit)?, *factor)))
            .unwrap_or((text, 1));
        digits
            .trim()
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(factor))
            .ok_or_else(|| {
                E::custom(format_args!(
                    "{} is not a size; write a whole number of B, KiB, MiB or GiB, such as \"16MiB\"",
                    hint::shown(text),
                ))
            })
    }
}

/// `16MiB`, `1000B`.
pub(in crate::config) fn in_bytes(bytes: u64) -> String {
    for (unit, factor) in UNITS {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}
