//! Metrics of the background audit. They are zero except on the replica that audits.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use rayfit_core::object_audit::AuditTally;

use super::labels::SeriesLabels;

/// Metrics of the background audit.
#[derive(Debug, Default)]
pub struct AuditMetrics {
    /// 1 where this replica takes part.
    pub replicas: Gauge,
    leads: Gauge,
    objects: Gauge,
    findings: Family<SeriesLabels<2, String>, Gauge>,
    /// The duration of the last sweep, in seconds.
    pub duration: Gauge<f64, AtomicU64>,
}

impl AuditMetrics {
    /// Adds them to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "audit_replicas",
            "1 where this replica takes part in the background audit",
            self.replicas.clone(),
        );
        registry.register(
            "audit_leads",
            "1 where this replica is the one that audits",
            self.leads.clone(),
        );
        registry.register(
            "audit_objects",
            "Stored Ray objects that the background audit checks",
            self.objects.clone(),
        );
        registry.register(
            "audit_findings",
            "Stored Ray objects with findings, by rule and outcome; would_deny counts those that \
             would be denied if the rule were enforced",
            self.findings.clone(),
        );
        registry.register_with_unit(
            "audit_sweep",
            "Duration of the last sweep of the background audit",
            Unit::Seconds,
            self.duration.clone(),
        );
    }

    /// Records whether this replica audits from now on. If it no longer does, its counts are reset.
    pub fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
        if !leads {
            self.set(&AuditTally::default());
            self.duration.set(0.0);
        }
    }

    /// Records the findings.
    pub fn set(&self, tally: &AuditTally) {
        self.objects.set(tally.objects);
        // A rule without findings would keep its last count.
        self.findings.clear();
        for (rule, counts) in &tally.rules {
            for (outcome, count) in [
                ("denied", counts.denied),
                ("warned", counts.warned),
                ("audited", counts.audited),
                ("exempt", counts.exempt),
                ("would_deny", counts.would_deny),
            ] {
                let labels = [("rule", rule.to_string()), ("outcome", outcome.to_owned())];
                self.findings.get_or_create(&labels).set(count);
            }
        }
    }
}
