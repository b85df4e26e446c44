//! From rows to nodes, with their faults, resizes and sizes.

use crate::hash::HashMap;
use crate::plan::demand::names::Name;
use crate::plan::growth::headroom::NodeHeadroom;
use crate::plan::growth::in_use::{InUse, logical_use};
use crate::plan::growth::pod_size::{self, Around};
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{ByGroup, KubeNodeIndex, List, NodeIndex};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::{CountedAmounts, Fate, PlannedNode, SizeNames};
use crate::plan::nodes::raylet;
use crate::plan::nodes::rows::{Leftovers, NodeRow};
use crate::plan::nodes::view::NodeReader;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::problem::{Problem, ProblemEffect, ProblemPlace};
use crate::plan::outcome::problem_reason::ProblemReason;
use crate::plan::outcome::unmet::CountedAtBase;
use crate::plan::situation::Situation;
use crate::plan::strategy::Strategy;
use crate::snapshot::group_spec::GroupSpec;

/// Seconds without a Kubernetes node after which a pod counts at its base size. Until then, a node
/// autoscaler may bring a node on which it can grow.
const UNSCHEDULABLE_FOR_LONG_S: f64 = 60.0;

/// Turns rows into planned nodes.
pub(crate) struct NodeAssembly<'d> {
    pub(crate) situation: &'d Situation<'d>,
    pub(crate) config: &'d ClusterConfig,
    pub(crate) reader: &'d NodeReader<'d>,
    /// The Kubernetes nodes, by name.
    pub(crate) kube_nodes: &'d HashMap<String, KubeNodeIndex>,
    /// The pods that are deleted, so that others are made, and why.
    pub(crate) given_up: &'d HashMap<&'d str, RemovalCause>,
    pub(crate) list: List<NodeIndex, PlannedNode>,
}

