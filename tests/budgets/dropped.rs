//! Dropping leaves nothing behind, at any point.

use redrive::limits::{Account, Spent};

use super::words::*;

rules! {
    one_that_never_asked_leaves_nothing
    one_that_waited_leaves_nothing
    a_grant_that_was_not_taken_goes_back_and_to_the_next
    a_lease_that_is_dropped_unsent_goes_back_and_lets_nothing_leave
    a_lease_that_is_dropped_after_its_send_stays_counted
    nothing_leaves_after_the_drivers_half_is_gone_however_it_went
    a_send_that_proved_to_have_stayed_goes_back
}

async fn one_that_never_asked_leaves_nothing<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![concurrent("b", 1)]).await;
    drop(budgets.ask(through(&[0])));
    assert_eq!(budgets.account(), (Account::default(), 0));
    assert_eq!(keeper.held(&budgets).await, 0);
}

async fn one_that_waited_leaves_nothing<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![concurrent("b", 1)]).await;
    let running = sent(&budgets, through(&[0])).await;
    let (asking, _) = waits(&budgets, through(&[0])).await;
    assert_eq!(waiting(&budgets), 1);
    drop(asking);
    assert_eq!(waiting(&budgets), 0);
    assert_eq!(keeper.held(&budgets).await, 1);
    drop(running);
    assert_eq!(keeper.held(&budgets).await, 0);
}

async fn a_grant_that_was_not_taken_goes_back_and_to_the_next<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![concurrent("b", 1)]).await;
    let running = sent(&budgets, through(&[0])).await;
    let (first, _) = waits(&budgets, through(&[0])).await;
    let (mut second, _) = waits(&budgets, through(&[0])).await;
    running.settle(Spent::default());
    // Granted to the first, which does not look.
    until(|| waiting(&budgets) == 1).await;
    assert_eq!(keeper.held(&budgets).await, 1);
    drop(first);
    let second = lease(&mut second).await;
    assert_eq!(budgets.account().0.returned, 1);
    assert_eq!(keeper.held(&budgets).await, 1);
    drop(second);
    assert_eq!(keeper.held(&budgets).await, 0);
}

async fn a_lease_that_is_dropped_unsent_goes_back_and_lets_nothing_leave<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![requests("b", 1, 60 * SECOND)]).await;
    let lease = granted(&budgets, through(&[0])).await;
    let mut permit = lease.permit().unwrap();
    drop(lease);
    assert!(!permit.leave());
    assert_eq!(budgets.account().0.returned, 1);
    assert_eq!(keeper.held(&budgets).await, 0);
    drop(granted(&budgets, through(&[0])).await);
}

async fn a_lease_that_is_dropped_after_its_send_stays_counted<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![requests("b", 1, 60 * SECOND)]).await;
    drop(sent(&budgets, through(&[0])).await);
    assert_eq!(budgets.account().0.sent, 1);
    assert_eq!(keeper.held(&budgets).await, 0);
    waits(&budgets, through(&[0])).await;
}

async fn nothing_leaves_after_the_drivers_half_is_gone_however_it_went<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![requests("b", 9, 60 * SECOND)]).await;
    let settled = granted(&budgets, through(&[0])).await;
    let mut permit = settled.permit().unwrap();
    settled.settle(Spent::default());
    assert!(!permit.leave());
    // Handed over, and the driver is gone before the door hears that it stayed and tries again.
    let dropped = granted(&budgets, through(&[0])).await;
    let mut permit = dropped.permit().unwrap();
    assert!(permit.leave());
    drop(dropped);
    let used = || budgets.status()[0].limits[0].used;
    let counted = used();
    permit.stayed();
    assert_eq!(used(), counted, "what nobody answers for stays counted");
    assert!(!permit.leave());
    assert_eq!(keeper.held(&budgets).await, 0);
}

async fn a_send_that_proved_to_have_stayed_goes_back<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![requests("b", 1, 60 * SECOND)]).await;
    let lease = granted(&budgets, through(&[0])).await;
    let mut permit = lease.permit().unwrap();
    assert!(permit.leave());
    permit.stayed();
    drop(lease);
    drop(granted(&budgets, through(&[0])).await);
}
