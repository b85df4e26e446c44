//! An API server that is slow or asks for patience, and requests that fail late: everybody waits a
//! little, and nobody for ever.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::Response;
use kube::client::{Body, ClientBuilder};
use rayfit::apiserver::{ApiServer, Gate};
use rayfit::controller::act::writer::{Requests, Writer};
use rayfit::controller::observe::Key;
use serde_json::json;
use tokio::sync::{Mutex, watch};

use super::clusters::{Cluster, Controller, NEVER, path, soon, time_goes_on};
use crate::played_api::{Call, Fault, PlayedApi};

fn is_patch(call: &Call) -> bool {
    call.verb == "patch" && call.resource == "rayclusters"
}

/// The library's own retries would send each of these up to fifteen times.
#[tokio::test]
async fn nobody_comes_again_before_the_api_server_asked_for() {
    let api = PlayedApi::default();
    let listening = api.listen().await;
    let _busy = Cluster::new(&api, "team-a").await;
    api.faults(|call| is_patch(call).then_some(Fault::Status(429, Some(NEVER))));
    let controller = Controller::with(listening.server(), "a");
    let sent = || -> Vec<String> {
        let sent = api.calls("patch", "rayclusters").into_iter();
        sent.map(|call| call.namespace).collect()
    };
    soon("one is refused", || sent() == ["team-a"]).await;
    // Each of these asks for itself at once: the refusal may have been for the other namespace only. The
    // first of them that is refused too stops all that are not on their way already.
    let mut neighbours = Vec::new();
    for team in ["team-b", "team-c", "team-d", "team-e", "team-f", "team-g"] {
        neighbours.push(Cluster::new(&api, team).await);
    }
    soon("a second one is refused", || sent().len() > 1).await;
    time_goes_on(&api).await;
    let _late = Cluster::new(&api, "team-h").await;
    time_goes_on(&api).await;
    let sent = sent();
    let once: BTreeSet<&String> = sent.iter().collect();
    assert_eq!(sent.len(), once.len(), "somebody came again: {sent:?}");
    assert!(!sent.contains(&"team-h".to_owned()), "{sent:?}");
    controller.stop().await;
}

/// Whoever is refused is served once the time is over that the API server asked for.
#[tokio::test]
async fn a_storm_of_429_passes() {
    let api = PlayedApi::default();
    let listening = api.listen().await;
    let mut storm = 10;
    api.faults(move |call| {
        let hit = call.resource != "leases" && storm > 0;
        storm -= i32::from(hit);
        let refusal = [(429, None), (503, None), (429, Some(1))];
        let (code, retry_after) = refusal[usize::try_from(storm).unwrap() % 3];
        hit.then_some(Fault::Status(code, retry_after))
    });
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::with(listening.server(), "a");
    neighbour.is_scaled().await;
    let mut patches = 0;
    api.faults(move |call| {
        patches += i32::from(is_patch(call));
        (is_patch(call) && patches < 4).then_some(Fault::Status(429, Some(1)))
    });
    let late = Cluster::new(&api, "team-a").await;
    late.is_scaled().await;
    controller.stop().await;
}

/// Three hundred clusters with sixteen requests each at an API server that does twenty a second
/// instead of two hundred, in virtual time: it is kept busy, to the end, and everybody gets on.
#[tokio::test(start_paused = true)]
async fn an_api_server_at_a_tenth_of_its_speed_is_kept_busy_and_everybody_gets_on() {
    let served = Arc::new(AtomicU64::new(0));
    let (count, turn) = (served.clone(), Arc::new(Mutex::new(())));
    let service = tower::service_fn(move |_: hyper::Request<Body>| {
        let (count, turn) = (count.clone(), turn.clone());
        async move {
            let _turn = turn.lock().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Response::new(Body::from(b"{}".to_vec())))
        }
    });
    let api = ApiServer::of_builder(ClientBuilder::new(service, "ray"));
    let requests = Requests {
        client: api.client.clone(),
        gate: Gate::new(200, 400, api.patience.clone()),
    };
    let ends = tokio::time::Instant::now() + Duration::from_mins(3);
    let work = |key: Key| {
        let writer = Writer::new(requests.clone(), key, None);
        async move {
            let mut done = 0_u64;
            while tokio::time::Instant::now() < ends {
                match writer.get_cluster().await {
                    Ok(_) => done += 1,
                    // As the core backs off.
                    Err(_) => tokio::time::sleep(Duration::from_secs(2)).await,
                }
            }
            done
        }
    };
    let flood =
        (0..300 * 16).map(|number| work(Key::new("flood", &(number % 300).to_string()).unwrap()));
    let neighbour = work(Key::new("team-b", "ray").unwrap());
    let (done, neighbour) = tokio::join!(futures_util::future::join_all(flood), neighbour);
    let done: u64 = done.iter().sum();
    // 3,600 can be served in the time, the burst of the beginning included.
    assert!(done > 3_200, "{done} of {}", served.load(Ordering::Relaxed));
    // Namespaces take turns, and not 301 clusters, of which each would have twelve.
    assert!(neighbour >= 100, "{neighbour}");
}

