//! The time for which a pod or a group does not grow after growth that failed.

use crate::seconds::doubled;

/// The first wait after a failed resize, in seconds. It doubles with every further failure.
const FIRST_WAIT_S: f64 = 60.0;

/// The longest wait after a failed resize, in seconds.
const LONGEST_WAIT_S: f64 = 3600.0;

/// The wait after so many failures in a row, in seconds.
pub(crate) fn wait_after(failures: u32) -> f64 {
    doubled(FIRST_WAIT_S, failures.saturating_sub(1), LONGEST_WAIT_S)
}
