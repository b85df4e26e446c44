//! Eligibility: whether this process may scale a cluster, judged by the cluster's objects alone.

use serde_json::Value;

use crate::ray::kueue::{ELASTIC, QUEUE};
use crate::ray::{Cluster, Kind, RayObject, ReconcileMode};
use crate::reconcile::ownership::record::{HandoverRecord, ScalerRole};
use crate::snapshot::pod::PodRole;
use crate::snapshot::pod_object::{AUTOSCALER_COMMAND, PodContainer};
use crate::snapshot::{ClusterId, OwnPods, leading_head};

/// The annotation by which a Rayfit sidecar marks its own pod, with its version as the value: a
/// sign that does not depend on the name of an image.
pub const SIGN_ANNOTATION: &str = "rayfit.dev/autoscaler";

const KUBERAY: &str = "ray.io/kuberay-operator";

/// The reason why a cluster is not scaled by this process.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub enum Ineligible {
    /// The mode annotation names another autoscaler.
    #[display("its mode is {_0}")]
    Mode(ReconcileMode),
    /// The hand-over record names the controller of another installation. Both would want the cluster for
    /// as long as both are there, so the one that has it keeps it.
    #[display(
        "the installation in namespace {_0} scales it: let each installation scale other namespaces \
         (--namespaces), or, if that one is gone, remove the annotation rayfit.dev/scaled-by"
    )]
    OtherInstallation(String),
    /// `enableInTreeAutoscaling` is not true.
    #[display(
        "autoscaling is off: set spec.enableInTreeAutoscaling to true, or KubeRay deletes workers \
         at random while Rayfit scales"
    )]
    AutoscalingOff,
    /// The RayCluster is being deleted.
    #[display("it is being deleted")]
    Deleting,
    /// `spec.suspend` or `spec.idleSuspend` is true.
    #[display("it is suspended")]
    Suspended,
    /// `spec.managedBy` names another manager than KubeRay.
    #[display("it is managed by {_0}")]
    ManagedBy(String),
    /// Kueue decides on the cluster's size.
    #[display(
        "Kueue's queue {_0} decides on its size: annotate it with kueue.x-k8s.io/elastic-job: \
         \"true\" if Kueue is set up for that, or take the label away"
    )]
    Kueue(String),
    /// Ray's own autoscaler runs in the head pod.
    #[display(
        "another autoscaler ({image}) runs in head pod {pod}: Rayfit begins once the head pod is \
         replaced by one with Rayfit's image in spec.autoscalerOptions.image"
    )]
    OtherScaler {
        /// The head pod.
        pod: String,
        /// The image of its autoscaler container.
        image: String,
    },
    /// The RayCluster was deleted and created again after its pods were observed.
    #[display("it was replaced by another RayCluster of its name")]
    Replaced,
    /// This sidecar's pod is no longer the cluster's head.
    #[display("this pod is not the cluster's head any more")]
    NotTheHead,
    /// Another head pod than that of this sidecar leads.
    #[display("head pod {_0} leads the cluster, and this one stands by")]
    StandsBy(String),
}

