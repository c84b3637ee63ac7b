//! Which script answers which request.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use serde::Deserialize;

use super::{
    playlist::{After, Playlist},
    protocol::Protocol,
    ready,
    script::Script,
};

/// The header that names scripts; it goes before the model.
pub const HEADER: &str = "x-redrive-script";

/// The most different selections whose turns are counted. Fixed; further ones are refused.
const MAX_SELECTIONS: usize = 1024;

/// The longest selection, in bytes. Fixed.
const MAX_SELECTION: usize = 512;

/// A request that is to be answered.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Its path, with the query.
    pub path: &'a str,
    /// Its headers; names in lower case.
    pub headers: &'a [(String, String)],
    /// Its body, as far as it has come.
    pub body: &'a [u8],
    /// Whether that is all of it.
    pub complete: bool,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What is done.
    pub script: Arc<Script>,
    /// By which name it was found.
    pub name: String,
    /// Its place in what that name stands for, counted from 0.
    pub place: usize,
}

/// Chooses scripts.
pub trait Choose: Send + Sync + 'static {
    /// The script for `asked`. A request whose body is not complete may be left for later (`None`);
    /// it is asked for again when it is. `None` then: there is no script, and the answer is 400.
    fn choose(&self, asked: Asked<'_>) -> Option<Chosen>;

    /// Forgets which turn it is.
    fn start_again(&self) {}
}

impl Asked<'_> {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The `model` of the body; of a body that is not complete, what looks like it.
    pub fn model(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Wanted {
            model: String,
        }
        if self.complete {
            let wanted = serde_json::from_slice::<Wanted>(self.body).ok();
            return wanted.map(|wanted| wanted.model);
        }
        let body = String::from_utf8_lossy(self.body);
        let (_, rest) = body.split_once("\"model\"")?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        let (model, _) = rest.strip_prefix('"')?.split_once('"')?;
        Some(model.to_owned())
    }
}

/// Playlists by name, chosen by the request: the header [`HEADER`], else its model, each a name or
/// several with commas between them; else what answers all others.
#[derive(Debug, Default)]
pub struct Library {
    named: BTreeMap<String, Named>,
    others: Option<String>,
    turns: Mutex<HashMap<String, usize>>,
}

/// What a name stands for.
#[derive(Debug)]
enum Named {
    /// The same for all requests.
    Fixed(Playlist),
    /// One for each protocol.
    Spoken(BTreeMap<Protocol, Playlist>),
}

/// A selection that names no script.
#[derive(Debug, thiserror::Error)]
#[error("there is no script {0:?}")]
pub struct UnknownScript(String);

impl Library {
    /// The ready-made scripts. They answer in the protocol of the request.
    pub fn ready_made() -> Self {
        let mut spoken = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (name, protocol, playlist) in ready::all() {
            let name = spoken.entry(name.to_owned()).or_default();
            name.insert(protocol, playlist);
        }
        let named = spoken.into_iter();
        Self {
            named: named
                .map(|(name, each)| (name, Named::Spoken(each)))
                .collect(),
            ..Self::default()
        }
    }

    /// Takes a playlist in, in place of one of the same name. It answers as it is, in any protocol.
    pub fn insert(&mut self, name: &str, playlist: Playlist) {
        self.named.insert(name.to_owned(), Named::Fixed(playlist));
    }

    /// What answers requests that name nothing.
    ///
    /// # Errors
    /// If a name in `selection` is unknown.
    pub fn answer_others_with(&mut self, selection: &str) -> Result<(), UnknownScript> {
        let unknown = selection
            .split(',')
            .find(|name| !self.named.contains_key(name.trim()));
        if let Some(name) = unknown {
            return Err(UnknownScript(name.trim().to_owned()));
        }
        self.others = Some(selection.to_owned());
        Ok(())
    }

    /// All playlists, by name, as they answer in `protocol`.
    pub fn playlists(&self, protocol: Protocol) -> impl Iterator<Item = (&str, &Playlist)> {
        let named = self.named.iter();
        named.filter_map(move |(name, named)| Some((name.as_str(), named.playlist(protocol)?)))
    }

    /// What `selection` stands for: one playlist as it is, several as one that starts again.
    fn find(&self, selection: &str, protocol: Protocol) -> Option<Playlist> {
        let names = selection
            .split(',')
            .map(|name| self.named.get(name.trim())?.playlist(protocol));
        let mut found = names.collect::<Option<Vec<_>>>()?;
        if found.len() == 1 {
            return found.pop().cloned();
        }
        let scripts = found
            .iter()
            .flat_map(|playlist| playlist.scripts.iter().cloned());
        Some(Playlist {
            scripts: scripts.collect(),
            after: After::StartAgain,
            ..Playlist::default()
        })
    }

