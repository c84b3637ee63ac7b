//! From a client's `start` to a session: everything that can be wrong with it is found here, before
//! anything is sent.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use prost::Message;

use super::{
    options::{self, Tightened},
    refusal::Refusal,
    takings::Takings,
    targets,
};
use crate::{
    budgets::Budgets,
    config::{Config, Route},
    gate::Tools,
    proto::{Delivery, Start, start::Input},
    recovery::{self, Time},
    session::{Plan, RequestKey},
};

/// Bound of `start.request_id` and `start.scope`, in bytes. Fixed.
const MAX_ID_BYTES: usize = 128;

/// Bound of `start.model`, in bytes, as of a model in the configuration: it is told in many frames. Fixed.
const MAX_MODEL_BYTES: usize = 256;

/// Bounds of `start.labels`. Fixed.
const MAX_LABELS: usize = 16;
const MAX_LABEL_BYTES: usize = 64;

/// The longest `start.detach_grace`. Fixed.
const MAX_DETACH_GRACE: Duration = Duration::from_secs(3600);

/// The identity under which scopes of the TCP listener are kept.
const LISTENER: &str = "tcp";

/// A start that can be run.
pub struct Prepared {
    /// What the core is created with.
    pub params: recovery::Params,
    /// What is sent.
    pub plan: Plan,
    /// The route's name.
    pub route: String,
    /// The first target's model.
    pub model: String,
}

/// What the server knows beside the frame.
pub struct Circumstances<'a> {
    /// Which budgets match what.
    pub budgets: &'a Budgets,
    /// The new generation's id.
    pub id: String,
    /// When the caller's deadline fires, less the margin.
    pub caller_deadline: Option<Time>,
    /// The wall clock at the origin of time.
    pub wall_origin: Duration,
    /// Where jitter comes from.
    pub seed: u64,
}

/// Checks the rest of `start`, and writes its requests.
pub fn prepare(
    config: &Config,
    start: &Start,
    circumstances: Circumstances<'_>,
) -> Result<Prepared, Refusal> {
    let route = find_route(config, &start.route)?;
    let delivery = delivery(start)?;
    let tightened = Tightened::new(route, start.recovery.as_ref())?;
    let gate = options::gate(route, start.gate.as_ref())?;
    let detach_grace = detach_grace(start)?;
    let takings = Takings {
        budgets: circumstances.budgets,
        configured: &config.budgets,
        route,
        labels: &start.labels,
    };
    let targets::Planned {
        targets,
        requests,
        skipped,
    } = targets::plan(start, route, &tightened, takings)?;
    let plan = Plan {
        native_events: start.include_native_events,
        targets: requests,
    };
    let model = plan
        .targets
        .first()
        .map(|target| target.model.clone())
        .unwrap_or_default();
    let params = recovery::Params {
        id: circumstances.id,
        targets: targets.into(),
        skipped: skipped.into(),
        policy: tightened.policy,
        gate: gate.map(|(policy, attempts)| {
            Box::new(recovery::Gate::new(policy, attempts, tools(start)))
        }),
        fallback: tightened.fallback,
        delivery,
        detach_grace,
        max_message_bytes: route.max_message_bytes,
        client_idle: route.client_idle,
        scope: (!start.scope.is_empty()).then(|| (LISTENER.to_owned(), start.scope.clone())),
        caller_deadline: circumstances.caller_deadline,
        wall_origin: circumstances.wall_origin,
        seed: circumstances.seed,
    };
    Ok(Prepared {
        params,
        plan,
        route: route.name.clone(),
        model,
    })
}

/// The delivery a start asks for.
pub fn delivery(start: &Start) -> Result<Delivery, Refusal> {
    Delivery::try_from(start.delivery)
        .map_err(|_| Refusal::invalid("start.delivery", "is not a value of Delivery"))
}

/// What makes `start` repeatable, if its client wants that.
pub fn request_key(start: &mut Start) -> Option<RequestKey> {
    (!start.request_id.is_empty()).then(|| RequestKey {
        id: start.request_id.clone(),
        body_hash: body_hash(start),
    })
}

/// Tells starts apart: everything but recovery, delivery and labels counts. Those are
/// taken out of `start` meanwhile.
fn body_hash(start: &mut Start) -> u64 {
    let recovery = start.recovery.take();
    let delivery = std::mem::take(&mut start.delivery);
    let labels = std::mem::take(&mut start.labels);
    let bytes = start.encode_to_vec();
    start.recovery = recovery;
    start.delivery = delivery;
    start.labels = labels;
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// Checks what needs no route: the sizes of ids, names and labels, and fields of a later version.
pub fn check_plain_fields(start: &Start) -> Result<(), Refusal> {
    for (field, value, max) in [
        ("start.request_id", &start.request_id, MAX_ID_BYTES),
        ("start.scope", &start.scope, MAX_ID_BYTES),
        ("start.model", &start.model, MAX_MODEL_BYTES),
    ] {
        if value.len() > max {
            return Err(Refusal::invalid(
                field,
                format!("is longer than {max} bytes"),
            ));
        }
    }
    if start.labels.len() > MAX_LABELS {
        return Err(Refusal::invalid(
            "start.labels",
            format!("has more than {MAX_LABELS} entries"),
        ));
    }
    if start
        .labels
        .iter()
        .any(|(k, v)| k.len() > MAX_LABEL_BYTES || v.len() > MAX_LABEL_BYTES)
    {
        let reason = format!("has a name or value longer than {MAX_LABEL_BYTES} bytes");
        return Err(Refusal::invalid("start.labels", reason));
    }
    Ok(())
}

/// What the request says of tools, as far as that is known.
fn tools(start: &Start) -> Tools {
    match &start.input {
        Some(Input::Conversation(conversation)) => Tools::of(conversation),
        Some(Input::Native(body)) => Tools::of_native(body.protocol(), &body.json),
        None => Tools::default(),
    }
}

fn find_route<'c>(config: &'c Config, name: &str) -> Result<&'c Route, Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid("start.route", "is required"));
    }
    let Some(route) = config.routes.get(name) else {
        let known: Vec<&str> = config.routes.keys().map(String::as_str).take(16).collect();
        let shown: String = name.chars().take(64).collect();
        let reason = format!("{shown:?} is not a route; routes are {}", known.join(", "));
        return Err(Refusal::invalid("start.route", reason));
    };
    Ok(route)
}

fn detach_grace(start: &Start) -> Result<Duration, Refusal> {
    const FIELD: &str = "start.detach_grace";
    let grace = options::read(FIELD, start.detach_grace.as_ref())?.unwrap_or_default();
    if grace > MAX_DETACH_GRACE {
        return Err(Refusal::invalid(
            FIELD,
            format!("must be at most {MAX_DETACH_GRACE:?}"),
        ));
    }
    Ok(grace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_leaves_out_recovery_delivery_and_labels_only() {
        let start = |edit: fn(&mut Start)| {
            let mut start = Start {
                route: "default".into(),
                ..Start::default()
            };
            edit(&mut start);
            body_hash(&mut start)
        };
        let plain = start(|_| {});
        assert_eq!(plain, start(|s| s.delivery = 3));
        assert_eq!(plain, start(|s| s.recovery = Some(Default::default())));
        assert_eq!(
            plain,
            start(|s| drop(s.labels.insert("a".into(), "b".into())))
        );
        assert_ne!(plain, start(|s| s.model = "m".into()));
    }
}
