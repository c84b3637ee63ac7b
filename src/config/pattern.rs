//! Patterns, in which `*` stands for any run of characters.

/// Whether all of `text` is what `pattern` stands for.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        assert!(matches("gpt-5-*", "gpt-5-mini"));
        assert!(matches("gpt-5", "gpt-5"));
        assert!(matches("*", "anything"));
        assert!(matches("*", ""));
        assert!(matches("a*b*c", "a-x-b-y-c"));
        assert!(!matches("gpt-5", "gpt-5-mini"));
        assert!(!matches("gpt-5-*", "gpt-4"));
        assert!(!matches("a*bc*c", "abc"));
    }
}
