//! Budgets that hold an attempt back: what is waited for, what is told, and what fits.

use std::time::Duration;

use redrive::{
    proto::{Delivery, WaitSource, waiting::Reason},
    recovery::{Command, Event, Params, Takes, Wait},
    verdict::{Class, Denied, Failure, Origin, Stage},
};

use crate::support::*;

/// A generation whose slot and lease come when the test says so.
fn asking(params: Params) -> Script {
    asking_at(0, params, &commons())
}

fn asking_at(seconds: u64, params: Params, commons: &Shared) -> Script {
    let mut script = Script::new(at(seconds), params, commons);
    script.slots = false;
    script.handle(Event::Start);
    script
}

fn deadline(seconds: u64, targets: usize) -> Params {
    params_with(targets, |p| p.policy.deadline = s(seconds))
}

/// What the driver makes of a budget's refusal.
fn refused_by(budget: &str, class: Class) -> Failure {
    let mut failure = Failure::new(class, Origin::Us, Stage::Admission, "refused");
    failure.denied = Some(Box::new(Denied {
        budget: budget.into(),
        limit: "output_tokens: 10 in 1m; 11 asked for".into(),
    }));
    failure
}

fn told_of_waits(script: &Script) -> Vec<String> {
    let mut told = script.told();
    told.retain(|line| line.starts_with("waiting"));
    told
}

#[test]
fn a_budget_is_waited_for_and_the_wait_is_told_and_written_down() {
    let mut script = asking(params(1));
    script.held_by("main", Some(s(40)));
    script.pass(s(40));
    assert_eq!(script.sent_count(), 0, "no request without a lease");
    script.reserved();
    script.answer("Hi");
    assert_eq!(
        script.told()[..3],
        [
            "accepted left=11 deadline=600s",
            "waiting budget main 40s",
            "attempt 1 a/m first left=10"
        ]
    );
    let entry = &script.ledger().entries[0];
    assert_eq!(entry.wait_source(), WaitSource::Budget);
    assert_eq!(entry.waited.unwrap().seconds, 40);
}

#[test]
fn a_budget_that_rests_is_told_as_a_cooldown_that_the_provider_asked_for() {
    let mut script = asking(params(1));
    script.handle(Event::Waiting(Wait {
        reason: Reason::Cooldown,
        denied: Some(Denied {
            budget: "main".into(),
            limit: String::new(),
        }),
        expected: Some(s(3)),
    }));
    script.pass(s(3));
    script.reserved();
    script.answer("Hi");
    assert_eq!(told_of_waits(&script), ["waiting cooldown main 3s"]);
    let entry = &script.ledger().entries[0];
    assert_eq!(entry.wait_source(), WaitSource::Provider);
}

#[test]
fn a_wait_is_told_again_when_it_changes_and_not_when_it_only_goes_on() {
    let mut script = asking(params(1));
    script.queued();
    script.held_by("main", None);
    script.held_by("main", Some(s(40)));
    script.pass(s(10));
    script.held_by("main", Some(s(30)));
    script.held_by("main", Some(Duration::from_millis(30_999)));
    script.held_by("main", Some(s(31)));
    script.held_by("other", Some(s(31)));
    assert_eq!(
        told_of_waits(&script),
        [
            "waiting connection",
            "waiting budget main",
            "waiting budget main 40s",
            "waiting budget main 31s",
            "waiting budget other 31s"
        ]
    );
}

#[test]
fn a_client_that_lags_is_told_of_the_newest_wait_alone() {
    let mut script = asking(params(1));
    script.reads = false;
    for n in 0..1_000 {
        script.queued();
        script.held_by("main", Some(s(10 + 2 * (n % 7))));
    }
    script.read();
    assert_eq!(told_of_waits(&script), ["waiting budget main 20s"]);
}

#[test]
fn a_client_that_attaches_is_told_what_is_left_of_the_wait() {
    let mut script = asking(params_with(1, |p| p.detach_grace = s(60)));
    script.held_by("main", Some(s(40)));
    script.handle(Event::ClientLost);
    script.pass(s(15));
    script.attach(Delivery::Preview);
    assert_eq!(
        script.told(),
        [
            "accepted left=11 deadline=585s attached",
            "waiting budget main 25s"
        ]
    );
    script.pass(s(25));
    script.reserved();
    assert_eq!(script.sent_at(), [40]);
}

#[test]
fn a_wait_that_ends_at_the_deadline_does_not_fit_and_one_just_before_does() {
    for (wait, fits) in [(Duration::from_millis(9_999), true), (s(10), false)] {
        let mut script = asking(deadline(10, 1));
        script.held_by("main", Some(wait));
        assert_eq!(!script.generation.has_ended(), fits, "{wait:?}");
    }
}

