//! Strict limits: random operations, held against an account that is too simple to be wrong, and against
//! what arrives at the provider.

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::*;

/// By how much a send may arrive later than it left.
const MARGIN: Micros = 50;

/// A calendar day, short enough to see several.
const DAY: Micros = 5_000;

#[derive(Clone, Debug)]
enum Op {
    Acquire {
        which: Vec<usize>,
        weights: Weights,
        /// For how long it may be sent.
        age: Micros,
    },
    Sent(usize),
    Stayed(usize),
    Release(usize),
    Settle(usize, Weights),
    Penalise(usize, Micros),
    Brake(usize, Micros),
    Pass(Micros),
}

/// Everything about a lease, for ever.
#[derive(Clone, Debug)]
struct Known {
    id: LeaseId,
    which: Vec<usize>,
    reserved: Weights,
    send_by: Micros,
    sent: Option<Micros>,
    over: bool,
    returned: bool,
    /// What counts of it, by budget.
    kept: Vec<Weights>,
    /// What came on top, and when.
    overrun: Option<(Micros, Weights)>,
}

impl Known {
    fn place(&self, budget: usize) -> Option<usize> {
        self.which.iter().position(|other| *other == budget)
    }

    fn over_by(&self, measure: Measure, counts: impl Fn(Micros) -> bool) -> u64 {
        match self.overrun {
            Some((at, weights)) if measure != Measure::Requests && counts(at) => {
                weights.of(measure)
            }
            _ => 0,
        }
    }
}

fn day(now: Micros) -> Day {
    let number = now / DAY;
    Day {
        number: number as i64,
        ends: (number + 1) * DAY,
    }
}

/// The account: adds everything up anew each time.
struct World {
    limits: Limits,
    settings: Vec<Settings>,
    known: Vec<Known>,
    now: Micros,
    brakes: [Micros; 3],
    /// Until when each rests, and the lease that probes it.
    rests: [Option<Micros>; 3],
    probes: [Option<LeaseId>; 3],
    last_send_by: Micros,
}

impl World {
    fn new(settings: Vec<Settings>) -> Self {
        Self {
            limits: Limits::new(settings.clone()),
            settings,
            known: Vec::new(),
            now: 1,
            brakes: [0; 3],
            rests: [None; 3],
            probes: [None; 3],
            last_send_by: 0,
        }
    }

    fn play(&mut self, op: Op) -> Result<(), TestCaseError> {
        let nth = |n: usize| self.known.len().checked_sub(1).map(|last| n % (last + 1));
        match op {
            Op::Pass(length) => self.now += length,
            Op::Penalise(budget, length) => self.penalise(budget, self.now + length),
            Op::Brake(budget, length) => {
                let until = self.now + length;
                self.limits.brake(&[budget], until);
                self.brakes[budget] = self.brakes[budget].max(until);
            }
            Op::Acquire {
                which,
                weights,
                age,
            } => return self.acquire(which, weights, age),
            Op::Sent(n) => {
                if let Some(n) = nth(n) {
                    return self.sent(n);
                }
            }
            Op::Stayed(n) => {
                if let Some(n) = nth(n) {
                    self.stayed(n);
                }
            }
            Op::Release(n) => {
                if let Some(n) = nth(n) {
                    self.release(n);
                }
            }
            Op::Settle(n, actual) => {
                if let Some(n) = nth(n) {
                    self.settle(n, actual);
                }
            }
        }
        Ok(())
    }

    fn penalise(&mut self, budget: usize, until: Micros) {
        self.limits.penalise(&[budget], until);
        let resting = self.rests[budget].filter(|_| self.probes[budget].is_none());
        self.rests[budget] = Some(resting.unwrap_or(0).max(until));
        self.probes[budget] = None;
    }

    fn sent(&mut self, n: usize) -> Result<(), TestCaseError> {
        let lease = &self.known[n];
        let may = self.limits.sent(self.now, lease.id);
        let in_time = self.now <= lease.send_by && self.counts(lease);
        prop_assert_eq!(may, !lease.over && in_time);
        if may {
            self.known[n].sent = Some(self.now);
        }
        Ok(())
    }

    fn stayed(&mut self, n: usize) {
        let lease = &self.known[n];
        self.limits.stayed(self.now, lease.id);
        if lease.over || lease.sent.is_none() {
            return;
        }
        let counts = self.counts(lease);
        self.known[n].sent = None;
        if !counts {
            self.give_back(n);
        }
    }

    /// Whether a send, if it was one, still counts in every window and on its day.
    fn counts(&self, lease: &Known) -> bool {
        let Some(sent) = lease.sent else { return true };
        lease.which.iter().all(|budget| {
            let Settings { windows, daily, .. } = &self.settings[*budget];
            let mut windows = windows.iter();
            windows.all(|limit| sent + limit.window + MARGIN > self.now)
                && (daily.is_empty() || day(sent) == day(self.now))
        })
    }

