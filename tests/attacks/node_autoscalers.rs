//! What node autoscalers say about pods: it is believed at once, of the pods that it is about, and costs
//! nothing where no pod waits. The Events are played, as cluster-autoscaler writes them.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::events::{Controller, cluster_path, gcs, put_cluster, state, until, with_reason};
use crate::played_api::{Fault, PlayedApi};

/// A cluster with a second group, which is asked only if the first cannot be served.
fn put_two_groups(api: &PlayedApi, namespace: &str, gcs_port: u16) {
    put_cluster(api, namespace, gcs_port);
    api.change(&cluster_path(namespace), |cluster| {
        let groups = cluster["spec"]["workerGroupSpecs"].as_array_mut().unwrap();
        groups[0]["priority"] = json!(5);
        let mut second = groups[0].clone();
        second["groupName"] = json!("other");
        second["priority"] = json!(0);
        groups.push(second);
    });
}

/// A pod of the first group for which the scheduler has no room.
fn put_waiting(api: &PlayedApi, namespace: &str, name: &str) {
    api.put(
        &format!("/api/v1/namespaces/{namespace}/pods/{name}"),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "uid": format!("uid-of-{name}"), "creationTimestamp": Timestamp::now().to_string(),
                "labels": { "ray.io/cluster": "ray", "ray.io/node-type": "worker", "ray.io/group": "cpu" },
                "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray",
                    "uid": format!("uid-of-{namespace}"), "controller": true }] },
            "spec": { "containers": [{ "name": "ray", "image": "rayproject/ray:2.60.0", "resources": {
                "requests": { "cpu": "1", "memory": "1Gi" } } }] },
            "status": { "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        }),
    );
}

fn event(namespace: &str, pod: &str, reason: &str) -> Value {
    let now = Timestamp::now().to_string();
    json!({
        "apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": reason,
        "message": "pod didn't trigger scale-up: 1 max node group size reached",
        "involvedObject": { "kind": "Pod", "namespace": namespace, "name": pod, "uid": format!("uid-of-{pod}") },
        "source": { "component": "cluster-autoscaler" }, "reportingComponent": "cluster-autoscaler",
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}

/// How many workers of each group are asked for.
fn asked(api: &PlayedApi, namespace: &str) -> [i64; 2] {
    let cluster = api.get(&cluster_path(namespace)).unwrap();
    [0, 1].map(|group| {
        let group = &cluster["spec"]["workerGroupSpecs"][group];
        group["replicas"].as_i64().unwrap()
    })
}

/// How often the Events of a namespace were read.
fn readings(api: &PlayedApi, namespace: &str) -> usize {
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let requests = &api.objects().requests;
    requests.iter().filter(|call| call.path == path).count()
}

/// A cluster whose task has a pod of the first group, for which there is no room.
async fn waits(api: &PlayedApi, namespace: &str, pod: &str) -> crate::play_gcs::PlayedGcs {
    let gcs = gcs(&[]).await;
    put_two_groups(api, namespace, gcs.address().port);
    gcs.played().state = state(&[(1.0, 1)]);
    until("the first group is asked", || {
        asked(api, namespace) == [1, 0]
    })
    .await;
    put_waiting(api, namespace, pod);
    gcs
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_pod_moves_its_demand_at_once_and_nobody_elses() {
    let api = PlayedApi::default();
    let controller = Controller::start(&api);
    let _quiet = gcs(&[]).await;
    let _victim = waits(&api, "victim", "v").await;
    let _attacker = waits(&api, "attacker", "a").await;
    // Thousands of forged Events in another namespace, about pods of the victim and about others.
    let of = |namespace: &str, number: usize| {
        format!("/api/v1/namespaces/{namespace}/events/e-{number:05}")
    };
    for number in 0..3000 {
        let (namespace, pod) = [("victim", "v"), ("attacker", "x")][number % 2];
        let mut forged = event(namespace, pod, "NotTriggerScaleUp");
        forged["message"] = json!("no".repeat(200));
        api.put(&of("attacker", number), forged);
    }
    until("both are read", || {
        readings(&api, "victim") > 1 && readings(&api, "attacker") > 1
    })
    .await;
    assert_eq!(
        asked(&api, "victim"),
        [1, 0],
        "the words of another namespace"
    );
    api.put(&of("victim", 0), event("victim", "v", "NotTriggerScaleUp"));
    until("the demand goes to the other group", || {
        asked(&api, "victim")[1] == 1
    })
    .await;
    // It went there because of what was said: after three minutes the scheduler's word alone would move it, and that
    // would be the reason.
    until("the reason is told", || {
        with_reason(&api, "victim", "Problem") > 0
    })
    .await;
    let told = api.all("/apis/events.k8s.io/v1/namespaces/victim/events");
    let told: Vec<&str> = told
        .iter()
        .filter_map(|event| event["note"].as_str())
        .collect();
    let words = "cluster-autoscaler says that none comes: \"pod didn't trigger scale-up";
    assert!(told.iter().any(|note| note.contains(words)), "{told:?}");
    assert_eq!(asked(&api, "attacker"), [1, 0], "forged of other pods");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_read_only_where_a_pod_waits() {
    let api = PlayedApi::default();
    let controller = Controller::start(&api);
    let quiet = gcs(&[]).await;
    put_two_groups(&api, "quiet", quiet.address().port);
    quiet.played().state = state(&[(1.0, 1)]);
    until("the quiet one is scaled", || asked(&api, "quiet") == [1, 0]).await;
    let _waiting = waits(&api, "waiting", "w").await;
    until("what waits is asked about", || {
        readings(&api, "waiting") > 2
    })
    .await;
    assert_eq!(readings(&api, "quiet"), 0);
    api.change("/api/v1/namespaces/waiting/pods/w", |pod| {
        pod["spec"]["nodeName"] = json!("n");
    });
    // A reading may be under way; and another pod that waits shows that time goes on.
    let _witness = waits(&api, "witness", "x").await;
    until("the other is asked about", || readings(&api, "witness") > 1).await;
    let before = readings(&api, "waiting");
    until("and again", || readings(&api, "witness") > 4).await;
    assert_eq!(readings(&api, "waiting"), before, "it has a node");
    controller.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_read_events_clusters_are_scaled_as_before() {
    let api = PlayedApi::default();
    api.faults(|call| {
        let is_hit = call.path == "/api/v1/namespaces/ray/events";
        is_hit.then_some(Fault::Status(403, None))
    });
    let controller = Controller::start(&api);
    let gcs = waits(&api, "ray", "w").await;
    until("it was refused", || readings(&api, "ray") > 0).await;
    gcs.played().state = state(&[(1.0, 3)]);
    until("it is scaled", || asked(&api, "ray") == [3, 0]).await;
    let _witness = waits(&api, "witness", "x").await;
    until("another is asked about", || readings(&api, "witness") > 4).await;
    assert_eq!(readings(&api, "ray"), 1, "it is tried again after minutes");
    controller.end().await;
}
