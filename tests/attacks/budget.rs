//! A budget over several clusters that two replicas scale: together they never get more than it has,
//! each gets its share, and neither demand nor others who write the record change that.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams, PostParams};
use rayfit::controller::tuning::InForce;
use rayfit::policy::Policies;
use rayfit::raypolicy::compile;
use serde_json::json;

use super::events::{Controller, gcs, put_cluster, replicas, state, until, with_reason};
use crate::play_gcs::PlayedGcs;
use crate::played_api::PlayedApi;

const TEAMS: [&str; 4] = ["team-a", "team-b", "team-c", "team-d"];

/// The policies in force: all clusters together may use so many CPUs.
fn budget(cpu: u32) -> InForce {
    let policy = |name: &str, spec: serde_json::Value| {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": name}, "spec": spec});
        let (policy, faults) = compile(&compile::read(&written).unwrap());
        assert_eq!(faults, []);
        policy.unwrap()
    };
    let policies = vec![policy(
        "all",
        json!({"reconcile": {"allowedModes": ["central"], "budget": {"cpu": cpu}}}),
    )];
    let in_force = InForce::default();
    in_force.policy.rcu(|policy| {
        let mut policy = (**policy).clone();
        policy.policies = Policies::new(policies.clone());
        policy
    });
    in_force
}

fn sum(api: &PlayedApi) -> i64 {
    TEAMS.iter().map(|team| replicas(api, team)).sum()
}

fn leases(api: &PlayedApi) -> Api<Lease> {
    Api::namespaced(api.client(), "rayfit-system")
}

const RECORD: &str =
    "/apis/coordination.k8s.io/v1/namespaces/rayfit-system/leases/rayfit-budget-all";

/// Puts a record with these grants.
fn put_record(api: &PlayedApi, grants: &str) {
    api.put(
        RECORD,
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {
            "labels": {"rayfit.dev/lease": "budget"},
            "annotations": {"rayfit.dev/budget": grants}}}),
    );
}

/// A record that has been there for long, without entries.
const SETTLED: &str = r#"{"revision": 1, "made": 1}"#;

async fn clusters(api: &PlayedApi) -> Vec<PlayedGcs> {
    let mut heads = Vec::new();
    for team in TEAMS {
        let head = gcs(&[]).await;
        put_cluster(api, team, head.address().port());
        heads.push(head);
    }
    heads
}

/// Two replicas with a budget of 12, of which the first cluster takes 7, which nobody else wants.
async fn two_replicas(api: &PlayedApi) -> (Vec<PlayedGcs>, [Controller; 2]) {
    let heads = clusters(api).await;
    put_record(api, SETTLED);
    let policies = budget(12);
    let both = ["a", "b"].map(|name| Controller::of_replica(api, name, 8, policies.clone()));
    heads[0].played().state = state(&[(1.0, 7)]);
    until("the first is served", || replicas(api, TEAMS[0]) == 7).await;
    (heads, both)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_keep_a_budget_together() {
    let api = PlayedApi::default();
    let (heads, both) = two_replicas(&api).await;
    // Somebody else writes the record all the time, so that most writes come too late.
    let (leases, name) = (leases(&api), "rayfit-budget-all");
    for head in &heads[1..3] {
        head.played().state = state(&[(1.0, 100)]);
    }
    for number in 0..200 {
        let mut record = leases.get(name).await.unwrap();
        let touched = record.metadata.annotations.get_or_insert_default();
        touched.insert("touched".to_owned(), number.to_string());
        // It may come too late itself.
        let _ = leases.replace(name, &PostParams::default(), &record).await;
        assert!(sum(&api) <= 12, "{}", sum(&api));
        tokio::task::yield_now().await;
    }
    until("all of the budget is used", || sum(&api) == 12).await;
    for team in &TEAMS[1..3] {
        until("each is told that there is no more", || {
            with_reason(&api, team, "CannotFit") > 0
        })
        .await;
    }
    assert_eq!(sum(&api), 12);
    for one in both {
        one.end().await;
    }
}

/// Somebody deletes the record while one cluster uses more than half of the budget and another one wants
/// all of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_is_deleted_lets_nobody_have_what_others_use() {
    let api = PlayedApi::default();
    let (heads, both) = two_replicas(&api).await;
    let (leases, name) = (leases(&api), "rayfit-budget-all");
    heads[1].played().state = state(&[(1.0, 100)]);
    leases.delete(name, &DeleteParams::default()).await.unwrap();
    let said = |team: &str| {
        let record = api.all("/apis/coordination.k8s.io/v1/namespaces/rayfit-system/leases");
        let grants = record.iter().filter_map(|lease| {
            let text = lease.pointer("/metadata/annotations/rayfit.dev~1budget")?;
            serde_json::from_str::<serde_json::Value>(text.as_str()?).ok()
        });
        let mut news = grants.filter(|grants| grants["isNew"] == true);
        news.any(|grants| grants["clusters"].get(format!("uid-of-{team}")).is_some())
    };
    for team in &TEAMS[..2] {
        until("each has said what it uses", || said(team)).await;
    }
    until("it is told that there is no more", || {
        with_reason(&api, TEAMS[1], "CannotFit") > 0
    })
    .await;
    assert_eq!(sum(&api), 7);
    for one in both {
        one.end().await;
    }
}

/// Without the record nobody knows what others use: nothing is launched, and nothing is taken away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_readable_record_nothing_grows() {
    let api = PlayedApi::default();
    let heads = clusters(&api).await;
    put_record(&api, "{");
    let controller = Controller::of_replica(&api, "a", 1, budget(12));
    heads[0].played().state = state(&[(1.0, 3)]);
    until("its users are told", || {
        with_reason(&api, TEAMS[0], "CannotFit") > 0
    })
    .await;
    assert_eq!(sum(&api), 0);
    controller.end().await;
}
