//! Which objects a policy is about, compiled.

use super::selector::{Labels, Pattern};
use crate::facts::{DEFAULT_NAMESPACE, Facts};
use crate::ray::{Kind, RayObject};

/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Which objects a policy is about; everything that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    pub(crate) namespace: Option<Labels>,
    pub(crate) object: Option<Labels>,
    pub(crate) names: Vec<Pattern>,
    pub(crate) kinds: Vec<Kind>,
}

impl Scope {
    /// Whether `object` is one of them. Of a namespace that is not known only its name is.
    pub fn contains(&self, object: &RayObject<'_>, facts: &Facts) -> bool {
        self.contains_as(object.kind, name_of(object), object, facts)
    }

    /// Whether the RayJob or RayService is one of them for which KubeRay made `cluster`. Such a
    /// cluster has the labels of what it was made for.
    pub fn contains_maker(&self, cluster: &RayObject<'_>, facts: &Facts) -> bool {
        let maker = cluster.ray_owner_and_name();
        maker.is_some_and(|(kind, name)| self.contains_as(kind, name, cluster, facts))
    }

    /// As if `object` was of that kind and had that name.
    fn contains_as(&self, kind: Kind, name: &str, object: &RayObject<'_>, facts: &Facts) -> bool {
        self.has_kind(kind)
            && self.has_name(name)
            && self.has_labels(|key| object.label(key))
            && self.has_namespace(object.namespace().unwrap_or(DEFAULT_NAMESPACE), facts)
    }

    pub(crate) fn has_kind(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|pattern| pattern.matches(name))
    }

    pub(crate) fn has_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let selector = self.object.as_ref();
        selector.is_none_or(|labels| labels.match_labels(label))
    }

    /// Whether an object could be in both. Of names and labels of objects nothing is known, so
    /// they count as such that could meet.
    pub fn may_overlap(&self, other: &Self, facts: &Facts) -> bool {
        let kinds = Kind::ALL
            .into_iter()
            .any(|kind| self.has_kind(kind) && other.has_kind(kind));
        let namespaces = facts.namespaces.is_empty()
            || facts
                .namespaces
                .keys()
                .any(|name| self.has_namespace(name, facts) && other.has_namespace(name, facts));
        kinds && namespaces
    }

    /// Whether `other` is about every namespace that this is about. Where no namespaces are known, only
    /// a selector that is the same, or none, tells.
    pub(crate) fn is_within_namespaces_of(&self, other: &Self, facts: &Facts) -> bool {
        let mut known = facts.namespaces.keys().peekable();
        other.namespace.is_none()
            || other.namespace == self.namespace
            || known.peek().is_some()
                && known.all(|name| {
                    !self.has_namespace(name, facts) || other.has_namespace(name, facts)
                })
    }

    /// Whether objects of a namespace are among them.
    pub fn has_namespace(&self, name: &str, facts: &Facts) -> bool {
        let selector = self.namespace.as_ref();
        selector.is_none_or(|labels| {
            labels.match_labels(|key| match key {
                NAMESPACE_NAME => Some(name),
                key => facts.namespace_label(name, key),
            })
        })
    }
}

/// An object's name; where the API server is still to make one, what it will begin with.
pub(crate) fn name_of<'a>(object: &RayObject<'a>) -> &'a str {
    let name = object.name().or_else(|| object.generate_name());
    name.unwrap_or_default()
}
