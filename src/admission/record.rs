//! The log line and metrics of one review. They never contain the object or a value in it.

use std::time::Duration;

use rayfit_core::ray::Kind;

use crate::admission::Webhook;
use crate::admission::audit::{bounded, rules_of};
use crate::admission::decide::ReviewDecision;
use crate::admission::review::Review;
use crate::telemetry::reviews::{ReviewCount, ReviewOutcome};

/// The data for the log line and metrics of one review.
#[derive(Debug, Default)]
pub struct ReviewRecord {
    /// The data for the metrics.
    pub count: ReviewCount,
    /// The reason why it has no decision, or one that is not obvious.
    pub problem: String,
    /// The request's identity, once [`Self::name`] has recorded it.
    pub uid: String,
    object: String,
    rules: String,
}

impl ReviewRecord {
    /// A record before the request is read.
    pub fn new(webhook: Webhook) -> Self {
        let count = ReviewCount {
            webhook: webhook.into(),
            operation: "unknown",
            ..ReviewCount::default()
        };
        Self {
            count,
            ..Self::default()
        }
    }

    /// Records the fields of the request that metrics need.
    pub fn identify(&mut self, review: &Review<'_>) {
        let kind = Kind::from_name(&review.kind.kind);
        self.count.kind = kind.filter(|_| review.kind.group == "ray.io");
        self.count.dry_run = review.dry_run == Some(true);
        // Words of our own, because whoever sends reviews could make up any number of values of a
        // metric's label.
        self.count.operation = match &*review.operation {
            "CREATE" => "CREATE",
            "UPDATE" => "UPDATE",
            "DELETE" => "DELETE",
            "CONNECT" => "CONNECT",
            _ => "unknown",
        };
    }

    /// Records the object's identity, for the log.
    pub fn name(&mut self, review: &Review<'_>) {
        // Names in Kubernetes have at most 253 characters.
        let short = |name: &str| name.chars().take(256).collect::<String>();
        self.uid = short(&review.uid);
        let (namespace, name) = (short(&review.namespace), short(&review.display_name()));
        self.object = format!("{namespace}/{name}");
    }

    /// Records the decision.
    pub fn decided(&mut self, decision: &ReviewDecision) {
        self.count.outcome = match decision {
            ReviewDecision::Skipped(outcome) => *outcome,
            ReviewDecision::Defaulted(defaulted) if defaulted.applied.is_empty() => {
                ReviewOutcome::Allowed
            }
            ReviewDecision::Defaulted(_) | ReviewDecision::Enlarged(_) => ReviewOutcome::Patched,
            ReviewDecision::TooMuch(_) => ReviewOutcome::Denied,
            ReviewDecision::Policy(review) if !review.refused.is_empty() => ReviewOutcome::Denied,
            ReviewDecision::Policy(review) if review.warnings.is_empty() => ReviewOutcome::Allowed,
            ReviewDecision::Judged(verdict) if !verdict.is_allowed() => ReviewOutcome::Denied,
            ReviewDecision::Judged(verdict) if verdict.warned.is_empty() => ReviewOutcome::Allowed,
            ReviewDecision::Judged(_) | ReviewDecision::Policy(_) => ReviewOutcome::Warned,
            ReviewDecision::LeftAsMade(_) => ReviewOutcome::Allowed,
            ReviewDecision::OwnerUnread(_) => ReviewOutcome::OwnerUnread,
        };
        match decision {
            ReviewDecision::TooMuch(error) => self.problem = error.to_string(),
            ReviewDecision::LeftAsMade(left) => self.problem = left.to_string(),
            ReviewDecision::OwnerUnread(unread) => self.problem = unread.to_string(),
            _ => {}
        }
        if let ReviewDecision::Judged(verdict) = decision {
            let findings = verdict.findings();
            self.count.findings = findings.map(|(mode, found)| (found.rule, mode)).collect();
            self.rules = bounded(rules_of(&verdict.denied).iter(), ",");
        }
    }

    /// Leads to a line in the log.
    pub fn is_logged(&self) -> bool {
        let is_quiet = matches!(
            self.count.outcome,
            ReviewOutcome::NotJudged
                | ReviewOutcome::Deleting
                | ReviewOutcome::Unchanged
                | ReviewOutcome::Allowed
                | ReviewOutcome::Warned
                | ReviewOutcome::Patched
                | ReviewOutcome::OwnerUnread
        );
        !is_quiet || tracing::enabled!(tracing::Level::DEBUG)
    }

    /// Logs failures and denials; allowed requests are only logged at level debug.
    pub fn log(&self, took: Duration) {
        let count = &self.count;
        let kind = count.kind.map_or("", Kind::name);
        let outcome: &str = count.outcome.into();
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        macro_rules! say {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    webhook = count.webhook,
                    outcome,
                    kind,
                    object = self.object,
                    uid = self.uid,
                    operation = count.operation,
                    dry_run = count.dry_run,
                    rules = self.rules,
                    problem = self.problem,
                    micros,
                    $text
                )
            };
        }
        match count.outcome {
            ReviewOutcome::Denied => say!(info, "denied"),
            ReviewOutcome::BadRequest | ReviewOutcome::Overload | ReviewOutcome::Deadline => {
                say!(warn, "not answered");
            }
            ReviewOutcome::Panic => say!(error, "failed"),
            _ => say!(debug, "allowed"),
        }
    }
}
