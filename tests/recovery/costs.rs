//! What an attempt costs of its lease, and what a provider's word does to its budgets.

use redrive::{
    limits::Spent,
    proto::{FinishReason, Usage},
    protocol::Event,
    recovery::{Command, Takes},
    verdict::{Class, Origin, Stage},
};

use crate::support::*;

fn settled(script: &Script) -> Vec<Spent> {
    let settle = |command: &Command| match command {
        Command::Settle(spent) => Some(*spent),
        _ => None,
    };
    script.commands.iter().filter_map(settle).collect()
}

fn penalties(script: &Script) -> Vec<u64> {
    let penalty = |command: &Command| match command {
        Command::Penalise { wait } => Some(wait.as_secs()),
        _ => None,
    };
    script.commands.iter().filter_map(penalty).collect()
}

fn counted(script: &mut Script, input_tokens: u64, output_tokens: u64) {
    script.decoded(Event::Usage(Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    }));
}

fn spent(input_tokens: Option<u64>, output_tokens: Option<u64>, estimated: bool) -> Spent {
    Spent {
        input_tokens,
        output_tokens,
        estimated,
    }
}

#[test]
fn an_answer_is_settled_to_what_the_provider_counted_before_its_exchange_is_over() {
    let mut script = Script::start(params(1));
    script.open();
    script.text("Hi");
    script.finish(FinishReason::Stop);
    counted(&mut script, 12, 3);
    script.done();
    assert_eq!(settled(&script), [spent(Some(12), Some(3), false)]);
    let [.., settle, finish] = &script.commands[..] else {
        panic!("{:?}", script.commands)
    };
    assert!(matches!(settle, Command::Settle(_)));
    assert_eq!(finish, &Command::Finish);
}

#[test]
fn a_cut_off_answer_is_settled_to_what_was_seen() {
    let mut script = Script::start(params(1));
    script.open();
    counted(&mut script, 12, 1);
    script.text("Hello");
    script.cancel();
    assert_eq!(settled(&script), [spent(Some(12), Some(5), true)]);
}

#[test]
fn what_was_not_handed_over_is_not_settled() {
    let mut script = Script::start(params(1));
    script.fail(refused());
    script.next_send();
    script.cancel();
    assert!(settled(&script).is_empty());
}

#[test]
fn what_was_handed_over_and_not_answered_stays_as_it_was_reserved() {
    let mut script = Script::start(params(1));
    script.sent();
    script.cancel();
    assert_eq!(settled(&script), [spent(None, None, true)]);
}

#[test]
fn a_refused_request_costs_no_tokens() {
    let mut script = Script::start(params(1));
    script.sent();
    let mut failure = provider(Class::Auth);
    failure.http_status = Some(401);
    script.fail(failure);
    assert_eq!(settled(&script), [spent(Some(0), Some(0), true)]);
}

#[test]
fn each_attempt_is_settled_once_and_a_continuation_by_its_own_count() {
    let mut script = Script::start(params_with(1, |p| {
        change_targets(p, |target| target.continues = true);
    }));
    script.open();
    script.text("The sky ");
    script.fail(reset());
    script.next_send();
    assert_eq!(script.asked.1, Takes::Continuation { partial: 8 });
    script.open();
    script.text("is blue.");
    script.finish(FinishReason::Stop);
    counted(&mut script, 20, 4);
    script.done();
    assert_eq!(
        settled(&script),
        [spent(None, Some(8), true), spent(Some(20), Some(4), false)]
    );
}

#[test]
fn a_stored_response_is_paid_by_who_made_it_and_read_on_for_no_tokens() {
    let mut script = Script::start(params_with(1, |p| {
        change_targets(p, |target| target.resumes = true);
    }));
    script.open();
    script.decoded(Event::Started {
        response_id: Some("r"),
        model: None,
    });
    script.text("The sky ");
    script.decoded(Event::Cursor { sequence: 4 });
    script.fail(reset());
    script.next_send();
    assert_eq!(script.asked.1, Takes::Nothing);
    script.open();
    script.text("is blue.");
    script.finish(FinishReason::Stop);
    counted(&mut script, 20, 4);
    script.done();
    assert_eq!(
        settled(&script),
        [spent(None, None, true), Spent::default()]
    );
}

#[test]
fn a_rate_limit_with_a_wait_is_a_penalty_before_the_lease_is_settled() {
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider_wait(Class::RateLimited, s(30)));
    assert_eq!(penalties(&script), [30]);
    let [.., penalty, settle, _] = &script.commands[..] else {
        panic!("{:?}", script.commands)
    };
    assert!(matches!(penalty, Command::Penalise { .. }));
    assert!(matches!(settle, Command::Settle(_)));
}

#[test]
fn an_answer_that_begins_is_told_once_and_a_refusal_is_not_one() {
    let answered = |script: &Script| {
        let told = script.commands.iter();
        told.filter(|command| **command == Command::Answered)
            .count()
    };
    let mut script = Script::start(params(1));
    script.open();
    assert_eq!(answered(&script), 0, "a head is no answer yet");
    script.text("Hi");
    script.text(" there");
    assert_eq!(answered(&script), 1);
    let mut script = Script::start(params(1));
    script.sent();
    script.fail(provider_wait(Class::RateLimited, s(30)));
    assert_eq!(answered(&script), 0);
}

#[test]
fn what_is_no_rate_limit_with_a_wait_of_the_provider_is_no_penalty() {
    let mut ours = provider_wait(Class::RateLimited, s(30));
    (ours.origin, ours.stage) = (Origin::Us, Stage::Admission);
    for failure in [
        provider(Class::RateLimited),
        provider_wait(Class::Overloaded, s(30)),
        provider_wait(Class::QuotaExhausted, s(30)),
        ours,
    ] {
        let mut script = Script::start(params(1));
        script.sent();
        script.fail(failure);
        assert!(penalties(&script).is_empty());
    }
}

#[test]
fn retries_count_for_the_domain_of_the_credential() {
    let commons = commons_with(1);
    let two = |p: &mut redrive::recovery::Params| {
        change_targets(p, |target| {
            target.credentials = 2;
            target.domains = vec!["first".into(), "second".into()];
        });
    };
    let mut script = Script::start_at(at(0), params_with(1, two), &commons);
    script.sent();
    // The other credential goes at once, and its domain has a retry left.
    script.fail(provider_wait(Class::RateLimited, s(30)));
    assert_eq!(script.sent_count(), 2);
    assert!(commons.borrow_mut().take_retry(at(0), &"first".into()));
    assert!(!commons.borrow_mut().take_retry(at(0), &"second".into()));
}
