//! Giving back memory that a pod was given because what it had was nearly full.

use crate::plan::demand::names::Name;
use crate::plan::growth::in_use::right;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::outcome::plan::MemoryReason;
use crate::plan::packing::state::DecisionState;
use crate::plan::shrink::holders::Holders;
use crate::plan::shrink::needs::may_shrink;
use crate::snapshot::history::FollowedMemory;

/// For how many seconds memory must have been spare the first time. Work that needed it once may need
/// it again, and its processes may be killed if it comes too late: with each time that a pod has needed
/// more again after it had given memory back, it keeps it for twice as long, so that use that comes and
/// goes does not have the pod resized again and again.
const HOLD_S: u32 = 60;

/// For how many seconds memory must have been spare at the most, and after how many seconds it is
/// forgotten that a pod has given memory back.
const LONGEST_S: u32 = 3600;

/// Asks pods to give back what has been spare for long enough. Where it is not known how much is in
/// use, nothing is given back while anything runs. A pod that demand has made grow since is not
/// followed any more.
pub(crate) fn give_back(state: &mut DecisionState, holders: &Holders, now: f64) {
    let memory = state.memory;
    for number in state.nodes.positions() {
        let Some(node) = state.nodes.get_mut(number) else {
            continue;
        };
        let asked = asked(node, memory);
        let may = !node.head
            && node.fate == Fate::Stay
            && node.stage() == Stage::Running
            && !holders.has(number);
        let for_demand = node.has_promised_resources();
        if let Some(resize) = &mut node.resize {
            resize.followed = resize.followed.filter(|_| !for_demand);
            follow(resize, asked, may, now);
        }
    }
}

/// How much memory tasks, actors and placement groups have asked for, in bytes.
#[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
fn asked(node: &PlannedNode, memory: Option<Name>) -> i64 {
    let taken = memory.and_then(|memory| node.taken(memory));
    taken.unwrap_or(0.0).ceil() as i64
}

fn follow(resize: &mut Resize, asked: i64, may: bool, now: f64) {
    let Some(mut followed) = resize.followed else {
        return;
    };
    let has = resize.current.memory;
    let is_back = has <= followed.from && resize.desired.memory <= has;
    if is_back && resize.progress == ResizeProgress::Finished {
        // A time ahead of the clock, which was set back since, is old as well.
        let is_old = !(0.0..f64::from(LONGEST_S)).contains(&(now - followed.since));
        resize.followed = resize.followed.filter(|_| !is_old);
        return;
    }
    let anew = FollowedMemory {
        since: now,
        most: 0,
        ..followed
    };
    let Some(in_use) = resize.in_use.filter(|_| may && may_shrink(resize)) else {
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
    let hold = HOLD_S
        // Bounded before the shift, which would overflow: LONGEST_S is reached much earlier.
        .saturating_mul(1 << followed.times.min(10))
        .min(LONGEST_S);
    if now - followed.since >= f64::from(hold) {
        resize.ask(None, Some(then));
        resize.memory_reason = Some(MemoryReason::MostlyFree {
            bytes: followed.most,
            seconds: hold,
        });
        resize.followed = Some(FollowedMemory {
            gave_back: true,
            ..anew
        });
    }
}
