//! One RayCluster in full. Pure.

use std::fmt::Write as _;

use rayfit_core::plan::{
    CountedUsers, CpuAndMemory, NodeRemark, NodeReport, Placed, Plan, PlanReport, PlanSettings,
    decide, mebibytes,
};
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::{Kind, RayObject, Resource};
use rayfit_core::report::table::Table;
use rayfit_core::simulate::price::Price;
use rayfit_core::snapshot::Snapshot;
use rayfit_core::snapshot::group_spec::GroupSpec;
use rayfit_core::snapshot::pod::{Pod, PodRole};
use rayfit_core::snapshot::pod_object::Resources;
use rayfit_core::text::ForeignText;

use super::overview::{resize_conditions, scaler};
use crate::cli::live::LiveState;
use crate::cli::live::worker_pods::{self, WorkerPods};
use crate::controller::observe::Key;

/// The most pods that are listed. If there are more, only those with something to report are
/// listed.
const PODS: usize = 50;

/// A cluster, as far as it can be observed.
pub(super) fn text(
    key: &Key,
    look: &LiveState,
    settings: &PlanSettings,
    price: Option<Price>,
) -> String {
    let snapshot = &look.snapshot;
    // The planner of the controller decides, so that what is shown is what would be done.
    let (plan, report) = decide(snapshot, settings);
    let mut text = head(key, look);
    let _ = write!(text, "\n{}", groups(snapshot, &report));
    let sizes = sizes(&report, look.unreachable.is_none());
    if !sizes.lines.is_empty() {
        let _ = write!(text, "\n{sizes}");
    }
    if let Some(price) = price {
        let state = look.unreachable.clone().map_or(Ok(&snapshot.gcs), Err);
        let cluster = snapshot.ray_cluster.object();
        text += &worker_pods::text(&[WorkerPods::of(cluster, snapshot.pods.iter(), state, price)]);
    }
    let pods = pods(snapshot);
    if !pods.lines.is_empty() {
        let _ = write!(text, "\n{pods}");
    }
    if look.unreachable.is_none() {
        let _ = write!(text, "\n{}", demand(&report));
        text += &unmet(&plan);
        text += &node_remarks(&report);
    }
    for node in &plan.excess {
        let _ = writeln!(text, "\nabove the maximum: {node}");
    }
    text += &idle_end(snapshot, settings);
    if let Some(end) = &plan.end {
        let _ = writeln!(text, "\n{end}");
    }
    for departure in &plan.departures {
        let _ = writeln!(text, "\nabout to leave: {departure}");
    }
    for problem in &plan.problems {
        let _ = writeln!(text, "\nproblem: {problem}");
    }
    if !look.error.is_empty() {
        let _ = writeln!(text, "\nlast error:");
        for line in look.error.trim_end().lines() {
            let _ = writeln!(text, "  {}", ForeignText(line));
        }
    }
    text
}

fn head(key: &Key, look: &LiveState) -> String {
    let cluster = look.snapshot.ray_cluster.object();
    let empty = serde_json::Map::new();
    let object = RayObject::of_kind(Kind::RayCluster, cluster.as_object().unwrap_or(&empty));
    let by = match scaler(&object) {
        "" => "not Rayfit",
        by => by,
    };
    let nodes = look.snapshot.gcs.node_states.iter();
    let running = nodes.filter(|node| node.is_running()).count();
    let gcs = match &look.unreachable {
        None => format!("{running} nodes"),
        Some(why) => format!("cannot be asked: {why}"),
    };
    let mode = format!("{}, scaled by {by}", object.reconcile_mode());
    let on = cluster["spec"]["enableInTreeAutoscaling"] == true;
    let state = cluster["status"]["state"].as_str();
    let mut text = format!("{key}\n");
    for (name, value) in [
        ("mode", mode),
        ("autoscaling", if on { "on" } else { "off" }.to_owned()),
        ("state", state.unwrap_or("unknown").to_owned()),
        ("ray", gcs),
    ] {
        let _ = writeln!(text, "  {name:<12} {}", ForeignText(value));
    }
    if let Some(limitation) = look.limitation() {
        let _ = writeln!(text, "  {:<12} {limitation}", "settings");
    }
    text
}

