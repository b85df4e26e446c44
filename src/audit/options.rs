//! The options of the audit.

/// The options of the audit.
#[derive(Debug, Clone)]
pub struct AuditOptions {
    /// The namespace of the Lease and of Rayfit's pods.
    pub namespace: String,
    /// The name of this replica.
    pub identity: String,
}
