//! The ready-made scripts: the usual faults of providers of OpenAI Chat Completions, compiled in.

use super::playlist::Playlist;

/// A name and the file of that name.
macro_rules! ready {
    ($name:literal) => {
        ($name, include_str!(concat!("scripts/", $name, ".json")))
    };
}

const FILES: &[(&str, &str)] = &[
    ready!("401"),
    ready!("404"),
    ready!("429"),
    ready!("429-date"),
    ready!("429-hour"),
    ready!("429-no-wait"),
    ready!("500"),
    ready!("503"),
    ready!("529"),
    ready!("broken-json"),
    ready!("close-before-head"),
    ready!("content-filter"),
    ready!("context-overflow"),
    ready!("done-without-finish"),
    ready!("empty"),
    ready!("error-after-tokens"),
    ready!("error-in-200"),
    ready!("fin-while-idle"),
    ready!("finish-then-silence"),
    ready!("h2-goaway"),
    ready!("h2-refused-stream"),
    ready!("h2-reset"),
    ready!("html"),
    ready!("huge-event"),
    ready!("keepalives"),
    ready!("late-first-token"),
    ready!("no-reply"),
    ready!("ok"),
    ready!("premature-end"),
    ready!("quota"),
    ready!("redirect"),
    ready!("reset"),
    ready!("reset-before-head"),
    ready!("reset-while-reading"),
    ready!("slow-drip"),
    ready!("stall"),
    ready!("stall-before-first-token"),
    ready!("stall-with-keepalives"),
    ready!("tool-call"),
    ready!("tool-call-cut"),
    ready!("truncated"),
    ready!("truncated-at-boundary"),
    ready!("whole-json"),
];

/// The scripts by name. One that could not be read would be left out: a test reads them all.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Playlist)> {
    let read = FILES
        .iter()
        .map(|(name, text)| (*name, Playlist::parse(text)));
    read.filter_map(|(name, playlist)| Some((name, playlist.ok()?)))
}

/// The file of a ready-made script, to be read or copied.
pub fn text(name: &str) -> Option<&'static str> {
    let file = FILES.iter().find(|(known, _)| *known == name);
    file.map(|(_, text)| *text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_says_what_it_is_about() {
        for (name, text) in FILES {
            let playlist = Playlist::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(
                playlist.about.ends_with('.'),
                "{name}: {:?}",
                playlist.about
            );
            assert!(!playlist.scripts.is_empty(), "{name}");
        }
        assert_eq!(all().count(), FILES.len());
    }

    #[test]
    fn every_file_of_the_folder_is_ready_made() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/simulator/scripts");
        let files = std::fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().path());
        let mut names: Vec<String> = names
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, listed);
    }
}
