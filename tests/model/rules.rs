//! The turn gate that a generation is played with, and what it has to make of an answer: said anew, in
//! the fewest words, and without the gate's own code.

use std::collections::BTreeSet;

use redrive::{
    gate::{Attempts, Choice, Policy, Schema, Tools},
    proto::FinishReason,
    recovery::Gate,
};
use serde_json::{Map, Value};

use super::provider::{Block, Stream};

/// How every announcement begins that providers make here.
const ANNOUNCES: &str = "Let me read it.";

/// What a generation's gate goes by.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub strictness: Strictness,
    /// How many completed attempts are judged.
    pub attempts: u32,
    pub offer: Offer,
    pub choice: Wanted,
}

/// A policy, by what tells it from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// A broken call counts before a demanded one that is missing.
    Agent,
    /// A demanded call counts first.
    Lenient,
    /// As the first, and a plain answer is none.
    Strict,
}

/// The tools of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Nobody knows.
    Unknown,
    Nothing,
    /// `f`, which takes any object.
    Tool,
    /// `f`, which needs the member `a`.
    Needing,
}

/// Its `tool_choice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Free,
    Forbidden,
    Required,
    Named,
}

/// What is drawn from; the usual case is there twice.
pub const STRICTNESS: &[Strictness] = &[Strictness::Agent, Strictness::Lenient, Strictness::Strict];
pub const OFFERS: &[Offer] = &[
    Offer::Tool,
    Offer::Needing,
    Offer::Nothing,
    Offer::Unknown,
    Offer::Tool,
];
pub const CHOICES: &[Wanted] = &[
    Wanted::Free,
    Wanted::Required,
    Wanted::Named,
    Wanted::Forbidden,
    Wanted::Free,
];

impl Rules {
    /// The gate of a generation that goes by them.
    pub fn gate(&self) -> Gate {
        let policy = match self.strictness {
            Strictness::Agent => Policy {
                accept_bare_final: true,
                ..Policy::AGENT
            },
            Strictness::Lenient => Policy::LENIENT,
            Strictness::Strict => Policy::AGENT,
        };
        let schema = Schema::read(br#"{"required":["a"]}"#);
        let tools = Tools {
            names: match self.offer {
                Offer::Unknown => None,
                Offer::Nothing => Some(Vec::new()),
                Offer::Tool | Offer::Needing => Some(vec!["f".into()]),
            },
            schemas: match self.offer {
                Offer::Needing => [("f".to_owned(), schema)].into(),
                _ => Default::default(),
            },
            choice: match self.choice {
                Wanted::Free => Choice::Free,
                Wanted::Forbidden => Choice::Forbidden,
                Wanted::Required => Choice::Required,
                Wanted::Named => Choice::Named("f".into()),
            },
        };
        Gate::new(policy, Attempts::resolve(None, self.attempts.into()), tools)
    }

    /// Why a complete answer is not good enough; none if it is.
    pub fn reason(&self, answer: &Stream) -> Option<&'static str> {
        let blocks = || answer.own_blocks();
        let said = |block: &&Block| block.kind != "reasoning";
        let last = blocks().next_back();
        let is_cut = |block: &Block| {
            let is_last = last.is_some_and(|last| std::ptr::eq(last, block));
            answer.finish == Some(FinishReason::Length) && is_last && block.text.is_empty()
        };
        let mut calls = blocks().filter(|block| block.is_call());
        // Whatever stands beside it.
        if calls
            .clone()
            .any(|call| self.can_be_run(call) && !is_cut(call))
        {
            return None;
        }
        let is_over = matches!(
            answer.finish,
            Some(
                FinishReason::Length
                    | FinishReason::ContentFilter
                    | FinishReason::Refusal
                    | FinishReason::Pause
            )
        );
        let has_refusal = blocks().any(|block| block.kind == "refusal");
        let refuses = has_refusal && answer.finish == Some(FinishReason::Stop);
        let is_over = is_over || refuses;
        // Only a cut answer may not have come to its call.
        let is_excused = is_over && answer.finish != Some(FinishReason::Length);
        let is_broken = calls.next().is_some() && !is_over;
        let has_tools = self.offer != Offer::Nothing && self.choice != Wanted::Forbidden;
        let demands = matches!(self.choice, Wanted::Required | Wanted::Named) && has_tools;
        let text = blocks().filter(said);
        let text = text.filter(|block| !block.is_call());
        let text: String = text.map(|block| &*block.text).collect();
        let text = text.trim_start();
        match () {
            () if demands
                && !is_excused
                && !(is_broken && self.strictness != Strictness::Lenient) =>
            {
                Some("required_tool")
            }
            () if is_broken => Some("tool_error"),
            () if is_over => None,
            () if has_tools && text.starts_with(ANNOUNCES) => Some("missing_tool"),
            () if text.is_empty() => Some("empty"),
            () if self.strictness == Strictness::Strict => Some("bare"),
            () => None,
        }
    }

    /// The blocks of calls that an answer which is good enough is committed without.
    pub fn withheld(&self, answer: &Stream) -> BTreeSet<usize> {
        let blocks = answer.blocks.iter().enumerate();
        let calls = blocks.filter(|(_, block)| block.is_call() && !self.can_be_run(block));
        calls.map(|(index, _)| index).collect()
    }

    fn can_be_run(&self, call: &Block) -> bool {
        let is_offered = match call.kind {
            "call" => true,
            // Where nothing is offered there is nothing to call instead.
            "stray call" => matches!(self.offer, Offer::Unknown | Offer::Nothing),
            _ => false,
        };
        let json = match &*call.text {
            "" => "{}",
            json => json,
        };
        let object = serde_json::from_str::<Map<String, Value>>(json);
        let needs = self.offer == Offer::Needing;
        is_offered && object.is_ok_and(|object| !needs || object.contains_key("a"))
    }
}

/// What a model is told of a rejection, by which it is known.
pub fn told(reason: &str) -> &'static str {
    match reason {
        "empty" => "had no visible text",
        "bare" => "was plain text",
        "required_tool" => "did not call a tool",
        "tool_error" => "was invalid, cut off",
        "missing_tool" => "announced an action",
        other => panic!("cannot be: {other}"),
    }
}

/// Every hint begins so, and says so once.
pub const HINT: &str = "our last answer ";
