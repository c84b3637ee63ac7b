//! The scenarios: what the model does, and what becomes of it.

use redrive::proto::{StoppedBy, VerdictClass};

use crate::scenario::{ACCEPTED, Course, End, Ending, Protocol, Round, Scenario, retried};

const CALL: (&str, &str) = ("read", r#"{"path":"a.txt"}"#);
const UNKNOWN: (&str, &str) = ("raed", r#"{"path":"a.txt"}"#);
const NOT_JSON: (&str, &str) = ("read", r#"{"path":"a."#);
const WITHOUT_PATH: (&str, &str) = ("read", r#"{"file":"a.txt"}"#);
const OF_ANOTHER_TYPE: (&str, &str) = ("read", r#"{"path":["a.txt"]}"#);
const ANNOUNCED: &str = "Let me read a.txt.";
const ANSWERED: &str = "It holds text.";

const NOTHING: Round = Round {
    reasoning: "",
    text: "",
    snapshot: None,
    own: false,
    calls: &[],
    end: End::Stop,
};

pub const CLEAN_CALL: Round = calls(&[CALL]);

const THINKS: Round = Round {
    reasoning: "The file is a.txt.",
    ..NOTHING
};

const ANNOUNCES: Round = says(ANNOUNCED);
const ANSWERS: Round = says(ANSWERED);

const REFUSES: Round = Round {
    end: End::Refuses,
    ..says("I do not read this file.")
};

const fn says(text: &'static str) -> Round {
    Round { text, ..NOTHING }
}

const fn calls(calls: &'static [(&'static str, &'static str)]) -> Round {
    Round {
        calls,
        end: End::ToolCalls,
        ..NOTHING
    }
}

const CHAT: &[Protocol] = &[Protocol::Chat];
/// In which a provider has blocks of its own.
const OWN: &[Protocol] = &[Protocol::Messages, Protocol::Responses];
const ALL: &[Protocol] = &[Protocol::Chat, Protocol::Messages, Protocol::Responses];

const PLAIN: Scenario = Scenario {
    name: "",
    offers: true,
    demands: false,
    allowance: None,
    rounds: &[],
    protocols: CHAT,
    course: [ACCEPTED; 3],
    kept: None,
    native: false,
    effects: false,
};

const fn not_applicable(name: &'static str) -> Scenario {
    Scenario { name, ..PLAIN }
}

/// A plain answer, which only the strict policy wants to be declared final.
const BARE: [Course; 3] = [ACCEPTED, ACCEPTED, retried(&["bare"])];

const REQUIRED_TOOL: Course = retried(&["required_tool"]);
const TOOL_ERROR: Course = retried(&["tool_error"]);
const MISSING_TOOL: Course = retried(&["missing_tool"]);
const EMPTY: Course = retried(&["empty"]);

/// Without the gate such a call fails, and so it does where it cannot be asked for again.
const MALFORMED: Course = Course {
    retried: &[],
    end: Ending::Failed(
        "tool_error",
        VerdictClass::MalformedOutput,
        StoppedBy::NotRetryable,
    ),
};

/// What came must not become void, or nothing better is to be had.
const fn delivered(reason: &'static str) -> Course {
    Course {
        retried: &[],
        end: Ending::Delivered(reason),
    }
}

/// All of them are rejected for the same, and the last one fails for it.
const fn exhausted(retried: &'static [&'static str], by: StoppedBy) -> Course {
    let [reason, ..] = retried else {
        panic!("nothing was retried");
    };
    Course {
        retried,
        end: Ending::Failed(reason, VerdictClass::GateRejected, by),
    }
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
        protocols: ALL,
        course: [REQUIRED_TOOL; 3],
        native: true,
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "tool_error",
        rounds: &[calls(&[UNKNOWN])],
        protocols: ALL,
        course: [TOOL_ERROR; 3],
        native: true,
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "arguments_are_not_json",
        rounds: &[calls(&[NOT_JSON])],
        protocols: ALL,
        course: [TOOL_ERROR; 3],
        kept: Some([MALFORMED; 3]),
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "required_member_is_missing",
        rounds: &[calls(&[WITHOUT_PATH])],
        protocols: ALL,
        course: [TOOL_ERROR; 3],
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "schema_mismatch",
        rounds: &[calls(&[OF_ANOTHER_TYPE])],
        protocols: ALL,
        course: [TOOL_ERROR; 3],
        native: true,
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
        course: [MISSING_TOOL; 3],
        native: true,
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "empty",
        rounds: &[THINKS],
        protocols: ALL,
        course: [EMPTY; 3],
        native: true,
        effects: true,
        ..PLAIN
    },
    Scenario {
        name: "empty_without_reasoning",
        rounds: &[NOTHING],
        course: [EMPTY; 3],
        ..PLAIN
    },
    Scenario {
        name: "bare",
        rounds: &[ANSWERS],
        protocols: ALL,
        course: BARE,
        effects: true,
        ..PLAIN
    },
    not_applicable("invalid_control"),
    Scenario {
        name: "good_call_with_broken_sibling",
        rounds: &[calls(&[CALL, UNKNOWN])],
        ..PLAIN
    },
    Scenario {
        name: "tool_error_with_required",
        demands: true,
        rounds: &[calls(&[UNKNOWN])],
        course: [TOOL_ERROR, REQUIRED_TOOL, TOOL_ERROR],
        ..PLAIN
    },
    Scenario {
        name: "delivered_round_then_empty",
        rounds: &[ANNOUNCES, THINKS],
        course: [retried(&["missing_tool", "empty"]); 3],
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
            calls: &[NOT_JSON],
            end: End::Length,
            ..NOTHING
        }],
        ..PLAIN
    },
    // Where the limit comes before the call, it may come on another try.
    Scenario {
        name: "cut_at_length_before_a_demanded_call",
        demands: true,
        rounds: &[Round {
            text: "Let me read a.txt, and then",
            end: End::Length,
            ..NOTHING
        }],
        protocols: ALL,
        course: [REQUIRED_TOOL; 3],
        ..PLAIN
    },
    Scenario {
        name: "filtered",
        rounds: &[Round {
            end: End::Filtered,
            ..ANNOUNCES
        }],
        protocols: &[Protocol::Chat, Protocol::Responses],
        ..PLAIN
    },
    Scenario {
        name: "filtered_under_a_demand",
        demands: true,
        rounds: &[Round {
            end: End::Filtered,
            ..ANSWERS
        }],
        protocols: &[Protocol::Chat, Protocol::Responses],
        ..PLAIN
    },
    Scenario {
        name: "refused",
        rounds: &[REFUSES],
        protocols: ALL,
        ..PLAIN
    },
    Scenario {
        name: "refused_under_a_demand",
        demands: true,
        rounds: &[REFUSES],
        protocols: ALL,
        ..PLAIN
    },
    Scenario {
        name: "paused",
        rounds: &[Round {
            end: End::Pauses,
            ..ANNOUNCES
        }],
        protocols: &[Protocol::Messages],
        ..PLAIN
    },
    Scenario {
        name: "paused_under_a_demand",
        demands: true,
        rounds: &[Round {
            end: End::Pauses,
            ..ANNOUNCES
        }],
        protocols: &[Protocol::Messages],
        ..PLAIN
    },
    Scenario {
        name: "provider_tool_beside_an_answer",
        rounds: &[Round {
            own: true,
            ..ANSWERS
        }],
        protocols: OWN,
        course: BARE,
        ..PLAIN
    },
    // What it announces it did, and the provider says so.
    Scenario {
        name: "provider_tool_after_an_announcement",
        rounds: &[Round {
            own: true,
            ..ANNOUNCES
        }],
        protocols: OWN,
        course: BARE,
        ..PLAIN
    },
    Scenario {
        name: "provider_tool_meets_a_demand",
        demands: true,
        rounds: &[Round {
            own: true,
            ..THINKS
        }],
        protocols: OWN,
        course: BARE,
        ..PLAIN
    },
    // Whoever offers no tools has nothing to be called instead.
    Scenario {
        name: "call_without_tools",
        offers: false,
        rounds: &[CLEAN_CALL],
        protocols: ALL,
        ..PLAIN
    },
    Scenario {
        name: "announcement_without_tools",
        offers: false,
        rounds: &[ANNOUNCES],
        protocols: ALL,
        course: BARE,
        ..PLAIN
    },
    // Together they announce; the answer that the gate judges does not.
    Scenario {
        name: "answer_continued",
        rounds: &[
            Round {
                end: End::Breaks,
                ..says("Let me ")
            },
            says(
                "read it out to you: the first line says that there is nothing to add to it, and so \
                does the second one, which is the last.",
            ),
        ],
        protocols: &[Protocol::Prefill],
        course: [ACCEPTED, ACCEPTED, delivered("bare")],
        ..PLAIN
    },
    // The other way round: what stands before it hides the announcement.
    Scenario {
        name: "announcement_continued",
        rounds: &[
            Round {
                end: End::Breaks,
                ..says("It holds text: I have seen it. ")
            },
            says(
                "Let me read one more line of it to you, which says that there is nothing to add to \
                what the first one says.",
            ),
        ],
        protocols: &[Protocol::Prefill],
        course: [delivered("missing_tool"); 3],
        ..PLAIN
    },
    // Where deltas cannot be taken back, they stand whatever the snapshot says.
    Scenario {
        name: "snapshot_answers",
        rounds: &[Round {
            snapshot: Some(ANSWERED),
            ..ANNOUNCES
        }],
        protocols: &[Protocol::Responses],
        course: BARE,
        kept: Some([delivered("missing_tool"); 3]),
        ..PLAIN
    },
    Scenario {
        name: "snapshot_announces",
        rounds: &[Round {
            snapshot: Some(ANNOUNCED),
            ..ANSWERS
        }],
        protocols: &[Protocol::Responses],
        course: [MISSING_TOOL; 3],
        kept: Some([ACCEPTED, ACCEPTED, delivered("bare")]),
        ..PLAIN
    },
    Scenario {
        name: "exhausted_empty",
        rounds: &[THINKS, NOTHING, THINKS],
        course: [exhausted(&["empty", "empty"], StoppedBy::Gate); 3],
        ..PLAIN
    },
    Scenario {
        name: "exhausted_tool_error",
        rounds: &[calls(&[UNKNOWN]); 3],
        course: [exhausted(&["tool_error", "tool_error"], StoppedBy::Gate); 3],
        ..PLAIN
    },
    Scenario {
        name: "exhausted_arguments_are_not_json",
        rounds: &[calls(&[NOT_JSON]); 3],
        course: [Course {
            retried: &["tool_error", "tool_error"],
            end: Ending::Failed("tool_error", VerdictClass::MalformedOutput, StoppedBy::Gate),
        }; 3],
        kept: Some([MALFORMED; 3]),
        ..PLAIN
    },
    Scenario {
        name: "exhausted_required_tool",
        demands: true,
        rounds: &[ANSWERS; 3],
        course: [exhausted(&["required_tool", "required_tool"], StoppedBy::Gate); 3],
        ..PLAIN
    },
    Scenario {
        name: "exhausted_missing_tool",
        rounds: &[ANNOUNCES; 3],
        course: [Course {
            retried: &["missing_tool", "missing_tool"],
            end: Ending::Delivered("missing_tool"),
        }; 3],
        ..PLAIN
    },
    Scenario {
        name: "allowance_ends_on_empty",
        allowance: Some(2),
        rounds: &[THINKS; 2],
        course: [exhausted(&["empty"], StoppedBy::Allowance); 3],
        ..PLAIN
    },
    Scenario {
        name: "allowance_ends_on_missing_tool",
        allowance: Some(2),
        rounds: &[ANNOUNCES; 2],
        course: [Course {
            retried: &["missing_tool"],
            end: Ending::Delivered("missing_tool"),
        }; 3],
        ..PLAIN
    },
];