#[test]
fn a_wait_that_does_not_fit_is_refused_at_once_with_the_budget_and_its_time() {
    for params in [
        deadline(10, 1),
        params_with(1, |p| p.caller_deadline = Some(at(10))),
    ] {
        let mut script = asking(params);
        script.held_by("main", Some(s(40)));
        assert_eq!(
            script.last(),
            "failed rate_limited by limiter retry_after=40s budget=main"
        );
        let verdict = script.failed().verdict.unwrap();
        assert!(verdict.retryable);
        assert_eq!(verdict.limit, "requests: 1 in 1m");
        assert_eq!(
            script.commands.last(),
            Some(&Command::Abort { condemn: false })
        );
        assert_eq!(script.generation.poll_timeout(), None);
    }
}

#[test]
fn a_wait_that_no_longer_fits_is_refused_when_that_is_known() {
    let mut script = asking(deadline(60, 1));
    script.held_by("main", Some(s(40)));
    script.pass(s(30));
    script.held_by("main", Some(s(31)));
    assert_eq!(
        script.last(),
        "failed rate_limited by limiter retry_after=31s budget=main"
    );
}

#[test]
fn a_wait_of_unknown_length_lasts_until_the_deadline_and_names_the_budget() {
    let mut script = asking(deadline(60, 1));
    script.held_by("main", None);
    script.pass(s(60));
    assert_eq!(script.last(), "failed deadline by deadline budget=main");
    let verdict = script.failed().verdict.unwrap();
    assert_eq!(
        verdict.message,
        "the deadline passed before budget main had room (requests: 1 in 1m)"
    );
    assert_eq!(script.ledger().waited.unwrap().seconds, 60);
}

#[test]
fn an_attempts_verdict_is_not_masked_but_the_budget_is_named_beside_it() {
    let mut script = asking(deadline(60, 1));
    script.reserved();
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.pass(s(1));
    script.held_by("main", Some(s(70)));
    assert_eq!(
        script.last(),
        "failed provider_internal by limiter retry_after=70s budget=main"
    );
    let failed = script.failed();
    assert_eq!(failed.verdict.unwrap().attempt, 1);
    let entry = failed.ledger.unwrap().entries.remove(0).verdict.unwrap();
    assert_eq!((entry.budget.as_str(), entry.retry_after), ("", None));
}

#[test]
fn of_two_waits_that_were_asked_for_the_longer_is_told() {
    for (budget, told) in [(58, "retry_after=58s"), (70, "retry_after=70s")] {
        let mut script = asking(deadline(60, 1));
        script.reserved();
        script.sent();
        script.fail(provider_wait(Class::RateLimited, s(5)));
        script.pass(s(5));
        script.held_by("main", Some(s(budget)));
        assert!(script.last().contains(told), "{}", script.last());
    }
}

#[test]
fn a_wait_that_does_not_fit_leads_to_another_target() {
    let mut script = asking(deadline(10, 2));
    script.held_by("main", Some(s(40)));
    assert_eq!(script.asked.0, [0]);
    script.reserved();
    script.answer("Hi");
    assert_eq!(script.visited(), [1]);
    assert!(told_of_waits(&script).is_empty(), "nothing was waited for");
}

#[test]
fn a_target_that_a_budget_holds_back_is_not_asked_again_before_its_time() {
    let mut script = asking(deadline(100, 2));
    script.held_by("main", Some(s(100)));
    script.slots = true;
    script.reserved();
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.next_send();
    script.sent();
    script.fail(provider(Class::ProviderInternal));
    script.next_send();
    assert_eq!(script.visited(), [1, 1, 1]);
}

#[test]
fn where_no_target_has_room_the_soonest_is_told() {
    for (first, second, told) in [(40, 50, "a"), (50, 40, "b")] {
        let mut script = asking(deadline(10, 2));
        script.held_by("a", Some(s(first)));
        script.held_by("b", Some(s(second)));
        let expected = format!("failed rate_limited by limiter retry_after=40s budget={told}");
        assert_eq!(script.last(), expected);
    }
}

/// The first target is held back, and the second fails so that it is not gone to again.
fn only_the_one_held_back_is_left(deny: impl Fn(&mut Script), class: Class) -> Script {
    let mut script = asking(deadline(60, 2));
    deny(&mut script);
    script.reserved();
    script.sent();
    script.fail(provider(class));
    assert_eq!(script.visited(), [1]);
    script
}

