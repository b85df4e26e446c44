//! The demands that cannot be met, with the reasons.

use crate::hash::{HashMap, HashSet};
use crate::plan::conclude::describe;
use crate::plan::decided::Decided;
use crate::plan::demand::placement_group;
use crate::plan::demand::requests::{DemandOrigin, RequestBatch};
use crate::plan::demand::shape::{Shape, ShapeId};
use crate::plan::list::{ByGroup, DemandIndex, GroupIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::outcome::unmet::{Shortfall, Unmet, UnmetReason};
use crate::plan::packing::fit::admits;
use crate::plan::packing::state::PlannedGroup;
use crate::snapshot::group_spec::GroupSpec;

/// The most demands for which the reasons are given. Nobody reads the reasons of more.
const EXPLAINED: usize = 1_000;

/// The most groups that the reasons of one demand name.
const GROUPS: usize = 50;

/// The demands of which something is left, and those that are not tried at all.
pub(crate) fn unmet(decided: &Decided<'_>) -> Vec<Unmet> {
    let staying = decided.state.count(PlannedNode::stays);
    let mut by_shape: HashMap<ShapeId, Vec<UnmetReason>> = HashMap::default();
    let mut explained = 0;
    let mut unmet = Vec::new();
    for (number, remaining) in demands_left(decided) {
        let demand = &decided.demands[number];
        let counts = remaining.iter().map(|batch| batch.count);
        let mut count = counts.fold(0, u64::saturating_add);
        let reasons = match &demand.batches {
            Err(reason) => {
                // A demand that is kept back has no batches any more: it is one placement group.
                let is_later = matches!(reason, UnmetReason::GivenUp(_));
                count = count.max(is_later.into());
                vec![reason.clone()]
            }
            Ok(_) if explained == EXPLAINED => vec![UnmetReason::NotSaid],
            Ok(batches) => {
                explained += 1;
                let mut reasons = Vec::new();
                // A gang of a single unit does not wait for other units.
                let is_gang = !matches!(demand.kind, DemandOrigin::Tasks(..));
                let has_several = batches.first().is_some_and(|batch| batch.count > 1);
                if is_gang && (has_several || batches.len() > 1) {
                    reasons.push(UnmetReason::AllAtOnce);
                }
                let shapes = remaining.iter().take(EXPLAINED).map(|batch| batch.shape);
                for shape in shapes.clone() {
                    let reasons = by_shape.entry(shape);
                    reasons.or_insert_with(|| of_shape(decided, &staying, shape));
                }
                let of_batches = shapes.flat_map(|shape| &by_shape[&shape]);
                // Reasons of equal text are given once, however little the amounts differ.
                let mut texts: HashSet<String> = HashSet::default();
                let new = of_batches.filter(|reason| texts.insert(reason.to_string()));
                reasons.extend(new.cloned());
                reasons
            }
        };
        let (kind, index) = demand.place();
        unmet.push(Unmet {
            kind,
            index,
            count,
            demand: describe::demand(demand),
            reasons,
        });
    }
    unmet
}

/// The demands of which something is left, each with its batches, and those that are not tried at all.
fn demands_left<'d>(decided: &'d Decided<'_>) -> Vec<(DemandIndex, Vec<&'d RequestBatch>)> {
    let mut left: Vec<(DemandIndex, Vec<&RequestBatch>)> = Vec::new();
    let mut places: HashMap<DemandIndex, usize> = HashMap::default();
    for batch in &decided.remainder {
        let place = *places.entry(batch.demand).or_insert(left.len());
        match left.get_mut(place) {
            Some((_, batches)) => batches.push(batch),
            None => left.push((batch.demand, vec![batch])),
        }
    }
    let demands = decided.demands.enumerate();
    let invalid = demands.filter(|(_, demand)| demand.batches.is_err());
    left.extend(invalid.map(|(number, _)| (number, Vec::new())));
    left
}

/// The reasons why nothing more of a shape could be placed: one per group, or the placement group whose
/// resources it asks for.
fn of_shape(decided: &Decided<'_>, staying: &ByGroup<u64>, shape: ShapeId) -> Vec<UnmetReason> {
    let state = &decided.state;
    let shape = state.shapes.get(shape);
    if let Some((name, id)) = placement_group::of_shape(&state.names, shape) {
        let is_placed = state
            .in_order()
            .any(|node| node.amounts.get(name).is_some());
        let id = id.to_owned();
        return vec![if is_placed {
            UnmetReason::GroupFull(id)
        } else {
            UnmetReason::GroupUnplaced(id)
        }];
    }
    let named = state.groups.enumerate().take(GROUPS);
    let reason = |(number, group): (GroupIndex, &PlannedGroup)| UnmetReason::Group {
        group: group.config.name.clone(),
        why: why_not(decided, group, staying[number], shape),
    };
    let mut reasons: Vec<UnmetReason> = named.map(reason).collect();
    let more = state.groups.len().saturating_sub(GROUPS);
    reasons.extend((more > 0).then_some(UnmetReason::MoreGroups(more)));
    reasons
}

/// The reason why a group of which so many nodes stay takes no more of a shape.
fn why_not(decided: &Decided<'_>, group: &PlannedGroup, staying: u64, shape: &Shape) -> Shortfall {
    let state = &decided.state;
    let (template, config) = (&group.template, &group.config);
    // Labels first: where they differ, no size would help.
    if !admits(shape, &template.labels) {
        return if config.is_head() || !config.labels.is_empty() {
            Shortfall::OtherLabels
        } else {
            Shortfall::NoLabels
        };
    }
    for (name, needed) in shape.positive() {
        let amount = template.amounts.get(name);
        let has = amount.and_then(|amount| amount.free[CountedAmounts::Total as usize]);
        let has = has.unwrap_or(0.0);
        if needed > has && !state.names.is_implicit(name) {
            let resource = state.names.text(name);
            return Shortfall::TooSmall {
                resource: resource.to_owned(),
                has,
                needed,
                uncounted: uncounted(resource, has, config),
                at_base: group.at_base,
            };
        }
    }
    if config.is_head() {
        return Shortfall::OneHead;
    }
    // KubeRay counts a draining pod until it is gone, so it still has a place of the maximum.
    if staying.saturating_add(group.draining) >= config.max {
        return Shortfall::MaxReplicas(config.max_replicas.unwrap_or(0));
    }
    if state.is_cut {
        return Shortfall::MaxWorkers(state.max_workers);
    }
    Shortfall::Full
}

/// The devices of a group's pods that may be meant by a resource it lacks, with the remedy.
fn uncounted(resource: &str, has: f64, config: &GroupSpec) -> Option<Box<str>> {
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
    let is_meant = |device: &&str| words.iter().any(|word| device.contains(word));
    let devices = config.devices.iter().map(String::as_str);
    let devices: Vec<&str> = devices.filter(is_meant).collect();
    (has == 0.0 && !devices.is_empty())
        .then(|| format!("its pods have {}: {remedy}", devices.join(", ")).into())
}
