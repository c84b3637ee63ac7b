//! What clients do, and what they check of every frame.

use std::{sync::Arc, time::Duration};

use redrive::proto::{
    Committed, CompleteRequest, Delivery, GenerateResponse, Part, RecoveryOptions, Start,
    StoppedBy, VerdictClass, delta::Content, generate_response::Frame,
    generation_service_client::GenerationServiceClient,
};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::{
    account::{Account, question},
    gate,
};
use crate::{
    dice::Dice,
    model::{Block, blocks_of, called},
    support::{
        Rpc, StartExt, attach_by_request, attach_to, cancel, conversation, effects, end_of,
        generate, millis, rpc, secs, start_as, start_with,
    },
};

/// One client: what it wants, and what it has seen.
struct Client {
    number: u64,
    channel: Channel,
    drain: CancellationToken,
    account: Arc<Account>,
    dice: Dice,
    start: Start,
    generation: String,
}

/// Everything one client does, until it has its end or has had enough.
pub async fn live(
    number: u64,
    channel: Channel,
    drain: CancellationToken,
    account: Arc<Account>,
    mut dice: Dice,
) {
    let mut start = draw(number, &mut dice);
    if let Some(rules) = gate::draw(&account.house, &mut start, &mut dice) {
        account.is_gated(number, rules);
    }
    let mut client = Client {
        number,
        channel,
        drain,
        account,
        dice,
        start,
        generation: String::new(),
    };
    client.pause().await;
    if client.drain.is_cancelled() {
        return;
    }
    if client.start.detach_grace.is_none() && client.dice.chance(10) {
        return client.complete().await;
    }
    let deadline = client
        .dice
        .chance(10)
        .then(|| secs(1 + client.dice.below(60)));
    let rpc = rpc::open(&client.channel, deadline).await;
    rpc.send(generate(client.start.clone()));
    let mut next = Some(rpc);
    while let Some(rpc) = next {
        next = client.follow(rpc).await;
    }
}

fn draw(number: u64, dice: &mut Dice) -> Start {
    let mut start = start_as(&format!("request-{number}"));
    start.input = start_with(RecoveryOptions::default()).input;
    start.input = Some(redrive::proto::start::Input::Conversation(conversation(
        &question(number),
    )));
    if dice.chance(20) {
        start.request_id = String::new();
    }
    if dice.chance(25) {
        start = start.with_grace(secs(dice.pick(&[5, 60])));
    }
    if dice.chance(25) {
        start.scope = dice.pick(&["turn", "retry"]).to_owned();
    }
    if dice.chance(10) {
        start.recovery = Some(RecoveryOptions {
            disable_replay: dice.chance(50),
            disable_fallback: dice.chance(50),
            ..RecoveryOptions::default()
        });
    }
    start.delivery = dice
        .pick(&[
            Delivery::Preview,
            Delivery::Preview,
            Delivery::Preview,
            Delivery::PreviewNoReset,
            Delivery::CommittedOnly,
        ])
        .into();
    start
}

impl Client {
    async fn pause(&mut self) {
        let length = match self.dice.below(10) {
            0 => millis(self.dice.below(30_000)),
            1 => millis(self.dice.below(300_000)),
            2..5 => millis(self.dice.below(2_000)),
            _ => return,
        };
        time::sleep(length).await;
    }

    /// Reads one RPC until it ends, or until something better to do comes to mind; the RPC to go on
    /// with.
    async fn follow(&mut self, mut rpc: Rpc) -> Option<Rpc> {
        let mut view = View::default();
        let (mut is_cancelled, mut is_open) = (false, true);
        loop {
            self.pause().await;
            let patience = millis(1 + self.dice.below(400_000));
            match time::timeout(patience, rpc.next()).await {
                Ok(Some(frame)) => self.see(&mut view, &frame, &rpc),
                Ok(None) => {
                    self.account.tell(self.number, &end_of(&rpc.frames));
                    return self.after_the_end().await;
                }
                Err(_) => {}
            }
            match self.dice.below(60) {
                0 | 1 => {
                    rpc.vanish();
                    return self.after_vanishing().await;
                }
                2 if is_open && !is_cancelled => {
                    is_cancelled = true;
                    rpc.send_late(cancel("no more"));
                    time::sleep(millis(1)).await;
                    self.account.check_nothing_in_flight(self.number);
                    self.account.is_over(self.number);
                }
                3..6 => {
                    self.account.acts(self.number);
                    rpc.send_late(effects(rpc.sequence().max(1)));
                }
                8..11 => {
                    self.account.acts(self.number);
                    let any = 1 + self.dice.below(rpc.sequence() + 1);
                    rpc.send_late(effects(any));
                }
                6 => {
                    rpc.half_close();
                    is_open = false;
                }
                7 => {
                    if let Some(newer) = self.attach().await {
                        self.displaced(view, rpc).await;
                        return Some(newer);
                    }
                }
                _ => {}
            }
        }
    }

