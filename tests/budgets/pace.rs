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
