//! Any bytes through the splitter: the same items however they arrive, and no more than there is.

use redrive::protocol::sse::{Item, Splitter};

/// The first byte says how long reads are, the rest is the body.
pub fn run(data: &[u8]) {
    let Some((&length, body)) = data.split_first() else {
        return;
    };
    for clean in [true, false] {
        let whole = items(std::iter::once(body), clean);
        let pieces = items(body.chunks(1 + usize::from(length)), clean);
        assert_eq!(whole, pieces, "items depend on how the bytes arrived");
        assert!(whole.len() <= body.len() + 1, "more items than bytes");
    }
}

fn items<'b>(reads: impl Iterator<Item = &'b [u8]>, clean: bool) -> Vec<String> {
    let mut splitter = Splitter::default();
    let mut items = Vec::new();
    let mut is_dead = false;
    let mut keep = |item: Result<Item<'_>, _>| {
        assert!(!is_dead, "an item after a fault");
        is_dead = item.is_err();
        items.push(format!("{item:?}"));
    };
    for mut read in reads {
        while let Some(item) = splitter.next(&mut read) {
            keep(item);
        }
        assert!(read.is_empty(), "a read that was not used up");
    }
    while let Some(item) = splitter.end(clean) {
        keep(item);
    }
    items
}
