//! The metrics of reviews.

use rayfit_core::policy::Mode;
use rayfit_core::ray::Kind;
use rayfit_core::rule_id::RuleId;

/// The outcome of a request, by its name in logs and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReviewOutcome {
    /// Allowed without reading the object, because its kind is not checked.
    NotJudged,
    /// Allowed without reading the object, because it is being deleted.
    Deleting,
    /// Allowed without reading the object, because nothing that is checked has changed.
    Unchanged,
    /// Checked and allowed.
    #[default]
    Allowed,
    /// Allowed with warnings.
    Warned,
    /// Denied.
    Denied,
    /// Allowed with a patch.
    Patched,
    /// Allowed as it was made: the RayCluster of a new pod was not read.
    OwnerUnread,
    /// Not a review that can be answered.
    BadRequest,
    /// Refused, because too many reviews were in progress.
    Overload,
    /// Given up, because the API server's timeout was near.
    Deadline,
    /// A bug in Rayfit.
    Panic,
}

/// The data for the metrics of one review.
#[derive(Debug, Default)]
pub struct ReviewCount {
    /// The webhook that was called.
    pub webhook: &'static str,
    /// The object's kind, if it is one that Rayfit checks.
    pub kind: Option<Kind>,
    /// The operation.
    pub operation: &'static str,
    /// Its outcome.
    pub outcome: ReviewOutcome,
    /// Nothing was to be stored.
    pub dry_run: bool,
    /// The findings, by rule and mode.
    pub findings: Vec<(RuleId, Mode)>,
}
