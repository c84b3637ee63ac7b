//! What a scenario is: what the model answers, and what it declares to become of that.

use redrive::{
    gate::Then,
    proto::{StoppedBy, VerdictClass},
};

/// One answer of the model, as any protocol can say it.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub reasoning: &'static str,
    pub text: &'static str,
    /// What the provider's final snapshot has in place of `text`; in Responses only.
    pub snapshot: Option<&'static str>,
    /// A block of the provider's own comes after the text: a tool that it runs itself with what that gave in
    /// Messages, a call that is no function's in Responses.
    pub own: bool,
    /// Names and arguments.
    pub calls: &'static [(&'static str, &'static str)],
    pub end: End,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Stop,
    ToolCalls,
    Length,
    /// The provider's content filter.
    Filtered,
    /// The model declines; in words that only Messages does not tell from others, where the end says it.
    Refuses,
    /// The client has to send the turn back before it goes on.
    Pauses,
    /// The connection breaks before it does.
    Breaks,
}

/// How strict the gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    Agent,
    Lenient,
    /// Agent, and a plain answer is not final.
    Strict,
}

/// What the client asks for, and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    Preview,
    /// Preview to a client that cannot take anything back.
    NoReset,
    CommittedOnly,
    /// Preview, and the client acts on the first delta.
    Effects,
    /// Preview of a body in the provider's own format, of which the gate knows as much as of a conversation.
    Native,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Chat,
    /// The same at a provider that continues texts.
    Prefill,
    Messages,
    Responses,
}

/// A scenario: what the model answers first; every answer after these is a clean call.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// The request offers the tool `read`.
    pub offers: bool,
    /// The request demands a call.
    pub demands: bool,
    /// How many attempts a generation has, where that is fewer than the gate judges.
    pub allowance: Option<u32>,
    /// None: models without calls in text, without a wrapper and without a platform that takes calls do not
    /// have it.
    pub rounds: &'static [Round],
    pub protocols: &'static [Protocol],
    /// What becomes of it: agent, lenient, strict.
    pub course: [Course; 3],
    /// The same where what the client has must not become void, if that is not the first answer as it is.
    pub kept: Option<[Course; 3]>,
    /// Whether it is also asked in the provider's own format.
    pub native: bool,
    /// Whether the end differs for a client that acts on the first delta.
    pub effects: bool,
}

/// What the gate makes of the answers to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Course {
    /// Why answers are rejected and asked for again, one after the other.
    pub retried: &'static [&'static str],
    /// What becomes of the answer after these.
    pub end: Ending,
}

/// What becomes of the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is accepted.
    Accepted,
    /// It is rejected for this, and committed as it is.
    Delivered(&'static str),
    /// It is rejected for this, and the generation fails.
    Failed(&'static str, VerdictClass, StoppedBy),
}

/// Accepted at once.
pub const ACCEPTED: Course = retried(&[]);

/// These are rejected, and the next one is accepted.
pub const fn retried(retried: &'static [&'static str]) -> Course {
    Course {
        retried,
        end: Ending::Accepted,
    }
}

impl Course {
    /// What it is rejected for first, if it is.
    fn first(&self) -> Option<&'static str> {
        let end = match self.end {
            Ending::Accepted => None,
            Ending::Delivered(reason) | Ending::Failed(reason, ..) => Some(reason),
        };
        self.retried.first().copied().or(end)
    }

    /// Why the ledger says that answers were rejected. It does not of one that was delivered, nor of one
    /// that fails as it would without the gate.
    pub fn in_ledger(&self) -> Vec<String> {
        let last = match self.end {
            Ending::Failed(reason, VerdictClass::GateRejected, _) => Some(reason),
            _ => None,
        };
        let all = self.retried.iter().copied().chain(last);
        all.map(str::to_owned).collect()
    }

    /// Every rejection, with what became of it.
    pub fn rejections(&self) -> Vec<(&'static str, Then)> {
        let retried = self.retried.iter().map(|reason| (*reason, Then::Retried));
        let last = match self.end {
            Ending::Accepted => None,
            Ending::Delivered(reason) => Some((reason, Then::Delivered)),
            Ending::Failed(reason, ..) => Some((reason, Then::Failed)),
        };
        retried.chain(last).collect()
    }
}

impl Round {
    /// Whether a client that reads deltas is shown any of it.
    fn is_shown(&self) -> bool {
        let said = !(self.reasoning.is_empty() && self.text.is_empty());
        said || self.own || !self.calls.is_empty()
    }
}

impl Policy {
    pub const ALL: [Self; 3] = [Self::Agent, Self::Lenient, Self::Strict];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Lenient => "lenient",
            Self::Strict => "strict",
        }
    }
}

impl Delivery {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::NoReset => "no_reset",
            Self::CommittedOnly => "committed_only",
            Self::Effects => "effects",
            Self::Native => "native",
        }
    }
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Prefill => "prefill",
            Self::Messages => "messages",
            Self::Responses => "responses",
        }
    }
}

impl Scenario {
    /// What it is run with.
    pub fn deliveries(&self, protocol: Protocol) -> Vec<Delivery> {
        let mut deliveries = vec![
            Delivery::Preview,
            Delivery::NoReset,
            Delivery::CommittedOnly,
        ];
        let acts = self.effects && protocol == Protocol::Chat;
        deliveries.extend(acts.then_some(Delivery::Effects));
        deliveries.extend(self.native.then_some(Delivery::Native));
        deliveries
    }

    /// What becomes of it.
    pub fn course(&self, policy: Policy, delivery: Delivery) -> Course {
        let course = self.course[policy as usize];
        let is_kept = match delivery {
            Delivery::Effects | Delivery::NoReset => {
                self.rounds.first().is_some_and(Round::is_shown)
            }
            Delivery::Preview | Delivery::CommittedOnly | Delivery::Native => false,
        };
        let delivered = |reason| Course {
            retried: &[],
            end: Ending::Delivered(reason),
        };
        match (is_kept, self.kept, course.first()) {
            (true, Some(kept), _) => kept[policy as usize],
            (true, None, Some(reason)) => delivered(reason),
            (true, None, None) | (false, ..) => course,
        }
    }
}
