//! Watches that fail in every way: whatever is watched is seen again, and what concerns one object
//! concerns no other.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rayfit::apiserver::{ApiServer, Informers, Selection, WatchEvent, Watches};
use serde_json::{Value, json};

use super::clusters::{CLUSTERS, Cluster, Controller, soon};
use super::policies::POLICIES;
use crate::client_support::kubeconfig;
use crate::played_api::{Fault, PlayedApi};
use crate::process_support::Process;

#[tokio::test]
async fn a_lease_watch_whose_first_list_fails_is_polled_again() {
    let api = PlayedApi::default();
    let neighbour = Cluster::new(&api, "team-b").await;
    let mut failures = 3;
    api.faults(move |call| {
        let hit = (call.verb, &*call.resource) == ("list", "leases") && failures > 0;
        failures -= i32::from(hit);
        hit.then_some(Fault::Status(500, None))
    });
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    controller.stop().await;
}

#[tokio::test]
async fn readiness_tells_which_watch_fails_and_why() {
    let api = PlayedApi::default();
    api.faults(|call| (call.resource == "leases").then_some(Fault::Status(500, None)));
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    let watches = controller.watches();
    soon(
        "only Leases are not seen",
        || matches!(&*watches.troubles(), [trouble] if trouble.why.contains("HTTP 500")),
    )
    .await;
    let trouble = watches.troubles().remove(0).to_string();
    assert!(
        trouble.starts_with("Leases have not been seen at all for"),
        "{trouble}"
    );
    assert_eq!(
        neighbour.replicas(),
        0,
        "nothing is written without a Lease"
    );
    api.no_faults();
    neighbour.is_scaled().await;
    soon("all is well", || watches.troubles().is_empty()).await;
    controller.stop().await;
}

#[tokio::test]
async fn every_first_list_fails_and_all_are_asked_for_again() {
    let api = PlayedApi::default();
    let neighbour = Cluster::new(&api, "team-b").await;
    let mut failed = Vec::new();
    api.faults(move |call| {
        let first = call.verb == "list" && !failed.contains(&call.resource);
        failed.extend(first.then(|| call.resource.clone()));
        first.then_some(Fault::Status(503, None))
    });
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    controller.stop().await;
}

#[tokio::test]
async fn watches_that_are_cut_at_once_do_not_hide_a_new_cluster() {
    let api = PlayedApi::default();
    let first = Cluster::new(&api, "team-a").await;
    let mut cut = 0;
    api.faults(move |call| {
        // Leases change all the time; theirs are cut, too.
        let cuts = call.verb == "watch" && cut < 60;
        cut += i32::from(cuts);
        (cuts && cut % 3 != 0).then_some(Fault::Cut)
    });
    let controller = Controller::start(&api);
    first.is_scaled().await;
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    let lists = api.calls("list", "rayclusters").len();
    assert!(
        lists <= 2,
        "a watch that is cut goes on where it was: {lists} lists"
    );
    controller.stop().await;
}

#[tokio::test]
async fn watches_whose_version_is_too_old_begin_with_a_list_and_no_storm_of_them() {
    let api = PlayedApi::default();
    let first = Cluster::new(&api, "team-a").await;
    api.faults(|call| {
        let hit = call.verb == "watch" && call.resource == "rayclusters";
        hit.then_some(Fault::Expired)
    });
    let controller = Controller::start(&api);
    first.is_scaled().await;
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    let lists = api.calls("list", "rayclusters").len();
    assert!(lists < 20, "{lists} lists");
    controller.stop().await;
}

#[tokio::test]
async fn one_malformed_object_hides_no_other() {
    let api = PlayedApi::default();
    let mut deep = json!("s3cret");
    for _ in 0..120 {
        deep = json!({ "a": deep });
    }
    for (name, part) in [
        ("no-spec", json!({})),
        ("bare-spec", json!({ "spec": 5 })),
        (
            "no-groups",
            json!({ "spec": { "workerGroupSpecs": { "a": 1 } } }),
        ),
        ("deep", json!({ "spec": deep })),
        (
            "odd",
            json!({ "metadata": { "labels": { "a": 5 }, "annotations": 7 } }),
        ),
    ] {
        let mut object = json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": { "namespace": "team-a", "name": name }
        });
        json_patch::merge(&mut object, &part);
        api.store(CLUSTERS, object);
    }
    api.store(CLUSTERS, json!({ "metadata": "nothing" }));
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    // And while it is watched.
    api.store(
        CLUSTERS,
        json!({ "metadata": { "namespace": "team-a", "name": "late" }, "spec": [] }),
    );
    let late = Cluster::new(&api, "team-c").await;
    late.is_scaled().await;
    controller.stop().await;
}

