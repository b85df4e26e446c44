//! Who may write: two divisions of clusters, a replica without its Lease, tasks that panic.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use hyper::Response;
use kube::client::Body;
use rayfit::apiserver::{ApiServer, Gate};
use rayfit::controller::clock::Clock;
use rayfit::controller::judge::{self, Judge};
use rayfit::controller::lease::Fence;
use rayfit::controller::observe::{Key, Observed};
use rayfit::controller::perform::Performer;
use rayfit::controller::permit::Permit;
use rayfit::controller::writer::{Requests, Writer};
use rayfit::gcs;
use rayfit::reconcile::effect::{Effect, Subject};
use rayfit::reconcile::{Chain, Failure, Role};
use rayfit::snapshot::autoscaling_state::AutoscalingState;
use serde_json::json;
use tokio::sync::Mutex;

use super::api::Api;
use super::clusters::{Cluster, Controller, LEASES, soon};
use crate::play_gcs::{Played, PlayedGcs};

/// A rollout that changes `--shards` begins the new replica before it ends the old one.
#[tokio::test]
async fn a_rollout_that_changes_the_number_of_shards_never_has_two_divisions_at_work() {
    let api = Api::start().await;
    let first = Cluster::new(&api, "team-a", "ray").await;
    let old = Controller::with(api.server(), "old", 2);
    first.is_scaled().await;
    let new = Controller::with(api.server(), "new", 5);
    let held = |controller: &Controller| controller.metric("rayfit_shards_held");
    let watched = async {
        let until = Instant::now() + Duration::from_secs(4);
        while Instant::now() < until {
            assert!(
                held(&old) == 0.0 || held(&new) == 0.0,
                "two divisions at work"
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    watched.await;
    assert_eq!(held(&old).to_string(), "2", "it goes on");
    // And serves everybody meanwhile.
    let neighbour = Cluster::new(&api, "team-b", "ray").await;
    neighbour.is_scaled().await;
    old.stop().await;
    soon("the new one takes over", || held(&new) >= 5.0).await;
    let late = Cluster::new(&api, "team-c", "ray").await;
    late.is_scaled().await;
    new.stop().await;
}

/// The old one is killed, and can say nothing: its Lease has to run out and be buried.
#[tokio::test]
async fn a_replica_of_another_division_that_was_killed_is_waited_for_and_not_for_ever() {
    let api = Api::start().await;
    api.played.put(
        LEASES,
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {
                "namespace": "rayfit-system", "name": "rayfit-replica-killed",
                "labels": { "rayfit.dev/lease": "replica" },
                "annotations": { "rayfit.dev/shards": "2" }
            },
            "spec": { "holderIdentity": "killed", "leaseDurationSeconds": 6 }
        }),
    );
    let neighbour = Cluster::new(&api, "team-b", "ray").await;
    let began = Instant::now();
    let controller = Controller::with(api.server(), "new", 5);
    neighbour.is_scaled().await;
    assert!(
        began.elapsed() >= Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
    controller.stop().await;
}

/// A replica that was cut off, and whose shard is another's by now, tells the GCS nothing more.
#[tokio::test]
async fn nothing_is_written_to_a_gcs_without_the_lease() {
    let gcs = PlayedGcs::start(Played::default()).await;
    let api = Api::start().await;
    let server = api.server();
    let gate = Gate::new(10, 10, server.patience());
    let key = Key::new("team-a", "ray");
    let fence = Fence::default();
    let writer = Writer::new(
        Requests::new(server.client(), gate),
        key.clone(),
        Some((fence.clone(), 1)),
    );
    let (tell, _changes) = tokio::sync::mpsc::unbounded_channel();
    let judge = Judge {
        key,
        role: Role::Central,
        is_ours: judge::images("rayfit"),
        observed: Observed::new(tell),
    };
    let permit = Permit {
        grant: &Mutex::default(),
        judge: &judge,
        heads: &[],
        clock: Clock::default(),
    };
    let client = gcs::Client::new(gcs::Endpoint::plain(gcs.address()), gcs::Limits::default());
    let performer = Performer {
        writer: &writer,
        gcs: &client,
        permit: &permit,
        clock: Clock::default(),
    };
    let tell = || {
        let say = |effect| Chain::one(Subject::Cluster, "a test".to_owned(), effect);
        vec![
            say(Effect::Report(AutoscalingState::default())),
            say(Effect::PutError("a test".to_owned())),
        ]
    };
    for done in performer.all(tell()).await {
        assert!(matches!(done.result, Err(Failure::NotSent(_))), "{done:?}");
    }
    assert!(gcs.played().reports.is_empty() && gcs.played().keys.is_empty());
    fence.set(BTreeMap::from([(
        1,
        Instant::now() + Duration::from_mins(1),
    )]));
    for done in performer.all(tell()).await {
        assert!(done.result.is_ok(), "{done:?}");
    }
    assert_eq!(gcs.played().reports.len(), 1);
    assert!(!fence.is_busy(1), "the writes have ended");
}

/// A bug that is met with in one cluster.
#[tokio::test]
async fn a_panic_over_one_cluster_costs_no_other() {
    let api = Api::start().await;
    let evil = Cluster::new(&api, "team-a", "ray").await;
    let neighbour = Cluster::new(&api, "team-b", "ray").await;
    let real = api.server().client();
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let real = real.clone();
        async move {
            let is_evil = request.method() == "PATCH" && request.uri().path().contains("/team-a/");
            assert!(!is_evil, "a bug");
            real.send(request).await
        }
    });
    let controller = Controller::with(ApiServer::through(service, "default"), "a", 2);
    neighbour.is_scaled().await;
    assert_eq!(evil.replicas(), 0);
    assert!(controller.supervisor.failed().now_or_never().is_none());
    controller.stop().await;
}

