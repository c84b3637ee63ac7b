//! An account that is too simple to be wrong: a list of all that happened, added up anew each time.

use proptest::prelude::*;
use redrive::limits::*;

/// By how much a send may arrive later than it left.
pub const MARGIN: Micros = 50;

/// A calendar day, short enough to see several.
pub const DAY: Micros = 5_000;

/// How many budgets there are.
pub const BUDGETS: usize = 3;

/// The day of a time.
pub fn day(now: Micros) -> Day {
    let number = now / DAY;
    Day {
        number: number as i64 + 1,
        ends: (number + 1) * DAY,
    }
}

/// Everything about a lease, for ever.
#[derive(Clone, Debug)]
pub struct Known {
    pub id: LeaseId,
    pub which: Vec<usize>,
    pub reserved: Weights,
    pub send_by: Micros,
    pub ends: Option<Micros>,
    /// When it was sent, and at which step.
    pub sent: Option<(Micros, usize)>,
    pub over: bool,
    /// Over unsent: `true` if its time had passed.
    pub unsent: Option<bool>,
    /// What the provider says it took, and when that was known.
    pub actual: Option<(Micros, Weights)>,
}

impl Known {
    fn held_unsent(&self) -> bool {
        !self.over && self.sent.is_none()
    }

    fn of(&self, measure: Measure, refund: Refund) -> u64 {
        let reserved = self.reserved.of(measure);
        let refunded = match measure {
            Measure::Requests => false,
            Measure::InputTokens => refund != Refund::Never,
            Measure::OutputTokens => refund == Refund::All,
        };
        match self.actual {
            Some((_, actual)) if refunded => reserved.min(actual.of(measure)),
            _ => reserved,
        }
    }

    /// What came on top, and when.
    fn on_top(&self, measure: Measure) -> Option<(Micros, u64)> {
        let (at, actual) = self.actual?;
        let more = actual.of(measure).saturating_sub(self.reserved.of(measure));
        (measure != Measure::Requests).then_some((at, more))
    }

    /// What of it is sure to stay whatever becomes of it.
    fn sure(&self, measure: Measure, refund: Refund) -> u64 {
        let zero = Weights::default();
        let lowest = Self {
            actual: self.actual.or((!self.over).then_some((0, zero))),
            ..self.clone()
        };
        lowest.of(measure, refund)
    }
}

/// How a denied acquire has to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Until the latest of the times that are known.
    pub until: Option<Micros>,
    /// For a running send to end, too.
    pub unknown: bool,
}

impl Waits {
    fn note(&mut self, until: Micros) {
        self.until = self.until.max(Some(until));
    }
}

/// The account, and what it is held against.
#[derive(Clone)]
pub struct World {
    pub limits: Limits,
    pub settings: Vec<Settings>,
    pub life: Option<Micros>,
    pub known: Vec<Known>,
    /// The latest time that was told.
    pub now: Micros,
    /// How many things happened.
    pub step: usize,
    /// Which days each budget was told, and at which step.
    pub days: Vec<Vec<(usize, Day)>>,
    pub brakes: [Micros; BUDGETS],
    /// Until when each rests, and the lease that probes it.
    pub rests: [Option<Micros>; BUDGETS],
    pub probes: [Option<LeaseId>; BUDGETS],
}

impl World {
    pub fn new(settings: Vec<Settings>, life: Option<Micros>) -> Self {
        let limits = Limits::new(settings.clone());
        Self {
            limits: match life {
                Some(life) => limits.with_life(life),
                None => limits,
            },
            settings,
            life,
            known: Vec::new(),
            now: 0,
            step: 0,
            days: vec![Vec::new(); BUDGETS],
            brakes: [0; BUDGETS],
            rests: [None; BUDGETS],
            probes: [None; BUDGETS],
        }
    }

    /// Somebody tells the time.
    pub fn tick(&mut self, told: Micros) {
        self.step += 1;
        self.now = self.now.max(told);
        for n in 0..self.known.len() {
            let lease = &self.known[n];
            if !lease.over && lease.ends.is_some_and(|ends| ends <= self.now) {
                self.is_over(n, None, true);
            }
        }
    }

    /// Somebody tells which day it is.
    pub fn name_day(&mut self, which: &[usize], day: Option<Day>) {
        let Some(day) = day else { return };
        for &budget in which {
            let days = &mut self.days[budget];
            if days.last().is_none_or(|(_, last)| last.number < day.number) {
                days.push((self.step, day));
            }
        }
    }

