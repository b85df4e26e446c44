//! The two webhooks.

/// Which of the two webhooks is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Fills in defaults; never denies.
    Mutate,
    /// Judges; never changes.
    Validate,
}

impl Webhook {
    /// The path of its URL, the same for every kind: the kind is in the review.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Mutate => "/mutate",
            Self::Validate => "/validate",
        }
    }

    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutate => "mutate",
            Self::Validate => "validate",
        }
    }
}
