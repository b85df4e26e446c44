//! A Ray node as packing sees it: it exists, it is pending, or it is only considered.

use std::rc::Rc;

use crate::hash::HashMap;
use crate::plan::demand::names::Name;
use crate::plan::demand::shape::ShapeId;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{DemandIndex, GroupIndex, NodeIndex};
use crate::plan::nodes::amounts::{CountedAmounts, NodeAmounts, NodeResource};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::step::PlacementStep;

/// The group of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeGroup {
    /// A group of the RayCluster, by its number.
    Known(GroupIndex),
    /// A group that is gone, by its name.
    Gone(String),
}

/// A stage of a node's life, with the parts of the node that exist by then.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeLife {
    /// It was added by this decision, or is only considered.
    New,
    /// It was decided on in an earlier round, and KubeRay was not asked for it yet.
    Queued,
    /// KubeRay was asked for it, and its pod does not exist yet.
    Requested {
        /// The time at which KubeRay was asked, in seconds since 1970, if that is known.
        since: Option<f64>,
    },
    /// Its pod exists. Its texts are shared, because packing copies nodes.
    Existing {
        /// The pod's name.
        pod: Rc<str>,
        /// The replica that it is a host of, in a multi-host group.
        replica: Option<Rc<str>>,
        /// Ray's life in the pod.
        ray: RayInPod,
    },
}

/// Ray's life in a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RayInPod {
    /// It does not.
    Absent,
    /// It was asked to stop, and has not begun to drain yet.
    Stopping {
        /// The time at which it was asked, in seconds since 1970.
        since: Option<f64>,
    },
    /// It does, as its raylet reports.
    Running {
        /// The id of the Ray node, in hexadecimal, if Ray reports it.
        id: Option<Rc<str>>,
        /// Its CPU, in cores.
        cpu: f64,
        /// Its memory, in bytes.
        memory: f64,
    },
}

/// The stage of a node's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The node was added by this decision.
    New,
    /// The node was decided on in an earlier round, and KubeRay was not asked for it yet.
    Queued,
    /// KubeRay was asked for the node, and its pod does not exist yet.
    Requested,
    /// The pod exists, and Ray does not run in it.
    Allocated,
    /// The Ray node was asked to stop, and has not begun to drain yet.
    Stopping,
    /// Ray runs in the pod.
    Running,
}

impl NodeLife {
    /// The stage alone.
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::New => Stage::New,
            Self::Queued => Stage::Queued,
            Self::Requested { .. } => Stage::Requested,
            Self::Existing { ray, .. } => match ray {
                RayInPod::Absent => Stage::Allocated,
                RayInPod::Stopping { .. } => Stage::Stopping,
                RayInPod::Running { .. } => Stage::Running,
            },
        }
    }
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

/// The names of the resources CPU and memory.
pub(crate) type SizeNames = (Name, Name);

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
    pub(crate) amounts: NodeAmounts,
    /// The labels that any request names.
    pub(crate) labels: Vec<(Name, Name)>,
    /// The distinct shapes that were placed on it, by source, in the order in which each came
    /// first.
    pub(crate) placed: [Vec<ShapeId>; 2],
    pub(crate) takes: Vec<Placement>,
    /// Its in-place resize, if the pods of its group may grow.
    // In a box, because most nodes have none, and packing copies nodes.
    pub(crate) resize: Option<Box<Resize>>,
    /// Its node class, by source, while it is known.
    pub(crate) class: [Option<u32>; 2],
    /// The number of equal nodes that it stands for, which are next to each other in the list. It
    /// is more than one only while there is no pod: a launch of a million nodes is one entry here.
    pub(crate) count: u64,
    /// The number under which it, or the node that it was split off, was made.
    pub(crate) born: NodeIndex,
}

impl PlannedNode {
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

    /// Sets the total of a resource and changes its free amounts by the difference, never below
    /// zero.
    pub(crate) fn set_total(&mut self, name: Name, total: f64) {
        self.amounts.set_total(name, total);
        // At another size it may no longer be equal to the nodes of its class.
        self.class = [None; 2];
    }

    /// Counts the node at a size.
    pub(crate) fn set_size(&mut self, names: SizeNames, size: Size) {
        self.set_total(names.0, size.cpu);
        self.set_total(names.1, counted(size.memory));
    }

    /// True for a node that is counted at the size that a resize will give it, and that is above the
    /// size that it has.
    pub(crate) fn is_enlarged(&self, (cpu, memory): SizeNames) -> bool {
        let Some(resize) = self.resize.as_deref().filter(|r| r.is_in_progress()) else {
            return false;
        };
        let is_above =
            |name, current| (self.amounts.total(name)).is_some_and(|total| total > current);
        let current = resize.current;
        is_above(cpu, current.cpu) || is_above(memory, counted(current.memory))
    }

    /// Counts the node at the size of `large` again. What was taken since it was counted as `small`
    /// stays taken.
    pub(crate) fn enlarge_again(&mut self, (large, small): (&Self, &Self), names: SizeNames) {
        for name in [names.0, names.1] {
            let (Some(large), Some(small)) = (large.amounts.get(name), small.amounts.get(name))
            else {
                continue;
            };
            if let Some(amount) = self.amounts.get_mut(name) {
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

    /// True where Ray does not run yet, nor has been asked to stop.
    pub(crate) fn is_pending(&self) -> bool {
        !matches!(self.stage(), Stage::Running | Stage::Stopping)
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
            node.amounts.untouched.into(),
            node.amounts.listed.len() as u64,
        ];
        for amount in &node.amounts.listed {
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
