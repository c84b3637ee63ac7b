//! Nobody overtakes, nobody starves, nobody is held up by what they do not need.

use redrive::limits::*;

use crate::support::*;

#[test]
fn nobody_overtakes_one_who_waits_for_the_same_budget() {
    let mut desk = desk([budget(&[(Measure::InputTokens, 100, SECOND)])]);
    sent(&mut desk, 0, plain(&[0]), input(60));
    let large = waits(&mut desk, 0, plain(&[0]), input(80));
    // It would fit, but it is not first.
    let small = waits(&mut desk, 0, plain(&[0]), input(10));
    let tenant = waits(&mut desk, 0, of("another", 1, &[0]), input(10));
    let order = run(&mut desk, 0, 1);
    // After the large one it is the other tenant's turn.
    assert_eq!(order, [(SECOND, large), (SECOND, tenant), (SECOND, small)]);
}

#[test]
fn what_opens_for_little_is_kept_for_the_first_who_asks_for_much() {
    let tokens = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let mut desk = desk([tokens, concurrent(9)]);
    sent(&mut desk, 0, plain(&[0]), input(60));
    sent(&mut desk, 100, plain(&[0]), input(30));
    let large = waits(&mut desk, 200, of("large", 1, &[0]), input(80));
    let small = waits(&mut desk, 200, of("small", 1, &[0, 1]), input(10));
    desk.look(SECOND);
    assert_eq!(grants(&mut desk), []);
    desk.look(SECOND + 100);
    let who: Vec<_> = grants(&mut desk).iter().map(|(who, _)| *who).collect();
    assert_eq!(who, [large, small]);
}

#[test]
fn nobody_overtakes_inside_a_round() {
    let tokens = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let mut desk = desk([tokens, concurrent(1)]);
    let other = sent(&mut desk, 0, plain(&[1]), input(0));
    sent(&mut desk, 0, plain(&[0]), input(60));
    let large = waits(&mut desk, 0, of("large", 1, &[0]), input(80));
    let small = waits(&mut desk, 0, of("small", 1, &[0, 1]), input(10));
    // A round: the small one would fit now, but the large one comes first.
    desk.settle(1, other, Weights::default());
    assert_eq!(grants(&mut desk), []);
    desk.look(SECOND);
    let who: Vec<_> = grants(&mut desk).iter().map(|(who, _)| *who).collect();
    assert_eq!(who, [large, small]);
}

#[test]
fn nobody_overtakes_its_own_flow_where_that_has_come_first_meanwhile() {
    let tokens = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let mut desk = desk([
        requests(1_000, SECOND),
        tokens,
        concurrent(9),
        concurrent(9),
    ]);
    sent(&mut desk, 0, plain(&[1]), input(60));
    waits(&mut desk, 0, of("a", 1, &[0, 1]), input(80));
    waits(&mut desk, 0, of("b", 1, &[0, 1, 2]), input(10));
    // `a` gets something elsewhere: now it is the turn of `b`, but of its first.
    granted(&mut desk, 0, of("a", 1, &[0, 3]), input(0));
    waits(&mut desk, 0, of("b", 1, &[0, 1, 2]), input(10));
}

