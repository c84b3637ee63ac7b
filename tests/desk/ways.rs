//! Several ways, one place each; refusals; and withdrawing.

use redrive::limits::*;

use crate::support::*;

#[test]
fn the_first_way_that_goes_is_taken() {
    let mut desk = desk([concurrent(1), concurrent(1)]);
    let ways = [plain(&[0]), plain(&[1])];
    for way in 0..2 {
        let asked = desk.ask(0, &ways, input(0), WITHIN);
        assert!(matches!(asked, Asked::Granted { way: taken, .. } if taken == way));
    }
}

#[test]
fn who_waits_goes_by_whichever_way_opens_first_and_leaves_the_other() {
    let mut desk = desk([concurrent(1), concurrent(1)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    let other = sent(&mut desk, 0, plain(&[1]), input(0));
    let asked = desk.ask(0, &[plain(&[0]), plain(&[1])], input(0), WITHIN);
    assert!(matches!(asked, Asked::Waits { .. }));
    assert_eq!((desk.waiting_for(0), desk.waiting_for(1)), (1, 1));
    desk.settle(1, other, Weights::default());
    let event = desk.poll_event();
    assert!(
        matches!(event, Some(Event::Granted { way: 1, .. })),
        "{event:?}"
    );
    assert!(desk.is_idle());
}

#[test]
fn who_goes_by_one_way_holds_nothing_on_another_any_more() {
    let mut desk = desk([
        budget(&[(Measure::InputTokens, 100, SECOND)]),
        concurrent(1),
    ]);
    sent(&mut desk, 0, plain(&[0]), input(60));
    let other = sent(&mut desk, 0, plain(&[1]), input(0));
    let asked = desk.ask(0, &[plain(&[0]), plain(&[1])], input(80), WITHIN);
    assert!(matches!(asked, Asked::Waits { .. }));
    waits(&mut desk, 0, plain(&[0]), input(10));
    desk.settle(1, other, Weights::default());
    assert_eq!(grants(&mut desk).len(), 2);
    assert!(desk.is_idle());
}

#[test]
fn a_budget_of_two_ways_counts_its_waiter_once() {
    let mut desk = desk([concurrent(1), requests(1, SECOND), requests(1, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    let asked = desk.ask(0, &[plain(&[0, 1]), plain(&[0, 2])], input(0), WITHIN);
    let Asked::Waits { ticket, .. } = asked else {
        panic!("{asked:?}");
    };
    assert_eq!(desk.waiting_for(0), 1);
    desk.withdraw(0, ticket);
    assert!(desk.is_idle());
}

#[test]
fn what_never_fits_is_refused_by_name_unless_another_way_fits() {
    let small = budget(&[(Measure::InputTokens, 10, SECOND)]);
    let large = budget(&[(Measure::InputTokens, 100, SECOND)]);
    let mut desk = desk([small.clone(), large]);
    let limit = Limit::Window(small.windows[0]);
    assert_eq!(
        desk.ask(0, &[plain(&[0])], input(11), WITHIN),
        Asked::Refused(Refused::Never { budget: 0, limit })
    );
    let asked = desk.ask(0, &[plain(&[0]), plain(&[1])], input(11), WITHIN);
    assert!(matches!(asked, Asked::Granted { way: 1, .. }), "{asked:?}");
    assert_eq!(desk.counts(0).refused, 1);
}

#[test]
fn a_full_queue_refuses_and_says_when_to_come_back() {
    let mut desk = Desk::new([(requests(1, SECOND), 2)], ());
    sent(&mut desk, 0, plain(&[0]), input(0));
    let first = waits(&mut desk, 0, plain(&[0]), input(0));
    waits(&mut desk, 0, plain(&[0]), input(0));
    let asked = desk.ask(0, &[plain(&[0])], input(0), WITHIN);
    let Asked::Refused(Refused::QueueFull { budget, outlook }) = asked else {
        panic!("{asked:?}");
    };
    assert_eq!((budget, outlook.expected), (0, Some(SECOND)));
    desk.withdraw(0, first);
    waits(&mut desk, 0, plain(&[0]), input(0));
}

#[test]
fn a_withdrawn_holder_lets_those_behind_go_at_once() {
    let mut desk = desk([budget(&[(Measure::InputTokens, 100, SECOND)])]);
    sent(&mut desk, 0, plain(&[0]), input(60));
    let large = waits(&mut desk, 0, plain(&[0]), input(80));
    let small = waits(&mut desk, 0, plain(&[0]), input(10));
    desk.withdraw(1, large);
    let granted = grants(&mut desk);
    assert_eq!(granted.len(), 1);
    assert_eq!(granted[0].0, small);
    assert!(desk.is_idle());
}

#[test]
fn whoever_withdraws_leaves_nothing_behind() {
    let mut desk = desk([concurrent(1), concurrent(1)]);
    sent(&mut desk, 0, plain(&[0, 1]), input(0));
    let mut tickets = Vec::new();
    for n in 0..50 {
        let name = format!("{}", n % 7);
        let ways = [of(&name, 1, &[0]), of(&name, 2, &[1, 0])];
        match desk.ask(0, &ways, input(0), WITHIN) {
            Asked::Waits { ticket, .. } => tickets.push(ticket),
            other => panic!("{other:?}"),
        }
    }
    for ticket in tickets.iter().step_by(3).chain(&tickets) {
        desk.withdraw(1, *ticket);
    }
    assert!(desk.is_idle());
    assert_eq!(desk.next_look(), None);
}
