//! Smoothing.

use redrive::proto::waiting::Reason;
use tokio::time::Instant;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_burst_goes_at_once_and_the_rest_evenly() {
    let paced = smooth(requests("b", 100, 60 * SECOND), 6, 60 * SECOND, 2);
    let budgets = budgets([paced]);
    drop(sent(&budgets, through(&[0])));
    drop(sent(&budgets, through(&[0])));
    let before = Instant::now();
    let (mut third, wait) = waits(&budgets, through(&[0]));
    assert_eq!(wait.reason, Reason::Budget);
    assert_eq!(wait.limit, "smoothing: 6 in 1m");
    assert_eq!(wait.expected, Some(10 * SECOND));
    let (mut fourth, _) = waits(&budgets, through(&[0]));
    drop(lease(&mut third).await);
    assert_eq!(before.elapsed(), 10 * SECOND);
    drop(lease(&mut fourth).await);
    assert_eq!(before.elapsed(), 20 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn one_that_another_pace_holds_up_takes_nothing_of_this_one() {
    let every = |name: &str, seconds| smooth(budget(name), 1, seconds * SECOND, 1);
    let budgets = budgets([every("often", 10), every("seldom", 60)]);
    drop(sent(&budgets, through(&[0, 1])));
    tokio::time::advance(10 * SECOND).await;
    let (_both, wait) = waits(&budgets, through(&[0, 1]));
    assert_eq!(
        (&*wait.budget, wait.expected),
        ("seldom", Some(50 * SECOND))
    );
    drop(sent(&budgets, through(&[0])));
    waits(&budgets, through(&[0]));
}

#[tokio::test(start_paused = true)]
async fn a_pace_never_lets_more_through_than_the_limits() {
    let fast = smooth(requests("b", 1, 60 * SECOND), 1_000, SECOND, 1_000);
    let budgets = budgets([fast]);
    drop(sent(&budgets, through(&[0])));
    let (_, wait) = waits(&budgets, through(&[0]));
    assert_eq!(wait.limit, "requests: 1 in 1m");
    assert_eq!(wait.expected, Some(60 * SECOND));
}
