//! Who waits is served fairly.

use redrive::{budgets::*, config::Budget};

use crate::support::*;

/// One send at a time, shared by tenants.
fn one_at_a_time(weights: &[(&str, u32)]) -> Budget {
    fair(concurrent("b", 1), weights)
}

/// The tenants in the order in which they were granted, one after another.
async fn order(running: Lease, mut asking: Vec<(&'static str, Asking)>) -> Vec<&'static str> {
    let mut running = Some(running);
    let mut order = Vec::new();
    while !asking.is_empty() {
        drop(running.take());
        let ready = asking
            .iter_mut()
            .position(|(_, asking)| match poll(asking) {
                std::task::Poll::Ready(Answer::Granted { lease, .. }) => {
                    assert!(lease.permit().unwrap().leave());
                    running = Some(lease);
                    true
                }
                _ => false,
            });
        order.push(asking.remove(ready.expect("somebody is next")).0);
    }
    order
}

#[tokio::test(start_paused = true)]
async fn two_tenants_of_weights_three_and_one_are_served_three_to_one() {
    let budgets = budgets([one_at_a_time(&[("gold", 3)])]);
    let running = sent(&budgets, of("other", &[0]));
    let mut asking = Vec::new();
    for _ in 0..40 {
        asking.push(("gold", waits(&budgets, of("gold", &[0])).0));
        asking.push(("iron", waits(&budgets, of("iron", &[0])).0));
    }
    let order = order(running, asking).await;
    for turn in order[..40].chunks(4) {
        let gold = turn.iter().filter(|tenant| **tenant == "gold").count();
        assert_eq!(gold, 3, "{order:?}");
    }
    assert_eq!(waiting(&budgets), 0);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_one_tenant_delays_another_by_one_service() {
    let budgets = budgets([one_at_a_time(&[])]);
    let running = sent(&budgets, of("flood", &[0]));
    let mut asking = Vec::new();
    for _ in 0..1000 {
        asking.push(("flood", waits(&budgets, of("flood", &[0])).0));
    }
    asking.push(("single", waits(&budgets, of("single", &[0])).0));
    let order = order(running, asking).await;
    let place = order.iter().position(|tenant| *tenant == "single").unwrap();
    assert!(place <= 1, "{place}");
}

#[tokio::test(start_paused = true)]
async fn without_fairness_first_come_is_first_served() {
    let budgets = budgets([concurrent("b", 1)]);
    let running = sent(&budgets, through(&[0]));
    let names = ["1", "2", "3", "4", "5", "6"];
    let asking = names.map(|name| (name, waits(&budgets, through(&[0])).0));
    assert_eq!(order(running, asking.into()).await, names);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_whose_own_budget_is_full_holds_up_nobody_else() {
    let all = fair(concurrent("all", 10), &[]);
    let budgets = budgets([all, concurrent("a", 1), concurrent("b", 1)]);
    let running = sent(&budgets, of("a", &[0, 1]));
    let (_first, wait) = waits(&budgets, of("a", &[0, 1]));
    assert_eq!(&*wait.budget, "a");
    let _other = sent(&budgets, of("b", &[0, 2]));
    drop(running);
}
