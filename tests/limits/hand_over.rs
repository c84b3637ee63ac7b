//! A send that is handed over again, and one that stayed.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    what_is_late_does_not_leave
    a_send_handed_over_again_counts_from_then
    a_send_that_left_its_window_is_not_handed_over_again
    what_stayed_is_unsent_again_and_counts_until_it_is_given_back
    what_stayed_after_its_place_was_taken_is_over
    what_stayed_on_another_day_takes_nothing_of_the_new_one
}

fn what_is_late_does_not_leave<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let id = limits
        .acquire(10, &[0], &[day(10)], Weights::default(), 50)
        .unwrap();
    assert!(!limits.sent(51, id));
    assert!(take(&mut limits, 200, Weights::default()).is_err());
    limits.release(200, id);
    assert_eq!(limits.account().sent, 0);
    assert!(take(&mut limits, 200, Weights::default()).is_ok());
}

fn a_send_handed_over_again_counts_from_then<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let id = send(&mut limits, 10, Weights::default());
    assert!(limits.sent(60, id));
    assert_eq!(until(&mut limits, 70, Weights::default()), Some(160));
    assert_eq!(limits.account().sent, 1);
    assert_eq!(limits.gauges(0).unwrap().0, 1);
}

fn a_send_that_left_its_window_is_not_handed_over_again<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let first = send(&mut limits, 10, Weights::default());
    let second = take(&mut limits, 110, Weights::default()).unwrap();
    assert!(!limits.sent(110, first), "its place is taken");
    assert!(limits.sent(110, second));
}

fn what_stayed_is_unsent_again_and_counts_until_it_is_given_back<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let id = send(&mut limits, 10, Weights::default());
    limits.stayed(20, id);
    assert_eq!(limits.account().sent, 0);
    assert!(take(&mut limits, 109, Weights::default()).is_err());
    limits.release(109, id);
    assert_eq!(limits.account().returned, 1);
    assert!(take(&mut limits, 109, Weights::default()).is_ok());
}

fn what_stayed_after_its_place_was_taken_is_over<E: Engine>() {
    let mut limits = E::new([requests(1, 100)]);
    let first = send(&mut limits, 10, Weights::default());
    let second = send(&mut limits, 110, Weights::default());
    limits.stayed(115, first);
    assert!(!limits.sent(115, first));
    assert_eq!(limits.account().expired, 1);
    assert_eq!(limits.account().sent, 1);
    assert_eq!(limits.gauges(0).unwrap().0, 1);
    limits.release(120, first);
    limits.release(120, second);
    assert_eq!(limits.gauges(0).unwrap().0, 0);
    assert_eq!(until(&mut limits, 120, Weights::default()), Some(210));
}

fn what_stayed_on_another_day_takes_nothing_of_the_new_one<E: Engine>() {
    let daily = DailyLimit {
        measure: Measure::Requests,
        limit: 1,
    };
    let mut settings = requests(5, 10_000);
    settings.daily = vec![daily];
    let mut limits = E::new([settings]);
    let first = send(&mut limits, 900, Weights::default());
    let second = send(&mut limits, 1_100, Weights::default());
    limits.stayed(1_200, first);
    assert!(!limits.sent(1_200, first));
    assert_eq!(until(&mut limits, 1_200, Weights::default()), Some(2_000));
    limits.settle(1_300, second, Weights::default());
    assert_eq!(limits.account().sent, 1);
}
