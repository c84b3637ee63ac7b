//! What may have been meant.

/// The candidate that `word` is most likely a misspelling of, if one is close.
pub(super) fn nearest<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // The distance is quadratic; nothing that long is a misspelling of a name of ours.
    if word.len() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).min(3);
    candidates
        .into_iter()
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
    if !candidates.is_empty() {
        hints.push(format!("{what}: {}", candidates.join(", ")));
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
}
