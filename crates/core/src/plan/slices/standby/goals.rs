//! The goals of standby at a moment: where several schedules hold, the largest value of each kind.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::plan::slices::departures::reason::Departure;
use crate::plan::slices::standby::reason::StandbyReason;
use crate::plan::slices::standby::settings::{Headroom, ScheduledStandby};
use crate::seconds::second_of;
use crate::snapshot::gcs::{LiveNodes, ResourceRequest};

/// The most Ray nodes about to leave for whose work there is to be room.
const REPLACED: usize = 1_000;

/// The goals of standby at a moment, each with the reason.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StandbyGoals {
    /// The largest share of the CPUs in use, in percent.
    pub(crate) share_percent: Option<(u32, StandbyReason)>,
    /// The largest number of CPUs.
    pub(crate) cpus: Option<(u32, StandbyReason)>,
    /// Equal requests to have room for, with their number.
    pub(crate) requests: Vec<(ResourceRequest, u32, StandbyReason)>,
    /// The least replicas by worker group.
    pub(crate) minima: BTreeMap<String, (u32, StandbyReason)>,
}

impl StandbyGoals {
    /// The goals at `now`, in seconds since 1970.
    pub(crate) fn at(headroom: &Headroom, schedules: &[ScheduledStandby], now: f64) -> Self {
        let mut goals = Self::default();
        goals.raise_headroom(headroom, &StandbyReason::Headroom);
        let Ok(now) = Timestamp::from_second(second_of(now)) else {
            return goals;
        };
        for schedule in schedules {
            // A schedule asks for nothing outside of its hours.
            let Some(until) = schedule.hours.until(now) else {
                continue;
            };
            let reason = StandbyReason::Schedule {
                name: schedule.name.clone(),
                until,
            };
            goals.raise_headroom(&schedule.headroom, &reason);
            for (group, replicas) in &schedule.min_replicas {
                let entry = goals.minima.entry(group.clone());
                let least = entry.or_insert_with(|| (0, reason.clone()));
                if *replicas > least.0 {
                    *least = (*replicas, reason.clone());
                }
            }
        }
        goals
    }

    /// Adds room for the work of Ray nodes that are about to leave.
    pub(crate) fn replace<'d>(
        &mut self,
        departures: impl Iterator<Item = &'d Departure>,
        live: &LiveNodes<'_>,
    ) {
        for departure in departures.take(REPLACED) {
            let ray = live.get(departure.pod.as_str());
            let resources_used = ray.map(|ray| ray.used_amounts()).unwrap_or_default();
            // A Ray node without work leaves nothing behind that needs room.
            if resources_used.is_empty() {
                continue;
            }
            let goal = ResourceRequest {
                resources_bundle: resources_used,
                ..ResourceRequest::default()
            };
            let pod = departure.pod.clone();
            self.requests
                .push((goal, 1, StandbyReason::Replaces { pod }));
        }
    }

    /// The names of the resources that the requests name.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &str> {
        let requests = self.requests.iter();
        let names = requests.flat_map(|(request, ..)| request.resources_bundle.keys());
        names.map(String::as_str)
    }

    fn raise_headroom(&mut self, headroom: &Headroom, reason: &StandbyReason) {
        raise(&mut self.share_percent, headroom.share_percent, reason);
        raise(&mut self.cpus, headroom.cpus, reason);
        for request in &headroom.requests {
            let amounts = request.resources.iter();
            #[expect(clippy::cast_precision_loss, reason = "Ray counts in f64 too")]
            let amounts = amounts.map(|(name, one)| (name.clone(), one.nanos() as f64 / 1e9));
            let goal = ResourceRequest {
                resources_bundle: amounts.collect(),
                ..ResourceRequest::default()
            };
            // Equal requests of several schedules count once, with the largest number: none of them wants the sum.
            match self
                .requests
                .iter_mut()
                .find(|(listed, ..)| *listed == goal)
            {
                Some((_, count, why)) if request.count > *count => {
                    (*count, *why) = (request.count, reason.clone());
                }
                Some(_) => {}
                None => self.requests.push((goal, request.count, reason.clone())),
            }
        }
    }
}

fn raise(most: &mut Option<(u32, StandbyReason)>, value: u32, reason: &StandbyReason) {
    if value > most.as_ref().map_or(0, |(value, _)| *value) {
        *most = Some((value, reason.clone()));
    }
}
