//! Whether arguments are what a tool's JSON Schema asks for.
//!
//! Schemas are the client's, or whoever described its tools to it; arguments are a model's. Neither is trusted, and a
//! call is never refused because it could not be checked: where anything stands in the way of that, any JSON
//! object will do.

mod outline;
mod pattern;
mod rewrite;
mod weight;

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use corvus_json_schema::{
    CompileOptions, Dialect, JsonDocument, JsonSchemaResultsCollector, ResultsLevel, SchemaResult,
    Validator, compile_with,
};
use serde::de::IgnoredAny;
use serde_json::Value;

use outline::Outline;
use rewrite::without_automata;

/// The longest schema that is looked at, in bytes. Those of tools have a few thousand.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// What is told of arguments that do not fit, at most, and bytes of all paths together that are written for it.
const MAX_FAULTS: usize = 16;
const MAX_TOLD_BYTES: u64 = 8 << 20;

/// Characters of the place of a fault: with its keyword there are 64 at most.
const MAX_PLACE_CHARS: usize = 42;

/// An expression that takes longer is given up, and the call with it is not refused. Such expressions are not run
/// in the first place: with a limit the engine also bounds the memory of a match, and that is what it is set for.
const MATCH_LIMIT: Duration = Duration::from_secs(1);

/// What the validator says of a schema within a schema: its own keywords say it better.
const OF_A_PART: &str = "The value was expected to match the subschema.";

/// The keywords that refuse. What stands at another end of a path is a name, of a schema that is `false`.
const KEYWORDS: [&str; 29] = [
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "contains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "dependencies",
];

/// The schema of a tool's arguments. Cheap to clone, and nothing is compiled before the first call of the tool.
#[derive(Clone, Default)]
pub struct Schema {
    /// `None`: it asks for nothing.
    asks: Option<Arc<Asks>>,
}

/// Why arguments do not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// They are not one whole JSON object.
    NoObject,
    /// They are not what the schema asks for: at most 16 texts of 64 characters, such as `/path (required)`. Each has
    /// the place of a member and a keyword of the schema, and nothing of what the member holds. None where
    /// only a branch could say what is wrong, or the paths are very long.
    Faults(Vec<String>),
}

struct Asks {
    json: Box<[u8]>,
    /// Filled in by the first call. `None`: it is not looked at.
    compiled: OnceLock<Option<Compiled>>,
}

struct Compiled {
    outline: Outline,
    validator: Validator,
}

impl Schema {
    /// The JSON Schema `json`. One that is empty, no schema, or beyond what is looked at asks for nothing: it is
    /// the provider's to refuse.
    pub fn read(json: &[u8]) -> Self {
        let has_size = !json.is_empty() && json.len() <= MAX_SCHEMA_BYTES;
        Self {
            asks: has_size.then(|| {
                Arc::new(Asks {
                    json: json.into(),
                    compiled: OnceLock::new(),
                })
            }),
        }
    }

    /// Whether it asks for more than a JSON object. Compiles it if that has not been done.
    pub fn is_looked_at(&self) -> bool {
        self.compiled().is_some()
    }

    /// Checks the text of arguments; empty ones are `{}`.
    ///
    /// They are read as clients read JSON: the last of several members of one name counts, a lone half of a
    /// surrogate pair and a number out of range are no reason to refuse them, and neither is any depth. Of such that
    /// the validator does not read as clients do, and of whole numbers beyond 64 bits, the schema is not looked at.
    ///
    /// # Errors
    /// Why they do not fit.
    pub fn validate(&self, arguments: &str) -> Result<(), Misfit> {
        let arguments = match arguments {
            "" => "{}",
            json => json,
        };
        if !is_object(arguments) {
            return Err(Misfit::NoObject);
        }
        let faults = self.compiled().and_then(|it| it.faults(arguments));
        match faults {
            Some(faults) => Err(Misfit::Faults(faults)),
            None => Ok(()),
        }
    }

    fn json(&self) -> &[u8] {
        self.asks.as_ref().map_or(&[], |asks| &asks.json)
    }

    fn compiled(&self) -> Option<&Compiled> {
        let asks = self.asks.as_ref()?;
        let compiled = asks.compiled.get_or_init(|| Compiled::new(&asks.json));
        compiled.as_ref()
    }
}

