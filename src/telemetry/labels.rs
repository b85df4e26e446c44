//! Labels of series.

use std::collections::BTreeMap;

use rayfit_core::dns_name::{DnsName, Key};
use rayfit_core::text::ForeignText;

/// The labels of a series, whose values are few.
pub(super) type SeriesLabels<const N: usize, V = &'static str> = [(&'static str, V); N];

/// The most namespaces that have series of their own.
const NAMESPACES: usize = 1000;

/// The most worker groups of a cluster that have series of their own.
const GROUPS: usize = 20;

/// The longest name of a group in a label, in characters. No group with a longer one gets a pod, which has the name in a
/// label of Kubernetes.
const LONGEST: usize = 63;

/// The clusters that a series is about: one, all others of a namespace, or all others.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesKey {
    namespace: Option<DnsName>,
    pub(super) cluster: Option<DnsName>,
}

impl SeriesKey {
    /// The series of a new cluster: its own ones, if fewer than `own` clusters have some; otherwise those of its
    /// namespace, unless there are too many namespaces. A cluster of the same name has the same.
    pub(super) fn of<T>(key: &Key, own: usize, all: &BTreeMap<Self, T>) -> Self {
        let namespace = || Some(key.namespace.clone());
        let single = Self {
            namespace: namespace(),
            cluster: Some(key.name.clone()),
        };
        let shared = Self {
            namespace: namespace(),
            cluster: None,
        };
        let has_place = |(series, most): &(Self, usize)| {
            let is_alike = |other: &&Self| other.cluster.is_some() == series.cluster.is_some();
            all.contains_key(series) || all.keys().filter(is_alike).count() < *most
        };
        let mut choices = [(single, own), (shared, NAMESPACES)].into_iter();
        choices.find(has_place).unwrap_or_default().0
    }

    /// Its labels. That of the cluster is the one that KubeRay's monitors give to Ray's own series.
    pub(super) fn labels(&self) -> Vec<(&'static str, &str)> {
        let labels = [
            ("namespace", &self.namespace),
            ("ray_io_cluster", &self.cluster),
        ];
        let labels = labels.into_iter();
        labels
            .filter_map(|(label, name)| Some((label, &***name.as_ref()?)))
            .collect()
    }
}

/// The label of a worker group, which its owner names as he likes; empty for those that share a series, and for those
/// beyond the bound.
pub(super) fn group_label<T>(name: &str, is_shown: bool, known: &BTreeMap<String, T>) -> String {
    let text = ForeignText(name.chars().take(LONGEST).collect::<String>()).to_string();
    let has_place = known.contains_key(&text) || known.len() < GROUPS;
    if is_shown && has_place {
        text
    } else {
        String::new()
    }
}