    /// Whose turn it is, counted from 0. `None`: too many selections.
    fn turn(&self, selection: &str) -> Option<usize> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() >= MAX_SELECTIONS && !turns.contains_key(selection) {
            return None;
        }
        let turn = turns.entry(selection.to_owned()).or_default();
        *turn += 1;
        Some(*turn - 1)
    }
}

impl Named {
    fn playlist(&self, protocol: Protocol) -> Option<&Playlist> {
        match self {
            Self::Fixed(playlist) => Some(playlist),
            Self::Spoken(each) => each.get(&protocol),
        }
    }
}

impl Choose for Library {
    fn choose(&self, asked: Asked<'_>) -> Option<Chosen> {
        let protocol = Protocol::of(asked.path);
        let header = asked.header(HEADER).map(str::to_owned);
        let selection = match header {
            // A header that names nothing is a mistake, which `others` would hide.
            Some(named) => named,
            None => {
                let known = |model: &String| self.find(model, protocol).is_some();
                let model = asked.model().filter(known);
                match (model, asked.complete) {
                    (Some(model), _) => model,
                    (None, true) => self.others.clone()?,
                    (None, false) => return None,
                }
            }
        };
        if selection.len() > MAX_SELECTION {
            return None;
        }
        let playlist = self.find(&selection, protocol)?;
        let (place, script) = playlist.script(self.turn(&selection)?)?;
        Some(Chosen {
            script: Arc::clone(script),
            name: selection,
            place,
        })
    }

    fn start_again(&self) {
        self.turns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn asked(body: &str) -> Asked<'_> {
        Asked {
            path: "/v1/chat/completions",
            headers: &[],
            body: body.as_bytes(),
            complete: true,
        }
    }

    fn library() -> Library {
        let mut library = Library::default();
        for status in [200, 429, 503] {
            let one = Playlist::new([Script::new(status, "text/plain")], After::RepeatLast);
            library.insert(&status.to_string(), one);
        }
        library.answer_others_with("200").unwrap();
        library
    }

    fn statuses(library: &Library, asked: Asked<'_>, times: usize) -> Vec<Option<u16>> {
        let status = |_| library.choose(asked).map(|chosen| chosen.script.status);
        (0..times).map(status).collect()
    }

    #[test]
    fn the_model_names_a_script_and_others_have_an_answer_too() {
        let library = library();
        assert_eq!(
            statuses(&library, asked(r#"{"model": "503"}"#), 2),
            [Some(503); 2]
        );
        assert_eq!(
            statuses(&library, asked(r#"{"model": "gpt"}"#), 1),
            [Some(200)]
        );
        assert_eq!(statuses(&library, asked("no JSON"), 1), [Some(200)]);
    }

    #[test]
    fn several_names_take_turns_and_can_start_again() {
        let library = library();
        let both = asked(r#"{"model": "429, 200"}"#);
        assert_eq!(
            statuses(&library, both, 3),
            [Some(429), Some(200), Some(429)]
        );
        library.start_again();
        assert_eq!(statuses(&library, both, 1), [Some(429)]);
    }

    #[test]
    fn the_header_goes_before_the_model_and_must_name_a_script() {
        let library = library();
        let headers = |name: &str| [(HEADER.to_owned(), name.to_owned())];
        let known = headers("429");
        let asked = Asked {
            headers: &known,
            ..asked(r#"{"model": "503"}"#)
        };
        assert_eq!(statuses(&library, asked, 1), [Some(429)]);
        let unknown = headers("428");
        assert_eq!(
            statuses(
                &library,
                Asked {
                    headers: &unknown,
                    ..asked
                },
                1
            ),
            [None]
        );
    }

    #[test]
    fn half_a_body_is_enough_if_it_names_the_model() {
        let library = library();
        let half = Asked {
            complete: false,
            ..asked(r#"{"model" : "503", "mess"#)
        };
        assert_eq!(statuses(&library, half, 1), [Some(503)]);
        let less = Asked {
            complete: false,
            ..asked(r#"{"messages": ["#)
        };
        assert_eq!(statuses(&library, less, 1), [None]);
    }

    #[test]
    fn only_so_many_selections_are_counted() {
        let mut library = library();
        for number in 0..=MAX_SELECTIONS {
            library.insert(
                &format!("n{number}"),
                Playlist::new([Script::event_stream()], After::RepeatLast),
            );
        }
        let model = |number: usize| format!(r#"{{"model": "n{number}"}}"#);
        for number in 0..MAX_SELECTIONS {
            assert!(library.choose(asked(&model(number))).is_some());
        }
        assert!(library.choose(asked(&model(MAX_SELECTIONS))).is_none());
        assert!(library.choose(asked(&model(0))).is_some());
    }

    #[test]
    fn an_unknown_answer_to_others_is_refused() {
        let error = Library::ready_made()
            .answer_others_with("stall,nothing")
            .unwrap_err();
        assert_eq!(error.to_string(), "there is no script \"nothing\"");
    }
}
