//! New pods and their initial sizes through the router, with played answers about their RayClusters. Time is virtual: it
//! passes only while all wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use rayfit::admission::AdmissionLimits;
use rayfit::admission::new_pods::{OwnerReader, OwnerUnread};
use rayfit_core::dns_name::Key;
use rayfit_core::initial_size::OwnerCluster;
use rayfit_core::ray::initial_sizes::HELD_S;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::review_support::{
    Server, bad_cluster, cluster, create, create_pod, made, owner, post, with_owners, worker,
};

const NOW: f64 = 1_764_243_000.0;

/// What is answered about every RayCluster.
#[derive(Debug, Clone)]
enum Played {
    Metadata(Value),
    Missing,
    Fails(OwnerUnread),
    Hangs,
    Panics,
}

#[derive(Debug)]
struct PlayedOwners {
    played: Played,
    takes: Duration,
    asked: Mutex<Vec<String>>,
}

impl OwnerReader for PlayedOwners {
    fn read(&self, owner: Key) -> BoxFuture<'static, Result<Option<OwnerCluster>, OwnerUnread>> {
        self.asked.lock().unwrap().push(owner.to_string());
        let (played, takes) = (self.played.clone(), self.takes);
        async move {
            tokio::time::sleep(takes).await;
            match played {
                Played::Metadata(metadata) => Ok(Some(serde_json::from_value(metadata).unwrap())),
                Played::Missing => Ok(None),
                Played::Fails(unread) => Err(unread),
                Played::Hangs => std::future::pending().await,
                Played::Panics => Ok(Some(OwnerCluster::default())),
            }
        }
        .boxed()
    }

    fn now(&self) -> f64 {
        assert!(!matches!(self.played, Played::Panics), "on purpose");
        NOW
    }
}

fn owners(played: Played, takes: Duration) -> Arc<PlayedOwners> {
    Arc::new(PlayedOwners {
        played,
        takes,
        asked: Mutex::default(),
    })
}

fn serving(played: Played) -> (Server, Arc<PlayedOwners>) {
    let owners = owners(played, Duration::ZERO);
    let server = with_owners(owners.clone(), AdmissionLimits::default());
    (server, owners)
}

fn counted(server: &Server, outcome: &str) -> Option<String> {
    server.metric(&format!(
        "rayfit_admission_requests_total{{webhook=\"mutate\",kind=\"other\",operation=\"CREATE\",outcome=\"{outcome}\"}}"
    ))
}

fn size(cpu: &str, memory: &str) -> Value {
    let size = json!({"cpu": cpu, "memory": memory});
    json!({"requests": size, "limits": size})
}

