//! The last report to Ray, so that only changes are reported.

use crate::seconds::is_recent;
use crate::snapshot::autoscaling_state::AutoscalingState;

/// Seconds for which an unchanged report is not sent again.
// After that it is, because a GCS that was restarted has forgotten it.
const AGAIN_S: f64 = 30.0;

/// The last report to Ray.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedState {
    state: Option<(AutoscalingState, f64)>,
    error: Option<(String, f64)>,
}

impl ReportedState {
    /// Returns whether the autoscaling state has to be reported: it is new, or was reported too long ago.
    pub(crate) fn wants_state(&self, state: &AutoscalingState, now: f64) -> bool {
        let unversioned = without_version(state);
        let Some((reported, at)) = &self.state else {
            return true;
        };
        // A GCS that was restarted has an empty state by itself, so that one is not sent again.
        *reported != unversioned
            || (unversioned != AutoscalingState::default() && !is_recent(*at, AGAIN_S, now))
    }

    /// Returns whether the error text has to be stored: it is new, or was stored too long ago.
    pub(crate) fn wants_error(&self, text: &str, now: f64) -> bool {
        let Some((reported, at)) = &self.error else {
            return true;
        };
        reported != text || (!text.is_empty() && !is_recent(*at, AGAIN_S, now))
    }

    pub(crate) fn note_state(&mut self, state: &AutoscalingState, now: f64) {
        self.state = Some((without_version(state), now));
    }

    pub(crate) fn note_error(&mut self, text: &str, now: f64) {
        self.error = Some((text.to_owned(), now));
    }
}

fn without_version(state: &AutoscalingState) -> AutoscalingState {
    AutoscalingState {
        version: 0,
        ..state.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::reconcile::memory::reported::*;
    use crate::snapshot::autoscaling_state::PendingRequest;

    #[test]
    fn an_equal_state_is_reported_once_and_then_seldom() {
        let mut reported = ReportedState::default();
        let mut state = AutoscalingState {
            version: 1,
            ..AutoscalingState::default()
        };
        assert!(
            reported.wants_state(&state, 0.0),
            "a predecessor's report goes"
        );
        reported.note_state(&state, 0.0);
        state.version = 2;
        assert!(!reported.wants_state(&state, 100.0), "nothing, again");
        state.pending_requests.push(PendingRequest::default());
        assert!(reported.wants_state(&state, 1.0));
        reported.note_state(&state, 1.0);
        assert!(!reported.wants_state(&state, 30.9));
        assert!(reported.wants_state(&state, 31.0));
    }

    #[test]
    fn an_old_error_text_is_cleared_once() {
        let mut reported = ReportedState::default();
        assert!(reported.wants_error("", 0.0));
        reported.note_error("", 0.0);
        assert!(!reported.wants_error("", 1000.0));
        assert!(reported.wants_error("no", 1.0));
    }
}
