//! `redrive budgets` against a sidecar, and against canned answers of one.

use std::{collections::HashMap, future::poll_fn, path::Path, time::Duration};

use clap::Parser;
use redrive::{
    budgets::{Answer, Ask, Budgets, Lease, Occasion, Way},
    cli::budgets::{BudgetsArgs, show},
    clock::Clock,
    config::{Config, Process},
    limits::Weights,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::listeners::{start_admin, start_admin_of, start_public};
use crate::support::telemetry;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: BudgetsArgs,
}

fn args(line: &str) -> Result<BudgetsArgs, String> {
    let line = Line::try_parse_from(line.split(' '));
    line.map(|line| line.args)
        .map_err(|error| error.to_string())
}

/// What is printed of the sidecar whose admin listener is there.
async fn printed(address: impl std::fmt::Display, more: &str) -> Result<String, String> {
    show(&args(&format!("budgets --address {address}{more}")).unwrap()).await
}

/// What is printed of a sidecar that answers so.
async fn printed_of(status: &Value) -> String {
    printed_of_answer("200 OK", status).await.unwrap()
}

async fn printed_of_answer(code: &'static str, status: &Value) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let body = status.to_string();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 1024];
        let length = stream.read(&mut request).await.unwrap();
        assert!(request[..length].starts_with(b"GET /status HTTP/1.1\r\n"));
        let length = body.len();
        let answer = format!("HTTP/1.1 {code}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    printed(address, "").await
}

/// A status with these budgets, and this engine of shared ones.
fn status(budgets: &Value, engine: Option<Value>) -> Value {
    let leases =
        json!({"granted": 0, "sent": 0, "returned": 0, "expired": 0, "unsent": 0, "held": 0});
    let mut status =
        json!({"draining": false, "generations": 0, "leases": leases, "budgets": budgets});
    if let Some(engine) = engine {
        status["engine"] = engine;
    }
    status
}

fn limit(limit: &str, used: u64, most: u64) -> Value {
    json!({"limit": limit, "used": used, "most": most})
}

fn shared(fleet: &Value) -> Value {
    json!([{
        "name": "openai-main", "engine": "redis", "running": 12, "waiting": 3, "resting_ms": 0, "overruns": 0,
        "limits": [limit("requests/1m", 120, 500), limit("concurrent", 12, 64)], "fleet": fleet,
    }, {
        "name": "own", "engine": "local", "running": 1, "waiting": 0, "resting_ms": 2900, "overruns": 0,
        "limits": [limit("requests/day", 10, 10)],
    }])
}

fn fleet() -> Value {
    json!({
        "limits": [limit("requests/1m", 499, 500), limit("concurrent", 64, 64)], "running": 64,
        "entries": 499, "overruns": 0, "learning_ms": 0, "age_ms": 900,
    })
}

fn engine() -> Value {
    json!({
        "state": "up", "since_ms": 10_920_500, "server": "valkey", "version": "9.1.2", "round_trip_us": 2345,
        "strict": true, "on_loss": "closed", "disagrees": false, "warnings": [], "held": 12, "untold": 0,
    })
}

fn with(mut value: Value, changes: Value) -> Value {
    for (key, change) in changes.as_object().unwrap() {
        value[key] = change.clone();
    }
    value
}

#[tokio::test]
async fn a_row_is_a_limit_and_the_last_lines_tell_of_the_engine() {
    let text = printed_of(&status(&shared(&fleet()), Some(engine()))).await;
    insta::assert_snapshot!(text, @r"
    budget       engine  limit                  used          fleet  running  waiting  resting
    openai-main  redis   requests/1m   120/500 (24%)  499/500 (99%)       12        3        -
                         concurrent      12/64 (18%)   64/64 (100%)
    own          local   requests/day   10/10 (100%)              -        1        0       2s
    engine redis: up for 3h 2m, valkey 9.1.2, round trip 2.34 ms, strict
      this pod holds 12 leases
    ");
}

#[tokio::test]
async fn a_lost_engine_says_since_when_and_why_and_what_happens_meanwhile() {
    let lost = |on_loss: &str| {
        let lost = json!({
            "state": "lost", "since_ms": 400, "why": "no answer from the engine in time", "strict": on_loss != "open",
            "on_loss": on_loss, "held": 9, "untold": 4, "server": "", "version": "", "round_trip_us": null,
        });
        status(&shared(&Value::Null), Some(with(engine(), lost)))
    };
    let mut text = printed_of(&lost("closed")).await;
    for on_loss in ["local_share", "open"] {
        let other = printed_of(&lost(on_loss)).await;
        let (_, words) = other.split_once("engine redis").unwrap();
        text += words;
    }
    insta::assert_snapshot!(text, @r"
    budget       engine  limit                  used  fleet  running  waiting  resting
    openai-main  redis   requests/1m   120/500 (24%)      ?       12        3        -
                         concurrent      12/64 (18%)      ?
    own          local   requests/day   10/10 (100%)      -        1        0       2s
    engine redis: lost for 400ms: no answer from the engine in time; meanwhile nothing of shared budgets is sent (on_loss: closed), strict
      this pod holds 9 leases; 4 changes are not told to the engine yet
    : lost for 400ms: no answer from the engine in time; meanwhile this pod sends within its share (on_loss: local_share), strict
      this pod holds 9 leases; 4 changes are not told to the engine yet
    : lost for 400ms: no answer from the engine in time; meanwhile this pod sends as if it were alone (on_loss: open), NOT STRICT
      this pod holds 9 leases; 4 changes are not told to the engine yet
    ");
}

#[tokio::test]
async fn what_is_learnt_is_old_or_disagrees_is_told() {
    let fleet = with(fleet(), json!({"learning_ms": 61_999, "age_ms": 90_000}));
    let warning = "maxmemory-policy is `allkeys-lru`";
    let engine = with(
        engine(),
        json!({"disagrees": true, "strict": false, "warnings": [warning]}),
    );
    let text = printed_of(&status(&shared(&fleet), Some(engine))).await;
    let (_, text) = text.split_once("2s\n").unwrap();
    insta::assert_snapshot!(text, @r"
    openai-main: learning: the engine does not know what was sent before, so nothing is sent for another 1m 1s
    openai-main: the fleet's figures are 1m 30s old
    engine redis: up for 3h 2m, valkey 9.1.2, round trip 2.34 ms, NOT STRICT
      this pod holds 12 leases
      warning: pods have different limits; the stricter of both counts
      warning: maxmemory-policy is `allkeys-lru`
    ");
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_none() {
    let status = status(&json!([]), None);
    let line = printed_of_answer("503 Service Unavailable", &status).await;
    let line = line.unwrap_err();
    assert!(line.contains("answers 503 Service Unavailable"), "{line}");
}

#[tokio::test]
async fn what_the_answer_holds_cannot_command_a_terminal() {
    let budgets = json!([{
        "name": "a\u{1b}[2J", "engine": "local", "running": 0, "waiting": 0, "resting_ms": 0, "overruns": 0,
        "limits": [limit("concurrent", 0, 1)],
    }]);
    let text = printed_of(&status(&budgets, None)).await;
    assert!(
        !text.contains('\u{1b}') && text.contains("a\\u{1b}[2J"),
        "{text}"
    );
}

const LOCAL: &str = "
providers: {openai: {base_url: 'https://api.openai.com/v1'}}
routes: {default: {targets: [{provider: openai, model: m}]}}
budgets:
  - {name: all, match: {}, requests: [{limit: 3, window: 1h}], concurrent: 2, daily: {requests: 9}}
";

async fn lease(budgets: &Budgets) -> Lease {
    let matched = budgets.matching(&Occasion {
        provider: "openai",
        credential: None,
        target: "openai/m",
        route: "default",
        labels: &HashMap::new(),
    });
    let mut asking = budgets.ask(Ask {
        ways: vec![Way {
            credential: 0,
            matched,
        }],
        tokens: Weights::default(),
        send_within: Duration::from_secs(10),
    });
    match poll_fn(|cx| asking.poll(cx)).await {
        Answer::Granted { lease, .. } => lease,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_sidecar_with_local_budgets_is_understood() {
    let config = Config::parse(LOCAL, Path::new("redrive.yaml"), &Process).unwrap();
    let budgets = Budgets::new(Clock::start(), config.budgets);
    let admin = start_admin_of(budgets.clone()).await;
    let _held = lease(&budgets).await;
    let text = printed(admin.address, "").await.unwrap();
    insta::assert_snapshot!(text, @r"
    budget  engine  limit              used  fleet  running  waiting  resting
    all     local   requests/1h   1/3 (33%)      -        1        0        -
                    requests/day  1/9 (11%)      -
                    concurrent    1/2 (50%)      -
    ");

    let json = printed(admin.address, " --json").await.unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["budgets"][0]["engine"], "local");
    assert_eq!(json["budgets"][0]["running"], 1);
    assert!(json.get("engine").is_none() && json["budgets"][0].get("fleet").is_none());
}

#[tokio::test]
async fn a_sidecar_without_budgets_says_so() {
    let admin = start_admin().await;
    let text = printed(admin.address, "").await.unwrap();
    assert_eq!(text, "no budgets are configured\n");
}

#[tokio::test]
async fn another_listener_and_none_are_told_apart() {
    let public = start_public(telemetry().0).await;
    let address = public.address;
    assert_eq!(
        printed(address, "").await.unwrap_err(),
        format!(
            "{address} answers 404 Not Found to /status; is it the admin listener of a sidecar of this version?"
        )
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let line = printed(address, "").await.unwrap_err();
    assert!(
        line.starts_with(&format!("nothing answers at {address}")),
        "{line}"
    );
}

#[test]
fn a_watch_is_neither_too_fast_nor_too_slow() {
    assert_eq!(args("budgets").unwrap().address, "127.0.0.1:15091");
    let watch = |length: &str| args(&format!("budgets --watch {length}")).map(|args| args.watch);
    assert_eq!(watch("2s"), Ok(Some(Duration::from_secs(2))));
    assert_eq!(watch("200ms"), Ok(Some(Duration::from_millis(200))));
    for bad in ["199ms", "0s", "3601s", "2"] {
        assert!(watch(bad).is_err(), "{bad}");
    }
}
