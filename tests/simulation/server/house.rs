//! The configuration that a seed's sidecar runs on.

use std::time::Duration;

use crate::{
    dice::Dice,
    model::{STRICTNESS, Strictness},
    support::secs,
};

/// Nobody waits for one of so many.
pub const MANY_SLOTS: usize = 64;

/// What the checks need to know of it.
#[derive(Clone, Debug)]
pub struct House {
    pub config: String,
    pub slots: usize,
    pub max_attempts: usize,
    pub deadline: Duration,
    /// The shortest wait before a target is tried again by who was not told to wait.
    pub backoff: Duration,
    /// The shortest silence that is a stall, and the longest that may pass with keepalives alone.
    pub stall: Duration,
    pub no_progress: Duration,
    /// The turn gate of the route, if it is on: how strict, and how many attempts it judges.
    pub gate: Option<(Strictness, u32)>,
    /// Of provider `a`: so many sends in so long, and so many at a time.
    pub limit: Option<(usize, Duration, usize)>,
}

impl House {
    pub fn draw(dice: &mut Dice) -> House {
        let keys = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulation/server/key");
        let credentials = match dice.below(3) {
            0 => String::new(),
            count => {
                let each = (1..=count)
                    .map(|n| format!("{{name: k{n}, api_key: {{file: '{keys}{n}.txt'}}}}"));
                format!(", credentials: [{}]", each.collect::<Vec<_>>().join(", "))
            }
        };
        let goes_on = match dice.chance(40) {
            true => ", dialect: openrouter, continue: prefill",
            false => "",
        };
        let provider = |name: &str| {
            format!(
                "  {name}: {{base_url: 'http://{name}.test/v1', profile: \
                 hosted{goes_on}{credentials}}}\n"
            )
        };
        let providers: String = ["a", "b", "c"].map(provider).concat();
        let targets: Vec<String> = ["a", "b", "c"]
            .iter()
            .take(1 + dice.below(3) as usize)
            .map(|name| format!("{{provider: {name}, model: m}}"))
            .collect();
        let max_attempts = dice.pick(&[1, 3, 5, 11, 11]);
        let is_quick = dice.chance(50);
        let backoff = dice.pick(&[50, 1_000, 1_000]);
        let timers = if is_quick {
            "{connect: 3s, first_token: 20s, inter_delta: 5s, open_block: 8s, no_progress: 30s, \
             tail: 1s}"
        } else {
            "{tail: 2s}"
        };
        let deadline = secs(dice.pick(&[20, 600, 600]));
        let gate = dice
            .chance(50)
            .then(|| (dice.pick(STRICTNESS), 1 + dice.below(6) as u32));
        let gated = gate.map_or_else(String::new, |(strictness, attempts)| {
            let rules = match strictness {
                Strictness::Agent => "preset: agent",
                Strictness::Lenient => "preset: lenient",
                Strictness::Strict => "preset: agent, accept_bare_final: false",
            };
            format!("    gate: {{{rules}, max_attempts: {attempts}}}\n")
        });
        let limit = dice.chance(40).then(|| {
            let window = secs(dice.pick(&[1, 10, 60, 700]));
            (dice.pick(&[1, 2, 5]), window, dice.pick(&[1, 3]))
        });
        let budgets = limit.map_or_else(String::new, |(sends, window, at_a_time)| {
            format!(
                "budgets:\n  - {{name: b, match: {{provider: a}}, concurrent: {at_a_time}, \
                 max_waiting: {}, requests: [{{limit: {sends}, window: {}s}}]}}\n",
                dice.pick(&[1, 100]),
                window.as_secs()
            )
        });
        let config = format!(
            "providers:\n{providers}routes:\n  default:\n    targets: [{}]\n    timers: {timers}\n    \
             client_idle: {}s\n    max_message_bytes: {}\n    \
             recovery: {{max_attempts: {max_attempts}, deadline: {}s, patience: {}s, \
             backoff: {{base: {backoff}ms, jitter: 0}}}}\n{gated}\
             retry_budget: {{floor: {}}}\nlimits: {{retention: {}s, max_total_bytes: {}}}\n\
             drain: {{grace: {}s}}\n{budgets}",
            targets.join(", "),
            dice.pick(&[0, 7, 120, 120]),
            dice.pick(&["8MiB", "8MiB", "8MiB", "2KiB"]),
            deadline.as_secs(),
            dice.pick(&[0, 5, 60]),
            dice.pick(&[0, 1_000, 1_000, 1_000]),
            dice.pick(&[0, 30, 60]),
            dice.pick(&["128MiB", "128MiB", "128MiB", "16KiB"]),
            dice.pick(&[0, 10, 120]),
        );
        House {
            config,
            slots: dice.pick(&[MANY_SLOTS, MANY_SLOTS, MANY_SLOTS, 1, 3]),
            max_attempts,
            deadline,
            backoff: Duration::from_millis(backoff),
            stall: if is_quick { secs(5) } else { secs(45) },
            no_progress: if is_quick { secs(30) } else { secs(300) },
            gate,
            limit,
        }
    }
}
