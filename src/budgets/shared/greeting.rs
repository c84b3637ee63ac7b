//! What the engine is told on each new connection, and when it does not know what it should.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    BATCH, Id, Inner, Lost, answer::Head, call::Call, client::Connection, ledger::Held, micros,
    told::counted,
};

/// How often the engine may forget while it is told what it forgot.
const GREETINGS: usize = 4;

impl Inner {
    /// Tells the engine what it does not know: this configuration, the leases that are held if it forgot,
    /// and those that nobody waits for any more.
    pub(super) async fn greet(&self, connection: &Connection) -> Result<(), Lost> {
        let join = Call::new("join").say(&self.told.lines);
        for _ in 0..GREETINGS {
            let epoch = self.told_by(connection, &join).await?.epoch;
            if epoch == self.ledger().epoch {
                return self.give_back_doubts(connection).await;
            }
            for call in self.replays() {
                self.told_by(connection, &call).await?;
            }
            // Should it have forgotten again meanwhile, it is all told again.
            self.ledger().epoch = epoch;
        }
        Err(Lost::NotReady("it forgets what it is told".into()))
    }

    async fn give_back_doubts(&self, connection: &Connection) -> Result<(), Lost> {
        loop {
            let Some(id) = self.ledger().next_doubt() else {
                return Ok(());
            };
            let release = Call::new("release").say(id);
            self.told_by(connection, &release).await?;
            self.ledger().undoubt(id);
        }
    }

    async fn told_by(&self, connection: &Connection, call: &Call) -> Result<Head, Lost> {
        let answer = timeout(self.options.timeout, self.ask_by(connection, call)).await;
        answer.unwrap_or(Err(Lost::Timeout)).map(|(head, _)| head)
    }

    /// What is held, to be told again.
    fn replays(&self) -> Vec<Call> {
        let now = self.now();
        let mut held: Vec<(Id, Held)> = {
            let ledger = self.ledger();
            let held = ledger.held.iter();
            held.map(|(id, held)| (*id, held.clone())).collect()
        };
        // In the order in which they left: entries are kept in order.
        held.sort_unstable_by_key(|(id, held)| (held.sent_at, *id));
        let calls = held.chunks(BATCH).map(|batch| {
            let mut call = Call::new("replay").say(batch.len());
            for (id, held) in batch {
                let [input, output] = counted(held.tokens);
                let ago = held
                    .sent_at
                    .map_or(Duration::ZERO, |at| now.saturating_sub(at));
                let unsent = held.send_by.saturating_sub(now);
                let lives = unsent.max(self.options.life);
                call = call.say(id).say(&self.options.pod);
                call = call.say(u8::from(held.sent_at.is_some())).say(held.times);
                call = call
                    .say(input)
                    .say(output)
                    .say(micros(ago))
                    .say(micros(lives));
                call = self.say_budgets(call, &held.budgets, &held.days);
            }
            call
        });
        calls.collect()
    }
}
