//! Memory that is really in use: pods grow before it is full, and give back later what they then
//! no longer use.
//!
//! Takes the memory in use of each pod, as Ray reports it, and gives back resizes of memory alone. What
//! work asks for and what it uses are different things: a task that asks for no memory at all is killed
//! all the same when its pod is full. Room for work that runs comes before room for demand that waits.
//! A pod never grows beyond its resize limits, nor what its Kubernetes node has left, and
//! never comes down below what is in use with some to spare. What a tenant reports about its pods
//! therefore concerns nobody else.
//!
//! Invariant: a pod never gets less memory than is in use in it, nor more than its resize limits.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::hash::HashSet;
use crate::plan::growth::in_use::{InUse, fitting, right};
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::Size;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::{Fate, Stage};
use crate::plan::nodes::tables::SizeNotes;
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::packing::state::DecisionState;
use crate::plan::settings::PlanSettings;
use crate::plan::slice::Slice;
use crate::seconds::{Retry, is_recent};
use crate::snapshot::cluster_object::ClusterObject;
use crate::snapshot::history::FollowedMemory;

/// The times for which memory must have been spare. Work that needed it once may need
/// it again, and its processes may be killed if it comes too late: each time that a pod has needed
/// more again after it had given memory back doubles them, so that use that comes and goes does not
/// have the pod resized again and again.
const HOLD: Retry = Retry::UP_TO_AN_HOUR;

/// The groups of a cluster whose memory in use counts, by name: those whose resize limits have more
/// memory than their template.
pub fn followed_groups(cluster: &ClusterObject, settings: &PlanSettings) -> BTreeSet<String> {
    let follows = settings.has(Slice::MemoryInUse) && settings.strategy.is_rayfit();
    let config = follows.then(|| ClusterConfig::of(cluster));
    let groups = config.iter().flat_map(|config| config.groups.iter());
    let grows = groups.filter(|group| {
        let sizes = group.resize_limits.zip(group.base);
        sizes.is_some_and(|(limits, base)| limits.memory > base.memory)
    });
    grows.map(|group| group.name.clone()).collect()
}

/// Takes the memory that pods are to get because theirs is nearly full off what their Kubernetes nodes have left,
/// before demand takes it. Returns all the memory that each is to have, in bytes. The fullest pods come first.
pub(crate) fn reserve(state: &mut DecisionState) -> Vec<(NodeIndex, i64)> {
    let mut full: Vec<(i128, NodeIndex, InUse)> = Vec::new();
    for (number, node) in state.entries() {
        let has_work = node.stage() == Stage::Running && !node.is_idle() && node.stays();
        let resize = node.resize.as_deref();
        let Some(resize) = resize.filter(|resize| has_work && resize.can_grow()) else {
            continue;
        };
        let notes = state.tables.sizes.get(&number);
        let Some(in_use) = notes.and_then(|notes| notes.in_use) else {
            continue;
        };
        if in_use.fills(resize.current.memory) {
            // Whole thousandths, because floats have no order of their own. A tenant may report any
            // number of bytes, and a thousand times as many are beyond 64 bits.
            let has = i128::from(resize.current.memory.max(1));
            full.push((i128::from(in_use.soon) * 1000 / has, number, in_use));
        }
    }
    full.sort_by_key(|(share, ..)| Reverse(*share));
    let mut reliefs = Vec::new();
    for (_, number, in_use) in full {
        let Some(resize) = state.nodes[number].resize.as_deref() else {
            continue;
        };
        let (now, limit) = (resize.current, resize.limit().memory);
        let room = resize.headroom(&state.headrooms);
        let goal = Size {
            cpu: now.cpu,
            memory: in_use.right(resize.base.memory).min(limit),
        };
        let most = room.map_or(goal, |room| room.bound(now, goal)).memory;
        let memory = fitting(goal.memory, most, (resize.base.memory, limit));
        if memory <= now.memory {
            continue;
        }
        let then = Size {
            cpu: now.cpu,
            memory,
        };
        let kube_node = resize.kube_node;
        if let Some(at) = kube_node {
            state.headrooms[at].give(now, then);
        }
        reliefs.push((number, memory));
    }
    reliefs
}

