//! The courier's task: cuts what must be cut, renews what is held, and sees whether the engine is there.

use std::{sync::Arc, time::Duration};

use super::{Inner, PATIENCE, teller};
use crate::{
    budgets::shared::{Linked, Lost, Server},
    config::OnLoss,
    recovery::Time,
};

/// Pauses between renewals that got no answer double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// The first renewal waits for the connection as well.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);

/// For as long as it is polled. In this order: whoever wakes up late cuts first.
pub(super) async fn keep(inner: Arc<Inner>) {
    tokio::join!(
        biased;
        fence(&inner),
        renew(&inner),
        watch(&inner),
        teller::tell(&inner),
    );
}

/// Cuts sends when their time has come.
async fn fence(inner: &Inner) {
    loop {
        let next = inner.cut_late();
        inner.sleep(next, &inner.fencing).await;
    }
}

/// Renews what is held, three times in a life; without an answer again soon.
async fn renew(inner: &Inner) {
    let mut pause = FIRST_PAUSE;
    let mut patience = FIRST_PATIENCE.max(inner.timeout * PATIENCE);
    loop {
        // Should the process have been stopped, nothing that is too late lives on.
        inner.cut_late();
        let begun = inner.now();
        let renewed = inner.shared.prolong(patience).await;
        inner.cut_late();
        let cuts = {
            let mut desk = inner.desk();
            desk.book.prolonged(&renewed.prolonged, begun);
            desk.book.over(&renewed.over)
        };
        cuts.tell();
        let next = match &renewed.lost {
            None => {
                pause = FIRST_PAUSE;
                patience = inner.timeout * PATIENCE;
                inner.is_up();
                inner.refresh().await;
                inner.next_renewal(begun)
            }
            Some(lost) => {
                inner.is_lost(lost);
                patience = inner.timeout;
                let next = inner.now() + jittered(pause);
                pause = (pause * 2).min(LAST_PAUSE);
                next
            }
        };
        inner.let_go_of_outlived();
        inner.desk().renew_at = Some(next);
        inner.sleep(Some(next), &inner.renewing).await;
    }
}

/// Hears of each new connection, and of its end.
async fn watch(inner: &Inner) {
    let mut watch = inner.shared.watch();
    while let Some(linked) = watch.changed().await {
        match linked {
            Linked::To(server) => {
                inner.meets(server);
                if !inner.standing().is_up() {
                    inner.renewing.notify_one();
                }
            }
            Linked::Down(lost) => inner.is_lost(&lost),
        }
    }
}

impl Inner {
    /// Until `until`, or until it is to be sooner.
    async fn sleep(&self, until: Option<Duration>, sooner: &tokio::sync::Notify) {
        let Some(until) = until else {
            return sooner.notified().await;
        };
        tokio::select! {
            () = sooner.notified() => {}
            () = tokio::time::sleep_until(self.clock.instant(Time::from_origin(until))) => {}
        }
    }

    /// Cuts what is late; when the next will be.
    fn cut_late(&self) -> Option<Duration> {
        let now = self.now();
        let (cuts, next) = {
            let mut desk = self.desk();
            let (cuts, next) = desk.book.fence(now);
            desk.fence_at = next;
            (cuts, next)
        };
        cuts.tell();
        next
    }

    /// When to renew next after a renewal that began then.
    fn next_renewal(&self, begun: Duration) -> Duration {
        let next = begun + self.life / 3;
        let first = self.desk().book.renew_by();
        first.map_or(next, |first| first.min(next).max(begun + self.life / 15))
    }

    fn let_go_of_outlived(&self) {
        let now = self.now();
        let outlived = self.desk().book.outlived(now);
        for id in outlived {
            self.shared.let_go(id);
        }
    }

    /// There is a new connection.
    fn meets(&self, server: Server) {
        let (domain, name, version) = (&self.name, &server.name, &server.version);
        tracing::info!(
            domain,
            server = name,
            version,
            "connected to the engine of shared budgets"
        );
        for warning in server.warnings() {
            tracing::warn!(domain, "the engine of shared budgets: {warning}");
        }
        self.standing().server = Some(server);
    }

    /// Leases were renewed.
    fn is_up(&self) {
        let disagrees = self.shared.disagrees();
        let (news, other) = {
            let mut standing = self.standing();
            let other = std::mem::replace(&mut standing.disagrees, disagrees) != disagrees;
            (standing.up(self.now()), other)
        };
        let domain = &self.name;
        if let Some(after) = news {
            tracing::info!(domain, ?after, "the engine of shared budgets is there");
            self.hooks.engine_up();
            self.telling.notify_one();
        }
        match (other, disagrees) {
            (false, _) => {}
            (true, true) => tracing::warn!(
                domain,
                "pods with other limits are at work: the stricter of both count"
            ),
            (true, false) => tracing::info!(domain, "all pods have the same limits"),
        }
    }

    /// Something that was asked got no answer.
    pub(super) fn is_lost(&self, why: &Lost) {
        if !self.standing().lost(self.now(), why) {
            return;
        }
        let meaning = match self.on_loss {
            OnLoss::Closed => "closed: attempts wait",
            OnLoss::LocalShare => "local_share: this pod sends within its share",
            OnLoss::Open => "open: limits are NOT strict",
        };
        let domain = &self.name;
        tracing::warn!(domain, %why, on_loss = meaning, "the engine of shared budgets is lost");
        self.hooks.engine_lost(why);
        self.renewing.notify_one();
    }
}

/// Half of `pause`, and up to half more: pods must not all come back at once.
fn jittered(pause: Duration) -> Duration {
    let half = pause / 2;
    // The low bits of an id are random.
    let (_, random) = uuid::Uuid::now_v7().as_u64_pair();
    let share = (random & 0xffff) as f64 / 65_536.0;
    half + half.mul_f64(share)
}
