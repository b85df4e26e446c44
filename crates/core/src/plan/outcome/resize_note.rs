//! Ray's note about a pod's resizes, which is an annotation on the pod. It is written exactly as
//! Ray writes it, so that Ray's own autoscaler can take over at any time. (Ray, `ippr_provider.py`,
//! `_patch_ippr_resize`.)

use serde_json::{Value, json};

use crate::snapshot::pod::Pod;

/// The name of the annotation.
pub const STATUS_ANNOTATION: &str = "ray.io/ippr-status";

/// The content of the annotation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResizeNote {
    /// The raylet that is resized, by its Ray node id in hexadecimal.
    pub raylet_id: Option<String>,
    /// The time at which Kubernetes was asked for the resize, in whole seconds since 1970; kept
    /// until the raylet knows the new size.
    pub resizing_at: Option<i64>,
    /// The CPU that the node said it can give, in cores.
    pub suggested_max_cpu: Option<f64>,
    /// The memory that the node said it can give, in bytes.
    pub suggested_max_memory: Option<i64>,
    /// The time of the last failed resize, in whole seconds since 1970.
    pub last_failed_at: Option<i64>,
    /// The reason of that failure.
    pub last_failed_reason: Option<String>,
}

impl ResizeNote {
    /// The note on a pod, if there is one. Returns an error where it is not JSON. A field that is
    /// missing or of another type counts as absent.
    pub fn of(pod: &Pod<'_>) -> Result<Option<Self>, serde_json::Error> {
        let text = pod.object.metadata.annotations.resize_status.as_deref();
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let status: Value = serde_json::from_str(text)?;
        let whole = |key: &str| status.get(key).and_then(Value::as_i64);
        let text = |key: &str| status.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Some(Self {
            raylet_id: text("raylet-id"),
            resizing_at: whole("resizing-at"),
            suggested_max_cpu: status.get("suggested-max-cpu").and_then(Value::as_f64),
            suggested_max_memory: whole("suggested-max-memory"),
            last_failed_at: whole("last-failed-at"),
            last_failed_reason: text("last-failed-reason"),
        }))
    }

    /// The value of the annotation.
    pub fn text(&self) -> String {
        json!({
            "raylet-id": self.raylet_id,
            "resizing-at": self.resizing_at,
            "suggested-max-cpu": self.suggested_max_cpu,
            "suggested-max-memory": self.suggested_max_memory,
            "last-failed-at": self.last_failed_at,
            "last-failed-reason": self.last_failed_reason,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::outcome::resize_note::*;

    #[test]
    fn is_read_as_it_is_written() {
        let note = ResizeNote {
            raylet_id: Some("ab".to_owned()),
            resizing_at: Some(1_768_392_000),
            suggested_max_cpu: Some(3.4),
            suggested_max_memory: Some(1 << 31),
            last_failed_at: None,
            last_failed_reason: Some("Pod resize timed out".to_owned()),
        };
        let pod =
            json!({"metadata": {"name": "a", "annotations": {STATUS_ANNOTATION: note.text()}}});
        let pod = serde_json::from_value(pod).unwrap();
        let pod = Pod::of(&pod);
        assert_eq!(ResizeNote::of(&pod).unwrap(), Some(note));
    }

    #[test]
    fn has_the_keys_of_rays_schema_and_no_others() {
        let value: Value = serde_json::from_str(&ResizeNote::default().text()).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        let rays = [
            "raylet-id",
            "resizing-at",
            "suggested-max-cpu",
            "suggested-max-memory",
            "last-failed-at",
            "last-failed-reason",
        ];
        assert_eq!(keys, rays);
        assert!(value.as_object().unwrap().values().all(Value::is_null));
    }
}