    /// The older RPC ends without a terminal frame, or had its end already.
    async fn displaced(&mut self, mut view: View, mut rpc: Rpc) {
        while let Some(frame) = rpc.next().await {
            self.see(&mut view, &frame, &rpc);
        }
        if end_of(&rpc.frames) == "None" {
            self.account.reach("displaced");
        }
    }

    /// What has ended can be looked at again.
    async fn after_the_end(&mut self) -> Option<Rpc> {
        if self.dice.chance(80) {
            return None;
        }
        self.pause().await;
        self.attach().await
    }

    async fn after_vanishing(&mut self) -> Option<Rpc> {
        if self.start.detach_grace.is_none() {
            time::sleep(millis(1)).await;
            self.account.check_nothing_in_flight(self.number);
            self.account.is_over(self.number);
        }
        if self.dice.chance(50) {
            return None;
        }
        self.pause().await;
        self.attach().await
    }

    async fn attach(&mut self) -> Option<Rpc> {
        if self.drain.is_cancelled() {
            return None;
        }
        let frame = if !self.start.request_id.is_empty() && self.dice.chance(30) {
            // The same question again finds the same generation, unless that is forgotten.
            attach_by_request(&self.start.request_id)
        } else if !self.generation.is_empty() {
            attach_to(&self.generation)
        } else {
            return None;
        };
        let rpc = rpc::open(&self.channel, None).await;
        rpc.send(frame);
        Some(rpc)
    }

    /// The whole in one call.
    async fn complete(self) {
        let mut client = GenerationServiceClient::new(self.channel.clone());
        let mut start = self.start.clone();
        start.request_id = format!("request-{}", self.number);
        let request = CompleteRequest { start: Some(start) };
        let answer = client.complete(request).await;
        let Ok(response) = answer else {
            return self.account.tell(self.number, "failed in one call");
        };
        let committed = response.into_inner().committed.unwrap();
        self.account.reach("completed by one call");
        let mut view = View {
            parts: committed.message.clone(),
            ..View::default()
        };
        self.check_committed(&mut view, &committed);
    }

