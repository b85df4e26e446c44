//! Demands in words, for people.

use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::outcome::unmet::amount_text;
use crate::plan::packing::state::DecisionState;
use crate::plan::standby::ready::{StandbyDemand, StandbyKind};
use crate::snapshot::gcs::{LabelOperator, LabelSelector, ResourceRequest};

/// Something that is kept ready, in words: `{CPU: 1} as headroom (20 % of the 40 CPUs in use)`.
pub(crate) fn standby(state: &DecisionState, kept: &StandbyDemand) -> String {
    let reason = &kept.reason;
    match &kept.what {
        StandbyKind::Room(request, None) => format!("{} as {reason}", bundle(request)),
        StandbyKind::Room(request, Some((percent, cpus))) => {
            let request = bundle(request);
            format!("{request} as {reason} ({percent} % of the {cpus} CPUs in use)")
        }
        StandbyKind::Nodes(group) => {
            let group = state.groups.get(*group);
            let name = group.map_or("", |group| group.config.name.as_str());
            format!("node of group {name} by {reason}")
        }
    }
}

/// A demand in words.
pub(crate) fn demand(demand: &Demand<'_>) -> String {
    match demand.kind {
        DemandOrigin::Constraint(_) => "request_resources()".to_owned(),
        DemandOrigin::Gang(_, gang) => format!("placement group {}", gang.title()),
        DemandOrigin::Tasks(_, by_count) => bundle(&by_count.request),
    }
}

/// A request in words: `{CPU: 2, memory: 4Gi} where zone in [a]`.
fn bundle(request: &ResourceRequest) -> String {
    let amounts: Vec<String> = request
        .resources_bundle
        .iter()
        .map(|(name, amount)| format!("{name}: {}", amount_text(name, *amount)))
        .collect();
    let mut text = format!("{{{}}}", amounts.join(", "));
    let selectors: Vec<String> = request.label_selectors.iter().map(selector).collect();
    if request
        .label_selectors
        .iter()
        .any(|one| !one.label_constraints.is_empty())
    {
        text.push_str(" where ");
        text.push_str(&selectors.join(", or else "));
    }
    text
}

/// The conditions of a selector in words. Further selectors are what the request falls back to.
fn selector(selector: &LabelSelector) -> String {
    let conditions = selector.label_constraints.iter().map(|c| {
        let operator = if c.operator() == LabelOperator::NotIn {
            "not in"
        } else {
            "in"
        };
        format!("{} {operator} [{}]", c.label_key, c.label_values.join(", "))
    });
    let conditions: Vec<String> = conditions.collect();
    if conditions.is_empty() {
        return "anywhere".to_owned();
    }
    conditions.join(" and ")
}
