//! One budget: its log, its concurrent sends, its day, and the rest a provider asked for.

use super::{
    Day, Micros,
    acquire::Ahead,
    log::Log,
    settings::{DailyLimit, Measure, Settings, WindowLimit},
    weights::Weights,
};

/// Which limit of a budget stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A sliding window.
    Window(WindowLimit),
    /// So many sends at a time.
    Concurrent(u64),
    /// A calendar day.
    Daily(DailyLimit),
    /// The provider said when to come back, or that nothing remains until then.
    Cooldown,
    /// After a cooldown: one send at first, to see whether it is over.
    Probe,
}

/// Why a send is not granted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What stands in the way.
    pub limit: Limit,
    /// When it fits at the latest, unless others come first; unknown where it depends on when a running
    /// send ends.
    pub until: Option<Micros>,
}

/// A rest that a provider asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    None,
    /// Nothing is granted before this time, then one probe.
    Until(Micros),
    /// The probe is under way.
    Probing(u64),
}

/// The state of one budget.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) settings: Settings,
    pub(super) log: Log,
    running: u64,
    day: Day,
    /// Of this day's sends, and of everything unsent: it may still be sent on this day.
    today: [u64; 3],
    rest: Rest,
    /// No headroom is left at the provider until then, by its own word.
    brake: Micros,
    pub(super) overruns: u64,
}

impl Budget {
    pub(super) fn new(settings: Settings) -> Self {
        let log = Log::new(&settings.windows, settings.margin);
        Self {
            settings,
            log,
            running: 0,
            day: Day::default(),
            today: [0; 3],
            rest: Rest::None,
            brake: 0,
            overruns: 0,
        }
    }

    /// The first limit that `weights` can never fit.
    pub(super) fn never_fits(&self, weights: Weights) -> Option<Limit> {
        let window = self.log.never_fits(weights).map(Limit::Window);
        let daily = self.settings.daily.iter().copied();
        let mut daily = daily.filter(|daily| weights.of(daily.measure) > daily.limit);
        let none = self
            .settings
            .concurrent
            .filter(|concurrent| *concurrent == 0);
        window
            .or_else(|| daily.next().map(Limit::Daily))
            .or_else(|| none.map(Limit::Concurrent))
    }

    /// Whether one more send fits now; changes nothing but what has expired.
    pub(super) fn check(
        &mut self,
        now: Micros,
        day: Day,
        weights: Weights,
        last_send_by: Micros,
    ) -> Result<(), Full> {
        self.turn(day);
        let mut full: Option<Full> = None;
        let mut note = |limit: Limit, until: Option<Micros>| {
            let later = match (&full, until) {
                (None, _) => true,
                (Some(other), Some(until)) => other.until.is_none_or(|other| other < until),
                (Some(_), None) => false,
            };
            if later {
                full = Some(Full { limit, until });
            }
        };
        match self.rest {
            Rest::Until(until) if now < until => note(Limit::Cooldown, Some(until)),
            Rest::Probing(_) => note(Limit::Probe, None),
            _ => {}
        }
        if now < self.brake {
            note(Limit::Cooldown, Some(self.brake));
        }
        if let Err(window) = self.log.check(now, weights, last_send_by) {
            note(Limit::Window(window.limit), Some(window.until));
        }
        for daily in &self.settings.daily {
            let used = self.today[daily.measure as usize];
            if used + weights.of(daily.measure) > daily.limit {
                note(Limit::Daily(*daily), Some(day.ends));
            }
        }
        if let Some(concurrent) = self.settings.concurrent
            && self.running >= concurrent
        {
            note(Limit::Concurrent(concurrent), None);
        }
        full.map_or(Ok(()), Err)
    }

    /// A lower bound of when `weights` fit after those `ahead`; nothing if that depends on when a running
    /// send ends, and on nothing else.
    pub(super) fn earliest(
        &mut self,
        now: Micros,
        day: Day,
        weights: Weights,
        ahead: Ahead,
    ) -> Option<Micros> {
        self.turn(day);
        if self.never_fits(weights).is_some() {
            return Some(Micros::MAX);
        }
        let mut earliest = self.log.earliest(now, weights, ahead).max(self.brake);
        let mut unknown = false;
        match self.rest {
            Rest::Until(until) => earliest = earliest.max(until),
            Rest::Probing(_) => unknown = true,
            Rest::None => {}
        }
        let unsent = self.log.unsent();
        for daily in &self.settings.daily {
            let measure = daily.measure as usize;
            let used = self.today[measure].saturating_sub(unsent[measure]);
            let need = ahead
                .of(daily.measure)
                .saturating_add(weights.of(daily.measure));
            if used.saturating_add(need) > daily.limit {
                earliest = earliest.max(self.day.ends);
            }
        }
        let running = self.running.saturating_add(ahead.requests);
        unknown |= self.settings.concurrent.is_some_and(|most| running >= most);
        (!unknown || earliest > now).then_some(earliest)
    }

