//! What holds for every case, whatever it expects: the client's account against the provider's.

use std::time::Duration;

use redrive::{
    proto::{Executed, VerdictClass as Class, generate_response::Frame},
    simulator::{End, Received},
};

use crate::outcome::{Call, Outcome, closed_by_client, was_left_open};

/// Classes after which the same request is not sent again (there is one target only).
const PERMANENT: &[Class] = &[
    Class::Auth,
    Class::Permission,
    Class::InvalidRequest,
    Class::QuotaExhausted,
    Class::ContextOverflow,
    Class::ContentFiltered,
];

/// How early the clocks of two ends may make something look.
const SLACK: Duration = Duration::from_millis(5);

/// After a cancel or an end, exchanges with the provider are closed within this.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

/// How long after the next send a silent attempt may still look open: closings take a moment.
const STILL_OPEN: Duration = Duration::from_millis(250);

/// How long the rest of an answer that was complete may be read on, so that its connection can serve again.
const READ_ON: Duration = Duration::from_millis(250);

/// Our own backoff as configured: base and most.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(600));

/// What is broken.
pub fn complaints(outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    for call in &outcome.calls {
        let requests = outcome.requests_of(call);
        found.extend(account(call, &requests));
        found.extend(bodies(call, &requests));
        found.extend(waits(outcome, call, &requests));
        found.extend(abandoned(call, &requests));
        found.extend(closings(call, &requests));
    }
    found
}

/// Every request is a send of the ledger, and no permanent failure was sent again.
fn account(call: &Call, requests: &[&Received]) -> Vec<String> {
    let mut found = Vec::new();
    let started = call
        .told()
        .filter(|frame| matches!(frame, Frame::AttemptStarted(_)))
        .count();
    if call.left.is_none() && requests.len() > started {
        found.push(format!(
            "{started} attempts announced, {} requests came",
            requests.len()
        ));
    }
    let Some(ledger) = call.ledger() else {
        return found;
    };
    let executed = |wanted| {
        ledger
            .entries
            .iter()
            .filter(|entry| entry.executed() == wanted)
            .count()
    };
    let (yes, maybe) = (executed(Executed::Yes), executed(Executed::Maybe));
    if !(yes..=yes + maybe).contains(&requests.len()) {
        let came = requests.len();
        found.push(format!(
            "the ledger has {yes} sends and {maybe} that may be, {came} came"
        ));
    }
    for entry in ledger.entries.iter().rev().skip(1) {
        let class = entry.verdict.as_ref().map(|verdict| verdict.class());
        if class.is_some_and(|class| PERMANENT.contains(&class)) {
            found.push(format!(
                "attempt {} failed with {class:?} and was sent again",
                entry.attempt
            ));
        }
    }
    found
}

/// The same body, byte for byte, but for the hint that follows an answer which the gate rejected: that one
/// stands in one place of the first body, and stays until the next one is rejected.
fn bodies(call: &Call, requests: &[&Received]) -> Vec<String> {
    let complete: Vec<_> = requests.iter().filter(|request| request.complete).collect();
    let (hinted, rejected) = (call.hinted(), call.rejected());
    if !hinted.contains(&true) && !rejected.contains(&true) {
        let first = complete.first();
        let other = first.and_then(|first| complete.iter().find(|other| !is_same(first, other)));
        return other.map(|other| differs(other)).into_iter().collect();
    }
    let mut found = Vec::new();
    if complete.len() < requests.len() || requests.len() > hinted.len() {
        found.push("which attempt a request is of cannot be told".to_owned());
        return found;
    }
    for (turn, request) in requests.iter().enumerate() {
        let before = turn.checked_sub(1);
        let follows = before.is_some_and(|before| rejected.get(before) == Some(&true));
        let right = match hinted[turn] || follows {
            false => is_same(requests[0], request),
            true => has_insertion(&requests[0].body.bytes, &request.body.bytes),
        };
        let again = before.filter(|before| rejected.get(*before) == Some(&false));
        let same = again.is_none_or(|before| is_same(requests[before], request));
        if !right || !same {
            found.push(differs(request));
        }
    }
    found
}

fn differs(request: &Received) -> String {
    format!("request {} has another body than it should", request.number)
}

fn is_same(one: &Received, other: &Received) -> bool {
    one.body.bytes == other.body.bytes
}

/// Whether `longer` is `body` with something put in, in one place.
fn has_insertion(body: &[u8], longer: &[u8]) -> bool {
    let alike = |(one, other): &(&u8, &u8)| one == other;
    let before = body.iter().zip(longer).take_while(alike).count();
    let behind = body.iter().rev().zip(longer.iter().rev()).take_while(alike);
    longer.len() > body.len() && before + behind.count() >= body.len()
}

