//! The account of a generation: every attempt, whether it was executed, its verdict, tokens and waits.

use std::time::Duration;

use super::{Time, event::Waited};
use crate::{
    proto::{self, Executed, Mode, SkippedTarget, Usage},
    verdict::Failure,
};

/// Bytes of text per token where a provider gave no count. An estimate, marked as one.
const BYTES_PER_TOKEN: u64 = 4;

/// The longest `google.protobuf.Duration`; clients refuse to read a longer one.
const MAX_DURATION: Duration = Duration::from_secs(315_576_000_000);

/// One attempt.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its number, from 1.
    pub attempt: u32,
    /// `provider/model`.
    pub target: String,
    /// How it came about.
    pub mode: Mode,
    /// When it was dispatched.
    pub started: Time,
    /// When it ended, once it has.
    pub ended: Option<Time>,
    /// When its first substantive event came.
    pub first_token: Option<Time>,
    /// Whether the provider has seen it.
    pub executed: Executed,
    /// Why it failed; none while it runs and when it was accepted.
    pub failure: Option<Failure>,
    /// What the provider counted, or an estimate.
    pub usage: Option<Usage>,
    /// Whether `usage` is an estimate.
    pub usage_estimated: bool,
    /// What was waited before it.
    pub waited: Waited,
    /// It failed, but its output stays: another attempt goes on with it.
    pub kept: bool,
    /// It was to go on with output that another attempt left, and the target refused; or a fallback
    /// refused, and another target's verdict was there before. Its verdict is not the generation's.
    pub refused: bool,
}

impl Entry {
    /// Fills in an estimate where the provider gave no count but may have produced output.
    pub fn estimate_usage(&mut self, output_bytes: usize) {
        if self.usage.is_some() || self.executed != Executed::Yes || output_bytes == 0 {
            return;
        }
        self.usage_estimated = true;
        self.usage = Some(Usage {
            output_tokens: (output_bytes as u64).div_ceil(BYTES_PER_TOKEN),
            ..Usage::default()
        });
    }

    /// The entry as the contract has it. `wall_origin` is the wall clock at the origin of time.
    pub fn to_proto(&self, wall_origin: Duration) -> proto::LedgerEntry {
        let started = wall_origin.saturating_add(self.started.since_origin());
        proto::LedgerEntry {
            attempt: self.attempt,
            target: self.target.clone(),
            mode: self.mode.into(),
            started_at: Some(prost_types::Timestamp {
                seconds: i64::try_from(started.as_secs()).unwrap_or(i64::MAX),
                nanos: started.subsec_nanos() as i32,
            }),
            duration: self.ended.map(|ended| duration(ended.since(self.started))),
            time_to_first_token: self.first_token.map(|at| duration(at.since(self.started))),
            executed: self.executed.into(),
            verdict: self
                .failure
                .as_ref()
                .map(|f| verdict(f, self.attempt, &self.target)),
            usage: self.usage,
            usage_estimated: self.usage_estimated,
            waited: (!self.waited.total.is_zero()).then(|| duration(self.waited.total)),
            wait_source: self.waited.source.into(),
        }
    }
}

/// Every attempt of a generation.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<Entry>,
    /// What was waited for an attempt that never came.
    in_vain: Duration,
    /// Targets of the route that could not take the request.
    skipped: Box<[SkippedTarget]>,
}

impl Ledger {
    /// An empty account, of a request that the `skipped` targets cannot take.
    pub fn new(skipped: Box<[SkippedTarget]>) -> Self {
        Self {
            skipped,
            ..Self::default()
        }
    }

    /// Opens the entry of an attempt that is being dispatched.
    pub fn open(&mut self, entry: Entry) {
        if self.entries.is_empty() {
            // Most generations have one attempt; a vector would make room for four.
            self.entries.reserve_exact(1);
        }
        self.entries.push(entry);
    }

    /// The entry of the newest attempt.
    pub fn current(&mut self) -> Option<&mut Entry> {
        self.entries.last_mut()
    }

    /// Adds what was waited after the last attempt.
    pub fn waited_in_vain(&mut self, waited: Duration) {
        self.in_vain = self.in_vain.saturating_add(waited);
    }

    /// The verdict of the newest attempt that failed.
    pub fn last_failure(&self) -> Option<&Failure> {
        let own = self.entries.iter().rev().filter(|e| !e.refused);
        own.filter_map(|e| e.failure.as_ref()).next()
    }

    /// The newest attempt's verdict is not the generation's, if there is another one before it.
    pub fn yield_to_earlier(&mut self) {
        let mut newest_first = self.entries.iter_mut().rev();
        if let Some(newest) = newest_first.next() {
            newest.refused |= newest_first.any(|e| e.failure.is_some() && !e.refused);
        }
    }

    /// The verdict of the generation that `failure` ends: its own, unless it is the refusal of an
    /// attempt whose verdict is not the generation's.
    pub fn verdict_of_all(&self, failure: Failure) -> Failure {
        let newest = self.entries.last();
        let refusal = newest.is_some_and(|e| e.refused && e.failure.as_ref() == Some(&failure));
        match self.last_failure() {
            Some(own) if refusal => own.clone(),
            _ => failure,
        }
    }

    /// Another attempt goes on with the output of `attempt`.
    pub fn keep(&mut self, attempt: u32) {
        let entry = self.entries.iter_mut().rev().find(|e| e.attempt == attempt);
        if let Some(entry) = entry {
            entry.kept = true;
        }
    }

    /// The output of `attempt` and all later ones is void.
    pub fn void_from(&mut self, attempt: u32) {
        for entry in self.entries.iter_mut().rev() {
            if entry.attempt < attempt {
                break;
            }
            entry.kept = false;
        }
    }

