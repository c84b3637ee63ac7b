use super::*;
use crate::budgets::courier::watch::CutWatch;

const SECOND: Duration = Duration::from_secs(1);
const LIFE: Duration = Duration::from_secs(15);
const FENCE: Duration = Duration::from_secs(13);
const SPENT: Weights = Weights {
    input_tokens: 1,
    output_tokens: 2,
};

fn book() -> Book {
    Book::new(LIFE, Some(FENCE))
}

fn id(number: usize) -> Id {
    Id::from(number as u128)
}

/// With leases 0 and up of budget 7 that were asked for at 0 s; fenced, and out.
fn out(book: &mut Book, leases: usize) {
    for number in 0..leases {
        book.granted(id(number), vec![7], true, Duration::ZERO);
        assert!(book.may_leave(Duration::ZERO, id(number)));
        book.left(id(number));
    }
}

/// Everything that there is to tell, all of it heard.
fn tell_all(book: &mut Book) -> Vec<(Id, Step)> {
    let mut told = Vec::new();
    while let Some((id, step)) = book.next() {
        told.push((id, step));
        let _ = book.done(id, step, Some(Heard::Done));
    }
    told
}

fn is_cut(watch: &mut CutWatch) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    watch.poll_cut(&mut context).is_ready()
}

#[test]
fn a_lease_is_told_of_in_order() {
    let mut book = book();
    out(&mut book, 1);
    book.answered(id(0));
    book.end(SECOND, id(0), End::Release);
    let expected = [
        (id(0), Step::Turn(1)),
        (id(0), Step::Answered),
        (id(0), Step::End(End::Release)),
    ];
    assert_eq!(tell_all(&mut book), expected);
    assert!(book.leases.is_empty() && book.ended.is_empty());
}

#[test]
fn how_a_send_was_settled_says_all_that_was_before() {
    let mut book = book();
    out(&mut book, 1);
    book.answered(id(0));
    book.end(SECOND, id(0), End::Settle(SPENT));
    let expected = [(id(0), Step::End(End::Settle(SPENT)))];
    assert_eq!(tell_all(&mut book), expected);
}

#[test]
fn what_left_and_stayed_is_told_once_and_before_it_goes_back() {
    let mut book = book();
    out(&mut book, 1);
    book.stayed(id(0));
    book.end(SECOND, id(0), End::Release);
    let expected = [(id(0), Step::Turn(2)), (id(0), Step::End(End::Release))];
    assert_eq!(tell_all(&mut book), expected);
}

#[test]
fn what_never_left_goes_back_with_one_word() {
    let mut book = book();
    book.granted(id(0), vec![7], true, Duration::ZERO);
    assert_eq!(book.next(), None, "of a grant there is nothing to tell");
    book.end(SECOND, id(0), End::Release);
    assert_eq!(tell_all(&mut book), [(id(0), Step::End(End::Release))]);
}

#[test]
fn of_one_lease_one_thing_is_told_at_a_time() {
    let mut book = book();
    out(&mut book, 2);
    assert_eq!(book.next(), Some((id(0), Step::Turn(1))));
    book.stayed(id(0));
    book.end(SECOND, id(0), End::Release);
    assert_eq!(book.next(), Some((id(1), Step::Turn(1))));
    assert_eq!(book.next(), None);
    let _ = book.done(id(0), Step::Turn(1), Some(Heard::Done));
    assert_eq!(book.next(), Some((id(0), Step::Turn(2))));
    assert!(!book.is_told());
}

#[test]
fn what_was_not_heard_is_told_again_with_what_came_meanwhile() {
    let mut book = book();
    out(&mut book, 1);
    let turn = (id(0), Step::Turn(1));
    assert_eq!(book.next(), Some(turn));
    let _ = book.done(id(0), Step::Turn(1), None);
    assert_eq!(book.next(), Some(turn));
    book.stayed(id(0));
    let _ = book.done(id(0), Step::Turn(1), None);
    assert_eq!(tell_all(&mut book), [(id(0), Step::Turn(2))]);
    assert!(book.is_told());
}