#[test]
fn a_budget_that_holds_the_only_way_on_back_is_named_beside_the_verdict() {
    let held = |script: &mut Script| script.held_by("main", Some(s(70)));
    let refused = |script: &mut Script| {
        script.handle(Event::ReservationRefused(refused_by(
            "main",
            Class::ExceedsLimit,
        )));
    };
    for (class, name) in [
        (Class::NotFound, "not_found"),
        (Class::TimeoutFirstToken, "timeout_first_token"),
    ] {
        let script = only_the_one_held_back_is_left(held, class);
        let expected = format!("failed {name} by limiter retry_after=70s budget=main");
        assert_eq!(script.last(), expected);
        let verdict = script.failed().verdict.unwrap();
        assert_eq!(verdict.limit, "requests: 1 in 1m");
        let script = only_the_one_held_back_is_left(refused, class);
        let expected = format!("failed {name} by limiter budget=main");
        assert_eq!(script.last(), expected);
    }
}

#[test]
fn where_the_target_taken_instead_rests_meanwhile_the_budget_is_told() {
    let commons = commons();
    let mut script = asking_at(0, deadline(60, 2), &commons);
    commons
        .borrow_mut()
        .cool(at(0), ("b".into(), 0), s(10), true);
    script.held_by("main", Some(s(70)));
    commons
        .borrow_mut()
        .cool(at(0), ("b".into(), 0), s(100), true);
    script.pass(s(10));
    assert_eq!(
        script.last(),
        "failed rate_limited by limiter retry_after=60s budget=main"
    );
}

#[test]
fn more_than_a_budget_can_hold_goes_to_the_next_target_only() {
    let mut script = asking(params(2));
    script.handle(Event::ReservationRefused(refused_by(
        "small",
        Class::ExceedsLimit,
    )));
    script.slots = true;
    script.reserved();
    for _ in 0..3 {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
    }
    assert_eq!(script.visited(), [1, 1, 1, 1], "never the first again");
}

#[test]
fn more_than_every_budget_can_hold_is_refused_for_good() {
    let mut script = asking(params(1));
    script.handle(Event::ReservationRefused(refused_by(
        "small",
        Class::ExceedsLimit,
    )));
    assert_eq!(
        script.last(),
        "failed exceeds_limit by limiter budget=small"
    );
    let verdict = script.failed().verdict.unwrap();
    assert!(!verdict.retryable);
    assert_eq!(verdict.limit, "output_tokens: 10 in 1m; 11 asked for");
}

#[test]
fn what_is_too_much_only_as_a_continuation_is_asked_for_anew() {
    let mut script = asking(params_with(1, |p| {
        change_targets(p, |target| target.continues = true);
    }));
    script.reserved();
    script.open();
    script.text("The sky");
    script.fail(reset());
    script.pass(s(1));
    assert_eq!(script.asked.1, Takes::Continuation { partial: 7 });
    let refusal = || Event::ReservationRefused(refused_by("small", Class::ExceedsLimit));
    script.handle(refusal());
    assert_eq!(script.asked.1, Takes::Whole);
    script.reserved();
    assert_eq!(
        script.told()[3..],
        [
            "waiting backoff 1s",
            "reset 1 transport",
            "attempt 2 a/m restart left=9"
        ]
    );
}

#[test]
fn final_text_is_not_given_up_for_a_budget_that_cannot_hold_its_continuation() {
    let mut script = asking(params_with(1, |p| {
        change_targets(p, |target| target.continues = true);
    }));
    script.reserved();
    script.open();
    script.text("The sky");
    let sequence = script.sequence();
    script.effects(sequence);
    script.fail(reset());
    script.pass(s(1));
    script.handle(Event::ReservationRefused(refused_by(
        "small",
        Class::ExceedsLimit,
    )));
    assert_eq!(
        script.last(),
        "failed transport by limiter budget=small unsafe"
    );
}

#[test]
fn a_full_queue_is_refused_at_once() {
    let mut script = asking(params(1));
    script.handle(Event::ReservationRefused(refused_by(
        "main",
        Class::RateLimited,
    )));
    assert_eq!(script.last(), "failed rate_limited by limiter budget=main");
}

#[test]
fn every_end_of_a_wait_gives_the_place_in_line_up() {
    type End = fn(&mut Script);
    let ends: [(End, &str); 5] = [
        (|script| script.cancel(), "failed cancelled by cancel"),
        (
            |script| script.handle(Event::Drain { until: at(7) }),
            "failed draining by drain",
        ),
        (
            |script| script.pass(s(30)),
            "failed deadline by deadline budget=main",
        ),
        (
            |script| script.pass(s(20)),
            "failed deadline by deadline budget=main",
        ),
        (|script| script.handle(Event::ClientLost), ""),
    ];
    for (index, (end, told)) in ends.into_iter().enumerate() {
        let mut script = asking(params_with(1, |p| {
            p.policy.deadline = s(30);
            p.caller_deadline = (index == 3).then(|| at(20));
        }));
        script.held_by("main", None);
        end(&mut script);
        script.pass(s(7));
        assert!(script.generation.has_ended());
        assert_eq!(
            script.commands.last(),
            Some(&Command::Abort { condemn: false })
        );
        if !told.is_empty() {
            assert_eq!(script.last(), told);
        }
        let ledger = script.generation.account();
        assert_eq!((ledger.attempts, ledger.sends), (0, 0), "nothing was used");
    }
}