    /// What the message cost: the accepted attempt and those that it goes on with. And whether the
    /// provider counted all of it.
    pub fn message_usage(&self) -> (Option<Usage>, bool) {
        let mut sum = None;
        let mut counted = true;
        for entry in &self.entries {
            if entry.failure.is_some() && !entry.kept {
                continue;
            }
            counted &= !entry.usage_estimated;
            if let Some(usage) = &entry.usage {
                add(sum.get_or_insert_default(), usage);
            }
        }
        (sum, counted)
    }

    /// The attempt and target that `failure` is the verdict of; 0 and none if it is of no attempt.
    pub fn attribute(&self, failure: &Failure) -> (u32, &str) {
        self.entries
            .iter()
            .rev()
            .find(|e| e.failure.as_ref() == Some(failure))
            .map_or((0, ""), |e| (e.attempt, e.target.as_str()))
    }

    /// Whether a request of any attempt may have left.
    pub fn may_have_sent(&self) -> bool {
        self.entries.iter().any(|e| e.executed != Executed::No)
    }

    /// The account as the contract has it.
    pub fn to_proto(&self, wall_origin: Duration) -> proto::Ledger {
        let mut total = Usage::default();
        let mut void = 0u64;
        let mut waited = self.in_vain;
        for entry in &self.entries {
            waited = waited.saturating_add(entry.waited.total);
            let Some(usage) = entry.usage else { continue };
            add(&mut total, &usage);
            if entry.failure.is_some() && !entry.kept {
                void = void.saturating_add(usage.output_tokens);
            }
        }
        let sends = self
            .entries
            .iter()
            .filter(|e| e.executed != Executed::No)
            .count();
        proto::Ledger {
            entries: self
                .entries
                .iter()
                .map(|e| e.to_proto(wall_origin))
                .collect(),
            attempts: self.entries.len() as u32,
            sends: sends as u32,
            total_usage: Some(total),
            void_output_tokens: void,
            waited: Some(duration(waited)),
            skipped: self.skipped.to_vec(),
        }
    }
}

/// A failure as the contract's verdict.
pub fn verdict(failure: &Failure, attempt: u32, target: &str) -> proto::Verdict {
    proto::Verdict {
        class: failure.class.into(),
        retryable: failure.retryable,
        retry_after: failure.wait.map(duration),
        http_status: failure.http_status.map(u32::from).unwrap_or_default(),
        provider_code: failure.code.clone().unwrap_or_default(),
        message: failure.message.clone(),
        attempt,
        target: target.to_owned(),
        gate_reason: failure.gate_reason.to_owned(),
        budget: failure
            .denied
            .as_ref()
            .map(|denied| denied.budget.to_string())
            .unwrap_or_default(),
        limit: failure
            .denied
            .as_ref()
            .map(|denied| denied.limit.clone())
            .unwrap_or_default(),
    }
}

/// A duration as protobuf has it; longer ones than protobuf allows (10,000 years) saturate.
pub fn duration(value: Duration) -> prost_types::Duration {
    let value = value.min(MAX_DURATION);
    prost_types::Duration {
        seconds: value.as_secs() as i64,
        nanos: value.subsec_nanos() as i32,
    }
}

fn add(total: &mut Usage, usage: &Usage) {
    let sum = u64::saturating_add;
    *total = Usage {
        input_tokens: sum(total.input_tokens, usage.input_tokens),
        output_tokens: sum(total.output_tokens, usage.output_tokens),
        cache_read_input_tokens: sum(total.cache_read_input_tokens, usage.cache_read_input_tokens),
        cache_write_input_tokens: sum(
            total.cache_write_input_tokens,
            usage.cache_write_input_tokens,
        ),
        reasoning_output_tokens: sum(total.reasoning_output_tokens, usage.reasoning_output_tokens),
    };
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::{
        proto::Failed,
        verdict::{Class, Origin, Stage},
    };

    /// The most that `recovery.max_attempts` may be.
    const MAX_ATTEMPTS: u32 = 500;

    #[test]
    fn the_largest_account_fits_a_frame() {
        let mut failure = Failure::new(
            Class::RateLimited,
            Origin::Provider,
            Stage::Request,
            "m".repeat(1_000),
        );
        failure.code = Some("c".repeat(512));
        failure.wait = Some(Duration::from_nanos(u64::MAX));
        failure.http_status = Some(429);
        let usage = Usage {
            input_tokens: u64::MAX,
            output_tokens: u64::MAX,
            cache_read_input_tokens: u64::MAX,
            cache_write_input_tokens: u64::MAX,
            reasoning_output_tokens: u64::MAX,
        };
        let waited = Waited {
            total: Duration::from_nanos(u64::MAX),
            source: proto::WaitSource::Provider,
        };
        let mut ledger = Ledger::default();
        for attempt in 1..=MAX_ATTEMPTS {
            ledger.open(Entry {
                attempt,
                // The names of a provider and of a model, as long as they may be.
                target: format!("{}/{}", "p".repeat(64), "m".repeat(256)),
                mode: Mode::Restart,
                started: Time::from_origin(Duration::from_nanos(u64::MAX)),
                ended: Some(Time::from_origin(Duration::from_secs(1 << 40))),
                first_token: Some(Time::from_origin(Duration::from_secs(1 << 40))),
                executed: Executed::Yes,
                failure: Some(failure.clone()),
                usage: Some(usage),
                usage_estimated: true,
                waited,
                kept: false,
                refused: false,
            });
        }
        let failed = Failed {
            verdict: Some(verdict(&failure, MAX_ATTEMPTS, &"t".repeat(321))),
            ledger: Some(ledger.to_proto(Duration::from_secs(1 << 40))),
            ..Failed::default()
        };
        assert!(failed.encoded_len() < 1 << 20, "{}", failed.encoded_len());
    }
}
