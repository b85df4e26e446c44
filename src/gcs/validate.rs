//! Validating the state that a GCS reports.

use super::excess::Excess;
use crate::snapshot::ObeyedName;
use crate::snapshot::gcs::{ClusterResourceState, ResourceRequest};

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
    /// A name that would be obeyed where it is shown.
    #[error(transparent)]
    Name(#[from] ObeyedName),
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
    state.check_names()?;
    for node in &state.node_states {
        // Free resources may be negative, because a task that continues takes its CPUs back.
        let total = node
            .total_resources
            .iter()
            .filter(|(_, amount)| !(0.0..=MOST).contains(*amount));
        let free = (node.available_resources.iter())
            .filter(|(_, amount)| !(-MOST..=MOST).contains(*amount));
        if let Some((resource, amount)) = total.chain(free).next() {
            return Err(Unusable::Node {
                pod: shown(&node.instance_id),
                resource: shown(resource),
                amount: amount.to_string(),
            });
        }
    }
    let constraints = state.cluster_resource_constraints.iter();
    let counted = (state.pending_resource_requests.iter())
        .chain(constraints.flat_map(|constraint| &constraint.resource_requests));
    let gangs = state.pending_gang_resource_requests.iter();
    let bundles = gangs.flat_map(|gang| {
        let selected = gang.bundle_selectors.iter();
        (gang.requests.iter()).chain(selected.flat_map(|selector| &selector.resource_requests))
    });
    counted
        .map(|counted| &counted.request)
        .chain(bundles)
        .try_for_each(request)
}

fn request(request: &ResourceRequest) -> Result<(), Unusable> {
    // Half a unit below, so that rounding errors do not count.
    let is_amount = |amount: f64| amount == 0.0 || (RESOLUTION / 2.0..=MOST).contains(&amount);
    let wrong = request
        .resources_bundle
        .iter()
        .find(|(_, amount)| !is_amount(**amount));
    wrong.map_or(Ok(()), |(resource, amount)| {
        Err(Unusable::Requested {
            resource: shown(resource),
            amount: amount.to_string(),
        })
    })
}

/// The beginning of a text from the GCS, as long as people need.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::gcs::{NodeState, ResourceRequestByCount};

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
                !fault.to_string().contains(crate::text::is_obeyed),
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