    /// Checks one frame.
    fn see(&mut self, view: &mut View, frame: &Frame, rpc: &Rpc) {
        match frame {
            Frame::Accepted(accepted) => {
                self.generation.clone_from(&accepted.generation_id);
                view.deadline = length(accepted.deadline);
                view.is_attached = accepted.attached;
                if accepted.attached {
                    self.account.reach("attached");
                }
            }
            Frame::Waiting(waiting) => {
                if !waiting.budget.is_empty() {
                    self.account.reach("held back by a budget");
                }
                assert!(
                    waiting.expected.is_none() || length(waiting.expected) <= view.deadline,
                    "promise 9: a wait that does not fit the deadline"
                );
                self.account.reach("waiting");
            }
            Frame::AttemptStarted(_) | Frame::Progress(_) => {}
            Frame::Delta(delta) => {
                let said = self.account.said(self.number, delta.attempt);
                let block = delta.block as usize;
                view.add(delta.attempt, block, delta.content.as_ref().unwrap());
                let own = block.checked_sub(said.offset());
                let spoken = own.and_then(|own| said.blocks.get(own));
                assert!(
                    spoken.is_some_and(|spoken| spoken.text.starts_with(&view.blocks[block].1)),
                    "promise 2: a delta that this attempt did not say"
                );
            }
            Frame::PreviewReset(reset) => {
                let is_first = !view.is_attached;
                assert!(
                    !is_first || self.start.delivery() == Delivery::Preview,
                    "a reset only in a preview"
                );
                let verdict = reset.verdict.as_ref().unwrap();
                if verdict.class() == VerdictClass::GateRejected {
                    let said = self.account.said(self.number, verdict.attempt);
                    let rules = self.account.rules(self.number).unwrap();
                    let reason = rules.reason(&said.answer());
                    assert_eq!(reason, Some(&*verdict.gate_reason), "why it is void");
                }
                view.blocks.retain(|(attempt, _)| *attempt != reset.attempt);
                self.account.reach("reset");
            }
            Frame::Committed(committed) if !committed.r#final && committed.part == 0 => {
                self.account.reach("effects confirmed");
                let through = committed.through_sequence;
                if claims(&rpc.frames, through) {
                    self.account.is_bound(self.number);
                }
            }
            Frame::Committed(committed) => {
                view.parts.extend(committed.message.iter().cloned());
                if committed.r#final {
                    self.check_committed(view, committed);
                }
            }
            Frame::Failed(_) if rpc.frames.len() == 1 => self.account.reach("refused"),
            Frame::Failed(failed) => {
                self.account.check_nothing_in_flight(self.number);
                let ledger = failed.ledger.as_ref().unwrap();
                self.account.check_ledger(self.number, ledger);
                self.account.check_places(self.number, ledger);
                self.account.check_wait(self.number, failed);
                self.account.check_rejected(self.number, failed);
                self.account.is_over(self.number);
                let class = failed.verdict.as_ref().unwrap().class();
                if failed.stopped_by() == StoppedBy::Limiter {
                    self.account.reach("stopped by a budget");
                }
                self.account.reach(name(class));
            }
        }
    }

    /// Promises 3 and 4: what the accepted attempt said, all of it and nothing else.
    fn check_committed(&self, view: &mut View, last: &Committed) {
        self.account.check_nothing_in_flight(self.number);
        let ledger = last.ledger.as_ref().unwrap();
        self.account.check_ledger(self.number, ledger);
        self.account.is_over(self.number);
        let said = self.account.said(self.number, ledger.attempts);
        assert!(said.is_complete, "promise 4: no terminal evidence");
        assert!(!said.begins_anew, "two beginnings in one message");
        let is_continued = said.partial.is_some();
        if is_continued {
            self.account.reach("committed after a continuation");
        }
        let mut answer = said.answer();
        self.account
            .check_accepted(self.number, &self.start, &mut answer, ledger, is_continued);
        let withheld: Vec<Block> = last.withheld_tool_calls.iter().map(called).collect();
        assert_eq!(withheld, answer.withheld(), "the calls that are withheld");
        assert_eq!(blocks_of(&view.parts), answer.message(), "promise 3");
        self.account.reach("committed");
        if ledger.attempts > 1 {
            self.account.reach("committed after a replay");
        }
        if self.start.delivery() == Delivery::CommittedOnly {
            self.account.reach("committed unseen");
        }
    }
}

/// What one RPC has shown.
#[derive(Default)]
struct View {
    /// With the attempt that each is of.
    blocks: Vec<(u32, String)>,
    parts: Vec<Part>,
    /// It has taken over, with a delivery of its own.
    is_attached: bool,
    /// How long anything may be waited for, from `accepted` on.
    deadline: Duration,
}

impl View {
    fn add(&mut self, attempt: u32, block: usize, content: &Content) {
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, (attempt, String::new()));
        }
        match content {
            Content::Text(text) | Content::Reasoning(text) | Content::ToolArguments(text) => {
                self.blocks[block].1.push_str(text);
            }
            Content::ToolCall(_) => {}
            other => panic!("never said: {other:?}"),
        }
    }
}

/// Whether who acts on everything up to `through` acts on output that is not void.
fn claims(frames: &[GenerateResponse], through: u64) -> bool {
    let acted_on = frames.iter().rev().filter(|told| told.sequence <= through);
    let mut output = acted_on.filter_map(|told| match told.frame {
        Some(Frame::Delta(_)) => Some(true),
        Some(Frame::PreviewReset(_)) => Some(false),
        _ => None,
    });
    output.next().unwrap_or_default()
}

fn length(told: Option<prost_types::Duration>) -> Duration {
    told.map_or(Duration::ZERO, |told| told.try_into().unwrap())
}

fn name(class: redrive::verdict::Class) -> &'static str {
    use redrive::verdict::Class::*;
    match class {
        Stall => "Failed(Stall)",
        Transport => "Failed(Transport)",
        RateLimited => "Failed(RateLimited)",
        Auth => "Failed(Auth)",
        Cancelled => "Failed(Cancelled)",
        ClientTooSlow => "Failed(ClientTooSlow)",
        Draining => "Failed(Draining)",
        Deadline => "Failed(Deadline)",
        GateRejected => "Failed(GateRejected)",
        MalformedOutput => "Failed(MalformedOutput)",
        TooLarge => "Failed(TooLarge)",
        NoTarget => "Failed(NoTarget)",
        _ => "Failed(other)",
    }
}
