//! What a client's options make of a route's policy: they can only tighten.

use std::time::Duration;

use super::refusal::Refusal;
use crate::{
    config::Route,
    gate::{Attempts, Policy as GatePolicy, Preset},
    proto::{self, GateOptions, RecoveryOptions},
    recovery::settings::{Policy, Replay, Timers},
};

/// A client's options, checked against the route.
#[derive(Clone, Debug, PartialEq)]
pub struct Tightened {
    /// The route's policy, tightened.
    pub policy: Policy,
    /// Whether targets other than the first may be used.
    pub fallback: bool,
    /// The client's own timers.
    timers: Option<ClientTimers>,
}

/// For each timer the client's length, if it gave one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClientTimers {
    connect: Option<Duration>,
    first_token: Option<Duration>,
    inter_delta: Option<Duration>,
    open_block: Option<Duration>,
    no_progress: Option<Duration>,
}

impl Tightened {
    /// Checks `options`. Looser ones are refused by field and bound.
    pub fn new(route: &Route, options: Option<&RecoveryOptions>) -> Result<Self, Refusal> {
        let mut policy = route.policy.clone();
        let Some(options) = options else {
            return Ok(Self {
                policy,
                fallback: true,
                timers: None,
            });
        };
        if let Some(max_attempts) = options.max_attempts {
            let bound = policy.max_attempts;
            if max_attempts == 0 || max_attempts > bound {
                let reason = format!("must be from 1 to {bound}, the route's max_attempts");
                return Err(Refusal::invalid("start.recovery.max_attempts", reason));
            }
            policy.max_attempts = max_attempts;
        }
        if let Some(deadline) = read("start.recovery.deadline", options.deadline.as_ref())? {
            let bound = policy.deadline;
            if deadline.is_zero() || deadline > bound {
                let reason = format!("must be above 0 and at most {bound:?}, the route's deadline");
                return Err(Refusal::invalid("start.recovery.deadline", reason));
            }
            policy.deadline = deadline;
        }
        if options.disable_replay {
            policy.replay = Replay::None;
        }
        let timers = options
            .timers
            .as_ref()
            .map(|t| ClientTimers::read(route, t))
            .transpose()?;
        Ok(Self {
            policy,
            fallback: !options.disable_fallback,
            timers,
        })
    }

    /// A target's timers, tightened.
    pub fn timers(&self, target: Timers) -> Timers {
        let Some(client) = &self.timers else {
            return target;
        };
        Timers {
            connect: client.connect.unwrap_or(target.connect),
            first_token: client.first_token.unwrap_or(target.first_token),
            inter_delta: client.inter_delta.unwrap_or(target.inter_delta),
            open_block: client.open_block.unwrap_or(target.open_block),
            no_progress: client.no_progress.unwrap_or(target.no_progress),
            tail: target.tail,
        }
    }
}

impl ClientTimers {
    fn read(route: &Route, timers: &proto::Timers) -> Result<Self, Refusal> {
        type Pick = fn(&Timers) -> Duration;
        let read = |name: &str, value: Option<&prost_types::Duration>, pick: Pick| {
            let field = format!("start.recovery.timers.{name}");
            let Some(length) = read(&field, value)? else {
                return Ok(None);
            };
            for target in &route.targets {
                let bound = pick(&target.timers);
                let looser = !bound.is_zero() && (length.is_zero() || length > bound);
                if looser {
                    let reason = format!(
                        "must be above 0 and at most {bound:?}, the timer of target {}",
                        target.name
                    );
                    return Err(Refusal::invalid(&field, reason));
                }
            }
            Ok(Some(length))
        };
        Ok(Self {
            connect: read("connect", timers.connect.as_ref(), |t| t.connect)?,
            first_token: read("first_token", timers.first_token.as_ref(), |t| {
                t.first_token
            })?,
            inter_delta: read("inter_delta", timers.inter_delta.as_ref(), |t| {
                t.inter_delta
            })?,
            open_block: read("open_block", timers.open_block.as_ref(), |t| t.open_block)?,
            no_progress: read("no_progress", timers.no_progress.as_ref(), |t| {
                t.no_progress
            })?,
        })
    }
}

/// The turn gate of a generation, if it is on: its rules, and how many completed attempts it judges.
///
/// A client may turn it on and make it stricter, and never turn it off or make it more lenient than the
/// route has it.
pub fn gate(
    route: &Route,
    options: Option<&GateOptions>,
) -> Result<Option<(GatePolicy, Attempts)>, Refusal> {
    let own = &route.gate;
    let Some(options) = options else {
        return Ok(own.preset.map(|preset| (own.policy(preset), own.attempts)));
    };
    let asked = match options.preset.as_str() {
        "" => own.preset,
        "off" => None,
        name => match Preset::named(name) {
            Some(preset) => Some(preset),
            None => {
                let reason = "must be \"off\", \"agent\" or \"lenient\"";
                return Err(Refusal::invalid("start.gate.preset", reason));
            }
        },
    };
    let looser = match own.preset {
        None => false,
        Some(Preset::Lenient) => asked.is_none(),
        Some(Preset::Agent) => asked != Some(Preset::Agent),
    };
    if let (true, Some(preset)) = (looser, own.preset) {
        let reason = format!("must not be looser than {:?}, the route's", preset.as_str());
        return Err(Refusal::invalid("start.gate.preset", reason));
    }
    let mut attempts = own.attempts;
    if let Some(max_attempts) = options.max_attempts {
        let bound = attempts.get();
        if max_attempts == 0 || max_attempts > bound {
            let reason = format!("must be from 1 to {bound}, the route's gate.max_attempts");
            return Err(Refusal::invalid("start.gate.max_attempts", reason));
        }
        attempts = Attempts::resolve(Some(max_attempts.into()), bound.into());
    }
    Ok(asked.map(|preset| (own.policy(preset), attempts)))
}

/// A duration of the contract; negative or malformed ones are refused by name.
pub fn read(
    field: &str,
    value: Option<&prost_types::Duration>,
) -> Result<Option<Duration>, Refusal> {
    let Some(value) = value else { return Ok(None) };
    if value.seconds < 0 || !(0..1_000_000_000).contains(&value.nanos) {
        return Err(Refusal::invalid(field, "must not be negative or malformed"));
    }
    Ok(Some(Duration::new(
        value.seconds.unsigned_abs(),
        value.nanos.unsigned_abs(),
    )))
}
