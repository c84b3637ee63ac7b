//! What a model is told when its attempt was rejected.
//!
//! A hint is made of one attempt alone and goes into a copy of the original request, so that hints never
//! accumulate.

use std::fmt::Write;

use super::{Choice, Fault, Reason, Snapshot, Tools};

/// Unknown names that are repeated to the model, and characters of each: they are its own invention.
const MAX_UNKNOWN: usize = 8;
const MAX_UNKNOWN_CHARS: usize = 64;

/// Members that are named of each tool whose arguments do not fit, and characters of each.
const MAX_MEMBERS: usize = 3;
const MAX_MEMBER_CHARS: usize = 64;

/// Bytes of names of tools that are listed. Many times what requests hold.
const MAX_LISTED_BYTES: usize = 8 << 10;

const EMPTY: &str = "Your last answer had no visible text and no tool call. Go on with the task now: \
    call a tool at once if work remains, and answer only if the task is done. Do not repeat your \
    reasoning.";

const BARE: &str = "Your last answer was plain text: it neither called a tool nor declared the task \
    finished.";

const INVALID_CONTROL: &str = "The completion wrapper of your last answer was unbalanced or there \
    twice. Use exactly one pair: the opening mark, your answer, the closing mark.";

const TOOL_ERROR: &str = "A tool call of your last answer was invalid, cut off, or of a tool that does \
    not exist. It was not run. Write the whole call again, and nothing beside it.";

const INTERCEPTED: &str = "The tool call of your last answer never reached the client and was not run. \
    Repeat it now, first of all, in the canonical format.";

const MALFORMED_PROTOCOL: &str = "The tool call of your last answer was malformed and was not run. \
    Write it again: the opening mark, the payload, the closing mark, and nothing else.";

const THOUGHT_TOOL_CALL: &str = "The tool call of your last answer stood in your hidden reasoning and \
    was never run. Repeat it now as the first visible content of your answer.";

const MISSING_TOOL: &str = "Your last answer announced an action and did not do it. Do it now: call the \
    tool at once. Do not announce it again, and claim no result that no tool has returned.";

/// How to go on, for a model without a completion wrapper.
const PLAIN_TAIL: &str = "The task is still the same: check its criteria again against the newest tool \
    result. If work remains, answer with valid tool calls only. Give a final answer only if you have \
    verified that the task is done; if you need something of the user, ask for it.";

/// How to go on, for a model with one.
const WRAPPER_TAIL: &str = "The task is still the same: check its criteria again against the newest \
    tool result. If work remains, answer with valid tool calls only. Use the final wrapper only if you \
    have verified that the task is done, and the blocked wrapper if you need something of the user.";

/// What to tell the model of an attempt that was rejected for `reason`: the reason, and what `snapshot`
/// shows besides. Names what the model wrote and what the request offers; holds nothing else of either.
pub fn hint(reason: Reason, snapshot: &Snapshot<'_>, tools: &Tools) -> String {
    let mut hint = body(reason, snapshot, tools);
    let lost = matches!(reason, Reason::RequiredTool | Reason::MissingTool);
    if lost && !snapshot.intercepted_tool_names.is_empty() {
        hint.push('\n');
        hint.push_str(&body(Reason::Intercepted, snapshot, tools));
    }
    let masks_thought = matches!(reason, Reason::RequiredTool | Reason::ToolError);
    if masks_thought && snapshot.think_evidence {
        hint.push('\n');
        hint.push_str(&body(Reason::ThoughtToolCall, snapshot, tools));
    }
    hint
}

