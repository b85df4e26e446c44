//! What Kubernetes' users are told: Events on the RayCluster.

/// One Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// `reason`: one of a fixed set of names.
    pub reason: &'static str,
    /// `type`
    pub kind: NewsKind,
    /// `message` (`note`), at most 1024 bytes.
    pub message: String,
    /// `action`, such as `Scaling`.
    pub action: &'static str,
    /// The pod it is about, if one; the Event itself is on the RayCluster.
    pub pod: Option<String>,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewsKind {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}
