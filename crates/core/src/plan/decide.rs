//! From a snapshot to a plan and its report.

use crate::plan::conclude::{actions, explain};
use crate::plan::decided::Decided;
use crate::plan::outcome::plan::Plan;
use crate::plan::outcome::report::PlanReport;
use crate::plan::settings::PlanSettings;
use crate::plan::situation::Situation;
use crate::plan::slice::Slice;
use crate::plan::slices::findings::Findings;
use crate::plan::slices::gangs::attempts::Attempts;
use crate::plan::strategy::Strategy;
use crate::plan::{base, pipeline};
use crate::snapshot::Snapshot;
use crate::snapshot::pod::Pod;

/// Decides what is to be done about the RayCluster of a snapshot. This is a pure function: equal
/// snapshots give equal plans.
pub fn decide(snapshot: &Snapshot, settings: &PlanSettings) -> (Plan, PlanReport) {
    let own_pods: Vec<Pod<'_>> = snapshot.pods.iter().collect();
    let situation = Situation {
        snapshot,
        settings,
        own_pods: &own_pods,
        live: &snapshot.gcs.live(),
        now: snapshot.seconds().unwrap_or_default(),
    };
    let conclude = |decided: &Decided<'_>, findings: Option<&Findings<'_>>| {
        let plan = actions::plan(decided, findings);
        let report = explain::report(decided, findings, &plan);
        (plan, report)
    };
    if settings.strategy == Strategy::Ray {
        return conclude(&base::decide(&situation), None);
    }
    let attempts = settings.with(Slice::Gangs, || Attempts::of(snapshot, situation.now));
    let (mut decided, mut findings) = pipeline::decide(&situation, &attempts);
    // Given up pods leave their room to others, which may change anything decided after it: all of it is decided
    // once more.
    let fewer = settings.with(Slice::Gangs, || {
        attempts.without_given_up(&decided, &findings.evidence)
    });
    if let Some(fewer) = &fewer {
        (decided, findings) = pipeline::decide(&situation, fewer);
    }
    conclude(&decided, Some(&findings))
}
