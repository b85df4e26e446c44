//! What is counted of reviews.

use crate::policy::Mode;
use crate::ray::Kind;
use crate::rule_id::RuleId;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewOutcome {
    /// Allowed without a look at the object: it is none that is judged.
    NotJudged,
    /// Allowed without a look at the object: it is being deleted.
    Deleting,
    /// Allowed without a look at the object: nothing that counts has changed.
    Unchanged,
    /// Judged and allowed.
    Allowed,
    /// Allowed with warnings.
    Warned,
    /// Denied.
    Denied,
    /// Allowed with a patch.
    Patched,
    /// No review that can be answered.
    BadRequest,
    /// Refused, because there was too much to do.
    Overload,
    /// Given up, because the API server's timeout was near.
    Deadline,
    /// A bug of ours.
    Panic,
}

impl ReviewOutcome {
    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotJudged => "not_judged",
            Self::Deleting => "deleting",
            Self::Unchanged => "unchanged",
            Self::Allowed => "allowed",
            Self::Warned => "warned",
            Self::Denied => "denied",
            Self::Patched => "patched",
            Self::BadRequest => "bad_request",
            Self::Overload => "overload",
            Self::Deadline => "deadline",
            Self::Panic => "panic",
        }
    }
}

/// What is counted of one review.
#[derive(Debug)]
pub struct Reviewed<'a> {
    /// The webhook that was asked.
    pub webhook: &'static str,
    /// The object's kind, if it is one of ours.
    pub kind: Option<Kind>,
    /// The operation.
    pub operation: &'static str,
    /// How it ended.
    pub outcome: ReviewOutcome,
    /// Nothing was to be stored.
    pub dry_run: bool,
    /// The findings, by rule and what they led to.
    pub findings: &'a [(RuleId, Mode)],
}
