//! From rows to nodes, with their faults, resizes and sizes.

use std::collections::BTreeMap;

use crate::hash::HashMap;
use crate::plan::demand::names::{Name, Names};
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::in_use::{InUse, asked};
use crate::plan::growth::pod_size;
use crate::plan::growth::pod_size::Around;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::counted;
use crate::plan::list::{ByGroup, GroupIndex, KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::group::{ClusterConfig, GroupConfig};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, Fate, NodeResource, PlannedNode};
use crate::plan::nodes::raylet;
use crate::plan::nodes::rows::{Leftovers, Row};
use crate::plan::nodes::view::NodeReader;
use crate::plan::outcome::cause::{Departure, RemovalCause};
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::{ProblemReason, ResizeError};
use crate::plan::outcome::unmet::CountedAtBase;
use crate::plan::strategy::Strategy;
use crate::snapshot::History;

/// After how many seconds without a Kubernetes node a pod counts at its base size. Until then, a
/// node autoscaler may bring a node on which it can grow.
const UNSCHEDULABLE_FOR_LONG_S: f64 = 60.0;

/// Turns rows into planned nodes.
pub(crate) struct NodeAssembly<'d> {
    pub(crate) history: &'d History,
    pub(crate) strategy: Strategy,
    /// For how many seconds a deferred resize is left as it is.
    pub(crate) deferred_s: f64,
    /// Whether the memory that is really in use counts.
    pub(crate) follows_memory: bool,
    pub(crate) config: &'d ClusterConfig,
    pub(crate) reader: &'d NodeReader<'d>,
    /// The Kubernetes nodes, by name.
    pub(crate) kube_nodes: &'d HashMap<String, KubeNodeIndex>,
    /// The pods that are deleted, so that others are made, and why.
    pub(crate) given_up: &'d HashMap<&'d str, RemovalCause>,
    /// The pods that are about to leave with their Kubernetes node, by name.
    pub(crate) departures: &'d BTreeMap<String, Departure>,
    pub(crate) now: f64,
    pub(crate) list: List<NodeIndex, PlannedNode>,
}

