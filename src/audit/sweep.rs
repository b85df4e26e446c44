//! The sweep: follows all Ray objects, and starts again when the policies or facts have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use kube::Client;
use kube::core::NotUsed;
use rayfit_core::object_audit;
use rayfit_core::object_audit::AuditedObject;
use rayfit_core::policy::EffectivePolicy;
use rayfit_core::ray::{Kind, RayObject};
use rayfit_core::seconds::Retry;
use serde_json::Value;
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::board::Board;
use super::closing::Closing;
use super::{AuditOptions, fail_closed, reports, status};
use crate::apiserver::Informers;
use crate::apiserver::server_time::own_timestamp as now;
use crate::telemetry::Metrics;
use crate::watch::follow::{Known, follow};
use crate::watch::kinds::{ChangedPart, GATHERED, ray_objects, value};

/// The time until everything is checked again, even if nothing has changed.
const SLOW: Duration = Duration::from_mins(10);

/// The time from its beginning after which a sweep gives way to one by the namespaces that have come, gone or
/// changed meanwhile. It never does before its results are written: where namespaces come and go all the
/// time, none would ever be.
const CALM: Duration = Duration::from_secs(10);

/// The time between two checks of policies for changes.
const LOOK: Duration = Duration::from_millis(200);

/// Audits for as long as this future is polled.
pub(super) async fn audit(
    informers: &Informers,
    options: &AuditOptions,
    policy: &ArcSwap<EffectivePolicy>,
    metrics: &Metrics,
) {
    let mut written = reports::Written::default();
    let mut closing = None;
    let client = informers.client.clone();
    loop {
        let current = policy.load_full();
        let board = &Board::default();
        let began = Instant::now();
        let follow_kind = |kind| {
            let current = Arc::clone(&current);
            follow(
                informers,
                ray_objects(kind),
                GATHERED,
                move |object: ChangedPart<Value, NotUsed>| judge(kind, object, &current),
                move |known| {
                    // Objects that cannot be read still exist, so the last results stay, and nothing is
                    // written before there are any.
                    if !matches!(known, Known::Nothing) {
                        board.post(kind, known.objects());
                    }
                },
            )
        };
        tokio::select! {
            // A reader that is new makes a watch list its objects anew, so each sweep sees all of
            // them.
            () = async {
                let [a, b, c, d] = Kind::ALL.map(follow_kind);
                tokio::join!(a, b, c, d);
            } => {}
            () = write(
                &client,
                options,
                (&current, board, began),
                (&mut written, &mut closing),
                metrics,
            ) => {}
            () = outdated(policy, &current, (board, began)) => {}
        }
    }
}

fn judge(
    kind: Kind,
    mut object: ChangedPart<Value, NotUsed>,
    current: &EffectivePolicy,
) -> Option<Arc<AuditedObject>> {
    // Items of a list may lack `kind` and `apiVersion`, because the list has them for all its
    // items.
    object.kind.get_or_insert_with(|| kind.name().to_owned());
    object
        .api_version
        .get_or_insert_with(|| "ray.io/v1".to_owned());
    let object = value(&object);
    let parsed = RayObject::parse(&object).filter(|parsed| !parsed.is_deleting())?;
    let EffectivePolicy {
        facts,
        settings,
        policies,
    } = current;
    let (judged, _) = object_audit::examine(&parsed, facts, policies, settings, now());
    Some(Arc::new(judged))
}

/// Waits until all objects have to be checked again.
async fn outdated(
    policy: &ArcSwap<EffectivePolicy>,
    current: &EffectivePolicy,
    (board, began): (&Board, Instant),
) {
    // Exemptions end by the wall clock, which may be set meanwhile.
    let exemptions = current
        .policies
        .iter()
        .flat_map(|policy| &policy.exemptions);
    let ends = exemptions.map(|exemption| exemption.expires);
    let end = ends.filter(|end| *end > now()).min();
    let latest = Instant::now() + SLOW;
    // An ArcSwap tells nobody that it has changed.
    let mut look = interval(LOOK);
    loop {
        tokio::select! {
            _ = look.tick() => {}
            () = sleep_until(latest) => return,
        }
        let is_calm = board.is_written.load(Ordering::Acquire) && began.elapsed() >= CALM;
        if is_outdated(current, &policy.load(), is_calm) || end.is_some_and(|end| end <= now()) {
            return;
        }
    }
}

