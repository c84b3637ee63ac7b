//! All operations at random, held against the account and against what arrives at the provider.

use proptest::{collection::vec, prelude::*, sample::select};
use redrive::limits::*;

use crate::oracle::*;

#[derive(Clone, Debug)]
enum Op {
    Acquire {
        which: Vec<usize>,
        weights: Weights,
        /// For how long it may be sent.
        age: Micros,
        /// Nobody says which day it is.
        dayless: bool,
    },
    Sent(usize),
    Stayed(usize),
    Release(usize),
    Settle(usize, Weights),
    Answered(usize),
    Renew(Vec<usize>, Micros),
    Penalise(usize, Micros),
    Brake(usize, Micros),
    Pass(Micros),
    /// The clock is wrong by so much from now on.
    Skew(Micros),
}

/// Plays operations on a world, with a clock that may be set back.
struct Player {
    world: World,
    clock: Micros,
    skew: Micros,
}

impl Player {
    fn new(settings: Vec<Settings>, life: Option<Micros>) -> Self {
        Self {
            world: World::new(settings, life),
            clock: 1_000,
            skew: 0,
        }
    }

    /// The time as it is told.
    fn told(&self) -> Micros {
        self.clock - self.skew
    }

    fn play(&mut self, op: Op) -> Result<(), TestCaseError> {
        let known = self.world.known.len();
        let nth = |n: usize| known.checked_sub(1).map(|last| n % (last + 1));
        let told = self.told();
        match op {
            Op::Pass(length) => self.clock += length,
            Op::Skew(skew) => self.skew = skew,
            Op::Penalise(budget, length) => self.world.penalise(budget, told + length),
            Op::Brake(budget, length) => self.world.brake(budget, told + length),
            Op::Renew(which, length) => {
                let which: Vec<_> = which.into_iter().filter_map(nth).collect();
                self.renew(&which, told + length)?;
            }
            Op::Acquire {
                which,
                weights,
                age,
                dayless,
            } => self.acquire(&which, weights, age, dayless)?,
            Op::Sent(n) => nth(n).map_or(Ok(()), |n| self.sent(n))?,
            Op::Stayed(n) => nth(n).map_or((), |n| self.stayed(n)),
            Op::Release(n) => nth(n).map_or((), |n| self.release(n)),
            Op::Settle(n, actual) => nth(n).map_or((), |n| self.settle(n, actual)),
            Op::Answered(n) => nth(n).map_or(Ok(()), |n| self.answered(n))?,
        }
        self.world.check_account()
    }

    fn sent(&mut self, n: usize) -> Result<(), TestCaseError> {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        let may = world.limits.sent(told, world.known[n].id);
        let lease = &world.known[n];
        let in_time = world.now <= lease.send_by && world.recalls(lease);
        prop_assert_eq!(may, !lease.over && in_time);
        if may {
            world.known[n].sent = Some((world.now, world.step));
        }
        Ok(())
    }

    fn stayed(&mut self, n: usize) {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        world.limits.stayed(told, world.known[n].id);
        let lease = &world.known[n];
        if lease.over || lease.sent.is_none() {
            return;
        }
        let recalls = world.recalls(lease);
        world.known[n].sent = None;
        if !recalls {
            world.is_over(n, None, true);
        }
    }

    fn release(&mut self, n: usize) {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        world.limits.release(told, world.known[n].id);
        if !world.known[n].over {
            world.is_over(n, None, false);
        }
    }

    fn settle(&mut self, n: usize, actual: Weights) {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        world.limits.settle(told, world.known[n].id, actual);
        if !world.known[n].over {
            world.is_over(n, Some(actual), false);
        }
    }

    fn answered(&mut self, n: usize) -> Result<(), TestCaseError> {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        let opens = world.limits.answered(told, world.known[n].id);
        prop_assert_eq!(opens, world.answered(n));
        Ok(())
    }

    fn renew(&mut self, which: &[usize], until: Micros) -> Result<(), TestCaseError> {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        let ids: Vec<_> = which.iter().map(|n| world.known[*n].id).collect();
        let lost = world.limits.renew(told, &ids, until);
        let over = which.iter().filter(|n| world.known[**n].over);
        let over: Vec<_> = over.map(|n| world.known[*n].id).collect();
        prop_assert_eq!(lost, over);
        for n in which {
            let ends = &mut world.known[*n].ends;
            *ends = ends.map(|ends| ends.max(until));
        }
        Ok(())
    }

    fn acquire(
        &mut self,
        which: &[usize],
        weights: Weights,
        age: Micros,
        dayless: bool,
    ) -> Result<(), TestCaseError> {
        let told = self.told();
        let world = &mut self.world;
        world.tick(told);
        let named = (!dayless).then(|| day(told));
        let days: Vec<_> = named.into_iter().cycle().take(which.len()).collect();
        let send_by = told + age;
        if world.never_fits(which, weights) {
            let denied = world.limits.acquire(told, which, &days, weights, send_by);
            prop_assert!(matches!(denied, Err(Denied::Never { .. })), "it fits");
            return Ok(());
        }
        world.name_day(which, named);
        let waits = which
            .iter()
            .map(|&budget| (budget, world.waits(budget, weights)));
        let waits: Vec<_> = waits
            .filter(|(_, waits)| *waits != Waits::default())
            .collect();
        self.forecast(which, &days, weights, &waits)?;
        let world = &mut self.world;
        match world.limits.acquire(told, which, &days, weights, send_by) {
            Ok(id) => {
                prop_assert!(waits.is_empty(), "granted what has to wait: {waits:?}");
                world.granted(id, which, weights, send_by);
            }
            Err(Denied::Never { .. }) => prop_assert!(false, "it may fit"),
            Err(Denied::Full { budget, full }) => {
                let latest = waits.iter().map(|(_, waits)| waits.until).max();
                prop_assert_eq!(Some(full.until), latest, "denied until then");
                let named = waits.iter().find(|(other, _)| *other == budget);
                prop_assert_eq!(named.map(|(_, waits)| waits.until), latest);
                self.is_exact(which, weights, full, &waits)?;
            }
        }
        Ok(())
    }

