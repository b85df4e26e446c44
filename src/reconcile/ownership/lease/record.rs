//! What a Lease says, and the steps that can be taken with one. Pure.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// The durations by which Leases are held. All replicas must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// For how long a Lease that is not renewed keeps other replicas away.
    pub duration: Duration,
    /// The interval at which a Lease is renewed.
    pub renew: Duration,
    /// How much earlier its holder stops trusting it.
    pub margin: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(10),
            renew: Duration::from_secs(3),
            margin: Duration::from_secs(1),
        }
    }
}

/// The content of a Lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The replica that holds it, if one does.
    pub holder: Option<String>,
    /// Its resource version.
    pub version: String,
    /// For how long it is valid without being renewed.
    pub duration: Duration,
    /// Into how many shards its holder divides clusters; other versions of Rayfit may not say.
    pub shards: Option<u32>,
    /// When its holder took it, for people: nothing is decided by it.
    pub acquired: Option<Timestamp>,
}

impl LeaseRecord {
    /// Whether this was stored after another record of the same Lease. A watch reports our own
    /// writes after their replies arrived, and older states too.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        is_later(&self.version, &other.version)
    }
}

/// Whether a resource version was given after another one. (Resource versions are numbers that grow.)
pub fn is_later(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}

/// One step that a replica takes with a Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStep {
    /// Create the Lease, which does not exist, with this replica as its holder.
    Create(LeaseName),
    /// Write this replica's name into the Lease, to take it or to renew it.
    Hold(LeaseName, LeaseRecord),
    /// Take this replica's name out of the Lease.
    Release(LeaseName, LeaseRecord),
    /// Release the Lease of a replica that has fallen silent, on its behalf: write it without a
    /// holder, or create it so if it does not exist.
    ReleaseDead(LeaseName, Option<LeaseRecord>),
    /// Delete the Lease of a replica that has been silent for very long.
    Remove(LeaseName, LeaseRecord),
    /// List all Leases, after our own was written, to see whether any replica divides clusters
    /// differently.
    Look(LeaseName),
}

/// The name of a Lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    /// The Lease of a replica, which says that it is alive.
    Replica(String),
    /// The Lease of a shard, which says which replica scales its clusters.
    Shard(u32),
}

impl LeaseStep {
    /// The Lease that the step is about.
    pub fn name(&self) -> &LeaseName {
        match self {
            Self::Create(name)
            | Self::Hold(name, _)
            | Self::Release(name, _)
            | Self::ReleaseDead(name, _)
            | Self::Remove(name, _)
            | Self::Look(name) => name,
        }
    }
}