#[test]
fn once_the_end_was_heard_its_budgets_are_free() {
    let mut book = book();
    out(&mut book, 1);
    book.end(SECOND, id(0), End::Settle(SPENT));
    let (id, end) = book.next().unwrap();
    assert!(book.done(id, end, None).0.is_none());
    let again = book.next().unwrap();
    assert_eq!(again, (id, end));
    // However it was heard: it is over.
    let (freed, _) = book.done(id, end, Some(Heard::Unknown));
    assert_eq!(freed.as_deref(), Some(&[7][..]));
    assert_eq!(book.next(), None);
}

#[test]
fn after_the_end_nothing_happens_to_a_lease() {
    let mut book = book();
    out(&mut book, 1);
    book.stayed(id(0));
    book.end(SECOND, id(0), End::Release);
    assert!(!book.may_leave(SECOND, id(0)));
    book.left(id(0));
    book.answered(id(0));
    assert_eq!(book.end(2 * SECOND, id(0), End::Settle(SPENT)), None);
    let expected = [(id(0), Step::Turn(2)), (id(0), Step::End(End::Release))];
    assert_eq!(tell_all(&mut book), expected);
    assert!(!book.may_leave(SECOND, id(0)), "it is forgotten");
}

#[test]
fn ends_that_wait_to_be_told_are_bounded_and_the_oldest_is_dropped() {
    let mut book = book();
    out(&mut book, MOST_ENDED + 1);
    let end = |book: &mut Book, number| book.end(SECOND, id(number), End::Release);
    for number in 0..MOST_ENDED {
        assert_eq!(end(&mut book, number), None);
    }
    assert_eq!(end(&mut book, MOST_ENDED), Some(id(0)));
    assert_eq!((book.untold(), book.counts.dropped), (MOST_ENDED, 1));
    assert_eq!(book.next(), Some((id(1), Step::Turn(1))));
}

#[test]
fn what_was_dropped_does_not_stay_in_line() {
    let mut book = book();
    for number in 0..10 * MOST_ENDED {
        book.granted(id(number), vec![7], true, Duration::ZERO);
        book.end(SECOND, id(number), End::Release);
    }
    assert_eq!(book.leases.len(), MOST_ENDED);
    assert!(book.queue.len() <= 2 * MOST_ENDED + 65);
}

#[test]
fn an_end_is_not_told_longer_than_the_lease_lives() {
    let mut book = book();
    out(&mut book, 3);
    book.end(SECOND, id(0), End::Release);
    book.end(3 * SECOND, id(1), End::Release);
    assert_eq!(book.outlived(SECOND + LIFE - SECOND / 2), []);
    assert_eq!(book.outlived(SECOND + LIFE), [id(0)]);
    assert_eq!((book.untold(), book.counts.dropped), (1, 1));
    // What was being told is over.
    let (freed, _) = book.done(id(0), Step::Turn(1), Some(Heard::Done));
    assert_eq!(freed, None);
    assert_eq!(book.leases.len(), 2);
}

#[test]
fn a_send_is_cut_before_its_lease_may_end() {
    let mut book = book();
    out(&mut book, 1);
    let mut watch = book.watch(id(0));
    let (cuts, next) = book.fence(FENCE - SECOND);
    cuts.tell();
    assert_eq!((is_cut(&mut watch), next), (false, Some(FENCE)));
    let (cuts, next) = book.fence(FENCE);
    cuts.tell();
    assert_eq!((is_cut(&mut watch), next), (true, None));
    assert_eq!(book.counts.cut, 1);
    assert!(
        is_cut(&mut book.watch(id(0))),
        "whoever asks later hears it"
    );
}

#[test]
fn a_renewal_counts_from_its_begin() {
    let mut book = book();
    out(&mut book, 1);
    book.prolonged(&[id(0)], 5 * SECOND);
    // One that was answered later, and had begun earlier.
    book.prolonged(&[id(0)], 4 * SECOND);
    assert_eq!(book.cut_at(id(0)), Some(5 * SECOND + FENCE));
    let (cuts, next) = book.fence(5 * SECOND + FENCE - SECOND);
    cuts.tell();
    assert_eq!(next, Some(5 * SECOND + FENCE));
    assert_eq!(book.counts.cut, 0);
}

