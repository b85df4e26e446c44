//! DF09: a raylet that uses the added CPUs of its pod at once.

use serde_json::{Value, json};

use super::{DefaultId, DefaultRule, DefaultsDraft, Origin};
use crate::ray::Resource;

/// The number of worker processes that a raylet starts at a time. Without it, as many as the pod
/// had CPUs when it began (`services.py`, `start_raylet`).
const AT_A_TIME: &str = "RAY_worker_maximum_startup_concurrency";

/// The time that a raylet waits before it runs one task more of a kind than the pod had CPUs for
/// when the kind was first seen; it doubles with each, up to ten seconds, and begins at one
/// (`local_lease_manager.cc`, `ray_config_def.h`).
const FIRST_DELAY: &str = "RAY_worker_cap_initial_backoff_delay_ms";

/// Turns that waiting off altogether.
const DELAYS: &str = "RAY_worker_cap_enabled";

pub(crate) static DEFAULT: DefaultRule = DefaultRule {
    id: DefaultId(9),
    name: "ippr-worker-start",
    summary: "raylets of a group that grows in place use their new CPUs at once",
    page: include_str!("worker_start.md"),
    why: "A raylet goes on by the CPUs that its pod began with: it starts as many processes at a \
          time, and lets each further task of a kind wait, for one second, then two, then four, up \
          to ten. A pod that grew from one CPU to eight would be in use after half a minute. With \
          10 ms the delays double all the same, which is what protects a node from tasks that \
          start tasks without end.",
    apply,
};

fn apply(draft: &mut DefaultsDraft<'_>) {
    for (group, container) in draft.growing() {
        let limits = group
            .name
            .and_then(|name| draft.object.ippr.resize_limits(name));
        let Some(most) = limits.and_then(|limits| limits.amount(Resource::Cpu)) else {
            continue;
        };
        let has = |name: &str| container.env_index(name).is_some();
        let stored_container = draft.growing_before(group);
        let settings = [
            (AT_A_TIME, most.ceil_units().to_string()),
            (FIRST_DELAY, "10".to_owned()),
        ];
        let settings = settings.into_iter().filter(|(name, _)| {
            let is_needless = *name == FIRST_DELAY && has(DELAYS);
            !is_needless && !has(name)
        });
        let entries = settings.filter_map(|(name, fresh)| {
            let (value, origin) = match stored_container {
                None => (fresh, Origin::Fresh),
                Some(old) => {
                    // An empty value comes from elsewhere (`valueFrom`), and nothing here knows from where.
                    let value = old.env(name).filter(|value| !value.is_empty())?;
                    (value.to_owned(), Origin::CarriedOver)
                }
            };
            Some((name, value.into(), origin))
        });
        let item = |name: &str, value: &Value| json!({"name": name, "value": value});
        draft.extend(DEFAULT.id, group, "env", entries.collect(), item);
    }
}
