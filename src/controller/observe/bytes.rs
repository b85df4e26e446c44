//! The bytes that are kept of RayClusters, and which namespace may have more.

use std::collections::HashMap;

use rayfit_core::dns_name::DnsName;

/// The most that is kept of all RayClusters of one namespace, in bytes.
// An eighth of the controller's memory, and sixty times what a hundred RayClusters of ten groups take. Without it, a
// namespace with many large RayClusters ends the controller, for everybody and again after each restart.
const SHARE: usize = 64 << 20;

/// The bytes of all RayClusters from which on a namespace gets no more than its equal part of them.
// Whoever has many namespaces takes at most this much with them, beside as much that others had before: together half
// of the controller's memory. A namespace of a few usual RayClusters is within its part beside a thousand others.
const ALL: usize = 128 << 20;

/// Counts the bytes, by namespace.
#[derive(Default)]
pub(super) struct ClusterBytes {
    by_namespace: HashMap<DnsName, usize>,
    all: usize,
}

impl ClusterBytes {
    /// Says why a RayCluster may not have the new bytes instead of the old ones, if it may not.
    pub(super) fn check(
        &self,
        namespace: &DnsName,
        (old, new): (usize, usize),
    ) -> Result<(), &'static str> {
        let entry = self.by_namespace.get(namespace).copied();
        let namespaces = self.by_namespace.len() + usize::from(entry.is_none());
        let had = entry.unwrap_or(0);
        let has = had - old + new;
        // A namespace keeps what it has: others who fill the memory end nobody's scaling.
        if self.all - old + new > ALL && has > had.max(ALL / namespaces) {
            return Err(
                "what Rayfit reads of all RayClusters has more than 128 MiB, and its namespace has its equal part of that: let another installation scale some namespaces",
            );
        }
        if has > SHARE {
            return Err(
                "what Rayfit reads of the RayClusters in its namespace has more than 64 MiB: divide them among several namespaces",
            );
        }
        Ok(())
    }

    /// Takes in that a RayCluster has so many bytes instead of what it had.
    pub(super) fn replace(&mut self, namespace: &DnsName, (old, new): (usize, usize)) {
        let had = self.by_namespace.get(namespace).copied().unwrap_or(0);
        self.all = self.all - old + new;
        match had - old + new {
            // Namespaces come and go under new names, and those of which nothing is kept get no part.
            0 => self.by_namespace.remove(namespace),
            has => self.by_namespace.insert(namespace.clone(), has),
        };
    }
}
