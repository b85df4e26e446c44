//! The log line and metrics of one review. They never contain the object or a value in it.

use std::fmt::Write as _;
use std::time::Duration;

use crate::admission::Webhook;
use crate::admission::audit::rules_of;
use crate::admission::decide::Decision;
use crate::admission::review::Review;
use crate::admission::skip::Skip;
use crate::policy::Mode;
use crate::ray::Kind;
use crate::rule_id::RuleId;
use crate::telemetry::reviews::{ReviewOutcome, Reviewed};

/// The data for the log line and metrics of one review.
#[derive(Debug)]
pub struct Record {
    /// The webhook that was called.
    pub webhook: Webhook,
    /// The object's kind, if it is one that Rayfit checks.
    pub kind: Option<Kind>,
    /// The operation, as the label of metrics.
    pub operation: &'static str,
    /// Its outcome.
    pub outcome: ReviewOutcome,
    /// Nothing was to be stored.
    pub dry_run: bool,
    /// The findings, by rule and mode.
    pub findings: Vec<(RuleId, Mode)>,
    uid: String,
    object: String,
    rules: String,
    problem: String,
}

impl Record {
    /// A record before the request is read.
    pub fn new(webhook: Webhook) -> Self {
        Self {
            webhook,
            kind: None,
            operation: "unknown",
            outcome: ReviewOutcome::Allowed,
            dry_run: false,
            findings: Vec::new(),
            uid: String::new(),
            object: String::new(),
            rules: String::new(),
            problem: String::new(),
        }
    }

    /// Records the fields of the request that metrics need.
    pub fn identify(&mut self, review: &Review<'_>) {
        self.kind = Kind::from_name(&review.kind.kind).filter(|_| review.kind.group == "ray.io");
        self.dry_run = review.is_dry_run();
        // Words of our own, because whoever sends reviews could make up any number of values of a
        // metric's label.
        self.operation = match &*review.operation {
            "CREATE" => "CREATE",
            "UPDATE" => "UPDATE",
            "DELETE" => "DELETE",
            "CONNECT" => "CONNECT",
            _ => "unknown",
        };
    }

    /// Records the object's identity, for the log.
    pub fn name(&mut self, review: &Review<'_>) {
        self.uid = bounded(&review.uid);
        self.object.clear();
        let _ = write!(
            self.object,
            "{}/{}",
            bounded(&review.namespace),
            bounded(&review.display_name())
        );
    }

    /// Records the decision.
    pub fn decided(&mut self, decision: &Decision) {
        self.outcome = match decision {
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
            self.findings = findings.map(|(mode, found)| (found.rule, mode)).collect();
            let rules = rules_of(&verdict.denied);
            self.rules = rules
                .iter()
                .map(RuleId::to_string)
                .collect::<Vec<_>>()
                .join(",");
        }
    }

    /// Records a failure.
    #[must_use]
    pub fn failed(mut self, outcome: ReviewOutcome, problem: &str) -> Self {
        self.outcome = outcome;
        problem.clone_into(&mut self.problem);
        self
    }

    /// The metrics of it.
    pub fn counted(&self) -> Reviewed<'_> {
        Reviewed {
            webhook: self.webhook.name(),
            kind: self.kind,
            operation: self.operation,
            outcome: self.outcome,
            dry_run: self.dry_run,
            findings: &self.findings,
        }
    }

    /// Whether it leads to a line in the log.
    pub fn is_logged(&self) -> bool {
        let is_quiet = matches!(
            self.outcome,
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
        let kind = self.kind.map_or("", Kind::name);
        let (webhook, outcome) = (self.webhook.name(), self.outcome.name());
        let Self {
            object,
            uid,
            rules,
            problem,
            operation,
            dry_run,
            ..
        } = self;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        macro_rules! say {
            ($level:ident, $text:literal) => {
                tracing::$level!(
                    webhook, outcome, kind, object, uid, operation, dry_run, rules, problem,
                    micros, $text
                )
            };
        }
        match self.outcome {
            ReviewOutcome::Denied => say!(info, "denied"),
            ReviewOutcome::BadRequest | ReviewOutcome::Overload | ReviewOutcome::Deadline => {
                say!(warn, "not answered");
            }
            ReviewOutcome::Panic => say!(error, "failed"),
            _ => say!(debug, "allowed"),
        }
    }
}

/// The longest name in a log line, in characters. Names in Kubernetes have at most 253.
const NAME: usize = 256;

fn bounded(name: &str) -> String {
    name.chars().take(NAME).collect()
}