/// Waits that were asked for are kept, none is invented, and our own are not too short.
fn waits(outcome: &Outcome, call: &Call, requests: &[&Received]) -> Vec<String> {
    let mut found = Vec::new();
    let rejected = call.rejected();
    for (turn, pair) in requests.windows(2).enumerate() {
        let &[before, after] = pair else { continue };
        let answered = before.head.or(before.ended).unwrap_or(before.arrived);
        let gap = after.arrived.saturating_sub(answered);
        let told = |least: Duration| {
            let (number, of) = (after.number, before.number);
            format!("request {number} came {gap:?} after the answer to {of}, not {least:?}")
        };
        if let Some(asked) = asked_wait(outcome, before)
            && gap + SLACK < asked
        {
            found.push(told(asked));
        }
        // On HTTP/2, and where a stream ends cleanly, the failure is not told by the head. After an answer
        // that the gate rejected there is none.
        let late = (before.end == Some(End::Clean) && before.status == Some(200))
            || rejected.get(turn) == Some(&true);
        let own = BACKOFF.0.saturating_mul(1 << turn.min(16)).min(BACKOFF.1);
        if before.stream.is_none() && !late && gap + SLACK < own {
            found.push(told(own));
        }
    }
    let names_none = requests
        .iter()
        .all(|request| asked_wait(outcome, request).is_none());
    let verdicts = call.told().filter_map(|frame| match frame {
        Frame::Failed(failed) => failed.verdict.as_ref(),
        Frame::PreviewReset(reset) => reset.verdict.as_ref(),
        _ => None,
    });
    let providers = verdicts.filter(|verdict| verdict.budget.is_empty());
    let told = providers.filter_map(|verdict| verdict.retry_after);
    for wait in told {
        if names_none {
            found.push(format!(
                "a wait of {wait:?} is told as the provider's; none was given"
            ));
        }
    }
    found
}

/// The wait that the answer to `request` asked for, as it was served.
pub fn asked_wait(outcome: &Outcome, request: &Received) -> Option<Duration> {
    if request.status == Some(200) {
        return None;
    }
    let header = |name: &str| {
        let found = request.served.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let date = |text: &str| {
        let at = httpdate::parse_http_date(text).ok()?;
        let now = match header("date") {
            Some(date) => httpdate::parse_http_date(date).ok()?,
            // As far as whole seconds tell: the date was written that much ahead.
            None => return ahead(outcome, request),
        };
        at.duration_since(now).ok()
    };
    let after = header("retry-after").and_then(|text| seconds(text).or_else(|| date(text)));
    let millis = header("retry-after-ms").and_then(|text| text.parse().ok());
    let millis = millis.map(|millis: f64| Duration::from_secs_f64(millis / 1000.0));
    after.max(millis)
}

/// The least that `{{http_date:now+2s}}` can mean: a date has no fractions of a second.
fn ahead(outcome: &Outcome, request: &Received) -> Option<Duration> {
    let script = outcome.script_of(request)?;
    let (_, rest) = script.headers.get("retry-after")?.split_once("now+")?;
    let seconds: u64 = rest.split_once('s')?.0.parse().ok()?;
    Some(Duration::from_secs(seconds.saturating_sub(1)))
}

/// A silent attempt is ended before the next send. One that the gate rejected was complete.
fn abandoned(call: &Call, requests: &[&Received]) -> Vec<String> {
    let mut found = Vec::new();
    let rejected = call.rejected();
    for (turn, pair) in requests.windows(2).enumerate() {
        let &[before, after] = pair else { continue };
        let most = match rejected.get(turn) {
            Some(true) => STILL_OPEN + READ_ON,
            _ => STILL_OPEN,
        };
        let closed = closed_by_client(before);
        let late = closed.is_none_or(|closed| closed > after.arrived + most);
        if was_left_open(before) && late {
            found.push(format!(
                "request {} was open when {} came",
                before.number, after.number
            ));
        }
    }
    found
}

/// Nothing outlives its call, and nothing is sent after the client has left.
fn closings(call: &Call, requests: &[&Received]) -> Vec<String> {
    let mut found = Vec::new();
    let end = call.left.unwrap_or(call.ended);
    for request in requests {
        if call.left.is_some() && request.arrived > end + Duration::from_millis(50) {
            found.push(format!(
                "request {} came after the client had left",
                request.number
            ));
        }
        if !was_left_open(request) {
            continue;
        }
        match closed_by_client(request) {
            None => found.push(format!("request {} is open after the end", request.number)),
            Some(closed) if closed > end + CLOSED_WITHIN => {
                let late = closed.saturating_sub(end);
                found.push(format!(
                    "request {} was closed {late:?} after the end",
                    request.number
                ));
            }
            Some(_) => {}
        }
    }
    found
}
