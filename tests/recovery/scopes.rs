//! Scopes: one allowance and one deadline for a named set of generations.

use redrive::{
    proto::Delivery,
    recovery::{Generation, Params},
    verdict::Class,
};

use crate::support::*;

fn scoped() -> Params {
    params_with(1, |p| p.scope = Some(("tcp".into(), "turn".into())))
}

fn fail_times(script: &mut Script, times: usize) {
    for _ in 0..times {
        script.sent();
        script.fail(provider(Class::ProviderInternal));
        script.next_send();
    }
}

// G12
#[test]
fn a_nested_generation_spends_the_outer_allowance_and_moves_no_deadline() {
    let commons = commons();
    let mut outer = Script::start_at(at(0), scoped(), &commons);
    outer.open();
    outer.pass(s(50));
    let mut inner = Script::start_at(at(50), scoped(), &commons);
    assert_eq!(inner.told()[0], "accepted left=10 deadline=550s");
    fail_times(&mut inner, 2);
    inner.answer("Hi");
    assert_eq!(inner.sent_count(), 3);
    outer.pass(s(8));
    outer.fail(reset());
    outer.next_send();
    assert_eq!(outer.last(), "attempt 2 a/m restart left=6");
}

// G13
#[test]
fn a_smaller_context_in_the_same_scope_refills_nothing() {
    let commons = commons();
    let mut first = Script::start_at(at(0), scoped(), &commons);
    first.sent();
    first.fail(provider(Class::ContextOverflow));
    let second = Script::start_at(at(10), scoped(), &commons);
    assert_eq!(
        second.told(),
        [
            "accepted left=10 deadline=590s",
            "attempt 1 a/m first left=9",
        ]
    );
}

#[test]
fn a_spent_scope_sends_nothing() {
    let commons = commons();
    let mut first = Script::start_at(
        at(0),
        Params {
            policy: params_with(1, |p| p.policy.max_attempts = 1).policy,
            ..scoped()
        },
        &commons,
    );
    first.sent();
    first.fail(provider(Class::ProviderInternal));
    assert_eq!(first.last(), "failed provider_internal by allowance");
    let second = Script::start_at(at(1), scoped(), &commons);
    assert_eq!(second.last(), "failed exceeds_limit by allowance");
    assert_eq!(second.sent_count(), 0);
}

#[test]
fn an_expired_scope_sends_nothing() {
    let commons = commons();
    let _outer = Script::start_at(at(0), scoped(), &commons);
    let late = Script::start_at(at(600), scoped(), &commons);
    assert_eq!(late.last(), "failed deadline by deadline");
    assert_eq!(late.sent_count(), 0);
}

#[test]
fn an_allowance_that_others_spent_during_a_wait_ends_it_with_the_last_verdict() {
    let commons = commons();
    let mut params = scoped();
    params.policy.max_attempts = 2;
    let mut first = Script::start_at(at(0), params.clone(), &commons);
    first.sent();
    first.fail(provider(Class::ProviderInternal));
    let second = Script::start_at(at(0), params, &commons);
    assert_eq!(second.sent_count(), 1);
    first.pass(s(1));
    assert_eq!(first.last(), "failed provider_internal by allowance");
    assert_eq!(first.sent_count(), 1);
}

#[test]
fn a_later_generation_that_tightens_the_deadline_tightens_it_for_all() {
    let commons = commons();
    let mut first = Script::start_at(at(0), scoped(), &commons);
    let mut short = scoped();
    short.policy.deadline = s(10);
    let _second = Script::start_at(at(0), short, &commons);
    first.sent();
    first.fail(provider_wait(Class::RateLimited, s(20)));
    assert_eq!(
        first.last(),
        "failed rate_limited by wait_too_long retry_after=20s"
    );
}

#[test]
fn every_way_to_end_leaves_the_scope() {
    let ends: [fn(&mut Script); 5] = [
        |script| script.answer("Hi"),
        |script| script.fail(provider(Class::Auth)),
        Script::cancel,
        |script| script.handle(redrive::recovery::Event::ClientLost),
        |script| {
            script.handle(redrive::recovery::Event::Drain { until: at(0) });
            script.pass(s(0));
        },
    ];
    for end in ends {
        let commons = commons();
        let mut first = Script::start_at(at(0), scoped(), &commons);
        end(&mut first);
        assert!(first.generation.has_ended());
        let later = Script::start_at(at(60), scoped(), &commons);
        assert_eq!(
            later.told()[0],
            "accepted left=11 deadline=600s",
            "it is a new scope"
        );
    }
}

#[test]
fn a_generation_that_never_starts_ends_too() {
    let commons = commons();
    let mut script = Script::new(at(0), scoped(), &commons);
    script.cancel();
    assert!(script.generation.has_ended());
    let later = Script::start_at(at(60), scoped(), &commons);
    assert_eq!(later.told()[0], "accepted left=11 deadline=600s");
}

#[test]
fn too_many_scopes_refuse_a_new_one_before_it_begins() {
    let commons = commons();
    for n in 0..10_000 {
        let mut params = scoped();
        params.scope = Some(("tcp".into(), n.to_string()));
        assert!(Generation::new(at(0), params, &*commons).is_ok());
    }
    assert!(Generation::new(at(0), scoped(), &*commons).is_err());
}

#[test]
fn whoever_attaches_late_is_told_the_allowance_of_the_scope_that_was_joined() {
    let commons = commons();
    let mut first = Script::start_at(at(0), scoped(), &commons);
    fail_times(&mut first, 1);
    first.answer("Hi");
    first.pass(s(61));
    let _another = Script::start_at(at(65), scoped(), &commons);
    first.attach(Delivery::Preview);
    first.read();
    let told = first.told();
    let attached = told
        .iter()
        .rposition(|told| told.starts_with("accepted"))
        .unwrap();
    assert!(told[attached].starts_with("accepted left=9 "));
    assert_eq!(told[attached + 1], "attempt 2 a/m restart left=9");
}
