//! All settings of the reconciler, with their defaults.

use std::sync::Arc;

use crate::plan;
use crate::policy::settings::ReconcileSettings;

/// The settings by which a cluster is scaled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoundSettings {
    /// The planner's settings: the strategy and its switches.
    pub plan: plan::PlanSettings,
    /// The intervals between looks.
    pub pace: Pace,
    /// The back-off after failures.
    pub backoff: BackoffSettings,
}

/// Intervals between two looks at a cluster, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// The interval while something is pending or on its way.
    pub busy_s: f64,
    /// How many such looks a process makes in a second. Where more clusters are busy, each is
    /// looked at less often, down to once in `calm_s`.
    pub busy_per_s: f64,
    /// The interval while nothing goes on.
    pub calm_s: f64,
    /// The longest interval, where nothing has changed for long.
    pub idle_s: f64,
    /// For how many seconds nothing must have changed until the interval grows.
    pub long_s: f64,
}

/// Back-offs after failures, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffSettings {
    /// The back-off after the first failure; it doubles with each further one.
    pub first_s: f64,
    /// The longest back-off.
    pub longest_s: f64,
}

impl RoundSettings {
    /// The settings that follow from the policies. What the policies do not mention keeps its
    /// default.
    pub fn of(policy: &ReconcileSettings) -> Self {
        let (asked, usual) = (policy.back_off, BackoffSettings::default());
        let first_s = asked.initial_seconds.map_or(usual.first_s, f64::from);
        let longest_s = asked.max_seconds.map_or(usual.longest_s, f64::from);
        let unless_zero = |seconds: u32| (seconds > 0).then_some(f64::from(seconds));
        let in_place = policy.in_place;
        Self {
            plan: plan::PlanSettings {
                strategy: policy.strategy,
                pending_idle_timeout_s: policy.pending_idle_timeout_seconds.map(f64::from),
                conserve_gpus: policy.conserve_gpus,
                max_workers: policy.max_workers_per_cluster.into(),
                scale_up: policy.scale_up,
                unschedulable_s: policy.unschedulable_seconds.into(),
                progress_deadline_s: policy.progress_deadline_seconds.into(),
                drain_timeout_s: policy.drain_timeout_seconds.into(),
                hold_busy_nodes: policy.hold_busy_nodes,
                shrink_after_s: unless_zero(in_place.shrink_after_seconds),
                keep_small_s: unless_zero(in_place.keep_small_seconds),
                deferred_s: in_place.deferred_seconds.into(),
                learn_gaps: in_place.learn_gaps,
                follow_memory: in_place.follow_memory && policy.strategy.is_rayfit(),
                make_room: in_place.make_room,
                initial_sizes: in_place.initial_sizes,
                headroom: Arc::clone(&policy.headroom),
                schedules: Arc::clone(&policy.schedules),
            },
            pace: Pace::default(),
            backoff: match asked.max_seconds {
                // A policy that only sets the initial back-off does not shorten the others.
                None => BackoffSettings {
                    first_s,
                    longest_s: longest_s.max(first_s),
                },
                Some(_) => BackoffSettings {
                    first_s: first_s.min(longest_s),
                    longest_s,
                },
            },
        }
    }
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

impl Default for BackoffSettings {
    fn default() -> Self {
        Self {
            first_s: 0.5,
            longest_s: 120.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Headroom, Strategy};
    use crate::policy::settings::{BackOffPolicy, InPlaceSettings};

    #[test]
    fn without_policies_it_is_as_it_is_by_itself() {
        assert_eq!(
            RoundSettings::of(&ReconcileSettings::default()),
            RoundSettings::default()
        );
    }

    #[test]
    fn what_a_policy_says_holds() {
        let headroom = Arc::new(Headroom {
            cpus: 8,
            ..Headroom::default()
        });
        let settings = RoundSettings::of(&ReconcileSettings {
            mode: None,
            headroom: Arc::clone(&headroom),
            schedules: Arc::default(),
            strategy: Strategy::Ray,
            pending_idle_timeout_seconds: Some(90),
            conserve_gpus: false,
            max_workers_per_cluster: 50,
            scale_up: Some(plan::ScaleUp {
                max_pods: 7,
                per_s: 9,
            }),
            unschedulable_seconds: 20,
            progress_deadline_seconds: 25,
            drain_timeout_seconds: 30,
            hold_busy_nodes: true,
            in_place: InPlaceSettings {
                shrink_after_seconds: 90,
                keep_small_seconds: 0,
                deferred_seconds: 4,
                learn_gaps: false,
                follow_memory: true,
                make_room: false,
                initial_sizes: true,
            },
            back_off: BackOffPolicy {
                initial_seconds: Some(3),
                max_seconds: None,
            },
        });
        let plan = plan::PlanSettings {
            strategy: Strategy::Ray,
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
            learn_gaps: false,
            // Strategy `ray` decides as Ray does.
            follow_memory: false,
            make_room: false,
            initial_sizes: true,
            headroom,
            schedules: Arc::default(),
        };
        assert_eq!(settings.plan, plan);
        let waits = |initial_seconds, max_seconds| {
            let back_off = BackOffPolicy {
                initial_seconds,
                max_seconds,
            };
            let settings = RoundSettings::of(&ReconcileSettings {
                back_off,
                ..ReconcileSettings::default()
            });
            (settings.backoff.first_s, settings.backoff.longest_s)
        };
        assert_eq!(waits(Some(3), None), (3.0, 120.0));
        assert_eq!(waits(Some(300), None), (300.0, 300.0));
        assert_eq!(waits(None, Some(10)), (0.5, 10.0));
        assert_eq!(waits(Some(30), Some(10)), (10.0, 10.0));
    }
}
