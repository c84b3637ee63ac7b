//! The most that any window of a log holds.

use std::time::Duration;

/// What arrived when, and how much of a limit it takes.
pub type Arrival = (Duration, u64);

/// The most that any half-open window of `length` holds, and when that one ended. Slides: every arrival is
/// tried as a window's last.
pub fn worst(arrivals: &[Arrival], length: Duration) -> (u64, Duration) {
    let mut sorted = arrivals.to_vec();
    sorted.sort_unstable();
    let (mut first, mut sum, mut worst) = (0, 0, (0, Duration::ZERO));
    for &(at, weight) in &sorted {
        sum += weight;
        while sorted[first].0 + length <= at {
            sum -= sorted[first].1;
            first += 1;
        }
        if sum > worst.0 {
            worst = (sum, at);
        }
    }
    worst
}

/// How much of a limit's capacity was used while there was more demand than that: as many sends as the
/// limit come again after a window and its margin, if none of it is wasted. `None`: too few arrived.
pub fn utilisation(arrivals: &[Duration], limit: usize, period: Duration) -> Option<f64> {
    let mut sorted = arrivals.to_vec();
    sorted.sort_unstable();
    let later = sorted.get(limit..).filter(|later| !later.is_empty())?;
    let again = later.iter().zip(&sorted).map(|(later, at)| *later - *at);
    let mean = again.sum::<Duration>() / u32::try_from(later.len()).ok()?;
    Some(period.as_secs_f64() / mean.as_secs_f64())
}

/// The most that were under way at once.
pub fn at_once(stretches: &[(Duration, Duration)]) -> usize {
    let mut edges: Vec<(Duration, i32)> = stretches
        .iter()
        .flat_map(|(from, to)| [(*from, 1), (*to, -1)])
        .collect();
    edges.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in edges {
        now += change;
        most = most.max(now);
    }
    usize::try_from(most).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_window_is_half_open_and_may_begin_anywhere() {
        let at = |times: &[u64]| -> Vec<Arrival> { times.iter().map(|t| (ms(*t), 1)).collect() };
        assert_eq!(worst(&at(&[0, 100]), ms(100)), (1, ms(0)));
        assert_eq!(worst(&at(&[0, 99]), ms(100)), (2, ms(99)));
        // What a fixed window or a bucket lets through: the end of one and the beginning of the next.
        assert_eq!(
            worst(&at(&[90, 95, 99, 100, 105, 189]), ms(100)),
            (6, ms(189))
        );
        assert_eq!(worst(&at(&[105, 90, 99, 250]), ms(100)), (3, ms(105)));
        assert_eq!(worst(&[], ms(100)), (0, ms(0)));
    }

    #[test]
    fn tokens_weigh_what_they_weigh() {
        let arrivals = [(ms(0), 30), (ms(50), 5), (ms(100), 20)];
        assert_eq!(worst(&arrivals, ms(100)), (35, ms(50)));
    }

    #[test]
    fn a_limit_that_comes_round_on_time_is_used_in_full() {
        let times = [ms(0), ms(10), ms(100), ms(110), ms(200)];
        assert_eq!(utilisation(&times, 2, ms(100)), Some(1.0));
        let late = [ms(0), ms(10), ms(125), ms(135)];
        assert_eq!(utilisation(&late, 2, ms(100)), Some(0.8));
        assert_eq!(utilisation(&times[..2], 2, ms(100)), None);
    }

    #[test]
    fn what_ends_as_another_begins_is_not_at_once() {
        let stretches = [(ms(0), ms(10)), (ms(10), ms(20)), (ms(5), ms(15))];
        assert_eq!(at_once(&stretches), 2);
    }
}
