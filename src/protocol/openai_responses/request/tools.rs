//! Tools, the choice among them, and the form of the answer.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    proto::{ResponseFormat, Tool, ToolChoice, tool_choice::Mode},
    protocol::{adapter::RequestError, json::raw},
};

/// The wire demands a schema; this is that of a tool without arguments.
const NO_PARAMETERS: &[u8] = br#"{"type":"object","properties":{}}"#;

/// A function, in the flat form of this protocol.
#[derive(Serialize)]
pub(super) struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a RawValue,
    /// Always sent: here the default is true.
    strict: bool,
}

impl<'a> WireTool<'a> {
    fn new(tool: &'a Tool) -> Result<Self, RequestError> {
        if tool.name.is_empty() {
            return Err(RequestError::invalid("name", "must be set"));
        }
        let parameters = match tool.parameters_json.as_slice() {
            [] => NO_PARAMETERS,
            json => json,
        };
        Ok(Self {
            kind: "function",
            name: &tool.name,
            description: Some(tool.description.as_str()).filter(|text| !text.is_empty()),
            parameters: raw::object(parameters)
                .map_err(|error| RequestError::invalid("parameters_json", error.to_string()))?,
            strict: tool.strict,
        })
    }
}

/// All tools of a conversation.
pub(super) fn tools(tools: &[Tool]) -> Result<Vec<WireTool<'_>>, RequestError> {
    tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            WireTool::new(tool).map_err(|error| error.within(format_args!("tools[{index}]")))
        })
        .collect()
}

/// Whether and which of them.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WireToolChoice<'a> {
    Word(&'static str),
    Tool {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
    },
}

/// The choice; `None` leaves it to the provider.
pub(super) fn tool_choice(choice: &ToolChoice) -> Result<Option<WireToolChoice<'_>>, RequestError> {
    let mode = Mode::try_from(choice.mode)
        .map_err(|_| RequestError::invalid("mode", "is not a mode of this contract"))?;
    match (mode, choice.name.is_empty()) {
        (Mode::Tool, true) => Err(RequestError::invalid("name", "must be set with MODE_TOOL")),
        (Mode::Tool, false) => Ok(Some(WireToolChoice::Tool {
            kind: "function",
            name: &choice.name,
        })),
        (_, false) => Err(RequestError::invalid(
            "name",
            "may be set with MODE_TOOL only",
        )),
        (Mode::Unspecified, true) => Ok(None),
        (Mode::Auto, true) => Ok(Some(WireToolChoice::Word("auto"))),
        (Mode::None, true) => Ok(Some(WireToolChoice::Word("none"))),
        (Mode::Required, true) => Ok(Some(WireToolChoice::Word("required"))),
    }
}

/// `text`: what the answer must look like.
#[derive(Serialize)]
pub(super) struct WireText<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema { name: &'a str, schema: &'a RawValue },
}

/// The form; `None` is text.
pub(super) fn text(format: &ResponseFormat) -> Result<Option<WireText<'_>>, RequestError> {
    let format = match (format.schema_json.as_slice(), format.name.as_str()) {
        ([], "") if format.json => Format::JsonObject,
        ([], "") => return Ok(None),
        ([], _) => {
            return Err(RequestError::invalid(
                "name",
                "may be set with schema_json only",
            ));
        }
        (schema, name) => Format::JsonSchema {
            // The wire requires one, the contract does not.
            name: if name.is_empty() { "response" } else { name },
            schema: raw::object(schema)
                .map_err(|error| RequestError::invalid("schema_json", error.to_string()))?,
        },
    };
    Ok(Some(WireText { format }))
}
