//! One reading of the many shapes of error bodies.

use std::time::Duration;

use serde_json::{Map, Value};

use super::wait;

/// The largest body of an error response that is read, in bytes; a larger one is judged by its
/// status.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// The largest event of a stream that is read as an error, in bytes. Larger than a body, because
/// there is no status to fall back to and Groq quotes the whole rejected output.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// What an error body says, whatever its shape.
///
/// The shapes, each seen on the wire: `{"error":{message,type,param,code}}` (OpenAI and its dialects)
/// · `{"type":"error","error":{type,message}}` (Anthropic) · `{"error":{code,message,status,details}}`
/// and an array of one (Google) · `{"error":{code,message,metadata}}` (OpenRouter) · `{"error":"…"}`
/// (Ollama, Venice) · `{"code","error":"…"}` (xAI) · `{"object":"error",message,type,code}` (Mistral)
/// · `{code,message,type}` (doubleword, an inner object alone) · `{"detail":"…"}` and `[…]` (FastAPI)
/// · `{"message"}` (Bedrock) · `{"id","message"}` (Cohere) · `{"error":["…"]}` (Hugging Face) ·
/// `{"type":"response.failed","response":{"error":{…}}}` (OpenAI Responses) ·
/// `{"…Exception":{message}}` (Bedrock's streams) · `{"promptFeedback":{"blockReason"}}` (Google, in the
/// place of an answer).
///
/// Not `Debug`: providers quote prompts and keys in their texts. A verdict carries them cleaned.
#[derive(Clone, Default, PartialEq)]
pub struct ErrorObject {
    /// Codes and types as the provider spelled them, the most specific first.
    pub names: Vec<String>,
    /// A code in the range of HTTP errors, 400 to 599.
    pub number: Option<u16>,
    /// The provider's text.
    pub message: Option<String>,
    /// What a router passes on of the text of the provider behind it.
    pub detail: Option<String>,
    /// A quota of a day, or a quota of zero, is spent (`google.rpc.QuotaFailure`).
    pub quota_spent: bool,
    /// A moderation or a guardrail says what it found (OpenRouter).
    pub moderated: bool,
    /// The router's own word on whether to try again; it can only narrow.
    pub retryable: Option<bool>,
    /// The larger of the waits in structured fields.
    pub wait: Option<Duration>,
}

impl ErrorObject {
    /// Reads the body of an error response. `None` if it is larger than [`MAX_BODY_BYTES`], is not
    /// whole JSON, or says nothing that an error says.
    pub fn parse(json: &[u8]) -> Option<Self> {
        Self::parse_bounded(json, MAX_BODY_BYTES)
    }

    /// Reads an event of a stream, as [`Self::parse`] does a body.
    pub(super) fn parse_event(json: &[u8]) -> Option<Self> {
        Self::parse_bounded(json, MAX_EVENT_BYTES)
    }

    fn parse_bounded(json: &[u8], max_bytes: usize) -> Option<Self> {
        if json.len() > max_bytes {
            return None;
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let root: Value = serde_json::from_slice(json).ok()?;
        let object = match unwrap_array(&root) {
            Value::Object(outer) => read(outer),
            Value::String(text) => Self {
                message: Some(text.clone()),
                ..Self::default()
            },
            _ => return None,
        };
        (object != Self::default()).then_some(object)
    }

    /// What a person is shown: the message, and what a router passes on.
    pub(super) fn text(&self) -> Option<String> {
        match (&self.message, &self.detail) {
            (Some(message), Some(detail)) => Some(format!("{message}: {detail}")),
            (text, None) | (None, text) => text.clone(),
        }
    }
}

fn read(outer: &Map<String, Value>) -> ErrorObject {
    let inner = inner(outer);
    let levels: Vec<_> = inner.into_iter().chain([outer]).collect();
    let mut object = ErrorObject::default();
    for level in &levels {
        read_details(level, &mut object);
    }
    let blocked = outer.get("promptFeedback").and_then(Value::as_object);
    if let Some(blocked) = blocked {
        read_block(blocked, &mut object);
    }
    for level in &levels {
        read_router_fields(level, &mut object);
    }
    // OpenRouter keeps its own type beside the native error of a Responses body.
    push_name(
        outer
            .get("response")
            .and_then(|response| response.get("error_type")),
        &mut object,
    );
    for level in &levels {
        read_names(level, &mut object);
    }
    if let Some((name, _)) = exception(outer) {
        object.names.push(name.to_owned());
    }
    // Groq's reason for an early end stands in its own field, and is a string.
    let groq = outer.get("x_groq").and_then(Value::as_object);
    object.message = levels
        .into_iter()
        .chain(groq)
        .find_map(message)
        .or_else(|| {
            let text = blocked?.get("blockReasonMessage")?.as_str()?;
            Some(text.to_owned())
        });
    object
}

/// Why Google refused a prompt. Any reason is a filter's, whether its word is listed or not.
fn read_block(feedback: &Map<String, Value>, object: &mut ErrorObject) {
    let reason = feedback.get("blockReason");
    if reason.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED") {
        push_name(reason, object);
        object.names.push("content_filter".to_owned());
    }
}

/// The exception of a Bedrock stream, where its name stands as the only key.
fn exception(outer: &Map<String, Value>) -> Option<(&String, &Map<String, Value>)> {
    let (name, inner) = outer.iter().next().filter(|_| outer.len() == 1)?;
    let inner = inner.as_object()?;
    name.ends_with("Exception").then_some((name, inner))
}

