//! What a request says of tools.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::Schema;
use crate::proto::{Conversation, tool_choice::Mode};

/// What a request says of tools, as far as it is known. [`Tools::default`] knows nothing: there every name is
/// taken for one that is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// The names of the tools that are offered. `None` where that is not known.
    pub names: Option<Vec<String>>,
    /// What their arguments must be, by name. A tool that is not there takes any JSON object.
    pub schemas: BTreeMap<String, Schema>,
    /// Whether one is to be called.
    pub choice: Choice,
}

/// Whether a tool is to be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As the model likes.
    #[default]
    Free,
    /// None.
    Forbidden,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

impl Tools {
    /// What `conversation` says. Its `provider_options_json` may say it in the provider's format instead,
    /// and then it is not known.
    pub fn of(conversation: &Conversation) -> Self {
        let options = Options::of(&conversation.provider_options_json);
        // Beside `tools`: Chat's older form of it, and a template of Responses, which may have tools.
        let elsewhere = ["tools", "functions", "prompt"];
        let is_known = !elsewhere.iter().any(|name| options.has(name));
        let offered = is_known.then_some(&conversation.tools);
        let schemas = offered.into_iter().flatten().map(|tool| {
            let schema = Schema::read(&tool.parameters_json);
            (tool.name.clone(), schema)
        });
        Self {
            schemas: schemas.collect(),
            names: offered.map(|tools| tools.iter().map(|tool| tool.name.clone()).collect()),
            choice: match &conversation.tool_choice {
                Some(choice) if !options.has("tool_choice") => match choice.mode() {
                    Mode::Unspecified | Mode::Auto => Choice::Free,
                    Mode::None => Choice::Forbidden,
                    Mode::Required => Choice::Required,
                    Mode::Tool => Choice::Named(choice.name.clone()),
                },
                _ => Choice::Free,
            },
        }
    }

    /// Whether there may be a call at all.
    pub(super) fn may_be_called(&self) -> bool {
        let any = self.names.as_ref().is_none_or(|names| !names.is_empty());
        any && self.choice != Choice::Forbidden
    }

    /// Whether there must be a call.
    pub(super) fn must_be_called(&self) -> bool {
        matches!(self.choice, Choice::Required | Choice::Named(_))
    }

    /// Whether a call of `name` may be handed out. Where nothing is offered there is nothing to call instead,
    /// and whoever asked gets what came.
    pub(super) fn has(&self, name: &str) -> bool {
        let known =
            |names: &Vec<String>| names.is_empty() || names.iter().any(|known| known == name);
        self.names.as_ref().is_none_or(known)
    }
}

/// The names of members for the provider's body.
struct Options(BTreeMap<String, IgnoredAny>);

impl Options {
    /// What is no JSON object was refused before anything was sent.
    fn of(json: &[u8]) -> Self {
        Self(serde_json::from_slice(json).unwrap_or_default())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
