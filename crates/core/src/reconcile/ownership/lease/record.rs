//! The content of the Lease. Pure.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

/// The durations by which the Lease is held. All replicas must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// The time for which a Lease that is not renewed keeps other replicas away.
    pub duration: Duration,
    /// The interval at which the leader renews it.
    pub renew: Duration,
    /// The safety margin by which the leader stops trusting it earlier.
    pub margin: Duration,
}

impl Default for Terms {
    /// A killed leader is replaced within the duration. Just before a renewal the leader still trusts the Lease for
    /// longer than the [longest write](super::trust::LONGEST_WRITE) takes.
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(8),
            renew: Duration::from_secs(2),
            margin: Duration::from_secs(1),
        }
    }
}

/// The content of the Lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The replica that holds it, if one does.
    pub holder: Option<String>,
    /// Its resource version.
    pub version: String,
    /// The time for which it is valid without being renewed.
    pub duration: Duration,
    /// The time at which its holder took it, for people: nothing is decided by it.
    pub acquired: Option<Timestamp>,
}

impl LeaseRecord {
    /// Returns whether this was stored after another record of the Lease. A watch reports our own writes after
    /// their replies arrived, and older states too.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        // Resource versions are numbers that grow.
        match (self.version.parse::<u64>(), other.version.parse::<u64>()) {
            (Ok(version), Ok(than)) => version > than,
            _ => self.version != other.version,
        }
    }
}