    fn release(&mut self, n: usize) {
        let lease = &mut self.known[n];
        self.limits.release(self.now, lease.id);
        if lease.over {
            return;
        }
        if lease.sent.is_none() {
            return self.give_back(n);
        }
        lease.over = true;
        for &budget in &lease.which {
            if self.probes[budget] == Some(lease.id) {
                self.probes[budget] = None;
                self.rests[budget] = None;
            }
        }
    }

    fn give_back(&mut self, n: usize) {
        let lease = &mut self.known[n];
        lease.over = true;
        lease.returned = true;
        for &budget in &lease.which {
            if self.probes[budget] == Some(lease.id) {
                self.probes[budget] = None;
                self.rests[budget] = Some(self.now);
            }
        }
    }

    fn settle(&mut self, n: usize, actual: Weights) {
        let lease = &mut self.known[n];
        self.limits.settle(self.now, lease.id, actual);
        if lease.over {
            return;
        }
        lease.over = true;
        lease.sent.get_or_insert(self.now);
        for (place, &budget) in lease.which.iter().enumerate() {
            let kept = &mut lease.kept[place];
            let refund = self.settings[budget].refund;
            if refund != Refund::Never {
                kept.input_tokens = kept.input_tokens.min(actual.input_tokens);
            }
            if refund == Refund::All {
                kept.output_tokens = kept.output_tokens.min(actual.output_tokens);
            }
            if self.probes[budget] == Some(lease.id) {
                self.probes[budget] = None;
                self.rests[budget] = None;
            }
        }
        let above = |used: u64, reserved: u64| used.saturating_sub(reserved);
        let overrun = Weights {
            input_tokens: above(actual.input_tokens, lease.reserved.input_tokens),
            output_tokens: above(actual.output_tokens, lease.reserved.output_tokens),
        };
        lease.overrun = Some((self.now, overrun));
    }

    fn acquire(
        &mut self,
        which: Vec<usize>,
        weights: Weights,
        age: Micros,
    ) -> Result<(), TestCaseError> {
        let never = which.iter().any(|&budget| {
            let settings = &self.settings[budget];
            let mut windows = settings.windows.iter();
            let mut daily = settings.daily.iter();
            windows.any(|w| weights.of(w.measure) > w.limit)
                || daily.any(|d| weights.of(d.measure) > d.limit)
        });
        let days = vec![day(self.now); which.len()];
        let send_by = self.now + age;
        let waits = (!never).then(|| self.waits(&which, weights));
        match self
            .limits
            .acquire(self.now, &which, &days, weights, send_by)
        {
            Ok(id) => {
                prop_assert_eq!(waits, Some(None), "granted what does not fit");
                self.last_send_by = self.last_send_by.max(send_by);
                for &budget in &which {
                    if self.rests[budget].is_some() {
                        self.probes[budget].get_or_insert(id);
                    }
                }
                self.known.push(Known {
                    id,
                    kept: vec![weights; which.len()],
                    which,
                    reserved: weights,
                    send_by,
                    sent: None,
                    over: false,
                    returned: false,
                    overrun: None,
                });
            }
            Err(Denied::Never { .. }) => prop_assert!(never, "fits after all"),
            Err(Denied::Full { full, .. }) => {
                let until = full.until.unwrap_or(0);
                prop_assert_eq!(waits, Some(Some(until)), "denied what fits, or until when");
            }
        }
        Ok(())
    }

    /// Until when an acquire has to wait, as far as that is known; nothing if it need not.
    fn waits(&self, which: &[usize], weights: Weights) -> Option<Micros> {
        let mut until: Option<Micros> = None;
        let mut wait = |at: Micros| until = Some(until.unwrap_or(0).max(at));
        for &budget in which {
            let settings = &self.settings[budget];
            for limit in &settings.windows {
                let room = |known: &[Known], at| {
                    used(known, budget, *limit, at) + weights.of(limit.measure) <= limit.limit
                };
                if !room(&self.known, self.now) {
                    // As if every unsent lease were sent at the last moment.
                    let mut later = self.known.clone();
                    for lease in later.iter_mut().filter(|lease| !lease.returned) {
                        lease.sent.get_or_insert(self.last_send_by);
                    }
                    wait((self.now + 1..).find(|at| room(&later, *at)).unwrap());
                }
            }
            for daily in &settings.daily {
                let used = self.used_today(budget, daily.measure);
                if used + weights.of(daily.measure) > daily.limit {
                    wait(day(self.now).ends);
                }
            }
            let running = |lease: &&Known| !lease.over && lease.which.contains(&budget);
            let running = self.known.iter().filter(running).count() as u64;
            if settings.concurrent.is_some_and(|most| running >= most)
                || self.probes[budget].is_some()
            {
                wait(0);
            }
            for rest in [self.rests[budget].unwrap_or(0), self.brakes[budget]] {
                if self.now < rest {
                    wait(rest);
                }
            }
        }
        until
    }

