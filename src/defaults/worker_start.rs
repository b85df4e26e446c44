//! DF09: a raylet that uses the added CPUs of its pod at once.

use serde_json::json;

use super::{DefaultId, DefaultRule, Draft, DraftEntry, Origin};
use crate::quantity::Quantity;
use crate::ray::{Container, Group, Resource};
use crate::rule_page::RulePage;

/// How many worker processes a raylet starts at a time. Without it, as many as the pod had CPUs
/// when it began (`services.py`, `start_raylet`).
const AT_A_TIME: &str = "RAY_worker_maximum_startup_concurrency";

/// How long a raylet waits before it runs one task more of a kind than the pod had CPUs for when
/// the kind was first seen; it doubles with each, up to ten seconds, and begins at one
/// (`local_lease_manager.cc`, `ray_config_def.h`).
const FIRST_DELAY: &str = "RAY_worker_cap_initial_backoff_delay_ms";

/// Turns that waiting off altogether.
const DELAYS: &str = "RAY_worker_cap_enabled";

/// DF09
pub static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(9),
    name: "ippr-worker-start",
    summary: "raylets of a group that grows in place use their new CPUs at once",
    page: RulePage(include_str!("worker_start.md")),
    why: "A raylet goes on by the CPUs that its pod began with: it starts as many processes at a \
          time, and lets each further task of a kind wait, for one second, then two, then four, up \
          to ten. A pod that grew from one CPU to eight would be in use after half a minute. With \
          10 ms the delays double all the same, which is what protects a node from tasks that \
          start tasks without end.",
    since: "0.1.0",
    apply,
};

fn apply(draft: &mut Draft<'_>) {
    for (group, container) in draft.growing() {
        let Some(most) = whole_cpus(draft, group) else {
            continue;
        };
        let mut wanted = vec![(AT_A_TIME, most.to_string())];
        if !has(&container, DELAYS) {
            wanted.push((FIRST_DELAY, "10".to_owned()));
        }
        let missing = wanted
            .into_iter()
            .filter(|(name, _)| !has(&container, name))
            .filter_map(|(name, fresh)| variable(draft, group, name, fresh))
            .collect();
        draft.extend(DEFAULT.id, group, "env", missing);
    }
}

/// The group's `max-cpu`, rounded up.
fn whole_cpus(draft: &Draft<'_>, group: &Group<'_>) -> Option<i128> {
    let resize_limits = draft.object.ippr.resize_limits(group.name?)?;
    resize_limits
        .amount(Resource::Cpu)
        .map(Quantity::ceil_units)
}

fn has(container: &Container<'_>, name: &str) -> bool {
    container.env_index(name).is_some()
}

/// A variable to write, or `None` where the stored group has none.
fn variable(
    draft: &Draft<'_>,
    group: &Group<'_>,
    name: &'static str,
    fresh: String,
) -> Option<DraftEntry> {
    let (value, origin) = match draft.growing_before(group) {
        None => (fresh, Origin::Fresh),
        Some(old) => {
            // An empty value comes from elsewhere (`valueFrom`), and nothing here knows from where.
            let value = old.env(name).filter(|value| !value.is_empty())?;
            (value.to_owned(), Origin::CarriedOver)
        }
    };
    Some(DraftEntry {
        name,
        item: json!({"name": name, "value": value}),
        value: value.into(),
        origin,
    })
}