#[test]
fn nothing_leaves_when_it_would_be_cut() {
    let mut book = book();
    book.granted(id(0), vec![7], true, Duration::ZERO);
    book.granted(id(1), vec![7], false, Duration::ZERO);
    assert!(book.may_leave(FENCE - SECOND, id(0)));
    assert!(!book.may_leave(FENCE, id(0)));
    assert!(book.may_leave(FENCE, id(1)));
}

#[test]
fn what_takes_part_of_windows_only_is_not_cut() {
    let mut book = book();
    book.granted(id(0), vec![7], false, Duration::ZERO);
    book.left(id(0));
    let mut watch = book.watch(id(0));
    let (cuts, next) = book.fence(10 * LIFE);
    cuts.tell();
    book.over(&[id(0)]).tell();
    assert_eq!((is_cut(&mut watch), next), (false, None));
    assert_eq!(book.counts.cut, 0);
}

#[test]
fn where_limits_need_not_hold_nothing_is_cut() {
    let mut book = Book::new(LIFE, None);
    out(&mut book, 1);
    let mut watch = book.watch(id(0));
    let (cuts, _) = book.fence(10 * LIFE);
    cuts.tell();
    book.over(&[id(0)]).tell();
    assert!(!is_cut(&mut watch));
}

#[test]
fn what_the_engine_let_go_of_is_cut_at_once() {
    let mut book = book();
    out(&mut book, 2);
    book.granted(id(2), vec![7], true, Duration::ZERO);
    let mut watches = [0, 1, 2].map(|number| book.watch(id(number)));
    book.over(&[id(0), id(2)]).tell();
    let cut: Vec<_> = watches.iter_mut().map(is_cut).collect();
    assert_eq!(cut, [true, false, true]);
    assert_eq!(book.counts.cut, 1, "one of them was not out");
    assert!(!book.may_leave(SECOND, id(2)));
}

#[test]
fn what_is_told_too_late_is_cut_and_what_counts_nowhere() {
    for (heard, fenced, cut) in [
        (Heard::Done, true, false),
        (Heard::Unknown, true, false),
        (Heard::Over, true, true),
        (Heard::Over, false, false),
        (Heard::Refused, false, true),
    ] {
        let mut book = book();
        book.granted(id(0), vec![7], fenced, Duration::ZERO);
        book.left(id(0));
        let mut watch = book.watch(id(0));
        let (id, step) = book.next().unwrap();
        let (_, cuts) = book.done(id, step, Some(heard));
        cuts.tell();
        assert_eq!(is_cut(&mut watch), cut, "{heard:?}");
    }
}

#[test]
fn nothing_is_cut_that_does_not_run() {
    let mut book = book();
    out(&mut book, 2);
    let mut watch = book.watch(id(0));
    book.end(SECOND, id(0), End::Release);
    book.stayed(id(1));
    let (cuts, next) = book.fence(10 * LIFE);
    cuts.tell();
    assert_eq!((is_cut(&mut watch), next), (false, None));
    assert_eq!(book.counts.cut, 0);
}

#[test]
fn leases_that_run_are_renewed_in_time_for_another_try() {
    let mut book = book();
    assert_eq!(book.renew_by(), None);
    out(&mut book, 4);
    book.prolonged(&[id(1)], 5 * SECOND);
    assert_eq!(book.renew_by(), Some(FENCE * 3 / 4));
    // Those that are over have nothing to be renewed.
    book.end(SECOND, id(0), End::Release);
    book.over(&[id(2)]).tell();
    book.stayed(id(3));
    assert_eq!(book.renew_by(), Some(5 * SECOND + FENCE * 3 / 4));
    assert_eq!(book.renew_at(id(1)), book.renew_by());
}

#[test]
fn asked_for_again_it_is_the_same_lease() {
    let mut book = book();
    out(&mut book, 1);
    book.granted(id(0), vec![7], true, 9 * SECOND);
    assert_eq!(book.cut_at(id(0)), Some(FENCE));
}
