//! The turn gate of a client: what it goes by, and what must follow from it.

use redrive::proto::{
    Conversation, Delivery, Failed, GateOptions, Ledger, Mode, Start, StoppedBy, Tool, ToolChoice,
    VerdictClass as Class, start::Input, tool_choice,
};

use super::{
    account::{Account, partial_of},
    house::{House, MANY_SLOTS},
    provider::TOKENS,
};
use crate::{
    dice::Dice,
    model::{CHOICES, HINT, OFFERS, Offer, Rules, Stream, Strictness, Wanted, told},
    support::{Fate, Received},
};

/// Draws what a client offers its model, and how strict it wants the gate to be; what the gate then goes
/// by, if it is on.
pub fn draw(house: &House, start: &mut Start, dice: &mut Dice) -> Option<Rules> {
    let Some(Input::Conversation(conversation)) = &mut start.input else {
        return None;
    };
    let (offer, choice) = offer(conversation, dice);
    let (strictness, attempts) = match house.gate {
        // Nobody is more lenient than the route.
        Some((strictness, attempts)) if dice.chance(25) => {
            let own = 1 + dice.below(attempts.into()) as u32;
            let (preset, strictness) = match strictness {
                Strictness::Lenient => dice.pick(&[("agent", Strictness::Agent), ("", strictness)]),
                _ => ("", strictness),
            };
            start.gate = options(preset, own);
            (strictness, own)
        }
        Some(of_the_route) => of_the_route,
        None if dice.chance(20) => {
            let asked = [
                ("agent", Strictness::Agent),
                ("lenient", Strictness::Lenient),
            ];
            let ((preset, strictness), own) = (dice.pick(&asked), 1 + dice.below(3) as u32);
            start.gate = options(preset, own);
            (strictness, own)
        }
        None => return None,
    };
    Some(Rules {
        strictness,
        attempts,
        offer,
        choice,
    })
}

fn options(preset: &str, attempts: u32) -> Option<GateOptions> {
    Some(GateOptions {
        preset: preset.to_owned(),
        max_attempts: Some(attempts),
    })
}

fn offer(conversation: &mut Conversation, dice: &mut Dice) -> (Offer, Wanted) {
    // A conversation always says which tools there are.
    let offer = match dice.pick(OFFERS) {
        Offer::Unknown | Offer::Nothing => return (Offer::Nothing, Wanted::Free),
        offer => offer,
    };
    let schema: &[u8] = match offer {
        Offer::Needing => br#"{"type":"object","required":["a"]}"#,
        _ => br#"{"type":"object"}"#,
    };
    conversation.tools = vec![Tool {
        name: "f".into(),
        parameters_json: schema.to_vec(),
        ..Tool::default()
    }];
    let choice = dice.pick(CHOICES);
    let (mode, name) = match choice {
        Wanted::Free => return (offer, choice),
        Wanted::Forbidden => (tool_choice::Mode::None, ""),
        Wanted::Required => (tool_choice::Mode::Required, ""),
        Wanted::Named => (tool_choice::Mode::Tool, "f"),
    };
    conversation.tool_choice = Some(ToolChoice {
        mode: mode.into(),
        name: name.into(),
    });
    (offer, choice)
}

impl Account {
    /// The ledger's attempts, against what the gate has to make of what was said to each.
    pub fn check_gate(&self, client: u64, ledger: &Ledger) {
        let rules = self.rules(client);
        let sends = self.sends_of(client);
        // What every request says until the next rejection.
        let mut hint = None;
        let mut judged = 0;
        let mut void = 0;
        let mut before: Option<(&Received, &str)> = None;
        for (entry, send) in ledger.entries.iter().zip(&sends) {
            let body = String::from_utf8_lossy(&send.body);
            let hints: Vec<&str> = body.split(HINT).skip(1).collect();
            assert!(hints.len() <= 1, "hints accumulate: {body}");
            if let Some((rejected, reason)) = before.take() {
                assert!(
                    partial_of(send).is_none(),
                    "what was rejected is gone on with"
                );
                let said = hints.first().expect("a retry without a hint");
                assert!(
                    said.starts_with(told(reason)),
                    "the hint for {reason}: {said}"
                );
                hint = Some((*said).to_owned());
                self.check_at_once(rejected, send);
                self.reach("asked again by the gate");
            } else {
                let said = hints.first().map(|hint| (*hint).to_owned());
                assert_eq!(
                    told_part(said.as_ref()),
                    told_part(hint.as_ref()),
                    "the same hint"
                );
                if hint.is_some() {
                    self.reach("a hint was sent again");
                }
            }
            let mode = match (partial_of(send), &hint) {
                (Some(_), _) => Mode::Continue,
                _ if entry.attempt == 1 => Mode::First,
                (None, Some(_)) => Mode::GateRetry,
                (None, None) => Mode::Restart,
            };
            assert_eq!(entry.mode(), mode, "how the attempt came about");
            let verdict = entry.verdict.as_ref();
            let Some(verdict) = verdict.filter(|v| v.class() == Class::GateRejected) else {
                let reason = verdict.map_or("", |verdict| &verdict.gate_reason);
                assert_eq!(
                    reason, "",
                    "a reason of the gate for what it did not reject"
                );
                continue;
            };
            let rules = rules.expect("a gate that is off and rejects");
            let said = self.said(client, entry.attempt);
            assert!(said.is_complete && !verdict.retryable && verdict.retry_after.is_none());
            let reason = rules.reason(&said.answer());
            assert_eq!(Some(&*verdict.gate_reason), reason, "why it is rejected");
            assert!(
                matches!(send.fate, Fate::Ended | Fate::Drained),
                "the exchange of a whole answer is cut: {:?}",
                send.fate
            );
            judged += 1;
            let usage = entry.usage.unwrap_or_default();
            void += usage.output_tokens;
            let is_told = said.is_counted && !entry.usage_estimated && entry.usage.is_some();
            assert!(
                !is_told || usage.output_tokens == TOKENS,
                "what it has cost"
            );
            before = reason.map(|reason| (send, reason));
        }
        assert!(void <= ledger.void_output_tokens, "rejected, and not void");
        let bound = rules.map_or(0, |rules| rules.attempts);
        assert!(judged <= bound, "more are judged than may be");
    }