impl NodeAssembly<'_> {
    /// Adds the node of a row, or a problem that says why not.
    pub(crate) fn add(&mut self, row: &NodeRow<'_>, problems: &mut Vec<Problem>) {
        let is_rayfit = self.situation.is_rayfit();
        let group = self.config.number(row.group);
        let group = group.and_then(|number| Some((number, self.config.groups.get(number)?)));
        let pod = row.pod.map_or("", |pod| pod.name);
        if group.is_none() {
            let runs = row.stage == Stage::Running;
            if runs && !is_rayfit {
                problems.push(Problem {
                    at: ProblemPlace::Pod(pod.to_owned()),
                    reason: ProblemReason::UnknownGroup(row.group.to_owned()),
                    effect: ProblemEffect::LeftAsItIs,
                });
            }
            if !runs || !is_rayfit || !self.config.has_lost(row.group) {
                return;
            }
        }
        let mut node = self.reader.node(row, group);
        // On such a node Ray's assertions fail, which aborts Ray's loop.
        let fault = node.amounts.iter().find_map(|amount| {
            let total = amount.total.filter(|total| *total != 0.0)?;
            let used = (total - amount.free[CountedAmounts::Free as usize]?) / total;
            (!(0.0..=1.0).contains(&used)).then_some(amount.name)
        });
        if let Some(name) = fault {
            let name = self.reader.names.text(name).to_owned();
            problems.push(Problem {
                at: ProblemPlace::RayNode {
                    pod: pod.to_owned(),
                },
                reason: ProblemReason::FreeAboveTotal(name),
                effect: if is_rayfit {
                    ProblemEffect::CountedUpToTotal
                } else {
                    ProblemEffect::TakesNothing
                },
            });
        }
        if is_rayfit {
            self.correct(&mut node, row);
        }
        if let Some(pod) = row.pod {
            let age = (self.situation.now - pod.created().unwrap_or(self.situation.now)).max(0.0);
            node.unschedulable_s = pod.is_unschedulable().then_some(age);
            node.gated_s = pod.is_gated().then_some(age);
        }
        match self.resize(row, &node) {
            Ok(resize) => node.resize = resize.map(Box::new),
            Err(fault) => problems.push(Problem {
                at: ProblemPlace::Pod(pod.to_owned()),
                reason: fault,
                effect: ProblemEffect::NotGrown,
            }),
        }
        if is_rayfit {
            let names = self.reader.names;
            raylet::mend(&mut node, (names.get("CPU"), names.get("memory")));
        }
        node.born = self.list.upcoming(0);
        self.list.push(node);
    }

    /// Counts what is free between zero and the total amount, and marks a node that goes in any case.
    fn correct(&self, node: &mut PlannedNode, row: &NodeRow<'_>) {
        for amount in &mut node.amounts {
            let Some(total) = amount.total else { continue };
            for free in &mut amount.free {
                // Ray leaves a resource of which nothing is listed as free out of its scores, so that a
                // node scores less the moment the resource is used up.
                let listed = free.unwrap_or(0.0);
                // `clamp` panics at a total below zero.
                *free = Some(if total > 0.0 {
                    listed.clamp(0.0, total)
                } else {
                    listed
                });
            }
        }
        let pod = row.pod.map_or("", |pod| pod.name);
        // While the GCS restarts it reports no Ray nodes, so a pod that runs may have work.
        let is_pending = row.pod.is_some_and(|pod| pod.phase == Some("Pending"));
        let begins = row.stage == Stage::Allocated && is_pending;
        let departs = self.situation.departures.contains_key(pod) && !node.head;
        if node.group().is_none() {
            node.fate = Fate::Remove(RemovalCause::GroupGone);
        } else if let Some(cause) = self.given_up.get(pod) {
            node.fate = Fate::Remove(*cause);
        } else if departs && (begins || row.stage == Stage::Running) {
            node.fate = Fate::Remove(RemovalCause::NodeLeaves);
        } else if row.stage == Stage::Stopping {
            // Ray counts such a node as an empty one that is about to start, and places demand on what
            // goes.
            node.fate = Fate::Remove(RemovalCause::StopRequested);
        }
    }

    fn resize(
        &self,
        row: &NodeRow<'_>,
        node: &PlannedNode,
    ) -> Result<Option<Resize>, ProblemReason> {
        let group = node.group().and_then(|group| self.config.groups.get(group));
        let Some((pod, group)) = row.pod.zip(group) else {
            return Ok(None);
        };
        let Some((limits, base)) = group.resize_limits.zip(group.base) else {
            return Ok(None);
        };
        let in_use = row.ray.and_then(|ray| ray.memory_in_use);
        let in_use = in_use.filter(|_| self.situation.settings.follow_memory);
        let memory = self.situation.history().resizes.get(pod.name);
        let around = Around {
            now: self.situation.now,
            strategy: self.situation.settings.strategy,
            timeout_s: group.resize_timeout_s,
            deferred_s: self.situation.settings.deferred_s,
            memory: memory.copied().unwrap_or_default(),
            used: row.ray.map(logical_use).unwrap_or_default(),
            in_use: in_use.and_then(|report| InUse::of(report, self.situation.now)),
        };
        let mut resize = pod_size::resize(pod, limits, base, around)?;
        // The note may name the raylet that ran before the container was started again.
        if let Some(id) = node.ray_id() {
            resize.note.raylet_id = Some(id.to_owned());
        }
        resize.monitored = group.memory_monitor;
        resize.kube_node = pod.node.and_then(|node| self.kube_nodes.get(node)).copied();
        Ok(Some(resize))
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
    let count = |group: &GroupSpec| draining.get(group.name.as_str()).copied().unwrap_or(0);
    config.groups.map(count)
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
    names: SizeNames,
    templates: &mut ByGroup<PlannedNode>,
    nodes: &mut List<NodeIndex, PlannedNode>,
    headrooms: &List<KubeNodeIndex, NodeHeadroom>,
    strategy: Strategy,
) -> ByGroup<Option<CountedAtBase>> {
    let (Some(cpu), Some(memory)) = names else {
        return at_base;
    };
    let waits_for_long = |node: &PlannedNode| {
        let seconds = node.unschedulable_s;
        seconds.is_some_and(|seconds| seconds >= UNSCHEDULABLE_FOR_LONG_S)
    };
    let group = |node: &PlannedNode| config.groups.get(node.group()?);
    if strategy.is_rayfit() {
        // The planner does not see what all pods on all nodes take. Where the scheduler has found
        // no room for long, what comes free is hardly more than the pod asks for, so it and new
        // pods of its group count at their base sizes.
        for node in nodes.iter().filter(|node| waits_for_long(node)) {
            let grows = group(node).is_some_and(|group| group.resize_limits.is_some());
            let at_base = node.group().and_then(|group| at_base.get_mut(group));
            if let Some(at_base) = at_base.filter(|_| grows) {
                at_base.get_or_insert(CountedAtBase::Unschedulable);
            }
        }
    }
    let total = |node: &PlannedNode, name| node.total(name).unwrap_or(0.0);
    // Pods on one Kubernetes node grow one after the other, so each leaves less to the next.
    let mut headroom_rest: HashMap<KubeNodeIndex, NodeHeadroom> = HashMap::default();
    let mut at_resize_limits = |node: &mut PlannedNode| {
        if let Some(limits) = group(node).and_then(|group| group.resize_limits) {
            count_at_limits(node, limits, (cpu, memory), headrooms, &mut headroom_rest);
        }
    };
    for (template, at_base) in templates.iter_mut().zip(at_base.iter()) {
        if at_base.is_none() {
            at_resize_limits(template);
        }
    }
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
        let resize = node.resize.as_deref();
        if waits_for_long(node) || node.stage() != Stage::Running && stays_small {
            // It may have been made larger than its template.
            if let Some(made) = resize.map(|resize| resize.desired) {
                raise(node, (cpu, memory), made);
            }
        } else if node.stage() != Stage::Running {
            at_resize_limits(node);
        } else if let Some(resize) = resize.filter(|resize| resize.is_in_progress()) {
            // The raylet gives up CPU and memory before its pod does, so what is to go takes no
            // more work.
            let desired = resize.desired;
            node.set_total(cpu, desired.cpu.min(total(node, cpu)));
            node.set_total(memory, counted(desired.memory).min(total(node, memory)));
        }
    }
    at_base
}

