//! What waiting costs.

use redrive::budgets::*;

use super::words::*;

rules! {
    ten_thousand_who_wait_cost_less_than_a_kilobyte_each_and_nothing_afterwards
}

const WAITERS: usize = 10_000;

async fn ten_thousand_who_wait_cost_less_than_a_kilobyte_each_and_nothing_afterwards<K: Keeper>(
    keeper: &K,
) {
    let configured = vec![
        fair(concurrent("b", 1), &[]),
        requests("c", 1_000, 60 * SECOND),
    ];
    let budgets = keeper.budgets(configured).await;
    let running = sent(&budgets, of("x", &[0, 1])).await;
    let tenants = ["a", "b", "c", "d"];
    let mut all: Vec<Asking> = Vec::with_capacity(WAITERS);
    let asks: Vec<_> = (0..WAITERS).map(|n| of(tenants[n % 4], &[0, 1])).collect();
    let waiting = allocation_counter::measure(|| {
        for ask in asks {
            let mut asking = budgets.ask(ask);
            assert!(is_waiting(&mut asking));
            all.push(asking);
        }
    });
    let each = waiting.bytes_current / WAITERS as i64;
    assert!((100..1_000).contains(&each), "{each} bytes");
    assert_eq!(budgets.status()[0].waiting.0, WAITERS);
    let gone = allocation_counter::measure(|| all.clear());
    let kept = waiting.bytes_current + gone.bytes_current;
    assert!(kept <= 1_000, "{kept} bytes");
    drop(running);
}
