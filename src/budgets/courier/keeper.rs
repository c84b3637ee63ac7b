//! The courier's task: cuts what must be cut, renews what is held, and sees whether the engine is there.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Notify,
    time::{sleep, timeout_at},
};

use super::{
    Inner, PATIENCE,
    standing::{Change, Told},
    teller,
};
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
        herald(&inner),
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
        let begun = inner.now();
        let next = match inner.renew(patience).await {
            Ok(forgot) => {
                pause = FIRST_PAUSE;
                patience = inner.timeout * PATIENCE;
                inner.is_up();
                inner.refresh().await;
                if forgot {
                    inner.renews_at(inner.now() + jittered(FIRST_PAUSE))
                } else {
                    inner.renews_after(begun)
                }
            }
            Err(lost) => {
                inner.is_lost(&lost);
                patience = inner.timeout;
                let next = inner.renews_at(inner.now() + jittered(pause));
                pause = (pause * 2).min(LAST_PAUSE);
                next
            }
        };
        inner.let_go_of_outlived();
        let sooner = inner.sleep(Some(next), &inner.renewing).await;
        if sooner && inner.standing().is_lost() {
            // One that answers this and not that is not asked on and on, and not by all pods at once.
            sleep(jittered(FIRST_PAUSE)).await;
        }
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
            // An answer was late. Whoever waits for it asks again, by another connection, and says so if there
            // is none then either.
            Linked::Down(Lost::Timeout) if inner.standing().is_up() => {}
            Linked::Down(lost) => inner.is_lost(&lost),
        }
    }
}

/// Tells the log and the budgets what has changed, in order: whoever notices it does not, since two who
/// notice might overtake one another.
async fn herald(inner: &Inner) {
    let mut told = Told::default();
    loop {
        let changes = inner.standing().changes(&mut told);
        for change in changes {
            inner.tell_change(change);
        }
        inner.news.notified().await;
    }
}

impl Inner {
    /// Until `until`, or until it is to be sooner; whether it was.
    async fn sleep(&self, until: Option<Duration>, sooner: &Notify) -> bool {
        let Some(until) = until else {
            sooner.notified().await;
            return true;
        };
        let until = self.clock.instant(Time::from_origin(until));
        timeout_at(until, sooner.notified()).await.is_ok()
    }

    /// Renews what is held; whether the engine forgot it, and has to be asked again. Whatever is late is cut
    /// first: should the process have been stopped, what the engine hears now must not keep it.
    pub(super) async fn renew(&self, patience: Duration) -> Result<bool, Lost> {
        for batch in self.shared.batches() {
            self.cut_late();
            let begun = self.now();
            let renewed = self.shared.prolong(&batch, patience).await;
            self.cut_late();
            let renewed = renewed?;
            if renewed.forgot {
                return Ok(true);
            }
            let cuts = {
                let mut state = self.state();
                state.book.prolonged(&renewed.prolonged, begun);
                state.book.over(&renewed.over)
            };
            cuts.tell();
        }
        Ok(false)
    }

    /// Cuts what is late; when the next will be.
    fn cut_late(&self) -> Option<Duration> {
        let now = self.now();
        let (cuts, next) = {
            let mut state = self.state();
            let (cuts, next) = state.book.fence(now);
            state.fence_at = next;
            (cuts, next)
        };
        cuts.tell();
        next
    }

    fn renews_at(&self, next: Duration) -> Duration {
        self.state().renew_at = Some(next);
        next
    }

    /// When to renew next after a renewal that began then.
    fn renews_after(&self, begun: Duration) -> Duration {
        let next = begun + self.life / 3;
        // In one step: whoever leaves now sees when it would be renewed.
        let mut state = self.state();
        let first = state.book.renew_by();
        let next = first.map_or(next, |first| first.min(next).max(begun + self.life / 15));
        state.renew_at = Some(next);
        next
    }

    fn let_go_of_outlived(&self) {
        let now = self.now();
        let outlived = self.state().book.outlived(now);
        for id in outlived {
            self.shared.let_go(id);
        }
        self.progress.notify_waiters();
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
        let (is_news, other) = {
            let mut standing = self.standing();
            let other = std::mem::replace(&mut standing.disagrees, disagrees) != disagrees;
            (standing.up(self.now()), other)
        };
        if is_news {
            self.news.notify_one();
            self.telling.notify_one();
        }
        let domain = &self.name;
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
        let is_news = self.standing().lost(self.now(), why);
        if is_news {
            self.news.notify_one();
        }
    }

    fn tell_change(&self, change: Change) {
        let domain = &self.name;
        let why = match change {
            Change::Up(after) => {
                tracing::info!(domain, ?after, "the engine of shared budgets is there");
                return self.hooks.engine_up();
            }
            Change::Lost(ref why) | Change::Refused(ref why) => why,
        };
        let meaning = match self.on_loss {
            OnLoss::Closed => "closed: attempts wait",
            OnLoss::LocalShare => "local_share: this pod sends within its share",
            OnLoss::Open => "open: limits are NOT strict",
        };
        tracing::warn!(domain, %why, on_loss = meaning, "the engine of shared budgets is lost");
        if matches!(change, Change::Lost(_)) {
            self.hooks.engine_lost(why);
        }
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
