//! Budgets that others take of, too: nothing is granted before their engine was asked, nobody overtakes while it
//! is, and what it says is held to.

use redrive::limits::*;

use crate::support::*;

const HUNDREDTH: Micros = SECOND / 100;

/// Which engine's answer is awaited, in order.
fn tries(desk: &mut Desk<()>) -> Vec<(Ticket, Vec<BudgetId>)> {
    let mut all = Vec::new();
    while let Some(event) = desk.poll_event() {
        if let Event::Try {
            ticket, budgets, ..
        } = event
        {
            all.push((ticket, budgets.to_vec()));
        }
    }
    all
}

fn shared(settings: Settings) -> Desk<()> {
    desk([settings]).with_engine(OnLoss::Closed, [(0, None)])
}

fn denied(until: Option<Micros>) -> Said {
    Said::Denied {
        budget: 0,
        obstacle: Obstacle::Limit(Limit::Concurrent(1)),
        until,
    }
}

/// Asks; the engine is being asked for it and nothing is told yet.
fn asks(desk: &mut Desk<()>, now: Micros) -> Ticket {
    let (ticket, outlook) = outlook(desk, now, plain(&[0]), input(0));
    assert_eq!(outlook.obstacle, Obstacle::EngineAsked);
    ticket
}

#[test]
fn nothing_is_granted_before_the_engine_said_so() {
    let mut desk = shared(requests(5, SECOND));
    let ticket = asks(&mut desk, 1);
    assert_eq!(tries(&mut desk), [(ticket, vec![0])]);
    assert!(desk.tried(2, ticket, Said::Granted));
    let [(granted, lease)] = grants(&mut desk)[..] else {
        panic!("granted")
    };
    assert_eq!(granted, ticket);
    assert!(desk.sent(3, lease));
    assert_eq!(desk.limits().account().granted, 1);
    assert_eq!(desk.counts(0).waited, 0);
}

#[test]
fn what_the_process_itself_has_sent_too_much_of_needs_no_question() {
    let mut desk = shared(requests(1, SECOND));
    let ticket = asks(&mut desk, 1);
    assert!(desk.tried(1, ticket, Said::Granted));
    let (_, lease) = grants(&mut desk)[0];
    desk.sent(1, lease);
    let (_, outlook) = outlook(&mut desk, 2, plain(&[0]), input(0));
    assert_eq!(outlook.expected, Some(SECOND + 1));
    assert!(tries(&mut desk).is_empty());
}

#[test]
fn one_is_asked_for_at_a_time_and_the_next_in_its_turn() {
    let mut desk = shared(requests(5, SECOND));
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    let third = asks(&mut desk, 1);
    assert_eq!(tries(&mut desk), [(first, vec![0])]);
    assert!(desk.tried(2, first, Said::Granted));
    assert_eq!(tries(&mut desk), [(second, vec![0])]);
    desk.withdraw(3, second);
    assert_eq!(tries(&mut desk), [(third, vec![0])]);
    assert!(!desk.tried(4, second, Said::Granted), "it has gone");
    assert!(desk.tried(4, third, Said::Granted));
    assert_eq!(desk.limits().account().granted, 2);
    assert!(desk.is_idle() || desk.poll_event().is_some());
}

#[test]
fn what_the_engine_denied_is_told_held_and_asked_again_when_its_time_has_come() {
    let mut desk = shared(requests(5, SECOND));
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    tries(&mut desk);
    let until = 1 + 3 * HUNDREDTH;
    assert!(!desk.tried(1, first, denied(Some(until))));
    // What was taken here is given back.
    assert_eq!(desk.limits().account(), Account::default());
    desk.look(1);
    let told = told(&mut desk);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|(_, outlook)| outlook.expected == Some(until))
    );
    assert_eq!(told[0].1.obstacle, Obstacle::Limit(Limit::Concurrent(1)));
    assert_eq!(desk.next_look(), Some(until));
    // Nobody overtakes meanwhile.
    let (third, _) = outlook(&mut desk, 2, plain(&[0]), input(0));
    assert!(tries(&mut desk).is_empty());
    desk.look(until);
    assert_eq!(tries(&mut desk), [(first, vec![0])]);
    assert!(desk.tried(until, first, Said::Granted));
    assert_eq!(tries(&mut desk), [(second, vec![0])]);
    assert!(desk.tried(until, second, Said::Granted));
    assert_eq!(tries(&mut desk), [(third, vec![0])]);
    assert_eq!(desk.counts(0).waited, 3);
}

