//! Weighted fair between flows, first come first served inside one.

use redrive::limits::*;

use crate::support::*;

/// Of the first `count` that `run` granted: how many are in `tickets`.
fn share(order: &[(Micros, Ticket)], count: usize, tickets: &[Ticket]) -> usize {
    let first = order.iter().take(count);
    first.filter(|(_, ticket)| tickets.contains(ticket)).count()
}

fn only(order: &[(Micros, Ticket)], tickets: &[Ticket]) -> Vec<Ticket> {
    let all = order.iter().map(|(_, ticket)| *ticket);
    all.filter(|ticket| tickets.contains(ticket)).collect()
}

#[test]
fn weights_three_and_one_share_a_saturated_window_three_to_one() {
    let mut desk = desk([requests(4, SECOND)]);
    for _ in 0..4 {
        sent(&mut desk, 0, of("other", 1, &[0]), input(0));
    }
    let mut gold = Vec::new();
    let mut iron = Vec::new();
    for _ in 0..400 {
        iron.push(waits(&mut desk, 0, of("iron", 1, &[0]), input(0)));
        gold.push(waits(&mut desk, 0, of("gold", 3, &[0]), input(0)));
    }
    let order = run(&mut desk, 0, 1);
    assert_eq!(order.len(), 800);
    assert_eq!(share(&order, 400, &gold), 300);
    for turn in order[..400].chunks(4) {
        assert_eq!(share(turn, 4, &gold), 3, "{turn:?}");
    }
    assert_eq!(only(&order, &gold), gold, "first come, first served");
    assert_eq!(only(&order, &iron), iron, "first come, first served");
    assert!(desk.is_idle());
}

#[test]
fn equal_weights_share_tokens_not_requests() {
    let mut desk = desk([budget(&[
        (Measure::Requests, 1_000, SECOND),
        (Measure::InputTokens, 100, SECOND),
    ])]);
    sent(&mut desk, 0, of("other", 1, &[0]), input(100));
    let mut large = Vec::new();
    let mut small = Vec::new();
    for _ in 0..100 {
        large.push(waits(&mut desk, 0, of("large", 1, &[0]), input(50)));
    }
    for _ in 0..500 {
        small.push(waits(&mut desk, 0, of("small", 1, &[0]), input(10)));
    }
    let order = run(&mut desk, 0, 2 * SECOND);
    // Five small ones to a large one, for as long as both wait.
    assert!(
        (99..=101).contains(&share(&order, 120, &small)),
        "{order:?}"
    );
}

#[test]
fn a_flood_of_one_flow_delays_another_by_one_service_not_by_the_flood() {
    let mut desk = desk([concurrent(1)]);
    sent(&mut desk, 0, of("flood", 1, &[0]), input(0));
    for _ in 0..1_000 {
        waits(&mut desk, 0, of("flood", 1, &[0]), input(0));
    }
    let single = waits(&mut desk, 0, of("single", 1, &[0]), input(0));
    desk.settle(SECOND, 0, Weights::default());
    let order = run(&mut desk, SECOND, SECOND);
    let place = order.iter().position(|(_, ticket)| *ticket == single);
    assert!(place.unwrap() <= 1, "{place:?}");
}

#[test]
fn a_flow_that_was_idle_saved_nothing_up() {
    let mut desk = desk([concurrent(1)]);
    sent(&mut desk, 0, of("busy", 1, &[0]), input(0));
    for _ in 0..100 {
        waits(&mut desk, 0, of("busy", 1, &[0]), input(0));
    }
    // The busy one is served alone for a while.
    let mut running = 0;
    for now in 1..=50 {
        desk.settle(now, running, Weights::default());
        running = grants(&mut desk)[0].1;
        assert!(desk.sent(now, running));
    }
    let mut late = Vec::new();
    for _ in 0..100 {
        late.push(waits(&mut desk, 50, of("late", 1, &[0]), input(0)));
    }
    desk.settle(51, running, Weights::default());
    let order = run(&mut desk, 51, 1);
    for turn in order[..80].chunks(2) {
        assert_eq!(share(turn, 2, &late), 1, "{turn:?}");
    }
}

