//! What may have been meant, and how what was written is told again.

/// Characters of a text of the file that an error repeats. Fixed.
const MAX_SHOWN: usize = 64;
/// Names that a word is compared with. Fixed.
const MAX_COMPARED: usize = 1000;
/// Names that a hint lists. Fixed.
const MAX_LISTED: usize = 20;

/// `text` in quotes, escaped and cut to a length that fits a line.
pub(super) fn shown(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{:?}…", text.split_at(end).0),
        None => format!("{text:?}"),
    }
}

/// The candidate that `word` is most likely a misspelling of, if one is close.
pub(super) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // The distance is quadratic; nothing that long is a misspelling of a name of ours.
    if word.len() > MAX_SHOWN {
        return None;
    }
    let allowed = (word.chars().count() / 3).min(3);
    candidates
        .into_iter()
        .take(MAX_COMPARED)
        .map(|candidate| (strsim::osa_distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean …?", and what there is to choose from.
pub(super) fn hints(word: &str, candidates: &[&str], what: &str) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(near) = nearest(word, candidates.iter().copied()) {
        hints.push(format!("did you mean `{near}`?"));
    }
    match candidates.get(..MAX_LISTED) {
        Some(first) => hints.push(format!("{what}: {}, …", first.join(", "))),
        None if candidates.is_empty() => {}
        None => hints.push(format!("{what}: {}", candidates.join(", "))),
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_misspelling_and_leaves_other_words_alone() {
        let names = ["inter_delta", "open_block", "tail"];
        assert_eq!(nearest("inter_dleta", names), Some("inter_delta"));
        assert_eq!(nearest("tial", names), Some("tail"));
        assert_eq!(nearest("jitter", names), None);
        assert_eq!(nearest("b", ["a"]), None);
    }

    #[test]
    fn shows_texts_on_one_line_however_long_they_are() {
        assert_eq!(shown("a\nb"), r#""a\nb""#);
        assert_eq!(shown(&"é".repeat(65)), format!("\"{}\"…", "é".repeat(64)));
    }

    #[test]
    fn lists_twenty_names_at_most() {
        let names = ["name"; 30];
        let [list] = hints("other", &names, "names")
            .try_into()
            .unwrap_or_default();
        assert_eq!(list.matches("name,").count(), 20);
    }
}
