//! Who may write: two replicas, a leader without its Lease, tasks that panic.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use hyper::Response;
use kube::client::{Body, ClientBuilder};
use rayfit::apiserver::ApiServer;

use super::clusters::{BOUND, Cluster, Controller, soon};
use crate::played_api::{Fault, PlayedApi};

/// Two replicas that run for long: one of them scales all clusters, until it stops, and then the other one does at
/// once.
#[tokio::test]
async fn one_replica_leads_and_the_other_one_follows_when_it_stops() {
    let api = PlayedApi::default();
    let first = Cluster::new(&api, "team-a").await;
    let old = Controller::with(api.server(), "old");
    first.is_scaled().await;
    let new = Controller::with(api.server(), "new");
    let leads = |controller: &Controller| controller.metric("rayfit_leader");
    let renewals = || api.calls("update", "leases").len();
    let before = renewals();
    soon("the Lease is renewed", || {
        assert!(leads(&new) == 0.0, "two leaders");
        renewals() > before + 4
    })
    .await;
    // And serves everybody meanwhile.
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    old.stop().await;
    soon("the other one leads", || leads(&new) >= 1.0).await;
    let late = Cluster::new(&api, "team-c").await;
    late.is_scaled().await;
    new.stop().await;
}

/// A leader whose Lease cannot be renewed, and is another's soon, tells a GCS nothing more, though the GCS answers it.
#[tokio::test]
async fn nothing_is_written_to_a_gcs_without_the_lease() {
    let api = PlayedApi::default();
    let first = Cluster::new(&api, "team-a").await;
    let old = Controller::with(api.server(), "old");
    first.is_scaled().await;
    let reports = || first.gcs.played().reports.len();
    let demand = |tasks: i64| {
        let pending = &mut first.gcs.played().state.pending_resource_requests;
        pending[0].count = tasks;
    };
    demand(3);
    let before = reports();
    soon("what is new is reported", || reports() > before).await;
    api.faults(|call| (call.resource == "leases").then_some(Fault::Hang));
    // A look that has seen the demand is over once the next one begins.
    let asked = || first.gcs.played().asked;
    let mut tasks = 3;
    let mut seen = async || {
        tasks += 1;
        demand(tasks);
        let before = asked();
        soon("it is seen", || asked() > before + 1).await;
    };
    // As long as the Lease is trusted.
    loop {
        let before = reports();
        seen().await;
        if reports() == before {
            break;
        }
    }
    let before = (reports(), first.gcs.played().keys.clone());
    let replicas = first.replicas();
    for _ in 0..4 {
        seen().await;
    }
    assert_eq!(before, (reports(), first.gcs.played().keys.clone()));
    assert_eq!(first.replicas(), replicas);
    // Another replica serves everybody, and the first one once it hears again.
    api.no_faults();
    let next = Controller::with(api.server(), "next");
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    soon("what is new is reported", || reports() > before.0).await;
    old.stop().await;
    next.stop().await;
}

/// A bug that is met with in one cluster.
#[tokio::test]
async fn a_panic_over_one_cluster_costs_no_other() {
    let api = PlayedApi::default();
    let evil = Cluster::new(&api, "team-a").await;
    let neighbour = Cluster::new(&api, "team-b").await;
    let real = api.server().client;
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let real = real.clone();
        async move {
            let is_evil = request.method() == "PATCH" && request.uri().path().contains("/team-a/");
            assert!(!is_evil, "a bug");
            real.send(request).await
        }
    });
    let controller = Controller::with(
        ApiServer::of_builder(ClientBuilder::new(service, "default")),
        "a",
    );
    neighbour.is_scaled().await;
    assert_eq!(evil.replicas(), 0);
    assert!(controller.supervisor.failed().now_or_never().is_none());
    controller.stop().await;
}

/// A bug in what all clusters need: the process ends, and Kubernetes starts another one.
#[tokio::test]
async fn a_panic_where_leases_are_kept_ends_the_process_and_the_next_one_serves_everybody() {
    let api = PlayedApi::default();
    let neighbour = Cluster::new(&api, "team-b").await;
    let service = tower::service_fn(move |request: hyper::Request<Body>| async move {
        assert!(!request.uri().path().contains("/leases"), "a bug");
        Ok::<_, Infallible>(std::future::pending::<Response<Body>>().await)
    });
    let controller = Controller::with(
        ApiServer::of_builder(ClientBuilder::new(service, "default")),
        "a",
    );
    let failed = tokio::time::timeout(BOUND, controller.supervisor.failed());
    assert_eq!(failed.await.unwrap().task, "the Lease");
    drop(controller);
    let next = Controller::start(&api);
    neighbour.is_scaled().await;
    next.stop().await;
}

/// Of two replicas one is cut off from the API server: the other one leads.
#[tokio::test]
async fn a_replica_that_is_cut_off_is_succeeded() {
    let api = PlayedApi::default();
    let first = Cluster::new(&api, "team-a").await;
    let real = api.server().client;
    let cut = Arc::new(AtomicBool::new(false));
    let is_cut = cut.clone();
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let (real, is_cut) = (real.clone(), is_cut.clone());
        async move {
            if is_cut.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            real.send(request).await
        }
    });
    let away = Controller::with(
        ApiServer::of_builder(ClientBuilder::new(service, "default")),
        "away",
    );
    first.is_scaled().await;
    cut.store(true, Ordering::Relaxed);
    let stays = Controller::with(api.server(), "stays");
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    let leads = stays.metric("rayfit_leader");
    assert!(leads >= 1.0, "the other one leads: {leads}");
    drop(away);
    stays.stop().await;
}

/// An address of pods is given to another pod when its pod has gone, maybe to the head of another tenant's
/// cluster, and watches are late to tell.
#[tokio::test]
async fn nobody_is_scaled_by_what_the_gcs_of_another_cluster_tells() {
    let api = PlayedApi::default();
    let moved = Cluster::new(&api, "team-a").await;
    let mine = moved.gcs.played().state.node_states[0].instance_id.clone();
    moved.gcs.played().state.node_states[0].instance_id = "theirs-head".to_owned();
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    soon("it is asked again", || moved.gcs.played().asked > 1).await;
    assert_eq!(moved.replicas(), 0);
    assert_eq!(
        moved.gcs.played().reports.len(),
        0,
        "nothing is told to them"
    );
    moved.gcs.played().state.node_states[0].instance_id = mine;
    moved.is_scaled().await;
    controller.stop().await;
}