    /// A lease is over. What is not `known` to have happened proves nothing to a probe.
    pub fn is_over(&mut self, n: usize, actual: Option<Weights>, expired: bool) {
        let lease = &mut self.known[n];
        lease.over = true;
        lease.actual = actual.map(|actual| (self.now, actual));
        if actual.is_some() {
            lease.sent.get_or_insert((self.now, self.step));
        }
        if lease.sent.is_none() {
            lease.unsent = Some(expired || self.now > lease.send_by);
        }
        for &budget in &lease.which {
            if self.probes[budget] == Some(lease.id) {
                self.probes[budget] = None;
                self.rests[budget] = actual.is_none().then_some(self.now);
            }
        }
    }

    /// The answer to a lease's send has begun; whether it was a probe.
    pub fn answered(&mut self, n: usize) -> bool {
        let lease = &self.known[n];
        let mut probes = false;
        if !lease.over && lease.sent.is_some() {
            for &budget in &lease.which {
                if self.probes[budget] == Some(lease.id) {
                    self.probes[budget] = None;
                    self.rests[budget] = None;
                    probes = true;
                }
            }
        }
        probes
    }

    pub fn penalise(&mut self, budget: usize, until: Micros) {
        self.limits.penalise(&[budget], until);
        let resting = self.rests[budget].filter(|_| self.probes[budget].is_none());
        self.rests[budget] = Some(resting.unwrap_or(0).max(until));
        self.probes[budget] = None;
    }

    pub fn brake(&mut self, budget: usize, until: Micros) {
        self.limits.brake(&[budget], until);
        self.brakes[budget] = self.brakes[budget].max(until);
    }

    pub fn granted(&mut self, id: LeaseId, which: &[usize], reserved: Weights, send_by: Micros) {
        for &budget in which {
            if self.rests[budget].is_some() {
                self.probes[budget].get_or_insert(id);
            }
        }
        let ends = self.life.map(|life| (self.now + life).max(send_by + 1));
        self.known.push(Known {
            id,
            which: which.to_vec(),
            reserved,
            send_by,
            ends,
            sent: None,
            over: false,
            unsent: None,
            actual: None,
        });
    }

    /// The leases that count in a budget.
    fn of(&self, budget: usize) -> impl Iterator<Item = &Known> {
        let counts = move |lease: &&Known| lease.unsent.is_none() && lease.which.contains(&budget);
        self.known.iter().filter(counts)
    }

    /// Whether a send still counts in every window and on a day that counts.
    pub fn recalls(&self, lease: &Known) -> bool {
        let Some((sent, step)) = lease.sent else {
            return true;
        };
        lease.which.iter().all(|&budget| {
            let Settings { windows, daily, .. } = &self.settings[budget];
            let counts = |limit: &WindowLimit| sent + limit.window + MARGIN > self.now;
            let days = self.days[budget].len();
            windows.iter().all(counts)
                && (daily.is_empty() || self.counts_on(budget, days, sent, step).last >= days)
        })
    }

    pub fn never_fits(&self, which: &[usize], weights: Weights) -> bool {
        which.iter().any(|&budget| {
            let settings = &self.settings[budget];
            let mut windows = settings.windows.iter();
            let mut daily = settings.daily.iter();
            windows.any(|w| weights.of(w.measure) > w.limit)
                || daily.any(|d| weights.of(d.measure) > d.limit)
                || settings.concurrent == Some(0)
        })
    }

    /// When the last of the unsent leases must have been sent.
    fn last_send_by(&self) -> Micros {
        let all = self.known.iter().map(|lease| lease.send_by);
        all.max().unwrap_or(0)
    }

    /// What of a window is used at `at`, if unsent leases are sent at `sent_at` and nothing else happens.
    fn used(&self, budget: usize, limit: WindowLimit, at: Micros, sent_at: Option<Micros>) -> u64 {
        let refund = self.settings[budget].refund;
        let inside = |sent: Micros| sent + limit.window + MARGIN > at;
        let mut sum = 0;
        for lease in self.of(budget) {
            let sent = lease.sent.map(|(sent, _)| sent).or(sent_at);
            if sent.is_none_or(inside) {
                sum += lease.of(limit.measure, refund);
            }
            match lease.on_top(limit.measure) {
                Some((at, more)) if inside(at) => sum += more,
                _ => {}
            }
        }
        sum
    }