#[test]
fn what_depends_on_others_is_asked_for_again_soon_and_what_is_far_off_every_second() {
    for (until, again) in [
        (None, SECOND / 10),
        (Some(3600 * SECOND), SECOND),
        (Some(1), SECOND / 1_000),
    ] {
        let mut desk = shared(requests(5, SECOND));
        let ticket = asks(&mut desk, 1);
        tries(&mut desk);
        desk.tried(1, ticket, denied(until));
        desk.look(1);
        told(&mut desk);
        let at = desk.next_look().unwrap();
        assert_eq!(at, 1 + again, "{until:?}");
        desk.look(at);
        assert_eq!(tries(&mut desk).len(), 1);
    }
}

#[test]
fn once_the_engine_speaks_of_the_budget_again_all_hear_what_they_wait_for() {
    let learns = Said::Denied {
        budget: 0,
        obstacle: Obstacle::EngineLearns,
        until: Some(SECOND),
    };
    for (full, said) in [
        (5, denied(Some(60 * SECOND))),
        // What follows from its own sends needs no further word.
        (1, Said::Granted),
    ] {
        for lost in [false, true] {
            let mut desk = shared(requests(full, 60 * SECOND));
            let ask = |_| outlook(&mut desk, 1, plain(&[0]), input(0)).0;
            let all: Vec<Ticket> = (0..3).map(ask).collect();
            tries(&mut desk);
            if lost {
                desk.engine_lost(1);
            }
            desk.tried(1, all[0], if lost { Said::Lost } else { learns });
            desk.look(1);
            let hear = told(&mut desk);
            assert!(
                hear.len() == 3 && hear.iter().all(|(_, outlook)| outlook.obstacle.is_engine())
            );
            if lost {
                desk.engine_up(SECOND);
            } else {
                desk.look(SECOND);
            }
            assert_eq!(tries(&mut desk), [(all[0], vec![0])]);
            desk.tried(SECOND, all[0], said);
            desk.look(SECOND);
            let hear = told(&mut desk);
            let waits = all.len() - usize::from(said == Said::Granted);
            let limits = hear
                .iter()
                .filter(|(_, o)| matches!(o.obstacle, Obstacle::Limit(_)));
            assert_eq!(limits.count(), waits, "{said:?} after {lost}: {hear:?}");
        }
    }
}

#[test]
fn who_was_told_of_the_engine_hears_of_the_budget_although_others_are_asked_for_meanwhile() {
    let mut desk = shared(requests(4, 60 * SECOND));
    let ask = |_| outlook(&mut desk, 1, plain(&[0]), input(0)).0;
    let all: Vec<Ticket> = (0..12).map(ask).collect();
    tries(&mut desk);
    let learns = Said::Denied {
        budget: 0,
        obstacle: Obstacle::EngineLearns,
        until: Some(SECOND),
    };
    desk.tried(1, all[0], learns);
    desk.look(1);
    let last = |hear: Vec<(Ticket, Outlook)>| {
        let of_last = hear.into_iter().rev().find(|(who, _)| *who == all[11]);
        of_last.map(|(_, outlook)| outlook)
    };
    // With all those before it, it waits for much longer than the engine learns.
    let outlook = last(told(&mut desk)).unwrap();
    assert!(outlook.obstacle.is_engine() && outlook.expected > Some(100 * SECOND));
    desk.look(SECOND);
    assert_eq!(tries(&mut desk), [(all[0], vec![0])]);
    // The next is asked for just as the others are to hear.
    desk.tried(SECOND, all[0], Said::Granted);
    assert_eq!(tries(&mut desk), [(all[1], vec![0])]);
    desk.look(SECOND);
    desk.tried(SECOND, all[1], denied(Some(60 * SECOND)));
    // And whenever they are looked at again, if it answers a little later.
    let mut heard = None;
    for now in (SECOND..4 * SECOND).step_by(HUNDREDTH as usize) {
        desk.look(now);
        while let Some(event) = desk.poll_event() {
            match event {
                Event::Try { ticket, .. } => {
                    desk.tried(now + 1, ticket, denied(Some(60 * SECOND)));
                }
                Event::Told { ticket, outlook } if ticket == all[11] => heard = Some(outlook),
                _ => {}
            }
        }
    }
    assert!(heard.is_some_and(|outlook| !outlook.obstacle.is_engine()));
}

