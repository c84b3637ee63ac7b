//! IO. Budgets that several processes share, kept by a Redis or Valkey server.
//!
//! What is granted is what [`crate::limits`] would grant: the script that runs in the server does the same,
//! in one call, for all budgets of a [`Shared`] domain at once (`script/domain.lua` says how it is kept).
//! What the distance changes:
//!
//! - The clock is the server's. It never runs back, and where it steps, the pods' own say how much time can
//!   have passed.
//! - A send is told after it left, so it counts from a little later than it did, and until then in full. The
//!   pod itself sees to it that nothing leaves after its time ([`Shared::leave`]).
//! - An answer may be lost. Everything can be asked again: a lease is named by who asks for it.
//! - A pod may fall silent. Its leases end after a life; what was not told as sent counts as sent then.
//! - The server may forget. Then nothing of a budget is granted for as long as what was sent before may
//!   matter to it ([`Answer::Learning`]), and pods tell what they hold again.
//! - Pods may disagree while a configuration is rolled out: the stricter of both counts.

mod answer;
mod call;
mod client;
mod door;
mod error;
mod greeting;
mod keys;
mod ledger;
mod options;
mod sentinel;
mod server;
mod today;
mod told;
mod verbs;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::AbortHandle, time::timeout};

use self::{
    answer::{Head, Reader},
    call::Call,
    client::{Connection, Link},
    door::Door,
    keys::Keys,
    ledger::Ledger,
    told::Told,
};
pub use self::{
    client::{Linked, Watch},
    error::{Lost, Refused},
    options::{BadOptions, Options},
    server::Server,
    today::Today,
};
use super::engine::micros;
use crate::{
    clock::Clock,
    config::EnginePlace,
    limits::{Account, BudgetId, Limit, Settings, Weights},
};

/// How long is paused before what got no answer is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// How many leases one call renews or replays.
const BATCH: usize = 100;

/// Names a lease: 128 bits that nobody else chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u128);

impl Id {
    /// One that was never used.
    pub fn random() -> Self {
        Self(uuid::Uuid::now_v7().as_u128())
    }
}

impl From<u128> for Id {
    fn from(id: u128) -> Self {
        Self(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What one attempt needs.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The lease, if it is granted. The same one asks for the same.
    pub lease: Id,
    /// What it takes part of; each once. One that is unknown counts not at all.
    pub budgets: &'a [BudgetId],
    /// The day of each of `budgets`; those that have no caps of a day need none.
    pub days: &'a [Today],
    /// What it takes at most.
    pub tokens: Weights,
    /// How long after now it leaves at the latest; not more than [`Options::longest_unsent`].
    pub send_within: Duration,
    /// Whose turn it has to be.
    pub turn: Option<Turn<'a>>,
}

/// Whom those who ask stand in line with: flows of a budget are served in turn, across pods.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The budget that is shared fairly: one of those that are asked for.
    pub budget: BudgetId,
    /// The value of the label.
    pub flow: &'a str,
    /// Its share, from 1.
    pub weight: u32,
    /// Whether others of the flow wait behind it in this pod, and ask as soon as it is granted.
    pub more: bool,
}

/// What the engine says to one who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It may leave.
    Granted,
    /// It does not fit now.
    Denied {
        /// The budget that frees up last.
        budget: BudgetId,
        /// Which of its limits.
        limit: Limit,
        /// For how long at least, if nothing is given back before; unknown where it depends on others' sends.
        wait: Option<Duration>,
    },
    /// It fits, and it is another flow's turn that waits for the same.
    Turn {
        /// The budget that is shared fairly.
        budget: BudgetId,
        /// When to ask again at the latest: it may be its turn before.
        wait: Duration,
    },
    /// It never fits.
    Never {
        /// The budget that is too small.
        budget: BudgetId,
        /// Which of its limits.
        limit: Limit,
    },
    /// The engine does not know what it granted before.
    Learning {
        /// The budget of which that matters the longest.
        budget: BudgetId,
        /// For how long nothing of it is granted.
        wait: Duration,
    },
    /// It was granted before, and is over.
    Over,
}

/// What became of what was told of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is so.
    Done,
    /// The lease was over before.
    Over,
    /// It no longer counts wherever it must: it must not leave again.
    Refused,
    /// The engine does not know it: it forgot, and will be told again.
    Unknown,
}

/// Leases that one call renews.
#[derive(Clone, Debug)]
pub struct Batch(Box<[(Id, u64)]>);

/// What became of leases that were renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    /// Had left, and live for a whole life again, from some time after the call began.
    pub prolonged: Vec<Id>,
    /// Are over, and held no longer.
    pub over: Vec<Id>,
    /// The engine forgot what it knew, and is told again: to be asked again then.
    pub forgot: bool,
}

/// What a domain's budgets are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What was done with leases since the epoch began.
    pub account: Account,
    /// The budgets that were asked for, in order.
    pub budgets: Vec<BudgetStatus>,
}

/// What one budget is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetStatus {
    /// Sends that run, or may.
    pub running: u64,
    /// Sends that are remembered.
    pub entries: u64,
    /// How often one took more than was reserved.
    pub overruns: u64,
    /// For how long nothing is granted yet: what was before the epoch may still matter.
    pub learning: Duration,
    /// For how long it rests yet, by a provider's word to any pod.
    pub rests: Duration,
    /// How much of each window, then of each day's cap, is used; in the configuration's order.
    pub used: Vec<u64>,
}

/// The budgets of one domain: whatever one attempt takes part of must be in one. Dropping it ends the
/// connection.
pub struct Shared {
    inner: Arc<Inner>,
    keeper: AbortHandle,
}

