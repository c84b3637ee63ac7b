//! A session as the server makes it, with everything around it in reach.

use std::{path::Path, sync::Arc, task::Context, time::Duration};

use redrive::{
    budgets::Budgets,
    clock::Clock,
    config::{self, Config, Process},
    proto::{Delivery, GenerateResponse},
    recovery::{Commons, Generation, Next, Params, Target, Time},
    session::{
        Environment, Estimate, Parts, Plan, PlannedTarget, Polled, Registry, RequestKey, Session,
        StartOutcome,
    },
    telemetry::{self, GenerationObserver, SpanContext, Telemetry},
    upstream::Upstream,
};

use crate::support::CONFIG;

pub struct Rig {
    pub environment: Arc<Environment>,
    pub registry: Arc<Registry>,
    pub target: config::Target,
    config: Config,
}

impl Rig {
    pub fn new(upstream: impl Upstream + 'static) -> Rig {
        let config = Config::parse(CONFIG, Path::new("redrive.yaml"), &Process).unwrap();
        let telemetry = Telemetry::new(&config.telemetry, []).unwrap();
        let environment = Arc::new(Environment::new(
            Clock::start(),
            Arc::new(upstream),
            Budgets::new(Clock::start(), Vec::new()),
            Commons::new(config.retry_budget),
            telemetry,
            1 << 20,
        ));
        let registry = Registry::new(Arc::clone(&environment), Duration::from_secs(60));
        let target = config.routes["default"].targets[0].clone();
        Rig {
            environment,
            registry: Arc::new(registry),
            target,
            config,
        }
    }

    pub fn now(&self) -> Time {
        self.environment.clock.now()
    }

    /// What a session with this id is created with.
    pub fn session(&self, id: &str, caller_deadline: Option<Time>) -> Arc<Session> {
        self.session_of(id, None, caller_deadline)
    }

    pub fn session_of(
        &self,
        id: &str,
        request: Option<RequestKey>,
        caller_deadline: Option<Time>,
    ) -> Arc<Session> {
        let about = telemetry::Generation {
            id,
            route: "default",
            model: "m",
        };
        let telemetry = &self.environment.telemetry;
        let observer = GenerationObserver::start(telemetry, &SpanContext::NONE, &about);
        let parts = Parts {
            id: id.to_owned(),
            request,
            core: Generation::new(
                self.now(),
                self.params(id, caller_deadline),
                &*self.environment,
            )
            .unwrap(),
            plan: self.plan(),
            observer,
        };
        Session::new(
            parts,
            Arc::clone(&self.registry),
            Arc::clone(&self.environment),
        )
    }

    pub fn insert(&self, session: &Arc<Session>) {
        let created = || Ok::<_, ()>(Arc::clone(session));
        let outcome = self.registry.insert(None, created);
        assert!(matches!(outcome, Ok(StartOutcome::New(_))));
    }

    fn plan(&self) -> Plan {
        Plan {
            native_events: false,
            targets: vec![PlannedTarget {
                name: self.target.name.clone(),
                model: self.target.model.clone(),
                provider: Arc::clone(&self.target.provider),
                method: http::Method::POST,
                path: "/chat/completions".to_owned(),
                headers: http::HeaderMap::new(),
                body: bytes::Bytes::from_static(b"{}"),
                connect: self.target.timers.connect,
                budgets: Vec::new(),
                tokens: Estimate::default(),
            }],
        }
    }

    fn params(&self, id: &str, caller_deadline: Option<Time>) -> Params {
        let route = &self.config.routes["default"];
        Params {
            id: id.to_owned(),
            targets: [Target {
                name: self.target.name.as_str().into(),
                provider: self.target.provider.name.as_str().into(),
                domains: vec![self.target.provider.name.as_str().into()],
                model: self.target.model.clone(),
                context_window: None,
                timers: self.target.timers,
                credentials: 0,
                continues: false,
                resumes: false,
                fallback: false,
            }]
            .into(),
            skipped: Box::default(),
            policy: route.policy.clone(),
            gate: None,
            fallback: true,
            delivery: Delivery::Preview,
            detach_grace: Duration::ZERO,
            max_message_bytes: route.max_message_bytes,
            client_idle: route.client_idle,
            scope: None,
            caller_deadline,
            wall_origin: Duration::ZERO,
            seed: 1,
        }
    }
}

/// The next frame of RPC number `rpc`, if one is there.
pub fn poll(session: &Session, rpc: u64) -> Option<GenerateResponse> {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    match session.poll_next(&mut cx, rpc) {
        std::task::Poll::Ready(Polled::Next(Next::Frame(frame))) => Some(*frame),
        _ => None,
    }
}
