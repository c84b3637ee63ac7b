//! The body of a conversation. Its members come in a fixed order, so equal input gives equal bytes.

use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::{
    input::{self, WireItem},
    tools::{self, WireText, WireTool, WireToolChoice},
};
use crate::{
    proto::{Conversation, Sampling, part::Part as Kind},
    protocol::{
        adapter::RequestError,
        options::{Members, Options, check_sampling},
    },
};

/// What the next turn needs of reasoning where the provider does not keep it. Models that do not reason
/// refuse a request that asks for it.
const ENCRYPTED: [&str; 1] = ["reasoning.encrypted_content"];

/// Members that `provider_options_json` must not hold. `n` has no form in this protocol, and is refused
/// as in the others.
const RESERVED: [&str; 4] = ["model", "input", "stream", "n"];

/// The body to send for `conversation`. A response that is `stored` is made in the background: only such
/// a one can be read on after a cut. Any other is not kept by the provider.
pub(super) fn body(
    conversation: &Conversation,
    model: &str,
    stored: bool,
) -> Result<Bytes, RequestError> {
    let sampling = conversation.sampling.as_ref();
    sampling
        .map_or(Ok(()), check)
        .map_err(|error| error.within("sampling"))?;
    let body = Body {
        model,
        instructions: &conversation.system,
        input: input::all(conversation)?,
        tools: tools::tools(&conversation.tools)?,
        tool_choice: conversation
            .tool_choice
            .as_ref()
            .map_or(Ok(None), tools::tool_choice)
            .map_err(|error| error.within("tool_choice"))?,
        sampling,
        text: conversation
            .response_format
            .as_ref()
            .map_or(Ok(None), tools::text)
            .map_err(|error| error.within("response_format"))?,
        effort: &conversation.reasoning_effort,
        reasons: !conversation.reasoning_effort.is_empty() || has_reasoning(conversation),
        stored,
        options: Options::parse(&conversation.provider_options_json, &RESERVED)?,
    };
    serde_json::to_vec(&body)
        .map(Bytes::from)
        .map_err(|error| RequestError::invalid("messages", error.to_string()))
}

/// The protocol has no stop texts and no seed.
fn check(sampling: &Sampling) -> Result<(), RequestError> {
    const NO_FORM: &str = "has no form in OpenAI Responses: leave it out";
    check_sampling(sampling)?;
    if !sampling.stop.is_empty() {
        return Err(RequestError::invalid("stop", NO_FORM));
    }
    match sampling.seed {
        Some(_) => Err(RequestError::invalid("seed", NO_FORM)),
        None => Ok(()),
    }
}

fn has_reasoning(conversation: &Conversation) -> bool {
    let mut parts = conversation
        .messages
        .iter()
        .flat_map(|message| &message.parts);
    parts.any(|part| matches!(part.part, Some(Kind::Reasoning(_))))
}

struct Body<'a> {
    model: &'a str,
    instructions: &'a str,
    input: Vec<WireItem<'a>>,
    tools: Vec<WireTool<'a>>,
    tool_choice: Option<WireToolChoice<'a>>,
    sampling: Option<&'a Sampling>,
    text: Option<WireText<'a>>,
    effort: &'a str,
    /// The model is known to reason.
    reasons: bool,
    stored: bool,
    options: Options<'a>,
}

#[derive(Serialize)]
struct Effort<'a> {
    effort: &'a str,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sampling = self.sampling;
        let set = |text: &&str| !text.is_empty();
        let mut members = Members::new(serializer.serialize_map(None)?, &self.options);
        members.put("model", Some(self.model))?;
        members.put("instructions", Some(self.instructions).filter(set))?;
        members.put("input", Some(&self.input))?;
        let tools = Some(&self.tools).filter(|tools| !tools.is_empty());
        members.put("tools", tools)?;
        members.put("tool_choice", self.tool_choice.as_ref())?;
        let longest = sampling.and_then(|sampling| sampling.max_output_tokens);
        members.put("max_output_tokens", longest)?;
        let temperature = sampling.and_then(|sampling| sampling.temperature);
        members.put("temperature", temperature)?;
        members.put("top_p", sampling.and_then(|sampling| sampling.top_p))?;
        members.put("text", self.text.as_ref())?;
        let effort = Some(self.effort)
            .filter(set)
            .map(|effort| Effort { effort });
        members.put("reasoning", effort)?;
        let encrypted = self.reasons && !self.stored;
        members.put("include", encrypted.then_some(ENCRYPTED))?;
        members.put("background", self.stored.then_some(true))?;
        members.put("store", Some(self.stored))?;
        members.put("stream", Some(true))?;
        members.end()
    }
}
