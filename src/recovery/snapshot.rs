//! A provider's final snapshot of a block, against what was streamed of it.
//!
//! What was never streamed is filled. Where the two differ, the snapshot is right and the client is told
//! the truth: the block, and only that, is reset and given again. Where it can no longer be taken back
//! (effects were confirmed, or the client has seen some of it and knows no reset), the deltas stay.
//! Either way the message says that there was a difference.

use super::{
    Time, commons::Access, event::Observation, generation::Generation, ledger, timers::LastEvent,
    transcript::Compared,
};
use crate::{
    proto::{Delivery, PreviewReset, generate_response::Frame},
    protocol::Delta,
    verdict::{Class, Failure, Origin, Stage},
};

impl Generation {
    /// The provider says what block `number` holds as a whole.
    pub(super) fn on_snapshot(
        &mut self,
        now: Time,
        number: u32,
        whole: &Delta<'_>,
        commons: &impl Access,
    ) {
        let Some(attempt) = self.running() else {
            return;
        };
        attempt.clockwork.event(now, LastEvent::Keepalive, true);
        // What is held back is compared by nobody yet.
        if self.is_unjudged() {
            return;
        }
        match self.transcript.compare(number, whole) {
            Compared::Same => {}
            Compared::Missing => {
                let selected = self.transcript.select(Some(number));
                self.on_delta(now, whole, commons);
                self.transcript.select(selected);
            }
            Compared::Differs { block, text } => {
                self.on_difference(block, text);
                self.bound_message(now, commons);
            }
        }
    }

    fn on_difference(&mut self, index: usize, text: Option<&str>) {
        let fixed_below = self.fixed_below();
        let Some(block) = self.transcript.block_mut(index) else {
            return;
        };
        block.differs = true;
        let shown = block.is_shown();
        let delivery = self.client.as_ref().map(|client| client.delivery);
        let stays = self.effects_confirmed
            || block.attempt < fixed_below
            || (shown && delivery == Some(Delivery::PreviewNoReset));
        let Some(text) = text.filter(|_| !stays) else {
            return;
        };
        self.transcript.replace(index, text);
        if shown {
            let failure = Failure::new(
                Class::Corrupt,
                Origin::Provider,
                Stage::Stream,
                "the provider's final snapshot of a block differs from what it had streamed",
            );
            self.tell_block_reset(index as u32, &failure);
        }
    }

    /// What was shown of a block is void, because of `failure`.
    pub(super) fn tell_block_reset(&mut self, block: u32, failure: &Failure) {
        let voided = match &mut self.client {
            Some(client) => client.void_block(block),
            None => return,
        };
        let target = self.itinerary.current();
        let target = target.map(|target| target.name.to_string());
        let verdict = ledger::verdict(failure, self.attempts, &target.unwrap_or_default());
        for attempt in voided {
            self.tell(Frame::PreviewReset(PreviewReset {
                attempt,
                blocks: vec![block],
                verdict: Some(verdict.clone()),
                wait: None,
            }));
            self.observe(Observation::PreviewReset {
                attempt,
                block: Some(block),
                class: failure.class,
            });
        }
    }
}
