//! Whether arguments are what a tool's schema asks for, as far as that is looked at.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// What is told of arguments that do not fit, at most.
const MAX_FAULTS: usize = 16;

/// The schema of a tool's arguments: of a JSON Schema the members that it requires at its top level.
///
/// More is not looked at. What is missing there is what models get wrong, a call is never rejected that a
/// full validator would let pass, and the work is bounded by the size of schema and arguments, which
/// schemas with references to themselves do not allow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    required: Vec<String>,
}

impl Schema {
    /// Reads a JSON Schema. One that cannot be read asks for nothing: it is the provider's to refuse.
    pub fn read(json: &[u8]) -> Self {
        #[derive(Default, Deserialize)]
        struct Shape {
            #[serde(default)]
            required: Value,
        }

        let shape: Shape = serde_json::from_slice(json).unwrap_or_default();
        let Value::Array(required) = shape.required else {
            return Self::default();
        };
        let name = |name| match name {
            Value::String(name) => Some(name),
            _ => None,
        };
        Self {
            required: required.into_iter().filter_map(name).collect(),
        }
    }

    /// Checks the text of arguments; empty ones are `{}`.
    ///
    /// # Errors
    /// What is wrong with them, for a person: at most 16 texts, which name members of the schema.
    pub fn validate(&self, arguments: &str) -> Result<(), Vec<String>> {
        let arguments = match arguments {
            "" => "{}",
            json => json,
        };
        let members: BTreeMap<Cow<'_, str>, IgnoredAny> = serde_json::from_str(arguments)
            .map_err(|_| vec!["are not one JSON object".to_owned()])?;
        let is_missing = |name: &&String| !members.contains_key(name.as_str());
        let missing = self.required.iter().filter(is_missing);
        let faults: Vec<String> = missing
            .take(MAX_FAULTS)
            .map(|name| format!("`{name}` is missing"))
            .collect();
        match faults.is_empty() {
            true => Ok(()),
            false => Err(faults),
        }
    }
}
