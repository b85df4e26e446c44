//! The groups with pods whose memory can grow.

use std::collections::BTreeSet;

use crate::plan::nodes::group::ClusterConfig;
use crate::plan::settings::PlanSettings;
use crate::snapshot::cluster_object::ClusterObject;

/// The groups of a cluster whose memory in use counts, by name: those whose resize limits have more
/// memory than their template.
pub fn followed_groups(cluster: &ClusterObject, settings: &PlanSettings) -> BTreeSet<String> {
    let follows = settings.follow_memory && settings.strategy.is_rayfit();
    let config = follows.then(|| ClusterConfig::of(cluster));
    let groups = config.iter().flat_map(|config| config.groups.iter());
    let grows = groups.filter(|group| {
        let sizes = group.resize_limits.zip(group.base);
        sizes.is_some_and(|(limits, base)| limits.memory > base.memory)
    });
    grows.map(|group| group.name.clone()).collect()
}
