//! The objects that a policy matches.

use super::resource::{Match, ScopeSelector};
use super::selector::matches;
use crate::facts::{DEFAULT_NAMESPACE, Facts};
use crate::ray::{Kind, RayObject};

/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

impl Match {
    /// Contains `object`. Of a namespace that is not known only the name is compared.
    pub fn contains(&self, object: &RayObject<'_>, facts: &Facts) -> bool {
        self.contains_as(object.kind, object.written_name(), object, facts)
    }

    /// May contain `object`: a namespace that the watch has not delivered yet may have any labels.
    pub fn may_contain(&self, object: &RayObject<'_>, facts: &Facts) -> bool {
        let namespace = object.namespace().unwrap_or(DEFAULT_NAMESPACE);
        let selector = self.namespace_selector.iter();
        let mut keys = selector.flat_map(ScopeSelector::keys);
        // The API server gives every namespace this label with its own name, so it is known before the watch delivers
        // any.
        keys.any(|key| key != NAMESPACE_NAME)
            && !facts.namespaces.is_empty()
            && !facts.namespaces.contains_key(namespace)
            && self.has_kind(object.kind)
            && self.has_name(object.written_name())
            && self.has_labels(|key| object.label(key))
    }

    /// Contains `object`, if that had this kind and this name.
    pub(super) fn contains_as(
        &self,
        kind: Kind,
        name: &str,
        object: &RayObject<'_>,
        facts: &Facts,
    ) -> bool {
        // The cheapest condition first: each review asks this of every policy.
        self.has_kind(kind)
            && self.has_name(name)
            && self.has_labels(|key| object.label(key))
            && self.has_namespace(object.namespace().unwrap_or(DEFAULT_NAMESPACE), facts)
    }

    pub(crate) fn has_kind(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|name| name == kind.name())
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|pattern| matches(pattern, name))
    }

    pub(crate) fn has_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let selector = self.object_selector.as_ref();
        selector.is_none_or(|labels| labels.match_labels(label))
    }

    /// Has an object in common with `other`, for all that is known.
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

    /// Has no namespace that `other` lacks. Where no namespaces are known, that is only certain if the
    /// selectors are equal or `other` has none.
    pub(crate) fn is_within_namespaces_of(&self, other: &Self, facts: &Facts) -> bool {
        let mut namespaces = facts.namespaces.keys().peekable();
        other.namespace_selector.is_none()
            || other.namespace_selector == self.namespace_selector
            || namespaces.peek().is_some()
                && namespaces.all(|name| {
                    !self.has_namespace(name, facts) || other.has_namespace(name, facts)
                })
    }

    /// Contains objects of a namespace.
    pub fn has_namespace(&self, name: &str, facts: &Facts) -> bool {
        let selector = self.namespace_selector.as_ref();
        selector.is_none_or(|labels| {
            labels.match_labels(|key| match key {
                NAMESPACE_NAME => Some(name),
                key => facts.namespace_label(name, key),
            })
        })
    }
}
