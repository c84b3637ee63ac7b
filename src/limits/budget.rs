//! One budget: its log, its concurrent sends, its day, and the rest a provider asked for.

use super::{
    Day, Micros,
    calendar::{Calendar, Days},
    forecast::Ahead,
    log::Log,
    rest::Rest,
    settings::{DailyLimit, Measure, Settings, WindowLimit},
    tally::Tally,
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
    /// When it fits if nothing else is granted, no running send gives tokens back and every unsent lease
    /// is sent at the last moment; unknown where it depends on when a running send ends. With no unsent
    /// lease it is exact.
    pub until: Option<Micros>,
}

impl Full {
    /// Whether this ends later than `other`; what is unknown ends before what is known.
    pub(super) fn later_than(&self, other: Option<&Full>) -> bool {
        other.is_none_or(|other| self.until > other.until)
    }
}

/// Where the send of a lease is counted in one budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of its entry in the log.
    number: u64,
    days: Days,
}

/// The state of one budget.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    pub(super) settings: Settings,
    log: Log,
    calendar: Calendar,
    running: u64,
    rest: Rest,
    overruns: u64,
}

impl Budget {
    pub(super) fn new(settings: Settings, most: usize) -> Self {
        let log = Log::new(&settings.windows, settings.margin, settings.refund, most);
        Self {
            settings,
            log,
            calendar: Calendar::default(),
            running: 0,
            rest: Rest::default(),
            overruns: 0,
        }
    }

    /// The first limit that `weights` can never fit.
    pub(super) fn never_fits(&self, weights: Weights) -> Option<Limit> {
        let window = self.log.never_fits(weights).map(Limit::Window);
        let daily = self.settings.daily.iter().copied();
        let mut daily = daily.filter(|daily| weights.of(daily.measure) > daily.limit);
        let concurrent = self.settings.concurrent;
        let none = concurrent.filter(|concurrent| *concurrent == 0);
        window
            .or_else(|| daily.next().map(Limit::Daily))
            .or_else(|| none.map(Limit::Concurrent))
    }

    /// Whether one more send fits now; changes nothing but what is past.
    pub(super) fn check(
        &mut self,
        now: Micros,
        day: Day,
        weights: Weights,
        last_send_by: Micros,
    ) -> Result<(), Full> {
        self.calendar.turn(day);
        let mut full: Option<Full> = None;
        let mut note = |limit: Limit, until: Option<Micros>| {
            let this = Full { limit, until };
            if this.later_than(full.as_ref()) {
                full = Some(this);
            }
        };
        if let Some(until) = self.rest.until(now) {
            note(Limit::Cooldown, Some(until));
        }
        if self.rest.is_probing() {
            note(Limit::Probe, None);
        }
        if let Err(window) = self.log.check(now, weights, self.running, last_send_by) {
            note(Limit::Window(window.limit), Some(window.until));
        }
        for daily in &self.settings.daily {
            let more = u128::from(weights.of(daily.measure));
            let used = self.today(now, daily.measure).sum;
            if more > 0 && used + more > daily.limit.into() {
                let until = self.calendar.ends().max(now.saturating_add(1));
                note(Limit::Daily(*daily), Some(until));
            }
        }
        if let Some(concurrent) = self.settings.concurrent
            && self.running >= concurrent
        {
            note(Limit::Concurrent(concurrent), None);
        }
        full.map_or(Ok(()), Err)
    }

    /// A lower bound of when `weights` fit after those `ahead`, whatever unsent leases and running sends
    /// give back.
    pub(super) fn earliest(&mut self, now: Micros, weights: Weights, ahead: Ahead) -> Micros {
        let ahead = |measure| ahead.of(measure);
        let own = |measure| weights.of(measure);
        let mut earliest = self.log.earliest(now, own, ahead);
        earliest = earliest.max(self.rest.until(now).unwrap_or(now));
        for daily in &self.settings.daily {
            let ahead = Tally::open(ahead(daily.measure), daily.measure, self.settings.refund).firm;
            let need = ahead + u128::from(own(daily.measure));
            let used = self.calendar.sent(now, daily.measure).firm;
            if need > 0 && used + need > daily.limit.into() {
                earliest = earliest.max(self.calendar.ends());
            }
        }
        earliest
    }

