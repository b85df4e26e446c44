//! Names in Ray's answer: none that a terminal or a page would obey.

use std::collections::BTreeMap;

use super::gcs::{ClusterResourceState, ResourceRequest};
use crate::text::{ForeignText, is_obeyed};

/// A name in Ray's answer that would be obeyed where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name in Ray's answer, {0}, has control characters or ones that turn text around: rename the resource, \
     label or group, and nothing is done until then"
)]
pub struct ObeyedName(ForeignText<String>);

impl ClusterResourceState {
    /// Checks the names of pods, groups, resources and labels.
    pub fn check_names(&self) -> Result<(), ObeyedName> {
        let nodes = self.node_states.iter().flat_map(|node| {
            let amounts = [&node.total_resources, &node.available_resources];
            let labels = [&node.labels, &node.dynamic_labels].into_iter().flatten();
            [&node.instance_id, &node.ray_node_type_name]
                .into_iter()
                .chain(amounts.into_iter().flat_map(BTreeMap::keys))
                .chain(labels.flat_map(|(key, value)| [key, value]))
        });
        let gangs = &self.pending_gang_resource_requests;
        let selected = gangs.iter().flat_map(|gang| &gang.bundle_selectors);
        let constraints = self.cluster_resource_constraints.iter();
        let counted = constraints.flat_map(|constraint| &constraint.resource_requests);
        let requests = (self.pending_resource_requests.iter().chain(counted))
            .map(|counted| &counted.request)
            .chain(gangs.iter().flat_map(|gang| &gang.requests))
            .chain(selected.flat_map(|selector| &selector.resource_requests));
        let names = nodes.chain(gangs.iter().map(|gang| &gang.details));
        let mut names = names.chain(requests.flat_map(ResourceRequest::names));
        match names.find(|name| name.contains(is_obeyed)) {
            Some(name) => Err(ObeyedName(ForeignText(name.chars().take(80).collect()))),
            None => Ok(()),
        }
    }
}

impl ResourceRequest {
    fn names(&self) -> impl Iterator<Item = &String> {
        let placed = self.placement_constraints.iter();
        let placed = placed.flat_map(|placed| placed.anti_affinity.iter().chain(&placed.affinity));
        let selectors = self.label_selectors.iter();
        let selected = selectors.flat_map(|selector| &selector.label_constraints);
        (self.resources_bundle.keys())
            .chain(placed.flat_map(|label| [&label.label_name, &label.label_value]))
            .chain(
                selected.flat_map(|one| std::iter::once(&one.label_key).chain(&one.label_values)),
            )
    }
}
