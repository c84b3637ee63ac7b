//! `routes.*.gate`.

use crate::gate::{Attempts, Policy, Preset};

/// The turn gate of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Its rules; none: it is off, unless a client turns it on.
    pub preset: Option<Preset>,
    /// How many completed attempts of a generation it judges, the first included.
    pub attempts: Attempts,
    /// Rules that are set by themselves, whatever the preset.
    pub rules: GateRules,
}

/// Rules of a [`Policy`] that are set by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GateRules {
    /// See [`Policy::prose_with_tools`].
    pub prose_with_tools: Option<bool>,
    /// See [`Policy::accept_bare_final`].
    pub accept_bare_final: Option<bool>,
    /// See [`Policy::tool_errors_before_required`].
    pub tool_errors_before_required: Option<bool>,
    /// See [`Policy::tool_errors_veto_with_calls`].
    pub tool_errors_veto_with_calls: Option<bool>,
}

impl Gate {
    /// What `preset` stands for on this route.
    ///
    /// A model without a completion wrapper cannot declare an answer to be final, and no wrapper is read
    /// yet: under every preset a plain answer is a final one, unless the rule is set.
    pub fn policy(&self, preset: Preset) -> Policy {
        let policy = preset.policy();
        let rules = &self.rules;
        Policy {
            prose_with_tools: rules.prose_with_tools.unwrap_or(policy.prose_with_tools),
            accept_bare_final: rules.accept_bare_final.unwrap_or(true),
            tool_errors_before_required: rules
                .tool_errors_before_required
                .unwrap_or(policy.tool_errors_before_required),
            tool_errors_veto_with_calls: rules
                .tool_errors_veto_with_calls
                .unwrap_or(policy.tool_errors_veto_with_calls),
        }
    }
}
