//! What every JSON protocol makes of the provider-neutral options of a conversation: the sampling, and
//! the further members of `provider_options_json`.

use std::borrow::Cow;

use serde::{Serialize, ser::SerializeMap};
use serde_json::value::RawValue;

use super::{adapter::RequestError, json::raw::Object};
use crate::proto::Sampling;

/// The field that holds them.
pub(super) const FIELD: &str = "provider_options_json";

/// Members of `provider_options_json` at most; the largest request has about 40.
const MAX_OPTIONS: usize = 256;

/// JSON has no NaN and no infinity. Other bounds are the provider's to judge.
pub(super) fn check_sampling(sampling: &Sampling) -> Result<(), RequestError> {
    for (field, value) in [
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
    ] {
        if value.is_some_and(|value| !value.is_finite()) {
            return Err(RequestError::invalid(field, "must be a finite number"));
        }
    }
    match sampling.max_output_tokens {
        Some(0) => Err(RequestError::invalid(
            "max_output_tokens",
            "must be at least 1",
        )),
        _ => Ok(()),
    }
}

/// The members of `provider_options_json`, as they were written.
pub(super) struct Options<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> Options<'a> {
    /// Reads them. The `reserved` ones are not the client's to choose there.
    pub(super) fn parse(json: &'a [u8], reserved: &[&str]) -> Result<Self, RequestError> {
        if json.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let mut members = Vec::new();
        let mut count = 0;
        Object::parse(json, |name, value| {
            count += 1;
            if count <= MAX_OPTIONS {
                members.push((name, Cow::Borrowed(value)));
            }
        })
        .map_err(|error| RequestError::invalid(FIELD, error.to_string()))?;
        if count > MAX_OPTIONS {
            let reason = format!("has more than {MAX_OPTIONS} members");
            return Err(RequestError::invalid(FIELD, reason));
        }
        let options = Self(members);
        options
            .check(reserved)
            .map_err(|error| error.within(FIELD))?;
        Ok(options)
    }

    /// Whether there is one of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(option, _)| option == name)
    }

    /// Each of them.
    pub(super) fn members_mut(
        &mut self,
    ) -> impl Iterator<Item = (&str, &mut Cow<'a, RawValue>)> + '_ {
        self.0.iter_mut().map(|(name, value)| (&**name, value))
    }

    fn check(&self, reserved: &[&str]) -> Result<(), RequestError> {
        for (index, (name, _)) in self.0.iter().enumerate() {
            if reserved.contains(&name.as_ref()) {
                return Err(RequestError::invalid(name.as_ref(), "must not be set here"));
            }
            if self
                .0
                .iter()
                .take(index)
                .any(|(earlier, _)| earlier == name)
            {
                let name = name.escape_debug().take(64).collect::<String>();
                return Err(RequestError::invalid(name, "must not be repeated"));
            }
        }
        Ok(())
    }
}

/// Writes the members of a body: what the conversation says, then the provider options.
pub(super) struct Members<'a, M> {
    map: M,
    options: &'a Options<'a>,
}

impl<'a, M: SerializeMap> Members<'a, M> {
    /// Writes to `map`.
    pub(super) fn new(map: M, options: &'a Options<'a>) -> Self {
        Self { map, options }
    }

    /// A provider option of the same name takes the place of what the conversation says.
    pub(super) fn put(
        &mut self,
        name: &str,
        value: Option<impl Serialize>,
    ) -> Result<(), M::Error> {
        match value {
            Some(value) if !self.options.has(name) => self.map.serialize_entry(name, &value),
            _ => Ok(()),
        }
    }

    /// Writes the provider options, and with them the end.
    pub(super) fn end(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in &self.options.0 {
            self.map.serialize_entry(name, value.as_ref())?;
        }
        self.map.end()
    }
}
