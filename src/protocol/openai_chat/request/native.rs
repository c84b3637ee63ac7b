//! A native body: the client's own bytes, changed only where they must be.
//!
//! `model` becomes the target's, `stream` true and, where the dialect has it,
//! `stream_options.include_usage` true, each in place; what is already so stays as it is spelled. Every other byte is sent as it came. Members that are
//! missing go to the front.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::super::dialect::Settings;
use crate::protocol::{
    adapter::RequestError,
    json::{
        edit::{Edit, Wanted, splice},
        raw::{Object, quoted},
    },
};

const FIELD: &str = "native.json";

/// The body to send for `json`, which keeps its buffer if nothing must change.
pub(super) fn body(json: &Bytes, model: &str, settings: Settings) -> Result<Bytes, RequestError> {
    let mut wanted = ["model", "stream", "stream_options", "n"].map(Wanted::new);
    let object = Object::parse(json, |name, value| {
        if let Some(wanted) = wanted.iter_mut().find(|wanted| wanted.name == name) {
            wanted.see(value);
        }
    })
    .map_err(|error| RequestError::invalid(FIELD, error.to_string()))?;
    let edits = edits(&object, wanted, model, settings).map_err(|error| error.within(FIELD))?;
    Ok(match edits.is_empty() {
        true => json.clone(),
        false => splice(json, &object, edits),
    })
}

/// The text of `stream_options` with usage asked for; `None` if it does so already.
pub(super) fn with_usage(options: &RawValue) -> Result<Option<String>, RequestError> {
    const ALONE: &str = r#"{"include_usage":true}"#;
    let text = options.get();
    if text == "null" {
        return Ok(Some(ALONE.to_owned()));
    }
    let mut usage = Wanted::new("include_usage");
    let object = Object::parse(text.as_bytes(), |name, value| {
        if name == usage.name {
            usage.see(value);
        }
    })
    .map_err(|error| RequestError::invalid("stream_options", error.to_string()))?;
    let edit = match usage
        .once()
        .map_err(|error| error.within("stream_options"))?
    {
        Some(value) if value.get() == "true" => return Ok(None),
        Some(value) => Edit::Replace(object.range(value), "true".to_owned()),
        None => Edit::Insert(r#""include_usage":true"#.to_owned()),
    };
    let edited = splice(text.as_bytes(), &object, vec![edit]);
    Ok(Some(String::from_utf8_lossy(&edited).into_owned()))
}

/// Refuses a request for more than one choice.
pub(super) fn one_choice(n: &RawValue) -> Result<(), RequestError> {
    let one = match n.get() {
        "null" => true,
        text => text.parse::<f64>().is_ok_and(|n| n == 1.0),
    };
    match one {
        true => Ok(()),
        false => Err(RequestError::invalid(
            "n",
            "must be 1 or absent: a generation is one choice",
        )),
    }
}

fn edits<'a>(
    object: &Object<'a>,
    wanted: [Wanted<'a>; 4],
    model: &str,
    settings: Settings,
) -> Result<Vec<Edit>, RequestError> {
    let [old_model, stream, stream_options, n] = wanted;
    let mut edits = Vec::new();
    if let Some(n) = n.once()? {
        one_choice(n)?;
    }
    match old_model.once()? {
        Some(old) if serde_json::from_str::<String>(old.get()).is_ok_and(|old| old == model) => {}
        Some(old) => edits.push(Edit::Replace(object.range(old), quoted(model))),
        None => edits.push(Edit::Insert(format!(r#""model":{}"#, quoted(model)))),
    }
    match stream.once()? {
        Some(stream) if stream.get() == "true" => {}
        Some(stream) => edits.push(Edit::Replace(object.range(stream), "true".to_owned())),
        None => edits.push(Edit::Insert(r#""stream":true"#.to_owned())),
    }
    match stream_options.once()? {
        _ if !settings.stream_options => {}
        Some(options) => {
            if let Some(text) = with_usage(options)? {
                edits.push(Edit::Replace(object.range(options), text));
            }
        }
        None => edits.push(Edit::Insert(
            r#""stream_options":{"include_usage":true}"#.to_owned(),
        )),
    }
    Ok(edits)
}