/// Decides whether `role` may scale `cluster`, if it also [owns](crate::reconcile::ownership::handover) it. `pods` are the
/// cluster's pods as they were observed; `is_ours` tells Rayfit's images from others.
///
/// # Errors
///
/// It may not, for this reason.
pub fn eligibility(
    cluster: &Value,
    pods: &OwnPods,
    role: &ScalerRole,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(), Ineligible> {
    let Some(root) = cluster.as_object() else {
        return Err(Ineligible::AutoscalingOff);
    };
    let object = RayObject::of_kind(Kind::RayCluster, root);
    let mode = object.reconcile_mode();
    if !role.is_of_mode(mode) {
        return Err(Ineligible::Mode(mode));
    }
    if object.is_deleting() {
        return Err(Ineligible::Deleting);
    }
    let spec = object.spec();
    let manager = spec.and_then(|spec| spec.text("managedBy"));
    if let Some(manager) = manager.filter(|by| !by.is_empty() && *by != KUBERAY) {
        return Err(Ineligible::ManagedBy(manager.to_owned()));
    }
    // Once by its user, once because nobody used it.
    let is_set = |key: &str| spec.is_some_and(|spec| spec.is_true(key));
    if is_set("suspend") || is_set("idleSuspend") {
        return Err(Ineligible::Suspended);
    }
    if !object.cluster.as_ref().is_some_and(Cluster::autoscaling) {
        return Err(Ineligible::AutoscalingOff);
    }
    let queue = object.label(QUEUE).filter(|queue| !queue.is_empty());
    if let Some(queue) = queue.filter(|_| object.annotation(ELASTIC) != Some("true")) {
        return Err(Ineligible::Kueue(queue.to_owned()));
    }
    let is_replaced = ClusterId::of(cluster) != *pods.cluster();
    let reason = other_installation(&object, role)
        .or_else(|| is_replaced.then_some(Ineligible::Replaced))
        .or_else(|| not_the_head(pods, role))
        .or_else(|| other_scaler(pods, is_ours));
    reason.map_or(Ok(()), Err)
}

pub(super) fn other_installation(object: &RayObject<'_>, role: &ScalerRole) -> Option<Ineligible> {
    let (HandoverRecord::Held(by) | HandoverRecord::Taking { role: by, .. }) =
        HandoverRecord::of(object)
    else {
        return None;
    };
    match by {
        ScalerRole::Central { installation } if matches!(role, ScalerRole::Central { installation: own } if *own != installation) => {
            Some(Ineligible::OtherInstallation(installation))
        }
        _ => None,
    }
}

/// A sidecar scales only from the living head pod, and not from one that is being deleted. Of two
/// head pods it does so only from the one that leads.
fn not_the_head(pods: &OwnPods, role: &ScalerRole) -> Option<Ineligible> {
    let ScalerRole::Sidecar { head_uid } = role else {
        return None;
    };
    let mut heads = pods.iter().filter(|pod| pod.role == PodRole::Head);
    let own = heads.find(|pod| pod.uid() == head_uid);
    // The object of a pod may be gone while its processes still run on a Kubernetes node that is
    // cut off.
    if !own.is_some_and(|pod| !pod.deleting && !pod.ended) {
        return Some(Ineligible::NotTheHead);
    }
    let leads = leading_head(pods, None).filter(|pod| pod.uid() != head_uid);
    leads.map(|pod| Ineligible::StandsBy(pod.name.to_owned()))
}

/// Another autoscaler in any head pod that has not ended, even in one that is being deleted.
fn other_scaler(pods: &OwnPods, is_ours: impl Fn(&str) -> bool) -> Option<Ineligible> {
    let heads = pods.iter().filter(|pod| pod.role == PodRole::Head);
    let living = heads.filter(|pod| !pod.ended);
    let mut unsigned = living.filter(|pod| pod.object.metadata.annotations.autoscaler.is_none());
    unsigned.find_map(|pod| {
        let (spec, status) = (&pod.object.spec, &pod.object.status);
        // The container that KubeRay adds, or one that runs Ray's autoscaler under another name.
        let is_autoscaler = |container: &PodContainer| {
            let mut words = container.command.iter().chain(&container.args);
            container.name == "autoscaler" || words.any(|word| word.contains(AUTOSCALER_COMMAND))
        };
        // It has ended and will not be restarted.
        let is_over = |container: &PodContainer| {
            let policy = container.restart_policy.as_ref();
            let policy = policy.or(spec.restart_policy.as_ref());
            let statuses = &status.container_statuses;
            let mut statuses = statuses.iter().chain(&status.init_container_statuses);
            policy.is_some_and(|policy| policy == "Never")
                && statuses.any(|one| one.name == container.name && one.state.terminated.is_some())
        };
        // A native sidecar stands among the init containers, with a restart policy of its own.
        let mut containers = pod.containers().iter().chain(&spec.init_containers);
        let container = containers.find(|container| {
            is_autoscaler(container)
                && !container.image.as_deref().is_some_and(&is_ours)
                && !is_over(container)
        })?;
        Some(Ineligible::OtherScaler {
            pod: pod.name.to_owned(),
            image: container.image.clone().unwrap_or_default(),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::ray::reconcile::RECORD;
    use crate::reconcile::ownership::eligibility::*;

    fn central() -> ScalerRole {
        ScalerRole::central("rayfit-system")
    }

    fn cluster(spec: &Value) -> Value {
        let mut object = json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "a", "annotations": {"rayfit.dev/reconcile": "central"}, "labels": {}},
            "spec": {"enableInTreeAutoscaling": true},
        });
        merge(&mut object, spec);
        object
    }

    fn merge(into: &mut Value, from: &Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from.clone(),
        }
    }

    fn head(more: &Value) -> Value {
        let mut pod = json!({
            "metadata": {"name": "a-head", "uid": "u1", "labels": {"ray.io/cluster": "a", "ray.io/node-type": "head"}},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "ray-head", "image": "ray:2.60.0"},
                {"name": "autoscaler", "image": "rayfit:1"},
            ]},
            "status": {"phase": "Running"},
        });
        merge(&mut pod, more);
        pod
    }

    fn of(cluster: &Value, pods: &[Value], role: &ScalerRole) -> Result<(), Ineligible> {
        let pods = (pods.iter()).map(|pod| serde_json::from_value(pod.clone()).unwrap());
        let (pods, _) = OwnPods::divide(ClusterId::of(cluster), pods);
        eligibility(cluster, &pods, role, |image| image.starts_with("rayfit:"))
    }

    fn sidecar() -> ScalerRole {
        ScalerRole::Sidecar {
            head_uid: "u1".to_owned(),
        }
    }

    #[test]
    fn of_two_installations_the_one_in_the_record_scales() {
        for (record, left) in [
            ("central/rayfit-system", None),
            ("central/other", Some("other")),
            ("taking/7/central/other", Some("other")),
            ("nobody", None),
            ("central/", None),
            ("central/no name", None),
            ("sidecar/u", None),
        ] {
            let mut cluster = cluster(&json!({}));
            cluster["metadata"]["annotations"][RECORD] = json!(record);
            let left = left.map_or(Ok(()), |by: &str| {
                Err(Ineligible::OtherInstallation(by.to_owned()))
            });
            assert_eq!(of(&cluster, &[], &central()), left, "{record}");
        }
    }

    #[test]
    fn the_mode_says_whose_it_is() {
        let ours = cluster(&json!({}));
        assert_eq!(of(&ours, &[head(&json!({}))], &central()), Ok(()));
        let left = |mode| Err(Ineligible::Mode(mode));
        assert_eq!(of(&ours, &[], &sidecar()), left(ReconcileMode::Central));
        for (mode, read) in [
            ("ray", ReconcileMode::Ray),
            ("nonsense", ReconcileMode::Ray),
        ] {
            let other =
                cluster(&json!({"metadata": {"annotations": {"rayfit.dev/reconcile": mode}}}));
            assert_eq!(of(&other, &[], &central()), left(read), "{mode}");
        }
        let none = json!({"metadata": {"name": "a"}, "spec": {"enableInTreeAutoscaling": true}});
        assert_eq!(of(&none, &[], &central()), left(ReconcileMode::Ray));
    }

    #[test]
    fn what_others_decide_on_is_left_alone() {
        let left = |spec: &Value| of(&cluster(spec), &[], &central()).err();
        for suspended in ["suspend", "idleSuspend"] {
            let is = |value: bool| left(&json!({"spec": {suspended: value}}));
            assert_eq!(is(true), Some(Ineligible::Suspended), "{suspended}");
            assert_eq!(is(false), None, "{suspended}");
        }
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-14T12:00:00Z"}});
        assert_eq!(left(&deleting), Some(Ineligible::Deleting));
        let off = json!({"spec": {"enableInTreeAutoscaling": false}});
        assert_eq!(left(&off), Some(Ineligible::AutoscalingOff));
        let kueue = json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}});
        let by = Ineligible::ManagedBy("kueue.x-k8s.io/multikueue".to_owned());
        assert_eq!(left(&kueue), Some(by));
        assert_eq!(left(&json!({"spec": {"managedBy": KUBERAY}})), None);
        let queued = json!({"metadata": {"labels": {QUEUE: "q"}}});
        assert_eq!(left(&queued), Some(Ineligible::Kueue("q".to_owned())));
        let elastic =
            json!({"metadata": {"labels": {QUEUE: "q"}, "annotations": {ELASTIC: "true"}}});
        assert_eq!(left(&elastic), None);
    }

    #[test]
    fn another_scaler_that_lives_keeps_us_out() {
        let cluster = cluster(&json!({}));
        let with = |more: &Value| of(&cluster, &[head(more)], &central());
        let rays = json!([{"name": "ray-head", "image": "ray:2"}, {"name": "autoscaler", "image": "ray:2"}]);
        let out = Err(Ineligible::OtherScaler {
            pod: "a-head".to_owned(),
            image: "ray:2".to_owned(),
        });
        assert_eq!(with(&json!({"spec": {"containers": rays}})), out);
        let leaving = json!({"metadata": {"deletionTimestamp": "x"}, "spec": {"containers": rays}});
        assert_eq!(with(&leaving), out, "it still runs");
        let ended = json!({"spec": {"containers": rays}, "status": {"phase": "Failed"}});
        assert_eq!(with(&ended), Ok(()));
        let crashed = json!({"spec": {"containers": rays}, "status": {"containerStatuses": [{"name": "autoscaler", "state": {"terminated": {}}}]}});
        assert_eq!(with(&crashed), Ok(()), "nobody starts it again");
        let signed = json!({"metadata": {"annotations": {SIGN_ANNOTATION: "0.1.0"}}, "spec": {"containers": rays}});
        assert_eq!(with(&signed), Ok(()), "our image under another name");
        let hidden =
            json!([{"name": "x", "image": "ray:2", "args": ["ray kuberay-autoscaler --x"]}]);
        assert_eq!(with(&json!({"spec": {"containers": hidden}})), out);
        assert_eq!(
            with(&json!({"spec": {"containers": [{"name": "ray-head", "image": "ray:2"}]}})),
            Ok(())
        );
    }

    #[test]
    fn a_container_called_autoscaler_in_anothers_pod_is_nothing_to_us() {
        let cluster = cluster(&json!({"metadata": {"namespace": "a", "uid": "c"}}));
        let rays = json!([{"name": "autoscaler", "image": "ray:2"}]);
        let foreign = head(&json!({"metadata": {"namespace": "b"}, "spec": {"containers": rays}}));
        assert_eq!(of(&cluster, &[foreign], &central()), Ok(()));
    }

    #[test]
    fn pods_of_the_cluster_before_say_nothing_about_the_one_of_now() {
        let now = cluster(&json!({"metadata": {"uid": "new"}}));
        let before = cluster(&json!({"metadata": {"uid": "old"}}));
        let (pods, _) = OwnPods::divide(ClusterId::of(&before), []);
        assert_eq!(
            eligibility(&now, &pods, &central(), |_| true),
            Err(Ineligible::Replaced)
        );
    }

    #[test]
    fn a_sidecar_scales_from_the_living_head_only() {
        let cluster =
            cluster(&json!({"metadata": {"annotations": {"rayfit.dev/reconcile": "sidecar"}}}));
        let with = |pods: &[Value]| of(&cluster, pods, &sidecar());
        let out = Err(Ineligible::NotTheHead);
        assert_eq!(with(&[head(&json!({}))]), Ok(()));
        assert_eq!(with(&[]), out);
        assert_eq!(with(&[head(&json!({"metadata": {"uid": "u2"}}))]), out);
        assert_eq!(
            with(&[head(&json!({"metadata": {"deletionTimestamp": "x"}}))]),
            out
        );
    }

    #[test]
    fn of_two_sidecars_that_of_the_leading_head_scales() {
        let cluster =
            cluster(&json!({"metadata": {"annotations": {"rayfit.dev/reconcile": "sidecar"}}}));
        let ready =
            |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        let other = |status: &str| {
            let mut other = head(&ready(status));
            merge(
                &mut other,
                &json!({"metadata": {"name": "b-head", "uid": "u2"}}),
            );
            other
        };
        let with = |own: &str, of_other: &str| {
            of(&cluster, &[other(of_other), head(&ready(own))], &sidecar())
        };
        assert_eq!(with("True", "False"), Ok(()));
        let by = Ineligible::StandsBy("b-head".to_owned());
        assert_eq!(with("False", "True"), Err(by));
    }
}
