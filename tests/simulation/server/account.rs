//! What every client and every provider did, and what must follow from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Mutex,
};

use redrive::proto::{Executed, Failed, Ledger, VerdictClass as Class};
use tokio::time::Instant;

use super::{
    house::House,
    provider::{Said, Speech},
};
use crate::{
    model::Rules,
    support::{Fate, Provider, Received, Script},
};

/// The account of one seed.
pub struct Account {
    provider: Provider,
    pub house: House,
    said: Mutex<BTreeMap<u64, Vec<Said>>>,
    /// What the gates of clients go by that have one.
    rules: Mutex<BTreeMap<u64, Rules>>,
    over: Mutex<BTreeMap<u64, Instant>>,
    /// Whose output is final in part: it can only be gone on with.
    bound: Mutex<BTreeMap<u64, Instant>>,
    acted: Mutex<BTreeSet<u64>>,
    landmarks: Mutex<BTreeSet<&'static str>>,
    story: Mutex<String>,
}

/// The question by which a client's sends are known.
pub fn question(client: u64) -> String {
    format!("I am client {client}.")
}

fn client_of(send: &Received) -> u64 {
    let body = String::from_utf8_lossy(&send.body);
    let (_, rest) = body.split_once("I am client ").expect("a client's send");
    let (number, _) = rest.split_once('.').unwrap();
    number.parse().unwrap()
}

/// What a send asks to be continued.
pub fn partial_of(send: &Received) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(&send.body).unwrap();
    let last = body["messages"].as_array()?.last()?;
    let partial = (last["role"] == "assistant").then(|| last["content"].as_str())?;
    partial.map(str::to_owned)
}

impl Account {
    pub fn new(provider: Provider, house: House) -> Self {
        Self {
            provider,
            house,
            said: Mutex::default(),
            rules: Mutex::default(),
            over: Mutex::default(),
            bound: Mutex::default(),
            acted: Mutex::default(),
            landmarks: Mutex::default(),
            story: Mutex::default(),
        }
    }

    /// A send is there: whose, which of theirs, from 1, and what it is to continue.
    pub fn is_sent(&self, send: &Received) -> (u64, u64, Option<String>) {
        let client = client_of(send);
        let over = self.over.lock().unwrap().get(&client).copied();
        assert!(
            over.is_none_or(|over| send.at <= over),
            "promises 6 and 8: client {client} is done, yet there is a send"
        );
        let partial = partial_of(send);
        let bound = self.bound.lock().unwrap().get(&client).copied();
        assert!(
            partial.is_some() || bound.is_none_or(|bound| send.at <= bound),
            "promises 3 and 6: client {client} has final output, yet begins anew"
        );
        if partial.is_some() {
            self.reach("continued");
        }
        if send.provider != "a" {
            self.reach("fallback");
        }
        let key = send.headers.get("authorization");
        if key.is_some_and(|key| key.as_bytes().ends_with(b"2")) {
            self.reach("second credential");
        }
        let said = self.said.lock().unwrap();
        let before = said.get(&client).map_or(0, Vec::len);
        assert!(
            before < self.house.max_attempts,
            "promise 1: more sends than attempts"
        );
        (client, before as u64 + 1, partial)
    }

    pub fn says(&self, client: u64, speech: Speech) -> Script {
        let mut said = self.said.lock().unwrap();
        said.entry(client).or_default().push(speech.said);
        speech.script
    }

    /// The answers of a client go through a gate.
    pub fn is_gated(&self, client: u64, rules: Rules) {
        self.rules.lock().unwrap().insert(client, rules);
    }

    /// What the gate of a client goes by, if it has one.
    pub fn rules(&self, client: u64) -> Option<Rules> {
        self.rules.lock().unwrap().get(&client).copied()
    }

    /// What was said to an attempt of a client.
    pub fn said(&self, client: u64, attempt: u32) -> Said {
        let said = self.said.lock().unwrap();
        said[&client][attempt as usize - 1].clone()
    }

    /// Nothing is sent for this client any more.
    pub fn is_over(&self, client: u64) {
        let mut over = self.over.lock().unwrap();
        over.entry(client).or_insert_with(Instant::now);
    }

    /// This client may have acted on what it was given.
    pub fn acts(&self, client: u64) {
        self.acted.lock().unwrap().insert(client);
    }

    /// Whether it may have.
    pub fn has_acted(&self, client: u64) -> bool {
        self.acted.lock().unwrap().contains(&client)
    }

    /// Whether a credential may have been told to rest.
    pub fn rests(&self) -> bool {
        let said = self.said.lock().unwrap();
        said.values().flatten().any(|said| said.is_limited)
    }

    /// What this client has is final in part.
    pub fn is_bound(&self, client: u64) {
        let mut bound = self.bound.lock().unwrap();
        bound.entry(client).or_insert_with(Instant::now);
    }

    pub fn reach(&self, landmark: &'static str) {
        self.landmarks.lock().unwrap().insert(landmark);
    }