#[test]
fn a_newcomer_finds_granted_who_may_go_by_now_also_before_the_look() {
    let mut desk = desk([requests(2, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    sent(&mut desk, 0, plain(&[0]), input(0));
    let first = waits(&mut desk, 0, plain(&[0]), input(0));
    granted(&mut desk, SECOND, plain(&[0]), input(0));
    assert_eq!(grants(&mut desk)[0].0, first);
    assert!(desk.is_idle());
}

#[test]
fn what_asks_for_much_is_not_starved_by_a_stream_of_little() {
    let mut desk = desk([budget(&[(Measure::InputTokens, 100, SECOND)])]);
    for n in 0..10 {
        sent(&mut desk, n * SECOND / 10, plain(&[0]), input(10));
    }
    let large = waits(&mut desk, SECOND - 1, of("large", 1, &[0]), input(100));
    let mut now = SECOND;
    let mut granted = None;
    while granted.is_none() && now < 10 * SECOND {
        desk.look(now);
        // A small one comes for each that leaves the window.
        desk.ask(now, &[of("small", 1, &[0])], input(10), WITHIN);
        for (ticket, lease) in grants(&mut desk) {
            assert!(desk.sent(now, lease));
            if ticket == large {
                granted = Some(now);
            }
        }
        now += SECOND / 10;
    }
    assert!(granted.unwrap() <= 3 * SECOND, "{granted:?}");
}

#[test]
fn a_full_budget_holds_up_only_those_who_need_it() {
    let mut desk = desk([concurrent(10), concurrent(1), concurrent(1)]);
    sent(&mut desk, 0, of("a", 1, &[0, 1]), input(0));
    waits(&mut desk, 0, of("a", 1, &[0, 1]), input(0));
    granted(&mut desk, 0, of("b", 1, &[0, 2]), input(0));
    waits(&mut desk, 0, of("b", 1, &[0, 2]), input(0));
    granted(&mut desk, 0, of("c", 1, &[0]), input(0));
}

#[test]
fn a_newcomer_that_is_first_by_its_share_goes_at_once() {
    let mut desk = desk([budget(&[(Measure::InputTokens, 100, SECOND)])]);
    sent(&mut desk, 0, of("a", 1, &[0]), input(60));
    let first = waits(&mut desk, 0, of("a", 1, &[0]), input(50));
    let second = waits(&mut desk, 0, of("a", 1, &[0]), input(60));
    desk.look(SECOND);
    assert_eq!(grants(&mut desk)[0].0, first);
    // 50 are left, too little for the second of `a`, which has had its turn.
    sent(&mut desk, SECOND, of("b", 1, &[0]), input(10));
    waits(&mut desk, SECOND, of("a", 1, &[0]), input(10));
    desk.withdraw(SECOND, second);
    assert_eq!(desk.waiting(), 0, "what stood behind it goes");
}

#[test]
fn the_probe_goes_alone_and_its_end_lets_all_go() {
    let mut desk = desk([requests(100, SECOND)]);
    let refused = sent(&mut desk, 0, plain(&[0]), input(0));
    desk.penalise(0, &[0], 10 * SECOND);
    desk.settle(0, refused, Weights::default());
    let tickets: Vec<_> = (0..5)
        .map(|_| waits(&mut desk, 1, plain(&[0]), input(0)))
        .collect();
    assert_eq!(desk.next_look(), Some(10 * SECOND));
    desk.look(10 * SECOND);
    let probe = grants(&mut desk);
    assert_eq!(probe.len(), 1);
    assert_eq!(probe[0].0, tickets[0]);
    assert!(desk.sent(10 * SECOND, probe[0].1));
    waits(&mut desk, 10 * SECOND, plain(&[0]), input(0));
    desk.settle(11 * SECOND, probe[0].1, Weights::default());
    assert_eq!(grants(&mut desk).len(), 5);
}

#[test]
fn a_probe_that_goes_back_unsent_makes_the_next_one_the_probe() {
    let mut desk = desk([requests(100, SECOND)]);
    desk.penalise(0, &[0], SECOND);
    let second = (0..2)
        .map(|_| waits(&mut desk, 1, plain(&[0]), input(0)))
        .last();
    desk.look(SECOND);
    let probe = grants(&mut desk);
    desk.release(SECOND, probe[0].1);
    let next = grants(&mut desk);
    assert_eq!(next.len(), 1);
    assert_eq!(Some(next[0].0), second);
}

#[test]
fn one_round_is_bounded_and_the_rest_follows_before_any_newcomer() {
    let mut desk = desk([requests(10_000, SECOND)]);
    desk.brake(&[0], SECOND);
    for _ in 0..(GRANTS_A_LOOK + 10) {
        waits(&mut desk, 1, plain(&[0]), input(0));
    }
    desk.look(SECOND);
    assert_eq!(grants(&mut desk).len(), GRANTS_A_LOOK);
    assert_eq!(desk.next_look(), Some(SECOND));
    desk.look(SECOND);
    assert_eq!(grants(&mut desk).len(), 10);
    assert!(desk.is_idle());
}

#[test]
fn a_newcomer_does_not_overtake_those_whom_a_bounded_round_left() {
    let mut desk = desk([requests(10_000, SECOND)]);
    desk.brake(&[0], SECOND);
    for _ in 0..(2 * GRANTS_A_LOOK + 1) {
        waits(&mut desk, 1, of("flood", 1, &[0]), input(0));
    }
    desk.look(SECOND);
    waits(&mut desk, SECOND, of("other", 1, &[0]), input(0));
}

#[test]
fn a_newcomer_is_first_where_the_flow_before_it_was_served_elsewhere() {
    let tokens = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let mut desk = desk([requests(1_000, SECOND), tokens, concurrent(9)]);
    sent(&mut desk, 0, plain(&[1]), input(60));
    waits(&mut desk, 0, of("a", 1, &[0, 1]), input(80));
    granted(&mut desk, 0, of("a", 1, &[0, 2]), input(0));
    granted(&mut desk, 0, of("b", 1, &[0, 1]), input(10));
}

#[test]
fn a_newcomer_of_an_unknown_flow_comes_behind_who_stands_at_the_clock() {
    let tokens = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let budgets = [
        requests(1_000, SECOND),
        tokens,
        concurrent(9),
        concurrent(1),
    ];
    let mut desk = desk(budgets);
    sent(&mut desk, 0, plain(&[1]), input(60));
    sent(&mut desk, 0, plain(&[3]), input(0));
    waits(&mut desk, 0, of("other", 1, &[0, 3]), input(0));
    for _ in 0..2 {
        granted(&mut desk, 0, of("busy", 1, &[0, 2]), input(0));
    }
    waits(&mut desk, 0, of("a", 1, &[0, 1]), input(80));
    waits(&mut desk, 0, of("unknown", 1, &[0, 1]), input(10));
}

#[test]
fn a_send_that_stayed_and_is_over_lets_the_next_go() {
    let one = Settings {
        concurrent: Some(1),
        ..requests(9, 10)
    };
    let mut desk = desk([one]);
    let lease = sent(&mut desk, 0, plain(&[0]), input(0));
    let next = waits(&mut desk, 0, plain(&[0]), input(0));
    // It has left the window: another may have gone in its place.
    desk.stayed(SECOND, lease);
    let granted = grants(&mut desk);
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0].0, next);
}

#[test]
fn who_was_the_last_to_withdraw_leaves_no_time_behind() {
    let mut desk = desk([requests(1, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    let ticket = waits(&mut desk, 0, plain(&[0]), input(0));
    desk.brake(&[0], 5 * SECOND);
    desk.withdraw(1, ticket);
    let ticket = waits(&mut desk, 1, plain(&[0]), input(0));
    assert_eq!(desk.next_look(), Some(5 * SECOND), "nobody is told anew");
    desk.withdraw(2, ticket);
    granted(&mut desk, 5 * SECOND, plain(&[0]), input(0));
}
