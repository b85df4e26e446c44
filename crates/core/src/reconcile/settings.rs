//! All settings of the reconciler, with their defaults.

use crate::plan;
use crate::policy::resource::{BackOff, ScaleUpSpec};
use crate::policy::settings::ReconcileSettings;
use crate::seconds::Retry;

/// The settings by which a cluster is scaled.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSettings {
    /// The planner's settings: the strategy and its switches.
    pub plan: plan::PlanSettings,
    /// The intervals between looks.
    pub pace: Pace,
    /// The back-off after failures.
    pub backoff: Retry,
}

/// Intervals between two looks at a cluster, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// The interval while something is pending or on its way.
    pub busy_s: f64,
    /// The number of such looks that a process makes in a second. If more clusters are busy, each
    /// is looked at less often, down to once in `calm_s`.
    pub busy_per_s: f64,
    /// The interval while nothing goes on.
    pub calm_s: f64,
    /// The longest interval, where nothing has changed for long.
    pub idle_s: f64,
    /// Seconds without a change until the interval grows.
    pub long_s: f64,
}

/// The back-off after failures where policies say nothing.
const USUAL_BACKOFF: Retry = Retry {
    first_s: 0.5,
    longest_s: 120.0,
};

impl RoundSettings {
    /// The settings that follow from the policies. What the policies do not mention, and a number beyond
    /// the bounds of the schema, keeps its default.
    pub fn of(policy: &ReconcileSettings) -> Self {
        let (usual, written) = (Self::default(), &policy.written);
        let in_place = written.in_place.clone().unwrap_or_default();
        let left_out = [
            (plan::Slice::Gaps, in_place.learn_gaps),
            (plan::Slice::MemoryInUse, in_place.follow_memory),
            (plan::Slice::Rooms, in_place.make_room),
        ];
        let left_out = left_out.into_iter().filter(|(_, on)| *on == Some(false));
        Self {
            plan: plan::PlanSettings {
                strategy: written.strategy.unwrap_or_default(),
                left_out: left_out.map(|(slice, _)| slice).collect(),
                pending_idle_timeout_s: some_seconds(written.pending_idle_timeout_seconds),
                conserve_gpus: written.conserve_gpus.unwrap_or(usual.plan.conserve_gpus),
                max_workers: number(written.max_workers_per_cluster)
                    .map_or(usual.plan.max_workers, u64::from),
                scale_up: written.scale_up.as_ref().and_then(scale_up),
                unschedulable_s: seconds(written.unschedulable_seconds)
                    .unwrap_or(usual.plan.unschedulable_s),
                progress_deadline_s: some_seconds(written.progress_deadline_seconds)
                    .unwrap_or(usual.plan.progress_deadline_s),
                drain_timeout_s: seconds(written.drain_timeout_seconds)
                    .unwrap_or(usual.plan.drain_timeout_s),
                hold_busy_nodes: (written.hold_busy_nodes).unwrap_or(usual.plan.hold_busy_nodes),
                shrink_after_s: unless_zero(
                    in_place.shrink_after_seconds,
                    usual.plan.shrink_after_s,
                ),
                keep_small_s: unless_zero(in_place.keep_small_seconds, usual.plan.keep_small_s),
                deferred_s: seconds(in_place.deferred_seconds).unwrap_or(usual.plan.deferred_s),
                initial_sizes: (in_place.initial_sizes == Some(true))
                    .then_some(plan::SizedFor::Request),
                headroom: policy.headroom.clone().unwrap_or_default(),
                schedules: policy.schedules.clone().unwrap_or_default(),
            },
            pace: usual.pace,
            backoff: written.back_off.as_ref().map_or(usual.backoff, backoff),
        }
    }
}

fn backoff(written: &BackOff) -> Retry {
    let first_s = some_seconds(written.initial_seconds).unwrap_or(USUAL_BACKOFF.first_s);
    let longest_s = some_seconds(written.max_seconds);
    // A policy that only sets the initial back-off does not shorten the others.
    let longest_s = longest_s.unwrap_or(USUAL_BACKOFF.longest_s.max(first_s));
    Retry {
        first_s: first_s.min(longest_s),
        longest_s,
    }
}

fn number(written: Option<i64>) -> Option<u32> {
    u32::try_from(written?).ok()
}

fn seconds(written: Option<i64>) -> Option<f64> {
    number(written).map(f64::from)
}