    /// What of a window is sure to be used at `at`.
    fn surely_used(&self, budget: usize, limit: WindowLimit, at: Micros) -> u64 {
        let refund = self.settings[budget].refund;
        let inside = |sent: Micros| sent + limit.window + MARGIN > at;
        let mut sum = 0;
        for lease in self.of(budget) {
            if lease.sent.is_some_and(|(sent, _)| inside(sent)) {
                sum += lease.sure(limit.measure, refund);
            }
            match lease.on_top(limit.measure) {
                Some((at, more)) if inside(at) => sum += more,
                _ => {}
            }
        }
        sum
    }

    /// The times at which something may leave a window.
    fn leaves(&self, limit: WindowLimit) -> Vec<Micros> {
        let sent = self.known.iter().filter_map(|lease| lease.sent);
        let over = self.known.iter().filter_map(|lease| lease.actual);
        let times = sent.map(|(at, _)| at).chain(over.map(|(at, _)| at));
        let times = times.chain([self.last_send_by()]);
        let mut times: Vec<_> = times.map(|at| at + limit.window + MARGIN).collect();
        times.push(self.now + 1);
        times.retain(|at| *at > self.now);
        times.sort_unstable();
        times
    }

    /// The days on which a send counts, first and last, as numbers of days that a budget was told.
    fn counts_on(&self, budget: usize, days: usize, sent: Micros, step: usize) -> DayRange {
        let told = &self.days[budget][..days];
        let before = told.iter().filter(|(told, _)| *told <= step).count();
        let ends = match before.checked_sub(1) {
            Some(last) => told[last].1.ends,
            None => 0,
        };
        DayRange {
            first: before + usize::from(sent >= ends),
            last: before + usize::from(sent + MARGIN >= ends),
        }
    }

    /// What counts today: `sure` to stay, or all of it with unsent leases.
    fn used_today(&self, budget: usize, measure: Measure, sure: bool) -> u64 {
        let refund = self.settings[budget].refund;
        let days = self.days[budget].len();
        // Nobody said which day it is: then it may be the next one.
        let ends = self.days[budget].last().map_or(0, |(_, day)| day.ends);
        let unnamed = self.now >= ends;
        let mut sum = 0;
        for lease in self.of(budget) {
            let Some((sent, step)) = lease.sent else {
                sum += if sure { 0 } else { lease.reserved.of(measure) };
                continue;
            };
            let on = self.counts_on(budget, days, sent, step);
            let mut times = u64::from(on.first <= days && days <= on.last);
            times += u64::from(unnamed && on.first <= days + 1 && days < on.last);
            let counts = match sure {
                true => lease.sure(measure, refund),
                false => lease.of(measure, refund),
            };
            sum += times * (counts + lease.on_top(measure).map_or(0, |(_, more)| more));
        }
        sum
    }

    /// How an acquire of one budget has to wait; nothing to wait for if it fits.
    pub fn waits(&self, budget: usize, weights: Weights) -> Waits {
        let mut waits = Waits::default();
        let settings = &self.settings[budget];
        for &limit in &settings.windows {
            let more = weights.of(limit.measure);
            if more == 0 || self.used(budget, limit, self.now, None) + more <= limit.limit {
                continue;
            }
            let sent_at = Some(self.last_send_by());
            let fits = |at: &Micros| self.used(budget, limit, *at, sent_at) + more <= limit.limit;
            waits.note(self.leaves(limit).into_iter().find(fits).unwrap());
        }
        for daily in &settings.daily {
            let more = weights.of(daily.measure);
            let used = self.used_today(budget, daily.measure, false);
            if more > 0 && used + more > daily.limit {
                let ends = self.days[budget].last().map_or(0, |(_, day)| day.ends);
                waits.note(ends.max(self.now + 1));
            }
        }
        let running = self.of(budget).filter(|lease| !lease.over).count() as u64;
        waits.unknown |= settings.concurrent.is_some_and(|most| running >= most);
        waits.unknown |= self.probes[budget].is_some();
        let rest = self.rests[budget].filter(|_| self.probes[budget].is_none());
        for rest in [rest.unwrap_or(0), self.brakes[budget]] {
            if self.now < rest {
                waits.note(rest);
            }
        }
        waits
    }

