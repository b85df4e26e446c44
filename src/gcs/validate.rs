//! The limits on the content of an answer, and on the state that a GCS reports.

use std::collections::BTreeMap;

use rayfit_core::snapshot::gcs::{ClusterResourceState, NodeState};
use rayfit_core::text::{ForeignText, is_obeyed};

/// The memory that an answer may take, by a generous estimate.
// 10,000 nodes with ten resources and six labels each take 60 MiB.
pub(super) const MEMORY: usize = 96 << 20;

/// The memory that an answer with tasks may take, of which a GCS keeps a hundred thousand. Only a person's command
/// asks for these.
pub(super) const RECORDED_MEMORY: usize = 768 << 20;

/// The longest name, label or text.
pub(super) const TEXT: usize = 4_096;

/// The most resources or labels of one node or request.
// A placement group adds about six to each node that it is on.
pub(super) const ENTRIES: usize = 10_000;

/// The reason not to decode an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Excess {
    /// More of something than any Ray cluster has.
    #[error("it has more than {} {}", .0.most().0, .0.most().1)]
    Many(Counted),
    /// A text that is too long, or more entries of one node or request than any has.
    #[error(
        "a text in it is longer than {TEXT} bytes, or a node or request has more than {ENTRIES} \
         resources or labels"
    )]
    Long,
    /// More memory than an answer may take.
    #[error("it would take more memory than an answer may")]
    Memory,
    /// The answer is not a message of the requested kind.
    #[error("it is not a message in Ray's format")]
    Malformed,
}

/// The kinds of things that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumCount)]
pub enum Counted {
    /// Ray nodes.
    Nodes,
    /// Kinds of tasks and actors.
    Requests,
    /// Placement groups.
    Gangs,
    /// Bundles, selectors and other parts of requests.
    Parts,
    /// Attempts of tasks, or actors.
    Tasks,
}

impl Counted {
    /// The most of it that an answer may have, and how messages call it.
    pub(super) fn most(self) -> (usize, &'static str) {
        match self {
            Self::Nodes => (20_000, "nodes"),
            Self::Requests => (50_000, "different requests"),
            Self::Gangs => (50_000, "placement groups"),
            Self::Parts => (400_000, "bundles and selectors"),
            Self::Tasks => (200_000, "tasks or actors"),
        }
    }
}

/// Ray's unit of resources: it keeps four decimals.
const RESOLUTION: f64 = 1e-4;

/// The largest amount; memory is in bytes.
const MOST: f64 = 1e18;

/// The error of a state that is not used. Ray itself reports nothing of the kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The answer exceeds the limits.
    #[error(transparent)]
    Excess(#[from] Excess),
    /// A name that a terminal or a page would obey where it is shown.
    #[error(
        "a name in Ray's answer, {0}, has control characters or ones that turn text around: rename the resource, \
         label or group, and nothing is done until then"
    )]
    Name(ForeignText<String>),
    /// A request for an amount that Ray does not have.
    #[error(
        "a request names {amount} of {resource}: amounts are 0, or from 0.0001 to 1e18; look for the \
         task, placement group or request_resources() that asks for it"
    )]
    Requested {
        /// The resource.
        resource: String,
        /// Its amount.
        amount: String,
    },
    /// A node has an invalid amount.
    #[error("the node of pod {pod:?} has {amount} of {resource}: amounts are from 0 to 1e18")]
    Node {
        /// The pod.
        pod: String,
        /// The resource.
        resource: String,
        /// Its amount.
        amount: String,
    },
}

