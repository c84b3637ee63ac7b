//! Asking for the rest of a message that was cut off: the body that was sent, with the beginning of
//! the answer as its last message. Every other byte stays, but for the bound on the answer's tokens.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{super::dialect::Continuation, native::one_choice};
use crate::protocol::json::{
    edit::{Edit, Wanted, splice},
    raw::{self, Object, quoted},
};

/// Members that bound the tokens of an answer; `n_predict` is llama.cpp's own name.
const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "n_predict"];

/// Members that hold the output to a grammar, whose state a continuation would lose. vLLM's
/// (`guided_…`, `structured_outputs`, `structural_tag`), SGLang's (`regex`, `ebnf`), llama.cpp's
/// (`grammar`, `json_schema`).
const GRAMMARS: [&str; 10] = [
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "structural_tag",
    "regex",
    "ebnf",
    "grammar",
    "json_schema",
];

/// Bytes of text that make a token, about: of English, and of Chinese too.
const BYTES_PER_TOKEN: usize = 4;

/// `body` asking for what follows `partial`. `None` if there is nothing to continue, or a continuation
/// would not be the same answer: the output is constrained, thinking is asked for (a server that opens
/// the answer with it takes the rest of the text for thoughts), there are several choices, or the
/// client itself has begun the answer.
pub(super) fn body(body: &Bytes, form: Continuation, partial: &str) -> Option<Bytes> {
    let partial = match form {
        Continuation::BareTrimmed => partial.trim_end(),
        _ => partial,
    };
    if partial.is_empty() {
        return None;
    }
    let mut seen = Seen::default();
    let object = Object::parse(body, |name, value| seen.see(&name, value)).ok()?;
    if !seen.continuable {
        return None;
    }
    let mut edits = Vec::new();

    let messages = seen.messages.once().ok()??;
    let last = raw::last_item(messages)?;
    if is_of_assistant(last)? {
        return None;
    }
    let end = object.range(last).end;
    edits.push(Edit::Replace(
        end..end,
        format!(",{}", message(form, partial)),
    ));

    let flags = match form {
        Continuation::Bare | Continuation::BareTrimmed | Continuation::Flag(_) => vec![],
        Continuation::ContinueFinal => vec![(seen.continue_final, "true")],
        Continuation::ContinueFinalWithoutPrompt => vec![
            (seen.continue_final, "true"),
            (seen.generation_prompt, "false"),
        ],
    };
    for (flag, wanted) in flags {
        let name = flag.name;
        match flag.once().ok()? {
            Some(value) if value.get() == wanted => {}
            Some(value) => edits.push(Edit::Replace(object.range(value), wanted.to_owned())),
            None => edits.push(Edit::Insert(format!("\"{name}\":{wanted}"))),
        }
    }

    for limit in seen.limits {
        if let Some(value) = limit.once().ok()?
            && let Ok(tokens) = value.get().parse::<usize>()
        {
            let left = tokens.saturating_sub(partial.len() / BYTES_PER_TOKEN);
            edits.push(Edit::Replace(object.range(value), left.max(1).to_string()));
        }
    }
    Some(splice(body, &object, edits))
}

/// The beginning of the answer, as the last message.
fn message(form: Continuation, partial: &str) -> String {
    let content = quoted(partial);
    match form {
        Continuation::Flag(flag) => {
            format!(r#"{{"role":"assistant","content":{content},"{flag}":true}}"#)
        }
        _ => format!(r#"{{"role":"assistant","content":{content}}}"#),
    }
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

/// The members that matter here.
struct Seen<'a> {
    messages: Wanted<'a>,
    continue_final: Wanted<'a>,
    generation_prompt: Wanted<'a>,
    limits: [Wanted<'a>; 3],
    continuable: bool,
}

impl Default for Seen<'_> {
    fn default() -> Self {
        Self {
            messages: Wanted::new("messages"),
            continue_final: Wanted::new("continue_final_message"),
            generation_prompt: Wanted::new("add_generation_prompt"),
            limits: LIMITS.map(Wanted::new),
            continuable: true,
        }
    }
}

impl<'a> Seen<'a> {
    fn see(&mut self, name: &str, value: &'a RawValue) {
        let text = value.get();
        self.continuable &= match name {
            "n" => one_choice(value).is_ok(),
            "response_format" => is_unset(text) || has(value, "type", &["\"text\""]),
            // Any object names the tools that must be called.
            "tool_choice" | "function_call" => {
                is_unset(text) || matches!(text, "\"auto\"" | "\"none\"")
            }
            "enable_thinking" => is_unset(text),
            // DeepSeek, Moonshot and others.
            "thinking" => is_unset(text) || has(value, "type", &["\"disabled\""]),
            // OpenAI's word, which vLLM, SGLang, OpenRouter and others take.
            "reasoning_effort" => is_unset(text) || text == "\"none\"",
            // OpenRouter.
            "reasoning" => {
                is_unset(text)
                    || has(value, "enabled", &["false"])
                    || has(value, "effort", &["\"none\""])
            }
            // Mistral.
            "prompt_mode" => text != "\"reasoning\"",
            // vLLM, SGLang, llama.cpp.
            "chat_template_kwargs" => ["enable_thinking", "thinking"]
                .iter()
                .all(|flag| has(value, flag, &["", "null", "false"])),
            name => !GRAMMARS.contains(&name) || is_unset(text),
        };
        let kept = [
            &mut self.messages,
            &mut self.continue_final,
            &mut self.generation_prompt,
        ];
        if let Some(wanted) = kept
            .into_iter()
            .chain(&mut self.limits)
            .find(|wanted| wanted.name == name)
        {
            wanted.see(value);
        }
    }
}

fn is_unset(text: &str) -> bool {
    matches!(text, "null" | "false")
}

/// Whether each member `name` of `object` is one of `texts`; of none that is the empty text. `false`
/// if it is no object.
fn has(object: &RawValue, name: &str, texts: &[&str]) -> bool {
    let (mut all, mut none) = (true, true);
    let read = Object::parse(object.get().as_bytes(), |member, value| {
        if member == name {
            none = false;
            all &= texts.contains(&value.get());
        }
    });
    read.is_ok() && all && (!none || texts.contains(&""))
}