impl Compiled {
    fn new(json: &[u8]) -> Option<Self> {
        // Reads 127 levels.
        let mut schema: Value = serde_json::from_slice(json).ok()?;
        let options = CompileOptions {
            default_dialect: dialect(&schema)?,
            // What a format means is left open, and providers do not agree on it.
            assert_format: Some(false),
            assert_content: false,
            pattern_match_limit: Some(MATCH_LIMIT),
            ..CompileOptions::default()
        };
        if !may_be_an_object(&schema) {
            return None;
        }
        let outline = Outline::of(&schema, options.default_dialect)?;
        without_automata(&mut schema, &outline.with_patterns);
        let validator = compile_with(&schema, &options).ok()?;
        Some(Self { outline, validator })
    }

    /// What is wrong with `arguments`, a JSON object; `None` if nothing is, or if that cannot be said.
    fn faults(&self, arguments: &str) -> Option<Vec<String>> {
        let document = JsonDocument::parse(arguments).ok()?;
        let work = self.outline.weigh(document.root())?;
        if self.validator.try_validate_instance(document.root()).ok()? {
            return None;
        }
        if work.steps.saturating_mul(work.longest as u64) > MAX_TOLD_BYTES {
            return Some(Vec::new());
        }
        let mut collector = JsonSchemaResultsCollector::new(ResultsLevel::Detailed);
        // It is known not to fit, whatever this comes to.
        let _ = self
            .validator
            .try_evaluate_instance(document.root(), &mut collector);
        Some(told(collector.results()))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    /// Schemas say what an application is for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({} bytes)", self.json().len())
    }
}

/// Whether `json` is one JSON object, of any depth.
fn is_object(json: &str) -> bool {
    let start = json.trim_start_matches([' ', '\t', '\r', '\n']);
    start.starts_with('{') && serde_json::from_str::<IgnoredAny>(json).is_ok()
}

/// Which JSON Schema it is. Without a word about that, the newest: Anthropic refuses a tool whose schema is not
/// of 2020-12 ("It must match JSON Schema draft 2020-12"), and tools of MCP are of it (SEP-1613).
fn dialect(schema: &Value) -> Option<Dialect> {
    let Some(named) = schema.get("$schema") else {
        return Some(Dialect::Draft202012);
    };
    let named = named.as_str()?;
    match named.strip_suffix('#').unwrap_or(named) {
        "http://json-schema.org/draft-04/schema" => Some(Dialect::Draft4),
        "http://json-schema.org/draft-06/schema" => Some(Dialect::Draft6),
        "http://json-schema.org/draft-07/schema" => Some(Dialect::Draft7),
        "https://json-schema.org/draft/2019-09/schema" => Some(Dialect::Draft201909),
        "https://json-schema.org/draft/2020-12/schema" => Some(Dialect::Draft202012),
        _ => None,
    }
}

/// Arguments are objects: a schema without room for one, `false` among them, is a mistake and not a wish.
fn may_be_an_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => schema.is_object(),
    }
}

/// What is told of the validator's results, each once. It has those of one schema from last to first, and none
/// of branches that need not fit.
fn told(results: &[SchemaResult]) -> Vec<String> {
    let of_one_schema = results.chunk_by(|one, next| parted(one).0 == parted(next).0);
    let in_order = of_one_schema.flat_map(|results| results.iter().rev());
    let mut faults: Vec<String> = Vec::new();
    for result in in_order {
        let (_, last) = parted(result);
        let is_part = result.message == OF_A_PART;
        let keyword = KEYWORDS.iter().find(|keyword| **keyword == last);
        // Of a schema that is `false` it says no more; keywords that only apply others have a text.
        let only_applies = keyword.is_none() && !result.message.is_empty();
        if result.is_match || is_part || only_applies {
            continue;
        }
        let place = clipped(&result.document_evaluation_location);
        let fault = format!("{place} ({})", keyword.unwrap_or(&"false"));
        if !faults.contains(&fault) {
            faults.push(fault);
        }
        if faults.len() == MAX_FAULTS {
            break;
        }
    }
    faults
}

/// The path of a schema, and what of it the result is about.
fn parted(result: &SchemaResult) -> (&str, &str) {
    let path = result.evaluation_location.as_str();
    path.rsplit_once('/').unwrap_or((path, ""))
}

/// A JSON Pointer, which may hold names that a model made up.
fn clipped(pointer: &str) -> String {
    let mut all = pointer.escape_debug();
    let mut text: String = all.by_ref().take(MAX_PLACE_CHARS).collect();
    if all.next().is_some() {
        text.pop();
        text.push('…');
    }
    match text.is_empty() {
        true => "/".to_owned(),
        false => text,
    }
}
