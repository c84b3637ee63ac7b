//! Those who wait know what for.

use redrive::limits::*;

use crate::support::*;

fn window(limit: u64, window: Micros) -> Obstacle {
    Obstacle::Limit(Limit::Window(WindowLimit {
        measure: Measure::Requests,
        limit,
        window,
    }))
}

#[test]
fn those_behind_are_told_a_later_time_than_those_before() {
    let mut desk = desk([requests(2, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    sent(&mut desk, 100, plain(&[0]), input(0));
    let expected = [
        SECOND,
        SECOND + 100,
        2 * SECOND,
        2 * SECOND + 100,
        3 * SECOND,
    ];
    for at in expected {
        let (_, outlook) = outlook(&mut desk, 200, plain(&[0]), input(0));
        assert_eq!(outlook.budget, 0);
        assert_eq!(outlook.obstacle, window(2, SECOND));
        assert_eq!(outlook.expected, Some(at));
    }
}

#[test]
fn another_flows_flood_is_not_ahead_of_one_who_comes_first_by_share() {
    let mut desk = desk([requests(1, SECOND)]);
    sent(&mut desk, 0, of("flood", 1, &[0]), input(0));
    for _ in 0..100 {
        waits(&mut desk, 0, of("flood", 1, &[0]), input(0));
    }
    let (_, single) = outlook(&mut desk, 0, of("single", 1, &[0]), input(0));
    assert!(single.expected.unwrap() <= 2 * SECOND, "{single:?}");
}

#[test]
fn a_wait_that_depends_on_others_has_no_time() {
    let mut desk = desk([concurrent(1)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    let (_, outlook) = outlook(&mut desk, 0, plain(&[0]), input(0));
    assert_eq!(outlook.expected, None);
    assert_eq!(outlook.obstacle, Obstacle::Limit(Limit::Concurrent(1)));
}

#[test]
fn everybody_hears_at_once_of_a_rest_and_only_once() {
    let mut desk = desk([requests(1, SECOND)]);
    let lease = sent(&mut desk, 0, plain(&[0]), input(0));
    let tickets: Vec<_> = (0..200)
        .map(|_| waits(&mut desk, 0, plain(&[0]), input(0)))
        .collect();
    desk.penalise(10, &[0], 600 * SECOND);
    desk.settle(10, lease, Weights::default());
    let mut heard = Vec::new();
    for _ in 0..20 {
        if desk.next_look().is_some_and(|at| at <= 10) {
            desk.look(10);
        }
        // A little longer is not news.
        desk.penalise(10, &[0], 600 * SECOND + 10);
        heard.extend(told(&mut desk));
    }
    let who: Vec<_> = heard.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(who, tickets);
    for (_, outlook) in heard {
        assert!(outlook.obstacle.is_rest());
        assert!(outlook.expected.unwrap() >= 600 * SECOND);
    }
}

#[test]
fn a_lease_that_is_not_sent_yet_makes_no_time_unknown_that_was_told() {
    let mut desk = desk([requests(1, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    waits(&mut desk, 0, plain(&[0]), input(0));
    let next = waits(&mut desk, 0, plain(&[0]), input(0));
    desk.look(SECOND);
    assert!(matches!(desk.poll_event(), Some(Event::Granted { .. })));
    assert_eq!(told(&mut desk), []);
    // It was told two seconds, which still is the soonest.
    desk.look(2 * SECOND - 1);
    assert_eq!(told(&mut desk), []);
    desk.look(desk.next_look().unwrap());
    let [(who, outlook)] = told(&mut desk)[..] else {
        panic!("the time has passed")
    };
    assert_eq!((who, outlook.expected), (next, None));
}

#[test]
fn who_comes_next_hears_of_the_next_window_once_that_is_known() {
    let mut desk = desk([requests(1, 60 * SECOND)]);
    sent(&mut desk, 0, of("a", 1, &[0]), input(0));
    waits(&mut desk, 0, of("a", 1, &[0]), input(0));
    let (next, outlook) = outlook(&mut desk, 0, of("b", 1, &[0]), input(0));
    assert_eq!(outlook.expected, Some(60 * SECOND));
    desk.look(60 * SECOND);
    let Some(Event::Granted { lease, .. }) = desk.poll_event() else {
        panic!("the window is open")
    };
    assert_eq!(told(&mut desk), [], "not that nothing is known");
    assert!(desk.sent(60 * SECOND + 10, lease));
    let at = desk.next_look().unwrap();
    assert!(at <= 61 * SECOND);
    desk.look(at);
    let [(who, outlook)] = told(&mut desk)[..] else {
        panic!("the time has passed")
    };
    assert_eq!(who, next);
    assert_eq!(outlook.expected, Some(120 * SECOND + 10));
}

#[test]
fn one_look_tells_a_bounded_number() {
    let mut desk = desk([requests(1, SECOND)]);
    sent(&mut desk, 0, plain(&[0]), input(0));
    for _ in 0..(TOLD_A_LOOK + 10) {
        waits(&mut desk, 0, plain(&[0]), input(0));
    }
    desk.brake(&[0], 600 * SECOND);
    told(&mut desk);
    desk.look(2);
    assert!(told(&mut desk).len() <= TOLD_A_LOOK);
    assert!(desk.next_look().unwrap() <= 2);
}

#[test]
fn who_has_waited_longer_than_expected_is_told_anew_and_not_for_every_grant() {
    let mut desk = desk([requests(1, SECOND)]);
    sent(&mut desk, 0, of("a", 1, &[0]), input(0));
    let last = (0..3)
        .map(|_| waits(&mut desk, 0, of("a", 1, &[0]), input(0)))
        .last();
    // Expected at 3 s; but from now on others come first, one for each of its own.
    let mut count = 0;
    for _ in 0..10 {
        waits(&mut desk, 1, of("b", 1, &[0]), input(0));
    }
    let mut now = 0;
    while let Some(at) = desk.next_look() {
        now = at.max(now + 1);
        desk.look(now);
        while let Some(event) = desk.poll_event() {
            match event {
                Event::Granted { lease, .. } => assert!(desk.sent(now, lease)),
                Event::Told { ticket, outlook } if Some(ticket) == last => {
                    assert!(outlook.expected.is_none_or(|at| at > now));
                    count += 1;
                }
                Event::Told { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    assert!((1..=3).contains(&count), "{count}");
    assert!(desk.is_idle());
}

#[test]
fn who_was_told_hears_nothing_for_a_second_but_of_a_rest() {
    let mut desk = desk([concurrent(1), concurrent(1), concurrent(1)]);
    let third = sent(&mut desk, 0, plain(&[2]), input(0));
    waits(&mut desk, 0, plain(&[2]), input(0));
    let first = sent(&mut desk, 0, plain(&[0]), input(0));
    sent(&mut desk, 0, plain(&[1]), input(0));
    let (ticket, outlook) = outlook(&mut desk, 0, plain(&[0, 1]), input(0));
    assert_eq!(outlook.budget, 0);
    desk.settle(SECOND - 1, first, Weights::default());
    assert_eq!(told(&mut desk), []);
    desk.settle(SECOND, third, Weights::default());
    let told = told(&mut desk);
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].0, told[0].1.budget), (ticket, 1));
}
