//! What Leases say, and what can be done with one. Pure.

use std::time::Duration;

/// The times that Leases are held by. All replicas must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// For how long a Lease that is not renewed keeps others away.
    pub duration: Duration,
    /// How often it is renewed.
    pub renew: Duration,
    /// By how much earlier its holder stops to trust it.
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

/// What a Lease object says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds it, if anybody.
    pub holder: Option<String>,
    /// Its resource version.
    pub version: String,
    /// For how long it holds without being renewed.
    pub duration: Duration,
    /// Into how many shards its holder divides clusters; unknown of other versions of Rayfit.
    pub shards: Option<u32>,
}

impl LeaseRecord {
    /// Whether it was stored after another of the same Lease. A watch tells of our own writes after
    /// their replies did, and of what was before them. (Resource versions are numbers that grow.)
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match (self.version.parse::<u64>(), other.version.parse::<u64>()) {
            (Ok(version), Ok(than)) => version > than,
            _ => self.version != other.version,
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseStep {
    /// Create the Lease, which is not there, in our name.
    Create(LeaseName),
    /// Write our name into it: to take it or to renew it.
    Hold(LeaseName, LeaseRecord),
    /// Take our name out of it.
    Release(LeaseName, LeaseRecord),
    /// Write nobody's name into the Lease of a replica that has fallen silent, or create it so if
    /// it is not there.
    Bury(LeaseName, Option<LeaseRecord>),
    /// Remove the Lease of a replica that is long gone.
    Remove(LeaseName, LeaseRecord),
    /// List all Leases, after our own was written: does anybody divide clusters otherwise?
    Look(LeaseName),
}

/// Which Lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseName {
    /// Of a replica: that it is alive.
    Replica(String),
    /// Of a shard: who looks after its clusters.
    Shard(u32),
}

impl LeaseStep {
    /// The Lease that it is about.
    pub fn name(&self) -> &LeaseName {
        match self {
            Self::Create(name)
            | Self::Hold(name, _)
            | Self::Release(name, _)
            | Self::Bury(name, _)
            | Self::Remove(name, _)
            | Self::Look(name) => name,
        }
    }
}
