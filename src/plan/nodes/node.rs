//! A Ray node as packing sees it: it exists, it is pending, or it is only considered.

use crate::hash::HashMap;
use crate::plan::demand::names::Name;
use crate::plan::demand::shape::ShapeId;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{DemandIndex, GroupIndex, NodeIndex};
use crate::plan::nodes::life::{NodeLife, RayInPod, Stage};
use crate::plan::nodes::standby_role::{KeptReason, StandbyRole};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::step::PlacementStep;

/// The amounts of a node that count for the demand that is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedAmounts {
    /// The amounts that are free now: for pending tasks, actors and placement groups.
    Free = 0,
    /// The total amounts: for `request_resources()`.
    Total = 1,
}

/// The group of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeGroup {
    /// A group of the RayCluster, by its number.
    Known(GroupIndex),
    /// A group that is gone, by its name.
    Gone(String),
}

/// The decision about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The node stays.
    Stay,
    /// The node is to be launched.
    Launch,
    /// The node is to be removed.
    Remove(RemovalCause),
    /// The node is to be removed, and waits for the other hosts of its replica, or until KubeRay acts
    /// on the cluster again.
    Hold(RemovalCause),
}

/// One resource of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NodeResource {
    pub(crate) name: Name,
    /// The total amount; `None` if the resource is not listed.
    pub(crate) total: Option<f64>,
    /// The free amount, by [`CountedAmounts`]; `None` if the resource is not listed.
    pub(crate) free: [Option<f64>; 2],
}

/// Units of a demand that were placed on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The demand, by its number in the report.
    pub(crate) demand: DemandIndex,
    /// The number of units placed.
    pub(crate) count: u64,
    /// The step of packing in which they were placed.
    pub(crate) step: PlacementStep,
}

/// The names of the resources CPU and memory, if anything names them.
pub(crate) type SizeNames = (Option<Name>, Option<Name>);

/// The prospect that a pending pod starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartProspect {
    /// It is about to, or runs.
    Expected,
    /// It would not start now.
    Blocked,
    /// It has not started in time, so no demand counts on it.
    Overdue,
}

/// A Ray node, or several equal ones, with what packing and resizing change of it.
#[derive(Debug, Clone)]
pub(crate) struct PlannedNode {
    pub(crate) group: NodeGroup,
    pub(crate) head: bool,
    pub(crate) life: NodeLife,
    pub(crate) fate: Fate,
    /// Milliseconds for which Ray has not used it, or for which no demand has needed it while it
    /// was pending.
    pub(crate) idle_ms: i64,
    /// The resources that any request names, CPU, memory, and the resources in use.
    pub(crate) amounts: Vec<NodeResource>,
    /// The number of its further resources. They are all free and no request names them, so they
    /// only weigh in means.
    pub(crate) untouched: u32,
    /// The labels that any request names.
    pub(crate) labels: Vec<(Name, Name)>,
    /// The distinct shapes that were placed on it, by source, in the order in which each came
    /// first.
    pub(crate) placed: [Vec<ShapeId>; 2],
    pub(crate) takes: Vec<Placement>,
    /// Its in-place resize, if the pods of its group may grow.
    // In a box, because most nodes have none, and packing copies nodes.
    pub(crate) resize: Option<Box<Resize>>,
    /// Seconds for which its pod has been there without a Kubernetes node that has room for it,
    /// if the scheduler says so.
    pub(crate) unschedulable_s: Option<f64>,
    /// Seconds for which its pod has had scheduling gates, if it has.
    pub(crate) gated_s: Option<f64>,
    /// The node is counted at its resize limits, because a pod that starts can grow that
    /// far.
    pub(crate) at_resize_limits: bool,
    /// The prospect that its pod starts, if it is pending.
    pub(crate) start: StartProspect,
    /// Its node class, by source, while it is known.
    pub(crate) class: [Option<u32>; 2],
    /// The number of equal nodes that it stands for, which are next to each other in the list. It
    /// is more than one only while there is no pod: a launch of a million nodes is one entry here.
    pub(crate) count: u64,
    /// The number under which it, or the node that it was split off, was made.
    pub(crate) born: NodeIndex,
    /// Its role in standby.
    pub(crate) standby: StandbyRole,
    /// The reason why it is kept though it has been idle for long enough to go.
    pub(crate) keep_reason: Option<KeptReason>,
}