    /// Whether somebody may have to wait, or to go elsewhere, who has not failed.
    fn may_be_held_back(&self) -> bool {
        self.house.limit.is_some() || self.house.slots < MANY_SLOTS || self.rests()
    }

    /// What is tried again goes to the same target in the same instant, if nothing holds it back.
    fn check_at_once(&self, rejected: &Received, next: &Received) {
        if self.may_be_held_back() {
            return;
        }
        assert_eq!(next.provider, rejected.provider, "another target is asked");
        assert_eq!(Some(next.at), rejected.ended_at, "tried again at once");
    }

    /// Whether a message may be committed that was made of this answer; its broken calls are left out.
    pub fn check_accepted(
        &self,
        client: u64,
        start: &Start,
        answer: &mut Stream,
        ledger: &Ledger,
        is_continued: bool,
    ) {
        let Some(rules) = self.rules(client) else {
            return;
        };
        assert!(
            rejected(ledger) < rules.attempts,
            "more are judged than may be"
        );
        let Some(reason) = rules.reason(answer) else {
            answer.left_out = rules.withheld(answer);
            let is_beside = answer.blocks.iter().filter(|block| block.is_call()).count();
            if !answer.left_out.is_empty() && is_beside > answer.left_out.len() {
                self.reach("a call was withheld beside a good one");
            }
            return;
        };
        let must_stay =
            self.has_acted(client) || is_continued || start.delivery() == Delivery::PreviewNoReset;
        if must_stay {
            return self.reach("must stay in spite of the gate");
        }
        assert_eq!(reason, "missing_tool", "it should be rejected");
        self.reach("an announcement was delivered");
        let is_last = rejected(ledger) + 1 == rules.attempts;
        assert!(
            is_last || self.may_end_early(client, start, ledger),
            "an announcement is delivered that could be tried again"
        );
    }

    /// Whether something else than the gate may end trying again.
    fn may_end_early(&self, client: u64, start: &Start, ledger: &Ledger) -> bool {
        let recovery = start.recovery.as_ref();
        let is_off = recovery.is_some_and(|recovery| recovery.disable_replay);
        let is_spent = ledger.attempts as usize == self.house.max_attempts;
        let is_shared = !start.scope.is_empty();
        let sends = self.sends_of(client);
        let ended = sends.last().and_then(|last| last.ended_at);
        let is_late = ended.is_some_and(|ended| ended - sends[0].at >= self.house.deadline);
        is_off || is_spent || is_shared || is_late || self.may_be_held_back()
    }

    /// How a generation fails whose answers a gate has rejected.
    pub fn check_rejected(&self, client: u64, failed: &Failed) {
        let verdict = failed.verdict.as_ref().unwrap();
        let ledger = failed.ledger.as_ref().unwrap();
        let last = ledger.entries.last();
        if failed.stopped_by() == StoppedBy::Gate {
            let last = last.expect("a gate that has judged nothing");
            let answer = self.said(client, last.attempt).answer();
            let rules = self.rules(client).expect("a gate that is off and ends it");
            let reason = rules.reason(&answer).expect("it should be accepted");
            assert_ne!(reason, "missing_tool", "it can be read");
            let is_malformed = reason == "tool_error" && answer.is_malformed();
            let expected = match is_malformed {
                true => (Class::MalformedOutput, ""),
                false => (Class::GateRejected, reason),
            };
            assert_eq!((verdict.class(), &*verdict.gate_reason), expected);
            let judged = rejected(ledger) + u32::from(is_malformed);
            assert_eq!(judged, rules.attempts, "as many as are judged");
            self.reach("exhausted the gate");
        }
        let bound = self.rules(client).map(|rules| rules.attempts);
        if bound == Some(rejected(ledger)) {
            assert_eq!(failed.stopped_by(), StoppedBy::Gate, "what ended it");
        }
        if verdict.class() == Class::GateRejected {
            let entry = &ledger.entries[verdict.attempt as usize - 1];
            let own = entry.verdict.as_ref().map(|own| &own.gate_reason);
            assert_eq!(own, Some(&verdict.gate_reason), "the verdict of an attempt");
        }
    }
}

fn rejected(ledger: &Ledger) -> u32 {
    let verdicts = ledger
        .entries
        .iter()
        .filter_map(|entry| entry.verdict.as_ref());
    let rejected = verdicts.filter(|verdict| verdict.class() == Class::GateRejected);
    rejected.count() as u32
}

/// A hint, as far as its own words go: what follows it in a body is not its own.
fn told_part(hint: Option<&String>) -> Option<&str> {
    let hint = hint?;
    let end = hint.find(['"', '.', ':']).unwrap_or(hint.len());
    Some(&hint[..end])
}
