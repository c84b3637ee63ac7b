//! What the turn gate does to a generation: which answers it rejects, what becomes of them, and what the
//! model is told.

use redrive::{
    gate::{Reason, Then},
    proto::{Delivery, Mode, StoppedBy, Verdict, VerdictClass},
    recovery::{FollowUp, Hint, Takes, Time, settings::Replay},
};

use super::{
    rules::{HINT, told},
    shared::Shared,
    world::World,
};

/// The account of a generation's gate.
#[derive(Debug, Default)]
pub struct Gated {
    /// How many complete answers were judged.
    judged: u32,
    /// The rejection that is being handed in.
    now: Option<Rejection>,
    /// The last one that was to be tried again.
    last: Option<Rejection>,
    /// What every request has carried since then, once there was one.
    hint: Option<Hint>,
}

#[derive(Clone, Copy, Debug)]
struct Rejection {
    attempt: usize,
    target: usize,
    /// How many attempts at the target had failed by then, of whatever generation.
    failures: u32,
    reason: &'static str,
    /// What becomes of it, and what ends the generation if that fails.
    then: Then,
    by: Option<StoppedBy>,
    /// As what it fails.
    class: VerdictClass,
}

impl World {
    /// The gate has rejected the answer that is complete.
    pub(super) fn rejected(&mut self, now: Time, reason: Reason, then: Then, shared: &mut Shared) {
        let rules = self.rules.expect("a gate that is off and judges");
        let exchange = self.exchange.as_ref().expect("an answer of nobody");
        let target = exchange.target;
        assert!(
            self.stream.complete && !self.stream.broken,
            "what is not complete was judged"
        );
        assert!(self.gate.now.is_none(), "an answer was judged twice");
        let reason = reason.as_str();
        assert_eq!(
            Some(reason),
            rules.reason(&self.stream),
            "why it is rejected"
        );
        self.gate.judged += 1;
        assert!(self.gate.judged <= rules.attempts, "more than are judged");
        self.notice_loss(now);
        let by = self.stops_trying(now, target, shared);
        let is_delivered = self.must_stay() || (by.is_some() && reason == "missing_tool");
        let is_lost = self.must_stay() && self.stream.is_malformed();
        let expected = match by {
            _ if is_lost => Then::Failed,
            _ if is_delivered => Then::Delivered,
            None => Then::Retried,
            Some(_) => Then::Failed,
        };
        assert_eq!(then, expected, "what becomes of it: {reason}, {by:?}");
        // It fails as without the gate.
        let then = if is_lost { Then::Delivered } else { then };
        let is_malformed =
            then == Then::Failed && reason == "tool_error" && self.stream.is_malformed();
        self.landmarks.insert(landmark(reason));
        self.landmarks.extend(match then {
            Then::Retried => Some("gate: asked again"),
            Then::Delivered if self.must_stay() => Some("gate: must stay"),
            Then::Delivered => Some("gate: delivered at the end"),
            Then::Failed => is_malformed.then_some("gate: failed as malformed"),
        });
        self.gate.now = Some(Rejection {
            attempt: self.attempts.len(),
            target,
            failures: shared.failures.get(&target).copied().unwrap_or_default(),
            reason,
            then,
            by: by.filter(|_| then == Then::Failed),
            class: match is_malformed {
                true => VerdictClass::MalformedOutput,
                false => VerdictClass::GateRejected,
            },
        });
        if then != Then::Delivered
            && !is_malformed
            && let Some(attempt) = self.attempts.last_mut()
        {
            attempt.rejected = Some(reason);
        }
    }

    /// Why a rejected answer of `target` is not tried again, if it is not.
    fn stops_trying(&self, now: Time, target: usize, shared: &mut Shared) -> Option<StoppedBy> {
        let ends = self.admission_ends(shared);
        let left = shared
            .scope(&self.params)
            .map_or(self.left, |scope| scope.left);
        let is_first_rpc = self.rpc == 1 && self.reader.is_some();
        let callers = self.params.caller_deadline.filter(|_| is_first_rpc);
        let returns = self.returns(target, shared);
        match () {
            () if self.gate.judged >= self.rules?.attempts => Some(StoppedBy::Gate),
            () if self.params.policy.replay == Replay::None => Some(StoppedBy::ReplayDisabled),
            () if left == 0 => Some(StoppedBy::Allowance),
            () if now >= ends => Some(StoppedBy::Deadline),
            // Every credential rests for longer.
            () if returns > now && returns >= callers.map_or(ends, |at| at.min(ends)) => {
                Some(StoppedBy::Deadline)
            }
            () => None,
        }
    }