    /// Whether a send still counts wherever it counted at first.
    pub(super) fn counts(&mut self, now: Micros, (number, day): (u64, i64)) -> bool {
        let same_day = day == self.day.number && now < self.day.ends;
        self.log.counts(now, number) && (self.settings.daily.is_empty() || same_day)
    }

    /// A send did not happen: its lease counts as unsent again.
    pub(super) fn unsend(&mut self, (number, day): (u64, i64), weights: Weights) {
        self.log.unsend(number, weights);
        if day != self.day.number {
            for measure in Measure::ALL {
                self.today[measure as usize] += weights.of(measure);
            }
        }
    }

    /// Another day begins with what is unsent.
    fn turn(&mut self, day: Day) {
        if day.number > self.day.number {
            self.today = self.log.unsent();
        }
        if day.number >= self.day.number {
            self.day = day;
        }
    }

    /// A lease was sent; the number of its entry and the day.
    pub(super) fn sent(&mut self, now: Micros, weights: Weights) -> (u64, i64) {
        // Since its grant, which told the day, at most one midnight has passed.
        if now >= self.day.ends {
            let number = self.day.number + 1;
            self.turn(Day {
                number,
                ends: Micros::MAX,
            });
        }
        (self.log.sent(now, weights), self.day.number)
    }

    pub(super) fn grant(&mut self, now: Micros, lease: u64, weights: Weights) {
        self.log.grant(weights);
        self.running += 1;
        for measure in Measure::ALL {
            self.today[measure as usize] += weights.of(measure);
        }
        if matches!(self.rest, Rest::Until(until) if until <= now) {
            self.rest = Rest::Probing(lease);
        }
    }

    /// A lease that was never sent goes back as if it had not been.
    pub(super) fn give_back(&mut self, now: Micros, lease: u64, weights: Weights) {
        self.log.give_back(weights);
        self.running = self.running.saturating_sub(1);
        for measure in Measure::ALL {
            let today = &mut self.today[measure as usize];
            *today = today.saturating_sub(weights.of(measure));
        }
        if self.rest == Rest::Probing(lease) {
            // The probe proved nothing: the next one is.
            self.rest = Rest::Until(now);
        }
    }

    /// The send of a lease is over.
    pub(super) fn settle(
        &mut self,
        now: Micros,
        lease: u64,
        (number, day): (u64, i64),
        reserved: Weights,
        actual: Weights,
    ) {
        let kept = reserved.after_refund(actual, self.settings.refund);
        self.log.lower(number, kept);
        let overrun = reserved.overrun(actual);
        if !overrun.is_zero() {
            self.overruns += 1;
            self.log.overrun(now, overrun);
        }
        if day == self.day.number {
            for measure in [Measure::InputTokens, Measure::OutputTokens] {
                let today = &mut self.today[measure as usize];
                *today = today.saturating_sub(reserved.of(measure) - kept.of(measure));
                *today += overrun.of(measure);
            }
        }
        self.running = self.running.saturating_sub(1);
        if self.rest == Rest::Probing(lease) {
            self.rest = Rest::None;
        }
    }

    /// The provider asked not to be asked before `until`.
    pub(super) fn penalise(&mut self, until: Micros) {
        self.rest = match self.rest {
            Rest::Until(other) => Rest::Until(other.max(until)),
            Rest::None | Rest::Probing(_) => Rest::Until(until),
        };
    }

    /// The provider has no headroom left before `until`.
    pub(super) fn brake(&mut self, until: Micros) {
        self.brake = self.brake.max(until);
    }

    pub(super) fn running(&self) -> u64 {
        self.running
    }

    /// How much of each daily limit is used.
    pub(super) fn used_today(&mut self, day: Day) -> impl Iterator<Item = (DailyLimit, u64)> {
        self.turn(day);
        let today = self.today;
        let limits = self.settings.daily.iter();
        limits.map(move |limit| (*limit, today[limit.measure as usize]))
    }
}
