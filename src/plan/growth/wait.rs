//! How long a pod or a group waits after growth that failed.

/// The first wait after a failed resize, in seconds; it doubles with every failure.
const FIRST_WAIT_S: f64 = 60.0;

/// The longest wait after a failed resize, in seconds.
const LONGEST_WAIT_S: f64 = 3600.0;

/// How long to wait after so many failures in a row, in seconds.
pub(crate) fn wait_after(failures: u32) -> f64 {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT_S * f64::from(1_u32 << doublings)).min(LONGEST_WAIT_S)
}