/// A connection that is up and says nothing: in virtual time, since that lasts minutes.
#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_silently_is_begun_anew_and_is_no_failure() {
    use hyper::Response;
    use kube::client::{Body, ClientBuilder};
    let watches_begun = Arc::new(std::sync::Mutex::new(0));
    let begun = watches_begun.clone();
    let service = tower::service_fn(move |request: hyper::Request<Body>| {
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        *begun.lock().unwrap() += i32::from(is_watch);
        async move {
            let body = if is_watch {
                let silence =
                    futures_util::stream::pending::<Result<axum::body::Bytes, std::io::Error>>();
                axum::body::Body::from_stream(silence)
            } else {
                let list = json!({ "metadata": { "resourceVersion": "5" }, "items": [
                    { "metadata": { "name": "a" } }
                ] });
                axum::body::Body::from(list.to_string())
            };
            Ok::<_, std::convert::Infallible>(Response::new(body))
        }
    });
    let api = ApiServer::of_builder(ClientBuilder::new(service, "default"));
    let watches = Watches::default();
    let lists = Arc::new(AtomicU32::new(0));
    let counted = lists.clone();
    let failures = Arc::new(AtomicU32::new(0));
    let failed = failures.clone();
    let pods = Selection::all("pods", "/api/v1/pods".to_owned());
    let informers = Informers::new(api.client.clone(), watches.clone());
    let reading = informers.read(pods, Some::<Value>, move |event| {
        counted.fetch_add(u32::from(matches!(event, WatchEvent::Complete(_))), Relaxed);
        failed.fetch_add(u32::from(matches!(event, WatchEvent::Failed(_))), Relaxed);
    });
    let hour = tokio::time::timeout(Duration::from_hours(1), reading.forever());
    assert!(hour.await.is_err(), "it never ends");
    let lists = lists.load(Relaxed);
    assert!(lists > 20, "{lists} lists in an hour");
    assert!(*watches_begun.lock().unwrap() > 20);
    assert_eq!(watches.troubles(), [], "what is known is never old");
    let failures = failures.load(Relaxed);
    assert_eq!(
        failures, 0,
        "an API server may have nothing to say of objects that do not change"
    );
}

/// Webhooks, audit and controller in one process.
#[tokio::test]
async fn one_process_watches_nothing_twice() {
    let api = PlayedApi::default();
    let cluster = Cluster::new(&api, "team-a").await;
    let policy = json!({ "metadata": { "name": "all" }, "spec": {} });
    api.store(POLICIES, policy);
    let folder = tempfile::tempdir().unwrap();
    let file = kubeconfig(api.router(), folder.path().join("kubeconfig")).await;
    let _process = Process::start(&["--kubeconfig", file.to_str().unwrap()]).await;
    cluster.is_scaled().await;
    soon("the audit has written what it found", || {
        let policy = api.get(&format!("{POLICIES}/all")).unwrap();
        policy["status"]["objects"] == 1
    })
    .await;
    let once = [
        "/api/v1/limitranges",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/api/v1/pods  ray.io/cluster",
        "/api/v1/resourcequotas",
        "/apis/coordination.k8s.io/v1/leases rayfit-system metadata.name=rayfit-leader",
        "/apis/ray.io/v1/rayclusters",
        "/apis/ray.io/v1/raycronjobs",
        "/apis/ray.io/v1/rayjobs",
        "/apis/ray.io/v1/rayservices",
        "/apis/rayfit.dev/v1alpha1/raypolicies",
    ];
    let once = once.map(|what| (what.to_owned(), 1));
    soon("each is watched once", || {
        let open = api.watches();
        assert!(open.values().all(|open| *open <= 2), "{open:?}");
        open.into_iter().eq(once.clone())
    })
    .await;
}
