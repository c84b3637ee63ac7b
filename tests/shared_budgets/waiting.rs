//! The rules of those who wait for budgets (`tests/budgets`), in a pod whose budgets are shared, on each server.

#[path = "../budgets/words.rs"]
mod words;

use std::{sync::Arc, time::Duration};

use redrive::{
    budgets::Budgets,
    clock::Clock,
    config::{Budget, OnLoss, SharedEngine},
};

use self::words::Keeper;
use crate::{
    common::in_common,
    domain::PATIENCE,
    server::{Beside, Kind, Server, is_there},
    together::engine,
};

/// Each rule as a test of a pod on each server.
macro_rules! rules {
    ($($rule:ident)+) => {
        mod on_redis {
            $(
                #[test]
                fn $rule() {
                    let redis = crate::server::Kind::Redis;
                    crate::waiting::on(redis, async |pod| super::$rule(&pod).await);
                }
            )+
        }

        mod on_valkey {
            $(
                #[test]
                fn $rule() {
                    let valkey = crate::server::Kind::Valkey;
                    crate::waiting::on(valkey, async |pod| super::$rule(&pod).await);
                }
            )+
        }
    };
}

#[path = "../budgets/bounded.rs"]
mod bounded;
#[path = "../budgets/dropped.rs"]
mod dropped;
#[path = "../budgets/fair.rs"]
mod fair;
#[path = "../budgets/rests.rs"]
mod rests;

/// A pod, and where its budgets are shared.
struct Pod(Arc<Server>);

/// Where such a server can be had.
fn on(kind: Kind, rule: impl AsyncFnOnce(Pod)) {
    if is_there(kind) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(rule(Pod(in_common(kind))));
    }
}

impl Keeper for Pod {
    const EXACT: bool = false;

    async fn budgets(&self, mut configured: Vec<Budget>) -> Budgets {
        for budget in &mut configured {
            budget.is_shared = true;
        }
        let engine = SharedEngine {
            timeout: PATIENCE,
            ..engine(self.0.url(), OnLoss::Closed)
        };
        let budgets = Budgets::sharing(Clock::start(), configured, &engine).unwrap();
        has_learnt(&mut self.0.beside(), &engine.domain).await;
        budgets
    }

    /// By the server's word, once it has heard all.
    async fn held(&self, budgets: &Budgets) -> u64 {
        budgets.told().await;
        budgets.refresh().await;
        let fleet = budgets.status().into_iter();
        fleet.map(|budget| budget.fleet.unwrap().running).sum()
    }
}

/// The domain began long ago: rules do not wait for what it would have to learn.
async fn has_learnt(beside: &mut Beside, domain: &str) {
    let meta = format!("{{redrive:{domain}}}:meta");
    let mut tries = 0;
    while !beside.run::<bool>(&["HEXISTS", &meta, "epoch"]) {
        tries += 1;
        assert!(tries < 10_000, "it never begins");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    beside.run::<()>(&["HSET", &meta, "since", "0"]);
}
