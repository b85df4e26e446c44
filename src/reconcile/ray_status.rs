//! What Ray is told about its scaling: `ray status`, the dashboard, and the text that drivers
//! print when they connect.

use crate::plan::Plan;
use crate::snapshot::Snapshot;
use crate::snapshot::autoscaling_state::AutoscalingState;

/// The report of a round. `version` is the time in milliseconds since 1970, so that it grows over
/// restarts of the scaler too.
pub fn state(snapshot: &Snapshot, plan: &Plan, version: i64) -> AutoscalingState {
    let _ = (snapshot, plan);
    AutoscalingState {
        version,
        ..AutoscalingState::default()
    }
}

/// What is wrong, for people, in a few lines; empty when nothing is.
pub fn error_text(plan: &Plan) -> String {
    let _ = plan;
    String::new()
}
