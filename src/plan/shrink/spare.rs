//! Shrinking in place: a pod that has grown comes down to the CPU that it uses, once the rest has
//! been spare for long enough.
//!
//! Ray leaves a pod at the size to which it has grown until the pod is removed. A small pod costs
//! little to keep, and it grows again within a second, without a new pod. Memory comes down only in a
//! pod in which nothing has run for as long, to no less than what is really in use, where that is known.
//! The kubelet refuses it if the pod uses more. (What a pod was given because its memory was nearly
//! full comes down in `pressure`.)

use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::Size;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{Fate, PlannedNode};
use crate::plan::packing::state::DecisionState;
use crate::plan::shrink::holders::Holders;
use crate::plan::shrink::needs::{SAME, may_shrink};
use crate::snapshot::history::SpareCpu;

/// For how many seconds CPU must have been spare while other demand waits for room.
const WHILE_DEMAND_WAITS_S: f64 = 10.0;

/// For how long CPU must have been spare before a pod shrinks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    /// The seconds that the settings ask for.
    pub(crate) seconds: f64,
    /// Whether some demand waits for room, so that pods shrink sooner.
    pub(crate) demand_waits: bool,
    /// The time of the decision, in seconds since 1970.
    pub(crate) now: f64,
}

impl Hold {
    fn seconds(self) -> f64 {
        if self.demand_waits {
            self.seconds.min(WHILE_DEMAND_WAITS_S)
        } else {
            self.seconds
        }
    }

    /// Whether half of the hold has passed since then.
    fn half_is_over(self, since: f64) -> bool {
        self.now - since >= self.seconds() / 2.0
    }
}

/// Shrinks, or forgets what pods had to spare, where pods do not shrink.
pub(crate) fn run(state: &mut DecisionState, hold: Option<Hold>, holders: &Holders) {
    match hold {
        Some(hold) => shrink(state, hold, holders),
        None => forget(state),
    }
}

/// Notes how much CPU each pod has to spare, and asks the pods to shrink whose CPU has been spare
/// for long enough.
///
/// The hold is watched in two halves.
fn shrink(state: &mut DecisionState, hold: Hold, holders: &Holders) {
    let Some(cpu) = state.cpu else { return };
    for number in state.nodes.positions() {
        let Some(node) = state.nodes.get_mut(number) else {
            continue;
        };
        let spare = spare(node, node.taken(cpu).unwrap_or(0.0), hold);
        let Some(resize) = &mut node.resize else {
            continue;
        };
        resize.spare = spare;
        let Some(spare) = spare.filter(|spare| hold.half_is_over(spare.since)) else {
            continue;
        };
        // It may once nothing waits for its size any more, without another hold.
        if holders.has(number) {
            continue;
        }
        let size = smallest(resize, spare.most, hold.now);
        match spare.earlier {
            Some(earlier) if !size.is_below(smallest(resize, earlier, hold.now)) => {
                resize.ask(Some(size.cpu), Some(size.memory));
                resize.shrinks_for = Some(hold.seconds());
                // A pod that is still seen at its old size later on shrinks after another hold
                // only.
                resize.spare = None;
            }
            _ => {
                resize.spare = Some(SpareCpu {
                    since: hold.now,
                    most: 0.0,
                    // A pod whose need was higher in the first half than in the second waits for
                    // one half more, so that it shrinks once instead of step by step.
                    earlier: Some(spare.most),
                });
            }
        }
    }
}

fn forget(state: &mut DecisionState) {
    let resizes = state.nodes.iter_mut();
    for resize in resizes.filter_map(|node| node.resize.as_deref_mut()) {
        resize.spare = None;
    }
}

/// What the pod has had to spare, if it has anything to spare now.
fn spare(node: &PlannedNode, needed: f64, hold: Hold) -> Option<SpareCpu> {
    let resize = node.resize.as_deref().filter(|resize| may_shrink(resize))?;
    // Actors that ask for no CPU keep a node busy without using any of it in Ray's books. How much
    // they really use is not known, and demand that is placed here may want memory only.
    let uses_unknown = needed < SAME && (node.idle_ms == 0 || !node.is_unneeded());
    if node.head || node.fate != Fate::Stay || node.stage() != Stage::Running || uses_unknown {
        return None;
    }
    let mut spare = resize.spare.unwrap_or(SpareCpu {
        since: hold.now,
        most: 0.0,
        earlier: None,
    });
    // The clock may have been set back.
    spare.since = spare.since.min(hold.now);
    spare.most = spare.most.max(needed);
    let size = smallest(resize, spare.peak(), hold.now);
    size.is_below(resize.current).then_some(spare)
}

/// How many cores a pod is about to give up: those that it is asked to, and those that it will be if
/// they stay spare.
pub(crate) fn about_to_go(resize: &Resize, now: f64) -> f64 {
    let then = match resize.spare {
        Some(spare) => smallest(resize, spare.peak(), now),
        None => resize.desired,
    };
    (resize.current.cpu - then.cpu).max(0.0)
}

/// The smallest size of a pod that needs so much CPU: the base size, or a multiple of it in whole
/// cores. A pod that could not shrink keeps its memory the next time, and after that its CPU too.
fn smallest(resize: &Resize, cpu: f64, now_s: f64) -> Size {
    let (now, base) = (resize.current, resize.base);
    let failures = resize.shrink_failures.lately(now_s);
    // Ray counts whole cores where it starts. What the pod leaves on its Kubernetes node is of use
    // to others in such steps only.
    let step = base.cpu.ceil();
    let least = if cpu - SAME <= base.cpu {
        base.cpu
    } else {
        ((cpu - SAME) / step).ceil() * step
    };
    Size {
        cpu: if failures < 2 {
            least.min(now.cpu)
        } else {
            now.cpu
        },
        memory: if failures < 1 && cpu < SAME {
            let in_use = resize.in_use.map_or(0, |used| used.right(base.memory));
            base.memory.max(in_use).min(now.memory)
        } else {
            now.memory
        },
    }
}