#[test]
fn what_is_known_to_have_come_back_is_asked_for_at_once() {
    let mut desk = shared(requests(5, SECOND));
    let ticket = asks(&mut desk, 1);
    tries(&mut desk);
    desk.tried(1, ticket, denied(Some(SECOND)));
    desk.freed(2, &[1]);
    assert!(tries(&mut desk).is_empty());
    desk.freed(2, &[0]);
    assert_eq!(tries(&mut desk), [(ticket, vec![0])]);
}

#[test]
fn a_budget_that_is_not_shared_is_never_held_up_by_an_engine() {
    let budgets = [requests(5, SECOND), requests(5, SECOND)];
    let mut desk = desk(budgets).with_engine(OnLoss::Closed, [(0, None)]);
    asks(&mut desk, 1);
    granted(&mut desk, 1, plain(&[1]), input(0));
    desk.engine_lost(2);
    granted(&mut desk, 2, plain(&[1]), input(0));
}

#[test]
fn while_the_engine_is_lost_nothing_is_granted_and_all_are_told() {
    let mut desk = shared(requests(5, SECOND));
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    tries(&mut desk);
    desk.engine_lost(2);
    assert!(!desk.tried(2, first, Said::Lost));
    desk.look(2);
    let told = told(&mut desk);
    assert_eq!(told.len(), 2, "{told:?}");
    for (_, outlook) in told {
        assert_eq!(outlook.obstacle, Obstacle::EngineLost);
        assert_eq!(outlook.expected, None);
    }
    let (third, outlook) = outlook(&mut desk, 3, plain(&[0]), input(0));
    assert_eq!(outlook.obstacle, Obstacle::EngineLost);
    desk.look(60 * SECOND);
    assert!(tries(&mut desk).is_empty());
    desk.engine_up(60 * SECOND);
    for ticket in [first, second, third] {
        assert_eq!(tries(&mut desk), [(ticket, vec![0])]);
        desk.tried(60 * SECOND, ticket, Said::Granted);
    }
}

#[test]
fn an_answer_that_did_not_come_is_asked_for_again() {
    let mut desk = shared(requests(5, SECOND));
    let ticket = asks(&mut desk, 1);
    tries(&mut desk);
    desk.tried(1, ticket, Said::Lost);
    desk.look(1);
    assert_eq!(told(&mut desk)[0].1.obstacle, Obstacle::EngineLost);
    let at = desk.next_look().unwrap();
    desk.look(at);
    assert_eq!(tries(&mut desk), [(ticket, vec![0])]);
}

#[test]
fn open_grants_what_the_process_alone_may_send() {
    let mut desk = desk([requests(2, SECOND)]).with_engine(OnLoss::Open, [(0, None)]);
    desk.engine_lost(1);
    for _ in 0..2 {
        sent(&mut desk, 1, plain(&[0]), input(0));
    }
    waits(&mut desk, 1, plain(&[0]), input(0));
}

