//! What a provider says: rests and brakes.

use std::time::Duration;

use redrive::{
    budgets::*,
    config::Selector,
    limits::{Measure, Spent, Weights},
    proto::waiting::Reason,
};
use tokio::time::Instant;

use super::words::*;

rules! {
    a_refusal_with_a_wait_stops_everybody_and_one_probe_lets_them_go
    a_brake_holds_and_all_go_when_it_ends
    a_providers_word_does_not_concern_budgets_of_ours
    what_is_not_known_stays_as_it_was_reserved
    too_many_who_wait_are_refused_with_the_time_to_come_back
    another_credential_is_taken_where_the_first_rests
    what_had_not_to_be_reserved_is_no_overrun
}

/// How long providers ask for: longer than what is not worth telling.
const REST: Duration = Duration::from_secs(2);

/// Several who wait.
async fn several(budgets: &Budgets, count: usize) -> Vec<Asking> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(waits(budgets, through(&[0])).await.0);
    }
    all
}

async fn a_refusal_with_a_wait_stops_everybody_and_one_probe_lets_them_go<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![concurrent("b", 2)]).await;
    let refused = sent(&budgets, through(&[0])).await;
    let other = sent(&budgets, through(&[0])).await;
    let mut all = several(&budgets, 3).await;
    let before = Instant::now();
    refused.penalise(REST);
    refused.settle(Spent::default());
    drop(other);
    for asking in &mut all {
        let Answer::Waiting(wait) = answer(asking).await else {
            panic!("it rests");
        };
        assert_eq!((&*wait.budget, wait.reason), ("b", Reason::Cooldown));
        is_left::<K>(wait.expected, REST);
    }
    took::<K>(before.elapsed(), Duration::ZERO);
    let probe = lease(&mut all[0]).await;
    took::<K>(before.elapsed(), REST);
    assert!(probe.permit().unwrap().leave());
    let (_late, wait) = waits(&budgets, through(&[0])).await;
    assert_eq!((wait.reason, wait.expected), (Reason::Cooldown, None));
    // One that ended without a word has proved nothing.
    probe.settle(Spent::default());
    let probe = lease(&mut all[1]).await;
    assert!(probe.permit().unwrap().leave());
    let (_later, wait) = waits(&budgets, through(&[0])).await;
    assert_eq!((wait.reason, wait.expected), (Reason::Cooldown, None));
    probe.settle(Spent {
        output_tokens: Some(1),
        ..Spent::default()
    });
    let _third = lease(&mut all[2]).await;
    took::<K>(before.elapsed(), REST);
}

async fn a_brake_holds_and_all_go_when_it_ends<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![requests("b", 100, 60 * SECOND)]).await;
    let running = sent(&budgets, through(&[0])).await;
    let before = Instant::now();
    running.brake(REST);
    let mut all = several(&budgets, 5).await;
    is_left::<K>(budgets.status()[0].rests, REST);
    for asking in &mut all {
        drop(lease(asking).await);
    }
    took::<K>(before.elapsed(), REST);
}

async fn a_providers_word_does_not_concern_budgets_of_ours<K: Keeper>(keeper: &K) {
    let mut ours = concurrent("ours", 9);
    ours.selector = Selector::default();
    let budgets = keeper.budgets(vec![ours, concurrent("theirs", 9)]).await;
    let running = sent(&budgets, through(&[0, 1])).await;
    running.penalise(30 * SECOND);
    running.brake(30 * SECOND);
    let _free = granted(&budgets, through(&[0])).await;
    let (_, wait) = waits(&budgets, through(&[1])).await;
    assert_eq!(&*wait.budget, "theirs");
}

async fn what_is_not_known_stays_as_it_was_reserved<K: Keeper>(keeper: &K) {
    let budgets = keeper
        .budgets(vec![window_of(
            budget("b"),
            Measure::InputTokens,
            100,
            60 * SECOND,
        )])
        .await;
    let used = || budgets.status()[0].limits[0].used;
    let tokens = |input_tokens| Ask {
        tokens: Weights {
            input_tokens,
            output_tokens: 0,
        },
        ..through(&[0])
    };
    sent(&budgets, tokens(40)).await.settle(Spent::default());
    assert_eq!(used(), 40);
    let spent = Spent {
        input_tokens: Some(10),
        ..Spent::default()
    };
    sent(&budgets, tokens(40)).await.settle(spent);
    assert_eq!(used(), 50);
    match answer(&mut budgets.ask(tokens(101))).await {
        Answer::Refused(refusal) => assert_eq!(
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

async fn too_many_who_wait_are_refused_with_the_time_to_come_back<K: Keeper>(keeper: &K) {
    let mut small = requests("b", 1, 60 * SECOND);
    small.max_waiting = 1;
    let budgets = keeper.budgets(vec![small]).await;
    drop(sent(&budgets, through(&[0])).await);
    let _first = waits(&budgets, through(&[0])).await;
    let Answer::Refused(refusal) = answer(&mut budgets.ask(through(&[0]))).await else {
        panic!("not refused");
    };
    assert_eq!(refusal.kind, RefusalKind::QueueFull);
    assert_eq!(refusal.limit, "max_waiting: 1");
    is_left::<K>(refusal.retry_after, 60 * SECOND);
    let status = &budgets.status()[0];
    assert_eq!(status.counts.refused, 1);
    assert_eq!(status.waiting, (1, 1));
}

async fn another_credential_is_taken_where_the_first_rests<K: Keeper>(keeper: &K) {
    let budgets = keeper
        .budgets(vec![concurrent("first", 1), concurrent("second", 1)])
        .await;
    let both = || ask(vec![way(0, &[0]), way(1, &[1])]);
    let running = sent(&budgets, both()).await;
    running.penalise(60 * SECOND);
    match answer(&mut budgets.ask(both())).await {
        Answer::Granted { credential, .. } => assert_eq!(credential, 1),
        other => panic!("{other:?}"),
    }
}

async fn what_had_not_to_be_reserved_is_no_overrun<K: Keeper>(keeper: &K) {
    let counted = Spent {
        input_tokens: Some(7),
        output_tokens: Some(5),
        estimated: false,
    };
    let tokens = window_of(budget("tokens"), Measure::OutputTokens, 100, 60 * SECOND);
    let budgets = keeper
        .budgets(vec![requests("requests", 9, 60 * SECOND), tokens])
        .await;
    let overruns = || budgets.status().into_iter().map(|budget| budget.overruns);
    sent(&budgets, through(&[0])).await.settle(counted);
    assert!(overruns().eq([0, 0]), "no tokens are limited");
    let reads_on = sent(&budgets, through(&[0, 1])).await;
    reads_on.settle(Spent::default());
    assert!(overruns().eq([0, 0]), "reading on takes none");
    sent(&budgets, through(&[0, 1])).await.settle(counted);
    assert!(overruns().eq([0, 1]));
    assert_eq!(budgets.status()[1].limits[0].used, 5);
}
