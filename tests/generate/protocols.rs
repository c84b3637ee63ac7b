//! Generations from providers of every protocol, which fail first: the simulator's ready-made scripts.

use redrive::{protocol::adapter::ADAPTERS, simulator::Library};

use crate::support::World;

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_s_faults_are_seen_for_what_they_are_and_its_answer_is_committed() {
    for (_, protocol, _) in ADAPTERS {
        let mut library = Library::ready_made();
        let turns = "truncated,error-after-tokens,529,ok";
        library.answer_others_with(turns).unwrap();
        let world = World::speaking(protocol, library).await;
        let ended = world.generate(&["--ledger", "--max-attempts=4", "Say it."]);
        let whole = "Ships pass, and the lighthouse counts every one.";
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), whole),
            "{ended:#?}"
        );
        ended.told(&[
            "· committed: stop, tokens in 12, out 8\n",
            "1  local/default  yes       transport",
            "2  local/default  yes       provider_internal",
            "3  local/default  ",
            "overloaded",
            "4  local/default  yes       accepted",
        ]);
    }
}
