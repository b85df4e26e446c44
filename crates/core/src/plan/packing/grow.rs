//! The step of packing in which pods grow in place.
//!
//! More work of the same kind often follows, so a pod grows up to its resize limits. But where the
//! work that is placed on it takes its memory, cores beyond what the work needs would stand idle
//! beside memory that is taken, while other pods on the Kubernetes node lack them.

use crate::hash::HashSet;
use crate::plan::growth::resize::ResizeProgress;
use crate::plan::growth::size::{SAME, Size};
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::Placement;
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packing, PackingRules};

impl Packing<'_> {
    /// Lets pods grow towards their resize limits for the requests that are left. Every pod that was considered moves to
    /// the end of the order: first the pods that were picked, then the others.
    pub(crate) fn grow(&mut self, order: Vec<NodeIndex>) -> Vec<NodeIndex> {
        let can_grow = |packing: &Self, number: &NodeIndex| packing.growth(*number).is_some();
        let (mut growing, mut order): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|number| can_grow(self, number));
        let mut unpicked = Vec::new();
        // The states, as they would be when grown, of pods that served nothing.
        let mut useless = HashSet::default();
        while !growing.is_empty() && !self.has_placed_all() {
            if !self.state.work.spend(growing.len()) {
                break;
            }
            // Each pod takes headroom from the next one on its Kubernetes node, so only one of each is
            // tried at a time. Where no headroom is known, nothing is taken.
            let mut places_tried = HashSet::default();
            let (mut batch, mut later) = (Vec::new(), Vec::new());
            for number in growing {
                let resize = self.node(number).and_then(|node| node.resize.as_deref());
                let place = resize.filter(|one| one.headroom(&self.headrooms).is_some());
                let place = place.map(|resize| resize.kube_node);
                if place.is_some_and(|place| places_tried.contains(&place)) {
                    later.push(number);
                } else if self.is_useless(number, &useless) {
                    unpicked.push(number);
                } else {
                    places_tried.extend(place);
                    batch.push(number);
                }
            }
            let (picked, rest) = self.pick_growing(&batch, &mut useless);
            order.extend(picked);
            // Requests and headroom only become less, so a pod that none of them picks now is not tried
            // again, and none that is equal to it. The others on its Kubernetes node are: they may have
            // what it lacks.
            unpicked.extend(rest);
            let others;
            (growing, others) = later.into_iter().partition(|number| can_grow(self, number));
            unpicked.extend(others);
        }
        order.extend(unpicked);
        order.extend(growing);
        order
    }

    /// The size that a pod has, or was asked to have in this round, and the size to which it may grow,
    /// if it can grow.
    fn growth(&self, number: NodeIndex) -> Option<(Size, Size)> {
        let node = self.node(number)?;
        let resize = node.resize.as_deref()?;
        let room = resize.headroom(&self.headrooms);
        let grew = |take: &Placement| take.step == PlacementStep::Grow;
        // Demand that was served before in this round may have made the pod grow, and it may grow
        // further, unless it has grown as far as it may.
        let has_grown = self.rules == PackingRules::Steady
            && resize.progress == ResizeProgress::New
            && node.takes.iter().any(grew);
        let (from, goal) = if has_grown {
            (resize.has(), resize.most(room))
        } else {
            (resize.current, resize.goal(room))
        };
        let may = has_grown || resize.can_grow();
        (may && (room.is_none() || from.is_below(goal))).then_some((from, goal))
    }

    /// True if a pod would be in one of these states once it had grown as far as it can.
    fn is_useless(&mut self, number: NodeIndex, useless: &HashSet<u32>) -> bool {
        if useless.is_empty() {
            return false;
        }
        let Some((node, (_, goal))) = self.node(number).zip(self.growth(number)) else {
            return false;
        };
        let mut grown = node.clone();
        grown.set_size((self.state.cpu, self.state.memory), goal);
        let state = self.state.classes.number(&grown, self.source);
        useless.contains(&state)
    }

    /// Picks among pods as they would be at the size that they can grow to, and asks the picked
    /// ones to grow. Returns the pods that were picked, and those that were not, whose states are added
    /// to `useless`.
    fn pick_growing(
        &mut self,
        growing: &[NodeIndex],
        useless: &mut HashSet<u32>,
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let originals = growing
            .iter()
            .map(|number| self.changed.get(number).cloned());
        let originals: Vec<_> = originals.collect();
        for number in growing {
            if let Some((_, goal)) = self.growth(*number) {
                self.change(*number, |node, names| node.set_size(names, goal));
            }
        }
        let (picked, rest) = self.pick_existing(Some(PlacementStep::Grow), growing);
        for number in &rest {
            if let Some(node) = self.changed.get(number) {
                useless.insert(self.state.classes.number(node, self.source));
            }
        }
        let grown: HashSet<NodeIndex> = picked.iter().copied().collect();
        // Only a pod that is asked to grow counts at the size to which it can grow.
        for (number, node) in growing.iter().zip(originals) {
            if !grown.contains(number) {
                match node {
                    Some(node) => self.changed.insert(*number, node),
                    None => self.changed.remove(number),
                };
            }
        }
        for number in &picked {
            self.ask(*number);
        }
        (picked, rest)
    }

    /// Asks a pod to grow: as far as that is of use, or as far as it may.
    fn ask(&mut self, number: NodeIndex) {
        let names = (self.state.cpu, self.state.memory);
        let sizes = self.node(number).zip(self.growth(number));
        let sizes = sizes.and_then(|(node, (from, most))| {
            let resize = node.resize.as_deref()?;
            // The work that runs in it and that was placed on it.
            let needed = (node.amounts.taken(names.0))
                .zip(node.amounts.taken(names.1))
                .filter(|_| self.rules == PackingRules::Steady);
            #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
            let needed = needed.map(|(cpu, memory)| Size {
                cpu,
                memory: memory.ceil() as i64,
            });
            let goal = needed.map_or(most, |needed| useful(from, most, resize.base, needed));
            Some((resize.kube_node, from, goal))
        });
        let Some((kube_node, from, goal)) = sizes else {
            return;
        };
        if let Some(at) = kube_node {
            self.headrooms[at].give(from, goal);
        }
        self.change(number, |node, names| {
            if let Some(resize) = &mut node.resize {
                resize.ask(Some(goal.cpu), Some(goal.memory));
            }
            node.set_size(names, goal);
        });
    }
}

