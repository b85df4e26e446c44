//! What answers as one cluster's GCS could do to the process that asks the GCSs of all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rayfit::controller::clock::Clock;
use rayfit::controller::head::memory_watch::MemoryWatch;
use rayfit::controller::offload::offload_if;
use rayfit::gcs::{
    Client, Counted, Endpoint, Excess, GcsFault, GcsLimits, Subscription, Unusable, read_state,
};
use rayfit_core::plan::{PlanSettings, decide};

use super::planner::{cluster, group, read};
use crate::play_gcs::{Played, PlayedGcs, messages};
use crate::process_support::PATIENCE;

/// Who asks for as long as it takes.
fn client(gcs: &PlayedGcs) -> Client {
    let limits = GcsLimits {
        deadline: PATIENCE,
        ..GcsLimits::default()
    };
    Client::new(Endpoint::plain(gcs.address()), limits)
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

/// The neighbour's GCS answers.
async fn is_served(neighbour: &Client) {
    let state = neighbour.cluster_resource_state().await.unwrap();
    assert_eq!(state.node_states[0].instance_id, "w-1");
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
        node_states: vec![messages::NodeState::default(); 20_001],
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
    let (huge, silent) = (client(&huge), client(&mute));
    // Silence without end: the neighbour is served while all of these wait.
    let silence: Vec<_> = (0..8)
        .map(|_| {
            let silent = silent.clone();
            tokio::spawn(async move { silent.cluster_resource_state().await.is_ok() })
        })
        .collect();
    while mute.played().headers.is_empty() {
        tokio::task::yield_now().await;
    }
    let huge_ones = futures_util::future::join_all((0..8).map(|_| huge.cluster_resource_state()));
    let served = async {
        for _ in 0..50 {
            is_served(&neighbour).await;
        }
    };
    let ((), huge_ones) = tokio::join!(served, huge_ones);
    for error in huge_ones {
        let fault = error.unwrap_err().fault;
        assert!(matches!(fault, GcsFault::TooLarge(_)), "{fault}");
    }
    for one in silence {
        assert!(!one.is_finished(), "it was no silence");
        one.abort();
    }
    let short = Duration::from_millis(300);
    let error = silent.with_deadline(short).cluster_resource_state().await;
    assert_eq!(error.unwrap_err().fault, GcsFault::Deadline(short));
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
    // None of them ends before the neighbour was served.
    let (ends, end) = std::sync::mpsc::channel::<()>();
    let end = Arc::new(Mutex::new(end));
    let begun = Arc::new(AtomicUsize::new(0));
    let long = (0..6).map(|_| {
        let (begun, end) = (Arc::clone(&begun), Arc::clone(&end));
        tokio::spawn(async move {
            let work = || {
                begun.fetch_add(1, Ordering::Relaxed);
                end.lock().unwrap().recv().is_err()
            };
            offload_if(&"attacker".into(), true, &mut Duration::default(), work).await
        })
    });
    let long: Vec<_> = long.collect();
    // As many as may run at a time.
    while begun.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    let neighbour_gcs = playing(one_node()).await;
    let neighbour = client(&neighbour_gcs);
    let easy = read(cluster(vec![group("cpu", 4)]));
    for _ in 0..20 {
        is_served(&neighbour).await;
        let work = || decide(&easy, &PlanSettings::default()).0;
        let plan = offload_if(&"neighbour".into(), false, &mut Duration::default(), work).await;
        assert!(plan.waiting.is_none());
    }
    assert!(
        long.iter().all(|one| !one.is_finished()),
        "they were no competition"
    );
    drop(ends);
    for one in long {
        assert!(one.await.unwrap());
    }
}

/// A cluster of so many nodes with work, whose pods could grow.
fn busy(count: u8) -> messages::ClusterResourceState {
    let node = |number: u8| messages::NodeState {
        node_id: vec![number; 28],
        instance_id: format!("w-{number}"),
        ray_node_type_name: "cpu".to_owned(),
        status: messages::NodeStatus::Running.into(),
        ..Default::default()
    };
    messages::ClusterResourceState {
        node_states: (1..=count).map(node).collect(),
        ..Default::default()
    }
}

fn hex(number: u8) -> String {
    format!("{number:02x}").repeat(28)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_said_about_memory_only_what_was_asked_is_kept() {
    let liar = playing(busy(2)).await;
    let client = client(&liar);
    let groups = ["cpu".to_owned()].into();
    let mut watch = MemoryWatch::default();
    let look = async |watch: &mut MemoryWatch| {
        let mut state = client.cluster_resource_state().await.unwrap();
        watch.fill(&client, &groups, &mut state, &Clock::default());
        state.node_states
    };
    look(&mut watch).await;
    while liar
        .played()
        .subscribed
        .values()
        .all(std::collections::BTreeSet::is_empty)
    {
        tokio::task::yield_now().await;
    }
    {
        let mut played = liar.played();
        let key = format!("RAY_REPORTER:{}", hex(1)).into_bytes();
        // About a node that nobody asked about, sent all the same.
        for keys in played.subscribed.values_mut() {
            keys.insert(format!("RAY_REPORTER:{}", hex(9)).into_bytes());
        }
        played.publish_memory(&hex(9), 1, 2, 3.0);
        for nonsense in ["", "{", "[1]", r#"{"now": 1, "mem": [1e999]}"#, "\u{0}"] {
            played.publish(&key, nonsense.to_owned());
        }
        played.publish_memory(&hex(2), u64::MAX, u64::MAX, 3.0);
        played.publish_memory(&hex(1), 900, 1000, 3.0);
    }
    let nodes = loop {
        let nodes = look(&mut watch).await;
        if nodes.iter().any(|node| node.memory_in_use.is_some()) {
            break nodes;
        }
        tokio::task::yield_now().await;
    };
    let known = nodes.iter().filter_map(|node| node.memory_in_use);
    assert_eq!(known.map(|told| told.bytes).collect::<Vec<_>>(), [900]);
    drop(watch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_are_too_large_end_nothing_else() {
    let liar = playing(busy(1)).await;
    let client = client(&liar);
    let mut subscription = Subscription::new(|| 1);
    let nodes = [rayfit_core::snapshot::NodeId::from([1; 28])].into();
    client.subscribe(&mut subscription, &nodes).await.unwrap();
    let key = format!("RAY_REPORTER:{}", hex(1)).into_bytes();
    liar.played().publish(&key, "x".repeat(2 << 20));
    let longest = Duration::from_mins(1);
    let fault = client
        .reports(&mut subscription, longest)
        .await
        .unwrap_err();
    assert!(matches!(fault.fault, GcsFault::TooLarge(_)), "{fault}");
    assert!(client.cluster_resource_state().await.is_ok());
    assert_eq!(liar.played().connections, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_asked_about_so_many_nodes_at_a_time_only() {
    let large = playing(busy(200)).await;
    let client = client(&large);
    let mut state = client.cluster_resource_state().await.unwrap();
    let groups = ["cpu".to_owned()].into();
    let mut watch = MemoryWatch::default();
    watch.fill(&client, &groups, &mut state, &Clock::default());
    let asked = loop {
        let most = large
            .played()
            .subscribed
            .values()
            .map(std::collections::BTreeSet::len)
            .max();
        match most {
            Some(most) if most > 0 => break most,
            _ => tokio::task::yield_now().await,
        }
    };
    assert_eq!(asked, 128);
    // It is asked no more once nothing may grow there.
    watch.fill(
        &client,
        &std::collections::BTreeSet::new(),
        &mut state,
        &Clock::default(),
    );
    assert!(
        state
            .node_states
            .iter()
            .all(|node| node.memory_in_use.is_none())
    );
}