#[test]
fn a_local_share_grants_what_the_engine_never_hands_out() {
    let whole = requests(100, SECOND);
    let own = whole.with_limits(|limit| limit / 25);
    let mut desk = desk([whole]).with_engine(OnLoss::LocalShare, [(0, Some(own))]);
    // While the engine answers, it is asked.
    let ticket = asks(&mut desk, 1);
    desk.tried(1, ticket, Said::Granted);
    let (_, lease) = grants(&mut desk)[0];
    desk.sent(1, lease);
    let now = 2 * SECOND;
    desk.engine_lost(now);
    for _ in 0..4 {
        sent(&mut desk, now, plain(&[0]), input(0));
    }
    let (_, outlook) = outlook(&mut desk, now, plain(&[0]), input(0));
    assert_eq!(outlook.expected, Some(now + SECOND));
    // The window of the share goes on when the engine comes and goes.
    desk.engine_lost(now + 2);
    waits(&mut desk, now + 2, plain(&[0]), input(0));
}

#[test]
fn a_share_of_a_day_is_not_used_on_the_day_on_which_the_process_began() {
    let whole = Settings {
        daily: vec![DailyLimit {
            measure: Measure::Requests,
            limit: 100,
        }],
        ..budget(&[])
    };
    let own = whole.with_limits(|limit| limit / 25);
    let mut desk = desk([whole]).with_engine(OnLoss::LocalShare, [(0, Some(own))]);
    let day = |number: i64| Day {
        number,
        ends: number as u64 * 60 * SECOND,
    };
    desk.turn(0, day(1));
    desk.engine_lost(1);
    let (ticket, outlook) = outlook(&mut desk, 1, plain(&[0]), input(0));
    assert_eq!(outlook.obstacle, Obstacle::EngineLearns);
    assert_eq!(outlook.expected, Some(60 * SECOND));
    desk.turn(0, day(2));
    desk.look(60 * SECOND);
    assert_eq!(grants(&mut desk)[0].0, ticket);
}

#[test]
fn a_share_is_not_used_before_a_window_is_over_since_the_process_began() {
    let whole = Settings {
        margin: 10,
        ..requests(100, SECOND)
    };
    let own = whole.with_limits(|limit| limit / 25);
    let mut desk = desk([whole]).with_engine(OnLoss::LocalShare, [(0, Some(own))]);
    desk.engine_lost(1);
    let (ticket, outlook) = outlook(&mut desk, 1, plain(&[0]), input(0));
    assert_eq!(outlook.obstacle, Obstacle::EngineLearns);
    assert_eq!(outlook.expected, Some(SECOND + 10));
    desk.look(SECOND + 9);
    assert!(grants(&mut desk).is_empty());
    desk.look(SECOND + 10);
    assert_eq!(grants(&mut desk)[0].0, ticket);
}

#[test]
fn a_share_of_nothing_is_closed() {
    let own = concurrent(3).with_limits(|limit| limit / 4);
    let mut desk = desk([concurrent(3)]).with_engine(OnLoss::LocalShare, [(0, Some(own))]);
    desk.engine_lost(1);
    let (_, outlook) = outlook(&mut desk, 1, plain(&[0]), input(0));
    assert_eq!(outlook.obstacle, Obstacle::EngineLost);
}

#[test]
fn who_is_denied_where_nobody_may_wait_is_refused() {
    let mut desk = Desk::new([(requests(5, SECOND), 0)], ());
    desk = desk.with_engine(OnLoss::Closed, [(0, None)]);
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    tries(&mut desk);
    desk.tried(1, first, denied(None));
    let mut refused = Vec::new();
    while let Some(event) = desk.poll_event() {
        if let Event::Refused { ticket, why } = event {
            assert!(matches!(why, Refused::QueueFull { budget: 0, .. }));
            refused.push(ticket);
        }
    }
    assert_eq!(refused, [second, first]);
    assert!(desk.is_idle());
}

#[test]
fn what_the_engine_says_never_fits_is_refused() {
    let mut desk = shared(requests(5, SECOND));
    let ticket = asks(&mut desk, 1);
    tries(&mut desk);
    let limit = Limit::Concurrent(0);
    desk.tried(1, ticket, Said::Never { budget: 0, limit });
    let why = Refused::Never { budget: 0, limit };
    assert_eq!(desk.poll_event(), Some(Event::Refused { ticket, why }));
    assert!(desk.is_idle());
}