impl NodeAssembly<'_> {
    /// Adds the node of a row, or a problem that says why not.
    pub(crate) fn add(&mut self, row: &Row<'_>, problems: &mut Vec<Problem>) {
        let number = self.config.number(row.group);
        let group = number.and_then(|number| Some((number, self.config.groups.get(number)?)));
        let strategy = self.strategy;
        if group.is_none() && row.stage == Stage::Running && !strategy.is_rayfit() {
            problems.push(Problem {
                at: ProblemPlace::Pod(row.pod.map_or("", |pod| pod.name).to_owned()),
                reason: ProblemReason::UnknownGroup(row.group.to_owned()),
                effect: ProblemEffect::LeftAsItIs,
            });
        }
        let drains =
            strategy.is_rayfit() && row.stage == Stage::Running && self.config.has_lost(row.group);
        if group.is_none() && !drains {
            return;
        }
        let mut node = self.reader.node(row, group);
        let pod = row.pod.map_or("", |pod| pod.name);
        if let Some(reason) = fault(&node, self.reader.names) {
            let effect = if strategy.is_rayfit() {
                node.amounts.iter_mut().for_each(NodeResource::bound);
                ProblemEffect::CountedUpToTotal
            } else {
                ProblemEffect::TakesNothing
            };
            problems.push(Problem {
                at: ProblemPlace::RayNode {
                    pod: pod.to_owned(),
                },
                reason,
                effect,
            });
        }
        if strategy.is_rayfit() {
            node.amounts.iter_mut().for_each(NodeResource::fill);
        }
        // Ray counts such a node as an empty one that is about to start, and places demand on what
        // goes.
        if strategy.is_rayfit() && row.stage == Stage::Stopping {
            node.fate = Fate::Remove(RemovalCause::StopRequested);
        }
        let departs = self.departures.contains_key(pod) && !node.head;
        // While the GCS restarts it reports no Ray nodes, so a pod that runs may have work.
        let is_pending = row.pod.is_some_and(|pod| pod.phase == Some("Pending"));
        let begins = row.stage == Stage::Allocated && is_pending;
        if departs && (begins || row.stage == Stage::Running) {
            node.fate = Fate::Remove(RemovalCause::NodeLeaves);
        }
        if let Some(cause) = self.given_up.get(pod) {
            node.fate = Fate::Remove(*cause);
        }
        if group.is_none() {
            node.fate = Fate::Remove(RemovalCause::GroupGone);
        }
        if let Some(pod) = row.pod {
            let age = (self.now - pod.created().unwrap_or(self.now)).max(0.0);
            node.unschedulable_s = pod.is_unschedulable().then_some(age);
            node.gated_s = pod.is_gated().then_some(age);
        }
        match self.resize(row, &node) {
            Ok(resize) => node.resize = resize.map(Box::new),
            Err(fault) => problems.push(Problem {
                at: ProblemPlace::Pod(pod.to_owned()),
                reason: fault.into(),
                effect: ProblemEffect::NotGrown,
            }),
        }
        if strategy.is_rayfit() {
            let names = self.reader.names;
            raylet::mend(&mut node, names.get("CPU"), names.get("memory"));
        }
        node.born = self.list.upcoming(0);
        self.list.push(node);
    }

    fn resize(&self, row: &Row<'_>, node: &PlannedNode) -> Result<Option<Resize>, ResizeError> {
        let group = node.group().and_then(|group| self.config.groups.get(group));
        let (resize_limits, base) = (
            group.and_then(|group| group.resize_limits),
            group.and_then(|group| group.base),
        );
        let (Some(pod), Some(resize_limits), Some(base)) = (row.pod, resize_limits, base) else {
            return Ok(None);
        };
        let memory = self
            .history
            .resizes
            .get(pod.name)
            .copied()
            .unwrap_or_default();
        let around = Around {
            now: self.now,
            strategy: self.strategy,
            deferred_s: self.deferred_s,
            memory,
            used: row.ray.map(asked).unwrap_or_default(),
            in_use: self.in_use(row),
        };
        let mut resize = pod_size::resize(pod, resize_limits, base, around)?;
        // The note may name the raylet that ran before the container was started again.
        if let Some(id) = node.ray_id() {
            resize.raylet = Some(id.to_owned());
        }
        resize.monitored = group.is_some_and(|group| group.memory_monitor);
        resize.kube_node = pod.node.and_then(|node| self.kube_nodes.get(node)).copied();
        Ok(Some(resize))
    }

    fn in_use(&self, row: &Row<'_>) -> Option<InUse> {
        let told = row.ray.and_then(|ray| ray.memory_in_use);
        InUse::of(told.filter(|_| self.follows_memory)?, self.now)
    }
}

/// By group, how many pods are draining, or hang though they were to be gone, and still count towards their
/// group's maximum.
pub(crate) fn draining(config: &ClusterConfig, leftovers: &Leftovers<'_>) -> ByGroup<u64> {
    let mut draining: HashMap<&str, u64> = HashMap::default();
    for pod in leftovers.draining.iter().chain(leftovers.hanging.pods()) {
        // KubeRay counts no pod that is listed for deletion, so that one takes no place any more.
        if !config.is_listed(pod.group, pod.name) {
            *draining.entry(pod.group).or_default() += 1;
        }
    }
    let count = |group: &GroupConfig| draining.get(group.name.as_str()).copied().unwrap_or(0);
    config.groups.map(count)
}

/// The fault of a node on which Ray's assertions fail, which aborts Ray's loop.
fn fault(node: &PlannedNode, names: &Names) -> Option<ProblemReason> {
    node.amounts.iter().find_map(|amount| {
        let total = amount.total.filter(|total| *total != 0.0)?;
        let used = (total - amount.free[CountedAmounts::Free as usize]?) / total;
        let name = names.text(amount.name);
        (!(0.0..=1.0).contains(&used)).then(|| ProblemReason::FreeAboveTotal(name.to_owned()))
    })
}

