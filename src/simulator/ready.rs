//! The ready-made scripts: the usual faults of providers, compiled in.
//!
//! Their files hold what scripts hold, and steps `{"say": …}`, each a line: what it comes to is the
//! matter of the protocol in which the script is to answer.

use serde::Deserialize;

use super::{
    Protocol,
    playlist::Playlist,
    speech::{Speaker, Word},
};

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
    ready!("announced"),
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

/// The line of a file that is to be said.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    say: Word,
}

/// The scripts by name, in each protocol. One that could not be read would be left out: a test reads
/// them all.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Protocol, Playlist)> {
    let each = |(name, text): &(&'static str, &'static str)| {
        let (name, text) = (*name, *text);
        let read = move |protocol| {
            let spoken = spoken(text, protocol).ok()?;
            Some((name, protocol, Playlist::parse(&spoken).ok()?))
        };
        Protocol::ALL.into_iter().filter_map(read)
    };
    FILES.iter().flat_map(each)
}

/// A ready-made script that answers in `protocol`, as a file to be read or copied.
pub fn text(name: &str, protocol: Protocol) -> Option<String> {
    let (_, text) = FILES.iter().find(|(known, _)| *known == name)?;
    spoken(text, protocol).ok()
}

/// `text` with what it says in the words of `protocol`.
///
/// # Errors
/// If a line to be said is none.
fn spoken(text: &str, protocol: Protocol) -> Result<String, serde_json::Error> {
    let write = match text.contains("\"h2\"") {
        true => "data",
        false => "chunk",
    };
    let mut speaker = Speaker::new(protocol, write);
    let mut spoken = String::new();
    for line in text.lines() {
        let step = line.trim_start();
        if !step.starts_with("{\"say\"") {
            spoken += line;
            spoken.push('\n');
            continue;
        }
        let indent = &line[..line.len() - step.len()];
        // A close follows what is said, so that a comma follows too.
        let say: Say = serde_json::from_str(step.trim_end_matches(','))?;
        for step in speaker.steps(say.say) {
            spoken += &format!("{indent}{step},\n");
        }
    }
    Ok(spoken)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_in_every_protocol_and_says_what_it_is_about() {
        for (name, text) in FILES {
            for protocol in Protocol::ALL {
                let spoken =
                    spoken(text, protocol).unwrap_or_else(|error| panic!("{name}: {error}"));
                let playlist = Playlist::parse(&spoken);
                let playlist = playlist.unwrap_or_else(|error| panic!("{name}: {error}\n{spoken}"));
                let about = &playlist.about;
                assert!(about.ends_with('.'), "{name}: {about:?}");
                assert!(!playlist.scripts.is_empty(), "{name}");
            }
        }
        assert_eq!(all().count(), FILES.len() * Protocol::ALL.len());
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
