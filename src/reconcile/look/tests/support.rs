//! Clusters, snapshots, and steps up to where a test begins.

use serde_json::{Value, json};

use crate::manifests::names::NAMESPACE;
use crate::reconcile::effects::done::Done;
use crate::reconcile::effects::failure::{ApiStatus, Failure};
use crate::reconcile::look::round_step::Deciding;
use crate::reconcile::look::step::{AskingGcs, Judging};
use crate::reconcile::look::*;
use crate::reconcile::ownership::handover::RECORD;
use crate::reconcile::{Handover, Reply, RoundSettings, ScalerRole, eligibility};
use crate::snapshot::pod_object::PodObject;
use crate::snapshot::{ClusterId, OwnPods, Snapshot};

/// 2026-01-14T12:00:00Z
pub(super) const NOW: f64 = 1_768_392_000.0;

/// A RayCluster with this hand-over record.
pub(super) fn cluster(record: &str) -> Value {
    let container =
        json!({ "name": "ray", "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } });
    let template = json!({ "spec": { "containers": [container] } });
    json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "name": "demo", "namespace": "ray", "uid": "u", "resourceVersion": "7", "generation": 1,
            "annotations": { "rayfit.dev/reconcile": "central", RECORD: record } },
        "spec": {
            "enableInTreeAutoscaling": true, "autoscalerOptions": { "version": "v2" },
            "headGroupSpec": { "rayStartParams": {}, "template": template },
            "workerGroupSpecs": [{
                "groupName": "cpu", "replicas": 0, "minReplicas": 0, "maxReplicas": 3,
                "rayStartParams": {}, "template": template
            }]
        },
        "status": { "head": { "podIP": "10.0.0.1" } }
    })
}

pub(super) fn pods(of: &Value) -> OwnPods {
    let head: PodObject = serde_json::from_value(json!({
        "metadata": {
            "name": "h", "namespace": "ray", "uid": "h",
            "labels": { "ray.io/cluster": "demo", "ray.io/node-type": "head", "ray.io/group": "headgroup" },
            "ownerReferences": [{ "kind": "RayCluster", "name": "demo", "uid": "u", "controller": true }]
        },
        "status": { "phase": "Running" }
    }))
    .unwrap();
    OwnPods::divide(ClusterId::of(of), [head]).0
}

/// The cluster with so many tasks that wait for a CPU each.
pub(super) fn snapshot(waiting: u32) -> Snapshot {
    let cluster = cluster("central/rayfit-system");
    let pods = pods(&cluster);
    let asked = json!([{ "request": { "resourcesBundle": { "CPU": 1 } }, "count": waiting }]);
    let mut snapshot: Snapshot = serde_json::from_value(json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": cluster, "pods": [],
        "gcs": {
            "nodeStates": [{
                "nodeId": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "instanceId": "h",
                "rayNodeTypeName": "headgroup", "status": "IDLE", "idleDurationMs": 0,
                "totalResources": {}, "availableResources": {}
            }],
            "pendingResourceRequests": if waiting > 0 { asked } else { json!([]) }
        }
    }))
    .unwrap();
    snapshot.pods = pods;
    snapshot
}

pub(super) fn judging(state: &mut LookState) -> Judging {
    match LookStep::begin(state, SeenObjects::Changed) {
        LookStep::Judge(judging) => judging,
        step => panic!("{step:?}"),
    }
}

/// The next step once objects were judged.
pub(super) fn judged(
    state: &mut LookState,
    handover: &mut Handover,
    cluster: &Value,
    now: f64,
) -> Oriented {
    let (role, pods) = (ScalerRole::central(NAMESPACE), pods(cluster));
    let eligibility = eligibility(cluster, &pods, &role, |_| true);
    let of = JudgedObjects {
        cluster,
        eligibility: &eligibility,
        role: &role,
    };
    judging(state).judged(state, handover, of, now)
}

/// A state in which the cluster is owned and the GCS is about to be asked.
pub(super) fn asking() -> (LookState, AskingGcs) {
    let mut state = LookState::default();
    let step = match judged(
        &mut state,
        &mut Handover::default(),
        &cluster("central/rayfit-system"),
        0.0,
    ) {
        Oriented::Owns(owning) => owning.owns(&mut state, RoundSettings::default()),
        Oriented::Not(step) => panic!("{step:?}"),
    };
    (state, asks(step))
}

pub(super) fn asks(step: LookStep) -> AskingGcs {
    match step {
        LookStep::Ask(asking) => asking,
        step => panic!("{step:?}"),
    }
}

pub(super) fn observed(
    state: &mut LookState,
    asking: AskingGcs,
    snapshot: Snapshot,
) -> RoundStep<()> {
    match asking.answered(state, (), NOW) {
        RoundStep::Observe(observing) => observing.answer().1.observed(snapshot),
        step => panic!("{step:?}"),
    }
}

pub(super) fn deciding(step: RoundStep<()>) -> Deciding {
    match step {
        RoundStep::Decide(deciding) => deciding,
        step => panic!("{step:?}"),
    }
}

pub(super) fn decided(state: &LookState, step: RoundStep<()>) -> RoundStep<()> {
    let deciding = deciding(step);
    let round = deciding.round(state);
    deciding.decided(round)
}

pub(super) fn rests(step: LookStep) -> Rest {
    match step {
        LookStep::Rest(rest) => rest,
        step => panic!("{step:?}"),
    }
}

pub(super) fn not_owned(of: Oriented) -> LookStep {
    match of {
        Oriented::Not(step) => step,
        Oriented::Owns(_) => panic!("owned"),
    }
}

/// A state after a round that found nothing to do.
pub(super) fn idle() -> LookState {
    let (mut state, asking) = asking();
    let step = observed(&mut state, asking, snapshot(0));
    let mut step = decided(&state, step);
    // The first rounds report the state to Ray.
    for _ in 0..3 {
        let finishing = match step {
            RoundStep::Perform(performing, _) => {
                let mut done = Vec::new();
                for chain in performing.chains() {
                    let effect = chain.next().unwrap();
                    let (about, result) = (chain.about.clone(), Ok(Reply::Ok));
                    done.push(Done {
                        about,
                        effect,
                        result,
                    });
                }
                match performing.performed::<()>(done) {
                    RoundStep::Finish(finishing) => finishing,
                    step => panic!("{step:?}"),
                }
            }
            RoundStep::Finish(finishing) => {
                let finished = finishing.finish(&mut state, NOW, || 0.5);
                assert!(finished.idle.is_some() && state.is_idle());
                return state;
            }
            step => panic!("{step:?}"),
        };
        let finished = finishing.finish(&mut state, NOW, || 0.5);
        assert!(finished.idle.is_none() && !state.is_idle());
        let next = LookStep::begin(&mut state, SeenObjects::Same);
        let asking = asks(next);
        let observed = observed(&mut state, asking, snapshot(0));
        step = decided(&state, observed);
    }
    panic!("there is always something to do");
}

/// The API server's answer to a write that came too late.
pub(super) fn conflict() -> Failure {
    Failure::Api(ApiStatus {
        code: 409,
        reason: "Conflict".to_owned(),
        ..ApiStatus::default()
    })
}
