//! How many attempts are judged.

use redrive::gate::{Attempts, DEFAULT_ATTEMPTS, MAX_ATTEMPTS, MIN_ATTEMPTS};
use serde_json::json;

fn resolve(requested: impl Into<Option<f64>>, configured: f64) -> u32 {
    Attempts::resolve(requested.into(), configured).get()
}

#[test]
fn the_bounds_are_one_and_six_and_the_default_three() {
    assert_eq!((MIN_ATTEMPTS, MAX_ATTEMPTS, DEFAULT_ATTEMPTS), (1, 6, 3));
    assert_eq!(Attempts::default().get(), 3);
}

#[test]
fn l1_and_l2_a_number_within_bounds_counts_as_it_is() {
    for number in 1..=6 {
        assert_eq!(resolve(f64::from(number), 3.0), number);
    }
}

#[test]
fn l3_what_is_no_number_above_zero_falls_to_the_configured_one() {
    assert_eq!(resolve(99.0, 3.0), 6);
    assert_eq!(resolve(-1.0, 3.0), 3);
    assert_eq!(resolve(f64::INFINITY, 3.0), 3);
    assert_eq!(resolve(Attempts::read(&json!("4")), 3.0), 4);
    assert_eq!(resolve(Attempts::read(&json!(null)), 3.0), 3);
    assert_eq!(resolve(None, 3.0), 3);
    assert_eq!(resolve(0.0, 3.0), 3);
    assert_eq!(resolve(-0.0, 3.0), 3);
    assert_eq!(resolve(f64::NAN, 3.0), 3);
    assert_eq!(resolve(f64::NEG_INFINITY, 3.0), 3);
}

#[test]
fn a_configured_number_that_counts_for_nothing_is_one_attempt() {
    for configured in [0.0, -3.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(resolve(None, configured), 1, "{configured}");
    }
    assert_eq!(resolve(None, 99.0), 6);
    assert_eq!(resolve(2.0, f64::NAN), 2);
}

#[test]
fn a_fraction_is_rounded_down_but_not_below_one() {
    assert_eq!(resolve(2.9, 3.0), 2);
    assert_eq!(resolve(5.999, 3.0), 5);
    assert_eq!(resolve(6.5, 3.0), 6);
    assert_eq!(resolve(0.2, 3.0), 1);
}

#[test]
fn a_number_may_come_as_text() {
    assert_eq!(Attempts::read(&json!(2)), Some(2.0));
    assert_eq!(Attempts::read(&json!(2.5)), Some(2.5));
    assert_eq!(Attempts::read(&json!(" 5 ")), Some(5.0));
    for value in [json!("many"), json!(""), json!(true), json!([4]), json!({})] {
        assert_eq!(Attempts::read(&value), None, "{value}");
    }
}
