//! The log line and metrics of one review. They never contain the object or a value in it.

use std::time::Duration;

use crate::admission::Webhook;
use crate::admission::audit::{bounded, rules_of};
use crate::admission::decide::Decision;
use crate::admission::review::Review;
use crate::admission::skip::Skip;
use crate::ray::Kind;
use crate::telemetry::reviews::{ReviewCount, ReviewOutcome};

/// The data for the log line and metrics of one review.
#[derive(Debug)]
pub struct Record {
    /// The data for the metrics.
    pub count: ReviewCount,
    /// The reason why it has no decision, or one that is not obvious.
    pub problem: String,
    uid: String,
    object: String,
    rules: String,
}

impl Record {
    /// A record before the request is read.
    pub fn new(webhook: Webhook) -> Self {
        Self {
            count: ReviewCount {
                webhook: webhook.name(),
                kind: None,
                operation: "unknown",
                outcome: ReviewOutcome::Allowed,
                dry_run: false,
                findings: Vec::new(),
            },
            problem: String::new(),
            uid: String::new(),
            object: String::new(),
            rules: String::new(),
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
    pub fn decided(&mut self, decision: &Decision) {
        self.count.outcome = match decision {
            Decision::Skipped(Skip::NotOurs) => ReviewOutcome::NotJudged,
            Decision::Skipped(Skip::Deleting) => ReviewOutcome::Deleting,
            Decision::Skipped(Skip::Unchanged) => ReviewOutcome::Unchanged,
            Decision::Defaulted(defaulted) if defaulted.applied.is_empty() => {
                ReviewOutcome::Allowed
            }
            Decision::Defaulted(_) | Decision::Enlarged(_) => ReviewOutcome::Patched,
            Decision::TooMuch(_) => ReviewOutcome::Denied,
            Decision::Policy(found) if !found.refused.is_empty() => ReviewOutcome::Denied,
            Decision::Policy(found) if found.doubted.is_empty() => ReviewOutcome::Allowed,
            Decision::Judged(verdict) if !verdict.is_allowed() => ReviewOutcome::Denied,
            Decision::Judged(verdict) if verdict.warned.is_empty() => ReviewOutcome::Allowed,
            Decision::Judged(_) | Decision::Policy(_) => ReviewOutcome::Warned,
            Decision::LeftAsMade(_) => ReviewOutcome::Allowed,
            Decision::OwnerUnread(_) => ReviewOutcome::OwnerUnread,
        };
        match decision {
            Decision::TooMuch(error) => self.problem = error.to_string(),
            Decision::LeftAsMade(left) => self.problem = left.to_string(),
            Decision::OwnerUnread(unread) => self.problem = unread.to_string(),
            _ => {}
        }
        if let Decision::Judged(verdict) = decision {
            let findings = verdict.findings();
            self.count.findings = findings.map(|(mode, found)| (found.rule, mode)).collect();
            self.rules = bounded(rules_of(&verdict.denied).iter(), ",");
        }
    }

    /// Whether it leads to a line in the log.
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
        let Self {
            count,
            problem,
            uid,
            object,
            rules,
        } = self;
        let ReviewCount {
            webhook,
            operation,
            dry_run,
            ..
        } = count;
        let (kind, outcome) = (count.kind.map_or("", Kind::name), count.outcome.name());
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        macro_rules! say {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    webhook, outcome, kind, object, uid, operation, dry_run, rules, problem,
                    micros, $text
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