    /// Sent today, and unsent: it may still be sent today.
    fn today(&self, now: Micros, measure: Measure) -> Tally {
        let mut today = self.calendar.sent(now, measure);
        today.sum = today.sum.saturating_add(self.log.unsent(measure));
        today
    }

    pub(super) fn grant(&mut self, now: Micros, lease: u64, weights: Weights) {
        self.log.grant(weights);
        self.running += 1;
        self.rest.grant(now, lease);
    }

    /// A lease was sent.
    pub(super) fn sent(&mut self, now: Micros, weights: Weights) -> Place {
        let Settings { margin, refund, .. } = self.settings;
        Place {
            number: self.log.sent(now, weights),
            days: self.calendar.add(now, margin, weights, refund),
        }
    }

    /// Whether a send can be taken back: it counts wherever it counted at first.
    pub(super) fn recalls(&mut self, now: Micros, place: Place) -> bool {
        self.log.recalls(now, place.number, self.running)
            && (self.settings.daily.is_empty() || self.calendar.counts(place.days))
    }

    /// A send did not happen: its lease is unsent again.
    pub(super) fn take_back(&mut self, place: Place, weights: Weights) {
        self.log.take_back(place.number);
        self.log.grant(weights);
        let refund = self.settings.refund;
        self.calendar.take_back(place.days, weights, refund);
    }

    /// A lease that was never sent goes back as if it had not been.
    pub(super) fn give_back(&mut self, now: Micros, lease: u64, weights: Weights) {
        self.log.give_back(weights);
        self.running = self.running.saturating_sub(1);
        self.rest.over(now, lease, false);
    }

    /// The send of a lease is over. If it is `known` how, a probe has shown that the rest is over.
    pub(super) fn settle(
        &mut self,
        now: Micros,
        lease: u64,
        place: Place,
        reserved: Weights,
        actual: Option<Weights>,
    ) {
        let refund = self.settings.refund;
        let known = actual.is_some();
        let actual = actual.unwrap_or(reserved);
        let kept = reserved.after_refund(actual, refund);
        // Of what is not limited here nothing had to be reserved.
        let overrun = reserved.overrun(actual);
        let overrun = overrun.only(|measure| self.settings.limits(measure));
        self.log.close(place.number, kept);
        self.calendar
            .close(place.days, refund, reserved, kept, overrun);
        if !overrun.is_zero() {
            self.overruns += 1;
            self.log.overrun(now, overrun);
        }
        self.running = self.running.saturating_sub(1);
        self.rest.over(now, lease, known);
    }

    /// The answer to a lease's send has begun; whether that ended a rest.
    pub(super) fn answered(&mut self, now: Micros, lease: u64) -> bool {
        self.rest.over(now, lease, true)
    }

    /// The provider asked not to be asked before `until`.
    pub(super) fn penalise(&mut self, until: Micros) {
        self.rest.penalise(until);
    }

    /// The provider has no headroom left before `until`.
    pub(super) fn brake(&mut self, until: Micros) {
        self.rest.brake(until);
    }

    /// How many sends run, how many are remembered, and how often one took more than was reserved.
    pub(super) fn gauges(&self) -> (u64, usize, u64) {
        (self.running, self.log.len(), self.overruns)
    }

    /// How much of each limit is used.
    pub(super) fn used(&mut self, now: Micros, day: Day) -> Vec<(Limit, u64)> {
        self.calendar.turn(day);
        let daily = self.settings.daily.iter().map(|daily| {
            let used = self.today(now, daily.measure).sum;
            (Limit::Daily(*daily), used)
        });
        let daily: Vec<_> = daily.collect();
        let windows = self.log.used(now);
        let all = windows.map(|(limit, used)| (Limit::Window(limit), used));
        let all = all.chain(daily);
        all.map(|(limit, used)| (limit, u64::try_from(used).unwrap_or(u64::MAX)))
            .collect()
    }
}
