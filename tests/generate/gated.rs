//! `--gate`: an answer that is rejected, and the one that follows.

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
