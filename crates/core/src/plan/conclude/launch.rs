//! The number of needed nodes that KubeRay is asked for at once. (Ray, `reconciler.py`,
//! `_compute_to_launch`.)

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::node::{Fate, PlannedNode, Stage};
use crate::plan::packing::state::PlannedGroup;
use crate::plan::settings::ScaleUp;
use crate::plan::slices::gangs::jumps::JumpRoom;
use crate::snapshot::pod::PodRole;

/// The most nodes that Ray asks for at a time (`AUTOSCALER_MAX_CONCURRENT_LAUNCHES`).
pub const RAY_CONCURRENT_LAUNCHES: u64 = 10;

/// `upscaling_speed` of Ray's `Default` and `Aggressive` modes.
const RAY_SPEED: u64 = 1000;

/// The number of nodes that KubeRay is asked for now, by group: everything that is needed, up to the maximum
/// of each group. With `Conservative` no more nodes are pending than there are running ones. A draining node
/// counts towards the maximum until it is gone; a pod that is deleted or a launch that is given up in this
/// round does not. `jump` has the launches allowed beside pods that have not been admitted.
pub(crate) fn now(decided: &Decided<'_>, jump: Option<&JumpRoom>) -> ByGroup<u64> {
    let (state, settings) = (&decided.state, decided.situation.settings);
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
    let (mut left_at_once, gated) = scale_up_left(settings.scale_up, decided);
    let most_at_once = settings.scale_up.map(|limit| limit.max_pods);
    let mut workers_left = state.places_beside(&present);
    let bounded = |(number, group): (GroupIndex, &PlannedGroup)| {
        let (name, hosts) = (group.config.name.as_str(), group.config.hosts);
        let taken = present[number].saturating_add(group.draining);
        let places = group.config.max.saturating_sub(taken);
        let mut count = needed[number].min(places).min(workers_left);
        if decided.config.conservative {
            let running = running[number].max(1);
            count = count.min(running.saturating_sub(coming[number]));
        }
        // Pods that have not been admitted add nothing to what others of their group have to wait
        // for, and more of them would make what is asked for at once larger and larger.
        let allowed = left_at_once.saturating_sub(gated.get(name).copied().unwrap_or(0));
        // A replica of more hosts than may be launched at once comes when nothing else has come.
        let is_first = most_at_once == Some(allowed);
        count = count.min(if is_first {
            allowed.max(hosts)
        } else {
            allowed
        });
        if let Some(limit) = jump.and_then(|jump| jump.limits[number]) {
            count = count.min(limit);
        }
        // A part of a replica would never be asked for, and so the limit of launches that were refused
        // never be lifted.
        if let Some(limit) = decided.situation.history().launch_limits.get(name) {
            count = count.min((*limit).max(hosts));
        }
        // KubeRay makes whole replicas, so a part of one is not asked for.
        if count < needed[number] && hosts > 1 {
            count -= count.checked_rem(hosts).unwrap_or(0);
        }
        left_at_once = left_at_once.saturating_sub(count);
        workers_left = workers_left.saturating_sub(count);
        count
    };
    state.groups.enumerate().map(bounded).collect()
}

/// The launches that the limit on how fast a cluster grows still allows, and the number of older pods of each
/// group that have not been admitted. Launches without a pod count as made now.
fn scale_up_left<'a>(
    limit: Option<ScaleUp>,
    decided: &Decided<'a>,
) -> (u64, HashMap<&'a str, u64>) {
    let mut gated: HashMap<&str, u64> = HashMap::default();
    let Some(ScaleUp { max_pods, per_s }) = limit else {
        return (u64::MAX, gated);
    };
    let state = &decided.state;
    let requested_now = state.count(|node| node.stage() == Stage::Requested && node.stays());
    let mut recent = requested_now.into_iter().fold(0, u64::saturating_add);
    let is_recent = |created: f64| decided.situation.now - created < f64::from(per_s);
    let own_pods = decided.situation.own_pods.iter();
    for pod in own_pods.filter(|pod| pod.role == PodRole::Worker) {
        // Pods count from the moment at which they were made, so that a restart of the controller
        // forgets none of them.
        if pod.created().is_some_and(is_recent) {
            recent = recent.saturating_add(1);
        } else if pod.is_gated() {
            *gated.entry(pod.group).or_default() += 1;
        }
    }
    (max_pods.saturating_sub(recent), gated)
}

/// Launches as Ray does: in the order in which the groups first wait, within one limit for all of
/// them.
pub(crate) fn as_ray(decided: &Decided<'_>) -> ByGroup<u64> {
    let (state, conservative) = (&decided.state, decided.config.conservative);
    let is_queued = |node: &PlannedNode| node.stage() == Stage::Queued && node.fate == Fate::Stay;
    let is_fresh = |node: &PlannedNode| node.stage() == Stage::New && node.fate == Fate::Launch;
    let waiting = state.count(|node| is_queued(node) || is_fresh(node));
    let running = state.count(|node| node.stage() == Stage::Running && node.stays());
    let requested = state.count(|node| node.stage() == Stage::Requested);
    let mut requested = requested.into_iter().fold(0, u64::saturating_add);
    // Groups with earlier, queued launches come first, in the order of their rows, and then groups with launches of
    // this decision.
    let mut rows: Vec<&PlannedNode> = state.in_order().filter(|node| is_queued(node)).collect();
    rows.sort_by_key(|node| node.born);
    rows.extend(state.in_order().filter(|node| node.fate == Fate::Launch));
    let mut groups_done = HashSet::default();
    let mut launches = state.groups.map(|_| 0);
    for group in rows.into_iter().filter_map(PlannedNode::group) {
        if !groups_done.insert(group) {
            continue;
        }
        let speed = if conservative { 1 } else { RAY_SPEED };
        let by_speed = speed.saturating_mul(running[group].max(1));
        let by_limit = RAY_CONCURRENT_LAUNCHES.saturating_sub(requested);
        let count = by_limit.min(by_speed).min(waiting[group]);
        requested += count;
        launches[group] = count;
    }
    launches
}
