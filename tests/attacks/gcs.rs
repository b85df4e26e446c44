//! What answers as one cluster's GCS could do to the process that asks the GCSs of all.

use std::time::{Duration, Instant};

use rayfit::controller::offload::offload_if;
use rayfit::gcs::{Client, Counted, Endpoint, Excess, GcsFault, GcsLimits, Unusable, read_state};
use rayfit::plan::{PlanSettings, decide};
use serde_json::json;

use super::planner::{cluster, group, read, tasks};
use crate::play_gcs::{Played, PlayedGcs, messages};

/// Much longer than anything here takes, also on a machine that does much else.
const SOON: Duration = Duration::from_secs(10);

fn client(gcs: &PlayedGcs) -> Client {
    Client::new(Endpoint::plain(gcs.address()), GcsLimits::default())
}

async fn playing(state: messages::ClusterResourceState) -> PlayedGcs {
    PlayedGcs::start(Played {
        state,
        ..Played::default()
    })
    .await
}

fn one_node() -> messages::ClusterResourceState {
    messages::ClusterResourceState {
        node_states: vec![messages::NodeState {
            instance_id: "w-1".to_owned(),
            total_resources: [("CPU".to_owned(), 4.0)].into(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn asking(resource: &str, amount: f64) -> messages::ClusterResourceState {
    let request = messages::ResourceRequest {
        resources_bundle: [(resource.to_owned(), amount)].into(),
        ..Default::default()
    };
    messages::ClusterResourceState {
        pending_resource_requests: vec![messages::ResourceRequestByCount {
            request: Some(request),
            count: i64::MAX,
        }],
        ..one_node()
    }
}

/// A reply with so many empty Ray nodes, each of which takes two bytes.
fn empty_nodes(count: usize) -> Vec<u8> {
    let state = [0x1a, 0].repeat(count);
    let mut reply = Vec::new();
    prost::encoding::bytes::encode(1, &state, &mut reply);
    reply
}

/// The neighbour's GCS answers, and soon.
async fn is_served(neighbour: &Client) {
    let began = Instant::now();
    let state = neighbour.cluster_resource_state().await.unwrap();
    assert_eq!(state.node_states[0].instance_id, "w-1");
    assert!(began.elapsed() < SOON);
}

#[test]
fn an_answer_that_would_grow_when_read_is_not_read() {
    let bytes = empty_nodes(4_000_000);
    let mut read = None;
    let used = allocation_counter::measure(|| read = Some(read_state(&bytes)));
    let excess = Unusable::Excess(Excess::Many(Counted::Nodes));
    assert_eq!(read, Some(Err(excess)));
    assert!(used.bytes_max < 1 << 20, "{}", used.bytes_max);
    // As many as are read take no more than a large cluster does.
    let bytes = empty_nodes(20_000);
    let used = allocation_counter::measure(|| assert!(read_state(&bytes).is_ok()));
    assert!(used.bytes_max < 64 << 20, "{}", used.bytes_max);
}

#[test]
fn an_answer_takes_no_more_memory_than_was_reckoned() {
    // What takes the most memory for its bytes: a map, or a list, with one entry that is empty.
    let node = [0x1a, 8, 0x22, 0, 0x2a, 0, 0x32, 0, 0x6a, 0];
    let request = [0x22, 8, 0x0a, 6, 0x0a, 0, 0x12, 0, 0x1a, 0];
    let gang = [0x2a, 8, 0x0a, 2, 0x0a, 0, 0x1a, 2, 0x0a, 0];
    for part in [node, request, gang] {
        for count in [1_000, 20_000, 50_000, 1_000_000] {
            let mut reply = Vec::new();
            prost::encoding::bytes::encode(1, &part.repeat(count), &mut reply);
            let used = allocation_counter::measure(|| drop(read_state(&reply)));
            assert!(
                used.bytes_max < 128 << 20,
                "{part:?} x {count}: {}",
                used.bytes_max
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gcs_that_lies_hurts_its_own_cluster_only() {
    let neighbour_gcs = playing(one_node()).await;
    let neighbour = client(&neighbour_gcs);
    is_served(&neighbour).await;
    for (resource, amount) in [
        ("CPU", 1e-300),
        ("CPU", -1.0),
        ("memory", f64::NAN),
        ("GPU", f64::INFINITY),
        ("GPU", 1e300),
    ] {
        let liar = playing(asking(resource, amount)).await;
        let fault = client(&liar)
            .cluster_resource_state()
            .await
            .unwrap_err()
            .fault;
        let GcsFault::Unusable(Unusable::Requested {
            resource: named, ..
        }) = fault
        else {
            panic!("{fault}");
        };
        assert_eq!(named, resource);
        is_served(&neighbour).await;
    }
    let liar = playing(messages::ClusterResourceState {
        node_states: vec![messages::NodeState::default(); 200_000],
        ..Default::default()
    })
    .await;
    let fault = client(&liar)
        .cluster_resource_state()
        .await
        .unwrap_err()
        .fault;
    let excess = Unusable::Excess(Excess::Many(Counted::Nodes));
    assert_eq!(fault, GcsFault::Unusable(excess));
    is_served(&neighbour).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_without_end_and_silence_keep_nobody_waiting() {
    let neighbour_gcs = playing(one_node()).await;
    let neighbour = client(&neighbour_gcs);
    let long = || messages::NodeState {
        labels: [("a".repeat(4_000), "b".repeat(4_000))].into(),
        ..Default::default()
    };
    let huge = playing(messages::ClusterResourceState {
        node_states: vec![long(); 2_500],
        ..Default::default()
    })
    .await;
    let mute = PlayedGcs::start(Played {
        is_mute: true,
        ..Played::default()
    })
    .await;
    let (huge, mute) = (client(&huge), client(&mute));
    let attackers = async {
        let huge_ones =
            futures_util::future::join_all((0..8).map(|_| huge.cluster_resource_state()));
        let mute_ones =
            futures_util::future::join_all((0..8).map(|_| mute.cluster_resource_state()));
        tokio::join!(huge_ones, mute_ones)
    };
    let attackers = std::pin::pin!(attackers);
    let served = async {
        for _ in 0..50 {
            is_served(&neighbour).await;
        }
    };
    let (served, attackers) = tokio::join!(served, attackers);
    let () = served;
    for error in attackers.0 {
        let fault = error.unwrap_err().fault;
        assert!(matches!(fault, GcsFault::TooLarge(_)), "{fault}");
    }
    for error in attackers.1 {
        let fault = error.unwrap_err().fault;
        assert!(matches!(fault, GcsFault::Deadline(_)), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_cluster_is_read_beside_small_ones() {
    let amounts = || (0..10).map(|at| (format!("resource-{at}"), 4.0)).collect();
    let node = |number: usize| messages::NodeState {
        node_id: vec![7; 28],
        instance_id: format!("w-{number}"),
        total_resources: amounts(),
        available_resources: amounts(),
        ..Default::default()
    };
    let large = playing(messages::ClusterResourceState {
        node_states: (1..=5_000).map(node).collect(),
        ..Default::default()
    })
    .await;
    let (large, small) = (client(&large), playing(one_node()).await);
    let small = client(&small);
    for _ in 0..3 {
        let (state, place) = large.whole_state().await.unwrap();
        assert_eq!(state.node_states.len(), 5_000);
        assert!(place.is_some(), "its memory is counted");
        is_served(&small).await;
        assert!(small.whole_state().await.unwrap().1.is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_decisions_of_others_hold_nobody_up() {
    let hard = || {
        let mut snapshot = cluster((0..300).map(|at| group(&format!("g-{at}"), 64)).collect());
        for number in 0..3_000 {
            let amounts = json!({"CPU": 0.0003 + 0.0001 * f64::from(number), "memory": 1});
            tasks(&mut snapshot, &amounts, 1_000_000_007);
        }
        read(snapshot)
    };
    let hard = std::sync::Arc::new(hard());
    let long = (0..6).map(|_| {
        let hard = std::sync::Arc::clone(&hard);
        tokio::spawn(
            async move { offload_if(true, || decide(&hard, &PlanSettings::default()).0).await },
        )
    });
    let long: Vec<_> = long.collect();
    let neighbour_gcs = playing(one_node()).await;
    let neighbour = client(&neighbour_gcs);
    let easy = read(cluster(vec![group("cpu", 4)]));
    for _ in 0..20 {
        is_served(&neighbour).await;
        let began = Instant::now();
        let plan = offload_if(false, || decide(&easy, &PlanSettings::default()).0).await;
        assert!(plan.waiting.is_none());
        assert!(began.elapsed() < SOON);
    }
    assert!(
        long.iter().any(|one| !one.is_finished()),
        "they were no competition"
    );
    for one in long {
        assert!(one.await.is_ok());
    }
}