/// Counts new nodes of groups that may grow at their resize limits. With the improved order it does
/// so with pending nodes too, as far as the Kubernetes node has headroom on which the pod is, and
/// counts nodes that shrink as if they had shrunk already. `at_base` says
/// which groups are in growth back-off, so that their new nodes count at their base size.
///
/// Returns why new nodes of a group count at their base size, if they do.
pub(crate) fn size(
    config: &ClusterConfig,
    mut at_base: ByGroup<Option<CountedAtBase>>,
    (cpu, memory): (Option<Name>, Option<Name>),
    templates: &mut ByGroup<PlannedNode>,
    nodes: &mut List<NodeIndex, PlannedNode>,
    headrooms: &List<KubeNodeIndex, NodeHeadroom>,
    strategy: Strategy,
) -> ByGroup<Option<CountedAtBase>> {
    let (Some(cpu), Some(memory)) = (cpu, memory) else {
        return at_base;
    };
    if strategy.is_rayfit() {
        // The planner does not see what all pods on all nodes take. Where the scheduler has found
        // no room for long, what comes free is hardly more than the pod asks for, so it and new
        // pods of its group count at their base sizes.
        for node in nodes.iter().filter(|node| waits_for_long(node)) {
            let limits = |group: GroupIndex| config.groups.get(group)?.resize_limits;
            let grows = node.group().filter(|group| limits(*group).is_some());
            if let Some(group) = grows.and_then(|group| at_base.get_mut(group)) {
                group.get_or_insert(CountedAtBase::Unschedulable);
            }
        }
    }
    let total = |node: &PlannedNode, name| node.total(name).unwrap_or(0.0);
    let group = |node: &PlannedNode| config.groups.get(node.group()?);
    // Pods on one Kubernetes node grow one after the other, so each leaves less to the next.
    let mut left: HashMap<KubeNodeIndex, NodeHeadroom> = HashMap::default();
    let mut at_resize_limits = |node: &mut PlannedNode| {
        let Some(mut resize_limits) = group(node).and_then(|group| group.resize_limits) else {
            return;
        };
        node.at_resize_limits = true;
        if let Some(resize) = &node.resize
            && let Some(kube_node) = resize.kube_node
            && let Some(headroom) = headrooms.get(kube_node)
        {
            let headroom = left.entry(kube_node).or_insert_with(|| headroom.clone());
            let goal = headroom.bound(resize.current, resize_limits.size());
            headroom.give(resize.current, goal);
            resize_limits.cpu = goal.cpu;
            resize_limits.memory = goal.memory;
        }
        // Limits may be below what a pod has or starts with, since they can be written at any time.
        // It does not shrink for that.
        let grown = node.resize.as_deref().map(|resize| resize.current);
        let (more, most) = grown.map_or((0.0, 0), |size| (size.cpu, size.memory));
        node.set_total(cpu, resize_limits.cpu.max(more).max(total(node, cpu)));
        let most = counted(resize_limits.memory.max(most));
        node.set_total(memory, most.max(total(node, memory)));
    };
    let at_limits = templates.iter_mut().zip(at_base.iter());
    at_limits
        .filter(|(_, at_base)| at_base.is_none())
        .for_each(|(template, _)| at_resize_limits(template));
    if !strategy.is_rayfit() {
        return at_base;
    }
    for node in nodes.iter_mut() {
        let of_group = node.group().and_then(|group| *at_base.get(group)?);
        let has_node = (node.resize.as_deref()).is_some_and(|resize| resize.kube_node.is_some());
        let finds_none = node.unschedulable_s.is_some();
        let stays_small = match of_group {
            Some(CountedAtBase::GrowthBackoff { .. }) => finds_none,
            Some(CountedAtBase::FullNode { .. }) => finds_none || !has_node,
            Some(CountedAtBase::Unschedulable) | None => false,
        };
        if waits_for_long(node) || node.stage() != Stage::Running && stays_small {
            // It may have been made larger than its template.
            if let Some(made) = node.resize.as_deref().map(|resize| resize.desired) {
                node.set_total(cpu, made.cpu.max(total(node, cpu)));
                node.set_total(memory, counted(made.memory).max(total(node, memory)));
            }
        } else if node.stage() != Stage::Running {
            at_resize_limits(node);
        } else if let Some(desired) = node
            .resize
            .as_ref()
            .filter(|r| r.is_in_progress())
            .map(|r| r.desired)
        {
            // The raylet gives up CPU and memory before its pod does, so what is to go takes no
            // more work.
            node.set_total(cpu, desired.cpu.min(total(node, cpu)));
            node.set_total(memory, counted(desired.memory).min(total(node, memory)));
        }
    }
    at_base
}

fn waits_for_long(node: &PlannedNode) -> bool {
    let seconds = node.unschedulable_s;
    seconds.is_some_and(|seconds| seconds >= UNSCHEDULABLE_FOR_LONG_S)
}