/// Asks the pods to grow.
pub(crate) fn grant(state: &mut DecisionState, reliefs: &[(NodeIndex, i64)], now: f64) {
    for (number, relief) in reliefs {
        let node = &mut state.nodes[*number];
        let stays = node.fate == Fate::Stay;
        let resize = node.resize.as_deref_mut().filter(|_| stays);
        let Some((resize, notes)) = resize.zip(state.tables.sizes.get_mut(number)) else {
            continue;
        };
        let for_demand = resize.progress == ResizeProgress::New;
        let more = relief.saturating_sub(resize.current.memory);
        // Demand has asked for what it adds to the pod, and the work that runs uses memory that it
        // has not asked for, so the pod gets both.
        let memory = if for_demand {
            let limit = resize.limit().memory.max(resize.desired.memory);
            resize.desired.memory.saturating_add(more).min(limit)
        } else {
            *relief
        };
        if resize.ask(None, Some(memory)) && !for_demand {
            let bytes = notes.in_use.map(|in_use| in_use.bytes);
            notes.memory_reason = bytes.map(|bytes| MemoryReason::NearlyFull { bytes });
            let previous = notes.followed;
            notes.followed = Some(FollowedMemory {
                // The pod does not come down below what it has before it grows, or of several times had before the
                // first one.
                from: previous.map_or(resize.current.memory, |previous| previous.from),
                since: now,
                most: 0,
                times: previous.map_or(0, |previous| {
                    previous.times.saturating_add(u32::from(previous.gave_back))
                }),
                gave_back: false,
            });
        }
    }
}

/// Asks pods to give back what has been spare for long enough. Where it is not known how much is in
/// use, nothing is given back while anything runs. A pod that demand has made grow since is not
/// followed any more.
pub(crate) fn give_back(state: &mut DecisionState, holders: &HashSet<NodeIndex>, now: f64) {
    let memory = state.memory;
    for number in state.nodes.positions() {
        let node = &mut state.nodes[number];
        // The memory that tasks, actors and placement groups have asked for.
        let taken = node.amounts.taken(memory);
        #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
        let requested = taken.unwrap_or(0.0).ceil() as i64;
        let may = !node.head
            && node.fate == Fate::Stay
            && node.stage() == Stage::Running
            && !holders.contains(&number);
        let for_demand = node.has_promised_resources();
        if let Some((resize, notes)) =
            (node.resize.as_deref_mut()).zip(state.tables.sizes.get_mut(&number))
        {
            notes.followed = notes.followed.filter(|_| !for_demand);
            follow(resize, notes, requested, may, now);
        }
    }
}

fn follow(resize: &mut Resize, notes: &mut SizeNotes, requested: i64, may: bool, now: f64) {
    let Some(mut followed) = notes.followed else {
        return;
    };
    let has = resize.current.memory;
    let is_back = has <= followed.from && resize.desired.memory <= has;
    if is_back && resize.progress == ResizeProgress::Finished {
        // As long as it has to be spare at the most, it is remembered that memory was given back.
        let counts = is_recent(followed.since, HOLD.longest_s, now);
        notes.followed = notes.followed.filter(|_| counts);
        return;
    }
    let anew = FollowedMemory {
        since: now,
        most: 0,
        ..followed
    };
    let Some(in_use) = notes.in_use.filter(|_| may && resize.may_shrink()) else {
        notes.followed = Some(anew);
        return;
    };
    // The clock may have been set back.
    followed.since = followed.since.min(now);
    followed.most = followed.most.max(in_use.soon);
    let floor = requested.max(followed.from).max(resize.base.memory);
    let then = right(followed.most, resize.base.memory).max(floor).min(has);
    let fails = notes.shrink_failures.lately(now) > 0;
    if then >= has || fails {
        notes.followed = Some(anew);
        return;
    }
    notes.followed = Some(followed);
    let hold_s = HOLD.wait_s(followed.times.saturating_add(1));
    if now - followed.since >= hold_s {
        resize.ask(None, Some(then));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole seconds of an hour"
        )]
        let seconds = hold_s as u32;
        notes.memory_reason = Some(MemoryReason::MostlyFree {
            bytes: followed.most,
            seconds,
        });
        notes.followed = Some(FollowedMemory {
            gave_back: true,
            ..anew
        });
    }
}
