//! What can be asked of a domain, and what is told to it.

use std::{sync::Arc, time::Duration};

use super::{
    Answer, Ask, BATCH, Batch, BudgetStatus, Heard, Id, Inner, Lost, Renewed, Shared, Status,
    Today, Turn,
    answer::{Code, Head, Reader},
    call::Call,
    ledger::Held,
    micros,
    told::{counted, flow},
};
use crate::limits::{BudgetId, Weights};

/// The answer has another code than its verb can have.
const OUT_OF_PLACE: Lost = Lost::Garbled("its code is out of place");

/// A lease that was asked for and not answered: it goes back.
struct Doubt {
    inner: Arc<Inner>,
    id: Option<Id>,
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.inner.ledger().doubt(id);
            self.inner.link.greet_again();
        }
    }
}

impl Shared {
    /// Asks for a lease of all of the budgets, or of none, again until there is an answer or `patience` is
    /// over. Dropped, or without an answer, it gives back what it may have been granted: that lease is over
    /// then, and is not to be asked for again.
    ///
    /// # Errors
    /// [`Lost`] if there is no answer: nothing may be sent.
    pub async fn acquire(&self, ask: Ask<'_>, patience: Duration) -> Result<Answer, Lost> {
        let Inner { options, .. } = &*self.inner;
        if self.inner.ledger().is_doubted(ask.lease) {
            return Ok(Answer::Over);
        }
        let send_within = ask.send_within.min(options.longest_unsent);
        let send_by = self.inner.now().saturating_add(send_within);
        let [input, output] = counted(ask.tokens);
        let call = Call::new("acquire").say(ask.lease).say(&options.pod);
        let call = call.say(input).say(output).say(micros(send_within));
        let known = self.inner.told.budgets.len();
        let asked = ask.budgets.iter().copied();
        let asked: Vec<_> = asked.filter(|budget| *budget < known).collect();
        let call = say_turn(call, &asked, ask.turn);
        let call = self.inner.say_budgets(call, ask.budgets, ask.days);
        let mut doubt = Doubt {
            inner: Arc::clone(&self.inner),
            id: Some(ask.lease),
        };
        let answer = self.inner.ask(&call, patience).await;
        let answer = answer.and_then(|(head, reader)| read_answer(&head, reader, &asked))?;
        // Granted before, and too late to be sent: nobody else gives that back.
        let is_stray = answer == Answer::Over && !self.inner.ledger().held.contains_key(&ask.lease);
        if !is_stray {
            doubt.id = None;
        }
        if answer == Answer::Granted {
            let held = Held {
                budgets: ask.budgets.into(),
                days: ask.days.into(),
                tokens: ask.tokens,
                send_by,
                sent_at: None,
                times: 0,
                confirmed: 0,
            };
            // Asked again, it may have stayed before.
            self.inner.ledger().held.entry(ask.lease).or_insert(held);
        }
        Ok(answer)
    }

    /// The first byte leaves now, if this is `true`; asked in the same step in which it does. It is to be
    /// told then ([`tell`](Self::tell)). `false` if the lease is unknown, late, left before, or stayed and
    /// the engine has not heard of it.
    pub fn leave(&self, lease: Id) -> bool {
        let now = self.inner.now();
        self.inner.ledger().leave(now, lease)
    }

    /// What was said to leave provably did not. To be told, too.
    pub fn stayed(&self, lease: Id) {
        self.inner.ledger().stayed(lease);
    }

    /// Tells whether a lease left or stayed. Until it is heard, the lease counts in full.
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard; [`renew`](Self::renew) tells it again.
    pub async fn tell(&self, lease: Id, patience: Duration) -> Result<Heard, Lost> {
        let held = self.inner.ledger().held.get(&lease).map(|held| held.times);
        let Some(times) = held else {
            return Ok(Heard::Unknown);
        };
        let call = Call::new("sent").say(lease).say(times);
        let (head, _) = self.inner.ask(&call, patience).await?;
        let heard = heard(&head)?;
        let mut ledger = self.inner.ledger();
        match heard {
            Heard::Done => ledger.confirm(lease, times),
            // A send that runs is cut by `renew`.
            Heard::Over | Heard::Refused | Heard::Unknown => {}
        }
        Ok(heard)
    }