#[test]
fn a_flow_that_was_idle_comes_behind_who_stands_at_the_clock() {
    let mut desk = desk([concurrent(1)]);
    let mut running = sent(&mut desk, 0, of("other", 1, &[0]), input(0));
    for flow in ["a", "b", "a"] {
        waits(&mut desk, 0, of(flow, 1, &[0]), input(0));
    }
    let second = waits(&mut desk, 0, of("b", 1, &[0]), input(0));
    for now in 1..=3 {
        desk.settle(now, running, Weights::default());
        running = grants(&mut desk)[0].1;
        assert!(desk.sent(now, running));
    }
    // The clock stands where the second of `b` does.
    let late = waits(&mut desk, 3, of("late", 1, &[0]), input(0));
    desk.settle(4, running, Weights::default());
    let order = run(&mut desk, 4, 1);
    assert_eq!(only(&order, &[second, late]), [second, late]);
}

#[test]
fn a_flow_that_asks_again_after_each_grant_has_no_more_than_its_share() {
    let mut desk = desk([concurrent(1)]);
    sent(&mut desk, 0, of("other", 1, &[0]), input(0));
    for _ in 0..200 {
        waits(&mut desk, 0, of("patient", 1, &[0]), input(0));
    }
    let mut eager = waits(&mut desk, 0, of("eager", 1, &[0]), input(0));
    let (mut running, mut served) = (0, 0);
    for now in 1..=100 {
        desk.settle(now, running, Weights::default());
        let (ticket, lease) = grants(&mut desk)[0];
        running = lease;
        assert!(desk.sent(now, running));
        if ticket == eager {
            served += 1;
            eager = waits(&mut desk, now, of("eager", 1, &[0]), input(0));
        }
    }
    assert!((49..=51).contains(&served), "{served}");
}

#[test]
fn a_flow_whose_own_budget_was_full_does_not_make_up_for_it() {
    let mut desk = desk([concurrent(1), concurrent(1)]);
    let own = sent(&mut desk, 0, plain(&[1]), input(0));
    let mut running = sent(&mut desk, 0, of("other", 1, &[0]), input(0));
    let mut capped = Vec::new();
    for _ in 0..50 {
        capped.push(waits(&mut desk, 0, of("capped", 1, &[0, 1]), input(0)));
        waits(&mut desk, 0, of("free", 1, &[0]), input(0));
        waits(&mut desk, 0, of("free", 1, &[0]), input(0));
    }
    for now in 1..=40 {
        desk.settle(now, running, Weights::default());
        running = grants(&mut desk)[0].1;
        assert!(desk.sent(now, running));
    }
    desk.settle(41, own, Weights::default());
    desk.settle(41, running, Weights::default());
    let order = run(&mut desk, 41, 1);
    for turn in order[2..62].chunks(2) {
        assert_eq!(share(turn, 2, &capped), 1, "{turn:?}");
    }
}

#[test]
fn without_a_flow_first_come_is_first_served_across_sets_of_budgets() {
    let mut desk = desk([concurrent(1), requests(1_000, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    let mut tickets = Vec::new();
    for n in 0..100 {
        let set: &[BudgetId] = if n % 3 == 0 { &[0, 1] } else { &[0] };
        tickets.push(waits(&mut desk, 0, plain(set), input(0)));
    }
    desk.settle(1, 0, Weights::default());
    let order = run(&mut desk, 1, 1);
    assert_eq!(only(&order, &tickets), tickets);
}

#[test]
fn between_domains_goes_first_who_came_first() {
    let mut desk = desk([
        requests(1_000, SECOND),
        requests(1_000, SECOND),
        concurrent(1),
    ]);
    sent(&mut desk, 0, plain(&[2]), input(0));
    let mut tickets = Vec::new();
    for n in 0..100 {
        let set: &[BudgetId] = if n % 2 == 0 { &[0, 2] } else { &[1, 2] };
        tickets.push(waits(&mut desk, 0, of("a", 1, set), input(0)));
    }
    desk.settle(1, 0, Weights::default());
    let order = run(&mut desk, 1, 1);
    assert_eq!(only(&order, &tickets), tickets);
}

#[test]
fn flows_that_nobody_waits_in_are_forgotten() {
    let mut desk = desk([concurrent(1)]);
    let mut running = sent(&mut desk, 0, of("x", 1, &[0]), input(0));
    let stays = waits(&mut desk, 0, of("late", 1, &[0]), input(0));
    for n in 0..(3 * REMEMBERED as u64) {
        let name = format!("tenant {n}");
        let ticket = waits(&mut desk, n, of(&name, 1_000_000, &[0]), input(0));
        desk.settle(n, running, Weights::default());
        let (granted, lease) = grants(&mut desk)[0];
        assert!(granted == ticket || granted == stays || n > 0);
        running = lease;
        assert!(desk.sent(n, running));
    }
    assert!(desk.flows() <= REMEMBERED + 2, "{}", desk.flows());
}