    pub fn landmarks(&self) -> BTreeSet<&'static str> {
        self.landmarks.lock().unwrap().clone()
    }

    /// Something that must happen again when the seed is played again.
    pub fn tell(&self, client: u64, what: &str) {
        writeln!(self.story.lock().unwrap(), "client {client}: {what}").unwrap();
    }

    pub fn story(&self) -> String {
        self.story.lock().unwrap().clone()
    }

    pub fn sends(&self) -> Vec<Received> {
        self.provider.received()
    }

    pub fn sends_of(&self, client: u64) -> Vec<Received> {
        let sends = self.sends().into_iter();
        sends.filter(|send| client_of(send) == client).collect()
    }

    /// Promise 8: what ended leaves nothing in flight.
    pub fn check_nothing_in_flight(&self, client: u64) {
        let running = self.sends_of(client);
        let running = running.iter().filter(|send| send.fate == Fate::Running);
        assert_eq!(running.count(), 0, "promise 8: a send outlives its end");
    }

    /// Promise 14: the ledger is what was recorded at the seam.
    pub fn check_ledger(&self, client: u64, ledger: &Ledger) {
        self.check_gate(client, ledger);
        let sends = self.sends_of(client);
        assert_eq!(ledger.entries.len(), sends.len(), "promise 14");
        for (entry, send) in ledger.entries.iter().zip(&sends) {
            let expected = match (send.sent, send.answered) {
                (_, true) => Executed::Yes,
                (true, false) => Executed::Maybe,
                (false, false) => Executed::No,
            };
            assert_eq!(entry.executed(), expected, "promise 14");
            assert!(
                entry.target.starts_with(&send.provider),
                "promise 14: the target"
            );
            let class = entry.verdict.as_ref().map(|verdict| verdict.class());
            if class == Some(Class::Stall) {
                let said = self.said(client, entry.attempt);
                let (stall, no_progress) = (self.house.stall, self.house.no_progress);
                assert!(
                    said.falls_silent
                        || said.silence >= stall
                        || said.without_output >= no_progress,
                    "promise 11: a stall without a silence"
                );
            }
        }
    }

    /// The third stall in a row at the same place ends recovery.
    pub fn check_places(&self, client: u64, ledger: &Ledger) {
        let mut before = None;
        let mut here = 0;
        for entry in &ledger.entries {
            assert!(here < 3, "same place: an attempt after the third stall");
            let class = entry.verdict.as_ref().map(|verdict| verdict.class());
            let said = self.said(client, entry.attempt);
            // Only where it is sure that it stalled after its last word.
            let is_sure = said.falls_silent && said.silence < self.house.stall;
            let place = (class == Some(Class::Stall) && is_sure)
                .then(|| (said.place, entry.target.clone()));
            here = match &place {
                None => 0,
                Some(_) if place == before => here + 1,
                Some(_) => 1,
            };
            before = place;
        }
        if here == 3 {
            self.reach("stalled three times at one place");
        }
    }

    /// Promise 9: nobody is told of a wait that nobody asked for.
    pub fn check_wait(&self, client: u64, failed: &Failed) {
        let verdict = failed.verdict.as_ref().unwrap();
        let Some(told) = verdict.retry_after else {
            return;
        };
        let told: std::time::Duration = told.try_into().unwrap();
        let said = self.said.lock().unwrap();
        let mut said = said.get(&client).into_iter().flatten();
        let known = said.any(|said| said.wait.is_some_and(|(wait, _)| wait == told));
        let ours = verdict.class() == Class::NoTarget;
        let budgets = verdict.budget == "b" && self.house.limit.is_some();
        assert!(
            ours || known || budgets,
            "promise 9: a wait that nobody asked for"
        );
    }

    /// Promise 12: no window holds more than the limit, and no moment.
    pub fn check_limit(&self) {
        let Some((limit, window, at_a_time)) = self.house.limit else {
            return;
        };
        let sends = self.sends();
        let mut sent: Vec<_> = sends
            .iter()
            .filter(|send| send.provider == "a")
            .filter_map(|send| Some((send.sent_at?, send.ended_at?)))
            .collect();
        sent.sort();
        for pair in sent.windows(limit + 1) {
            assert!(pair[limit].0 - pair[0].0 >= window, "promise 12: a window");
        }
        for (at, _) in &sent {
            let others = sent.iter().filter(|(from, to)| from <= at && at < to);
            assert!(others.count() <= at_a_time, "promise 12: at a time");
        }
    }

    /// Promises 9 and 10, of all sends together.
    pub fn check_sends(&self) {
        let sends = self.sends();
        let said = self.said.lock().unwrap();
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        for (index, send) in sends.iter().enumerate() {
            let client = client_of(send);
            let count = counts.entry(client).or_default();
            let said = &said[&client][*count];
            *count += 1;
            let next = sends[index + 1..].iter().find(|s| client_of(s) == client);
            if let (Some(next), Some(ended)) = (next, send.ended_at)
                && next.provider == send.provider
                && matches!(send.fate, Fate::Aborted | Fate::Condemned)
                && !said.begins_anew
            {
                assert!(
                    ended + self.house.backoff <= next.at,
                    "promise 8: a failed exchange that was not ended before its replay"
                );
            }
            let (Fate::Ended, Some(ended)) = (send.fate, send.ended_at) else {
                continue;
            };
            let later = sends[index + 1..].iter().filter(|later| later.at > ended);
            for later in later.filter(|later| later.provider == send.provider) {
                let same = client_of(later) == client;
                assert!(
                    !(same && said.is_permanent),
                    "promise 10: the same request to the same target after a permanent verdict"
                );
                let Some((wait, binds_credential)) = said.wait else {
                    continue;
                };
                let key = |send: &Received| send.headers.get("authorization").cloned();
                let bound = if binds_credential {
                    key(later) == key(send)
                } else {
                    same
                };
                assert!(
                    !bound || later.at >= ended + wait,
                    "promise 9: a send before the wait was over"
                );
            }
        }
    }
}