impl PlannedNode {
    /// True for a pending pod that would not start now.
    pub(crate) fn is_blocked(&self) -> bool {
        self.start != StartProspect::Expected
    }

    /// The stage of its life.
    pub(crate) fn stage(&self) -> Stage {
        self.life.stage()
    }

    /// The number of its group, unless the group is gone.
    pub(crate) fn group(&self) -> Option<GroupIndex> {
        match self.group {
            NodeGroup::Known(number) => Some(number),
            NodeGroup::Gone(_) => None,
        }
    }

    /// The name of its pod, if that exists.
    pub(crate) fn pod(&self) -> Option<&str> {
        match &self.life {
            NodeLife::Existing { pod, .. } => Some(pod),
            NodeLife::New | NodeLife::Queued | NodeLife::Requested { .. } => None,
        }
    }

    /// The replica that it is a host of, in a multi-host group.
    pub(crate) fn replica(&self) -> Option<&str> {
        match &self.life {
            NodeLife::Existing { replica, .. } => replica.as_deref(),
            NodeLife::New | NodeLife::Queued | NodeLife::Requested { .. } => None,
        }
    }

    /// The CPU and memory that its raylet reports, if Ray runs in it.
    pub(crate) fn raylet_size(&self) -> Option<(f64, f64)> {
        match self.life {
            NodeLife::Existing {
                ray: RayInPod::Running { cpu, memory, .. },
                ..
            } => Some((cpu, memory)),
            _ => None,
        }
    }

    /// The id of its Ray node, in hexadecimal, if Ray runs in it.
    pub(crate) fn ray_id(&self) -> Option<&str> {
        match &self.life {
            NodeLife::Existing {
                ray: RayInPod::Running { id, .. },
                ..
            } => id.as_deref(),
            _ => None,
        }
    }

    /// The cause for which it is to be removed, now or later.
    pub(crate) fn removal(&self) -> Option<RemovalCause> {
        match self.fate {
            Fate::Remove(cause) | Fate::Hold(cause) => Some(cause),
            Fate::Stay | Fate::Launch => None,
        }
    }

    /// The node's amounts of a resource, if it is listed.
    pub(crate) fn amount(&self, name: Name) -> Option<&NodeResource> {
        self.amounts.iter().find(|amount| amount.name == name)
    }

    /// The total amount of a resource, if it is listed.
    pub(crate) fn total(&self, name: Name) -> Option<f64> {
        self.amount(name)?.total
    }

    /// The amount of a resource that is in use, or was placed on the node.
    pub(crate) fn taken(&self, name: Name) -> Option<f64> {
        let amount = self.amount(name)?;
        let free = amount.free.into_iter().flatten().reduce(f64::min);
        amount.total.map(|total| total - free.unwrap_or(total))
    }

    /// Sets the total of a resource and changes its free amounts by the difference, never below
    /// zero.
    pub(crate) fn set_total(&mut self, name: Name, total: f64) {
        let at = self.amounts.iter().position(|amount| amount.name == name);
        let at = at.unwrap_or_else(|| {
            self.amounts.push(NodeResource {
                name,
                total: None,
                free: [None; 2],
            });
            self.amounts.len() - 1
        });
        if let Some(amount) = self.amounts.get_mut(at) {
            let delta = total - amount.total.unwrap_or(0.0);
            // Ray takes a suggestion below zero as it is, and strategy `Ray` does so, too.
            amount.total = Some(total.max(0.0));
            for free in &mut amount.free {
                *free = Some((free.unwrap_or(0.0) + delta).max(0.0));
            }
        }
        // At another size it may no longer be equal to the nodes of its class.
        self.class = [None; 2];
    }

    /// Counts the node at a size.
    pub(crate) fn set_size(&mut self, names: SizeNames, size: Size) {
        if let (Some(cpu), Some(memory)) = names {
            self.set_total(cpu, size.cpu);
            self.set_total(memory, counted(size.memory));
        }
    }

    /// True for a node that is counted at the size that a resize will give it, and that is above the
    /// size that it has.
    pub(crate) fn is_enlarged(&self, (cpu, memory): SizeNames) -> bool {
        let Some(resize) = self.resize.as_deref().filter(|r| r.is_in_progress()) else {
            return false;
        };
        let current = [resize.current.cpu, counted(resize.current.memory)];
        let above = |(name, current): (Option<Name>, f64)| {
            let total = name.and_then(|name| self.total(name));
            total.is_some_and(|total| total > current)
        };
        [cpu, memory].into_iter().zip(current).any(above)
    }

