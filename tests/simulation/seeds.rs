//! Which seeds run, on every processor, and what is said of one that fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    panic::catch_unwind,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Found by earlier runs: `kind seed`, then what it found.
const KEPT: &str = include_str!("seeds.txt");

/// How often a run came by what a test would want to have happened.
pub type Reached = BTreeMap<&'static str, u64>;

/// Plays `usual` seeds (`REDRIVE_SEEDS` another number, or `from..to`; `REDRIVE_SEED` a single one) and
/// those that are kept. Fails with the seed that did.
pub fn play_all(kind: &str, usual: u64, play: fn(u64) -> BTreeSet<&'static str>) -> Reached {
    let seeds: Vec<u64> = match variable("REDRIVE_SEED") {
        Some(seed) => vec![seed.parse().expect("REDRIVE_SEED is a number")],
        None => {
            let asked = variable("REDRIVE_SEEDS");
            kept(kind).chain(range(asked.as_deref(), usual)).collect()
        }
    };
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let reached = Mutex::new(Reached::new());
    let found = Mutex::new(None);
    let work = || {
        let mut mine = Reached::new();
        while !failed.load(Ordering::Relaxed)
            && let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed))
        {
            match catch_unwind(|| play(seed)) {
                Ok(landmarks) => {
                    for landmark in landmarks {
                        *mine.entry(landmark).or_default() += 1;
                    }
                }
                Err(_) => {
                    failed.store(true, Ordering::Relaxed);
                    *found.lock().unwrap() = Some(seed);
                }
            }
        }
        let mut reached = reached.lock().unwrap();
        for (landmark, times) in mine {
            *reached.entry(landmark).or_default() += times;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    if let Some(seed) = found.into_inner().unwrap() {
        panic!(
            "seed {seed} fails; to replay it:\n\
             REDRIVE_SEED={seed} cargo test --release --test simulation -- {kind}"
        );
    }
    println!("{kind}: {} seeds hold", seeds.len());
    reached.into_inner().unwrap()
}

/// A simulation that never gets to the point proves nothing; a few seeds need not get everywhere.
pub fn assert_reached(reached: &Reached, landmarks: &[&str]) {
    let few = cfg!(debug_assertions) || variable("REDRIVE_SEEDS").is_some();
    if few || variable("REDRIVE_SEED").is_some() {
        return;
    }
    for landmark in landmarks {
        let times = reached.get(landmark).copied().unwrap_or_default();
        assert!(times >= 2, "{landmark}: {times} times, of {reached:#?}");
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn range(asked: Option<&str>, usual: u64) -> Range<u64> {
    let number = |text: &str| text.parse().expect("REDRIVE_SEEDS: a number, or from..to");
    match asked.map(|asked| asked.split_once("..").ok_or(asked)) {
        None => 0..usual,
        Some(Ok((from, to))) => number(from)..number(to),
        Some(Err(count)) => 0..number(count),
    }
}

fn kept(kind: &str) -> impl Iterator<Item = u64> {
    let lines = KEPT.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let mut words = line.split_whitespace();
        let seed = words
            .next()
            .filter(|word| *word == kind)
            .and(words.next())?;
        Some(seed.parse().expect("a seed is a number"))
    })
}

#[test]
fn seeds_are_counted_or_given_as_a_range() {
    assert_eq!(range(None, 5), 0..5);
    assert_eq!(range(Some("7"), 5), 0..7);
    assert_eq!(range(Some("10..12"), 5), 10..12);
}
