//! The number of needed nodes that KubeRay is asked for at once. (Ray, `reconciler.py`,
//! `_compute_to_launch`.)

use std::collections::BTreeMap;

use crate::hash::{HashMap, HashSet};
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::memory::jumps::JumpRoom;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::settings::ScaleUp;
use crate::snapshot::pod::{Pod, PodRole};

/// The most nodes that Ray asks for at a time (`AUTOSCALER_MAX_CONCURRENT_LAUNCHES`).
pub const RAY_CONCURRENT_LAUNCHES: u64 = 10;

/// `upscaling_speed` of Ray's `Default` and `Aggressive` modes.
const RAY_SPEED: u64 = 1000;

/// The bounds of launches beside the maxima.
#[derive(Debug)]
pub(crate) struct LaunchBounds<'a> {
    /// The limit on how fast the cluster grows.
    pub(crate) scale_up: Option<ScaleUp>,
    /// By group, the most nodes to launch at once, since more were refused.
    pub(crate) limits: &'a BTreeMap<String, u64>,
    /// The launches allowed beside pods that have not been admitted.
    pub(crate) jump: Option<&'a JumpRoom>,
    pub(crate) own: &'a [Pod<'a>],
    /// The time of the decision, in seconds since 1970.
    pub(crate) now: f64,
}

/// The rest of the limit on how fast a cluster grows.
struct ScaleUpLeft<'a> {
    most: u64,
    left: u64,
    /// The number of older pods of each group that have not been admitted.
    gated: HashMap<&'a str, u64>,
}

impl ScaleUpLeft<'_> {
    /// The number of nodes, of `count` of a group, that may be launched now.
    fn bound(&self, group: &str, hosts: u64, count: u64) -> u64 {
        // Pods that have not been admitted add nothing to what others of their group have to wait
        // for, and more of them would make what is asked for at once larger and larger.
        let gated = self.gated.get(group).copied().unwrap_or(0);
        let left = self.left.saturating_sub(gated);
        // A replica of more hosts than may be launched at once comes when nothing else has come.
        let left = if left == self.most {
            left.max(hosts)
        } else {
            left
        };
        count.min(left)
    }
}

impl<'a> LaunchBounds<'a> {
    /// The launches that the limit still allows; `None` without a limit. Launches without a pod
    /// count as made now.
    fn allowance(&self, state: &DecisionState) -> Option<ScaleUpLeft<'a>> {
        let ScaleUp { max_pods, per_s } = self.scale_up?;
        let is_recent = |created: f64| self.now - created < f64::from(per_s);
        let mut recent: u64 = 0;
        let mut gated: HashMap<&str, u64> = HashMap::default();
        for pod in self.own.iter().filter(|pod| pod.role == PodRole::Worker) {
            // Pods count from the moment at which they were made, so that a restart of the controller
            // forgets none of them.
            if pod.created().is_some_and(is_recent) {
                recent += 1;
            } else if pod.is_gated() {
                *gated.entry(pod.group).or_default() += 1;
            }
        }
        let asked = state.count(|node| node.stage() == Stage::Requested && node.stays());
        let asked = asked.into_iter().fold(recent, u64::saturating_add);
        Some(ScaleUpLeft {
            most: max_pods,
            left: max_pods.saturating_sub(asked),
            gated,
        })
    }
}

/// The number of nodes that KubeRay is asked for now, by group.
pub(crate) fn now(
    state: &DecisionState,
    conservative: bool,
    bounds: &LaunchBounds<'_>,
) -> ByGroup<u64> {
    if state.strategy.is_rayfit() {
        all_needed(state, conservative, bounds)
    } else {
        as_ray(state, conservative)
    }
}