/// A time of which 0 is no value.
fn some_seconds(written: Option<i64>) -> Option<f64> {
    seconds(written).filter(|seconds| *seconds > 0.0)
}

/// A time that 0 turns off.
fn unless_zero(written: Option<i64>, usual: Option<f64>) -> Option<f64> {
    seconds(written).map_or(usual, |seconds| (seconds > 0.0).then_some(seconds))
}

/// Both numbers, unless one is beyond its bounds.
fn scale_up(written: &ScaleUpSpec) -> Option<plan::ScaleUp> {
    let number = |written: i64| number(Some(written)).filter(|number| *number > 0);
    Some(plan::ScaleUp {
        max_pods: number(written.max_pods)?.into(),
        per_s: number(written.per_seconds)?,
    })
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            busy_s: 0.25,
            // After demand on a thousand clusters at once, those that had been served still looked
            // four times a second each, and kept the others waiting.
            busy_per_s: 400.0,
            calm_s: 1.0,
            idle_s: 5.0,
            long_s: 300.0,
        }
    }
}

impl Default for RoundSettings {
    fn default() -> Self {
        Self {
            plan: plan::PlanSettings::default(),
            pace: Pace::default(),
            backoff: USUAL_BACKOFF,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::{Slice, Strategy};

    #[test]
    fn without_policies_it_is_as_it_is_by_itself() {
        assert_eq!(
            RoundSettings::of(&ReconcileSettings::default()),
            RoundSettings::default()
        );
    }

    fn of(written: serde_json::Value) -> RoundSettings {
        RoundSettings::of(&ReconcileSettings {
            written: serde_json::from_value(written).unwrap(),
            ..ReconcileSettings::default()
        })
    }

    #[test]
    fn what_a_policy_says_holds() {
        let settings = of(json!({
            "strategy": "ray",
            "pendingIdleTimeoutSeconds": 90,
            "conserveGpus": false,
            "maxWorkersPerCluster": 50,
            "scaleUp": {"maxPods": 7, "perSeconds": 9},
            "unschedulableSeconds": 20,
            "progressDeadlineSeconds": 25,
            "drainTimeoutSeconds": 30,
            "holdBusyNodes": true,
            "inPlace": {"shrinkAfterSeconds": 90, "keepSmallSeconds": 0, "deferredSeconds": 4, "learnGaps": false,
                "followMemory": false, "makeRoom": false, "initialSizes": true},
        }));
        let plan = plan::PlanSettings {
            strategy: Strategy::Ray,
            left_out: [Slice::Gaps, Slice::MemoryInUse, Slice::Rooms].into(),
            pending_idle_timeout_s: Some(90.0),
            conserve_gpus: false,
            max_workers: 50,
            scale_up: Some(plan::ScaleUp {
                max_pods: 7,
                per_s: 9,
            }),
            unschedulable_s: 20.0,
            progress_deadline_s: 25.0,
            drain_timeout_s: 30.0,
            hold_busy_nodes: true,
            shrink_after_s: Some(90.0),
            keep_small_s: None,
            deferred_s: 4.0,
            initial_sizes: Some(plan::SizedFor::Request),
            headroom: std::sync::Arc::default(),
            schedules: std::sync::Arc::default(),
        };
        assert_eq!(settings.plan, plan);
    }

    #[test]
    fn a_number_beyond_its_bounds_counts_as_left_out() {
        let beyond = json!({
            "pendingIdleTimeoutSeconds": 0,
            "maxWorkersPerCluster": -1,
            "scaleUp": {"maxPods": 0, "perSeconds": 9},
            "unschedulableSeconds": i64::MAX,
            "progressDeadlineSeconds": 0,
            "inPlace": {"shrinkAfterSeconds": -1, "keepSmallSeconds": -1},
            "backOff": {"initialSeconds": 0, "maxSeconds": -1},
        });
        assert_eq!(of(beyond), RoundSettings::default());
    }

    #[test]
    fn the_longest_back_off_is_no_shorter_than_the_first() {
        for (back_off, wanted) in [
            (json!({"initialSeconds": 3}), (3.0, 120.0)),
            (json!({"initialSeconds": 300}), (300.0, 300.0)),
            (json!({"maxSeconds": 10}), (0.5, 10.0)),
            (
                json!({"initialSeconds": 30, "maxSeconds": 10}),
                (10.0, 10.0),
            ),
        ] {
            let backoff = of(json!({"backOff": back_off})).backoff;
            assert_eq!((backoff.first_s, backoff.longest_s), wanted);
        }
    }
}