#[tokio::test(start_paused = true)]
async fn a_new_worker_gets_the_size_that_its_ray_cluster_says() {
    let (server, owners) = serving(Played::Metadata(owner(3, 2, NOW)));
    for dry_run in [false, true] {
        let pod = worker();
        let mut review = create_pod(&pod, "ml");
        review["request"]["dryRun"] = dry_run.into();
        let response = server.ask("/mutate", &review).await;
        assert_eq!(made(&pod, &response), size("3", "2Gi"), "{response}");
        let said = json!({"initial-size": "3 CPU and 2Gi"});
        assert_eq!(response["auditAnnotations"], said);
    }
    assert_eq!(*owners.asked.lock().unwrap(), ["ml/demo", "ml/demo"]);
    assert_eq!(counted(&server, "patched"), Some("2".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn it_gets_no_more_than_its_group_may_grow_to() {
    let (server, _) = serving(Played::Metadata(owner(1000, 1000, NOW)));
    let pod = worker();
    let response = server.ask("/mutate", &create_pod(&pod, "ml")).await;
    assert_eq!(made(&pod, &response), size("4", &(8_i64 << 30).to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_more_than_128_kib_gets_it_too() {
    let (server, _) = serving(Played::Metadata(owner(3, 2, NOW)));
    let mut pod = worker();
    pod["metadata"]["annotations"]["long"] = "x".repeat(200 << 10).into();
    let response = server.ask("/mutate", &create_pod(&pod, "ml")).await;
    assert_eq!(made(&pod, &response), size("3", "2Gi"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_which_nothing_is_said_stays_as_it_is_made() {
    let changed = |change: fn(&mut Value)| {
        let mut metadata = owner(3, 2, NOW);
        change(&mut metadata);
        Played::Metadata(metadata)
    };
    for played in [
        Played::Missing,
        changed(|metadata| metadata["uid"] = "uid-of-another".into()),
        changed(|metadata| metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into()),
        changed(|metadata| metadata["annotations"] = json!({})),
        changed(|metadata| metadata["annotations"]["rayfit.dev/initial-sizes"] = "{".into()),
        changed(|metadata| metadata["annotations"]["ray.io/ippr"] = "{".into()),
        Played::Metadata(owner(3, 2, NOW - 2.0 * HELD_S)),
        Played::Metadata(owner(1, 2, NOW)),
    ] {
        let said = format!("{played:?}");
        let (server, owners) = serving(played);
        let response = server.ask("/mutate", &create_pod(&worker(), "ml")).await;
        assert_eq!(
            response,
            json!({"uid": "0c6d5a3e-1", "allowed": true}),
            "{said}"
        );
        assert_eq!(owners.asked.lock().unwrap().len(), 1);
        assert_eq!(counted(&server, "allowed"), Some("1".to_owned()), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_ray_cluster_cannot_be_read_stays_as_it_is_made() {
    let failures = [
        OwnerUnread::NoApiServer,
        OwnerUnread::TooMany,
        OwnerUnread::Failed("HTTP 403: no".to_owned()),
        OwnerUnread::Failed("an answer of more than 1 MiB".to_owned()),
    ];
    for unread in failures {
        let (server, _) = serving(Played::Fails(unread));
        let response = server.ask("/mutate", &create_pod(&worker(), "ml")).await;
        assert_eq!(response, json!({"uid": "0c6d5a3e-1", "allowed": true}));
        assert_eq!(counted(&server, "owner_unread"), Some("1".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_hangs_ends_before_the_api_server_gives_up() {
    let (server, _) = serving(Played::Hangs);
    // A second, or less where a tenth of a second would not be left of four fifths of the timeout.
    for (timeout, expected) in [("2s", 1000), ("1s", 700), ("30s", 1000)] {
        let start = Instant::now();
        let path = format!("/mutate?timeout={timeout}");
        let response = server.ask(&path, &create_pod(&worker(), "ml")).await;
        assert_eq!(response, json!({"uid": "0c6d5a3e-1", "allowed": true}));
        // Timers count whole milliseconds.
        let took = start.elapsed().as_millis();
        assert!(
            (expected..=expected + 1).contains(&took),
            "{timeout}: {took}"
        );
    }
    assert_eq!(counted(&server, "owner_unread"), Some("3".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn only_workers_of_ray_clusters_are_asked_about() {
    let (server, owners) = serving(Played::Metadata(owner(3, 2, NOW)));
    let changed = |change: fn(&mut Value)| {
        let mut pod = worker();
        change(&mut pod);
        create_pod(&pod, "ml")
    };
    let not_ours = |key: &str, value: &str| {
        let mut review = create_pod(&worker(), "ml");
        review["request"][key] = value.into();
        review["request"]["oldObject"] = worker();
        review
    };
    for review in [
        changed(|pod| pod["metadata"]["labels"]["ray.io/node-type"] = "head".into()),
        changed(|pod| pod["metadata"]["ownerReferences"] = json!([])),
        changed(|pod| pod["metadata"]["ownerReferences"][0]["kind"] = "Job".into()),
        changed(|pod| pod["metadata"]["ownerReferences"][0]["controller"] = false.into()),
        changed(|pod| pod["spec"]["schedulingGates"] = json!([{"name": "a"}])),
        not_ours("operation", "UPDATE"),
        not_ours("operation", "DELETE"),
        not_ours("subResource", "status"),
    ] {
        let response = server.ask("/mutate", &review).await;
        assert_eq!(response, json!({"uid": "0c6d5a3e-1", "allowed": true}));
    }
    let response = server.ask("/validate", &create_pod(&worker(), "ml")).await;
    assert_eq!(response, json!({"uid": "0c6d5a3e-1", "allowed": true}));
    assert!(owners.asked.lock().unwrap().is_empty());
}

/// Also where the pod is read beside the event loop, because it is large.
#[tokio::test(start_paused = true)]
async fn a_panic_costs_its_own_review_only() {
    for inline in [10, AdmissionLimits::default().inline] {
        let limits = AdmissionLimits {
            inline,
            ..AdmissionLimits::default()
        };
        let server = with_owners(owners(Played::Panics, Duration::ZERO), limits);
        for panics in ["1", "2"] {
            let review = create_pod(&worker(), "ml").to_string();
            let (status, body) = server.send(post("/mutate", review)).await;
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            assert!(body.contains("report this as a bug"), "{body}");
            assert!(!body.contains("on purpose"), "{body}");
            let response = server.ask("/mutate", &create(&cluster())).await;
            assert_eq!(response["allowed"], true);
            for (metric, value) in [("panics_total", panics), ("in_flight", "0")] {
                let series = format!("rayfit_admission_{metric}");
                assert_eq!(server.metric(&series), Some(value.to_owned()));
            }
        }
    }
}

/// Pods that wait take no place of RayClusters, of which here there is one.
#[tokio::test(start_paused = true)]
async fn ray_clusters_are_judged_while_pods_wait() {
    let owners = owners(Played::Hangs, Duration::ZERO);
    let limits = AdmissionLimits {
        reviews: 1,
        ..AdmissionLimits::default()
    };
    let server = with_owners(owners.clone(), limits);
    let review = create_pod(&worker(), "ml");
    let pods = join_all((0..20).map(|_| server.ask("/mutate", &review)));
    let judged = async {
        while owners.asked.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let start = Instant::now();
        let response = server.ask("/validate", &create(&bad_cluster())).await;
        assert_eq!(response["allowed"], false);
        start.elapsed()
    };
    let (pods, took) = tokio::join!(pods, judged);
    assert_eq!(took, Duration::ZERO);
    assert!(pods.iter().all(|response| response["allowed"] == true));
}

/// With reads of 100 ms, of which eight are under way, the flood would take seconds.
#[tokio::test(start_paused = true)]
async fn the_pods_of_one_namespace_do_not_hold_up_those_of_another() {
    let owners = owners(
        Played::Metadata(owner(3, 2, NOW)),
        Duration::from_millis(100),
    );
    let server = with_owners(owners.clone(), AdmissionLimits::default());
    let (many, one) = (create_pod(&worker(), "many"), create_pod(&worker(), "one"));
    let flood = join_all((0..200).map(|_| server.ask("/mutate", &many)));
    let neighbour = async {
        while owners.asked.lock().unwrap().len() < 8 {
            tokio::task::yield_now().await;
        }
        server.ask("/mutate", &one).await
    };
    let (flood, response) = tokio::join!(flood, neighbour);
    assert_eq!(made(&worker(), &response), size("3", "2Gi"));
    let asked = owners.asked.lock().unwrap();
    let place = asked.iter().position(|owner| owner == "one/demo").unwrap();
    assert!(
        place < 24,
        "{place} reads were before that of the neighbour"
    );
    assert!(flood.iter().all(|response| response["allowed"] == true));
    let left = counted(&server, "owner_unread");
    assert_eq!(left, Some((200 - 32).to_string()));
}
