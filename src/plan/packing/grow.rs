//! The step of packing in which pods grow in place.

use crate::hash::HashSet;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::resize::{Resize, ResizeProgress};
use crate::plan::growth::size::Size;
use crate::plan::growth::useful::useful;
use crate::plan::list::NodeIndex;
use crate::plan::nodes::node::{Placement, PlannedNode, SizeNames};
use crate::plan::outcome::step::PlacementStep;
use crate::plan::packing::pack::{Packing, StepNodes};
use crate::plan::packing::placing::show_size;

impl Packing<'_> {
    /// Lets pods grow towards their resize limits for the requests that are left. Every pod that
    /// was considered moves to the end of the order: first the pods that were picked, then the
    /// others.
    pub(crate) fn grow(&mut self, order: Vec<NodeIndex>) -> Vec<NodeIndex> {
        let (mut growing, mut order): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|number| self.can_grow(*number));
        let mut unpicked = Vec::new();
        // The states, as they would be when grown, of pods that served nothing.
        let mut useless = HashSet::default();
        while !growing.is_empty() && self.batches.iter().any(|batch| batch.count > 0) {
            if !self.state.work.spend(growing.len()) {
                break;
            }
            let (batch, later) = self.one_per_kube_node(growing, &useless, &mut unpicked);
            let (picked, rest) = self.pick_growing(&batch, &mut useless);
            order.extend(picked);
            // Requests and headroom only become less, so a pod that none of them picks now is not tried
            // again, and none that is equal to it. The others on its Kubernetes node are: they may have
            // what it lacks.
            unpicked.extend(rest);
            let (can_grow, others): (Vec<_>, Vec<_>) =
                later.into_iter().partition(|number| self.can_grow(*number));
            unpicked.extend(others);
            growing = can_grow;
        }
        order.extend(unpicked);
        order.extend(growing);
        order
    }

    fn can_grow(&self, number: NodeIndex) -> bool {
        let Some(node) = self.node(number) else {
            return false;
        };
        node.resize.as_deref().is_some_and(|resize| {
            let (from, goal) = self.span(node, resize);
            let may = resize.can_grow() || self.has_grown(node, resize);
            may && (self.room(resize).is_none() || from.is_below(goal))
        })
    }

    /// Whether demand that was served before in this round has made the pod grow, so that it may
    /// grow further.
    fn has_grown(&self, node: &PlannedNode, resize: &Resize) -> bool {
        let grew = |take: &Placement| take.step == PlacementStep::Grow;
        let is_asked = resize.progress == ResizeProgress::New;
        // With Ray's strategy the pod has grown as far as it may.
        self.state.strategy.is_rayfit() && is_asked && node.takes.iter().any(grew)
    }

    /// The size that a pod has, or was asked to have in this round, and the size to which it may grow.
    fn span(&self, node: &PlannedNode, resize: &Resize) -> (Size, Size) {
        let room = self.room(resize);
        if self.has_grown(node, resize) {
            (resize.has(), resize.most(room))
        } else {
            (resize.current, resize.goal(room))
        }
    }

    /// How far a pod may grow: what its Kubernetes node has left, if that is known.
    fn room(&self, resize: &Resize) -> Option<&NodeHeadroom> {
        resize.headroom(&self.headrooms)
    }

    /// Takes one pod of each Kubernetes node, and leaves the others for later. Those that are known
    /// to serve nothing go to `unpicked`.
    fn one_per_kube_node(
        &mut self,
        growing: Vec<NodeIndex>,
        useless: &HashSet<u32>,
        unpicked: &mut Vec<NodeIndex>,
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let mut seen = HashSet::default();
        let (mut batch, mut later) = (Vec::new(), Vec::new());
        for number in growing {
            let resize = self.node(number).and_then(|node| node.resize.as_deref());
            let headroom = resize.filter(|resize| resize.headroom(&self.headrooms).is_some());
            // Each pod takes headroom from the next one on its Kubernetes node. Where none is known,
            // nothing is taken.
            let place = headroom.map(|resize| resize.kube_node);
            if place.is_some_and(|place| seen.contains(&place)) {
                later.push(number);
            } else if self.is_one_of(number, useless) {
                unpicked.push(number);
            } else {
                seen.extend(place);
                batch.push(number);
            }
        }
        (batch, later)
    }

    /// Whether a pod would be in one of these states if it grew as far as it can.
    fn is_one_of(&mut self, number: NodeIndex, states: &HashSet<u32>) -> bool {
        if states.is_empty() {
            return false;
        }
        let Some(node) = self.node(number) else {
            return false;
        };
        let Some((_, goal)) = node.resize.as_deref().map(|resize| self.span(node, resize)) else {
            return false;
        };
        let mut grown = node.clone();
        show_size(&mut grown, (self.state.cpu, self.state.memory), |_| goal);
        let state = self.state.classes.number(&grown, self.source);
        states.contains(&state)
    }

    /// Picks among pods as they would be at the size that they can grow to, and asks the picked
    /// ones to grow. Returns the pods that were picked, and those that were not, whose states are added
    /// to `useless`.
    fn pick_growing(
        &mut self,
        growing: &[NodeIndex],
        useless: &mut HashSet<u32>,
    ) -> (Vec<NodeIndex>, Vec<NodeIndex>) {
        let before: Vec<(NodeIndex, Option<PlannedNode>)> = growing
            .iter()
            .map(|number| (*number, self.changed.get(number).cloned()))
            .collect();
        for number in growing {
            let span = |node: &PlannedNode| Some(self.span(node, node.resize.as_deref()?));
            let Some((_, goal)) = self.node(*number).and_then(span) else {
                continue;
            };
            self.change(*number, |node, names| show_size(node, names, |_| goal));
        }
        let (picked, rest) = self.pick_existing(StepNodes::Only(PlacementStep::Grow), growing);
        for number in &rest {
            if let Some(node) = self.changed.get(number) {
                useless.insert(self.state.classes.number(node, self.source));
            }
        }
        let grown: HashSet<NodeIndex> = picked.iter().copied().collect();
        // Only a pod that is asked to grow counts at the size to which it can grow.
        for (number, node) in before
            .into_iter()
            .filter(|(number, _)| !grown.contains(number))
        {
            match node {
                Some(node) => self.changed.insert(number, node),
                None => self.changed.remove(&number),
            };
        }
        for number in &picked {
            self.ask(*number);
        }
        (picked, rest)
    }

    /// Asks a pod to grow: as far as that is of use, or with Ray's strategy as far as it may.
    fn ask(&mut self, number: NodeIndex) {
        let names = (self.state.cpu, self.state.memory);
        let is_rayfit = self.state.strategy.is_rayfit();
        let asked = self.node(number).and_then(|node| {
            let resize = node.resize.as_deref()?;
            let (from, most) = self.span(node, resize);
            let needed = needed(node, names).filter(|_| is_rayfit);
            let goal = needed.map_or(most, |needed| useful(from, most, resize.base, needed));
            Some((resize.kube_node, from, goal))
        });
        let Some((kube_node, from, goal)) = asked else {
            return;
        };
        if let Some(headroom) = kube_node.and_then(|at| self.headrooms.get_mut(at)) {
            headroom.give(from, goal);
        }
        self.change(number, |node, names| {
            if let Some(resize) = &mut node.resize {
                resize.ask(Some(goal.cpu), Some(goal.memory));
            }
            if is_rayfit {
                show_size(node, names, |_| goal);
            }
        });
    }
}

/// How much of its CPU and memory a node needs for what runs in it and what was placed on it.
fn needed(node: &PlannedNode, names: SizeNames) -> Option<Size> {
    #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
    Some(Size {
        cpu: node.taken(names.0?)?,
        memory: node.taken(names.1?)?.ceil() as i64,
    })
}