    fn used_today(&self, budget: usize, measure: Measure) -> u64 {
        let today = day(self.now).number;
        let mut sum = 0;
        for lease in self.known.iter().filter(|lease| !lease.returned) {
            let Some(place) = lease.place(budget) else {
                continue;
            };
            match lease.sent {
                None => sum += lease.reserved.of(measure),
                Some(at) if day(at).number == today => {
                    sum += lease.kept[place].of(measure) + lease.over_by(measure, |_| true);
                }
                Some(_) => {}
            }
        }
        sum
    }

    /// No window holds more than its limit, however late each send arrives.
    fn check_arrivals(&self, delays: &[Micros]) -> Result<(), TestCaseError> {
        for (budget, settings) in self.settings.iter().enumerate() {
            let mut arrivals: Vec<(Micros, Weights)> = Vec::new();
            for (n, lease) in self.known.iter().enumerate() {
                if let (Some(sent), Some(place)) = (lease.sent, lease.place(budget)) {
                    arrivals.push((sent + delays[n % delays.len()], lease.kept[place]));
                }
            }
            for limit in &settings.windows {
                for (at, _) in &arrivals {
                    let inside =
                        |(other, _): &&(Micros, Weights)| other <= at && other + limit.window > *at;
                    let inside = arrivals.iter().filter(inside);
                    let sum: u64 = inside.map(|(_, weights)| weights.of(limit.measure)).sum();
                    prop_assert!(sum <= limit.limit, "{limit:?}: {sum}");
                }
            }
        }
        Ok(())
    }
}

/// What is used of a window at `now`.
fn used(known: &[Known], budget: usize, limit: WindowLimit, now: Micros) -> u64 {
    let inside = |at: Micros| at + limit.window + MARGIN > now;
    let mut sum = 0;
    for lease in known.iter().filter(|lease| !lease.returned) {
        let Some(place) = lease.place(budget) else {
            continue;
        };
        match lease.sent {
            None => sum += lease.reserved.of(limit.measure),
            Some(at) if inside(at) => sum += lease.kept[place].of(limit.measure),
            Some(_) => {}
        }
        sum += lease.over_by(limit.measure, inside);
    }
    sum
}

fn weights() -> impl Strategy<Value = Weights> {
    (0_u64..8, 0_u64..8).prop_map(|(input_tokens, output_tokens)| Weights {
        input_tokens,
        output_tokens,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let measures = vec![
        Measure::Requests,
        Measure::InputTokens,
        Measure::OutputTokens,
    ];
    let measure = select(measures);
    let window = (measure.clone(), 1_u64..10, 1_u64..1_000).prop_map(|(measure, limit, window)| {
        WindowLimit {
            measure,
            limit,
            window,
        }
    });
    let daily = (measure, 1_u64..30).prop_map(|(measure, limit)| DailyLimit { measure, limit });
    let refund = select(vec![Refund::Never, Refund::InputOnly, Refund::All]);
    let concurrent = prop::option::weighted(0.3, 1_u64..4);
    (vec(window, 0..4), vec(daily, 0..2), refund, concurrent).prop_map(
        |(windows, daily, refund, concurrent)| Settings {
            name: String::new(),
            windows,
            concurrent,
            daily,
            refund,
            margin: MARGIN,
        },
    )
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let which = prop::sample::subsequence(vec![0_usize, 1, 2], 0..=3);
    let acquire = (which, weights(), 0_u64..300).prop_map(|(which, weights, age)| Op::Acquire {
        which,
        weights,
        age,
    });
    let op = prop_oneof![
        8 => acquire,
        6 => (0_usize..64).prop_map(Op::Sent),
        2 => (0_usize..64).prop_map(Op::Stayed),
        2 => (0_usize..64).prop_map(Op::Release),
        4 => (0_usize..64, weights()).prop_map(|(n, weights)| Op::Settle(n, weights)),
        1 => (0_usize..3, 0_u64..500).prop_map(|(budget, length)| Op::Penalise(budget, length)),
        1 => (0_usize..3, 0_u64..500).prop_map(|(budget, length)| Op::Brake(budget, length)),
        6 => (0_u64..300).prop_map(Op::Pass),
    ];
    vec(op, 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_fits_is_granted_what_does_not_is_denied_until_it_does_and_no_window_overflows(
        settings in vec(settings(), 3),
        ops in ops(),
        delays in vec(0..=MARGIN, 4),
    ) {
        let mut world = World::new(settings);
        for op in ops {
            world.play(op)?;
        }
        world.check_arrivals(&delays)?;
        let held = world.known.iter().filter(|lease| !lease.over && lease.sent.is_none());
        let account = world.limits.account();
        let accounted = account.sent + account.returned + account.expired;
        prop_assert_eq!(account.granted, accounted + held.count() as u64);
    }
}
