//! What is played: what each provider does, what to look for, and how it must end.

use std::time::Duration;

use crate::{
    proto::{Executed, VerdictClass as Class},
    simulator::{Close, Op, Pace, Recording, Script, chat},
};

/// One generation, and what it must come to.
pub(super) struct Scene {
    /// Its heading.
    pub title: &'static str,
    /// What teaches the reader to see it.
    pub look_for: &'static str,
    /// The route that is asked for; also the model by which the provider knows it.
    pub route: &'static str,
    /// What the provider does, one request after the other; the last script repeats.
    pub scripts: Vec<Script>,
    /// The whole message, where it is known.
    pub message: Option<&'static str>,
    /// What the ledger must say.
    pub attempts: Vec<Expected>,
}

/// What the ledger must say of one attempt.
pub(super) struct Expected {
    /// The provider.
    pub provider: &'static str,
    /// Whether it got the request.
    pub executed: Executed,
    /// Why it failed; `None`: it was accepted.
    pub verdict: Option<Class>,
    /// At least this was waited before it, on the provider's word.
    pub asked_wait: Option<Duration>,
}

/// The scenes, in order. `pace` is between words.
pub(super) fn all(pace: Duration) -> Vec<Scene> {
    vec![healthy(pace), stall(pace), limited(pace), dead(pace)]
}

fn healthy(pace: Duration) -> Scene {
    const TEXT: &str = "Most streams are like this one: they begin, they go on, and they end with \
                        the provider's own word that they are complete.";
    Scene {
        title: "A healthy stream",
        look_for: "What comes is preview (dim on a terminal) until the provider has proven that it\n\
                   is complete. Then it is committed: final, and plain.",
        route: "healthy",
        scripts: vec![chat::answer("healthy", TEXT, pace)],
        message: Some(TEXT),
        attempts: vec![Expected::accepted("provider")],
    }
}

fn stall(pace: Duration) -> Scene {
    const BROKEN: &str = "The lighthouse keeper climbed the stairs, lit the lamp, and then she";
    const TEXT: &str = "The lighthouse keeper climbed the stairs, lit the lamp, and wrote into her \
                        log: all ships passed.";
    Scene {
        title: "A stream that falls silent",
        look_for: "The connection stays open, but nothing comes any more. The timer inter_delta\n\
                   (here 1.5 s) notices. What was shown becomes void, and only then the replay is\n\
                   shown: the two never mix.",
        route: "stalls",
        scripts: vec![
            chat::beginning("stalls", BROKEN, pace).then(Op::Close(Close::Never)),
            chat::answer("stalls", TEXT, pace),
        ],
        message: Some(TEXT),
        attempts: vec![
            Expected::failed("provider", Executed::Yes, Class::Stall),
            Expected::accepted("provider"),
        ],
    }
}

fn limited(pace: Duration) -> Scene {
    const TEXT: &str = "Waiting as long as one was asked to is cheaper than asking again.";
    let too_many = chat::error(429, "Too many requests, slow down.");
    Scene {
        title: "A 429 whose Retry-After is honoured",
        look_for: "The provider refuses with `retry-after: 1`. The sidecar says that it waits, and\n\
                   waits 1 s, not less. Nothing was shown, so nothing has to be reset.",
        route: "limited",
        scripts: vec![
            too_many.with_header("retry-after", "1"),
            chat::answer("limited", TEXT, pace),
        ],
        message: Some(TEXT),
        attempts: vec![
            Expected::failed("provider", Executed::Yes, Class::RateLimited),
            Expected {
                asked_wait: Some(Duration::from_secs(1)),
                ..Expected::accepted("provider")
            },
        ],
    }
}

fn dead(pace: Duration) -> Scene {
    const TEXT: &str = "The first address was silent; this answer came from the second.";
    Scene {
        title: "A dead target, and its fallback",
        look_for: "The route's first target refuses connections. It is tried twice, then the next\n\
                   one has its turn. The ledger proves that the dead one was sent nothing:\n\
                   executed is no.",
        route: "fallback",
        scripts: vec![chat::answer("fallback", TEXT, pace)],
        message: Some(TEXT),
        attempts: vec![
            Expected::failed("dead", Executed::No, Class::Transport),
            Expected::failed("dead", Executed::No, Class::Transport),
            Expected::accepted("provider"),
        ],
    }
}

impl Scene {
    /// A recording, in one scene of its own.
    pub(super) fn recording(recording: &Recording, pace: Duration) -> Self {
        const LONGEST: Duration = Duration::from_secs(10);
        let events = u32::try_from(recording.writes().len()).unwrap_or(u32::MAX);
        let pace = pace.min(LONGEST / events.max(1));
        Self {
            title: "A recorded stream",
            look_for: "The recording is what the provider answers; the sidecar cannot tell the\n\
                   difference.",
            route: "healthy",
            scripts: vec![recording.script(Pace::Given(pace))],
            message: None,
            attempts: vec![Expected::accepted("provider")],
        }
    }
}

impl Expected {
    fn accepted(provider: &'static str) -> Self {
        Self {
            provider,
            executed: Executed::Yes,
            verdict: None,
            asked_wait: None,
        }
    }

    fn failed(provider: &'static str, executed: Executed, class: Class) -> Self {
        Self {
            executed,
            verdict: Some(class),
            ..Self::accepted(provider)
        }
    }
}
