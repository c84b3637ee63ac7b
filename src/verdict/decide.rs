//! The order of evidence: what decides when a response says several things.
//!
//! 1. a name that says exactly what failed (vendor detail before code before type);
//! 2. a name that says which kind of failure it is;
//! 3. a status of one kind only (401, 429, …), first the one in the body, then the one of HTTP;
//! 4. a name for many failures (`invalid_request_error`, `server_error`);
//! 5. a bare status (400, 500, …).
//!
//! Then the structured marks and the anchored phrases refine what is still ambiguous. The HTTP status
//! outranks a generic name because several servers put one type on every error: OpenAI sends
//! `invalid_request_error` with 401, 403 and 404, Ollama `api_error` with 401.

use super::{
    Class, ErrorObject,
    codes::{self, Weight},
    phrases,
};

/// The longest provider text that is searched for phrases, in bytes.
const MAX_SEARCHED_BYTES: usize = 16 << 10;

/// What a response said, as far as it matters for its class.
pub(super) struct Evidence<'a> {
    /// An error name from outside the body (`x-amzn-errortype`).
    pub header_name: Option<&'a str>,
    /// The body, where it could be read as an error object.
    pub object: Option<&'a ErrorObject>,
    /// The body as plain text, where it is that.
    pub text: Option<&'a str>,
    /// The HTTP status; none for an error inside a successful response.
    pub status: Option<u16>,
}

/// A class and the provider's word for it.
pub(super) struct Decision {
    pub class: Class,
    /// The code or type that decided; where only a generic one or a status did, the first that the
    /// provider gave, which is the most specific.
    pub code: Option<String>,
}

/// The class of the evidence; [`Class::Unclassified`] where nothing listed was said.
pub(super) fn decide(evidence: &Evidence<'_>) -> Decision {
    let names = names(evidence);
    let number = evidence.object.and_then(|object| object.number);
    let first = names.first().copied();
    let Some(signal) = strongest(&names, number, evidence.status) else {
        return Decision {
            class: Class::Unclassified,
            code: first.map(str::to_owned),
        };
    };
    let code = match signal.source {
        Source::Name(name) if signal.weight > Weight::Generic => Some(name),
        _ => first,
    };
    let code = code
        .map(str::to_owned)
        .or_else(|| number.map(|number| number.to_string()));
    Decision {
        class: refine(&signal, evidence),
        code,
    }
}

/// One thing the response said, and what it stands for.
struct Signal<'a> {
    class: Class,
    weight: Weight,
    source: Source<'a>,
}

enum Source<'a> {
    Name(&'a str),
    Status(u16),
}

fn names<'a>(evidence: &Evidence<'a>) -> Vec<&'a str> {
    let object = evidence.object.map_or(&[][..], |object| &object.names);
    evidence
        .header_name
        .into_iter()
        .chain(object.iter().map(String::as_str))
        .collect()
}

/// The strongest evidence, the first of equals.
fn strongest<'a>(
    names: &[&'a str],
    number: Option<u16>,
    status: Option<u16>,
) -> Option<Signal<'a>> {
    let named = names.iter().filter_map(|name| {
        let (class, weight) = codes::of_name(name)?;
        Some(Signal {
            class,
            weight,
            source: Source::Name(name),
        })
    });
    let counted = [number, status].into_iter().flatten().map(|status| {
        let (class, weight) = codes::of_status(status);
        Signal {
            class,
            weight,
            source: Source::Status(status),
        }
    });
    named.chain(counted).reduce(|best, next| {
        if next.weight > best.weight {
            next
        } else {
            best
        }
    })
}

fn refine(signal: &Signal<'_>, evidence: &Evidence<'_>) -> Class {
    let Signal { class, weight, .. } = *signal;
    if let Some(object) = evidence.object {
        if class == Class::RateLimited && weight == Weight::Telling && object.quota_spent {
            return Class::QuotaExhausted;
        }
        if class == Class::Permission && object.moderated {
            return Class::ContentFiltered;
        }
    }
    // Of the bare statuses, text refines only those that stand for anything (400, 413, 500) and those
    // that have phrases of their own.
    if weight == Weight::Generic
        && !matches!(
            signal.source,
            Source::Name(_) | Source::Status(400 | 413 | 500)
        )
    {
        return class;
    }
    phrases::refine(class, weight, &searched(evidence)).unwrap_or(class)
}

/// What the provider wrote, in lower case, for the phrases.
fn searched(evidence: &Evidence<'_>) -> String {
    let parts = match evidence.object {
        Some(object) => [object.message.as_deref(), object.detail.as_deref()],
        None => [evidence.text, None],
    };
    let mut text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
    text.truncate(text.floor_char_boundary(MAX_SEARCHED_BYTES));
    text.make_ascii_lowercase();
    text
}
