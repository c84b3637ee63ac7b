//! The server's clock steps, either way and by any amount: no window is shortened, and nobody waits for it.

use redrive::{budgets::shared::*, limits::Weights};

use crate::{domain::*, server::with_each};

const HOUR: i64 = 3_600 * 1_000_000;
const STEPS: [i64; 6] = [5_000_000, -5_000_000, HOUR, -HOUR, 24 * HOUR, -24 * HOUR];

/// What is allowed for: calls and answers take their time.
const SLACK: u64 = 100_000;

/// One send in ten seconds.
async fn domain(server: &crate::server::Server) -> Domain {
    Domain::new(server, options(server), &[requests(1, 10)]).await
}

#[test]
fn a_step_neither_shortens_a_window_nor_makes_it_longer() {
    with_each(async |server| {
        for step in STEPS {
            let mut domain = domain(&server).await;
            domain.send(1).await;
            domain.pass(4 * SECOND);
            domain.step(step);
            domain.pods_know(Some(domain.now()));
            let denied = domain.ask(2).await;
            assert_eq!(wait_of(&denied), Some(6 * SECOND), "{step}");
            // From then on nobody needs to know.
            domain.pods_know(None);
            domain.pass(6 * SECOND - 1);
            assert_eq!(wait_of(&domain.ask(2).await), Some(1), "{step}");
            domain.pass(1);
            assert_eq!(domain.ask(2).await, Answer::Granted, "{step}");
        }
    });
}

#[test]
fn many_steps_add_up() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        for step in STEPS.into_iter().cycle().take(9) {
            domain.pass(SECOND);
            domain.step(step);
            domain.tell_the_time().await;
        }
        assert_eq!(wait_of(&domain.ask(2).await), Some(SECOND));
        domain.pass(SECOND);
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}

#[test]
fn time_never_runs_back_even_if_nobody_knows_what_it_is() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        domain.step(-HOUR);
        assert_eq!(wait_of(&domain.ask(2).await), Some(10 * SECOND));
        domain.pass(9 * SECOND);
        assert_eq!(wait_of(&domain.ask(2).await), Some(SECOND));
        let settled = domain.shared.settle(1.into(), Weights::default(), PATIENCE);
        assert_eq!(settled.await, Ok(Heard::Done));
        domain.pass(SECOND);
        assert_eq!(domain.ask(2).await, Answer::Granted);
    });
}

#[test]
fn time_runs_on_where_a_pod_says_that_it_did() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        // Nobody called for a while, and it stepped back by more than that.
        domain.pass(7 * SECOND);
        domain.step(-HOUR);
        domain.tell_the_time().await;
        assert_eq!(wait_of(&domain.ask(2).await), Some(3 * SECOND));
    });
}

#[test]
fn a_call_that_lay_around_holds_time_up_until_another_comes() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        let sent = domain.now();
        domain.pass(5 * SECOND);
        domain.pods_know(Some(sent + SECOND));
        assert_eq!(wait_of(&domain.ask(2).await), Some(9 * SECOND));
        domain.pods_know(Some(domain.now()));
        assert_eq!(wait_of(&domain.ask(2).await), Some(5 * SECOND));
    });
}

#[test]
fn calls_that_all_lie_around_hold_nothing_up_as_long_as_they_come() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        let sent = domain.now();
        for _ in 0..20 {
            domain.pass(SLACK);
            // Ever the same: all lay around since then.
            domain.pods_know(Some(sent));
            domain.status(&[]).await;
        }
        assert_eq!(wait_of(&domain.ask(2).await), Some(8 * SECOND));
    });
}

#[test]
fn what_was_known_of_another_epoch_says_nothing() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.beside.run::<()>(&["FLUSHALL"]);
        domain.step(-HOUR);
        domain.pods_know(Some(domain.now()));
        // The first call begins one, by the server's own clock.
        domain.status(&[]).await;
        let now = domain.now();
        let key = domain.key("meta");
        let since: u64 = domain.beside.run(&["HGET", &key, "since"]);
        assert_eq!(since, now.checked_add_signed(-HOUR).unwrap());
    });
}

#[test]
fn another_server_with_another_clock_takes_up_the_same_time() {
    with_each(async |mut server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        domain.beside.run::<()>(&["SAVE"]);
        server.kill();
        server.start_again();
        domain.beside = server.beside();
        domain.pass(SECOND);
        domain.step(HOUR);
        domain.pods_know(Some(domain.now()));
        // Else its lease would be over, and its send be cut.
        assert_eq!(domain.status(&[0]).await.budgets[0].running, 1);
        let renewed = domain.shared.renew(PATIENCE).await;
        assert_eq!(renewed, Ok(Vec::new()));
    });
}

#[test]
fn one_who_knows_nothing_believes_the_server() {
    with_each(async |server| {
        let mut domain = domain(&server).await;
        domain.send(1).await;
        domain.step(4_000_000);
        assert_eq!(wait_of(&domain.ask(2).await), Some(6 * SECOND));
        // Who knew it before does not turn it back.
        domain.tell_the_time().await;
        assert_eq!(wait_of(&domain.ask(2).await), Some(6 * SECOND));
    });
}
