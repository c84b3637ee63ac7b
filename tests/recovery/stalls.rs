//! Stalls in a row: longer windows, and an end of recovery that keeps failing at the same place.

use redrive::protocol::Delta;

use crate::support::*;

#[test]
fn the_second_stall_in_a_row_doubles_the_windows_for_the_rest_of_the_generation() {
    let mut script = Script::start(params(1));
    for kind in [
        Delta::Text("a"),
        Delta::Text("a"),
        Delta::Refusal("elsewhere"),
    ] {
        script.open();
        script.delta(kind);
        script.text("b");
        script.next_send();
    }
    assert_eq!(script.sent_at(), [0, 45 + 1, 46 + 45 + 2, 93 + 90 + 4]);
}

#[test]
fn the_third_stall_in_a_row_at_the_same_place_ends_recovery() {
    let mut script = Script::start(params(1));
    for _ in 0..3 {
        script.open();
        script.text("a");
        script.next_send();
    }
    assert_eq!(script.last(), "failed stall by same_place");
    assert_eq!(script.sent_count(), 3);
}

#[test]
fn stalls_at_other_targets_are_not_at_the_same_place() {
    let mut script = Script::start(params(2));
    for _ in 0..4 {
        script.open();
        script.text("a");
        script.next_send();
    }
    assert!(!script.generation.has_ended());
    assert_eq!(script.visited(), [0, 0, 1, 1, 0]);
}

#[test]
fn another_failure_between_stalls_begins_the_count_again() {
    let mut script = Script::start(params(1));
    for _ in 0..2 {
        for _ in 0..2 {
            script.open();
            script.text("a");
            script.next_send();
            assert!(!script.generation.has_ended());
        }
        script.open();
        script.text("a");
        script.fail(reset());
        script.next_send();
    }
    assert!(!script.generation.has_ended());
}