/// Finds a reason to judge objects differently by `next`. Namespaces that others make and delete all the time count
/// only where a sweep has come to rest.
fn is_outdated(current: &EffectivePolicy, next: &EffectivePolicy, is_calm: bool) -> bool {
    // Facts become known that were unknown when the sweep began, as after the start of the process.
    fn learned<T: Default + PartialEq>(earlier: &T, later: &T) -> bool {
        *earlier == T::default() && *later != T::default()
    }
    let (earlier, later) = (&current.facts, &next.facts);
    !next.policies.is_same(&current.policies)
        || later.kubernetes != earlier.kubernetes
        || is_calm && !Arc::ptr_eq(&later.namespaces, &earlier.namespaces)
        || learned(&earlier.namespaces, &later.namespaces)
        // Changes of nodes that are known wait for the next sweep, because they may occur every
        // minute.
        || learned(&earlier.nodes, &later.nodes)
        || learned(&earlier.limit_ranges, &later.limit_ranges)
        || learned(&earlier.resource_quotas, &later.resource_quotas)
}

/// The pause before a failed write is tried again: at first, and at the most.
const AGAIN: Retry = Retry {
    first_s: 2.0,
    longest_s: 60.0,
};

/// Writes the results whenever they have changed or could not be written before, and keeps the
/// webhooks failing closed or open as the policies ask.
async fn write(
    client: &Client,
    options: &AuditOptions,
    (current, board, began): (&EffectivePolicy, &Board, Instant),
    (written, condition): (&mut reports::Written, &mut Option<Closing>),
    metrics: &Metrics,
) {
    let mut closing = interval(fail_closed::LOOK);
    let mut is_known = false;
    let (mut failures, mut again): (u32, Option<Instant>) = (0, None);
    loop {
        tokio::select! {
            // Tokio makes the future of a branch even where its condition is false.
            () = sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {}
            () = board.changed.notified() => {
                if !is_known {
                    let took = began.elapsed().as_secs_f64();
                    metrics.audit.duration.set(took);
                    is_known = true;
                }
            }
            _ = closing.tick() => {
                let (policies, last) = (&current.policies, condition.as_ref());
                let next = fail_closed::see_to(client, options, policies, last).await;
                if next == *condition {
                    continue;
                }
                *condition = next;
            }
        }
        if !is_known {
            continue;
        }
        let (all, by_policy) = board.tallies();
        metrics.audit.set(&all);
        let statuses = status::write(client, &by_policy, condition.as_ref(), now()).await;
        let reports = reports::write(client, board, written).await;
        board.is_written.store(true, Ordering::Release);
        failures = if statuses && reports {
            0
        } else {
            failures.saturating_add(1)
        };
        let pause = AGAIN.wait(failures, fastrand::f64());
        again = (failures > 0).then(|| Instant::now() + pause);
        // The pause merges a burst of changes into one write.
        sleep(Duration::from_secs(1)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rayfit_core::facts::{Facts, Node, Nodes};
    use rayfit_core::policy::Policies;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_unknown_and_is_known_is_judged_by_at_once() {
        let base = EffectivePolicy::default();
        let with = |facts: &Facts| EffectivePolicy {
            facts: facts.clone(),
            ..base.clone()
        };
        let has_learned =
            |before: &Facts, now: &Facts| is_outdated(&with(before), &with(now), false);
        let with_nodes = |count: usize| {
            let node = json!({ "status": { "allocatable": { "cpu": "8" } } });
            let node = Node::read((&node).into());
            Facts {
                nodes: Arc::new(Nodes::new(vec![node; count])),
                ..Facts::default()
            }
        };
        let unknown = Facts::default();
        assert!(!has_learned(&unknown, &unknown));
        assert!(has_learned(&unknown, &with_nodes(1)));
        assert!(!has_learned(&with_nodes(1), &with_nodes(2)));
        assert!(!has_learned(&with_nodes(1), &unknown));
        let namespaces = with_namespaces(&["a"]).facts;
        assert!(has_learned(&unknown, &namespaces));
        let quotas = Facts {
            resource_quotas: Arc::new(BTreeMap::from([("a".to_owned(), Vec::new())])),
            ..Facts::default()
        };
        assert!(has_learned(&unknown, &quotas));
    }

    fn with_namespaces(names: &[&str]) -> EffectivePolicy {
        let labels = names
            .iter()
            .map(|name| ((*name).to_owned(), BTreeMap::new()));
        EffectivePolicy {
            facts: Facts {
                namespaces: Arc::new(labels.collect()),
                ..Facts::default()
            },
            ..EffectivePolicy::default()
        }
    }

    #[test]
    fn namespaces_that_come_and_go_do_not_keep_a_sweep_from_its_end() {
        let current = with_namespaces(&["a"]);
        let next = EffectivePolicy {
            facts: with_namespaces(&["a", "b"]).facts,
            ..current.clone()
        };
        assert!(!is_outdated(&current, &next, false));
        assert!(is_outdated(&current, &next, true));
        assert!(!is_outdated(&current, &current.clone(), true));
        // Changes that an admin makes count at once.
        let changed = EffectivePolicy {
            policies: Policies::new(Vec::new()),
            ..current.clone()
        };
        assert!(is_outdated(&current, &changed, false));
    }
}