/// Launches as Ray does: in the order in which the groups first wait, within one limit for all of
/// them.
fn as_ray(state: &DecisionState, conservative: bool) -> ByGroup<u64> {
    let waiting = |stage, fate| state.count(|node| node.stage() == stage && node.fate == fate);
    let queued = waiting(Stage::Queued, Fate::Stay);
    let fresh = waiting(Stage::New, Fate::Launch);
    let running = state.count(|node| node.stage() == Stage::Running && node.stays());
    let requested = state.count(|node| node.stage() == Stage::Requested);
    let mut requested = requested.into_iter().fold(0, u64::saturating_add);
    let mut launches = state.groups.map(|_| 0);
    for group in by_first_waiting(state) {
        let speed = if conservative { 1 } else { RAY_SPEED };
        let wanted = speed.saturating_mul(running.count(group).max(1));
        let left = RAY_CONCURRENT_LAUNCHES.saturating_sub(requested);
        let waits = queued.count(group).saturating_add(fresh.count(group));
        let count = left.min(wanted).min(waits);
        requested += count;
        if let Some(launch) = launches.get_mut(group) {
            *launch = count;
        }
    }
    launches
}

/// The groups in the order of their rows: groups with earlier, queued launches first, then groups
/// with launches of this decision.
fn by_first_waiting(state: &DecisionState) -> Vec<GroupIndex> {
    let mut groups: Vec<GroupIndex> = Vec::new();
    let mut seen = HashSet::default();
    let queued = |node: &&PlannedNode| node.stage() == Stage::Queued && node.fate == Fate::Stay;
    let mut rows: Vec<&PlannedNode> = state.in_order().filter(queued).collect();
    rows.sort_by_key(|node| node.born);
    let fresh = state
        .in_order()
        .filter(|node| node.fate == Fate::Launch)
        .filter_map(PlannedNode::group);
    for group in rows.into_iter().filter_map(PlannedNode::group).chain(fresh) {
        if seen.insert(group) {
            groups.push(group);
        }
    }
    groups
}

/// Launches everything that is needed, up to the maximum of each group. With `Conservative` no more
/// nodes are pending than there are running ones. A draining node counts towards the maximum until
/// it is gone; a pod that is deleted or a launch that is given up in this round does not.
fn all_needed(
    state: &DecisionState,
    conservative: bool,
    bounds: &LaunchBounds<'_>,
) -> ByGroup<u64> {
    let needed = state.count(PlannedNode::is_to_launch);
    let present = state.count(|node| match node.stage() {
        Stage::New | Stage::Queued => false,
        Stage::Requested => node.stays(),
        Stage::Allocated | Stage::Stopping | Stage::Running => !node.is_deleted(),
    });
    let running = state.count(|node| node.stage() == Stage::Running && node.stays());
    let coming = state.count(|node| {
        matches!(node.stage(), Stage::Requested | Stage::Allocated) && node.fate == Fate::Stay
    });
    let mut allowance = bounds.allowance(state);
    let mut workers_left = state.places_beside(&present);
    let bounded = |(number, group): (GroupIndex, &PlannedGroup)| {
        let hosts = group.config.hosts;
        let taken = present.count(number).saturating_add(group.draining);
        let places = group.config.max.saturating_sub(taken);
        let mut count = needed.count(number).min(places).min(workers_left);
        if conservative {
            let running = running.count(number).max(1);
            count = count.min(running.saturating_sub(coming.count(number)));
        }
        if let Some(allowance) = &allowance {
            count = allowance.bound(&group.config.name, hosts, count);
        }
        if let Some(limit) = bounds.jump.and_then(|jump| *jump.limits.get(number)?) {
            count = count.min(limit);
        }
        // A part of a replica would never be asked for, and so the limit never be lifted.
        if let Some(limit) = bounds.limits.get(&group.config.name) {
            count = count.min((*limit).max(hosts));
        }
        // KubeRay makes whole replicas, so a part of one is not asked for.
        if count < needed.count(number) && hosts > 1 {
            count -= count.checked_rem(hosts).unwrap_or(0);
        }
        if let Some(allowance) = &mut allowance {
            allowance.left = allowance.left.saturating_sub(count);
        }
        workers_left = workers_left.saturating_sub(count);
        count
    };
    state.groups.enumerate().map(bounded).collect()
}
