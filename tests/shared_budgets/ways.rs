//! Ways to the engine: a cluster, and TLS.

use std::time::Duration;

use redrive::budgets::shared::*;

use crate::{
    domain::*,
    server::{Server, each},
};

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap().block_on(test);
}

#[test]
fn a_cluster_keeps_a_domain_in_one_slot() {
    each(|kind| {
        let server = Server::start_with(kind, &["--cluster-enabled", "yes"]);
        let mut beside = server.beside();
        beside.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
        while !beside
            .run::<String>(&["CLUSTER", "INFO"])
            .contains("cluster_state:ok")
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        run(async {
            let options = Options {
                cluster: true,
                ..options(&server)
            };
            let mut domain = Domain::new(&server, options, &[requests(1, 60)]).await;
            domain.send(1).await;
            assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
            domain.beside.run::<()>(&["SCRIPT", "FLUSH"]);
            assert_eq!(wait_of(&domain.ask(2).await), Some(60 * SECOND));
            domain.beside.run::<()>(&["FLUSHALL"]);
            domain.pass(0);
            let answer = domain.ask(3).await;
            assert!(matches!(answer, Answer::Learning(_)), "{answer:?}");
        });
    });
}