struct Inner {
    clock: Clock,
    options: Options,
    keys: Keys,
    told: Told,
    link: Link,
    ledger: Mutex<Ledger>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = &self.inner.keys;
        f.debug_struct("Shared")
            .field("keys", keys)
            .finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Shared {
    /// The budgets of `domain`, known by their place in `settings`. Connects in the background, and again
    /// when the connection breaks. To be called inside a runtime.
    ///
    /// # Errors
    /// [`BadOptions`]; whether the engine is there is not looked at.
    pub fn connect(
        clock: Clock,
        options: Options,
        domain: &str,
        settings: &[Settings],
    ) -> Result<Self, BadOptions> {
        let keys = Keys::of(domain).ok_or_else(|| BadOptions::Name(domain.into()))?;
        let mut names = settings.iter().map(|settings| settings.name.as_str());
        // The same rules: they are words of the script's.
        let bad = names.find(|name| Keys::of(name).is_none());
        let bad = bad.or_else(|| Keys::of(&options.pod).is_none().then_some(&*options.pod));
        if let Some(bad) = bad {
            return Err(BadOptions::Name(bad.into()));
        }
        if options.life.is_zero() || options.timeout.is_zero() {
            return Err(BadOptions::Zero);
        }
        let door = Door::new(&options)?;
        let inner = Arc::new(Inner {
            clock,
            told: Told::new(settings, &options),
            keys,
            link: Link::new(),
            ledger: Mutex::default(),
            options,
        });
        let keeper = tokio::spawn(client::keep(Arc::clone(&inner), door));
        Ok(Self {
            inner,
            keeper: keeper.abort_handle(),
        })
    }

    /// The server, while it is connected.
    pub fn server(&self) -> Option<Server> {
        self.inner.link.server()
    }

    /// Why there is no connection; `None` while there is one.
    pub fn down(&self) -> Option<Lost> {
        self.inner.link.down()
    }

    /// Waits for changes of the connection.
    pub fn watch(&self) -> Watch {
        self.inner.link.watch()
    }

    /// The engine's clock since the Unix epoch, once it was heard: what days are to be told by.
    pub fn engine_now(&self) -> Option<Duration> {
        let now = self.inner.now();
        self.inner.ledger().engine_now(now)
    }

    /// Whether other pods were last seen with another configuration: the stricter of both counts then.
    pub fn disagrees(&self) -> bool {
        self.inner.ledger().disagrees
    }

    /// How many leases are held.
    pub fn held(&self) -> usize {
        self.inner.ledger().held.len()
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.clock.now().since_origin()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks until there is an answer, or `patience` is over; once at least, and no longer than the time-out
    /// then.
    async fn ask(&self, call: &Call, patience: Duration) -> Result<(Head, Reader), Lost> {
        let timeout = self.options.timeout;
        let ends = self.now().saturating_add(patience.max(timeout));
        loop {
            let left = ends.saturating_sub(self.now());
            let lost = match self.ask_once(call, timeout.min(left)).await {
                Ok(answer) => return Ok(answer),
                Err(lost) => lost,
            };
            if !self.may_pass(&lost) || self.now().saturating_add(PAUSE) >= ends {
                return Err(lost);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether the same may be asked again at once. Sentinels may name another server the next time.
    fn may_pass(&self, lost: &Lost) -> bool {
        let fails_over = matches!(self.options.place, EnginePlace::Sentinel { .. });
        lost.may_pass() || fails_over && *lost == Lost::Refused(Refused::ReadOnly)
    }

    async fn ask_once(&self, call: &Call, within: Duration) -> Result<(Head, Reader), Lost> {
        let mut used = None;
        let asking = async {
            let connection = self.link.connection().await?;
            let (connection, _) = used.insert((connection, self.now()));
            self.ask_by(connection, call).await
        };
        let answer = match timeout(within, asking).await {
            Ok(answer) => answer,
            Err(_) => Err(self.link.down().unwrap_or(Lost::Timeout)),
        };
        match &answer {
            Ok((head, _)) => {
                if head.untold || head.epoch != self.ledger().epoch {
                    self.link.greet_again();
                }
            }
            Err(lost) => {
                if let Some((connection, since)) = used.filter(|_| lost.of_the_connection()) {
                    // One who had little time left says nothing of the connection.
                    let waited = self.now().saturating_sub(since) + PAUSE >= self.options.timeout;
                    if waited || *lost != Lost::Timeout {
                        self.link.is_broken(&connection, lost);
                    }
                }
            }
        }
        answer
    }

    async fn ask_by(&self, connection: &Connection, call: &Call) -> Result<(Head, Reader), Lost> {
        let life = micros(self.options.life);
        let script = &self.options.script;
        let known = self.ledger().known(self.now(), self.options.timeout);
        let asked = connection.ask(call, &self.keys, &self.told, life, script, &known);
        let answer = Reader::open(asked.await?)?;
        let mut ledger = self.ledger();
        ledger.hear(&answer.0.epoch, answer.0.now, self.now());
        ledger.disagrees = answer.0.other_revision;
        drop(ledger);
        Ok(answer)
    }

    /// The name and the limits of each budget, with its day, as the script is told them.
    fn say_budgets(&self, mut call: Call, budgets: &[BudgetId], days: &[Today]) -> Call {
        let known = budgets.iter().enumerate().filter_map(|(place, &budget)| {
            let (name, line) = self.told.budgets.get(budget)?;
            Some((name, line, days.get(place).copied().unwrap_or_default()))
        });
        let known: Vec<_> = known.collect();
        call = call.say(known.len());
        for (name, line, day) in known {
            call = call.say(name).say(line);
            call = call.say(day.number).say(day.starts).say(day.ends);
        }
        call
    }
}