/// The error object inside the envelope, where there is one.
fn inner(outer: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let candidates = [
        outer.get("error"),
        outer
            .get("response")
            .and_then(|response| response.get("error")),
        outer.get("errors").map(unwrap_array),
        outer.get("detail"),
        outer
            .get("choices")
            .map(unwrap_array)
            .and_then(|choice| choice.get("error")),
    ];
    let inner = candidates
        .into_iter()
        .flatten()
        .find_map(Value::as_object)
        .or_else(|| Some(exception(outer)?.1))?;
    // Gateways wrap an envelope in an envelope.
    Some(
        inner
            .get("error")
            .and_then(Value::as_object)
            .unwrap_or(inner),
    )
}

fn unwrap_array(value: &Value) -> &Value {
    value
        .as_array()
        .and_then(|array| array.first())
        .unwrap_or(value)
}

/// The vendor's detail: Google's `details[]`, Anthropic's `details`, Azure's `innererror`.
fn read_details(level: &Map<String, Value>, object: &mut ErrorObject) {
    match level.get("details") {
        Some(Value::Array(details)) => {
            for detail in details {
                read_google_detail(detail, object);
            }
        }
        Some(details) => push_name(details.get("error_code"), object),
        None => {}
    }
    push_name(
        level.get("innererror").and_then(|inner| inner.get("code")),
        object,
    );
}

/// One of `google.rpc`'s error details: `ErrorInfo`, `RetryInfo`, `QuotaFailure`.
fn read_google_detail(detail: &Value, object: &mut ErrorObject) {
    push_name(detail.get("reason"), object);
    let delay = detail.get("retryDelay").and_then(Value::as_str);
    keep_wait(delay.and_then(wait::proto_duration), object);
    for violation in detail
        .get("violations")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |key| {
            violation
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let id = text("quotaId").to_ascii_lowercase();
        object.quota_spent |=
            id.contains("perday") || id.contains("daily") || text("quotaValue") == "0";
    }
}

/// What routers add: OpenRouter's `metadata` and `availability`.
fn read_router_fields(level: &Map<String, Value>, object: &mut ErrorObject) {
    let metadata = level.get("metadata").and_then(Value::as_object);
    for fields in metadata.into_iter().chain([level]) {
        push_name(fields.get("error_type"), object);
        let availability = fields.get("availability");
        let field = |key| availability.and_then(|availability| availability.get(key));
        object.retryable = object
            .retryable
            .or(field("retryable").and_then(Value::as_bool));
        let headers = fields.get("headers").and_then(Value::as_object);
        let header = headers.into_iter().flatten();
        let header = header.filter(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let waits = [
            field("retry_after"),
            fields.get("retry_after"),
            fields.get("retry_after_seconds"),
            fields.get("retry_after_seconds_raw"),
        ];
        for value in waits
            .into_iter()
            .flatten()
            .chain(header.map(|(_, value)| value))
        {
            keep_wait(json_seconds(value), object);
        }
    }
    let Some(metadata) = metadata else { return };
    push_name(metadata.get("limit_source"), object);
    object.moderated |= ["flagged_input", "reasons", "patterns"]
        .iter()
        .any(|key| metadata.get(*key).is_some_and(|value| !value.is_null()));
    object.detail = object
        .detail
        .take()
        .or_else(|| metadata.get("raw").map(raw_text));
}

/// Code, type and status, as strings and as numbers.
fn read_names(level: &Map<String, Value>, object: &mut ErrorObject) {
    for key in [
        "code",
        "type",
        "status",
        "__type",
        "status_code",
        "raw_status_code",
    ] {
        let Some(value) = level.get(key) else {
            continue;
        };
        match http_error(value) {
            Some(number) => object.number = object.number.or(Some(number)),
            None => push_name(Some(value), object),
        }
    }
    let metadata = level.get("metadata");
    push_name(
        metadata.and_then(|metadata| metadata.get("provider_code")),
        object,
    );
}

fn message(level: &Map<String, Value>) -> Option<String> {
    ["message", "msg", "error", "detail"]
        .iter()
        .find_map(|key| match level.get(*key)? {
            Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
            Value::Array(items) => joined(items),
            // Mistral wraps what its framework says about a field.
            Value::Object(inner) => message(inner),
            _ => None,
        })
}

/// The texts of a list of errors, whether strings or objects with a `msg` or `message`.
fn joined(items: &[Value]) -> Option<String> {
    let text = |item: &Value| {
        let inside = item.get("msg").or_else(|| item.get("message"));
        inside.unwrap_or(item).as_str().map(str::to_owned)
    };
    let texts: Vec<_> = items.iter().filter_map(text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// A status among the HTTP errors, as a number or as a numeric string.
fn http_error(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (400..=599).contains(&number).then_some(number)
}

/// `error` is the envelope's word for itself (Anthropic, Mistral, OpenAI Responses), not a name.
fn push_name(value: Option<&Value>, object: &mut ErrorObject) {
    let name = match value {
        Some(Value::String(name)) => name.trim(),
        _ => return,
    };
    if !name.is_empty() && name != "error" {
        object.names.push(name.to_owned());
    }
}

fn keep_wait(wait: Option<Duration>, object: &mut ErrorObject) {
    object.wait = object.wait.max(wait);
}

fn json_seconds(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(number) => wait::seconds(&number.to_string()),
        Value::String(text) => wait::seconds(text),
        _ => None,
    }
}

fn raw_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
