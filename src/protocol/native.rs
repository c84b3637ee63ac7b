//! A native body: the client's own bytes, changed only where they must be.
//!
//! `model` becomes the target's and `stream` true, each in place; what is already so stays as it is
//! spelled. Every other byte is sent as it came. Members that are missing go to the front.

use bytes::Bytes;

use super::{
    adapter::RequestError,
    json::{
        edit::{Edit, Wanted, splice},
        raw::{Object, quoted},
    },
};

const FIELD: &str = "native.json";

/// The body to send for `json`, which keeps its buffer if nothing must change.
pub(super) fn body(json: &Bytes, model: &str) -> Result<Bytes, RequestError> {
    let mut wanted = ["model", "stream"].map(Wanted::new);
    let object = Object::parse(json, |name, value| {
        if let Some(wanted) = wanted.iter_mut().find(|wanted| wanted.name == name) {
            wanted.see(value);
        }
    })
    .map_err(|error| RequestError::invalid(FIELD, error.to_string()))?;
    let edits = edits(&object, wanted, model).map_err(|error| error.within(FIELD))?;
    Ok(match edits.is_empty() {
        true => json.clone(),
        false => splice(json, &object, edits),
    })
}

fn edits<'a>(
    object: &Object<'a>,
    wanted: [Wanted<'a>; 2],
    model: &str,
) -> Result<Vec<Edit>, RequestError> {
    let [old_model, stream] = wanted;
    let mut edits = Vec::new();
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
    Ok(edits)
}
