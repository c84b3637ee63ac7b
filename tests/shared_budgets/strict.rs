//! The rules of strict limits (`tests/limits`), one by one, on each server.

#[path = "../limits/engine.rs"]
mod engine;
mod pod;
#[path = "../limits/support.rs"]
mod support;

use crate::server::{Kind, is_there};

/// Each rule as a test on each server.
macro_rules! rules {
    ($($rule:ident)+) => {
        mod on_redis {
            use crate::{server::Kind::Redis, strict::{on, pod::{OnRedis, Pod}}};

            $(
                #[test]
                fn $rule() {
                    on(Redis, super::$rule::<Pod<OnRedis>>);
                }
            )+
        }

        mod on_valkey {
            use crate::{server::Kind::Valkey, strict::{on, pod::{OnValkey, Pod}}};

            $(
                #[test]
                fn $rule() {
                    on(Valkey, super::$rule::<Pod<OnValkey>>);
                }
            )+
        }
    };
}

#[path = "../limits/counting.rs"]
mod counting;
#[path = "../limits/edges.rs"]
mod edges;
#[path = "../limits/hand_over.rs"]
mod hand_over;
#[path = "../limits/life.rs"]
mod life;
#[path = "../limits/memory.rs"]
mod memory;
#[path = "../limits/overruns.rs"]
mod overruns;
#[path = "../limits/rests.rs"]
mod rests;

/// Where such a server can be had.
fn on(kind: Kind, rule: fn()) {
    if is_there(kind) {
        rule();
    }
}
