//! What the audit is started with.

/// What the audit is started with.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The namespace of the Lease and of our pods.
    pub namespace: String,
    /// What this replica is called.
    pub identity: String,
}
