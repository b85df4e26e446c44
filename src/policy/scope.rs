//! The compiled condition for the objects that a policy matches.

use super::selector::{Labels, Pattern};
use crate::facts::{DEFAULT_NAMESPACE, Facts};
use crate::ray::{Kind, RayObject};

/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The objects that a policy matches; all conditions that are set must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    pub(crate) namespace: Option<Labels>,
    pub(crate) object: Option<Labels>,
    pub(crate) names: Vec<Pattern>,
    pub(crate) kinds: Vec<Kind>,
}

impl Scope {
    /// Whether `object` is one of them. If its namespace is not known, only the name of the
    /// namespace is compared.
    pub fn contains(&self, object: &RayObject<'_>, facts: &Facts) -> bool {
        self.contains_as(object.kind, name_of(object), object, facts)
    }

    /// Whether `object` can be one of them for all that is known: a namespace of which the watch has not told yet may
    /// have any labels.
    pub fn may_contain(&self, object: &RayObject<'_>, facts: &Facts) -> bool {
        let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
        let selector = self.namespace.iter();
        let mut keys = selector.flat_map(Labels::keys);
        keys.any(|key| key != NAMESPACE_NAME)
            && facts.lacks_namespace(namespace)
            && self.has_kind(object.kind)
            && self.has_name(name_of(object))
            && self.has_labels(|key| object.label(key))
    }

    /// Whether it contains `object`, if that had this kind and this name.
    pub(super) fn contains_as(
        &self,
        kind: Kind,
        name: &str,
        object: &RayObject<'_>,
        facts: &Facts,
    ) -> bool {
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

    /// Whether an object could be in both.
    pub fn may_overlap(&self, other: &Self, facts: &Facts) -> bool {
        let kinds = Kind::ALL
            .into_iter()
            .any(|kind| self.has_kind(kind) && other.has_kind(kind));
        let namespaces = facts.namespaces.is_empty()
            || facts
                .namespaces
                .keys()
                .any(|name| self.has_namespace(name, facts) && other.has_namespace(name, facts));
        // Names and labels of future objects are not known, so conditions on them count as
        // compatible.
        kinds && namespaces
    }

    /// Whether `other` covers every namespace that this covers. Where no namespaces are known, that
    /// is only certain if the selectors are equal or `other` has none.
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

/// An object's name, or its `generateName` while the API server has not created a name.
pub(crate) fn name_of<'a>(object: &RayObject<'a>) -> &'a str {
    let name = object.name().or_else(|| object.generate_name());
    name.unwrap_or_default()
}