    /// The soonest time at which it may fit, if all that can come back does.
    pub fn soonest(&self, budget: usize, weights: Weights) -> Micros {
        let settings = &self.settings[budget];
        let mut soonest = self.now;
        for &limit in &settings.windows {
            let more = weights.of(limit.measure);
            let fits = |at: Micros| self.surely_used(budget, limit, at) + more <= limit.limit;
            if more > 0 && !fits(self.now) {
                let mut times = self.leaves(limit).into_iter();
                soonest = soonest.max(times.find(|at| fits(*at)).unwrap());
            }
        }
        for daily in &settings.daily {
            let more = weights.of(daily.measure);
            let used = self.used_today(budget, daily.measure, true);
            if more > 0 && used + more > daily.limit {
                let ends = self.days[budget].last().map_or(0, |(_, day)| day.ends);
                soonest = soonest.max(ends);
            }
        }
        let rest = self.rests[budget].filter(|_| self.probes[budget].is_none());
        soonest.max(rest.unwrap_or(0)).max(self.brakes[budget])
    }

    /// Whether anything of these budgets is unsent, or can give tokens back.
    pub fn may_give_back(&self, which: &[usize]) -> bool {
        let open = |lease: &Known| lease.held_unsent() || (lease.sent.is_some() && !lease.over);
        let mut all = which.iter().flat_map(|&budget| self.of(budget));
        all.any(open)
    }

    /// Whether nobody said which day it is: then it is worth asking again at once.
    pub fn is_unnamed(&self, which: &[usize]) -> bool {
        let ends = |budget: &usize| self.days[*budget].last().map_or(0, |(_, day)| day.ends);
        which.iter().any(|budget| self.now >= ends(budget))
    }

    /// Whether any lease of these budgets is unsent.
    pub fn unsent(&self, which: &[usize]) -> bool {
        let mut all = which.iter().flat_map(|&budget| self.of(budget));
        all.any(Known::held_unsent)
    }

    /// Every lease was sent, returned, or expired, or is held unsent.
    pub fn check_account(&self) -> Result<(), TestCaseError> {
        let count = |is: &dyn Fn(&Known) -> bool| {
            self.known.iter().filter(|lease| is(lease)).count() as u64
        };
        let account = self.limits.account();
        prop_assert_eq!(account.granted, self.known.len() as u64);
        prop_assert_eq!(account.sent, count(&|lease| lease.sent.is_some()));
        prop_assert_eq!(account.expired, count(&|lease| lease.unsent == Some(true)));
        prop_assert_eq!(
            account.returned,
            count(&|lease| lease.unsent == Some(false))
        );
        let unsent = count(&Known::held_unsent);
        let accounted = account.sent + account.returned + account.expired;
        prop_assert_eq!(account.granted, accounted + unsent);
        let held = count(&|lease| !lease.over);
        prop_assert_eq!(self.limits.held() as u64, held);
        Ok(())
    }

    /// No window and no day holds more than its limit at the provider, however late each send arrives.
    pub fn check_arrivals(&self, delays: &[Micros]) -> Result<(), TestCaseError> {
        for (budget, settings) in self.settings.iter().enumerate() {
            let sends = self.of(budget).enumerate().filter_map(|(n, lease)| {
                let (sent, _) = lease.sent?;
                Some((sent + delays[n % delays.len()], lease))
            });
            let arrivals: Vec<_> = sends.collect();
            let sum = |measure, inside: &dyn Fn(Micros) -> bool| -> u64 {
                let inside = arrivals.iter().filter(|(at, _)| inside(*at));
                let counts = inside.map(|(_, lease)| lease.of(measure, settings.refund));
                counts.sum()
            };
            for (at, _) in &arrivals {
                for limit in &settings.windows {
                    let inside = |other: Micros| other <= *at && other + limit.window > *at;
                    let sum = sum(limit.measure, &inside);
                    prop_assert!(sum <= limit.limit, "{limit:?}: {sum} until {at}");
                }
                for daily in &settings.daily {
                    let inside = |other: Micros| day(other) == day(*at);
                    let sum = sum(daily.measure, &inside);
                    prop_assert!(sum <= daily.limit, "{daily:?}: {sum} at {at}");
                }
            }
        }
        Ok(())
    }
}

struct DayRange {
    first: usize,
    last: usize,
}
