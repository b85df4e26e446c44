//! The client of the GCS against real Ray: every call, and what makes a GCS refuse one.

use std::time::Duration;

use rayfit_core::snapshot::NodeId;
use rayfit_core::snapshot::autoscaling_state::{
    AutoscalingState, FailedRequest, PendingInstance, PendingRequest,
};
use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeState, NodeStatus};

use crate::process_support::PATIENCE;
use crate::real_ray::{HEAD, Ray, TURN, client_with};
use rayfit::gcs::{Client, DrainCall, Endpoint, GcsFault, Material, Subscription};

/// Asks until the state is as wanted.
async fn until(
    client: &Client,
    what: &str,
    is_so: impl Fn(&ClusterResourceState) -> bool,
) -> ClusterResourceState {
    let mut last = None;
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            match client.cluster_resource_state().await {
                Ok(state) if is_so(&state) => return state,
                other => last = Some(other),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    let found = found.await;
    found.unwrap_or_else(|_| panic!("waited for {what} in vain; last: {last:?}"))
}

fn id(node: &NodeState) -> NodeId {
    node.node_id.parse().unwrap()
}

fn head(state: &ClusterResourceState) -> &NodeState {
    state
        .node_states
        .iter()
        .find(|node| node.is_head())
        .unwrap()
}

fn worker(state: &ClusterResourceState) -> Option<&NodeState> {
    let mut nodes = state.node_states.iter();
    nodes.find(|node| node.total_resources.contains_key("worker"))
}

fn is_all(node: &NodeState, resource: &str, amount: f64) -> bool {
    node.total_resources
        .get(resource)
        .is_some_and(|total| (total - amount).abs() < 1e-6)
}

#[tokio::test]
async fn every_call_does_what_it_says() {
    let _turn = TURN.lock().await;
    let ray = Ray::head(&[]);
    let client = ray.client();
    let state = until(&client, "the head", |state| !state.node_states.is_empty()).await;
    let node = id(head(&state));
    assert!(head(&state).is_running());

    resizes(&client, node).await;
    keys(&client).await;
    memory_in_use(&client, node).await;
    reports(&client, &ray).await;
    faults(&client, node).await;
    drains(&client, &ray).await;

    client.stop_node(node).await.unwrap();
    let dead = |state: &ClusterResourceState| {
        let mut nodes = state.node_states.iter();
        nodes.any(|other| id(other) == node && other.status == NodeStatus::Dead)
    };
    until(&client, "the head's end", dead).await;
}

async fn resizes(client: &Client, node: NodeId) {
    let grown = client.resize_raylet(node, Some(3500), Some(3 << 30));
    let totals = grown.await.unwrap();
    assert_eq!(totals["CPU"].to_string(), "3.5", "{totals:?}");
    assert_eq!(totals["memory"].to_string(), (3_u64 << 30).to_string());
    let state = until(client, "3.5 CPUs", |state| is_all(head(state), "CPU", 3.5)).await;
    assert!(is_all(
        head(&state),
        "memory",
        f64::from(3 << 10) * 1_048_576.0
    ));
    let only_cpu = client.resize_raylet(node, Some(2000), None);
    let totals = only_cpu.await.unwrap();
    assert_eq!(totals["memory"].to_string(), (3_u64 << 30).to_string());
    until(client, "2 CPUs", |state| is_all(head(state), "CPU", 2.0)).await;
}

async fn memory_in_use(client: &Client, node: NodeId) {
    let mut subscription = Subscription::new(|| fastrand::u8(..));
    let nodes = [node].into();
    client.subscribe(&mut subscription, &nodes).await.unwrap();
    let longest = PATIENCE;
    let first = client.reports(&mut subscription, longest).await.unwrap();
    let first = first.expect("a dashboard agent reports every five seconds")[0];
    assert_eq!(first.node, node);
    assert!((1 << 20..first.total).contains(&first.used), "{first:?}");
    let second = client.reports(&mut subscription, longest).await.unwrap();
    let second = second.expect("and again")[0];
    // In seconds: in milliseconds they would be 5,000 apart.
    assert!(
        (1.0..1000.0).contains(&(second.at - first.at)),
        "{second:?}"
    );
}

async fn keys(client: &Client) {
    assert_eq!(client.kv_get("", "no such key").await, Ok(None));
    crate::gcs_contract::keys_are_kept(client).await;
    crate::gcs_contract::lines_are_taken(client).await;
    let flag = client.kv_get("__autoscaler", "__autoscaler_v2_enabled");
    assert_eq!(flag.await.unwrap().as_deref(), Some(b"1".as_slice()));
}

async fn reports(client: &Client, ray: &Ray) {
    let group = "cpu-group".to_owned();
    let state = AutoscalingState {
        version: 1_700_000_000_000,
        pending_requests: vec![PendingRequest {
            group: group.clone(),
            count: 3,
            since: 1_700_000_000,
        }],
        pending_instances: vec![PendingInstance {
            group: group.clone(),
            pod: "demo-cpu-group-worker-abcde".to_owned(),
            address: "10.1.2.3".to_owned(),
            details: "waits for its image".to_owned(),
        }],
        failed_requests: vec![FailedRequest {
            group,
            count: 1,
            reason: "no node holds it".to_owned(),
            started: 1_700_000_000,
            failed: 1_700_000_060,
        }],
        ..AutoscalingState::default()
    };
    client.report(state.clone()).await.unwrap();
    let shown = ray.run(&["status", "--address", &ray.address().to_string(), "-v"]);
    for text in [
        "cpu-group, 1 launching",
        "demo-cpu-group-worker-abcde: cpu-group, waits for its image",
        "no node holds it",
        "two",
    ] {
        assert!(shown.contains(text), "no {text:?} in\n{shown}");
    }
    // A later report without them takes the place of this one.
    let later = AutoscalingState {
        version: state.version + 1,
        ..AutoscalingState::default()
    };
    client.report(later).await.unwrap();
    let shown = ray.run(&["status", "--address", &ray.address().to_string()]);
    assert!(!shown.contains("launching"), "{shown}");
}

async fn faults(client: &Client, node: NodeId) {
    let nobody = NodeId::from([1; 28]);
    let resized = client.resize_raylet(nobody, Some(1000), None).await;
    let fault = resized.unwrap_err().fault;
    assert!(matches!(fault, GcsFault::NotFound(_)), "{fault}");
    let nothing = client.resize_raylet(node, None, None).await;
    assert_eq!(nothing.unwrap()["CPU"].to_string(), "2");
    let drained = client.drain(nobody, "idle", None).await.unwrap();
    assert_eq!(
        drained,
        DrainCall::Accepted,
        "unknown nodes are gone already"
    );
}

/// A busy worker stays; an idle one goes.
async fn drains(client: &Client, ray: &Ray) {
    ray.worker("127.0.0.3");
    let driver = ray.driver(
        "import ray, time\n\
         ray.init(log_to_driver=False)\n\
         work = ray.remote(num_cpus=1, resources={'worker': 1})(lambda: time.sleep(3600))\n\
         ray.get(work.remote())\n",
    );
    let busy = |state: &ClusterResourceState| {
        worker(state).is_some_and(|node| {
            node.status == NodeStatus::Running && !node.available_resources.contains_key("worker")
        })
    };
    let state = until(client, "a busy worker", busy).await;
    let node = id(worker(&state).unwrap());
    let drained = client.drain(node, "idle for 60 s", None).await.unwrap();
    assert!(
        matches!(&drained, DrainCall::Rejected(why) if why.contains("no longer idle")),
        "{drained:?}"
    );
    drop(driver);
    let idle = |state: &ClusterResourceState| {
        worker(state).is_some_and(|node| node.status == NodeStatus::Idle)
    };
    until(client, "an idle worker", idle).await;
    let drained = client.drain(node, "idle for 60 s", None).await.unwrap();
    assert_eq!(drained, DrainCall::Accepted);
    let gone = |state: &ClusterResourceState| {
        let mut nodes = state.node_states.iter();
        nodes.any(|other| id(other) == node && other.status == NodeStatus::Dead)
    };
    until(client, "the worker's end", gone).await;
    // So that the next steps find a node that is there.
    let drained = client.drain(node, "gone already", Some(0)).await.unwrap();
    assert_eq!(drained, DrainCall::Accepted);
}

#[tokio::test]
async fn a_killed_gcs_is_found_again() {
    let _turn = TURN.lock().await;
    let ray = Ray::head(&[]);
    let client = ray.client();
    until(&client, "the head", |state| !state.node_states.is_empty()).await;
    let mut again = ray.kill_gcs();
    let fault = client.cluster_resource_state().await.unwrap_err().fault;
    assert!(matches!(fault, GcsFault::Unreachable(_)), "{fault}");
    let mut gcs = again.spawn().unwrap();
    // The new one begins anew and knows no node until the raylet comes back, if it does.
    until(&client, "the new GCS", |_| true).await;
    assert_eq!(gcs.try_wait().unwrap(), None, "it still runs");
    gcs.kill().unwrap();
    gcs.wait().unwrap();
}

#[tokio::test]
async fn a_token_is_needed_where_ray_has_one() {
    let _turn = TURN.lock().await;
    let ray = Ray::head(&[
        ("RAY_AUTH_MODE", "token"),
        ("RAY_AUTH_TOKEN", "0123456789abcdef"),
    ]);
    until(&ray.client(), "the head", |state| {
        !state.node_states.is_empty()
    })
    .await;
    let wrong = Material::Memory(b"0123456789".as_slice().into());
    for token in [None, Some(wrong)] {
        let endpoint = Endpoint {
            token,
            ..Endpoint::plain(ray.address())
        };
        let client = client_with(endpoint);
        let fault = client.cluster_resource_state().await.unwrap_err().fault;
        assert!(matches!(fault, GcsFault::Unauthenticated(_)), "{fault}");
    }
}

#[tokio::test]
async fn certificates_are_needed_where_ray_has_them() {
    let _turn = TURN.lock().await;
    let folder = tempfile::tempdir().unwrap();
    let authority = crate::tls_support::ca(1);
    let pair =
        crate::tls_support::issue_for(&authority, &[HEAD.as_str(), "localhost", "127.0.0.1"], 1);
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ray = Ray::head(&[
        ("RAY_USE_TLS", "1"),
        ("RAY_TLS_SERVER_CERT", &write("tls.crt", &pair.chain)),
        ("RAY_TLS_SERVER_KEY", &write("tls.key", &pair.key)),
        ("RAY_TLS_CA_CERT", &write("ca.crt", &authority.pem())),
    ]);
    let client = ray.client();
    until(&client, "the head", |state| !state.node_states.is_empty()).await;

    let plain = client_with(Endpoint::plain(ray.address()));
    let fault = plain.cluster_resource_state().await.unwrap_err().fault;
    assert!(matches!(fault, GcsFault::Unreachable(_)), "{fault}");

    let stranger = crate::tls_support::issue_for(&crate::tls_support::ca(1), &["localhost"], 1);
    let mut endpoint = client.endpoint.as_ref().clone();
    if let Some(tls) = &mut endpoint.tls {
        tls.certificate = Material::Memory(stranger.chain.into_bytes().into());
        tls.key = Material::Memory(stranger.key.into_bytes().into());
    }
    let client = client_with(endpoint);
    let fault = client.cluster_resource_state().await.unwrap_err().fault;
    assert!(
        matches!(fault, GcsFault::Tls(_) | GcsFault::Unreachable(_)),
        "{fault}"
    );
}