#[test]
fn all_usable_credentials_are_offered_and_the_chosen_one_is_used() {
    let commons = commons();
    let three = params_with(1, |p| change_targets(p, |t| t.credentials = 3));
    commons
        .borrow_mut()
        .cool(at(0), ("a".into(), 1), s(30), true);
    let mut script = asking_at(0, three, &commons);
    assert_eq!(script.asked, (vec![0, 2], Takes::Whole));
    script.handle(Event::Reserved { credential: 2 });
    assert_eq!(script.sends[0].credential, Some(2));
}

#[test]
fn a_lease_of_a_credential_that_has_begun_to_rest_is_given_back() {
    let commons = commons();
    let two = params_with(1, |p| change_targets(p, |t| t.credentials = 2));
    let mut script = asking_at(0, two, &commons);
    script.held_by("main", Some(s(40)));
    commons
        .borrow_mut()
        .cool(at(0), ("a".into(), 1), s(30), true);
    script.handle(Event::Reserved { credential: 1 });
    assert_eq!(script.sent_count(), 0);
    let [.., abort, again] = &script.commands[..] else {
        panic!("{:?}", script.commands)
    };
    assert_eq!(abort, &Command::Abort { condemn: false });
    assert!(matches!(again, Command::Reserve { credentials, .. } if credentials == &[0]));
}

#[test]
fn a_credential_that_returns_during_the_wait_is_offered_too() {
    let commons = commons();
    let two = params_with(1, |p| change_targets(p, |t| t.credentials = 2));
    commons
        .borrow_mut()
        .cool(at(0), ("a".into(), 0), s(30), true);
    let mut script = asking_at(0, two, &commons);
    assert_eq!(script.asked.0, [1]);
    script.held_by("second", Some(s(400)));
    script.pass(s(30));
    assert_eq!(script.asked.0, [0, 1]);
    script.reserved();
    assert_eq!(script.sends[0].credential, Some(0));
    assert_eq!(script.sent_at(), [30]);
}

#[test]
fn a_credential_that_returns_before_the_deadline_is_waited_for_where_a_budget_is_not() {
    let two = params_with(1, |p| change_targets(p, |t| t.credentials = 2));
    for refused in [false, true] {
        let commons = commons();
        commons
            .borrow_mut()
            .cool(at(0), ("a".into(), 0), s(30), true);
        let mut script = asking_at(0, two.clone(), &commons);
        match refused {
            true => script.handle(Event::ReservationRefused(refused_by(
                "b",
                Class::ExceedsLimit,
            ))),
            false => script.held_by("b", Some(s(600))),
        }
        script.pass(s(30));
        assert_eq!(script.asked.0, [0, 1]);
        script.reserved();
        assert_eq!(script.sent_at(), [30]);
    }
}

#[test]
fn a_lease_that_comes_just_as_a_credential_returns_is_used() {
    let commons = commons();
    let two = params_with(1, |p| change_targets(p, |t| t.credentials = 2));
    commons
        .borrow_mut()
        .cool(at(0), ("a".into(), 0), s(30), true);
    let mut script = asking_at(0, two, &commons);
    script.held_by("second", Some(s(30)));
    script.now = at(30);
    script.reserved();
    assert_eq!(script.sends[0].credential, Some(1));
    assert_eq!(script.commands.len(), 2, "one Reserve, one Send");
}

#[test]
fn final_text_goes_nowhere_else_although_a_budget_holds_its_target_back() {
    let mut script = asking(params_with(2, |p| {
        p.policy.deadline = s(60);
        change_targets(p, |target| target.continues = true);
    }));
    script.reserved();
    script.open();
    script.text("The sky");
    let sequence = script.sequence();
    script.effects(sequence);
    script.fail(reset());
    script.pass(s(1));
    script.held_by("main", Some(s(100)));
    assert_eq!(
        script.last(),
        "failed transport by limiter retry_after=100s budget=main unsafe"
    );
}

#[test]
fn text_that_is_not_final_is_void_where_only_another_target_has_room() {
    let mut script = asking(params_with(2, |p| {
        p.policy.deadline = s(60);
        change_targets(p, |target| target.continues = true);
    }));
    script.reserved();
    script.open();
    script.text("The sky");
    script.fail(reset());
    script.pass(s(1));
    assert_eq!(script.asked.1, Takes::Continuation { partial: 7 });
    script.held_by("main", Some(s(100)));
    assert_eq!(script.asked.1, Takes::Whole);
    script.reserved();
    assert_eq!(
        script.told()[3..],
        [
            "waiting backoff 1s",
            "reset 1 transport",
            "attempt 2 b/m restart left=9 fallback"
        ]
    );
}
