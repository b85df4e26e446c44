//! The binary as `/bin/bash` of its image.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use crate::client_support::{get, kubeconfig};
use crate::play_gcs::{Place, Played, PlayedGcs, messages};
use crate::played_api::PlayedApi;
use crate::process_support::{Log, soon};

const FIXED: &str = "ray kuberay-autoscaler --cluster-name prod --cluster-namespace ray";

fn bash(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rayfit"));
    command.arg0("/bin/bash").args(arguments);
    command
}

fn refused(arguments: &[&str]) -> String {
    let Output { status, stderr, .. } = bash(arguments).output().unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}");
    String::from_utf8(stderr).unwrap()
}

#[test]
fn does_not_scale_and_runs_until_it_is_stopped() {
    let mut child = bash(&["-c", "--", FIXED])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("waiting until the mode of RayCluster ray/prod is sidecar"),
        "{first}"
    );
    assert!(child.try_wait().unwrap().is_none(), "it ended by itself");

    let kill = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(
        kill.expect("`kill` (procps or a shell's package) is needed")
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn says_what_it_is_when_it_is_asked_for_anything_else() {
    for arguments in [&["-c", "--", "echo hello"][..], &["-i"], &[]] {
        let error = refused(arguments);
        assert!(error.contains("understands one command"), "{error}");
        assert!(error.contains("autoscalerOptions.image"), "{error}");
    }
    let error = refused(&["-c", "--", &format!("{FIXED} --verbose")]);
    assert!(error.contains("\"--verbose\""), "{error}");
}

/// A sidecar of a cluster in mode central, whose head's GCS is at that port; its metrics are to be at another.
async fn scraped(gcs: u16, metrics: u16, folder: &std::path::Path) -> (tokio::process::Child, Log) {
    let api = PlayedApi::default();
    let template = json!({"spec": {"containers": [{"name": "ray", "resources": {"limits": {"cpu": "2", "memory": "1k"}}}]}});
    api.put(
        "/apis/ray.io/v1/namespaces/ray/rayclusters/prod",
        json!({"metadata": {"annotations": {"rayfit.dev/reconcile": "central"}}, "spec": {
            "headGroupSpec": {"rayStartParams": {"num-cpus": "0", "port": gcs.to_string()}, "template": template},
            "workerGroupSpecs": [{"groupName": "cpu", "rayStartParams": {}, "template": template}]}}),
    );
    api.put(
        "/api/v1/namespaces/ray/pods/head",
        json!({"status": {"podIP": "10.1.2.3"}}),
    );
    let kubeconfig = kubeconfig(api.router(), folder.join("kubeconfig")).await;
    let mut child = tokio::process::Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args([
            "sidecar",
            "--cluster-name=prod",
            "--cluster-namespace=ray",
            "--kubeconfig",
        ])
        .arg(kubeconfig)
        .env_clear()
        .env("RAY_HEAD_POD_NAME", "head")
        .env("AUTOSCALER_METRIC_PORT", metrics.to_string())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let log = Log::of(child.stderr.take().unwrap());
    (child, log)
}

async fn logged(log: &mut Log, text: &str) {
    while !soon(text, log.next_line())
        .await
        .expect("it ended")
        .contains(text)
    {}
}

#[tokio::test]
async fn serves_the_metrics_of_rays_autoscaler_whoever_scales() {
    let node = |pod: &str, group: &str, cpu: f64| messages::NodeState {
        instance_id: pod.to_owned(),
        ray_node_type_name: group.to_owned(),
        status: messages::NodeStatus::Running.into(),
        total_resources: [("CPU".to_owned(), cpu), ("memory".to_owned(), 1000.0)].into(),
        ..Default::default()
    };
    let launch = messages::PendingInstanceRequest {
        ray_node_type_name: "cpu".to_owned(),
        count: 3,
        ..Default::default()
    };
    let report = messages::AutoscalingState {
        pending_instance_requests: vec![launch],
        ..Default::default()
    };
    let session = (b"session".to_vec(), b"session_name".to_vec());
    let gcs = PlayedGcs::start(Played {
        state: messages::ClusterResourceState {
            node_states: vec![node("head", "headgroup", 0.0), node("w", "cpu", 4.0)],
            ..Default::default()
        },
        reports: vec![report],
        keys: [(session, b"session_1".to_vec())].into(),
        ..Played::default()
    })
    .await;
    let (place, folder) = (Place::free(), tempfile::tempdir().unwrap());
    let (_child, mut log) =
        scraped(gcs.address().port, place.address().port(), folder.path()).await;
    logged(&mut log, "serves the metrics of Ray's autoscaler").await;
    let pages = [get(place.address(), "/metrics"), get(place.address(), "/")];
    for page in futures_util::future::join_all(pages).await {
        let page = page.unwrap();
        assert!(page.status.is_success(), "{}", page.body);
        for line in [
            r#"autoscaler_active_nodes{NodeType="cpu",SessionName="session_1"} 1.0"#,
            r#"autoscaler_active_nodes{NodeType="headgroup",SessionName="session_1"} 1.0"#,
            r#"autoscaler_pending_nodes{NodeType="cpu",SessionName="session_1"} 3.0"#,
            r#"autoscaler_cluster_resources{resource="CPU",SessionName="session_1"} 4.0"#,
            r#"autoscaler_pending_resources{resource="CPU",SessionName="session_1"} 6.0"#,
            r#"autoscaler_failed_updates_total{SessionName="session_1"} 0.0"#,
        ] {
            assert!(
                page.body.lines().any(|written| written == line),
                "{line} is not in {}",
                page.body
            );
        }
    }
    assert_eq!(gcs.played().asked, 1, "the GCS is asked once for both");
    let registered = async {
        let key = (Vec::new(), b"AutoscalerMetricsAddress".to_vec());
        loop {
            if let Some(address) = gcs.played().keys.get(&key) {
                return String::from_utf8(address.clone()).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    let port = place.address().port();
    assert_eq!(
        soon("the port is registered", registered).await,
        format!("10.1.2.3:{port}")
    );
}

#[tokio::test]
async fn goes_on_where_the_port_is_taken_and_where_the_gcs_does_not_answer() {
    let (place, gcs) = (Place::free(), Place::free());
    let taken = place.listener();
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut log) =
        scraped(gcs.address().port(), place.address().port(), folder.path()).await;
    logged(&mut log, "not served until the port is free").await;
    assert!(child.try_wait().unwrap().is_none(), "it ended");
    drop(taken);
    logged(&mut log, "serves the metrics of Ray's autoscaler").await;
    let answer = get(place.address(), "/metrics").await.unwrap();
    assert_eq!(answer.status.as_u16(), 503, "{}", answer.body);
    assert!(
        answer.body.contains("InternalKVGet at the GCS"),
        "{}",
        answer.body
    );
}
