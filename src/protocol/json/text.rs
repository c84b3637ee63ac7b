//! JSON strings, from the raw text of a value to the text that they mean.

use serde_json::value::RawValue;

/// The text of a JSON string, or `None` where the value is no string. Borrows from the chunk where
/// nothing is escaped, else from `scratch`, which is used again for every string.
///
/// Half of a surrogate pair has no meaning on its own and becomes U+FFFD.
pub(in crate::protocol) fn string<'t>(
    raw: &'t RawValue,
    scratch: &'t mut String,
) -> Option<&'t str> {
    let body = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    let Some(first) = memchr::memchr(b'\\', body.as_bytes()) else {
        return Some(body);
    };
    scratch.clear();
    let (plain, mut rest) = body.split_at_checked(first)?;
    scratch.push_str(plain);
    while let Some(escape) = rest.strip_prefix('\\') {
        rest = unescape(escape, scratch)?;
        let end = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        let (plain, tail) = rest.split_at_checked(end)?;
        scratch.push_str(plain);
        rest = tail;
    }
    Some(scratch)
}

/// Like [`string`], for callers that have no use for an empty one.
pub(in crate::protocol) fn non_empty<'t>(
    raw: Option<&'t RawValue>,
    scratch: &'t mut String,
) -> Option<&'t str> {
    string(raw?, scratch).filter(|text| !text.is_empty())
}

/// `true` for what a program would take as present: not `null`, `false`, zero or empty.
pub(in crate::protocol) fn truthy(raw: Option<&RawValue>) -> bool {
    let Some(raw) = raw else { return false };
    let text = raw.get();
    let inside = |open, close| {
        text.strip_prefix(open)
            .and_then(|rest: &str| rest.strip_suffix(close))
            .map(str::trim)
    };
    !(matches!(text, "null" | "false" | "0" | "\"\"")
        || inside('{', '}') == Some("")
        || inside('[', ']') == Some(""))
}

/// Writes the character that an escape stands for; `escape` begins behind the backslash. Returns what
/// follows it, or `None` if it is no escape of JSON.
fn unescape<'t>(escape: &'t str, into: &mut String) -> Option<&'t str> {
    let mut characters = escape.chars();
    let character = match characters.next()? {
        plain @ ('"' | '\\' | '/') => plain,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unescape_unicode(characters.as_str(), into),
        _ => return None,
    };
    into.push(character);
    Some(characters.as_str())
}

fn unescape_unicode<'t>(digits: &'t str, into: &mut String) -> Option<&'t str> {
    let (unit, rest) = hex4(digits)?;
    if (0xD800..0xDC00).contains(&unit)
        && let Some((low, rest)) = rest.strip_prefix("\\u").and_then(hex4)
        && (0xDC00..0xE000).contains(&low)
    {
        let code = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        into.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return Some(rest);
    }
    into.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
    Some(rest)
}

fn hex4(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}
