//! Is the ledger true?

use redrive::proto::{Executed, Ledger};

use super::reader::End;

/// What is known of an attempt.
#[derive(Debug, Default)]
pub struct Attempt {
    pub sent: bool,
    pub head: bool,
    /// It failed, but its output is part of what another attempt goes on with.
    pub kept: bool,
}

/// Promise 14, of the ledger that came with the end.
pub fn check(ledger: &Ledger, end: &End, attempts: &[Attempt]) {
    assert_eq!(ledger.entries.len(), attempts.len(), "promise 14");
    let mut sends = 0;
    for (entry, attempt) in ledger.entries.iter().zip(attempts) {
        let expected = match (attempt.sent, attempt.head) {
            (_, true) => Executed::Yes,
            (true, false) => Executed::Maybe,
            (false, false) => Executed::No,
        };
        assert_eq!(entry.executed(), expected, "promise 14");
        sends += u32::from(attempt.sent);
        let accepted = matches!(end, End::Committed(_)) && entry.attempt == ledger.attempts;
        assert_eq!(entry.verdict.is_none(), accepted);
    }
    assert_eq!(
        (ledger.sends, ledger.attempts as usize),
        (sends, attempts.len())
    );
    let output = |is_void: bool| -> u64 {
        let entries = ledger.entries.iter().zip(attempts);
        let of = entries.filter(|(entry, at)| (entry.verdict.is_some() && !at.kept) == is_void);
        let usage = of.filter_map(|(entry, _)| entry.usage);
        usage.map(|usage| usage.output_tokens).sum()
    };
    assert_eq!(ledger.void_output_tokens, output(true), "promise 14");
    if let End::Committed(last) = end {
        let told = last.usage.map_or(0, |usage| usage.output_tokens);
        assert_eq!(told, output(false), "what the message cost");
    }
}
