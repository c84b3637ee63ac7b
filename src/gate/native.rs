//! What a body in a provider's own format says of tools.
//!
//! Only what is certain is taken. A body that does not look as its protocol has it, or that may have its tools
//! from elsewhere, says nothing of names; a `tool_choice` of another form leaves the choice to the model. A
//! protocol that is not here says nothing at all.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Choice, Schema, Tools};
use crate::proto::Protocol;

/// The members of a body that are about tools, in every protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body<'a> {
    #[serde(borrow)]
    tools: Option<Vec<Entry<'a>>>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    /// Chat: the older form of `tools`.
    #[serde(borrow)]
    functions: Option<&'a RawValue>,
    /// Responses: a template at the provider, which may have tools.
    #[serde(borrow)]
    prompt: Option<&'a RawValue>,
}

/// A tool. Chat has all but `type` inside of `function`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry<'a> {
    r#type: Option<String>,
    #[serde(borrow)]
    function: Option<Box<Entry<'a>>>,
    name: Option<String>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

/// A choice that is an object.
#[derive(Deserialize)]
struct Chosen {
    r#type: String,
    name: Option<String>,
    function: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Tools {
    /// What `json`, a body of `protocol`, says.
    pub fn of_native(protocol: Protocol, json: &[u8]) -> Self {
        let known = matches!(
            protocol,
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::AnthropicMessages
        );
        let Some(body) = serde_json::from_slice::<Body<'_>>(json)
            .ok()
            .filter(|_| known)
        else {
            return Self::default();
        };
        let choice = body.tool_choice.and_then(choice).unwrap_or_default();
        let nothing_else = body.functions.is_none() && body.prompt.is_none();
        let entries = body.tools.unwrap_or_default();
        let tools = entries.iter().map(|entry| tool(protocol, entry));
        let tools: Option<Vec<_>> = tools.collect();
        match tools.filter(|_| nothing_else) {
            None => Self {
                choice,
                ..Self::default()
            },
            Some(tools) => {
                let names = tools.iter().map(|(name, _)| (*name).to_owned()).collect();
                let schemas = tools.into_iter().filter_map(|(name, schema)| {
                    let schema = Schema::read(schema?.get().as_bytes());
                    Some((name.to_owned(), schema))
                });
                Self {
                    names: Some(names),
                    schemas: schemas.collect::<BTreeMap<_, _>>(),
                    choice,
                }
            }
        }
    }
}

/// The name of a tool and its schema; `None` if calls of other names may come of it.
fn tool<'e>(protocol: Protocol, entry: &'e Entry<'_>) -> Option<(&'e str, Option<&'e RawValue>)> {
    let is_function = entry.r#type.as_deref() == Some("function");
    let entry = match protocol {
        Protocol::OpenaiChat => entry.function.as_deref().filter(|_| is_function)?,
        Protocol::OpenaiResponses => Some(entry).filter(|_| is_function)?,
        // Tools of Anthropic's own have a name too: calls that the client runs come under it.
        _ => entry,
    };
    let schema = entry.parameters.or(entry.input_schema);
    Some((entry.name.as_deref()?, schema))
}

fn choice(json: &RawValue) -> Option<Choice> {
    if let Ok(word) = serde_json::from_str::<String>(json.get()) {
        return of_word(&word);
    }
    let chosen: Chosen = serde_json::from_str(json.get()).ok()?;
    match chosen.r#type.as_str() {
        "tool" | "function" => {
            let name = chosen.name.or(chosen.function.map(|named| named.name))?;
            Some(Choice::Named(name))
        }
        word => of_word(word),
    }
}

fn of_word(word: &str) -> Option<Choice> {
    match word {
        "auto" => Some(Choice::Free),
        "none" => Some(Choice::Forbidden),
        "required" | "any" => Some(Choice::Required),
        _ => None,
    }
}