#[test]
fn who_is_asked_for_after_many_others_learns_that_it_waits() {
    let mut desk = shared(requests(5, SECOND));
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    tries(&mut desk);
    desk.look(1 + SECOND);
    let told = told(&mut desk);
    assert!(
        told.iter()
            .any(|(ticket, outlook)| { (*ticket, outlook.obstacle) == (second, Obstacle::Turn) })
    );
    desk.tried(2 + SECOND, first, Said::Granted);
}

#[test]
fn who_waits_for_a_budget_hears_that_its_engine_is_lost() {
    let mut desk = shared(requests(5, SECOND));
    let first = asks(&mut desk, 1);
    let second = asks(&mut desk, 1);
    tries(&mut desk);
    desk.tried(1, first, denied(Some(60 * SECOND)));
    desk.look(1);
    told(&mut desk);
    desk.engine_lost(2);
    desk.look(2);
    let told = told(&mut desk);
    let lost = |(ticket, outlook): &(Ticket, Outlook)| {
        assert_eq!(outlook.obstacle, Obstacle::EngineLost);
        *ticket
    };
    let mut all: Vec<_> = told.iter().map(lost).collect();
    all.sort_unstable();
    assert_eq!(all, [first, second]);
}

#[test]
fn who_was_told_that_the_engine_is_lost_hears_soon_that_it_learns() {
    let mut desk = shared(requests(9, 60 * SECOND));
    let ask = |_| outlook(&mut desk, 1, plain(&[0]), input(0)).0;
    let all: Vec<Ticket> = (0..3).map(ask).collect();
    tries(&mut desk);
    desk.engine_lost(1);
    desk.tried(1, all[0], Said::Lost);
    desk.look(1);
    assert_eq!(told(&mut desk).len(), 3);
    desk.engine_up(SECOND);
    desk.look(SECOND);
    let until = Some(61 * SECOND);
    let learns = Said::Denied {
        budget: 0,
        obstacle: Obstacle::EngineLearns,
        until,
    };
    desk.tried(SECOND + HUNDREDTH, all[0], learns);
    let mut hear = told(&mut desk);
    while let Some(look) = desk.next_look()
        && look <= 2 * SECOND
    {
        desk.look(look);
        while let Some(event) = desk.poll_event() {
            match event {
                Event::Told { ticket, outlook } => hear.push((ticket, outlook)),
                Event::Try { ticket, .. } => assert!(!desk.tried(look, ticket, learns)),
                other => panic!("{other:?}"),
            }
        }
    }
    let mut who: Vec<_> = hear
        .iter()
        .filter(|(_, outlook)| outlook.expected == until)
        .map(|(ticket, _)| *ticket)
        .collect();
    who.sort_unstable();
    who.dedup();
    assert_eq!(who, all, "{hear:?}");
}

#[test]
fn what_the_engine_says_never_fits_one_way_goes_by_another() {
    let budgets = [requests(5, SECOND), requests(5, SECOND)];
    let mut desk = desk(budgets).with_engine(OnLoss::Closed, [(0, None), (1, None)]);
    let ways = [plain(&[0]), plain(&[1])];
    let Asked::Waits { ticket, .. } = desk.ask(1, &ways, input(0), WITHIN) else {
        panic!("the engine is asked first")
    };
    assert_eq!(tries(&mut desk), [(ticket, vec![0])]);
    let limit = Limit::Concurrent(0);
    assert!(!desk.tried(2, ticket, Said::Never { budget: 0, limit }));
    assert_eq!(tries(&mut desk), [(ticket, vec![1])]);
    assert_eq!((desk.waiting_for(0), desk.waiting_for(1)), (0, 1));
    assert!(!desk.tried(3, ticket, Said::Never { budget: 1, limit }));
    let why = Refused::Never { budget: 1, limit };
    assert_eq!(desk.poll_event(), Some(Event::Refused { ticket, why }));
    assert!(desk.is_idle());
}