/// The part of `most` that is of use to a pod that needs `needed` for what runs in it and what was
/// placed on it, and that has `from`: all of the memory, and as many cores as such work can use
/// beside each other in that memory, in whole multiples of the base size, so that what stays free
/// on the Kubernetes node is of use to other pods.
fn useful(from: Size, most: Size, base: Size, needed: Size) -> Size {
    let step = base.cpu.ceil();
    if needed.memory <= 0 || step <= 0.0 {
        return most;
    }
    #[expect(clippy::cast_precision_loss, reason = "how often work fits in a pod")]
    let times = (most.memory / needed.memory).max(1) as f64;
    let cpu = ((needed.cpu * times - SAME) / step).ceil() * step;
    Size {
        cpu: cpu.max(from.cpu).min(most.cpu),
        memory: most.memory,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "whole numbers")]

    use super::*;

    const GI: i64 = 1 << 30;

    /// The cores that a pod of 2 CPUs and 4 GiB gets.
    fn cores(most: (f64, i64), needed: (f64, i64)) -> f64 {
        let size = |(cpu, memory): (f64, i64)| Size {
            cpu,
            memory: memory * GI,
        };
        let base = size((2.0, 4));
        let found = useful(base, size(most), base, size(needed));
        assert_eq!(found.memory, most.1 * GI);
        found.cpu
    }

    #[test]
    fn no_core_stands_idle_beside_memory_that_is_taken() {
        assert_eq!(cores((16.0, 32), (8.0, 30)), 8.0);
        assert_eq!(cores((16.0, 64), (8.0, 30)), 16.0);
        assert_eq!(cores((16.0, 64), (3.0, 40)), 4.0);
        assert_eq!(cores((16.0, 32), (1.0, 10)), 4.0);
    }

    #[test]
    fn work_that_leaves_memory_may_be_joined_by_more() {
        assert_eq!(cores((8.0, 32), (1.0, 0)), 8.0);
        assert_eq!(cores((8.0, 32), (1.0, 2)), 8.0);
    }

    #[test]
    fn no_core_is_taken_away_and_none_given_above_the_limit() {
        assert_eq!(cores((2.0, 32), (1.0, 32)), 2.0);
        assert_eq!(cores((7.0, 32), (7.0, 32)), 7.0);
    }
}
