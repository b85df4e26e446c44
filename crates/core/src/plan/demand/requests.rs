//! The demands, in the order in which they are served. (Ray, `scheduler.py`,
//! `_sched_gang_resource_requests`; `utils.py`, `combine_requests_with_affinity`.)

use crate::hash::HashMap;
use crate::plan::demand::names::Names;
use crate::plan::demand::shape::{Shape, ShapeId, Shapes};
use crate::plan::list::{DemandIndex, List};
use crate::plan::outcome::unmet::{DemandKind, UnmetReason};
use crate::snapshot::gcs::{
    ClusterResourceState, GangResourceRequest, Label, LabelSelector, PlacementConstraint,
    ResourceRequest, ResourceRequestByCount,
};

/// The most units that one request counts for, so that sums of units stay in range.
const MOST_UNITS: i64 = 1_000_000_000_000;

/// Equal requests of one demand, one after the other, which are packed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestBatch {
    pub(crate) shape: ShapeId,
    pub(crate) count: u64,
    /// The demand that they belong to, by its number in the report.
    pub(crate) demand: DemandIndex,
}

/// One demand, which has one number in the report.
#[derive(Debug, Clone)]
pub(crate) struct Demand<'a> {
    pub(crate) kind: DemandOrigin<'a>,
    /// The request batches to place, or why the demand cannot be placed at all.
    pub(crate) batches: Result<Vec<RequestBatch>, UnmetReason>,
}

/// The source of a demand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DemandOrigin<'a> {
    /// A constraint that `request_resources()` set, by its position.
    Constraint(usize),
    /// A placement group, by its position.
    Gang(usize, &'a GangResourceRequest),
    /// Tasks or actors of one shape, by their position.
    Tasks(usize, &'a ResourceRequestByCount),
}

impl Demand<'_> {
    /// The kind of the demand, and its position in the list of that kind.
    pub(crate) fn place(&self) -> (DemandKind, usize) {
        match self.kind {
            DemandOrigin::Constraint(index) => (DemandKind::Constraint, index),
            DemandOrigin::Gang(index, _) => (DemandKind::PlacementGroup, index),
            DemandOrigin::Tasks(index, _) => (DemandKind::Tasks, index),
        }
    }

    /// The number of its units; none if it cannot be placed at all.
    pub(crate) fn units(&self) -> u64 {
        let counts = self.batches.iter().flatten().map(|batch| batch.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// Every demand: constraints, placement groups in Ray's order, tasks and actors.
pub(crate) fn all<'a>(
    gcs: &'a ClusterResourceState,
    names: &Names,
    shapes: &mut Shapes,
) -> List<DemandIndex, Demand<'a>> {
    let mut demands = List::default();
    for (index, constraint) in gcs.cluster_resource_constraints.iter().enumerate() {
        let requests = &constraint.resource_requests;
        demands.push(Demand {
            kind: DemandOrigin::Constraint(index),
            batches: Ok(counted(requests, demands.upcoming(0), names, shapes)),
        });
    }
    // The hardest to place first. Ray counts the bundles of the older field, also where it places
    // those of the newer one.
    let mut gangs: Vec<_> = (gcs.pending_gang_resource_requests.iter().enumerate()).collect();
    gangs.sort_by_key(|(_, gang)| {
        let constraints = gang.requests.iter().map(|r| r.placement_constraints.len());
        std::cmp::Reverse((constraints.sum::<usize>(), gang.requests.len()))
    });
    for (index, gang) in gangs {
        let demand = demands.upcoming(0);
        let batches = bundles(gang).map(|bundles| {
            let mut batches: Vec<RequestBatch> = Vec::new();
            for bundle in bundles {
                let shape = shapes.number(Shape::of(&bundle, names));
                // Only neighbours are joined: requests that are equally hard to place keep their order.
                match batches.last_mut().filter(|batch| batch.shape == shape) {
                    Some(batch) => batch.count += 1,
                    None => batches.push(RequestBatch {
                        shape,
                        count: 1,
                        demand,
                    }),
                }
            }
            batches
        });
        demands.push(Demand {
            kind: DemandOrigin::Gang(index, gang),
            batches,
        });
    }
    for (index, request) in gcs.pending_resource_requests.iter().enumerate() {
        let requests = std::slice::from_ref(request);
        demands.push(Demand {
            kind: DemandOrigin::Tasks(index, request),
            batches: Ok(counted(requests, demands.upcoming(0), names, shapes)),
        });
    }
    demands
}

/// Every request of every demand.
pub(crate) fn requests(gcs: &ClusterResourceState) -> impl Iterator<Item = &ResourceRequest> {
    let constraints = gcs.cluster_resource_constraints.iter();
    let counted = constraints
        .flat_map(|constraint| &constraint.resource_requests)
        .chain(&gcs.pending_resource_requests)
        .map(|by_count| &by_count.request);
    counted.chain(gcs.pending_gang_resource_requests.iter().flat_map(listed))
}

fn counted(
    requests: &[ResourceRequestByCount],
    demand: DemandIndex,
    names: &Names,
    shapes: &mut Shapes,
) -> Vec<RequestBatch> {
    let batches = requests.iter().map(|by_count| RequestBatch {
        shape: shapes.number(Shape::of(&by_count.request, names)),
        count: by_count.count.clamp(0, MOST_UNITS).unsigned_abs(),
        demand,
    });
    batches.collect()
}

/// The bundles of a placement group that Ray reads.
pub(crate) fn listed(gang: &GangResourceRequest) -> &[ResourceRequest] {
    match gang.bundle_selectors.first() {
        // Further selectors are alternatives, which Ray does not read yet.
        Some(selector) => &selector.resource_requests,
        None => &gang.requests,
    }
}

/// The bundles of a placement group to place. Bundles that must be on one node become one request,
/// which comes after the other bundles.
fn bundles(gang: &GangResourceRequest) -> Result<Vec<ResourceRequest>, UnmetReason> {
    let mut bundles = Vec::new();
    let mut together: Vec<ResourceRequest> = Vec::new();
    let mut places: HashMap<(&Label, Vec<LabelSelector>), usize> = HashMap::default();
    for bundle in listed(gang) {
        let constraint = match bundle.placement_constraints.as_slice() {
            [] => {
                bundles.push(bundle.clone());
                continue;
            }
            [constraint] => constraint,
            _ => return Err(UnmetReason::SeveralPlacementConstraints),
        };
        let Some(label) = &constraint.affinity else {
            if constraint.anti_affinity.is_some() {
                bundles.push(bundle.clone());
            }
            continue;
        };
        // The GCS lists the values of one constraint in any order.
        let mut selectors = bundle.label_selectors.clone();
        for constraint in selectors.iter_mut().flat_map(|s| &mut s.label_constraints) {
            constraint.label_values.sort();
        }
        let at = *places.entry((label, selectors)).or_insert(together.len());
        if let Some(sum) = together.get_mut(at) {
            for (name, amount) in &bundle.resources_bundle {
                *sum.resources_bundle.entry(name.clone()).or_insert(0.0) += amount;
            }
        } else {
            together.push(ResourceRequest {
                placement_constraints: vec![PlacementConstraint {
                    affinity: Some(label.clone()),
                    anti_affinity: None,
                }],
                ..bundle.clone()
            });
        }
    }
    bundles.extend(together);
    Ok(bundles)
}
