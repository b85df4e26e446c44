//! Feature gates of KubeRay's operator, as far as they decide which objects it accepts.

use super::RayVersion;

/// A feature gate of KubeRay's operator.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FeatureGate {
    /// The name, as in the operator's flag `--feature-gates`.
    pub name: &'static str,
    /// The first KubeRay that has it.
    pub since: RayVersion,
    /// The first KubeRay in which it is on unless somebody switches it off; one to come, if there is none.
    pub on_since: RayVersion,
}

/// Rules for the end of RayJobs, and worker groups that are suspended.
pub static JOB_DELETION: FeatureGate = gate("RayJobDeletionPolicy", 4, 6);
/// Upgrades of RayServices in steps.
pub static INCREMENTAL_UPGRADE: FeatureGate = gate("RayServiceIncrementalUpgrade", 5, 7);
/// `networkPolicy`
pub static NETWORK_POLICY: FeatureGate = gate("RayClusterNetworkPolicy", 7, NEVER);
/// `tlsOptions`
pub static MUTUAL_TLS: FeatureGate = gate("RayClusterMTLS", 7, NEVER);
/// `historyServerOptions`
pub static HISTORY_SERVER: FeatureGate = gate("RayClusterHistoryServer", 7, NEVER);
/// The backend `rocksdb` of GCS fault tolerance.
pub static EMBEDDED_STORAGE: FeatureGate = gate("GCSFaultToleranceEmbeddedStorage", 7, NEVER);

/// All of them.
pub const ALL: [&FeatureGate; 6] = [
    &JOB_DELETION,
    &INCREMENTAL_UPGRADE,
    &NETWORK_POLICY,
    &MUTUAL_TLS,
    &HISTORY_SERVER,
    &EMBEDDED_STORAGE,
];

/// No version has it on.
const NEVER: u32 = u32::MAX;

/// A gate that KubeRay has since a version 1.x, and has on since another.
const fn gate(name: &'static str, since: u32, on_since: u32) -> FeatureGate {
    FeatureGate {
        name,
        since: RayVersion::new(1, since, 0),
        on_since: RayVersion::new(1, on_since, 0),
    }
}

/// A feature gate, and whether it is on.
pub type GateSetting = (&'static FeatureGate, bool);

/// Reads `NAME=true` or `NAME=false`.
pub fn gate_setting(text: &str) -> Result<GateSetting, String> {
    let read = text.split_once('=').and_then(|(name, is_on)| {
        let gate = ALL.into_iter().find(|gate| gate.name == name)?;
        Some((gate, is_on.parse().ok()?))
    });
    let names = ALL.map(|gate| gate.name).join(", ");
    read.ok_or_else(|| format!("write NAME=true or NAME=false, with one of these names: {names}"))
}