    /// When the first credential of a target may be used, or might have been.
    fn returns(&self, target: usize, shared: &Shared) -> Time {
        let credentials = 0..self.params.targets[target].credentials.max(1);
        let rest = |credential| shared.rests.get(&(target, credential)).copied();
        let rests = credentials.map(|credential| rest(credential).unwrap_or_default());
        rests.min().unwrap_or_default()
    }

    /// Output that must not become void is neither reset nor tried again.
    fn must_stay(&self) -> bool {
        let stands = |reader: &super::reader::Reader| {
            reader.delivery == Delivery::PreviewNoReset
                && reader.holds_output(&self.versions, &self.void)
        };
        self.confirmed || self.stream.fixed_below > 0 || self.reader.as_ref().is_some_and(stands)
    }

    /// What follows in the same instant from a rejection, if there was one.
    pub(super) fn check_rejection(&mut self, now: Time, shared: &Shared) {
        let Some(rejection) = self.gate.now.take() else {
            return;
        };
        let failed = self.generation.failed();
        let ended = failed.map(|failed| {
            let verdict = failed.verdict.as_ref().expect("a verdict");
            (failed.stopped_by(), verdict.class(), &*verdict.gate_reason)
        });
        match (rejection.then, rejection.by) {
            (Then::Retried, _) => {
                assert_eq!(ended, None);
                let held = self.reader.as_ref();
                let held =
                    held.is_some_and(|reader| reader.holds_output(&self.versions, &self.void));
                assert!(!held, "what was shown of a rejected answer is not void");
                let target = rejection.target;
                if self.returns(target, shared) <= now {
                    let asked = self.asked.as_ref().map(|(asked, _)| *asked);
                    assert_eq!(asked, Some(target), "tried again there, and at once");
                } else {
                    self.landmarks.insert("gate: waits for a credential");
                }
                self.gate.hint = None;
                self.gate.last = Some(rejection);
            }
            (Then::Delivered, _) if self.stream.is_malformed() => {
                let malformed = (StoppedBy::NotRetryable, VerdictClass::MalformedOutput, "");
                assert_eq!(ended, Some(malformed), "as without the gate");
            }
            (Then::Delivered, _) => {
                assert!(self.generation.committed().is_some(), "it is delivered");
            }
            (Then::Failed, by) => {
                let reason = match rejection.class {
                    VerdictClass::GateRejected => rejection.reason,
                    _ => "",
                };
                let by = by.expect("a reason to fail");
                assert_eq!(ended, Some((by, rejection.class, reason)), "how it fails");
                self.landmarks
                    .extend((by == StoppedBy::Gate).then_some("gate: exhausted"));
            }
        }
    }

