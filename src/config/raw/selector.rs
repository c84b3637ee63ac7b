//! `budgets[].match`, as it is written: four names, and any number of labels, each a key of its own.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, MapAccess, Visitor},
};

/// What the keys of labels begin with.
pub(in crate::config) const LABEL: &str = "label.";

/// Which attempts take part of a budget.
#[derive(Debug, Default, Serialize)]
pub(in crate::config) struct Selector {
    pub(in crate::config) provider: Option<String>,
    pub(in crate::config) credential: Option<String>,
    pub(in crate::config) target: Option<String>,
    pub(in crate::config) route: Option<String>,
    /// By name, without the prefix of its key.
    pub(in crate::config) labels: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Selector, D::Error> {
        deserializer.deserialize_map(Selectors)
    }
}

impl JsonSchema for Selector {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Selector".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = |meaning: &str| json_schema!({"type": "string", "description": meaning});
        json_schema!({
            "type": "object",
            "properties": {
                "provider": text("The name of a provider."),
                "credential": text("The name of a credential."),
                "target": text("provider/model, in which `*` stands for any run of characters."),
                "route": text("The name of a route."),
            },
            "patternProperties": {
                r"^label\..+$": text(
                    "The value of that label of `start.labels`, in which `*` stands for any run of \
                     characters. A start without the label does not match."
                ),
            },
            "additionalProperties": false,
        })
    }
}

/// One key of it.
enum Key {
    Provider,
    Credential,
    Target,
    Route,
    Label(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        const KEYS: &[&str] = &["provider", "credential", "target", "route", "label.<name>"];
        let key = String::deserialize(deserializer)?;
        match (key.as_str(), key.strip_prefix(LABEL)) {
            ("provider", _) => Ok(Key::Provider),
            ("credential", _) => Ok(Key::Credential),
            ("target", _) => Ok(Key::Target),
            ("route", _) => Ok(Key::Route),
            (_, Some(name)) => Ok(Key::Label(name.to_owned())),
            _ => Err(de::Error::unknown_field(&key, KEYS)),
        }
    }
}

struct Selectors;

impl<'de> Visitor<'de> for Selectors {
    type Value = Selector;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    // A key without a value is refused: a selector that a template left empty would match everything.
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Selector, A::Error> {
        let mut selector = Selector::default();
        while let Some(key) = access.next_key()? {
            let value = access.next_value()?;
            match key {
                Key::Provider => selector.provider = Some(value),
                Key::Credential => selector.credential = Some(value),
                Key::Target => selector.target = Some(value),
                Key::Route => selector.route = Some(value),
                Key::Label(name) => {
                    selector.labels.insert(name, value);
                }
            }
        }
        Ok(selector)
    }
}
