//! Keys whose behaviour comes in a later version.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// A key whose behaviour comes in a later version: only empty values are taken.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::config) struct Later;

impl Serialize for Later {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

impl<'de> Deserialize<'de> for Later {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Later, D::Error> {
        deserializer.deserialize_any(Later)
    }
}

impl JsonSchema for Later {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Later".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["null", "array", "object"], "maxItems": 0, "maxProperties": 0})
    }
}

/// What is said of everything that comes in a later version.
pub(in crate::config) const NOT_AVAILABLE: &str = "not available in this version";

impl<'de> Visitor<'de> for Later {
    type Value = Later;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NOT_AVAILABLE)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Later, E> {
        Err(E::custom(NOT_AVAILABLE))
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Later, E> {
        Err(E::custom(NOT_AVAILABLE))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Later, E> {
        Err(E::custom(NOT_AVAILABLE))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Later, E> {
        Err(E::custom(NOT_AVAILABLE))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Later, E> {
        Err(E::custom(NOT_AVAILABLE))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Later, E> {
        Ok(Later)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Later, A::Error> {
        match access.next_element::<de::IgnoredAny>()? {
            Some(_) => Err(de::Error::custom(NOT_AVAILABLE)),
            None => Ok(Later),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Later, A::Error> {
        match access.next_key::<de::IgnoredAny>()? {
            Some(_) => Err(de::Error::custom(NOT_AVAILABLE)),
            None => Ok(Later),
        }
    }
}
