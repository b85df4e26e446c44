//! The subject of a rule.

use crate::facts::Facts;
use crate::path::FieldPath;
use crate::policy::Settings;
use crate::ray::ippr::GroupResizeLimits;
use crate::ray::{Cluster, Group, Kind, RayObject};

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

    /// The worker groups in order.
    pub fn workers(&self) -> impl Iterator<Item = &'a Group<'a>> {
        let cluster = self.cluster().into_iter();
        cluster.flat_map(|cluster| &cluster.workers)
    }

    /// Every group, like [`Self::groups`], if the cluster has autoscaling on; else none.
    pub fn autoscaled_groups(&self) -> impl Iterator<Item = &'a Group<'a>> {
        self.autoscaled().into_iter().flat_map(Cluster::groups)
    }

    /// The groups that `ray.io/ippr` lists, with their resize limits.
    pub fn listed_groups(&self) -> impl Iterator<Item = (&'a Group<'a>, &'a GroupResizeLimits)> {
        let subject = *self;
        self.groups()
            .filter_map(move |group| Some((group, subject.resize_limits(group)?)))
    }

    /// The listed groups whose pods will actually be resized: autoscaling is on (otherwise RF111
    /// reports) and the annotation reaches the cluster (otherwise RF116 reports).
    pub fn resized_groups(&self) -> impl Iterator<Item = (&'a Group<'a>, &'a GroupResizeLimits)> {
        let reaches = self.object.kind != Kind::RayCronJob && self.autoscaled().is_some();
        self.listed_groups().filter(move |_| reaches)
    }

    /// The entry of a group in `ray.io/ippr`, if the annotation lists it.
    pub fn resize_limits(&self, group: &Group<'_>) -> Option<&'a GroupResizeLimits> {
        let object = self.object;
        object.ippr.resize_limits(group.name?)
    }

    /// The path of an annotation of the object, or of the place where it is to be added.
    pub fn annotation_path(&self, name: &'static str) -> FieldPath {
        if self.object.all_annotations().is_some() {
            FieldPath::annotation(name)
        } else {
            FieldPath::of(&["metadata", "annotations"])
        }
    }
}
