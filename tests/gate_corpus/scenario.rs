//! What the model does in each scenario, and which reasons it is rejected for.

/// One answer of the model, as any protocol can say it.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    pub reasoning: &'static str,
    pub text: &'static str,
    /// What the provider's final snapshot has in place of `text`; in Responses only.
    pub snapshot: Option<&'static str>,
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
    /// The connection breaks before it does.
    Breaks,
}

/// How strict the gate is: names of routes.
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
    CommittedOnly,
    /// Preview, and the client acts on the first delta.
    Effects,
    /// Preview of a body in the provider's own format, of which the gate knows no tools.
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
    /// The request demands a call.
    pub demands: bool,
    /// None: models without calls in text, without a wrapper and without a platform that takes calls do not
    /// have it.
    pub rounds: &'static [Round],
    pub protocols: &'static [Protocol],
    /// Why it is rejected, answer by answer: agent, lenient, strict.
    pub reasons: [&'static [&'static str]; 3],
    /// The same for a native body, where one is played, too.
    pub native: Option<[&'static [&'static str]; 3]>,
    /// Whether the end differs for a client that acts on the first delta.
    pub effects: bool,
}

pub const CALL: (&str, &str) = ("read", r#"{"path":"a.txt"}"#);
const UNKNOWN: (&str, &str) = ("raed", r#"{"path":"a.txt"}"#);
const OF_ANOTHER_TYPE: (&str, &str) = ("read", r#"{"path":["a.txt"]}"#);
const ANNOUNCED: &str = "Let me read a.txt.";

const NOTHING: Round = Round {
    reasoning: "",
    text: "",
    snapshot: None,
    calls: &[],
    end: End::Stop,
};

pub const CLEAN_CALL: Round = Round {
    calls: &[CALL],
    end: End::ToolCalls,
    ..NOTHING
};

const THINKS: Round = Round {
    reasoning: "The file is a.txt.",
    ..NOTHING
};

const ANNOUNCES: Round = Round {
    text: ANNOUNCED,
    ..NOTHING
};

const NONE: [&[&str]; 3] = [&[]; 3];

const CHAT: &[Protocol] = &[Protocol::Chat];
const ALL: &[Protocol] = &[Protocol::Chat, Protocol::Messages, Protocol::Responses];

const PLAIN: Scenario = Scenario {
    name: "",
    demands: false,
    rounds: &[],
    protocols: CHAT,
    reasons: NONE,
    native: None,
    effects: false,
};

const fn not_applicable(name: &'static str) -> Scenario {
    Scenario { name, ..PLAIN }
}

pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "accept_tool_call",
        rounds: &[CLEAN_CALL],
        protocols: ALL,
        ..PLAIN
    },
    not_applicable("accept_final_answer"),
    Scenario {
        name: "required_tool",
        demands: true,
        rounds: &[THINKS],
        reasons: [&["required_tool"]; 3],
        native: Some([&["required_tool"]; 3]),
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "tool_error",
        rounds: &[Round {
            calls: &[UNKNOWN],
            end: End::ToolCalls,
            ..NOTHING
        }],
        protocols: ALL,
        reasons: [&["tool_error"]; 3],
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "schema_mismatch",
        rounds: &[Round {
            calls: &[OF_ANOTHER_TYPE],
            end: End::ToolCalls,
            ..NOTHING
        }],
        protocols: ALL,
        reasons: [&["tool_error"]; 3],
        native: Some([&["tool_error"]; 3]),
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "prose_with_tools",
        rounds: &[Round {
            text: "It is in a.txt.",
            calls: &[CALL],
            end: End::ToolCalls,
            ..NOTHING
        }],
        ..PLAIN
    },
    not_applicable("intercepted"),
    not_applicable("malformed_protocol"),
    not_applicable("thought_tool_call"),
    Scenario {
        name: "missing_tool",
        rounds: &[ANNOUNCES],
        protocols: ALL,
        reasons: [&["missing_tool"]; 3],
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "empty",
        rounds: &[THINKS],
        protocols: ALL,
        reasons: [&["empty"]; 3],
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "bare",
        rounds: &[Round {
            text: "It holds text.",
            ..NOTHING
        }],
        protocols: ALL,
        reasons: [&[], &[], &["bare"]],
        effects: true,
        ..PLAIN
    },
    not_applicable("invalid_control"),
    Scenario {
        name: "good_call_with_broken_sibling",
        rounds: &[Round {
            calls: &[CALL, UNKNOWN],
            end: End::ToolCalls,
            ..NOTHING
        }],
        ..PLAIN
    },
    Scenario {
        name: "tool_error_with_required",
        demands: true,
        rounds: &[Round {
            calls: &[UNKNOWN],
            end: End::ToolCalls,
            ..NOTHING
        }],
        reasons: [&["tool_error"], &["required_tool"], &["tool_error"]],
        ..PLAIN
    },
    Scenario {
        name: "delivered_round_then_empty",
        rounds: &[ANNOUNCES, THINKS],
        reasons: [&["missing_tool", "empty"]; 3],
        effects: true,
        ..PLAIN
    },
    not_applicable("text_channel_cut_with_calls"),
    Scenario {
        name: "cut_at_length",
        rounds: &[Round {
            text: "Let me read a.txt, and then",
            end: End::Length,
            ..NOTHING
        }],
        protocols: ALL,
        ..PLAIN
    },
    Scenario {
        name: "call_cut_at_length",
        rounds: &[Round {
            text: "It is in a.txt.",
            calls: &[("read", r#"{"path":"a."#)],
            end: End::Length,
            ..NOTHING
        }],
        ..PLAIN
    },
    Scenario {
        name: "answer_continued",
        rounds: &[
            Round {
                text: "It holds text: I have seen it. ",
                end: End::Breaks,
                ..NOTHING
            },
            Round {
                text: "Let me read one more line of it to you, which says that there is nothing \
                    to add to what the first one says.",
                ..NOTHING
            },
        ],
        protocols: &[Protocol::Prefill],
        ..PLAIN
    },
    Scenario {
        name: "snapshot_answers",
        rounds: &[Round {
            text: ANNOUNCED,
            snapshot: Some("It holds text."),
            ..NOTHING
        }],
        protocols: &[Protocol::Responses],
        reasons: [&[], &[], &["bare"]],
        ..PLAIN
    },
    Scenario {
        name: "snapshot_announces",
        rounds: &[Round {
            text: "It holds text.",
            snapshot: Some(ANNOUNCED),
            ..NOTHING
        }],
        protocols: &[Protocol::Responses],
        reasons: [&["missing_tool"]; 3],
        ..PLAIN
    },
];

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
        let mut deliveries = vec![Delivery::Preview, Delivery::CommittedOnly];
        if protocol == Protocol::Chat {
            deliveries.extend(self.effects.then_some(Delivery::Effects));
            deliveries.extend(self.native.map(|_| Delivery::Native));
        }
        deliveries
    }

    /// Why the gate rejects its answers.
    pub fn reasons(&self, policy: Policy, delivery: Delivery) -> Vec<String> {
        let column = policy as usize;
        let reasons = match delivery {
            // What was acted on stays as it is.
            Delivery::Effects => &[],
            Delivery::Native => self.native.unwrap_or(self.reasons)[column],
            Delivery::Preview | Delivery::CommittedOnly => self.reasons[column],
        };
        reasons.iter().map(|reason| (*reason).to_owned()).collect()
    }
}
