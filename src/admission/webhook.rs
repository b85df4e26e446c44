//! The two webhooks.

/// One of the two webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Webhook {
    /// Fills in defaults; never denies.
    Mutate,
    /// Checks; never changes anything.
    Validate,
}

impl Webhook {
    /// The path of its URL.
    pub const fn path(self) -> &'static str {
        match self {
            // The same for every kind, because the kind is in the review.
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
