//! Giving back memory that a pod was given because what it had was nearly full.

use crate::hash::HashSet;
use crate::plan::growth::in_use::right;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::list::NodeIndex;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::Fate;
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::packing::state::DecisionState;
use crate::seconds::{Retry, is_recent};
use crate::snapshot::history::FollowedMemory;

/// The times for which memory must have been spare. Work that needed it once may need
/// it again, and its processes may be killed if it comes too late: each time that a pod has needed
/// more again after it had given memory back doubles them, so that use that comes and goes does not
/// have the pod resized again and again.
const HOLD: Retry = Retry::UP_TO_AN_HOUR;

/// Asks pods to give back what has been spare for long enough. Where it is not known how much is in
/// use, nothing is given back while anything runs. A pod that demand has made grow since is not
/// followed any more.
pub(crate) fn give_back(state: &mut DecisionState, holders: &HashSet<NodeIndex>, now: f64) {
    let memory = state.memory;
    for number in state.nodes.positions() {
        let Some(node) = state.nodes.get_mut(number) else {
            continue;
        };
        // The memory that tasks, actors and placement groups have asked for.
        let taken = memory.and_then(|memory| node.taken(memory));
        #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
        let asked = taken.unwrap_or(0.0).ceil() as i64;
        let may = !node.head
            && node.fate == Fate::Stay
            && node.stage() == Stage::Running
            && !holders.contains(&number);
        let for_demand = node.has_promised_resources();
        if let Some(resize) = &mut node.resize {
            resize.followed = resize.followed.filter(|_| !for_demand);
            follow(resize, asked, may, now);
        }
    }
}

fn follow(resize: &mut Resize, asked: i64, may: bool, now: f64) {
    let Some(mut followed) = resize.followed else {
        return;
    };
    let has = resize.current.memory;
    let is_back = has <= followed.from && resize.desired.memory <= has;
    if is_back && resize.progress == ResizeProgress::Finished {
        // As long as it has to be spare at the most, it is remembered that memory was given back.
        let counts = is_recent(followed.since, HOLD.longest_s, now);
        resize.followed = resize.followed.filter(|_| counts);
        return;
    }
    let anew = FollowedMemory {
        since: now,
        most: 0,
        ..followed
    };
    let Some(in_use) = resize.in_use.filter(|_| may && resize.may_shrink()) else {
        resize.followed = Some(anew);
        return;
    };
    // The clock may have been set back.
    followed.since = followed.since.min(now);
    followed.most = followed.most.max(in_use.soon);
    let floor = asked.max(followed.from).max(resize.base.memory);
    let then = right(followed.most, resize.base.memory).max(floor).min(has);
    let fails = resize.shrink_failures.lately(now) > 0;
    if then >= has || fails {
        resize.followed = Some(anew);
        return;
    }
    resize.followed = Some(followed);
    let hold_s = HOLD.wait_s(followed.times.saturating_add(1));
    if now - followed.since >= hold_s {
        resize.ask(None, Some(then));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole seconds of an hour"
        )]
        let seconds = hold_s as u32;
        resize.memory_reason = Some(MemoryReason::MostlyFree {
            bytes: followed.most,
            seconds,
        });
        resize.followed = Some(FollowedMemory {
            gave_back: true,
            ..anew
        });
    }
}