    /// What is told before anything is taken agrees with the account, and changes nothing.
    fn forecast(
        &mut self,
        which: &[usize],
        days: &[Day],
        weights: Weights,
        waits: &[(usize, Waits)],
    ) -> Result<(), TestCaseError> {
        let told = self.told();
        let world = &mut self.world;
        let blocking = world.limits.blocking(told, which, days, weights);
        let waiting: Vec<_> = waits.iter().map(|(budget, _)| *budget).collect();
        prop_assert_eq!(blocking, waiting);
        let check = world.limits.check(told, which, days, weights);
        prop_assert_eq!(check.is_ok(), waits.is_empty());
        let nobody = Ahead::default();
        let earliest = world.limits.earliest(told, which, days, weights, nobody);
        let soonest = which.iter().map(|&budget| world.soonest(budget, weights));
        let soonest = soonest.max().unwrap_or(world.now);
        let unknown = !waits.is_empty() && soonest == world.now;
        prop_assert_eq!(earliest, (!unknown).then_some(soonest));
        if !world.may_give_back(which) && !waits.is_empty() {
            let until = waits.iter().filter_map(|(_, waits)| waits.until).max();
            prop_assert!(earliest == until || world.is_unnamed(which));
        }
        Ok(())
    }

    /// If nothing else happens and all is sent, it is denied until then and granted then.
    fn is_exact(
        &self,
        which: &[usize],
        weights: Weights,
        full: Full,
        waits: &[(usize, Waits)],
    ) -> Result<(), TestCaseError> {
        let Some(until) = full.until else {
            return Ok(());
        };
        if self.world.unsent(which) || self.world.is_unnamed(which) {
            return Ok(());
        }
        let at = |now: Micros| {
            let days = vec![day(now); which.len()];
            let mut limits = self.world.limits.clone();
            limits.check(now, which, &days, weights)
        };
        prop_assert!(at(until - 1).is_err(), "it fitted before {until}");
        if !waits.iter().any(|(_, waits)| waits.unknown) {
            // The next day may be full as well: of what was sent too late for this one.
            let fits = match at(until) {
                Err(Denied::Full { full, .. }) => matches!(full.limit, Limit::Daily(_)),
                other => other.is_ok(),
            };
            prop_assert!(fits, "it does not fit at {until}");
        }
        Ok(())
    }
}

fn weights() -> impl Strategy<Value = Weights> {
    (0_u64..8, 0_u64..8).prop_map(|(input_tokens, output_tokens)| Weights {
        input_tokens,
        output_tokens,
    })
}

fn settings() -> impl Strategy<Value = Settings> {
    let measure = select(Measure::ALL.to_vec());
    let window = (measure.clone(), 1_u64..12, 0_u64..1_000).prop_map(|(measure, limit, window)| {
        WindowLimit {
            measure,
            limit,
            window,
        }
    });
    let daily = (measure, 1_u64..30).prop_map(|(measure, limit)| DailyLimit { measure, limit });
    let refund = select(vec![Refund::Never, Refund::InputOnly, Refund::All]);
    let concurrent = prop::option::weighted(0.3, 0_u64..4);
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

/// Mostly one of the last leases, which is likely to be held.
fn lease() -> impl Strategy<Value = usize> {
    0_usize..256
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let which = prop::sample::subsequence(vec![0_usize, 1, 2], 0..=BUDGETS);
    let dayless = prop::bool::weighted(0.1);
    let acquire =
        (which, weights(), 0_u64..300, dayless).prop_map(|(which, weights, age, dayless)| {
            Op::Acquire {
                which,
                weights,
                age,
                dayless,
            }
        });
    let budget = 0..BUDGETS;
    let op = prop_oneof![
        10 => acquire,
        8 => lease().prop_map(Op::Sent),
        2 => lease().prop_map(Op::Stayed),
        2 => lease().prop_map(Op::Release),
        5 => (lease(), weights()).prop_map(|(n, weights)| Op::Settle(n, weights)),
        2 => lease().prop_map(Op::Answered),
        2 => (vec(lease(), 0..5), 0_u64..600).prop_map(|(which, length)| Op::Renew(which, length)),
        1 => (budget.clone(), 0_u64..500).prop_map(|(budget, length)| Op::Penalise(budget, length)),
        1 => (budget, 0_u64..500).prop_map(|(budget, length)| Op::Brake(budget, length)),
        8 => (0_u64..200).prop_map(Op::Pass),
        1 => (0_u64..3_000).prop_map(Op::Pass),
        1 => (0_u64..400).prop_map(Op::Skew),
    ];
    vec(op, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_fits_is_granted_what_does_not_is_denied_until_it_does_and_nothing_overflows(
        settings in vec(settings(), BUDGETS),
        life in prop::option::of(1_u64..1_000),
        ops in ops(),
        delays in vec(0..=MARGIN, 16),
    ) {
        let mut player = Player::new(settings, life);
        for op in ops {
            player.play(op)?;
        }
        player.world.check_arrivals(&delays)?;
    }
}
