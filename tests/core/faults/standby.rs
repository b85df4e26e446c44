//! What a policy keeps ready in a scene: headroom, and the hours of a schedule.

use std::sync::Arc;

use k8s_openapi::jiff::SignedDuration;
use k8s_openapi::jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use rayfit_core::plan::{Headroom, PlanSettings, ScheduledStandby};
use rayfit_core::schedule::{CronExpression, Hours, HoursEnd};
use rayfit_core::simulate::moment::START_HOUR;

/// What a policy keeps ready.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SceneStandby {
    /// The CPUs that are kept free.
    pub(crate) cpus: u32,
    /// The share of the CPUs in use that is kept free, in percent.
    pub(crate) share_percent: u32,
    /// What a schedule keeps besides, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<SceneSchedule>,
}

/// What is kept for some minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SceneSchedule {
    /// The minutes from the start of the cluster until it begins.
    pub(crate) from: i64,
    /// For how many minutes it lasts.
    pub(crate) minutes: i64,
    /// The fewest replicas of the first group.
    pub(crate) min: u32,
    /// The CPUs that are kept free.
    pub(crate) cpus: u32,
}

impl SceneStandby {
    /// Sets what a planner keeps ready; `group` is the first group.
    pub(super) fn apply(&self, settings: &mut PlanSettings, group: &str) {
        settings.headroom = Arc::new(Headroom {
            share_percent: self.share_percent,
            cpus: self.cpus,
            requests: Vec::new(),
        });
        let schedules = self.schedule.iter();
        settings.schedules = schedules
            .filter_map(|schedule| schedule.standby(group))
            .collect();
    }

    /// When the last schedule ends, in seconds since the start of the cluster.
    pub(super) fn ends(&self) -> f64 {
        let ends = self.schedule.iter().map(|one| one.from + one.minutes);
        #[expect(clippy::cast_precision_loss, reason = "some minutes")]
        let minutes = ends.max().unwrap_or(0) as f64;
        minutes * 60.0
    }

    /// How many CPUs are kept free for good, if so many are in use.
    pub(super) fn cpus_beside(&self, used: i64) -> i64 {
        let share = (used * i64::from(self.share_percent)).div_euclid(100) + 1;
        let share = if self.share_percent > 0 { share } else { 0 };
        i64::from(self.cpus).max(share)
    }
}

impl SceneSchedule {
    fn standby(&self, group: &str) -> Option<ScheduledStandby> {
        let start = CronExpression::parse(&format!("{} {START_HOUR} * * *", self.from)).ok()?;
        Some(ScheduledStandby {
            name: "scene".to_owned(),
            hours: Hours {
                start,
                end: HoursEnd::After(SignedDuration::from_mins(self.minutes)),
                zone: TimeZone::UTC,
            },
            min_replicas: [(group.to_owned(), self.min)].into(),
            headroom: Headroom {
                cpus: self.cpus,
                ..Headroom::default()
            },
        })
    }
}
