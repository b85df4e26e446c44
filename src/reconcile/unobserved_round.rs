//! The round of a cluster that cannot be observed.

use super::memory::RoundMemory;
use super::round::{Round, Skipped};
use crate::plan::{Plan, PlanWait};
use crate::reconcile::effects::effect::EffectTarget;
use crate::reconcile::observed::blind::Blind;
use crate::reconcile::observed::outage::Outage;

/// The round of a cluster that cannot be observed: no effect is performed on missing data. Users
/// are told once the outage has lasted, and nothing that is remembered is lost because of it.
pub fn blind(memory: &RoundMemory, why: &Blind, now: f64) -> Round {
    let outage = Outage::blind(memory.outage.as_ref(), why, now);
    let why = outage.why().to_string();
    Round {
        at: now,
        skipped: vec![Skipped {
            about: EffectTarget::Cluster,
            why: format!("nothing is done: {why}"),
            until: None,
            lasting: true,
        }],
        conditions: outage.warning().into_iter().collect(),
        outage: Some(outage),
        plan: Plan {
            waiting: Some(PlanWait::Blind(why)),
            remember: memory.history.clone(),
            ..Plan::default()
        },
        ..Round::default()
    }
}