/// The text of one reason.
fn body(reason: Reason, snapshot: &Snapshot<'_>, tools: &Tools) -> String {
    let tail = match snapshot.control_kind {
        Some(_) => WRAPPER_TAIL,
        None => PLAIN_TAIL,
    };
    match reason {
        Reason::Empty => EMPTY.to_owned(),
        Reason::MissingTool => MISSING_TOOL.to_owned(),
        Reason::RequiredTool => required(&tools.choice),
        Reason::Bare => format!("{BARE} {tail}"),
        Reason::InvalidControl => format!("{INVALID_CONTROL} {tail}"),
        Reason::ProseWithTools => format!("{TOOL_ERROR} {tail}"),
        Reason::ToolError => {
            let mut text = format!("{TOOL_ERROR} {tail}");
            add_names(&mut text, snapshot, tools);
            text
        }
        Reason::Intercepted => format!("{INTERCEPTED} {tail}"),
        Reason::MalformedProtocol => format!("{MALFORMED_PROTOCOL} {tail}"),
        Reason::ThoughtToolCall => format!("{THOUGHT_TOOL_CALL} {tail}"),
    }
}

fn required(choice: &Choice) -> String {
    let what = match choice {
        Choice::Named(name) => format!("the tool `{name}`"),
        Choice::Free | Choice::Forbidden | Choice::Required => "a tool".to_owned(),
    };
    format!("Your last answer did not call a tool, which this request demands. Call {what} now.")
}

/// Which names do not exist, which do, and whose arguments were wrong: with that a model can help itself.
fn add_names(text: &mut String, snapshot: &Snapshot<'_>, tools: &Tools) {
    let unknown = names(snapshot, |fault| fault == Fault::UnknownTool);
    if let Some(offered) = tools.names.as_deref().filter(|names| !names.is_empty())
        && !unknown.is_empty()
    {
        let unknown = unknown.iter().take(MAX_UNKNOWN).map(|name| clipped(name));
        let unknown = unknown.collect::<Vec<_>>().join(", ");
        let offered = listed(offered);
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\nThere is no tool of this name: {unknown}. Use only these exact names: {offered}."
        );
    }
    let wrong = names(snapshot, |fault| {
        matches!(fault, Fault::InvalidArguments | Fault::SchemaMismatch)
    });
    if !wrong.is_empty() {
        let listed = wrong.iter().take(MAX_UNKNOWN).map(|name| clipped(name));
        let listed = listed.collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "\nThe arguments for {listed} were not one complete JSON object that fits the tool's schema. \
             Write the call again with one that does."
        );
    }
    for name in wrong.into_iter().take(MAX_UNKNOWN) {
        add_members(text, name, snapshot);
    }
}

/// Which members of the arguments for a tool the schema does not permit, and by which keyword. What they hold is
/// not repeated.
fn add_members(text: &mut String, name: &str, snapshot: &Snapshot<'_>) {
    let errors = snapshot.tool_errors.iter();
    let errors = errors.filter(|error| error.fault == Fault::SchemaMismatch && error.name == name);
    let mut members: Vec<&str> = Vec::new();
    for member in errors.flat_map(|error| &error.members) {
        if members.len() < MAX_MEMBERS && !members.contains(&member.as_str()) {
            members.push(member);
        }
    }
    if members.is_empty() {
        return;
    }
    let members = members.into_iter().map(|member| {
        let member: String = member.chars().take(MAX_MEMBER_CHARS).collect();
        member
    });
    let members = members.collect::<Vec<_>>().join(", ");
    let name = clipped(name);
    let _ = write!(text, "\nWrong by the schema of {name}: {members}.");
}

/// The names of the broken calls with such a fault, each once, in order.
fn names<'s>(snapshot: &'s Snapshot<'_>, wanted: impl Fn(Fault) -> bool) -> Vec<&'s str> {
    let mut names = Vec::new();
    for error in &snapshot.tool_errors {
        let name = error.name.as_str();
        if wanted(error.fault) && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A name as the model wrote it, which may be anything.
fn clipped(name: &str) -> String {
    name.escape_debug().take(MAX_UNKNOWN_CHARS).collect()
}

/// The names that are offered, as they are.
fn listed(names: &[String]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        if text.len() + name.len() > MAX_LISTED_BYTES {
            let _ = write!(text, " and {} more", names.len() - index);
            break;
        }
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}