fn groups(snapshot: &Snapshot, report: &PlanReport) -> Table {
    let mut table = Table::new(&[
        "GROUP", "RUNNING", "PENDING", "REPLICAS", "MIN", "MAX", "NOTE",
    ]);
    let specs = snapshot.ray_cluster.spec.as_ref();
    for group in &report.groups {
        let spec = specs.and_then(|specs| specs.worker_group(&group.name));
        let number = |of: fn(&GroupSpec) -> Option<i64>| {
            let number = spec.and_then(|(_, spec)| of(spec));
            number.map(|number| number.to_string()).unwrap_or_default()
        };
        table.line([
            group.name.clone(),
            group.running.to_string(),
            group.pending.to_string(),
            number(|spec| spec.replicas),
            number(|spec| spec.min_replicas),
            number(|spec| spec.max_replicas),
            group.limit.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// The total size of the pods of each group, the part in use if Ray says so, and the size at their limits.
fn sizes(report: &PlanReport, is_told: bool) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "CPU",
        "IN USE",
        "AT LIMITS",
        "MEMORY",
        "IN USE",
        "AT LIMITS",
    ]);
    let cpu = |sum: CpuAndMemory| Quantity::from_milli(sum.cpu_milli).display_cpu();
    let memory = |sum: CpuAndMemory| mebibytes(sum.memory_bytes);
    for group in &report.groups {
        let Some(sizes) = group.sizes else { continue };
        let in_use = |text: String| if is_told { text } else { String::new() };
        table.line([
            group.name.clone(),
            cpu(sizes.has),
            in_use(cpu(sizes.in_use)),
            cpu(sizes.up_to),
            memory(sizes.has),
            in_use(memory(sizes.in_use)),
            memory(sizes.up_to),
        ]);
    }
    table
}

/// Sizes and resize limits of pods that may grow or are being resized.
fn pods(snapshot: &Snapshot) -> Table {
    let resize_limits = &snapshot.ray_cluster.ippr;
    let mut table = Table::new(&[
        "POD",
        "GROUP",
        "CPU",
        "RESIZE LIMIT",
        "MEMORY",
        "RESIZE LIMIT",
        "RESIZE",
    ]);
    let cpu = |of: Option<Quantity>| of.map(Quantity::display_cpu).unwrap_or_default();
    let memory = |of: Option<Quantity>| of.map(Quantity::display_memory).unwrap_or_default();
    let pods = snapshot.pods.iter();
    for pod in pods.filter(|pod| pod.role != PodRole::Other && !pod.ended) {
        let resize = resize(&pod);
        // The annotation `ray.io/ippr` calls the head's group so, whatever the label of the head pod says.
        let is_head = pod.role == PodRole::Head;
        let group = if is_head { "headgroup" } else { pod.group };
        let grows = resize_limits.resize_limits(group);
        if grows.is_none() && resize.is_empty() || table.lines.len() >= PODS && resize.is_empty() {
            continue;
        }
        let limit = |resource| grows.and_then(|resize_limits| resize_limits.amount(resource));
        table.line([
            pod.name.to_owned(),
            pod.group.to_owned(),
            cpu(size(&pod, "cpu")),
            cpu(limit(Resource::Cpu)),
            memory(size(&pod, "memory")),
            memory(limit(Resource::Memory)),
            resize,
        ]);
    }
    table
}

/// The resources that the ray container has now, or else those in its spec.
fn size(pod: &Pod<'_>, resource: &str) -> Option<Quantity> {
    let of = |resources: Resources| resources.limits.or(resources.requests).get(resource);
    let container = pod.containers().first()?;
    let mut statuses = pod.container_statuses().iter();
    let status = statuses.find(|status| status.name == container.name);
    let given = status.and_then(|status| of(status.resources?));
    given.or_else(|| of(container.resources))
}

fn resize(pod: &Pod<'_>) -> String {
    let texts = resize_conditions(pod).map(|condition| {
        let reason = condition.reason.as_deref();
        let reason = reason.filter(|reason| !reason.is_empty());
        let message = condition.message.as_deref();
        let message = message.filter(|message| !message.is_empty());
        let reason = reason.unwrap_or("in progress");
        message.map_or_else(
            || reason.to_owned(),
            |message| format!("{reason}: {message}"),
        )
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn demand(report: &PlanReport) -> String {
    let mut text = if report.demands.is_empty() {
        "nothing is pending\n".to_owned()
    } else {
        let mut table = Table::new(&["PENDING", "UNITS", "NOT MET", "GOES TO"]);
        for demand in &report.demands {
            let units = (demand.count, demand.unmet);
            table.line(line(&demand.demand, units, &demand.placed));
        }
        table.to_string()
    };
    if !report.standby.is_empty() {
        let mut table = Table::new(&["KEPT READY", "UNITS", "NOT MET", "IS ON"]);
        for kept in &report.standby {
            table.line(line(&kept.demand, (kept.count, kept.unmet), &kept.placed));
        }
        let _ = write!(text, "\n{table}");
    }
    text
}

fn line(what: &str, (count, unmet): (u64, u64), placed: &[Placed]) -> [String; 4] {
    let placed: Vec<String> = placed.iter().map(ToString::to_string).collect();
    [
        what.to_owned(),
        count.to_string(),
        unmet.to_string(),
        placed.join("; "),
    ]
}

/// Idle pods that are kept, and pods that are nearly full, with the reason.
fn node_remarks(report: &PlanReport) -> String {
    let is_shown = |node: &&NodeReport| {
        matches!(
            node.reason,
            NodeRemark::Kept(_)
                | NodeRemark::Released(_)
                | NodeRemark::KeptSmall(_)
                | NodeRemark::NearlyFull { .. }
        )
    };
    let lines = report.nodes.iter().filter(is_shown);
    let lines: Vec<String> = lines.map(|node| format!("{node}\n")).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}", lines.concat())
}

/// The end of a cluster that nobody uses, and who uses it now. Since when nobody does is known only where
/// it is scaled.
fn idle_end(snapshot: &Snapshot, settings: &PlanSettings) -> String {
    let spec = snapshot.ray_cluster.spec.as_ref();
    let Some(options) = spec.and_then(|spec| spec.idle_end.as_ref()) else {
        return String::new();
    };
    let without = CountedUsers::of(settings.strategy).none();
    let time = || format!("after {} seconds with {without}", options.timeout);
    let end = match options.policy.as_str() {
        _ if options.is_suspended => "it is suspended (spec.idleSuspend)".to_owned(),
        "Suspend" => format!("it is suspended {}", time()),
        "Delete" => format!("it is deleted {}", time()),
        policy => format!("it does not end by itself, because {policy:?} is no policy"),
    };
    let used = snapshot.gcs.users.as_ref().map_or_else(
        || "who uses it is not known".to_owned(),
        |users| {
            let (drivers, actors) = (users.drivers, users.detached_actors);
            format!("used by {drivers} drivers and {actors} detached actors")
        },
    );
    format!("\n{used}; {end} (spec.idleTerminationOptions)\n")
}

fn unmet(plan: &Plan) -> String {
    let mut text = String::new();
    for unmet in &plan.unmet {
        let _ = writeln!(text, "\ncannot be met: {} x {}", unmet.count, unmet.demand);
        for reason in &unmet.reasons {
            let _ = writeln!(text, "  {reason}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rayfit_core::plan::{GroupReport, GroupSizes, KeptSmall, Strategy};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_cluster_of_many_pods_is_shown_with_some_of_them() {
        let resources = json!({"limits": {"cpu": "1", "memory": "2Gi"}});
        let template = json!({"spec": {"containers": [{"name": "ray", "resources": resources}]}});
        let pod = |number: usize| {
            json!({
                "metadata": {"name": format!("cpu-{number}"), "labels": {"ray.io/cluster": "demo",
                    "ray.io/node-type": "worker", "ray.io/group": "cpu"}},
                "spec": template["spec"],
                "status": {"phase": "Running"},
            })
        };
        let pods_of_group: Vec<Value> = (0..=PODS).map(pod).collect();
        let limits = json!({"groups": {"cpu":
            {"max-cpu": 4, "max-memory": "8Gi", "resize-timeout": 300}}});
        let snapshot: Snapshot = serde_json::from_value(json!({
            "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
            "rayCluster": {
                "metadata": {"name": "demo", "namespace": "ray",
                    "annotations": {"ray.io/ippr": limits.to_string()}},
                "spec": {
                    "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template},
                    "workerGroupSpecs": [{"groupName": "cpu", "replicas": 60, "minReplicas": 0,
                        "maxReplicas": 99, "rayStartParams": {}, "template": template}],
                },
            },
            "pods": pods_of_group,
            "gcs": {"nodeStates": []},
        }))
        .unwrap();
        assert_eq!(pods(&snapshot).lines.len(), PODS);
    }

    #[test]
    fn a_group_is_shown_with_its_size_and_what_ray_says_of_its_use() {
        let amounts = |cpu_milli: i64, memory_bytes: i64| CpuAndMemory {
            cpu_milli,
            memory_bytes,
        };
        let group = |name: &str, sizes| GroupReport {
            terminating: 0,
            name: name.to_owned(),
            running: 2,
            pending: 0,
            launch: 0,
            remove: 0,
            max: 4,
            limit: None,
            below_limits: None,
            sizes,
        };
        let sizes_of_cpu = GroupSizes {
            has: amounts(4000, 8 << 30),
            in_use: amounts(2500, (3 << 30) + 5),
            up_to: amounts(16_000, 32 << 30),
        };
        let report = PlanReport {
            groups: vec![group("cpu", Some(sizes_of_cpu)), group("gpu", None)],
            ..PlanReport::default()
        };
        let line = |is_told| {
            let text = sizes(&report, is_told).to_string();
            assert_eq!(text.lines().count(), 2, "{text}");
            let words = text.lines().nth(1).unwrap().split_whitespace();
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(
            line(true),
            ["cpu", "4", "2500m", "16", "8Gi", "3073Mi", "32Gi"]
        );
        assert_eq!(line(false), ["cpu", "4", "-", "16", "8Gi", "-", "32Gi"]);
    }

    #[test]
    fn small_pods_are_among_those_that_are_kept() {
        let node = |pod: &str, reason| NodeReport {
            group: "cpu".to_owned(),
            pods: vec![pod.to_owned()],
            count: 1,
            reason,
        };
        let small = NodeRemark::KeptSmall(KeptSmall {
            seconds: 300,
            of_gaps: None,
        });
        let report = PlanReport {
            nodes: vec![node("cpu-1", small), node("cpu-2", NodeRemark::Stopping)],
            ..PlanReport::default()
        };
        let text = node_remarks(&report);
        assert!(text.contains("cpu-1: idle, and kept for 300 s"), "{text}");
        assert!(!text.contains("cpu-2"), "{text}");
    }

    #[test]
    fn a_cluster_that_ends_by_itself_says_after_how_long_and_who_uses_it() {
        let text = |options: Value, strategy| {
            let users = json!({"drivers": 1, "detachedActors": 2});
            let snapshot: Snapshot = serde_json::from_value(json!({
                "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
                "rayCluster": {"metadata": {"name": "demo"}, "spec": options},
                "pods": [], "gcs": {"users": users},
            }))
            .unwrap();
            let settings = PlanSettings {
                strategy,
                ..PlanSettings::default()
            };
            idle_end(&snapshot, &settings)
        };
        let after_300 = json!({"idleTerminationOptions": {"timeoutSeconds": 300}});
        assert_eq!(
            text(after_300.clone(), Strategy::Rayfit),
            "\nused by 1 drivers and 2 detached actors; it is suspended after 300 seconds with neither \
             a driver nor a detached actor (spec.idleTerminationOptions)\n"
        );
        let as_ray = text(after_300, Strategy::Ray);
        assert!(
            as_ray.contains("after 300 seconds with no driver ("),
            "{as_ray}"
        );
        assert_eq!(text(json!({}), Strategy::Rayfit), "");
    }
}
