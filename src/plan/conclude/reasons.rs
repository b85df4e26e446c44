//! The reasons why a demand could not be met.

use crate::hash::{HashMap, HashSet};
use crate::plan::decided::Decided;
use crate::plan::demand::batch::RequestBatch;
use crate::plan::demand::placement_group;
use crate::plan::demand::requests::DemandOrigin;
use crate::plan::demand::shape::{Shape, ShapeId};
use crate::plan::list::{ByGroup, DemandIndex, GroupIndex};
use crate::plan::nodes::group::GroupConfig;
use crate::plan::nodes::node::{CountedAmounts, PlannedNode};
use crate::plan::outcome::unmet::{GroupLimit, Shortfall, Uncounted, UnmetReason};
use crate::plan::packing::state::{DecisionState, PlannedGroup};

/// The most demands for which the reasons are given. Nobody reads the reasons of more.
const EXPLAINED: usize = 1_000;

/// The most groups that the reasons of one demand name.
const GROUPS: usize = 50;

/// Gives the reasons, group by group, for one demand after the other.
pub(crate) struct Reasons<'d> {
    decided: &'d Decided<'d>,
    /// The request batches of each demand that were not placed.
    left: HashMap<DemandIndex, Vec<&'d RequestBatch>>,
    /// The number of nodes of each group that stay.
    staying: ByGroup<u64>,
    known: HashMap<ShapeId, Vec<UnmetReason>>,
    explained: usize,
}

impl<'d> Reasons<'d> {
    /// Prepares the reasons for the demands of a decision.
    pub(crate) fn of(decided: &'d Decided<'d>) -> Self {
        let mut left: HashMap<DemandIndex, Vec<&RequestBatch>> = HashMap::default();
        for batch in &decided.left {
            left.entry(batch.demand).or_default().push(batch);
        }
        Self {
            decided,
            left,
            staying: decided.state.count(PlannedNode::stays),
            known: HashMap::default(),
            explained: 0,
        }
    }

    /// The reasons why nothing more of a demand could be placed: one per group.
    pub(crate) fn of_demand(&mut self, number: DemandIndex) -> Vec<UnmetReason> {
        let Some(demand) = self.decided.demands.get(number) else {
            return Vec::new();
        };
        let batches = match &demand.batches {
            Ok(batches) => batches,
            Err(reason) => return vec![reason.clone()],
        };
        self.explained += 1;
        if self.explained > EXPLAINED {
            return vec![UnmetReason::NotSaid];
        }
        let mut reasons = Vec::new();
        let gang = matches!(
            demand.kind,
            DemandOrigin::Gang(..) | DemandOrigin::Constraint(_)
        );
        // A gang of a single unit does not wait for other units.
        if gang
            && batches.len() + usize::from(batches.first().is_some_and(|batch| batch.count > 1)) > 1
        {
            reasons.push(UnmetReason::AllAtOnce);
        }
        // Reasons of equal text are given once, however little the amounts differ.
        let mut seen: HashSet<String> = HashSet::default();
        let shapes: Vec<ShapeId> = (self.left.get(&number).into_iter().flatten())
            .map(|batch| batch.shape)
            .take(EXPLAINED)
            .collect();
        for shape in shapes {
            for reason in self.of_shape(shape) {
                if seen.insert(reason.to_string()) {
                    reasons.push(reason.clone());
                }
            }
        }
        reasons
    }

    fn of_shape(&mut self, id: ShapeId) -> &[UnmetReason] {
        let (decided, staying) = (self.decided, &self.staying);
        self.known.entry(id).or_insert_with(|| {
            let shape = decided.state.shapes.get(id);
            if let Some(tied) = tied(&decided.state, shape) {
                return vec![tied];
            }
            let groups = &decided.state.groups;
            let named = groups.enumerate().take(GROUPS);
            let mut reasons: Vec<UnmetReason> = named
                .map(|(number, group)| UnmetReason::Group {
                    group: group.config.name.clone(),
                    why: why_not(decided, number, group, shape, staying),
                })
                .collect();
            let more = groups.len().saturating_sub(GROUPS);
            if more > 0 {
                reasons.push(UnmetReason::MoreGroups(more));
            }
            reasons
        })
    }
}

/// The reason that the shape waits for its placement group, if it asks for resources of one.
fn tied(state: &DecisionState, shape: &Shape) -> Option<UnmetReason> {
    let (name, id) = placement_group::of_shape(&state.names, shape)?;
    Some(UnmetReason::PlacementGroup {
        id: id.to_owned(),
        is_placed: state.in_order().any(|node| node.amount(name).is_some()),
    })
}

fn why_not(
    decided: &Decided<'_>,
    number: GroupIndex,
    group: &PlannedGroup,
    shape: &Shape,
    staying: &ByGroup<u64>,
) -> Shortfall {
    let state = &decided.state;
    let (template, config) = (&group.template, &group.config);
    if !crate::plan::packing::fit::admits(shape, &template.labels) {
        return Shortfall::Labels {
            has_any: config.is_head || !config.labels.is_empty(),
        };
    }
    for (name, needed) in shape.positive() {
        let has = template
            .amount(name)
            .and_then(|amount| amount.free[CountedAmounts::Total as usize])
            .unwrap_or(0.0);
        if needed > has && !state.names.is_implicit(name) {
            return Shortfall::TooSmall {
                resource: state.names.text(name).to_owned(),
                has,
                needed,
                at_base: group.at_base,
                uncounted: uncounted(state.names.text(name), has, config),
            };
        }
    }
    if config.is_head {
        return Shortfall::OneHead;
    }
    if staying.count(number).saturating_add(group.draining) >= config.max {
        return Shortfall::Group(GroupLimit::MaxReplicas(config.max_replicas));
    }
    if state.is_cut {
        return Shortfall::MaxWorkers(state.max_workers);
    }
    Shortfall::Full
}

/// The devices of a group's pods that may be meant by a resource it lacks, with the remedy.
fn uncounted(resource: &str, has: f64, config: &GroupConfig) -> Option<Box<Uncounted>> {
    let kind = match resource {
        "GPU" | "neuron_cores" => resource,
        _ => resource.split_once(':')?.0,
    };
    let (words, remedy): (&[&str], _) = match kind {
        "GPU" => (
            &["gpu", "nvidia", "amd"],
            "write num-gpus in rayStartParams of the group".to_owned(),
        ),
        "neuron_cores" => (
            &["neuron"],
            "write neuron_cores under resources of the group".to_owned(),
        ),
        "accelerator_type" => (
            &[""],
            format!(
                "if that is the accelerator, write {resource:?}: \"1\" under resources of the group"
            ),
        ),
        _ => return None,
    };
    let is_meant = |device: &&String| words.iter().any(|word| device.contains(word));
    let devices: Vec<&str> = config
        .devices
        .iter()
        .filter(is_meant)
        .map(String::as_str)
        .collect();
    (has == 0.0 && !devices.is_empty()).then(|| {
        Box::new(Uncounted {
            devices: devices.join(", "),
            remedy,
        })
    })
}
