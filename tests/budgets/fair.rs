//! Who waits is served fairly.

use redrive::{budgets::*, config::Budget};

use super::words::*;

rules! {
    two_tenants_of_weights_three_and_one_are_served_three_to_one
    a_flood_of_one_tenant_delays_another_by_one_service
    without_fairness_first_come_is_first_served
    a_tenant_whose_own_budget_is_full_holds_up_nobody_else
}

/// One send at a time, shared by tenants.
fn one_at_a_time(weights: &[(&str, u32)]) -> Budget {
    fair(concurrent("b", 1), weights)
}

/// The first `turns` tenants in the order in which they were granted, one after another.
async fn order(
    running: Lease,
    mut asking: Vec<(&'static str, Asking)>,
    turns: usize,
) -> Vec<&'static str> {
    let mut running = Some(running);
    let mut order = Vec::new();
    while order.len() < turns {
        drop(running.take());
        let (place, lease) = first(&mut asking).await;
        assert!(lease.permit().unwrap().leave());
        running = Some(lease);
        order.push(asking.remove(place).0);
    }
    order
}

async fn two_tenants_of_weights_three_and_one_are_served_three_to_one<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![one_at_a_time(&[("gold", 3)])]).await;
    let running = sent(&budgets, of("other", &[0])).await;
    let mut asking = Vec::new();
    for _ in 0..40 {
        asking.push(("gold", waits(&budgets, of("gold", &[0])).await.0));
        asking.push(("iron", waits(&budgets, of("iron", &[0])).await.0));
    }
    let order = order(running, asking, 40).await;
    for turn in order.chunks(4) {
        let gold = turn.iter().filter(|tenant| **tenant == "gold").count();
        assert_eq!(gold, 3, "{order:?}");
    }
    assert_eq!(waiting(&budgets), 0);
}

async fn a_flood_of_one_tenant_delays_another_by_one_service<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![one_at_a_time(&[])]).await;
    let running = sent(&budgets, of("flood", &[0])).await;
    let mut asking = Vec::new();
    for _ in 0..1000 {
        asking.push(("flood", waits(&budgets, of("flood", &[0])).await.0));
    }
    asking.push(("single", waits(&budgets, of("single", &[0])).await.0));
    let order = order(running, asking, 2).await;
    assert!(order.contains(&"single"), "{order:?}");
}

async fn without_fairness_first_come_is_first_served<K: Keeper>(keeper: &K) {
    let budgets = keeper.budgets(vec![concurrent("b", 1)]).await;
    let running = sent(&budgets, through(&[0])).await;
    let names = ["1", "2", "3", "4", "5", "6"];
    let mut asking = Vec::new();
    for name in names {
        asking.push((name, waits(&budgets, through(&[0])).await.0));
    }
    assert_eq!(order(running, asking, names.len()).await, names);
}

async fn a_tenant_whose_own_budget_is_full_holds_up_nobody_else<K: Keeper>(keeper: &K) {
    let all = fair(concurrent("all", 10), &[]);
    let budgets = keeper
        .budgets(vec![all, concurrent("a", 1), concurrent("b", 1)])
        .await;
    let running = sent(&budgets, of("a", &[0, 1])).await;
    let (_first, wait) = waits(&budgets, of("a", &[0, 1])).await;
    assert_eq!(&*wait.budget, "a");
    let _other = sent(&budgets, of("b", &[0, 2])).await;
    drop(running);
}
