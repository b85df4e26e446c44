//! The time for which a Ray node drains when its pod is deleted, and that for which Kubernetes lets it.

use super::{Container, Group};
use crate::json::Json;

/// The variable with the most seconds for which the node drains. (Ray, `ray_constants.py`.)
pub const VARIABLE: &str = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S";

/// The seconds from SIGTERM to SIGKILL, in the spec of a pod.
pub const GRACE: &str = "terminationGracePeriodSeconds";

/// The default of the variable.
const DRAIN_S: f64 = 30.0;

/// The default grace period. (Kubernetes, `apis/core/v1/defaults.go`.)
pub const GRACE_S: i64 = 30;

/// The seconds by which a grace period is to be longer than the drain: Ray ends half a dozen
/// processes after it, each within a second.
pub const MARGIN_S: i64 = 10;

/// The longest drain that is given advice for, in seconds: a week.
const LONGEST_S: f64 = 604_800.0;

/// The grace period of a group's pods, if it is set.
pub fn grace(group: &Group<'_>) -> Option<i64> {
    group.pod_spec?.get(GRACE)?.as_i64()
}

/// The grace period that a drain of so many seconds needs.
#[expect(
    clippy::cast_possible_truncation,
    reason = "bounded by the longest drain"
)]
pub fn grace_for(drain_s: f64) -> i64 {
    drain_s.clamp(0.0, LONGEST_S).ceil() as i64 + MARGIN_S
}

/// The longest drain within a grace period, in seconds. A grace period that is too short for any
/// leaves none.
pub fn drain_within(grace_s: i64) -> i64 {
    grace_s.saturating_sub(MARGIN_S).max(0)
}

/// The path of the hook that runs before SIGTERM, in a container.
pub const PRE_STOP: [&str; 2] = ["lifecycle", "preStop"];

/// True if a hook of the container ends Ray before SIGTERM, so that there is nothing left to drain:
/// `ray stop` ends the raylet and its workers at once.
pub fn is_cut_short(container: &Container<'_>) -> bool {
    let [lifecycle, hook] = PRE_STOP;
    let exec = container.spec.below(lifecycle).below(hook).below("exec");
    let command = exec.list("command");
    let words: Vec<&str> = command.iter().filter_map(Json::as_str).collect();
    // The words may be divided in any way: `ray`, `stop`, or a script for a shell.
    words.join(" ").contains("ray stop")
}

/// The most seconds for which a Ray node drains on SIGTERM, by the value of the variable in its container, as Ray reads
/// it. `None` if it does not drain, or if the value comes from elsewhere and is not known. (Ray, `env_float`.)
pub fn drain_s(value: Option<&str>) -> Option<f64> {
    if value == Some("") {
        return None;
    }
    // For Ray, a text that is not a number is as good as none.
    let read = value.and_then(|text| text.trim().parse().ok());
    let seconds = read.unwrap_or(DRAIN_S);
    (seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_time_is_read_as_ray_reads_it() {
        assert_eq!(drain_s(None), Some(30.0));
        for (value, seconds) in [
            ("45", Some(45.0)),
            (" 4.5e1 ", Some(45.0)),
            ("long", Some(30.0)),
            ("0", None),
            ("-1", None),
            ("nan", None),
            ("", None),
        ] {
            assert_eq!(drain_s(Some(value)), seconds, "{value}");
        }
    }

    #[test]
    fn advice_stays_within_what_kubernetes_takes() {
        assert_eq!(grace_for(49.2), 60);
        assert_eq!(grace_for(f64::INFINITY), 604_810);
        assert_eq!((drain_within(60), drain_within(5)), (50, 0));
    }
}
