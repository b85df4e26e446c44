//! The lines that drivers print as `(autoscaler +3s) ...`. They are written to
//! `event_AUTOSCALER.log` in the head's log folder, where Ray's log monitor reads them. The wording
//! is Ray's. (Ray, `autoscaler/v2/event_logger.py`; `_private/event/event_logger.py`.)

use serde_json::json;

use crate::plan::{DemandKind, RemovalCause, Unmet};

/// One message for drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The severity, as Ray names it.
    pub severity: &'static str,
    /// The text.
    pub text: String,
}

impl Message {
    /// The message about nodes that were requested.
    pub(crate) fn adding(count: u64, group: &str) -> Self {
        Self::info(format!("Adding {count} node(s) of type {group}."))
    }

    /// The message about nodes that are being drained.
    pub(crate) fn removing(count: usize, group: &str, cause: RemovalCause) -> Self {
        // Ray has words for four causes. "outdated" is the closest to a removed group, which Ray
        // itself leaves alone, and whatever nothing needs is "idle".
        let why = match cause {
            RemovalCause::GroupMax => "max number of worker nodes per type reached",
            RemovalCause::ClusterMax => "max number of worker nodes reached",
            RemovalCause::GroupGone => "outdated",
            RemovalCause::NodeLeaves => "about to be terminated",
            RemovalCause::Idle
            | RemovalCause::GivesWay
            | RemovalCause::Scattered
            | RemovalCause::NotAdmitted
            | RemovalCause::Unschedulable
            | RemovalCause::MadeTooLarge
            | RemovalCause::NeverJoined
            | RemovalCause::StopRequested
            | RemovalCause::Stopped => "idle",
        };
        Self::info(format!("Removing {count} nodes of type {group} ({why})."))
    }

    /// The message about the new size of the cluster.
    pub(crate) fn resized((cpus, gpus): (f64, f64)) -> Self {
        // Ray's text has whole numbers, and names GPUs only where there are any.
        let gpus = if gpus > 0.0 {
            format!(", {} GPUs", gpus.trunc())
        } else {
            String::new()
        };
        Self::info(format!("Resized to {} CPUs{gpus}.", cpus.trunc()))
    }

    /// The message about a demand that cannot be met.
    pub(crate) fn unmet(unmet: &Unmet) -> Self {
        let what = match unmet.kind {
            DemandKind::Constraint => "cluster constraint",
            DemandKind::PlacementGroup => "placement group requests",
            DemandKind::Tasks => "resource requests",
        };
        let (count, demand) = (unmet.count, &unmet.demand);
        Self {
            severity: "WARNING",
            text: format!(
                "No available node types can fulfill {what} {demand}*{count}. Add suitable node \
                 types to this cluster to resolve this issue."
            ),
        }
    }

    fn info(text: String) -> Self {
        Self {
            severity: "INFO",
            text,
        }
    }

    /// The line as Ray's log monitor reads it, without the line end. `id` has to be unique (Ray
    /// uses 36 hexadecimal digits), and `seconds` counts from 1970.
    pub fn line(&self, id: &str, host: &str, process: u32, seconds: i64) -> String {
        json!({
            "event_id": id,
            "source_type": "AUTOSCALER",
            "source_hostname": host,
            "source_pid": process,
            "severity": self.severity,
            "message": self.text,
            "timestamp": seconds.to_string(),
            "label": "",
            "custom_fields": {},
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use crate::reconcile::events::driver_log::*;

    #[test]
    fn has_the_texts_of_ray() {
        assert_eq!(
            Message::adding(3, "cpu").text,
            "Adding 3 node(s) of type cpu."
        );
        let removing = Message::removing(2, "cpu", RemovalCause::Idle);
        assert_eq!(removing.text, "Removing 2 nodes of type cpu (idle).");
        assert_eq!(Message::resized((4.5, 0.0)).text, "Resized to 4 CPUs.");
        assert_eq!(
            Message::resized((4.0, 2.0)).text,
            "Resized to 4 CPUs, 2 GPUs."
        );
    }

    #[test]
    fn a_line_is_json_with_rays_keys() {
        let line = Message::adding(1, "cpu").line("ab", "head", 7, 1_768_392_000);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["source_type"], "AUTOSCALER");
        assert_eq!(value["timestamp"], "1768392000");
        assert_eq!(value["source_pid"], 7);
        assert!(!line.contains('\n'));
    }
}
