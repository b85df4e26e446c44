//! A Ray node as the packing sees it: there, on its way, or only considered.

use crate::plan::demand::names::Name;
use crate::plan::demand::shape::ShapeId;
use crate::plan::growth::resize::Resize;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::step::PlacementStep;

/// Whose requests are packed; each source sees its own free amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DemandSource {
    /// Pending tasks, actors and placement groups: what is free now counts.
    Demand = 0,
    /// `request_resources()`: what the node has in total counts.
    Constraint = 1,
}

/// Where a node is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Added by this decision.
    New,
    /// Decided earlier, not yet asked for.
    Queued,
    /// Asked for, no pod yet.
    Requested,
    /// Its pod is there, Ray is not.
    Allocated,
    /// Its Ray node was asked to stop, and has not yet begun to.
    Stopping,
    /// Ray runs.
    Running,
}

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays.
    Stay,
    /// It is to be started.
    Launch,
    /// It is to go.
    Remove(RemovalCause),
}

/// One resource of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NodeResource {
    pub(crate) name: Name,
    /// What there is; `None` if it is not listed.
    pub(crate) total: Option<f64>,
    /// What is free, by [`DemandSource`]; `None` if it is not listed.
    pub(crate) free: [Option<f64>; 2],
}

impl NodeResource {
    /// Of what there is and what is not listed as free, nothing is free. (Ray leaves it out of its
    /// scores, so that a node counts for less the moment it is full.)
    pub(crate) fn fill(&mut self) {
        if self.total.is_some() {
            self.free = self.free.map(|free| free.or(Some(0.0)));
        }
    }

    /// No more is free than there is, and no less than nothing.
    pub(crate) fn bound(&mut self) {
        if let Some(total) = self.total.filter(|total| *total > 0.0) {
            self.free = self
                .free
                .map(|free| free.map(|free| free.clamp(0.0, total)));
        }
    }
}

/// Something that was placed on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The demand, by its number in the report.
    pub(crate) demand: usize,
    /// How many units of it.
    pub(crate) count: u64,
    /// In which step of the packing.
    pub(crate) step: PlacementStep,
}

/// The names of CPU and memory.
pub(crate) type SizeNames = (Option<Name>, Option<Name>);

/// A Ray node.
#[derive(Debug, Clone)]
pub(crate) struct PlannedNode {
    /// The pod's name; empty if there is none yet.
    pub(crate) pod: String,
    /// Its group's number; `usize::MAX` if the group is gone.
    pub(crate) group: usize,
    /// Its group's name, if the group is gone.
    pub(crate) gone_group: Option<String>,
    pub(crate) head: bool,
    pub(crate) stage: Stage,
    pub(crate) fate: Fate,
    /// The Ray node id in hexadecimal; empty if Ray does not run.
    pub(crate) ray_id: String,
    pub(crate) idle_ms: i64,
    /// Resources that any request names, CPU, memory, and those in use.
    pub(crate) amounts: Vec<NodeResource>,
    /// How many more resources it has, all free and named by no request: they only weigh in means.
    pub(crate) untouched: u32,
    /// The labels that any request names.
    pub(crate) labels: Vec<(Name, Name)>,
    /// The distinct shapes placed on it, by source, in the order of the first of each.
    pub(crate) placed: [Vec<ShapeId>; 2],
    pub(crate) takes: Vec<Placement>,
    /// Growing in place, if its group may.
    pub(crate) resize: Option<Resize>,
    /// What the raylet has of CPU and memory, as Ray reports it.
    pub(crate) raylet_size: Option<(f64, f64)>,
    /// It is counted larger than it is, because a pod that starts can grow to that.
    pub(crate) at_cap: bool,
    /// Since when it is where it is, in seconds since 1970.
    pub(crate) since: Option<f64>,
    /// The replica of a multi-host group.
    pub(crate) replica: Option<String>,
    /// Its packing class, by source, while it is known.
    pub(crate) class: [Option<u32>; 2],
    /// It is to go, and waits for the other hosts of its replica.
    pub(crate) held: bool,
    /// How many nodes it stands for, all alike and next to each other in the list. More than one
    /// only while there is no pod: a launch of a million is one node here.
    pub(crate) count: u64,
    /// The number that it, or the node that it was split off, was made under.
    pub(crate) born: usize,
}

impl PlannedNode {
    /// The amount of a resource.
    pub(crate) fn amount(&self, name: Name) -> Option<&NodeResource> {
        self.amounts.iter().find(|amount| amount.name == name)
    }

    /// Sets the total of a resource and shifts what is free by the difference, never below zero.
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
            amount.total = Some(total.max(0.0));
            for free in &mut amount.free {
                *free = Some((free.unwrap_or(0.0) + delta).max(0.0));
            }
        }
        self.class = [None; 2];
    }

    /// It is counted at the size that a resize will give it, above what it has.
    pub(crate) fn is_enlarged(&self, (cpu, memory): SizeNames) -> bool {
        let Some(resize) = self.resize.as_ref().filter(|r| r.is_in_progress()) else {
            return false;
        };
        let total = |name: Option<Name>| self.amount(name?)?.total;
        #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
        let current = [resize.current.cpu, resize.current.memory as f64];
        let above = |(name, current)| total(name).is_some_and(|total| total > current);
        [cpu, memory].into_iter().zip(current).any(above)
    }

    /// Gives back the size that it had as `large`; what was taken since it was `small` stays taken.
    pub(crate) fn enlarge_again(&mut self, (large, small): (&Self, &Self), names: SizeNames) {
        for name in [names.0, names.1].into_iter().flatten() {
            let (Some(large), Some(small)) = (large.amount(name), small.amount(name)) else {
                continue;
            };
            if let Some(amount) = self.amounts.iter_mut().find(|amount| amount.name == name) {
                amount.total = large.total;
                for source in [
                    DemandSource::Demand as usize,
                    DemandSource::Constraint as usize,
                ] {
                    let free = |amount: &NodeResource| amount.free[source].unwrap_or(0.0);
                    let taken = free(small) - free(amount);
                    amount.free[source] = Some(free(large) - taken);
                }
            }
        }
        self.class = [None; 2];
    }

    /// Nothing of either source was placed on it.
    pub(crate) fn is_unneeded(&self) -> bool {
        self.placed.iter().all(Vec::is_empty)
    }

    /// A request served before takes of what a resize will give it.
    pub(crate) fn has_promised_room(&self) -> bool {
        let grown =
            |take: &Placement| matches!(take.step, PlacementStep::InFlight | PlacementStep::Grow);
        self.takes.iter().any(grown)
    }

    /// It runs or may yet run, and is not to go.
    pub(crate) fn stays(&self) -> bool {
        !matches!(self.fate, Fate::Remove(_))
    }

    /// Its pod is deleted at once: Ray does not run in it.
    pub(crate) fn is_deleted(&self) -> bool {
        !self.stays() && self.stage == Stage::Allocated && !self.held
    }

    /// The mean share in use over everything that it has of.
    pub(crate) fn mean_use(&self) -> f64 {
        let mut count = self.untouched;
        let mut sum = 0.0;
        for amount in &self.amounts {
            if let Some(total) = amount.total.filter(|total| *total > 0.0) {
                sum += (total - amount.free[DemandSource::Demand as usize].unwrap_or(0.0)) / total;
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
