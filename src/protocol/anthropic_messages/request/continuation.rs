//! Asking for the rest of a message that was cut off: the body that was sent, with the beginning of
//! the answer as its last message (prefill). Every other byte stays, but for the bound on the answer's
//! tokens.
//!
//! Anthropic's answer goes on where the text ends and does not repeat it. Models from Claude 4.6 on
//! refuse a conversation that ends with the assistant ("This model does not support assistant message
//! prefill", platform.claude.com, what's new in Claude 4.6).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::json::{
    edit::{Edit, Wanted, splice},
    raw::{self, Object, quoted},
};

/// The first version of Claude that refuses a prefill.
const REFUSES_FROM: (u32, u32) = (4, 6);

/// Bytes of text that make a token, about.
const BYTES_PER_TOKEN: usize = 4;

/// `body` asking for what follows `partial`. `None` if there is nothing to continue, the model refuses
/// it, or it would not be the same answer: the model thinks first, the output is constrained, a tool
/// must be called, or the client itself has begun the answer.
pub(super) fn body(body: &Bytes, partial: &str) -> Option<Bytes> {
    // White space at the end of the last text is refused.
    let partial = partial.trim_end();
    if partial.is_empty() {
        return None;
    }
    let mut wanted = ["model", "messages", "max_tokens"].map(Wanted::new);
    let mut continuable = true;
    let object = Object::parse(body, |name, value| {
        continuable &= may_continue(&name, value);
        if let Some(wanted) = wanted.iter_mut().find(|wanted| wanted.name == name) {
            wanted.see(value);
        }
    })
    .ok()?;
    let [model, messages, max_tokens] = wanted;
    let model: String = serde_json::from_str(model.once().ok()??.get()).ok()?;
    if !continuable || refuses(&model) {
        return None;
    }

    let last = raw::last_item(messages.once().ok()??)?;
    if is_of_assistant(last)? {
        return None;
    }
    let end = object.range(last).end;
    let text = quoted(partial);
    let message = format!(r#",{{"role":"assistant","content":{text}}}"#);
    let mut edits = vec![Edit::Replace(end..end, message)];
    if let Some(value) = max_tokens.once().ok()?
        && let Ok(tokens) = value.get().parse::<usize>()
    {
        let left = tokens.saturating_sub(partial.len() / BYTES_PER_TOKEN);
        edits.push(Edit::Replace(object.range(value), left.max(1).to_string()));
    }
    Some(splice(body, &object, edits))
}

/// Whether a member of the body leaves the answer free to be continued.
fn may_continue(name: &str, value: &RawValue) -> bool {
    #[derive(Default, Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }

    #[derive(Deserialize)]
    struct OutputConfig<'a> {
        #[serde(borrow)]
        format: Option<&'a RawValue>,
    }

    let text = value.get();
    if text == "null" {
        return true;
    }
    let is = |kinds: &[&str]| {
        serde_json::from_str::<Typed>(text).is_ok_and(|typed| kinds.contains(&&*typed.kind))
    };
    match name {
        "thinking" => is(&["disabled"]),
        "tool_choice" => is(&["auto", "none"]),
        // The name of the beta.
        "output_format" => false,
        "output_config" => serde_json::from_str::<OutputConfig<'_>>(text)
            .is_ok_and(|config| config.format.is_none()),
        _ => true,
    }
}

/// Whether a model is known to refuse a prefill. A name may have a vendor in front and a date behind
/// (`anthropic.claude-sonnet-4-5-20250929-v1:0`, `anthropic/claude-haiku-4.5`); one without a version
/// is not known.
fn refuses(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    if ["fable", "mythos"].iter().any(|name| model.contains(name)) {
        return true;
    }
    let Some((_, name)) = model.split_once("claude") else {
        return false;
    };
    let mut numbers = name
        .split(['-', '.', '@', '_', ':'])
        .map(|piece| piece.parse::<u32>().ok().filter(|number| *number < 100))
        .skip_while(Option::is_none);
    let major = numbers.next().flatten();
    let minor = numbers.next().flatten().unwrap_or(0);
    major.is_some_and(|major| (major, minor) >= REFUSES_FROM)
}

/// `None` if it is no message.
fn is_of_assistant(message: &RawValue) -> Option<bool> {
    #[derive(Deserialize)]
    struct Message {
        role: String,
    }

    let message: Message = serde_json::from_str(message.get()).ok()?;
    Some(message.role == "assistant")
}

#[cfg(test)]
mod tests {
    use super::refuses;

    #[test]
    fn models_before_4_6_take_a_prefill() {
        for model in [
            "claude-2.1",
            "claude-instant-1.2",
            "claude-3-7-sonnet-latest",
            "claude-3-haiku-20240307",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4@20250514",
            "claude-opus-4-1-20250805",
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-haiku-4.5",
            "us.anthropic.claude-opus-4-5-20251101-v1:0",
            "claude-sonnet-latest",
            "kimi-k2",
        ] {
            assert!(!refuses(model), "{model}");
        }
    }

    #[test]
    fn models_from_4_6_on_refuse_it() {
        for model in [
            "claude-sonnet-4-6",
            "claude-opus-4.7",
            "anthropic.claude-opus-4-6-20260205-v1:0",
            "claude-opus-5",
            "claude-haiku-5-20260901",
            "anthropic/claude-sonnet-5.1",
            "claude-fable-1",
            "claude-mythos-preview",
        ] {
            assert!(refuses(model), "{model}");
        }
    }
}
