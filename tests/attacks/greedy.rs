//! The controller itself, with a cluster that asks for too much or whose GCS says what no GCS says,
//! and a neighbour: that one is scaled as if it was alone, and the other one is told what is wrong.

use serde_json::{Value, json};

use super::events::{
    Controller, cluster_path, gcs, is_served, put_cluster, replicas, state, until, with_reason,
};
use crate::play_gcs::messages;
use crate::played_api::PlayedApi;

/// Runs both, until the attacker was told `reason` and the neighbour was served.
async fn beside_a_neighbour(
    said: messages::ClusterResourceState,
    groups: Option<Vec<Value>>,
    reason: &str,
) -> PlayedApi {
    let api = PlayedApi::default();
    let (greedy, neighbour) = (gcs(&[]).await, gcs(&[]).await);
    greedy.played().state = said;
    put_cluster(&api, "attacker", greedy.address().port);
    put_cluster(&api, "victim", neighbour.address().port);
    if let Some(groups) = groups {
        api.change(&cluster_path("attacker"), |cluster| {
            cluster["spec"]["workerGroupSpecs"] = json!(groups);
        });
    }
    let controller = Controller::start(&api);
    until("the attacker is told", || {
        with_reason(&api, "attacker", reason) > 0
    })
    .await;
    is_served(&api, "victim", &neighbour).await;
    controller.end().await;
    api
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_next_to_nothing_are_not_reckoned_with() {
    let api = beside_a_neighbour(state(&[(1e-300, i64::MAX)]), None, "NotObserved").await;
    assert_eq!(replicas(&api, "attacker"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_nodes_without_end_are_not_read() {
    let said = messages::ClusterResourceState {
        node_states: vec![messages::NodeState::default(); 20_001],
        ..state(&[])
    };
    let api = beside_a_neighbour(said, None, "NotObserved").await;
    assert_eq!(replicas(&api, "attacker"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_million_tasks_get_the_workers_that_a_cluster_may_have() {
    let group = super::planner::group("cpu", 1);
    let said = state(&[(1.0, 100_000_000)]);
    let api = beside_a_neighbour(said, Some(vec![group]), "Problem").await;
    assert_eq!(replicas(&api, "attacker"), 10_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demand_that_is_too_hard_is_left_alone() {
    let demands: Vec<(f64, i64)> = (0..3_000)
        .map(|number| (0.0003 + 0.0001 * f64::from(number), 1))
        .collect();
    let groups = (0..400).map(|number| super::planner::group(&format!("g-{number}"), 1));
    let api = beside_a_neighbour(state(&demands), Some(groups.collect()), "Problem").await;
    assert_eq!(replicas(&api, "attacker"), 0, "half a decision is none");
}

/// A GCS refuses the token in its cluster's Secret, as after the head was replaced and the Secret was not: the
/// API server is not asked for the Secret at every look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_refused_is_read_ever_more_rarely() {
    let api = PlayedApi::default();
    let head = gcs(&[(1.0, 3)]).await;
    head.played().token = Some("old".to_owned());
    put_cluster(&api, "attacker", head.address().port);
    api.change(&cluster_path("attacker"), |cluster| {
        cluster["spec"]["authOptions"] = json!({"mode": "token"});
    });
    let path = "/api/v1/namespaces/attacker/secrets/ray";
    let secret = |token: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"auth_token": token}});
    api.put(path, secret("b2xk"));
    let controller = Controller::start(&api);
    until("the token is read", || replicas(&api, "attacker") == 3).await;
    head.played().token = Some("new".to_owned());
    // That takes ten seconds, in each of which it is looked at.
    until("its users are told", || {
        with_reason(&api, "attacker", "NotObserved") > 0
    })
    .await;
    let reads = {
        let asked = &api.objects().requests;
        let of_secret = asked.iter().filter(|call| call.path.starts_with(path));
        of_secret.count()
    };
    assert!((2..=8).contains(&reads), "read {reads} times");
    api.put(path, secret("bmV3"));
    head.played().state = state(&[(1.0, 5)]);
    until("the new token is read", || replicas(&api, "attacker") == 5).await;
    controller.end().await;
}
