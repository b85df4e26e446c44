//! Demands in words, for people.

use crate::plan::demand::requests::{Demand, DemandOrigin};
use crate::plan::outcome::amounts::amount_text;
use crate::plan::packing::state::DecisionState;
use crate::plan::slices::standby::ready::{StandbyDemand, StandbyKind};
use crate::snapshot::gcs::{LabelOperator, ResourceRequest};

/// Something that is kept ready, in words: `{CPU: 1} as headroom (20 % of the 40 CPUs in use)`.
pub(crate) fn standby(state: &DecisionState, kept: &StandbyDemand) -> String {
    let reason = &kept.reason;
    match &kept.what {
        StandbyKind::Room(request, None) => format!("{} as {reason}", bundle(request)),
        StandbyKind::Room(request, Some((percent, cpus))) => {
            let request = bundle(request);
            format!("{request} as {reason} ({percent} % of the {cpus} CPUs in use)")
        }
        StandbyKind::Nodes(group) => format!("node of group {} by {reason}", state.name(*group)),
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

/// A request in words: `{CPU: 2, memory: 4Gi} where zone in [a]`. Further selectors are what it falls back to.
fn bundle(request: &ResourceRequest) -> String {
    let amounts = request.resources_bundle.iter();
    let amounts: Vec<String> = amounts
        .map(|(name, amount)| format!("{name}: {}", amount_text(name, *amount)))
        .collect();
    let text = format!("{{{}}}", amounts.join(", "));
    let mut selectors = Vec::new();
    for selector in &request.label_selectors {
        let conditions = selector.label_constraints.iter().map(|one| {
            let is_not = one.operator() == LabelOperator::NotIn;
            let operator = if is_not { "not in" } else { "in" };
            format!(
                "{} {operator} [{}]",
                one.label_key,
                one.label_values.join(", ")
            )
        });
        let conditions: Vec<String> = conditions.collect();
        selectors.push(conditions.join(" and "));
    }
    if selectors.iter().all(String::is_empty) {
        return text;
    }
    let selectors = selectors
        .iter()
        // A selector without conditions admits every node.
        .map(|one| if one.is_empty() { "anywhere" } else { one });
    let selectors: Vec<&str> = selectors.collect();
    format!("{text} where {}", selectors.join(", or else "))
}
