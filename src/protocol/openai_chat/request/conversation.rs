//! The body of a conversation. Its members come in a fixed order, so equal input gives equal bytes.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{
    super::dialect::Settings,
    message::{self, WireMessage},
    native::with_usage,
};
use crate::{
    proto::{Conversation, ResponseFormat, Sampling, Tool, ToolChoice, tool_choice::Mode},
    protocol::{
        adapter::RequestError,
        json::raw,
        options::{self, Members, Options},
    },
};

/// Members that `provider_options_json` must not hold: they are not the client's to choose there.
const RESERVED: [&str; 4] = ["model", "messages", "stream", "n"];

/// The body to send for `conversation`.
pub(super) fn body(
    conversation: &Conversation,
    model: &str,
    settings: Settings,
) -> Result<Bytes, RequestError> {
    let sampling = conversation.sampling.clone().unwrap_or_default();
    options::check_sampling(&sampling).map_err(|error| error.within("sampling"))?;
    let options = options(&conversation.provider_options_json, settings)?;
    let body = Body {
        model,
        messages: message::all(conversation, settings)?,
        tools: tools(&conversation.tools)?,
        tool_choice: conversation
            .tool_choice
            .as_ref()
            .map_or(Ok(None), |choice| tool_choice(choice, settings))
            .map_err(|error| error.within("tool_choice"))?,
        settings,
        sampling,
        response_format: conversation
            .response_format
            .as_ref()
            .map_or(Ok(None), |format| response_format(format, settings))
            .map_err(|error| error.within("response_format"))?,
        reasoning_effort: Some(conversation.reasoning_effort.as_str())
            .filter(|effort| !effort.is_empty()),
        options,
    };
    serde_json::to_vec(&body)
        .map(Bytes::from)
        .map_err(|error| RequestError::invalid("messages", error.to_string()))
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

fn tool_choice(
    choice: &ToolChoice,
    settings: Settings,
) -> Result<Option<WireToolChoice<'_>>, RequestError> {
    let mode = Mode::try_from(choice.mode)
        .map_err(|_| RequestError::invalid("mode", "is not a mode of this contract"))?;
    match (mode, choice.name.is_empty()) {
        (Mode::Tool, true) => Err(RequestError::invalid("name", "must be set with MODE_TOOL")),
        (Mode::Tool, false) if !settings.named_tool => Err(RequestError::invalid(
            "mode",
            "MODE_TOOL has no form in this dialect of OpenAI Chat Completions: use MODE_REQUIRED",
        )),
        (Mode::Tool, false) => Ok(Some(WireToolChoice::Tool {
            kind: "function",
            function: Named { name: &choice.name },
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

fn response_format(
    format: &ResponseFormat,
    settings: Settings,
) -> Result<Option<WireResponseFormat<'_>>, RequestError> {
    if !format.schema_json.is_empty() {
        if !settings.json_schema {
            return Err(RequestError::invalid(
                "schema_json",
                "has no form in this dialect of OpenAI Chat Completions: ask for json",
            ));
        }
        let schema = raw::object(&format.schema_json)
            .map_err(|error| RequestError::invalid("schema_json", error.to_string()))?;
        let name = match format.name.as_str() {
            // The wire requires one, the contract does not.
            "" => "response",
            name => name,
        };
        return Ok(Some(WireResponseFormat::JsonSchema {
            json_schema: JsonSchema { name, schema },
        }));
    }
    match (format.json, format.name.is_empty()) {
        (_, false) => Err(RequestError::invalid(
            "name",
            "may be set with schema_json only",
        )),
        (true, true) => Ok(Some(WireResponseFormat::JsonObject)),
        (false, true) => Ok(None),
    }
}

/// The members of `provider_options_json`; usage is asked for wherever the server knows how.
fn options(json: &[u8], settings: Settings) -> Result<Options<'_>, RequestError> {
    let mut options = Options::parse(json, &RESERVED)?;
    if !settings.stream_options {
        return Ok(options);
    }
    for (name, value) in options.members_mut() {
        if name == "stream_options"
            && let Some(text) = with_usage(value).map_err(|error| error.within(options::FIELD))?
        {
            *value = Cow::Owned(RawValue::from_string(text).map_err(|_| {
                RequestError::invalid("stream_options", "is not a JSON object")
                    .within(options::FIELD)
            })?);
        }
    }
    Ok(options)
}

struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    tools: Vec<WireTool<'a>>,
    tool_choice: Option<WireToolChoice<'a>>,
    settings: Settings,
    sampling: Sampling,
    response_format: Option<WireResponseFormat<'a>>,
    reasoning_effort: Option<&'a str>,
    options: Options<'a>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Members::new(serializer.serialize_map(None)?, &self.options);
        let (tools, stop) = (&self.tools, &self.sampling.stop);
        members.put("model", Some(self.model))?;
        members.put("messages", Some(&self.messages))?;
        members.put("tools", (!tools.is_empty()).then_some(tools))?;
        members.put("tool_choice", self.tool_choice.as_ref())?;
        members.put(self.settings.max_tokens, self.sampling.max_output_tokens)?;
        members.put("temperature", self.sampling.temperature)?;
        members.put("top_p", self.sampling.top_p)?;
        members.put("stop", (!stop.is_empty()).then_some(stop))?;
        members.put(self.settings.seed, self.sampling.seed)?;
        members.put("response_format", self.response_format.as_ref())?;
        members.put("reasoning_effort", self.reasoning_effort)?;
        members.put("stream", Some(true))?;
        members.put(
            "stream_options",
            self.settings.stream_options.then_some(StreamOptions {
                include_usage: true,
            }),
        )?;
        members.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

impl<'a> WireTool<'a> {
    fn new(tool: &'a Tool) -> Result<Self, RequestError> {
        if tool.name.is_empty() {
            return Err(RequestError::invalid("name", "must be set"));
        }
        let parameters = match tool.parameters_json.as_slice() {
            [] => None,
            json => Some(
                raw::object(json)
                    .map_err(|error| RequestError::invalid("parameters_json", error.to_string()))?,
            ),
        };
        Ok(Self {
            kind: "function",
            function: Function {
                name: &tool.name,
                description: Some(tool.description.as_str()).filter(|text| !text.is_empty()),
                parameters,
                strict: tool.strict.then_some(true),
            },
        })
    }
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WireToolChoice<'a> {
    Word(&'static str),
    Tool {
        #[serde(rename = "type")]
        kind: &'static str,
        function: Named<'a>,
    },
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WireResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    schema: &'a RawValue,
}