    /// What a request says beside the original one.
    pub(super) fn check_hint(
        &mut self,
        target: usize,
        hint: Option<&Hint>,
        follow_up: Option<&FollowUp>,
        shared: &Shared,
    ) {
        let mode = match (follow_up, hint) {
            (Some(FollowUp::Continue { .. }), _) => Mode::Continue,
            (Some(FollowUp::Resume { .. }), _) => Mode::Resume,
            (None, _) if self.attempts.is_empty() => Mode::First,
            (None, Some(_)) => Mode::GateRetry,
            (None, None) => Mode::Restart,
        };
        assert_eq!(self.mode, mode, "how the attempt came about");
        assert_eq!(
            hint.is_some(),
            self.gate.last.is_some(),
            "a hint is of a rejection, and stays until the next one"
        );
        match self.takes {
            Some(Takes::Whole) => assert!(hint.is_none(), "a hint that nobody pays for"),
            Some(Takes::Hinted { hint: length }) => {
                assert_eq!(hint.map(|hint| hint.as_str().len()), Some(length));
            }
            _ => {}
        }
        let (Some(hint), Some(rejection)) = (hint, self.gate.last) else {
            return;
        };
        if let Some(known) = &self.gate.hint {
            assert_eq!(hint, known, "a replay sends the same");
            self.landmarks.insert("gate: a hint was sent again");
            return;
        }
        assert_eq!(
            self.attempts.len(),
            rejection.attempt,
            "a rejection that was passed over"
        );
        assert_eq!(mode, Mode::GateRetry, "a rejected answer is gone on with");
        let elsewhere = target != rejection.target;
        self.landmarks
            .extend(elsewhere.then_some("gate: went elsewhere"));
        assert!(
            !elsewhere || self.is_driven_away(rejection, shared),
            "another target is asked"
        );
        let text = hint.as_str();
        assert!(text.contains(told(rejection.reason)), "the hint: {text}");
        assert_eq!(text.matches(HINT).count(), 1, "hints accumulate: {text}");
        self.gate.hint = Some(hint.clone());
    }

    /// Whether a budget has no room for what is tried again at its target, or others have failed there
    /// since: its circuit may have opened, or its credentials rest.
    fn is_driven_away(&self, rejection: Rejection, shared: &Shared) -> bool {
        let failures = shared.failures.get(&rejection.target);
        failures.copied().unwrap_or_default() > rejection.failures
            || self.denied.contains_key(&rejection.target)
    }

    /// The answer is committed.
    pub(super) fn note_acceptance(&mut self) {
        let Some(rules) = self.rules else { return };
        if self.gate.now.is_some() {
            return;
        }
        self.gate.judged += 1;
        assert!(self.gate.judged <= rules.attempts, "more than are judged");
        assert_eq!(rules.reason(&self.stream), None, "it should be rejected");
        self.stream.left_out = rules.withheld(&self.stream);
        let is_withheld = !self.stream.left_out.is_empty();
        self.landmarks
            .extend(is_withheld.then_some("gate: withheld a call"));
    }

    /// Whether an attempt may end with this verdict, as far as the gate is concerned.
    pub(super) fn check_verdict(&self, verdict: &Verdict) {
        let rejection = self.gate.now.filter(|now| now.then != Then::Delivered);
        let class = verdict.class();
        if let Some(Rejection {
            class: own, reason, ..
        }) = rejection
        {
            assert_eq!(class, own, "the verdict of a rejection");
            if class == VerdictClass::GateRejected {
                assert_eq!(verdict.gate_reason, reason);
            }
            return;
        }
        assert_ne!(class, VerdictClass::GateRejected, "rejected by nobody");
        let is_unjudged = self.rules.is_some() && self.gate.now.is_none();
        assert!(
            class != VerdictClass::MalformedOutput || !is_unjudged || !self.stream.complete,
            "a complete answer was not judged"
        );
    }
}

impl Gated {
    /// Whether the last answer that is judged was rejected just now.
    pub fn exhausts(&self) -> bool {
        self.now.is_some_and(|now| now.by == Some(StoppedBy::Gate))
    }

    /// A rejected answer came to its end: its connection is as good as any.
    pub fn check_abort(&self, in_flight: bool) {
        let is_good = self.now.is_some_and(|now| now.then != Then::Delivered);
        assert!(
            !(in_flight && is_good),
            "the exchange of a whole answer is cut"
        );
    }

    /// Only what is tried again is void because of the gate, and as a whole.
    pub fn check_reset(&self, class: VerdictClass, block: Option<u32>) {
        let retries = self.now.is_some_and(|now| now.then == Then::Retried);
        let own = class == VerdictClass::GateRejected;
        assert_eq!(own, retries && block.is_none(), "why output is void");
    }
}

fn landmark(reason: &str) -> &'static str {
    match reason {
        "empty" => "gate: empty",
        "bare" => "gate: bare",
        "required_tool" => "gate: required_tool",
        "tool_error" => "gate: tool_error",
        "missing_tool" => "gate: missing_tool",
        other => panic!("cannot be: {other}"),
    }
}
