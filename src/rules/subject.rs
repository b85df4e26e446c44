//! The subject of a rule.

use crate::facts::Facts;
use crate::policy::Settings;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::{Cluster, Group, Kind, RayObject, ReconcileMode};

/// The subject of a rule: one object in its circumstances.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The object as it would be stored.
    pub object: &'a RayObject<'a>,
    /// The stored object, if this is an update.
    pub old: Option<&'a RayObject<'a>>,
    /// Facts about the cluster.
    pub facts: &'a Facts,
    /// The settings.
    pub settings: &'a Settings,
    /// The user who sends the request, if known.
    pub user: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        self.object.kind
    }

    /// The RayClusterSpec, if the object has one.
    pub fn cluster(&self) -> Option<&'a Cluster<'a>> {
        self.object.cluster.as_ref()
    }

    /// The RayClusterSpec, if it has autoscaling on.
    pub fn autoscaled(&self) -> Option<&'a Cluster<'a>> {
        self.cluster().filter(|cluster| cluster.autoscaling())
    }

    /// Every group: the head, then the workers in order.
    pub fn groups(&self) -> impl Iterator<Item = &'a Group<'a>> {
        self.cluster().into_iter().flat_map(Cluster::groups)
    }

    /// Every group, like [`Self::groups`], if the cluster has autoscaling on; else none.
    pub fn autoscaled_groups(&self) -> impl Iterator<Item = &'a Group<'a>> {
        self.autoscaled().into_iter().flat_map(Cluster::groups)
    }

    /// The groups that `ray.io/ippr` lists, with their resize limits.
    pub fn listed_groups(&self) -> impl Iterator<Item = (&'a Group<'a>, &'a GroupResizeLimits)> {
        let object = self.object;
        self.groups()
            .filter_map(|group| Some((group, object.ippr.resize_limits(group.name?)?)))
    }

    /// The listed groups whose pods will actually be resized: autoscaling is on (otherwise RF111
    /// reports) and the annotation reaches the cluster (otherwise RF116 reports).
    pub fn resized_groups(&self) -> impl Iterator<Item = (&'a Group<'a>, &'a GroupResizeLimits)> {
        let reaches = self.kind() != Kind::RayCronJob && self.autoscaled().is_some();
        self.listed_groups().filter(move |_| reaches)
    }

    /// The scaler of the cluster; an annotation with an unknown value reads as `ray` (rule RF402 reports it).
    pub fn reconcile_mode(&self) -> ReconcileMode {
        self.object.reconcile_mode()
    }
}
