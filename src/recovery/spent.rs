//! What an attempt has cost of its lease: the one rule.
//!
//! | how it ended | prompt | answer |
//! |---|---|---|
//! | it never left | the lease goes back whole, and nothing is settled | |
//! | it read a stored response on | took none | took none |
//! | the provider refused it: an HTTP error 4xx | none | none |
//! | it was completed, with a usage: accepted, or rejected by the turn gate | counted | counted |
//! | anything else | counted, if a usage came; else as reserved | the most of what was counted and one token per byte that came; as reserved if nothing came, or if the response is stored and may be read on |
//!
//! A token is never less than a byte, so bytes bound the tokens of what was seen, and of the whole answer as
//! long as the provider streams all that it makes. Reasoning that it does not stream is in none of these
//! numbers: an answer that was cut off may have cost more than is settled, by what nobody can know. What a
//! provider does not say (a count of 0) is not known. All that is not the provider's own count is an
//! estimate, which never counts for more than was reserved.

use crate::{
    limits::Spent,
    proto::{Mode, Usage},
    verdict::{Class, Failure, Stage},
};

/// What is known of an attempt that may have left, and is over.
pub(super) struct Evidence<'a> {
    /// How it went on from what came before.
    pub mode: Mode,
    /// Why it failed, or was rejected; none if it was accepted.
    pub failure: Option<&'a Failure>,
    /// The last usage that the provider gave.
    pub usage: Option<Usage>,
    /// Bytes of output that came.
    pub output_bytes: usize,
    /// Its response is stored, and the provider goes on with it whoever listens.
    pub is_stored: bool,
}

/// The table of the module's head.
pub(super) fn spent(evidence: &Evidence<'_>) -> Spent {
    let Evidence {
        mode,
        failure,
        usage,
        output_bytes,
        is_stored,
    } = *evidence;
    if mode == Mode::Resume {
        return Spent::default();
    }
    if failure.is_some_and(is_refusal) {
        return Spent {
            input_tokens: Some(0),
            output_tokens: Some(0),
            estimated: true,
        };
    }
    let known = |count: u64| (count > 0).then_some(count);
    let input_tokens = usage.and_then(|usage| known(usage.input_tokens));
    let counted = usage.and_then(|usage| known(usage.output_tokens));
    let completed = failure.is_none_or(|failure| failure.class == Class::GateRejected);
    if completed && counted.is_some() {
        return Spent {
            input_tokens,
            output_tokens: counted,
            estimated: false,
        };
    }
    let seen = known(output_bytes as u64);
    Spent {
        input_tokens,
        output_tokens: counted.max(seen).filter(|_| seen.is_some() && !is_stored),
        estimated: true,
    }
}

fn is_refusal(failure: &Failure) -> bool {
    let refuses = failure
        .http_status
        .is_some_and(|status| (400..500).contains(&status));
    refuses && failure.stage == Stage::Response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Origin;

    fn usage(input_tokens: u64, output_tokens: u64) -> Option<Usage> {
        Some(Usage {
            input_tokens,
            output_tokens,
            ..Usage::default()
        })
    }

    fn failed(stage: Stage, status: u16) -> Failure {
        let mut failure = Failure::new(Class::ProviderInternal, Origin::Provider, stage, "");
        failure.http_status = Some(status);
        failure
    }

    fn estimated(input_tokens: Option<u64>, output_tokens: Option<u64>) -> Spent {
        Spent {
            input_tokens,
            output_tokens,
            estimated: true,
        }
    }

    fn of(mode: Mode, failure: Option<&Failure>, usage: Option<Usage>, bytes: usize) -> Spent {
        spent(&Evidence {
            mode,
            failure,
            usage,
            output_bytes: bytes,
            is_stored: false,
        })
    }

    #[test]
    fn an_accepted_attempt_costs_what_the_provider_counted() {
        let counted = Spent {
            input_tokens: Some(7),
            output_tokens: Some(3),
            estimated: false,
        };
        assert_eq!(of(Mode::First, None, usage(7, 3), 1_000), counted);
        assert_eq!(of(Mode::Continue, None, usage(7, 3), 1_000), counted);
    }

    #[test]
    fn an_answer_that_the_gate_rejected_costs_what_the_provider_counted() {
        let rejected = Failure::new(Class::GateRejected, Origin::Us, Stage::Stream, "");
        let counted = Spent {
            input_tokens: Some(7),
            output_tokens: Some(3),
            estimated: false,
        };
        assert_eq!(of(Mode::First, Some(&rejected), usage(7, 3), 40), counted);
    }

    #[test]
    fn without_a_count_bytes_bound_the_answer_and_the_prompt_stays_as_reserved() {
        assert_eq!(of(Mode::First, None, None, 40), estimated(None, Some(40)));
        let counted_in_part = of(Mode::First, None, usage(7, 0), 40);
        assert_eq!(counted_in_part, estimated(Some(7), Some(40)));
    }

    #[test]
    fn what_is_read_on_costs_no_tokens() {
        assert_eq!(of(Mode::Resume, None, usage(7, 3), 40), Spent::default());
        let reset = failed(Stage::Stream, 200);
        assert_eq!(of(Mode::Resume, Some(&reset), None, 40), Spent::default());
    }

    #[test]
    fn a_refused_attempt_costs_no_tokens_and_a_broken_provider_says_nothing() {
        for status in [400, 401, 429, 499] {
            let refused = failed(Stage::Response, status);
            let cost = of(Mode::First, Some(&refused), None, 0);
            assert_eq!(cost, estimated(Some(0), Some(0)), "{status}");
        }
        for (stage, status) in [(Stage::Response, 500), (Stage::Stream, 429)] {
            let failed = failed(stage, status);
            let cost = of(Mode::First, Some(&failed), None, 0);
            assert_eq!(cost, estimated(None, None), "{status}");
        }
    }

    #[test]
    fn a_cut_off_attempt_costs_the_most_of_what_was_counted_and_seen() {
        let reset = failed(Stage::Stream, 200);
        let of = |usage, bytes| of(Mode::First, Some(&reset), usage, bytes);
        assert_eq!(of(usage(7, 1), 40), estimated(Some(7), Some(40)));
        assert_eq!(of(usage(7, 60), 40), estimated(Some(7), Some(60)));
        assert_eq!(of(None, 40), estimated(None, Some(40)));
        assert_eq!(
            of(usage(7, 1), 0),
            estimated(Some(7), None),
            "may have reasoned"
        );
    }

    #[test]
    fn a_stored_response_goes_on_and_keeps_what_was_reserved_for_it() {
        let reset = failed(Stage::Stream, 200);
        let cost = spent(&Evidence {
            mode: Mode::First,
            failure: Some(&reset),
            usage: None,
            output_bytes: 40,
            is_stored: true,
        });
        assert_eq!(cost, estimated(None, None));
    }
}
