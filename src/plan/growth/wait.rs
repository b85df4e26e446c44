//! For how long a pod or a group does not grow after growth that failed.

/// The first wait after a failed resize, in seconds. It doubles with every further failure.
const FIRST_WAIT_S: f64 = 60.0;

/// The longest wait after a failed resize, in seconds.
const LONGEST_WAIT_S: f64 = 3600.0;

/// How many seconds to wait after so many failures in a row.
pub(crate) fn wait_after(failures: u32) -> f64 {
    // So often is beyond the longest wait already, and shifting by 32 bits would panic.
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT_S * f64::from(1_u32 << doublings)).min(LONGEST_WAIT_S)
}