    /// The send is over and took `actual`. It is held no longer, whatever comes of it: not heard, it stays
    /// counted as it was reserved, and ends by itself.
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard; it may be told again.
    pub async fn settle(
        &self,
        lease: Id,
        actual: Weights,
        patience: Duration,
    ) -> Result<Heard, Lost> {
        self.inner.ledger().held.remove(&lease);
        let [input, output] = counted(actual);
        let call = Call::new("settle").say(lease).say(input).say(output);
        let (head, _) = self.inner.ask(&call, patience).await?;
        heard(&head)
    }

    /// The lease will not leave, or has, and is over without anything known. As [`settle`](Self::settle).
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard; it may be told again.
    pub async fn release(&self, lease: Id, patience: Duration) -> Result<Heard, Lost> {
        self.inner.ledger().held.remove(&lease);
        let call = Call::new("release").say(lease);
        let (head, _) = self.inner.ask(&call, patience).await?;
        heard(&head)
    }

    /// The answer to the lease's send has begun: if it was a probe, its budgets' rest is over. To be told after
    /// its send was.
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard.
    pub async fn answered(&self, lease: Id, patience: Duration) -> Result<Heard, Lost> {
        let call = Call::new("answered").say(lease);
        let (head, _) = self.inner.ask(&call, patience).await?;
        heard(&head)
    }

    /// It is held no longer, without a word: it ends by itself.
    pub fn let_go(&self, lease: Id) {
        self.inner.ledger().held.remove(&lease);
    }

    /// The leases that are held, in batches that one call each renews; at least one, since with nothing held
    /// the configuration is still in use.
    pub fn batches(&self) -> Vec<Batch> {
        let mut all: Vec<(Id, u64)> = {
            let ledger = self.inner.ledger();
            let held = ledger.held.iter();
            held.map(|(id, held)| (*id, held.times)).collect()
        };
        all.sort_unstable();
        let batches = all.chunks(BATCH).chain(all.is_empty().then_some(&[][..]));
        batches.map(|batch| Batch(batch.into())).collect()
    }

    /// Prolongs the life of leases that have left, and tells again what was not heard. To be called three
    /// times in a life. Those that are over are told and held no longer: their sends must be cut.
    ///
    /// # Errors
    /// [`Lost`]; two thirds of a life without an answer, and all sends must be cut.
    pub async fn prolong(&self, batch: &Batch, patience: Duration) -> Result<Renewed, Lost> {
        let Batch(batch) = batch;
        let mut call = Call::new("renew").say(batch.len());
        for (id, times) in batch {
            call = call.say(id).say(times);
        }
        let (head, mut reader) = self.inner.ask(&call, patience).await?;
        let mut ledger = self.inner.ledger();
        let mut renewed = Renewed::default();
        if head.epoch != ledger.epoch {
            renewed.forgot = true;
            return Ok(renewed);
        }
        while !reader.is_over() {
            let index = reader.index(batch.len())?;
            renewed.over.extend(batch.get(index).map(|(id, _)| *id));
        }
        for (id, times) in batch {
            if renewed.over.contains(id) {
                ledger.held.remove(id);
                continue;
            }
            ledger.confirm(*id, *times);
            // What is unsent ends at its time, however often it is renewed; also what stayed since the batch
            // was made.
            let held = ledger.held.get(id);
            if times % 2 == 1 && held.is_some_and(|held| held.times == *times) {
                renewed.prolonged.push(*id);
            }
        }
        Ok(renewed)
    }

    /// Renews all [`batches`](Self::batches); which leases are over.
    ///
    /// # Errors
    /// [`Lost`]; as [`prolong`](Self::prolong).
    pub async fn renew(&self, patience: Duration) -> Result<Vec<Id>, Lost> {
        let mut over = Vec::new();
        for batch in self.batches() {
            let mut renewed = self.prolong(&batch, patience).await?;
            if renewed.forgot {
                return Err(Lost::NotReady("it forgot, and is told again".into()));
            }
            over.append(&mut renewed.over);
        }
        Ok(over)
    }

    /// A provider asked not to be asked for `wait` by any of `budgets`; then one probe.
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard; told twice, it rests no shorter.
    pub async fn penalise(
        &self,
        budgets: &[BudgetId],
        wait: Duration,
        patience: Duration,
    ) -> Result<(), Lost> {
        self.rest("penalise", budgets, wait, patience).await
    }

