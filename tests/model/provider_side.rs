//! What the provider does to a generation.

use std::time::Duration;

use redrive::{
    proto::Delivery,
    recovery::{Event, Time, Upstream},
    verdict::{Class, Failure, Origin, Stage},
};

use super::{
    op::{PERMANENT, Says},
    provider::decoded,
    shared::Shared,
    world::{Access, World},
};

impl World {
    fn signal(&mut self, now: Time, signal: Upstream<'_>, commons: &Access, shared: &mut Shared) {
        let attempt = self.attempts.len() as u32;
        self.is_told = true;
        self.handle(now, Event::Upstream { attempt, signal }, commons, shared);
        self.is_told = false;
    }

    pub(super) fn hand_over(
        &mut self,
        now: Time,
        answered: bool,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let (Some(exchange), Some(attempt), Some(silence)) = (
            &mut self.exchange,
            self.attempts.last_mut(),
            &mut self.silence,
        ) else {
            return;
        };
        let (sent, head) = (!exchange.sent, answered && !exchange.head);
        exchange.sent = true;
        exchange.head |= answered;
        attempt.sent = true;
        attempt.head |= answered;
        if sent {
            silence.sent(now);
            self.signal(now, Upstream::Sent, commons, shared);
        }
        if head {
            if let Some(silence) = &mut self.silence {
                silence.event(now, false);
            }
            let head = Upstream::Head {
                status: 200,
                request_id: None,
            };
            self.signal(now, head, commons, shared);
        }
    }

    pub(super) fn say(&mut self, now: Time, says: Says, commons: &Access, shared: &mut Shared) {
        if self.exchange.is_none() {
            return;
        }
        let Some(words) = self.stream.words(says) else {
            return;
        };
        self.hand_over(now, true, commons, shared);
        self.name_response(now, commons, shared);
        let anew = self.stream.note(says, &words);
        if let Says::Whole(call, whole) = says {
            self.compare(call, whole);
        }
        self.places.said(says, &self.stream);
        self.note_time(now, says);
        if let (Says::Usage(count), Some(attempt)) = (says, self.attempts.last_mut()) {
            attempt.usage = Some(count);
        }
        let class = match says {
            Says::Error(true) => Some(Class::ProviderInternal),
            Says::Error(false) => Some(Class::Auth),
            _ => None,
        };
        if let Some(class) = class {
            let failure = Failure::new(class, Origin::Provider, Stage::Stream, "told");
            self.note_verdict(now, &failure, shared);
        }
        self.landmarks
            .extend((says == Says::Echo).then_some("echo"));
        let event = decoded(says, &words);
        self.signal(now, Upstream::Decoded(event), commons, shared);
        if anew {
            assert!(
                self.exchange.is_none(),
                "an answer that was begun anew and goes on"
            );
            self.landmarks.insert("begun anew");
        }
        self.tell_cursor(now, commons, shared);
        if class.is_some() {
            assert!(
                self.exchange.is_none() && self.generation.committed().is_none(),
                "promise 4: an error object beats a terminal"
            );
            self.landmarks.insert("error object");
        }
    }

    /// The provider says again what a call's arguments are. Where they are others, they count, unless what
    /// was said before can no longer be taken back.
    fn compare(&mut self, call: u32, whole: &'static str) {
        self.stream.filled = false;
        // What is held back is compared by nobody yet.
        if self.stream.is_hidden() {
            return;
        }
        let Some(index) = self.stream.call(call) else {
            self.stream.note(Says::Arguments(call, whole), "");
            self.stream.filled = true;
            return;
        };
        let said = &self.stream.blocks[index].text;
        if said == whole {
            return;
        }
        if said.is_empty() {
            self.stream.blocks[index].text.push_str(whole);
            self.stream.newest = index;
            self.stream.filled = true;
            self.landmarks.insert("filled by a snapshot");
            return;
        }
        self.stream.differs.insert(index);
        let version = self.versions.get(&index).copied().unwrap_or_default();
        let shown = self
            .reader
            .as_ref()
            .is_some_and(|reader| reader.holds_text_of(index, version, &self.void));
        let no_reset = self
            .reader
            .as_ref()
            .is_some_and(|reader| reader.delivery == Delivery::PreviewNoReset);
        if self.confirmed || (shown && no_reset) {
            self.landmarks.insert("a snapshot that lost");
            return;
        }
        whole.clone_into(&mut self.stream.blocks[index].text);
        if shown {
            *self.versions.entry(index).or_default() += 1;
            self.landmarks.insert("a snapshot that won");
        }
    }

