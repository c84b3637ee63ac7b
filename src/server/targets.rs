//! Which of a route's targets a start can go to, and what would be sent to each.

use std::sync::Arc;

use super::{options::Tightened, refusal::Refusal, takings::Takings};
use crate::{
    config::{self, Route},
    proto::{NativeBody, Protocol, SkippedTarget, Start, start::Input},
    protocol::adapter::{self, RequestInput, Source},
    recovery,
    session::PlannedTarget,
};

/// How many skipped targets a ledger names. Fixed.
const MAX_SKIPPED: usize = 16;

/// What the reason of a skipped target is cut to, in bytes. Fixed.
const MAX_REASON_BYTES: usize = 256;

/// What a start may be sent as, and where; nothing of it has been sent.
pub(super) struct Planned {
    /// What recovery needs to know, in the route's order; at least one.
    pub(super) targets: Vec<recovery::Target>,
    /// The request of each.
    pub(super) requests: Vec<PlannedTarget>,
    /// Targets that cannot be used, with the reason.
    pub(super) skipped: Vec<SkippedTarget>,
}

/// Writes the requests of `start` for all targets that can take it.
///
/// A native body goes to targets of its own protocol only. What the route's first target cannot
/// express is refused; a fallback that cannot express it is skipped.
pub(super) fn plan(
    start: &Start,
    route: &Route,
    tightened: &Tightened,
    takings: Takings<'_>,
) -> Result<Planned, Refusal> {
    let source = source(start)?;
    let mut all = targets(route, &start.model)?;
    if !tightened.fallback {
        all.truncate(1);
    }
    let mut planned = Planned {
        targets: Vec::new(),
        requests: Vec::new(),
        skipped: Vec::new(),
    };
    for (index, target) in all.iter().enumerate() {
        let fallback = index > 0;
        if let Some(native) = &source.native
            && native.protocol() != target.provider.protocol
        {
            let spoken = target.provider.protocol.as_str_name();
            planned.skip(
                target,
                format!("speaks {spoken}, which is not the body's protocol"),
            );
            continue;
        }
        match request(source.of_adapter, target, tightened, takings) {
            Ok(request) => {
                let core_target = core_target(target, &request, tightened, fallback, takings);
                planned.targets.push(core_target);
                planned.requests.push(request);
            }
            Err(refusal) if planned.targets.is_empty() => return Err(refusal),
            Err(refusal) => planned.skip(target, refusal.message()),
        }
    }
    if planned.targets.is_empty() {
        let name = &route.name;
        let reason = match tightened.fallback {
            true => format!("no target of route {name} speaks it"),
            false => format!(
                "the first target of route {name} does not speak it, and disable_fallback is set"
            ),
        };
        return Err(Refusal::invalid("start.native.protocol", reason));
    }
    Ok(planned)
}

impl Planned {
    fn skip(&mut self, target: &config::Target, reason: impl Into<String>) {
        if self.skipped.len() < MAX_SKIPPED {
            let mut reason = reason.into();
            reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
            self.skipped.push(SkippedTarget {
                target: target.name.clone(),
                reason,
            });
        }
    }
}

/// What the client sent, and its native body if it is one.
struct Given<'a> {
    of_adapter: Source<'a>,
    native: Option<&'a NativeBody>,
}

fn source(start: &Start) -> Result<Given<'_>, Refusal> {
    match &start.input {
        None => Err(Refusal::invalid(
            "start.input",
            "conversation or native is required",
        )),
        Some(Input::Conversation(conversation)) => Ok(Given {
            of_adapter: Source::Conversation(conversation),
            native: None,
        }),
        Some(Input::Native(native)) => {
            adapter::native_adapter(native.protocol)?;
            Ok(Given {
                of_adapter: Source::Native(&native.json),
                native: Some(native),
            })
        }
    }
}

/// The route's targets; `model` replaces the first one's.
fn targets(route: &Route, model: &str) -> Result<Vec<config::Target>, Refusal> {
    let mut targets = route.targets.clone();
    if model.is_empty() {
        return Ok(targets);
    }
    let own = targets.first().is_some_and(|target| target.model == model);
    if !own
        && !route
            .models
            .iter()
            .any(|pattern| config::matches(pattern, model))
    {
        let shown: String = model.chars().take(64).collect();
        let reason = format!(
            "{shown:?} is not allowed by route {}; allowed are {:?}",
            route.name, route.models
        );
        return Err(Refusal::invalid("start.model", reason));
    }
    if let Some(first) = targets.first_mut() {
        first.name = format!("{}/{model}", first.provider.name);
        model.clone_into(&mut first.model);
        first.context_window = first.context_window.filter(|_| own);
    }
    Ok(targets)
}

fn request(
    source: Source<'_>,
    target: &config::Target,
    tightened: &Tightened,
    takings: Takings<'_>,
) -> Result<PlannedTarget, Refusal> {
    let provider = &target.provider;
    let Some(adapter) = adapter::adapter(provider.protocol) else {
        let protocol = Protocol::as_str_name(&provider.protocol);
        let reason = format!(
            "its target {} speaks {protocol}, not built yet",
            target.name
        );
        return Err(Refusal::unimplemented("start.route", reason));
    };
    let request = adapter.request(RequestInput {
        source,
        model: &target.model,
        dialect: provider.dialect,
        stored: provider.resume,
    })?;
    let mut headers = request.headers;
    provider.add_headers(&mut headers);
    let budgets = takings.matched(target);
    Ok(PlannedTarget {
        name: target.name.clone(),
        model: target.model.clone(),
        provider: Arc::clone(provider),
        method: request.method,
        path: request.path,
        headers,
        tokens: takings.tokens(&target.model, &request.body, &budgets),
        budgets,
        body: request.body,
        connect: tightened.timers(target.timers).connect,
    })
}

fn core_target(
    target: &config::Target,
    request: &PlannedTarget,
    tightened: &Tightened,
    fallback: bool,
    takings: Takings<'_>,
) -> recovery::Target {
    let domains = request.budgets.iter();
    let domains = domains.map(|matched| takings.domain(target, matched));
    recovery::Target {
        name: target.name.as_str().into(),
        provider: target.provider.name.as_str().into(),
        domains: domains.collect(),
        model: target.model.clone(),
        context_window: target.context_window,
        timers: tightened.timers(target.timers),
        credentials: target.provider.credentials.len(),
        fallback,
        continues: request.continues(),
        resumes: target.provider.resume,
    }
}
