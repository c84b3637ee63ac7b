//! The body of a conversation. Its members come in a fixed order, so equal input gives equal bytes.

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::message::{self, WireMessage};
use crate::{
    proto::{Conversation, ResponseFormat, Sampling, Tool, ToolChoice, tool_choice::Mode},
    protocol::{
        adapter::RequestError,
        json::raw,
        options::{self, Members, Options},
    },
};

/// The longest answer, in tokens, where the conversation names none: Anthropic requires a bound. Every
/// model since Claude 3.5 takes this much.
pub(super) const DEFAULT_MAX_TOKENS: u32 = 8192;

/// Members that `provider_options_json` must not hold: they are not the client's to choose there.
const RESERVED: [&str; 4] = ["model", "messages", "stream", "n"];

/// A tool without parameters takes any object.
const NO_PARAMETERS: &[u8] = br#"{"type":"object"}"#;

/// The body to send for `conversation`.
pub(super) fn body(conversation: &Conversation, model: &str) -> Result<Bytes, RequestError> {
    let sampling = conversation.sampling.clone().unwrap_or_default();
    check_sampling(&sampling).map_err(|error| error.within("sampling"))?;
    let effort = conversation.reasoning_effort.as_str();
    let format = conversation
        .response_format
        .as_ref()
        .map_or(Ok(None), response_format)
        .map_err(|error| error.within("response_format"))?;
    let body = Body {
        model,
        system: Some(conversation.system.as_str()).filter(|system| !system.is_empty()),
        messages: message::all(conversation)?,
        tools: tools(&conversation.tools)?,
        tool_choice: conversation
            .tool_choice
            .as_ref()
            .map_or(Ok(None), tool_choice)
            .map_err(|error| error.within("tool_choice"))?,
        sampling,
        output_config: (!effort.is_empty() || format.is_some()).then(|| OutputConfig {
            effort: Some(effort).filter(|effort| !effort.is_empty()),
            format,
        }),
        options: Options::parse(&conversation.provider_options_json, &RESERVED)?,
    };
    serde_json::to_vec(&body)
        .map(Bytes::from)
        .map_err(|error| RequestError::invalid("messages", error.to_string()))
}

fn check_sampling(sampling: &Sampling) -> Result<(), RequestError> {
    options::check_sampling(sampling)?;
    match sampling.seed {
        Some(_) => Err(RequestError::invalid(
            "seed",
            "has no form in Anthropic Messages",
        )),
        None => Ok(()),
    }
}

fn tools(tools: &[Tool]) -> Result<Vec<WireTool<'_>>, RequestError> {
    tools
        .iter()
        .enumerate()
        .map(|(index, tool)| {
            WireTool::new(tool).map_err(|error| error.within(format_args!("tools[{index}]")))
        })
        .collect()
}

fn tool_choice(choice: &ToolChoice) -> Result<Option<WireToolChoice<'_>>, RequestError> {
    let mode = Mode::try_from(choice.mode)
        .map_err(|_| RequestError::invalid("mode", "is not a mode of this contract"))?;
    match (mode, choice.name.is_empty()) {
        (Mode::Tool, true) => Err(RequestError::invalid("name", "must be set with MODE_TOOL")),
        (Mode::Tool, false) => Ok(Some(WireToolChoice::Tool { name: &choice.name })),
        (_, false) => Err(RequestError::invalid(
            "name",
            "may be set with MODE_TOOL only",
        )),
        (Mode::Unspecified, true) => Ok(None),
        (Mode::Auto, true) => Ok(Some(WireToolChoice::Auto)),
        (Mode::None, true) => Ok(Some(WireToolChoice::None)),
        (Mode::Required, true) => Ok(Some(WireToolChoice::Any)),
    }
}

/// A schema; Anthropic has no plain JSON mode, and no name for a schema.
fn response_format(format: &ResponseFormat) -> Result<Option<Format<'_>>, RequestError> {
    if !format.schema_json.is_empty() {
        let schema = raw::object(&format.schema_json)
            .map_err(|error| RequestError::invalid("schema_json", error.to_string()))?;
        return Ok(Some(Format::JsonSchema { schema }));
    }
    match (format.json, format.name.is_empty()) {
        (_, false) => Err(RequestError::invalid(
            "name",
            "may be set with schema_json only",
        )),
        (true, true) => Err(RequestError::invalid(
            "json",
            "has no form in Anthropic Messages without a schema_json",
        )),
        (false, true) => Ok(None),
    }
}

struct Body<'a> {
    model: &'a str,
    system: Option<&'a str>,
    messages: Vec<WireMessage<'a>>,
    tools: Vec<WireTool<'a>>,
    tool_choice: Option<WireToolChoice<'a>>,
    sampling: Sampling,
    output_config: Option<OutputConfig<'a>>,
    options: Options<'a>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = serializer.serialize_map(None)?;
        let mut members = Members::new(map, &self.options);
        let (tools, stop) = (&self.tools, &self.sampling.stop);
        let max_tokens = self.sampling.max_output_tokens;
        members.put("model", Some(self.model))?;
        members.put("max_tokens", max_tokens.or(Some(DEFAULT_MAX_TOKENS)))?;
        members.put("system", self.system)?;
        members.put("messages", Some(&self.messages))?;
        members.put("tools", (!tools.is_empty()).then_some(tools))?;
        members.put("tool_choice", self.tool_choice.as_ref())?;
        members.put("temperature", self.sampling.temperature)?;
        members.put("top_p", self.sampling.top_p)?;
        members.put("stop_sequences", (!stop.is_empty()).then_some(stop))?;
        members.put("output_config", self.output_config.as_ref())?;
        members.put("stream", Some(true))?;
        members.end()
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
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
        let input_schema = raw::object(parameters)
            .map_err(|error| RequestError::invalid("parameters_json", error.to_string()))?;
        Ok(Self {
            name: &tool.name,
            description: Some(tool.description.as_str()).filter(|text| !text.is_empty()),
            input_schema,
            strict: tool.strict,
        })
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireToolChoice<'a> {
    Auto,
    Any,
    None,
    Tool { name: &'a str },
}

/// How to answer (anthropic-sdk-python `output_config_param.py`).
#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { schema: &'a RawValue },
}