    /// A stored response says which it is, before anything else.
    fn name_response(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        let stores = self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.stores);
        if stores && self.stream.cursor == 0 {
            let named = decoded(Says::Started, "");
            self.signal(now, Upstream::Decoded(named), commons, shared);
            self.note_time(now, Says::Started);
            self.stream.cursor = 1;
        }
    }

    /// Everything that was said stands behind a number.
    fn tell_cursor(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        if self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.stores)
        {
            self.stream.cursor += 1;
            let sequence = self.stream.cursor;
            if let Some(silence) = &mut self.silence {
                silence.event(now, true);
            }
            let cursor = redrive::protocol::Event::Cursor { sequence };
            self.signal(now, Upstream::Decoded(cursor), commons, shared);
        }
    }

    fn note_time(&mut self, now: Time, says: Says) {
        let inside = self.places.is_inside_a_block();
        let Some(silence) = &mut self.silence else {
            return;
        };
        match says {
            Says::Keepalive(content) => silence.event(now, content),
            Says::Usage(_) => silence.event(now, true),
            Says::Started => silence.event(now, false),
            Says::Finish(_) => silence.finished(now),
            Says::Done(_) | Says::Error(_) | Says::Garbage => {}
            Says::Whole(..) if !self.stream.filled => silence.event(now, true),
            _ => silence.token(now, inside),
        }
    }

    /// What an ended exchange says changes nothing at all.
    pub(super) fn say_late(&mut self, now: Time, says: Says, commons: &Access) {
        let newest = self.attempts.len() as u32;
        let Some(attempt) = newest.checked_sub(u32::from(self.exchange.is_some())) else {
            return;
        };
        let state = |world: &World| {
            (
                world.due(),
                world.generation.has_frame(),
                world.generation.has_ended(),
                world.generation.transcript_bytes(),
            )
        };
        let before = state(self);
        for signal in [
            Upstream::Sent,
            Upstream::Decoded(decoded(says, "late")),
            Upstream::End,
        ] {
            self.generation
                .handle(now, Event::Upstream { attempt, signal }, commons);
            assert_eq!(
                self.generation.poll_command(),
                None,
                "a late event was heard"
            );
        }
        assert_eq!(before, state(self), "a late event was heard");
    }

    /// The body ends as its framing says.
    pub(super) fn end_response(&mut self, now: Time, commons: &Access, shared: &mut Shared) {
        if self.exchange.is_none() {
            return;
        }
        self.hand_over(now, true, commons, shared);
        self.signal(now, Upstream::End, commons, shared);
        assert!(self.exchange.is_none(), "an exchange after its end");
    }

    pub(super) fn fail(
        &mut self,
        now: Time,
        class: Class,
        wait: Option<u64>,
        commons: &Access,
        shared: &mut Shared,
    ) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let complete = self.stream.complete;
        let before_sent = !exchange.sent && class == Class::Transport;
        let (origin, stage) = match class {
            Class::Transport if before_sent => (Origin::Network, Stage::Connect),
            Class::Transport => (Origin::Network, Stage::Stream),
            _ => (Origin::Provider, Stage::Response),
        };
        if !before_sent {
            self.hand_over(now, false, commons, shared);
        }
        if self.exchange.is_none() {
            return;
        }
        let mut failure = Failure::new(class, origin, stage, "failed");
        failure.wait = wait
            .map(Duration::from_secs)
            .filter(|_| class != Class::Transport);
        if !complete {
            self.note_verdict(now, &failure, shared);
        }
        let supplied = failure.wait;
        let refused = self.is_refusal(&failure);
        self.is_head = failure.stage == Stage::Response;
        self.signal(now, Upstream::Failed(failure), commons, shared);
        self.is_head = false;
        assert!(self.exchange.is_none());
        if complete {
            return;
        }
        let [target] = &*self.params.targets else {
            return;
        };
        if PERMANENT.contains(&class) && !refused {
            assert!(self.generation.has_ended(), "promise 10: nowhere to go");
        }
        let fits = supplied.is_none_or(|wait| now + wait < self.admission_ends(shared));
        if !fits && target.credentials < 2 {
            assert!(
                self.generation.has_ended(),
                "promise 9: a wait that does not fit fails at once"
            );
        }
    }

    /// It says only that an answer is not gone on with.
    fn is_refusal(&self, failure: &Failure) -> bool {
        let resumed = self
            .exchange
            .as_ref()
            .is_some_and(|exchange| exchange.resumes);
        let early = self.stream.is_hidden() || (resumed && failure.stage == Stage::Response);
        early && !failure.retryable
    }

    fn note_verdict(&mut self, now: Time, failure: &Failure, shared: &mut Shared) {
        let Some(exchange) = &self.exchange else {
            return;
        };
        let (target, key) = (exchange.target, (exchange.target, exchange.credential));
        // A request for the rest of an answer that is refused is not the original request refused.
        let of_the_target = [
            Class::Auth,
            Class::Permission,
            Class::QuotaExhausted,
            Class::RedirectRefused,
        ];
        let own = !self.is_refusal(failure) || of_the_target.contains(&failure.class);
        if PERMANENT.contains(&failure.class) && own {
            self.permanent.push(target);
        }
        let Some(wait) = failure.wait else {
            return;
        };
        // What only refuses to go on is not the verdict, so neither is its wait the last one.
        match self.is_refusal(failure) {
            true => self.supplied.insert(0, wait),
            false => self.supplied.push(wait),
        }
        let until = now + wait;
        let hold = match failure.class {
            Class::RateLimited | Class::QuotaExhausted => shared.rests.entry(key).or_default(),
            _ => self.not_before.entry(target).or_default(),
        };
        *hold = until.max(*hold);
    }
}
