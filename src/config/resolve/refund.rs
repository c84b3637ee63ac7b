//! What of reserved tokens comes back, where the file does not say.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    config::{
        model::{Provider, Route, Selector, Target},
        pattern,
    },
    limits::Refund,
    protocol::{Dialect, Protocol},
};

/// Routes by name.
pub(super) type Routes = BTreeMap<String, Arc<Route>>;

/// As the providers do whose attempts `selector` can match. Where they differ, the stricter holds.
pub(super) fn of(selector: &Selector, routes: &Routes) -> Refund {
    let is_named = |wanted: &Option<String>, name: &str| {
        let wanted = wanted.as_deref();
        wanted.is_none_or(|wanted| wanted == name)
    };
    let mut targets = routes
        .values()
        .filter(|route| is_named(&selector.route, &route.name))
        .flat_map(|route| &route.targets)
        .filter(|target| is_named(&selector.provider, &target.provider.name))
        .filter(|target| may_be_of(selector.target.as_deref(), target))
        .filter(|target| {
            let credentials = &target.provider.credentials;
            let mut names = credentials.iter().map(|credential| &credential.name);
            selector.credential.is_none() || names.any(|name| is_named(&selector.credential, name))
        });
    match targets.any(|target| counts_what_was_asked_for(&target.provider)) {
        true => Refund::Never,
        false => Refund::All,
    }
}

/// Whether `pattern` can be of an attempt at `target`. A client may ask for another model than the
/// target's own: only the provider is looked at.
fn may_be_of(pattern: Option<&str>, target: &Target) -> bool {
    let provider = pattern.map(|pattern| pattern.split_once('/').map_or(pattern, |(name, _)| name));
    provider.is_none_or(|provider| pattern::matches(provider, &target.provider.name))
}

/// OpenAI and Azure hold the estimate of the prompt and the most that the answer may take against the
/// limit, when the request comes, and give nothing back
/// (<https://platform.openai.com/docs/guides/rate-limits>,
/// <https://learn.microsoft.com/azure/ai-foundry/openai/how-to/quota>).
fn counts_what_was_asked_for(provider: &Provider) -> bool {
    match provider.protocol {
        Protocol::OpenaiResponses => true,
        Protocol::OpenaiChat => matches!(provider.dialect, Dialect::Openai | Dialect::Azure),
        _ => false,
    }
}