/// Checks every name and amount.
pub(super) fn check(state: &ClusterResourceState) -> Result<(), Unusable> {
    let gangs = &state.pending_gang_resource_requests;
    let constraints = state.cluster_resource_constraints.iter();
    let counted = (state.pending_resource_requests.iter())
        .chain(constraints.flat_map(|constraint| &constraint.resource_requests));
    let selected = gangs.iter().flat_map(|gang| &gang.bundle_selectors);
    let requests = counted
        .map(|counted| &counted.request)
        .chain(gangs.iter().flat_map(|gang| &gang.requests))
        .chain(selected.flat_map(|selector| &selector.resource_requests));
    let nodes = state.node_states.iter();

    // The names of pods, groups, resources and labels.
    let of_nodes = nodes.clone().flat_map(|node| {
        let amounts = [&node.total_resources, &node.available_resources];
        let labels = [&node.labels, &node.dynamic_labels].into_iter().flatten();
        [&node.instance_id, &node.ray_node_type_name]
            .into_iter()
            .chain(amounts.into_iter().flat_map(BTreeMap::keys))
            .chain(labels.flat_map(|(key, value)| [key, value]))
    });
    let of_requests = requests.clone().flat_map(|request| {
        let placed = request.placement_constraints.iter();
        let placed = placed.flat_map(|placed| placed.anti_affinity.iter().chain(&placed.affinity));
        let selectors = request.label_selectors.iter();
        let selected = selectors.flat_map(|selector| &selector.label_constraints);
        (request.resources_bundle.keys())
            .chain(placed.flat_map(|label| [&label.label_name, &label.label_value]))
            .chain(selected.flat_map(|one| [&one.label_key].into_iter().chain(&one.label_values)))
    });
    let names = of_nodes.chain(gangs.iter().map(|gang| &gang.details));
    if let Some(name) = names
        .chain(of_requests)
        .find(|name| name.contains(is_obeyed))
    {
        return Err(Unusable::Name(ForeignText(shown(name))));
    }

    for node in nodes {
        check_amounts(node)?;
    }

    // Half a unit below, so that rounding errors do not count.
    let is_amount = |amount: f64| amount == 0.0 || (RESOLUTION / 2.0..=MOST).contains(&amount);
    let mut requested = requests.flat_map(|request| &request.resources_bundle);
    match requested.find(|(_, amount)| !is_amount(**amount)) {
        Some((resource, amount)) => Err(Unusable::Requested {
            resource: shown(resource),
            amount: amount.to_string(),
        }),
        None => Ok(()),
    }
}

/// The amounts of a node are numbers that can be counted with.
fn check_amounts(node: &NodeState) -> Result<(), Unusable> {
    // Free resources may be negative, because a task that continues takes its CPUs back.
    let total = (node.total_resources.iter()).filter(|(_, amount)| !(0.0..=MOST).contains(*amount));
    let free =
        (node.available_resources.iter()).filter(|(_, amount)| !(-MOST..=MOST).contains(*amount));
    match total.chain(free).next() {
        Some((resource, amount)) => Err(Unusable::Node {
            pod: shown(&node.instance_id),
            resource: shown(resource),
            amount: amount.to_string(),
        }),
        None => Ok(()),
    }
}

/// The beginning of a text from the GCS, as long as people need.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use rayfit_core::snapshot::gcs::{NodeState, ResourceRequest, ResourceRequestByCount};

    use super::*;

    fn asked(amount: f64) -> Result<(), Unusable> {
        check(&ClusterResourceState {
            pending_resource_requests: vec![ResourceRequestByCount {
                request: ResourceRequest {
                    resources_bundle: [("CPU".to_owned(), amount)].into(),
                    ..ResourceRequest::default()
                },
                count: i64::MAX,
            }],
            ..ClusterResourceState::default()
        })
    }

    fn node(total: f64, free: f64) -> Result<(), Unusable> {
        check(&ClusterResourceState {
            node_states: vec![NodeState {
                total_resources: [("CPU".to_owned(), total)].into(),
                available_resources: [("CPU".to_owned(), free)].into(),
                ..NodeState::default()
            }],
            ..ClusterResourceState::default()
        })
    }

    #[test]
    fn names_that_a_terminal_would_obey_are_not_used() {
        for name in ["a\u{1b}[2J", "a\nb", "a\u{202e}b"] {
            let state = ClusterResourceState {
                node_states: vec![NodeState {
                    labels: [(name.to_owned(), String::new())].into(),
                    ..NodeState::default()
                }],
                ..ClusterResourceState::default()
            };
            let fault = check(&state).unwrap_err();
            assert!(
                !fault.to_string().contains(rayfit_core::text::is_obeyed),
                "{fault}"
            );
        }
    }

    #[test]
    fn amounts_that_ray_has_are_used_and_no_others() {
        for amount in [0.0, -0.0, 0.0001, 0.5, 1e15] {
            assert_eq!(asked(amount), Ok(()), "{amount}");
        }
        for amount in [1e-300, 0.00001, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(asked(amount).is_err(), "{amount}");
        }
        assert_eq!(node(4.0, -1.0), Ok(()), "Ray reports that for a moment");
        for (total, free) in [(f64::NAN, 0.0), (-1.0, 0.0), (4.0, f64::NEG_INFINITY)] {
            assert!(node(total, free).is_err(), "{total} {free}");
        }
    }
}
