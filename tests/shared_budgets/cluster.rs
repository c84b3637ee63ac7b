//! A cluster of three, whose slots move.

use std::time::{Duration, Instant};

use redrive::{budgets::shared::*, config::EnginePlace, limits::Settings};

use crate::{
    domain::*,
    server::{Beside, Kind, Server, each},
};

/// Three primaries that know each other, a third of the slots each.
struct Cluster {
    nodes: Vec<Server>,
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build().unwrap().block_on(test);
}

/// A port that nobody has, for what nodes say to each other.
fn bus() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port().to_string()
}

impl Cluster {
    fn start(kind: Kind) -> Self {
        let ranges = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        let nodes = ranges.map(|(first, last)| {
            let bus = bus();
            let own = ["--cluster-enabled", "yes", "--cluster-port", &bus];
            let node = Server::start_with(kind, &own);
            let mut beside = node.beside();
            beside.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
            (node, bus)
        });
        let [(first, bus), ..] = &nodes;
        for (node, _) in &nodes[1..] {
            let port = first.port.to_string();
            let meet = ["CLUSTER", "MEET", "127.0.0.1", &port, bus];
            node.beside().run::<()>(&meet);
        }
        let nodes = nodes.map(|(node, _)| node).into();
        let cluster = Self { nodes };
        let begun = Instant::now();
        let knows = |node: &Server| {
            let info: String = node.beside().run(&["CLUSTER", "INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        };
        while !cluster.nodes.iter().all(knows) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no cluster");
            std::thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    fn besides(&self) -> Vec<Beside> {
        self.nodes.iter().map(Server::beside).collect()
    }

    /// Which node has a slot.
    fn owner(&self, slot: u16) -> usize {
        usize::from(slot) * 3 / 16_384
    }

    fn options(&self) -> Options {
        // The others are found out.
        let urls = vec![self.nodes[0].url()];
        Options {
            place: EnginePlace::Cluster(urls),
            timeout: Duration::from_secs(2),
            ..options(&self.nodes[0])
        }
    }
}

/// One send at a time: where nobody was before, it is granted at once.
fn budget() -> Settings {
    Settings {
        concurrent: Some(1),
        ..settings("a", &[])
    }
}

#[test]
fn a_domain_is_where_its_slot_is_and_follows_it() {
    each(|kind| {
        let cluster = Cluster::start(kind);
        run(async {
            let mut found = [false; 3];
            while found != [true; 3] {
                let name = unused_name();
                let keys = ["meta", "log", "leases", "due"];
                let keys = keys.map(|part| format!("{{redrive:{name}}}:{part}"));
                let mut besides = cluster.besides();
                let slot: u16 = besides[0].run(&["CLUSTER", "KEYSLOT", &keys[0]]);
                let from = cluster.owner(slot);
                if found[from] {
                    continue;
                }
                found[from] = true;
                let shared = connect(cluster.options(), &name, &[budget()]);
                send(&shared, 1).await;
                let there: u64 = besides[from].run(&["EXISTS", &keys[0]]);
                assert_eq!(there, 1);
                moves(&cluster, &mut besides, slot, [from, (from + 1) % 3], &keys);
                // Another server, which may have missed what was granted last.
                let answer = first_answer(&shared).await;
                assert!(matches!(answer, Answer::Learning { .. }), "{answer:?}");
                let status = shared.status(&[0], &[], PATIENCE).await.unwrap();
                assert_eq!(status.budgets[0].running, 1, "it brought what it knew");
            }
        });
    });
}

/// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
fn moves(
    cluster: &Cluster,
    besides: &mut [Beside],
    slot: u16,
    [from, to]: [usize; 2],
    keys: &[String],
) {
    let ids: Vec<String> = besides
        .iter_mut()
        .map(|beside| beside.run(&["CLUSTER", "MYID"]))
        .collect();
    let slot = slot.to_string();
    let [source, target] = [&*ids[from], &*ids[to]];
    besides[to].run::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", source]);
    besides[from].run::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", target]);
    let port = cluster.nodes[to].port.to_string();
    let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "5000", "KEYS"];
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    besides[from].run::<()>(&[&migrate[..], &keys].concat());
    for which in [to, from, 3 - from - to] {
        besides[which].run::<()>(&["CLUSTER", "SETSLOT", &slot, "NODE", target]);
    }
}

/// Asks until there is an answer.
async fn first_answer(shared: &Shared) -> Answer {
    let begun = Instant::now();
    for id in 1_000.. {
        match shared.acquire(one(id), Duration::from_secs(1)).await {
            Ok(answer) => return answer,
            Err(lost) => assert!(begun.elapsed() < Duration::from_secs(20), "{lost:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!()
}
