//! A reference to a secret.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor},
};

/// Where a secret (or a certificate) is read from. Written by hand rather than derived so that no error
/// ever repeats what stands in its place, which may be the secret itself.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Secret {
    /// A file; a relative path is relative to the configuration file.
    File(String),
    /// An environment variable.
    Env(String),
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        deserializer.deserialize_any(Reference)
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let reference = |key: &str, meaning: &str| {
            json_schema!({
                "type": "object",
                "properties": {key: {"type": "string", "minLength": 1, "description": meaning}},
                "required": [key],
                "additionalProperties": false,
            })
        };
        json_schema!({"oneOf": [
            reference("file", "A file; a relative path is relative to the configuration file."),
            reference("env", "An environment variable."),
        ]})
    }
}

struct Reference;

impl<'de> Visitor<'de> for Reference {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a reference, {file: PATH} or {env: NAME}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Secret, A::Error> {
        let refused = || de::Error::custom("expected exactly one of {file: PATH} and {env: NAME}");
        let Some(key) = access.next_key::<String>()? else {
            return Err(refused());
        };
        let secret = match key.as_str() {
            "file" => Secret::File(access.next_value()?),
            "env" => Secret::Env(access.next_value()?),
            _ => return Err(refused()),
        };
        match access.next_key::<de::IgnoredAny>()? {
            Some(_) => Err(refused()),
            None => Ok(secret),
        }
    }
}
