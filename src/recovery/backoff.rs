//! Our own waits, and the jitter on all waits.

use std::time::Duration;

use super::settings::Backoff;

/// `min(base · 2^n, max)`: the wait after the `n`-th failure that led to one, from 0, without jitter.
pub fn delay(settings: &Backoff, n: u32) -> Duration {
    let doubled = 2u32
        .checked_pow(n)
        .and_then(|f| settings.base.checked_mul(f));
    doubled.map_or(settings.max, |d| d.min(settings.max))
}

/// Lengthens `wait` by up to `settings.jitter` of itself. `dice` is uniform over all of `u64`.
pub fn jittered(settings: &Backoff, wait: Duration, dice: u64) -> Duration {
    let share = dice as f64 / u64::MAX as f64;
    let extra = wait.as_secs_f64() * settings.jitter.clamp(0.0, 1.0) * share;
    Duration::try_from_secs_f64(extra).map_or(wait, |extra| wait.saturating_add(extra))
}

/// A stream of dice from a seed that came in as a value (SplitMix64; Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed gives the same dice.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next die.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Backoff = Backoff {
        base: Duration::from_secs(1),
        max: Duration::from_secs(60),
        jitter: 0.25,
    };

    #[test]
    fn delays_double_up_to_the_cap() {
        let delays: Vec<u64> = (0..10).map(|n| delay(&SETTINGS, n).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        assert_eq!(delay(&SETTINGS, u32::MAX), Duration::from_secs(60));
    }

    #[test]
    fn jitter_only_lengthens_and_by_a_quarter_at_most() {
        let wait = Duration::from_secs(8);
        assert_eq!(jittered(&SETTINGS, wait, 0), wait);
        assert_eq!(jittered(&SETTINGS, wait, u64::MAX), Duration::from_secs(10));
        let mut dice = Dice::new(7);
        for _ in 0..1000 {
            let w = jittered(&SETTINGS, wait, dice.roll());
            assert!(w >= wait && w <= Duration::from_secs(10));
        }
    }
}
