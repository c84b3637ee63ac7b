//! Is the ledger true?

use redrive::proto::{Executed, Ledger, LedgerEntry, Mode, Verdict, VerdictClass};

use super::reader::End;

/// What is known of an attempt.
#[derive(Debug, Default)]
pub struct Attempt {
    pub mode: Mode,
    /// What was left of the allowance after its debit.
    pub left: u32,
    pub sent: bool,
    pub head: bool,
    /// It failed, but its output is part of what another attempt goes on with.
    pub kept: bool,
    /// Why the turn gate has rejected it, if that is its verdict.
    pub rejected: Option<&'static str>,
    /// The tokens that its provider counted last.
    pub usage: Option<u64>,
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
        assert_eq!(entry.mode(), attempt.mode, "how the attempt came about");
        check_rejection(entry, attempt);
        sends += u32::from(attempt.sent);
        let accepted = matches!(end, End::Committed(_)) && entry.attempt == ledger.attempts;
        assert_eq!(entry.verdict.is_none(), accepted);
        if accepted {
            check_usage(entry, attempt);
        }
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
    let total = ledger.total_usage.map(|usage| usage.output_tokens);
    assert_eq!(total, Some(output(true) + output(false)), "promise 14");
    if let End::Committed(last) = end {
        let told = last.usage.map_or(0, |usage| usage.output_tokens);
        assert_eq!(told, output(false), "what the message cost");
    }
}

/// The gate's verdict is that of the attempts which it rejected, and of no other; they have cost what
/// any attempt costs.
fn check_rejection(entry: &LedgerEntry, attempt: &Attempt) {
    let verdict = entry.verdict.as_ref();
    let by_the_gate = |verdict: &&Verdict| verdict.class() == VerdictClass::GateRejected;
    let reason = verdict.filter(by_the_gate).map(|v| &*v.gate_reason);
    assert_eq!(reason, attempt.rejected, "what the gate has rejected");
    if let (Some(verdict), Some(_)) = (verdict, reason) {
        assert!(!verdict.retryable && verdict.retry_after.is_none());
        assert!(!attempt.kept, "a rejected answer is gone on with");
        check_usage(entry, attempt);
    } else {
        let reason = verdict.map_or("", |verdict| &verdict.gate_reason);
        assert_eq!(
            reason, "",
            "a reason of the gate for what it did not reject"
        );
    }
}

/// A complete answer has cost what its provider says, or an estimate.
fn check_usage(entry: &LedgerEntry, attempt: &Attempt) {
    let told = entry.usage.filter(|_| !entry.usage_estimated);
    let told = told.map(|usage| usage.output_tokens);
    assert_eq!(told, attempt.usage, "promise 14: what the provider counted");
}
