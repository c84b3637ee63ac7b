//! What a provider says: rests and brakes.

use std::task::Poll;

use redrive::{
    budgets::*,
    config::Selector,
    limits::{Measure, Spent, Weights},
    proto::waiting::Reason,
};
use tokio::time::Instant;

use crate::support::*;

/// What somebody who waits is told next, which is at once.
async fn hears(asking: &mut Asking) -> Wait {
    let before = Instant::now();
    match answer(asking).await {
        Answer::Waiting(wait) => {
            assert_eq!(before.elapsed(), std::time::Duration::ZERO);
            wait
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_wait_stops_everybody_and_one_probe_lets_them_go() {
    let budgets = budgets([concurrent("b", 2)]);
    let refused = sent(&budgets, through(&[0]));
    let other = sent(&budgets, through(&[0]));
    let mut all: Vec<_> = (0..3).map(|_| waits(&budgets, through(&[0])).0).collect();
    refused.penalise(30 * SECOND);
    refused.settle(Spent::default());
    drop(other);
    for asking in &mut all {
        let wait = hears(asking).await;
        assert_eq!(wait.reason, Reason::Cooldown);
        assert!(wait.expected.unwrap() >= 30 * SECOND, "{wait:?}");
        assert_eq!(&*wait.budget, "b");
    }
    let before = Instant::now();
    let probe = lease(&mut all[0]).await;
    assert_eq!(before.elapsed(), 30 * SECOND);
    assert!(probe.permit().unwrap().leave());
    let (_late, wait) = waits(&budgets, through(&[0]));
    assert_eq!((wait.reason, wait.expected), (Reason::Cooldown, None));
    // One that ended without a word has proved nothing.
    probe.settle(Spent::default());
    let probe = lease(&mut all[1]).await;
    assert!(probe.permit().unwrap().leave());
    let (_later, wait) = waits(&budgets, through(&[0]));
    assert_eq!((wait.reason, wait.expected), (Reason::Cooldown, None));
    probe.settle(Spent {
        output_tokens: Some(1),
        ..Spent::default()
    });
    let _third = lease(&mut all[2]).await;
    assert_eq!(before.elapsed(), 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_brake_holds_and_all_go_when_it_ends() {
    let budgets = budgets([requests("b", 100, 60 * SECOND)]);
    let running = sent(&budgets, through(&[0]));
    running.brake(10 * SECOND);
    let mut all: Vec<_> = (0..5).map(|_| waits(&budgets, through(&[0])).0).collect();
    assert_eq!(budgets.status()[0].rests, Some(10 * SECOND));
    let before = Instant::now();
    for asking in &mut all {
        drop(lease(asking).await);
    }
    assert_eq!(before.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_providers_word_does_not_concern_budgets_of_ours() {
    let mut ours = concurrent("ours", 9);
    ours.selector = Selector::default();
    let budgets = budgets([ours, concurrent("theirs", 9)]);
    let running = sent(&budgets, through(&[0, 1]));
    running.penalise(30 * SECOND);
    running.brake(30 * SECOND);
    let _free = at_once(&budgets, through(&[0]));
    let (_, wait) = waits(&budgets, through(&[1]));
    assert_eq!(&*wait.budget, "theirs");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_stays_as_it_was_reserved() {
    let budgets = budgets([window_of(
        budget("b"),
        Measure::InputTokens,
        100,
        60 * SECOND,
    )]);
    let used = || budgets.status()[0].limits[0].used;
    let tokens = |input_tokens| Ask {
        tokens: Weights {
            input_tokens,
            output_tokens: 0,
        },
        ..through(&[0])
    };
    sent(&budgets, tokens(40)).settle(Spent::default());
    assert_eq!(used(), 40);
    let spent = Spent {
        input_tokens: Some(10),
        ..Spent::default()
    };
    sent(&budgets, tokens(40)).settle(spent);
    assert_eq!(used(), 50);
    match poll(&mut budgets.ask(tokens(101))) {
        Poll::Ready(Answer::Refused(refusal)) => assert_eq!(
            refusal,
            Refusal {
                kind: RefusalKind::Never,
                budget: "b".into(),
                limit: "input_tokens: 100 in 1m".into(),
                asked: 101,
                retry_after: None,
            }
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_who_wait_are_refused_with_the_time_to_come_back() {
    let mut small = requests("b", 1, 60 * SECOND);
    small.max_waiting = 1;
    let budgets = budgets([small]);
    drop(sent(&budgets, through(&[0])));
    let _first = waits(&budgets, through(&[0]));
    let Poll::Ready(Answer::Refused(refusal)) = poll(&mut budgets.ask(through(&[0]))) else {
        panic!("not refused");
    };
    assert_eq!(refusal.kind, RefusalKind::QueueFull);
    assert_eq!(refusal.limit, "max_waiting: 1");
    assert_eq!(refusal.retry_after, Some(60 * SECOND));
    let status = &budgets.status()[0];
    assert_eq!(status.counts.refused, 1);
    assert_eq!(status.waiting, (1, 1));
}

#[tokio::test(start_paused = true)]
async fn another_credential_is_taken_where_the_first_rests() {
    let budgets = budgets([concurrent("first", 1), concurrent("second", 1)]);
    let both = || ask(vec![way(0, &[0]), way(1, &[1])]);
    let running = sent(&budgets, both());
    running.penalise(60 * SECOND);
    match poll(&mut budgets.ask(both())) {
        Poll::Ready(Answer::Granted { credential, .. }) => assert_eq!(credential, 1),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_had_not_to_be_reserved_is_no_overrun() {
    let counted = Spent {
        input_tokens: Some(7),
        output_tokens: Some(5),
        estimated: false,
    };
    let tokens = window_of(budget("tokens"), Measure::OutputTokens, 100, 60 * SECOND);
    let budgets = budgets([requests("requests", 9, 60 * SECOND), tokens]);
    let overruns = || budgets.status().into_iter().map(|budget| budget.overruns);
    sent(&budgets, through(&[0])).settle(counted);
    assert!(overruns().eq([0, 0]), "no tokens are limited");
    let reads_on = sent(&budgets, through(&[0, 1]));
    reads_on.settle(Spent::default());
    assert!(overruns().eq([0, 0]), "reading on takes none");
    sent(&budgets, through(&[0, 1])).settle(counted);
    assert!(overruns().eq([0, 1]));
    assert_eq!(budgets.status()[1].limits[0].used, 5);
}