    /// A provider says that nothing remains for `wait`.
    ///
    /// # Errors
    /// [`Lost`] if it is not known to have been heard; told twice, it rests no shorter.
    pub async fn brake(
        &self,
        budgets: &[BudgetId],
        wait: Duration,
        patience: Duration,
    ) -> Result<(), Lost> {
        self.rest("brake", budgets, wait, patience).await
    }

    async fn rest(
        &self,
        verb: &'static str,
        budgets: &[BudgetId],
        wait: Duration,
        patience: Duration,
    ) -> Result<(), Lost> {
        // Longer than a century is a century.
        let wait = micros(wait).min(1 << 51);
        let told = &self.inner.told.budgets;
        let names: Vec<_> = budgets
            .iter()
            .filter_map(|budget| told.get(*budget))
            .collect();
        let mut call = Call::new(verb).say(wait).say(names.len());
        for (name, _) in names {
            call = call.say(name);
        }
        let (head, _) = self.inner.ask(&call, patience).await?;
        heard(&head).map(|_| ())
    }

    /// What `budgets` are like, each with its day.
    ///
    /// # Errors
    /// [`Lost`] if there is no answer.
    pub async fn status(
        &self,
        budgets: &[BudgetId],
        days: &[Today],
        patience: Duration,
    ) -> Result<Status, Lost> {
        let call = self.inner.say_budgets(Call::new("status"), budgets, days);
        let (_, mut reader) = self.inner.ask(&call, patience).await?;
        let account = reader.account()?;
        let mut found = Vec::new();
        while !reader.is_over() {
            let running = reader.number()?;
            let entries = reader.number()?;
            let overruns = reader.number()?;
            let learning = Duration::from_micros(reader.number()?);
            let rests = Duration::from_micros(reader.number()?);
            let limits = reader.index(1_000)?;
            let used = (0..limits)
                .map(|_| reader.number())
                .collect::<Result<_, _>>()?;
            found.push(BudgetStatus {
                running,
                entries,
                overruns,
                learning,
                rests,
                used,
            });
        }
        Ok(Status {
            account,
            budgets: found,
        })
    }
}

fn say_turn(call: Call, asked: &[BudgetId], turn: Option<Turn<'_>>) -> Call {
    let place = |turn: Turn<'_>| asked.iter().position(|budget| *budget == turn.budget);
    match turn.and_then(|turn| Some((place(turn)?, turn))) {
        Some((place, turn)) => {
            let call = call.say(place).say(flow(turn.flow));
            call.say(turn.weight.max(1)).say(u8::from(turn.more))
        }
        None => call.say(-1).say("-").say(1).say(0),
    }
}

fn heard(head: &Head) -> Result<Heard, Lost> {
    match head.code {
        Code::Ok => Ok(Heard::Done),
        Code::Over => Ok(Heard::Over),
        Code::Refused => Ok(Heard::Refused),
        Code::Unknown => Ok(Heard::Unknown),
        _ => Err(OUT_OF_PLACE),
    }
}

fn read_answer(head: &Head, mut reader: Reader, asked: &[BudgetId]) -> Result<Answer, Lost> {
    match head.code {
        Code::Granted => {
            let send_in = reader.integer()?;
            let unsent = reader.number()? == 0;
            let granted = send_in >= 0 && unsent;
            Ok(if granted {
                Answer::Granted
            } else {
                Answer::Over
            })
        }
        Code::Denied => {
            let (budget, limit) = reader.limit(asked)?;
            let wait = u64::try_from(reader.integer()?).ok();
            Ok(Answer::Denied {
                budget,
                limit,
                wait: wait.map(Duration::from_micros),
            })
        }
        Code::Never => {
            let (budget, limit) = reader.limit(asked)?;
            Ok(Answer::Never { budget, limit })
        }
        Code::Turn => {
            let budget = reader.budget(asked)?;
            let wait = Duration::from_micros(reader.number()?);
            Ok(Answer::Turn { budget, wait })
        }
        Code::Learning => {
            let budget = reader.budget(asked)?;
            let wait = Duration::from_micros(reader.number()?);
            Ok(Answer::Learning { budget, wait })
        }
        _ => Err(OUT_OF_PLACE),
    }
}