/// Counts a node at the limits up to which it may grow, as far as the headroom of its Kubernetes node allows, which
/// is taken from what is `left` of it.
fn count_at_limits(
    node: &mut PlannedNode,
    limits: Size,
    names: (Name, Name),
    headrooms: &List<KubeNodeIndex, NodeHeadroom>,
    headroom_rest: &mut HashMap<KubeNodeIndex, NodeHeadroom>,
) {
    node.at_resize_limits = true;
    let mut most = limits;
    let resize = node.resize.as_deref();
    let current = resize.map_or(Size::default(), |resize| resize.current);
    if let Some(kube_node) = resize.and_then(|resize| resize.kube_node)
        && let Some(headroom) = headrooms.get(kube_node)
    {
        let headroom = headroom_rest
            .entry(kube_node)
            .or_insert_with(|| headroom.clone());
        most = headroom.bound(current, most);
        headroom.give(current, most);
    }
    // Limits may be below what a pod has or starts with, since they can be written at any time.
    // It does not shrink for that.
    raise(node, names, most.max(current));
}

/// Counts a node with no less than a size.
fn raise(node: &mut PlannedNode, (cpu, memory): (Name, Name), least: Size) {
    for (name, least) in [(cpu, least.cpu), (memory, counted(least.memory))] {
        let total = node.total(name).unwrap_or(0.0);
        node.set_total(name, least.max(total));
    }
}