    /// Counts the node at the size of `large` again. What was taken since it was counted as `small`
    /// stays taken.
    pub(crate) fn enlarge_again(&mut self, (large, small): (&Self, &Self), names: SizeNames) {
        for name in [names.0, names.1].into_iter().flatten() {
            let (Some(large), Some(small)) = (large.amount(name), small.amount(name)) else {
                continue;
            };
            if let Some(amount) = self.amounts.iter_mut().find(|amount| amount.name == name) {
                amount.total = large.total;
                for (source, free) in amount.free.iter_mut().enumerate() {
                    let at = |size: &NodeResource| size.free[source].unwrap_or(0.0);
                    let taken = at(small) - free.unwrap_or(0.0);
                    *free = Some(at(large) - taken);
                }
            }
        }
        self.class = [None; 2];
    }

    /// True where Ray runs and has been idle.
    pub(crate) fn is_idle(&self) -> bool {
        self.stage() == Stage::Running && self.idle_ms > 0
    }

    /// True for an idle worker on which no demand was placed.
    pub(crate) fn is_idle_worker(&self) -> bool {
        self.is_idle() && !self.head && self.is_unneeded()
    }

    /// True where no demand of either source was placed.
    pub(crate) fn is_unneeded(&self) -> bool {
        self.placed.iter().all(Vec::is_empty)
    }

    /// True if a request that was served before uses resources that a resize will give the node.
    pub(crate) fn has_promised_resources(&self) -> bool {
        let grown =
            |take: &Placement| matches!(take.step, PlacementStep::InFlight | PlacementStep::Grow);
        self.takes.iter().any(grown)
    }

    /// True for a node that is not to be removed.
    pub(crate) fn stays(&self) -> bool {
        self.removal().is_none()
    }

    /// True for a needed node that KubeRay has not been asked for yet.
    pub(crate) fn is_to_launch(&self) -> bool {
        self.fate == Fate::Launch || self.stage() == Stage::Queued && self.fate == Fate::Stay
    }

    /// True if its pod is deleted at once, because Ray does not run in it.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self.fate, Fate::Remove(_)) && self.stage() == Stage::Allocated
    }

    /// The mean share in use over all resources that the node has.
    pub(crate) fn mean_use(&self) -> f64 {
        let mut count = self.untouched;
        let mut sum = 0.0;
        for amount in &self.amounts {
            if let Some(total) = amount.total.filter(|total| *total > 0.0) {
                sum += (total - amount.free[CountedAmounts::Free as usize].unwrap_or(0.0)) / total;
                count += 1;
            }
        }
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }
}

/// Numbers distinct node states, for one decision: nodes of one class are in the same state, so they take
/// the same requests.
#[derive(Debug, Default)]
pub(crate) struct NodeClasses(HashMap<Vec<u64>, u32>);

impl NodeClasses {
    /// The number of the node's state, as `source` sees it.
    pub(crate) fn number(&mut self, node: &PlannedNode, source: CountedAmounts) -> u32 {
        let running = node.stage() == Stage::Running;
        // `u64::MAX` is the bit pattern of a NaN; NaN amounts in the GCS's answer were rejected before.
        let bits = |amount: Option<f64>| amount.map_or(u64::MAX, f64::to_bits);
        let mut code = vec![
            node.group()
                .map_or(u64::MAX, |group| usize::from(group) as u64),
            u64::from(running) * 2 + u64::from(node.head),
            node.untouched.into(),
            node.amounts.len() as u64,
        ];
        for amount in &node.amounts {
            let free = amount.free[source as usize];
            code.extend([amount.name.0.into(), bits(amount.total), bits(free)]);
        }
        let labels = node.labels.iter();
        code.extend(labels.flat_map(|(label, value)| [u64::from(label.0), u64::from(value.0)]));
        // Ray treats nodes that do not run yet as equal when their resources are equal, whatever was
        // placed on them.
        if running {
            // Labels and shapes are numbers below this one, which shows where the labels end.
            code.push(u64::MAX);
            let placed = node.placed[source as usize].iter();
            code.extend(placed.map(|shape| u64::from(shape.0)));
        }
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(code).or_insert(next)
    }
}