/// A bug in what all clusters need: the process ends, and Kubernetes starts another one.
#[tokio::test]
async fn a_panic_where_leases_are_kept_ends_the_process_and_the_next_one_serves_everybody() {
    let api = Api::start().await;
    let neighbour = Cluster::new(&api, "team-b", "ray").await;
    let service = tower::service_fn(move |request: hyper::Request<Body>| async move {
        assert!(!request.uri().path().contains("/leases"), "a bug");
        Ok::<_, Infallible>(std::future::pending::<Response<Body>>().await)
    });
    let controller = Controller::with(ApiServer::through(service, "default"), "a", 2);
    let failed = tokio::time::timeout(Duration::from_secs(20), controller.supervisor.failed());
    assert_eq!(failed.await.unwrap().task, "Leases");
    drop(controller);
    let next = Controller::start(&api);
    neighbour.is_scaled().await;
    next.stop().await;
}

/// Of two replicas one is cut off from the API server: its shards are taken over, and no shard is
/// ever written for by both.
#[tokio::test]
async fn a_replica_that_is_cut_off_is_succeeded() {
    let api = Api::start().await;
    let first = Cluster::new(&api, "team-a", "ray").await;
    let real = api.server().client();
    let cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_cut = cut.clone();
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let (real, is_cut) = (real.clone(), is_cut.clone());
        async move {
            if is_cut.load(std::sync::atomic::Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            real.send(request).await
        }
    });
    let away = Controller::with(ApiServer::through(service, "default"), "away", 2);
    first.is_scaled().await;
    cut.store(true, std::sync::atomic::Ordering::Relaxed);
    let stays = Controller::with(api.server(), "stays", 2);
    let neighbour = Cluster::new(&api, "team-b", "ray").await;
    neighbour.is_scaled().await;
    let held = |controller: &Controller| controller.metric("rayfit_shards_held");
    soon("all shards are one's", || held(&stays) >= 2.0).await;
    assert_eq!(
        held(&away).to_string(),
        "2",
        "it knows nothing of it: its fence does"
    );
    stays.stop().await;
}