#[tokio::test]
async fn a_stop_ends_sleeps_at_once_and_gives_the_lease_back() {
    let api = PlayedApi::default();
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    api.faults(|call| is_patch(call).then_some(Fault::Status(429, Some(NEVER))));
    let waiting = Cluster::new(&api, "team-a").await;
    soon("long patience begins", || {
        let mut calls = api.calls("patch", "rayclusters").into_iter();
        calls.any(|call| call.namespace == "team-a")
    })
    .await;
    controller.stop().await;
    let leases = api.all("/apis/coordination.k8s.io/v1/leases");
    let holder = &leases[0]["spec"]["holderIdentity"];
    assert!(
        holder.is_null(),
        "the next replica takes it at once: {holder}"
    );
    // Which serves everybody.
    api.no_faults();
    let next = Controller::with(api.server(), "b");
    waiting.is_scaled().await;
    next.stop().await;
}

#[tokio::test]
async fn a_deleted_cluster_is_not_brought_back_by_a_late_answer() {
    let api = PlayedApi::default();
    let (say, comes) = watch::channel(false);
    api.faults(move |call| {
        let hit = is_patch(call) && call.namespace == "team-a";
        hit.then(|| Fault::LateAnswer(comes.clone()))
    });
    let gone = Cluster::new(&api, "team-a").await;
    let controller = Controller::start(&api);
    soon("a patch is under way", || {
        let mut calls = api.calls("patch", "rayclusters").into_iter();
        calls.any(|call| call.namespace == "team-a")
    })
    .await;
    gone.delete();
    let neighbour = Cluster::new(&api, "team-b").await;
    neighbour.is_scaled().await;
    say.send_replace(true);
    time_goes_on(&api).await;
    let about = |verb: &str| {
        let calls = api.calls(verb, "rayclusters").into_iter();
        calls.filter(|call| call.namespace == "team-a").count()
    };
    let before = (about("get"), about("patch"));
    time_goes_on(&api).await;
    assert_eq!(
        before,
        (about("get"), about("patch")),
        "nobody asks for it any more"
    );
    assert!(api.get(&path("team-a")).is_none());
    controller.stop().await;
}

#[tokio::test]
async fn launches_are_counted_when_they_were_taken() {
    let api = PlayedApi::default();
    let refused = Cluster::new(&api, "team-a").await;
    api.faults(|call| {
        let hit = call.verb == "patch" && call.namespace == "team-a";
        hit.then_some(Fault::Status(403, None))
    });
    let neighbour = Cluster::new(&api, "team-b").await;
    let controller = Controller::start(&api);
    neighbour.is_scaled().await;
    soon("it is tried", || {
        let mut calls = api.calls("patch", "rayclusters").into_iter();
        calls.any(|call| call.namespace == "team-a")
    })
    .await;
    assert_eq!(refused.replicas(), 0);
    soon("two are counted", || {
        controller.metric("rayfit_launches_total") >= 2.0
    })
    .await;
    time_goes_on(&api).await;
    assert_eq!(controller.metric("rayfit_launches_total").to_string(), "2");
    controller.stop().await;
}

/// Its demand would be in the sums over all clusters, and in alerts on them, for as long as it exists.
#[tokio::test]
async fn a_cluster_that_is_suspended_wants_nothing_any_more() {
    let api = PlayedApi::default();
    let cluster = Cluster::new(&api, "team-a").await;
    let controller = Controller::start(&api);
    cluster.is_scaled().await;
    let wants = || controller.metric("rayfit_pending_demand").to_string();
    soon("its demand is counted", || wants() == "2").await;
    let series = r#"rayfit_pending_demand{namespace="team-a",ray_io_cluster="ray"} 2.0"#;
    let page = || controller.metrics.text().unwrap();
    assert!(page().contains(series), "{}", page());
    let mut suspended = cluster.stored().unwrap();
    suspended["spec"]["suspend"] = json!(true);
    api.put(&path("team-a"), suspended);
    soon("it is not any more", || wants() == "0").await;
    assert!(!page().contains("ray_io_cluster"), "{}", page());
    controller.stop().await;
}
