//! Settings that are written on RayClusters for their sidecar.

use json_patch::Patch;
use serde_json::Value;

use crate::ray::reconcile::SETTINGS;
use crate::ray::{Cluster, Kind, RayObject, ReconcileMode};
use crate::raypolicy::sidecar_settings::NOTHING;
use crate::reconcile::effects::replicas::annotate;

/// The patch that writes what `settings` returns, where something else is written there. Where there is nothing to
/// say, and never was, nothing is written. `settings` is asked only for a cluster that has a reader.
pub fn patch(cluster: &Value, settings: impl FnOnce() -> Option<String>) -> Option<Patch> {
    let object = RayObject::of_kind(Kind::RayCluster, cluster.as_object()?);
    let scales = object.cluster.as_ref().is_some_and(Cluster::autoscaling);
    let has_reader = object.reconcile_mode() == ReconcileMode::Sidecar;
    if !has_reader || !scales || object.is_deleting() {
        return None;
    }
    let settings = settings()?;
    let annotations = object.all_annotations().unwrap_or_default();
    if annotations.text(SETTINGS).unwrap_or(NOTHING) == settings {
        return None;
    }
    annotate(cluster, SETTINGS, &settings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn patch(cluster: &Value, told: &str) -> Option<Patch> {
        super::patch(cluster, || Some(told.to_owned()))
    }

    fn cluster(annotations: &Value) -> Value {
        json!({"metadata": {"name": "a", "resourceVersion": "7", "annotations": annotations},
            "spec": {"enableInTreeAutoscaling": true}})
    }

    #[test]
    fn settings_are_written_where_a_sidecar_reads_them_and_something_else_is_there() {
        let sidecar = json!({"rayfit.dev/reconcile": "sidecar"});
        let central = json!({"rayfit.dev/reconcile": "central"});
        let told = r#"{"strategy":"ray"}"#;
        for (annotations, read) in [(&sidecar, true), (&central, false)] {
            let mut object = cluster(annotations);
            assert_eq!(patch(&object, NOTHING), None, "never anything to say");
            let Some(first) = patch(&object, told) else {
                assert!(!read, "{annotations}");
                continue;
            };
            json_patch::patch(&mut object, &first).unwrap();
            assert_eq!(object["metadata"]["annotations"][SETTINGS], json!(told));
            assert_eq!(patch(&object, told), None, "it is there");
            let last = patch(&object, NOTHING).unwrap();
            json_patch::patch(&mut object, &last).unwrap();
            assert_eq!(object["metadata"]["annotations"][SETTINGS], json!(NOTHING));
            object["metadata"]["annotations"][SETTINGS] = json!("somebody's");
            assert!(patch(&object, told).is_some());
            object["metadata"]["resourceVersion"] = json!("8");
            let mut newer = object.clone();
            newer["metadata"]["resourceVersion"] = json!("9");
            let stale = patch(&object, told).unwrap();
            assert!(json_patch::patch(&mut newer, &stale).is_err());
        }
    }
}
