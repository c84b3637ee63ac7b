//! What a decision of shared budgets costs, with the server on the same machine: decisions a second, how long
//! an `acquire` takes with one client and with 64, and what a call takes of the server's processor.
//!
//! `cargo bench --bench shared`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "it speaks with its servers, and measures in real time"
)]

use std::{sync::Arc, time::Duration};

use redrive::{
    budgets::shared::{Answer, Options, Shared},
    limits::{Measure, Settings},
};

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/shared_budgets/domain.rs"]
mod domain;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/shared_budgets/server.rs"]
mod server;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/shared_budgets/work.rs"]
mod work;

use domain::{PATIENCE, SECOND, ask, connect, options, settings, unused_name};
use server::{Server, each};
use work::{Cost, Ends, work};

/// How long each is measured.
const TIME: Duration = Duration::from_secs(5);

/// Connections, one a pod.
const PODS: usize = 8;

fn pods(server: &Server, budget: &Settings) -> Vec<Arc<Shared>> {
    let options = Options {
        life: Duration::from_secs(1),
        longest_unsent: Duration::from_secs(1),
        ..options(server)
    };
    let (name, budgets) = (unused_name(), std::slice::from_ref(budget));
    let pods = 0..PODS;
    pods.map(|_| Arc::new(connect(options.clone(), &name, budgets)))
        .collect()
}

/// Waits until the engine grants.
async fn learn(shared: &Shared) {
    while let Answer::Learning { .. } = ask(shared, u128::MAX).await.unwrap() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    shared.release(u128::MAX.into(), PATIENCE).await.unwrap();
}

async fn measure(server: &Server, what: &str, budget: &Settings) {
    let pods = pods(server, budget);
    learn(&pods[0]).await;
    let mut beside = server.beside();
    for clients in [1, 64] {
        let before = Cost::so_far(&mut beside);
        let mut done = work(&pods, clients, Ends::After(TIME)).await;
        let after = Cost::so_far(&mut beside);
        let (processor, script) = after.per_call(&before);
        let took = done.took.as_secs_f64();
        println!(
            "{:?}, {what}, {clients:2} clients: {:6.0} decisions/s, {:6.0} calls/s; acquire p50 {:5} us, p99 {:5} \
             us; a call {processor:5.1} us of the server's processor, {script:5.1} us in the script",
            server.kind,
            done.acquires.len() as f64 / took,
            (after.calls - before.calls) / took,
            done.percentile(50),
            done.percentile(99),
        );
    }
}

fn main() {
    let window = |measure| (measure, 1 << 40, SECOND);
    let requests = [window(Measure::Requests)];
    let tokens = [
        Measure::Requests,
        Measure::InputTokens,
        Measure::OutputTokens,
    ]
    .map(window);
    let granted = settings("a", &requests);
    let more = Settings {
        concurrent: Some(1 << 40),
        ..settings("a", &tokens)
    };
    let shut = settings("a", &[(Measure::Requests, 1, 60 * SECOND)]);
    each(|kind| {
        let server = Server::start(kind);
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            measure(&server, "granted, one window", &granted).await;
            measure(&server, "granted, four limits", &more).await;
            measure(&server, "denied", &shut).await;
        });
    });
}
