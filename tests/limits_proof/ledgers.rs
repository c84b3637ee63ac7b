//! Ledgers against the provider's log: each arrival is a send of one ledger, and what the provider does not
//! know is marked so there.

use std::collections::HashMap;

use redrive::{
    proto::{Executed, Ledger, LedgerEntry},
    simulator::Received,
};

/// What is known of one call.
pub struct Call<'a> {
    /// Its prompt, which no other has.
    pub prompt: String,
    /// `None`: there is none, and nothing was sent.
    pub ledger: Option<&'a Ledger>,
    /// Its sidecar died, or nobody asked it: its ledger is not known.
    pub untold: bool,
}

/// Asserts that the ledgers and the log are one account; how many sends the ledgers tell of.
pub fn check<'a>(log: &[Received], calls: impl IntoIterator<Item = Call<'a>>) -> u64 {
    let mut arrived: HashMap<&str, u32> = HashMap::new();
    for request in log {
        let prompt = request.script.as_deref().unwrap_or_default();
        *arrived.entry(prompt).or_default() += 1;
    }
    // A connection that was cut before the request was whole names nobody.
    let mut anonymous = arrived.remove("").unwrap_or_default();
    let mut sends = 0;
    for Call {
        prompt,
        ledger,
        untold,
    } in calls
    {
        let log = arrived.remove(prompt.as_str()).unwrap_or_default();
        if untold {
            continue;
        }
        let entries = ledger.iter().flat_map(|ledger| &ledger.entries);
        let entries: Vec<&LedgerEntry> = entries.collect();
        let count = |executed| {
            let entries = entries.iter().filter(|entry| entry.executed() == executed);
            u32::try_from(entries.count()).unwrap()
        };
        let (yes, maybe) = (count(Executed::Yes), count(Executed::Maybe));
        let told = ledger.as_ref().map_or(0, |ledger| ledger.sends);
        assert_eq!(told, yes + maybe, "{prompt}: {ledger:?}");
        assert!(log <= told, "{prompt}: {log} arrived of {told}: {ledger:?}");
        assert!(log + anonymous >= yes, "{prompt}: {log} arrived of {yes}");
        // What the provider does not know is marked so.
        assert!(told - log <= maybe, "{prompt}: {log} arrived, {ledger:?}");
        anonymous = anonymous.saturating_sub(told - log);
        sends += u64::from(told);
    }
    assert_eq!(arrived, HashMap::new(), "requests that nobody sent");
    assert_eq!(anonymous, 0, "requests of nobody");
    sends
}
