//! Limits of nothing.

use redrive::limits::*;

use super::{engine::Engine, support::*};

rules! {
    a_limit_of_nothing_is_never_granted
    a_window_of_no_length_holds_only_what_is_unsent
}

fn a_limit_of_nothing_is_never_granted<E: Engine>() {
    let mut limits = E::new([requests(0, 100)]);
    let denied = take(&mut limits, 1, Weights::default());
    assert!(matches!(denied, Err(Denied::Never { budget: 0, .. })));
}

fn a_window_of_no_length_holds_only_what_is_unsent<E: Engine>() {
    let mut limits = E::new([requests(1, 0)]);
    let id = take(&mut limits, 1, Weights::default()).unwrap();
    assert!(take(&mut limits, 1, Weights::default()).is_err());
    assert!(limits.sent(1, id));
    assert!(take(&mut limits, 1, Weights::default()).is_ok());
}
