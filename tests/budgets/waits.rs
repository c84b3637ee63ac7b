//! Who waits is woken in time, and is told what for.

use jiff::tz::TimeZone;
use redrive::{
    budgets::*,
    clock::Clock,
    limits::{DailyLimit, Measure, Spent},
    proto::waiting::Reason,
};
use tokio::time::Instant;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_window_opens_for_the_next_when_a_send_leaves_it() {
    let budgets = budgets([requests("b", 2, 60 * SECOND)]);
    drop(sent(&budgets, through(&[0])));
    tokio::time::advance(10 * SECOND).await;
    drop(sent(&budgets, through(&[0])));
    let (mut asking, wait) = waits(&budgets, through(&[0]));
    assert_eq!(
        wait,
        Wait {
            reason: Reason::Budget,
            budget: "b".into(),
            limit: "requests: 2 in 1m".into(),
            expected: Some(50 * SECOND),
        }
    );
    let before = Instant::now();
    let lease = lease(&mut asking).await;
    assert_eq!(before.elapsed(), 50 * SECOND);
    drop(lease);
    assert_eq!(waiting(&budgets), 0);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_send_lets_the_next_go_at_once() {
    let budgets = budgets([concurrent("b", 1)]);
    let running = sent(&budgets, through(&[0]));
    let (mut first, wait) = waits(&budgets, through(&[0]));
    assert_eq!((&*wait.limit, wait.expected), ("concurrent: 1", None));
    let (mut second, _) = waits(&budgets, through(&[0]));
    running.settle(Spent::default());
    let lease = lease(&mut first).await;
    assert!(poll(&mut second).is_pending());
    drop(lease);
    assert!(matches!(
        poll(&mut second),
        std::task::Poll::Ready(Answer::Granted { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_cap_of_a_day_opens_at_midnight_in_its_zone() {
    let mut daily = budget("b");
    daily.zone = TimeZone::get("Pacific/Kiritimati").unwrap();
    let measure = Measure::Requests;
    daily.settings.daily.push(DailyLimit { measure, limit: 2 });
    let clock = Clock::start();
    let now = jiff::Timestamp::try_from(clock.wall_now()).unwrap();
    let now = now.to_zoned(daily.zone.clone());
    let midnight = now.tomorrow().unwrap().start_of_day().unwrap();
    let left = midnight.timestamp().duration_since(now.timestamp());
    let budgets = Budgets::new(clock, [daily]);
    for _ in 0..2 {
        drop(sent(&budgets, through(&[0])));
    }
    let (mut asking, wait) = waits(&budgets, through(&[0]));
    assert_eq!(wait.limit, "requests: 2 a day");
    let before = Instant::now();
    let lease = lease(&mut asking).await;
    // The keeper of time wakes by the millisecond.
    let over = before
        .elapsed()
        .as_micros()
        .abs_diff(left.as_micros().unsigned_abs());
    assert!(over <= 2_000, "{over}");
    assert!(lease.permit().unwrap().leave());
    assert_eq!(budgets.status()[0].limits[0].used, 1);
}

#[tokio::test(start_paused = true)]
async fn no_matching_budget_is_no_wait_and_no_account() {
    let budgets = budgets([concurrent("b", 1)]);
    let lease = at_once(&budgets, through(&[]));
    assert!(lease.permit().is_none());
    assert_eq!(budgets.account().0.granted, 0);
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_and_may_go_sooner_is_woken_sooner() {
    let late = requests("late", 1, 60 * SECOND);
    let budgets = budgets([late, requests("soon", 1, 10 * SECOND)]);
    drop(sent(&budgets, through(&[0])));
    drop(sent(&budgets, through(&[1])));
    let _late = waits(&budgets, through(&[0]));
    tokio::time::advance(SECOND).await;
    let (mut soon, _) = waits(&budgets, through(&[1]));
    let before = Instant::now();
    drop(lease(&mut soon).await);
    assert_eq!(before.elapsed(), 9 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn the_first_send_of_a_day_counts_on_that_day() {
    let mut daily = budget("b");
    let measure = Measure::Requests;
    daily.settings.daily.push(DailyLimit { measure, limit: 1 });
    let budgets = budgets([daily]);
    drop(sent(&budgets, through(&[0])));
    let (asking, wait) = waits(&budgets, through(&[0]));
    drop(asking);
    tokio::task::yield_now().await;
    tokio::time::advance(wait.expected.unwrap() + SECOND).await;
    drop(sent(&budgets, through(&[0])));
    waits(&budgets, through(&[0]));
}
