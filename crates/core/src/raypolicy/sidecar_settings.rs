//! The policies' settings for a sidecar, as the text of the annotation `rayfit.dev/settings`.
//!
//! A sidecar may read its RayCluster, and no RayPolicies. So the central Rayfit combines those that match, and
//! writes what comes of it on the RayCluster, in the form of `spec.reconcile`; the sidecar reads it as a
//! policy is read. The text belongs to whoever owns the RayCluster, who could as well run another
//! autoscaler in the head pod: what has to hold against them is in the rules of admission.

use crate::policy::resource::Reconcile;
use crate::policy::settings::ReconcileSettings;
use crate::raypolicy::compile;
use crate::raypolicy::fault::Faults;

/// The longest text that is read, in bytes; some lists of twenty schedules for a hundred groups are longer, and
/// are not written.
const LONGEST: usize = 32 << 10;

/// The text of the annotation where no policy sets anything.
pub const NOTHING: &str = "{}";

/// The text that says this to a sidecar.
///
/// # Errors
///
/// It would be too long to be read.
pub fn write(settings: &Reconcile) -> Result<String, String> {
    let text = serde_json::to_string(settings).map_err(|error| unlike_a_policy(&error))?;
    bounded(&text)?;
    Ok(text)
}

/// The settings that a text says. Wrong parts, and those that are not for a sidecar, are left out.
///
/// # Errors
///
/// Nothing can be read; the reason.
pub fn read(text: &str) -> Result<ReconcileSettings, String> {
    // The text is anybody's who may change the RayCluster, so nothing is parsed before its length is known.
    bounded(text)?;
    let written: Reconcile = serde_json::from_str(text).map_err(|error| unlike_a_policy(&error))?;
    Ok(compile::reconcile(
        Some(&written.for_sidecar()),
        &mut Faults::default(),
    ))
}

fn unlike_a_policy(error: &serde_json::Error) -> String {
    format!("it is not as spec.reconcile of a RayPolicy: {error}")
}

fn bounded(text: &str) -> Result<(), String> {
    match text.len() {
        ..=LONGEST => Ok(()),
        bytes => Err(format!("it has {bytes} bytes, more than {LONGEST}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::facts::Facts;
    use crate::policy::Policies;
    use crate::ray::{Kind, RayObject};
    use crate::raypolicy::compile::{compile, read as read_policy};

    fn policies(reconciles: &[Value]) -> Policies {
        let written = |(number, reconcile): (usize, &Value)| {
            let policy = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
                "metadata": {"name": format!("p{number}")}, "spec": {"reconcile": reconcile}});
            compile(&read_policy(&policy).unwrap()).0.unwrap()
        };
        Policies::new(reconciles.iter().enumerate().map(written).collect())
    }

    /// The settings of a sidecar, and those of the central Rayfit without who scales.
    fn both(reconciles: &[Value]) -> (ReconcileSettings, ReconcileSettings) {
        let (policies, facts) = (policies(reconciles), Facts::default());
        let object = json!({"metadata": {"name": "a", "namespace": "b"}});
        let cluster = RayObject::of_kind(Kind::RayCluster, object.as_object().unwrap());
        let sidecar = read(&write(&policies.for_sidecar(&cluster, &facts)).unwrap()).unwrap();
        let base = ReconcileSettings::default();
        let mut central = policies.reconcile_for(&base, &cluster, &facts);
        central.written = central.written.for_sidecar();
        (sidecar, central)
    }

    fn reconcile() -> impl Strategy<Value = Value> {
        let fields = [
            json!({"strategy": "ray"}),
            json!({"strategy": "rayfit"}),
            json!({"pendingIdleTimeoutSeconds": 7}),
            json!({"conserveGpus": false}),
            json!({"maxWorkersPerCluster": 12}),
            json!({"maxWorkersPerCluster": 0}),
            json!({"scaleUp": {"maxPods": 3, "perSeconds": 60}}),
            json!({"unschedulableSeconds": 0}),
            json!({"progressDeadlineSeconds": 1800}),
            json!({"drainTimeoutSeconds": 1800}),
            json!({"holdBusyNodes": true}),
            json!({"inPlace": {"shrinkAfterSeconds": 0, "makeRoom": false}}),
            json!({"inPlace": {"keepSmallSeconds": 5, "learnGaps": false, "deferredSeconds": 9}}),
            json!({"inPlace": {"followMemory": false}}),
            json!({"inPlace": {"initialSizes": true}}),
            json!({"headroom": {"cpus": 4}}),
            json!({"schedules": [{"name": "day", "start": "0 8 * * MON-FRI", "end": "0 18 * * MON-FRI",
                "timeZone": "Europe/Berlin", "minReplicas": {"cpu": 3}}]}),
            json!({"backOff": {"initialSeconds": 3}}),
            json!({"backOff": {"maxSeconds": 300}}),
            json!({"mode": "central", "allowedModes": ["central"]}),
        ];
        let all = fields.len();
        proptest::sample::subsequence(fields.to_vec(), 0..=all).prop_map(|some| {
            let mut whole = serde_json::Map::new();
            for one in some {
                whole.extend(one.as_object().unwrap().clone());
            }
            Value::Object(whole)
        })
    }

    proptest! {
        #[test]
        fn a_sidecar_goes_by_what_the_central_rayfit_would(
            written in prop::collection::vec(reconcile(), 0..4)
        ) {
            let (sidecar, central) = both(&written);
            prop_assert_eq!(sidecar, central);
        }
    }

    #[test]
    fn a_text_of_anybody_is_bounded_and_says_no_more_than_concerns_a_sidecar() {
        let long = format!("{{\"strategy\": \"ray\"{}}}", " ".repeat(LONGEST));
        assert!(read(&long).unwrap_err().contains("bytes, more than"));
        let deep = "[".repeat(LONGEST);
        for text in ["", "1", "{\"strategy\": \"mine\"}", deep.as_str()] {
            assert!(read(text).unwrap_err().starts_with("it is not as"));
        }
        let more = r#"{"mode": "ray", "allowedModes": ["ray"], "x": 1}"#;
        assert_eq!(read(more).unwrap(), ReconcileSettings::default());
        assert_eq!(read(NOTHING).unwrap(), ReconcileSettings::default());
    }
}
