//! Redrive keeps LLM generations whole: a gRPC sidecar between an application and its providers.
//!
//! # The life of one `Generate`
//!
//! A client opens a stream and asks for a generation. [`server`] answers with headers at once, reads the
//! first frame, checks it against the route, and writes a request for each of the route's targets
//! ([`protocol`]). What is wrong with it is said here, before anything is sent.
//!
//! A [`session`] begins: the [`recovery`] core behind one lock, and the driver, its only task. The core
//! is plain synchronous code. It is told what happened and when, answers with commands, and knows neither
//! clock nor socket:
//!
//! 1. *Start.* The core chooses a target and commands `Reserve`. [`upstream`] hands out a connection slot,
//!    [`budgets`] a lease of every budget that matches; until there are both, `waiting` is told.
//! 2. *Reserved.* The core debits the allowance, opens an entry of the ledger, tells `attempt_started` and
//!    commands `Send`. Only now can a byte leave, and at most once: nothing below repeats a request.
//! 3. *Sent, Head, Decoded.* The door reports the hand-over, the head and the body. [`protocol`] makes
//!    events of the bytes; the core appends output to the transcript and re-arms its timers.
//! 4. *`next_frame`.* When the client's transport asks, the server takes what lies between the client's
//!    cursor and the end of the transcript: one token if it keeps up, more in one delta if it lags.
//! 5. *Failure.* An error, a broken connection or a silence becomes a verdict ([`verdict`]): what it was,
//!    whose fault, whether it was sent. The core ends the exchange, makes what was previewed void
//!    (`preview_reset`), and decides whether, when and where it tries again. Then from 1.
//! 6. *Acceptance.* The provider's own evidence of completion, never the end of the body, makes the
//!    transcript final: `committed`, with the ledger of every attempt. Whatever else ends the
//!    generation (a permanent verdict, the allowance, a deadline, a cancel, a drain) makes it `failed`.
//! 7. *After.* The RPC ends with the status that matches. The session is kept for a while, for clients that
//!    attach again, and is forgotten.
//!
//! # The rooms
//!
//! | room | | its job |
//! |---|---|---|
//! | [`proto`] | | the contract, generated from `proto/redrive/v1/` |
//! | [`protocol`] | pure | requests of provider protocols, and their streams as events |
//! | [`verdict`] | pure | from evidence to the reason why an attempt failed |
//! | [`gate`] | pure | whether a completed attempt is good enough to commit |
//! | [`recovery`] | pure | one generation as a state machine; what generations share |
//! | [`limits`] | pure | strict limits: what a budget allows, and when |
//! | [`clock`] | IO | the one clock |
//! | [`upstream`] | IO | the one door out: connections to providers, one send per exchange |
//! | [`config`] | IO | the file, its checks, its secrets |
//! | [`telemetry`] | IO | metrics, traces, logs |
//! | [`budgets`] | IO | leases: who may send now, who waits |
//! | [`session`] | IO | drives one generation; the registry of all |
//! | [`server`] | IO | gRPC, health, drain |
//! | [`simulator`] | IO | a scripted provider, for the demo and for tests |
//! | [`cli`] | IO | the commands |
//!
//! # The one-way rule
//!
//! A room knows only rooms further in: those above it in the table, and of them only what
//! `tests/house/rooms.rs` lists. The pure rooms get time as a value and import no runtime, clock, random
//! source, socket or lock; that is what lets tests play random failures by the thousand, and cut every
//! recording at every byte. The same walk with file names is in `ARCHITECTURE.md`.

pub mod budgets;
pub mod cli;
pub mod clock;
pub mod config;
pub mod gate;
pub mod limits;
pub mod proto;
pub mod protocol;
pub mod recovery;
pub mod server;
pub mod session;
pub mod simulator;
pub mod telemetry;
pub mod upstream;
pub mod verdict;
