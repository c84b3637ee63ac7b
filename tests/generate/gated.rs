//! `--gate`: an answer that is rejected, and the one that follows.

use std::net::SocketAddr;

use redrive::simulator::Library;

use crate::support::World;

/// A sidecar whose provider answers with these ready-made scripts, one after the other.
async fn world(turns: &str) -> World {
    let mut library = Library::ready_made();
    library.answer_others_with(turns).unwrap();
    World::speaking("openai_chat", library).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_no_use_is_void_and_the_next_one_is_asked_for_with_a_hint() {
    let world = world("announced,tool-call").await;
    let body = r#"{"messages":[{"role":"user","content":"Where is Anna?"}],"tools":[
        {"type":"function","function":{"name":"lookup"}}]}"#;
    let ended = world.generate_from(&["--gate=agent", "--file=-", "--ledger"], body);
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    ended.told(&[
        ", with a hint",
        "· committed: tool_calls",
        "1  local/default  yes       gate_rejected",
        "2  local/default  yes       accepted",
    ]);
    let bodies = world.bodies();
    assert!(!bodies[0].contains("announced an action"), "{bodies:?}");
    assert!(bodies[1].contains("announced an action"), "{bodies:?}");
}

/// What `docs/gate.md` has a newcomer do, with the files that it names.
#[tokio::test(flavor = "multi_thread")]
async fn the_example_shows_an_answer_that_is_rejected_and_one_that_is_repaired() {
    let example = include_str!("../../examples/simulated.yaml");
    let here = |address: SocketAddr| {
        assert!(example.contains("//127.0.0.1:8089/"), "{example}");
        example.replace("127.0.0.1:8089", &address.to_string())
    };
    let world = World::configured(Library::ready_made(), here).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/agent-request.json");
    let ended = world.generate(&["--gate", "agent", "--ledger", "--file", file]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    ended.told(&[
        "· attempt 1 on simulated/announced,tool-call\n",
        "· reset: attempt 1 is void: gate_rejected (the turn gate rejected the answer: missing_tool)\n",
        "· attempt 2 on simulated/announced,tool-call, with a hint\n",
        "· tool call lookup (call_simulated): {\"ship\":\"Anna\"}\n",
        "· committed: tool_calls, tokens in 12, out 3\n",
        "  attempts 2, sends 2, void tokens 2, waited 0 s\n",
    ]);
    // The scripts take turns: the next announcement is an answer, as no gate is asked for.
    let ended = world.generate(&["--file", file]);
    let announced = "Let me look for the ship.";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), announced));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_an_answer_without_the_gate_only() {
    let world = world("empty,empty,ok").await;
    let ended = world.generate(&["Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    let ended = world.generate(&["--gate=lenient", "Say it."]);
    let whole = "Ships pass, and the lighthouse counts every one.";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), whole));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_stays_of_no_use_fails_by_the_gate() {
    let world = world("empty").await;
    let ended = world.generate(&["--gate=agent", "Say it."]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    ended.told(&["· failed: gate_rejected (", "empty", "· stopped by: gate\n"]);
    assert_eq!(world.bodies().len(), 3);
}
