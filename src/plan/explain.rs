//! Reasons, in words.

use std::collections::{BTreeMap, HashMap};

use super::conclude::kind;
use super::decide::Decided;
use super::demand::{Demand, Kind};
use super::node::{Fate, Node, Source, Stage};
use super::outcome::Plan;
use super::pack::Step;
use super::report::{DemandReport, GroupReport, NodeReport, Placed, Report};
use super::resize::{Progress, Resize};
use super::shape::Shape;
use super::world::World;
use crate::quantity::Quantity;
use crate::snapshot::gcs::{LabelOperator, ResourceRequest};
use crate::snapshot::moment;

/// How many pods are named where many have the same to be said of them.
const NAMED: usize = 3;

/// The report of a decision.
pub(crate) fn report(decided: &Decided<'_>, plan: &Plan) -> Report {
    Report {
        demands: demands(decided, plan),
        groups: groups(decided),
        nodes: nodes(decided),
    }
}

/// Units and nodes by step and group.
type Places = BTreeMap<(Step, usize), (u64, u64)>;

fn demands(decided: &Decided<'_>, plan: &Plan) -> Vec<DemandReport> {
    let mut placed: Vec<Places> = vec![Places::new(); decided.demands.len()];
    for node in decided.world.in_order() {
        for take in &node.takes {
            let at = placed
                .get_mut(take.demand)
                .map(|map| map.entry((take.step, node.group)).or_default());
            if let Some((count, nodes)) = at {
                *count += take.count;
                *nodes += 1;
            }
        }
    }
    let unmet: HashMap<_, u64> = plan
        .unmet
        .iter()
        .map(|u| ((u.kind, u.index), u.count))
        .collect();
    let report = |(demand, placed): (&Demand<'_>, Places)| {
        let (kind, index) = kind(demand);
        let units = demand.runs.iter().flatten().map(|run| run.count).sum();
        let placed = placed
            .into_iter()
            .map(|((step, group), (count, nodes))| Placed {
                step,
                group: group_name(&decided.world, group),
                count,
                nodes,
            });
        DemandReport {
            kind,
            index,
            demand: title(demand),
            count: units,
            placed: placed.collect(),
            unmet: unmet.get(&(kind, index)).copied().unwrap_or(0),
        }
    };
    decided.demands.iter().zip(placed).map(report).collect()
}

fn group_name(world: &World, group: usize) -> String {
    world
        .groups
        .get(group)
        .map(|group| group.name.clone())
        .unwrap_or_default()
}

fn groups(decided: &Decided<'_>) -> Vec<GroupReport> {
    let world = &decided.world;
    let running = world.count(|node| node.stays() && node.stage == Stage::Running);
    let launch = world.count(|node| node.fate == Fate::Launch);
    let pending = world.count(|node| node.fate == Fate::Stay && node.stage != Stage::Running);
    let remove = world.count(|node| !node.stays());
    let get = |counts: &[u64], number: usize| counts.get(number).copied().unwrap_or(0);
    let groups = world.groups.iter().enumerate().map(|(number, group)| {
        let (running, pending, launch) = (
            get(&running, number),
            get(&pending, number),
            get(&launch, number),
        );
        let full = group.index.is_some() && running + pending + launch >= group.max;
        GroupReport {
            name: group.name.clone(),
            running,
            pending,
            launch,
            remove: get(&remove, number),
            max: group.max,
            limit: full.then(|| format!("at maxReplicas {}", group.max_replicas)),
        }
    });
    groups.collect()
}

/// What is to be said of single nodes: why a pod did not grow, or why it goes.
fn nodes(decided: &Decided<'_>) -> Vec<NodeReport> {
    let mut reports: Vec<NodeReport> = Vec::new();
    let mut index: HashMap<(usize, String), usize> = HashMap::new();
    for node in decided.world.in_order().filter(|node| !node.pod.is_empty()) {
        let Some(reason) = remark(decided, node) else {
            continue;
        };
        let at = *index
            .entry((node.group, reason.clone()))
            .or_insert(reports.len());
        if at == reports.len() {
            let group = group_name(&decided.world, node.group);
            reports.push(NodeReport {
                group,
                pods: Vec::new(),
                count: 0,
                reason,
            });
        }
        if let Some(report) = reports.get_mut(at) {
            report.count += 1;
            if report.pods.len() < NAMED {
                report.pods.push(node.pod.clone());
            }
        }
    }
    reports
}

fn remark(decided: &Decided<'_>, node: &Node) -> Option<String> {
    if let Fate::Remove(cause) = node.fate {
        return Some(format!("goes ({})", cause.words()));
    }
    if node.stage == Stage::Stopping {
        return Some("was asked to stop".to_owned());
    }
    let resize = node.resize.as_ref()?;
    why_not_grown(decided, resize)
}

fn why_not_grown(decided: &Decided<'_>, resize: &Resize) -> Option<String> {
    if resize.is_to_send() {
        return None;
    }
    if let Some(at) = resize.resizing_at {
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970")]
        let since = (decided.now - at as f64).max(0.0);
        return Some(format!("resize in flight since {since:.0} s"));
    }
    if let Some(reason) = &resize.barred {
        return Some(reason.clone());
    }
    match &resize.progress {
        Progress::Finished => {}
        Progress::Pending(reason) => return Some(format!("its resize is {reason}")),
        Progress::Underway | Progress::New => return Some("its resize is under way".to_owned()),
        Progress::Error => return Some("its resize failed".to_owned()),
    }
    if let Some(reason) = resize
        .failure
        .as_ref()
        .filter(|_| resize.failed_at.is_some())
    {
        return Some(format!("its resize failed for good: {reason}"));
    }
    if !resize.current.is_below(resize.limit()) {
        return Some("at its cap".to_owned());
    }
    short(decided, resize)
}

/// What the Kubernetes node lacks for the pod to reach its cap.
fn short(decided: &Decided<'_>, resize: &Resize) -> Option<String> {
    let room = decided.world.rooms.get(resize.room)?;
    let (limit, goal) = (resize.limit(), resize.goal(Some(room)));
    let text = |free: String, resource: &str, short: String| {
        format!(
            "node {}: {free} {resource} free, {short} short of the cap",
            room.node
        )
    };
    if goal.cpu < limit.cpu {
        let free = room.cpu.max(Quantity::ZERO).display_cpu();
        let lacking = super::room::from_cores(limit.cpu - goal.cpu).display_cpu();
        return Some(text(free, "CPU", lacking));
    }
    let lacking = Quantity::from_units(limit.memory - goal.memory);
    let free = room.memory.max(Quantity::ZERO).display_memory();
    (!lacking.is_zero()).then(|| text(free, "memory", lacking.display_memory()))
}

impl super::node::Cause {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::GroupMax => "its group is above maxReplicas",
            Self::ClusterMax => "the cluster is above its maximum",
            Self::Idle => "idle",
            Self::GroupGone => "its group was removed",
            Self::Leaving => "it was asked to stop",
            Self::Stopped => "Ray has stopped in it",
        }
    }
}

/// A demand in words.
pub(crate) fn title(demand: &Demand<'_>) -> String {
    match demand.kind {
        Kind::Constraint(_) => "request_resources()".to_owned(),
        Kind::Gang(_, gang) => format!("placement group {}", gang.title()),
        Kind::Tasks(_, by_count) => bundle(&by_count.request),
    }
}

/// `{CPU: 2, memory: 4Gi} where zone in [a]`
fn bundle(request: &ResourceRequest) -> String {
    let amounts: Vec<String> = request
        .resources_bundle
        .iter()
        .map(|(name, amount)| format!("{name}: {}", amount_text(name, *amount)))
        .collect();
    let mut text = format!("{{{}}}", amounts.join(", "));
    let conditions: Vec<String> = request
        .label_selectors
        .iter()
        .flat_map(|s| &s.label_constraints)
        .map(|c| {
            let operator = if c.operator == LabelOperator::NotIn {
                "not in"
            } else {
                "in"
            };
            format!("{} {operator} [{}]", c.label_key, c.label_values.join(", "))
        })
        .collect();
    if !conditions.is_empty() {
        text.push_str(" where ");
        text.push_str(&conditions.join(" and "));
    }
    text
}

#[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
fn amount_text(name: &str, amount: f64) -> String {
    let bytes = name == "memory" || name == "object_store_memory";
    if bytes && amount.fract() == 0.0 {
        Quantity::from_units(amount as i64).display_memory()
    } else {
        amount.to_string()
    }
}

/// Why nothing more of a demand could be placed: one reason per group.
pub(crate) fn reasons(decided: &Decided<'_>, number: usize) -> Vec<String> {
    let Some(demand) = decided.demands.get(number) else {
        return Vec::new();
    };
    let runs = match &demand.runs {
        Ok(runs) => runs,
        Err(reason) => return vec![reason.clone()],
    };
    let mut reasons = Vec::new();
    let gang = matches!(demand.kind, Kind::Gang(..) | Kind::Constraint(_));
    if gang && runs.len() + usize::from(runs.first().is_some_and(|run| run.count > 1)) > 1 {
        reasons.push("all of it must fit at once".to_owned());
    }
    for run in decided.left.iter().filter(|run| run.demand == number) {
        let shape = decided.world.shapes.get(run.shape);
        for (group, config) in decided.world.groups.iter().enumerate() {
            let reason = format!("group {}: {}", config.name, why_not(decided, group, shape));
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    reasons
}

fn why_not(decided: &Decided<'_>, group: usize, shape: &Shape) -> String {
    let world = &decided.world;
    let (Some(template), Some(config)) = (world.templates.get(group), world.groups.get(group))
    else {
        return "unknown".to_owned();
    };
    if !super::fit::admits(shape, &template.labels) {
        return "its labels do not match".to_owned();
    }
    for (name, needed) in shape.positive() {
        let has = template
            .amount(name)
            .and_then(|amount| amount.free[Source::Constraint as usize])
            .unwrap_or(0.0);
        if needed > has && !world.names.is_implicit(name) {
            let resource = world.names.text(name);
            let (needed, has) = (amount_text(resource, needed), amount_text(resource, has));
            let small = decided.stunted.get(&config.name).map(|until| {
                // A moment, not what is left until it: the text goes to Ray whenever it is another.
                let until = moment(*until);
                format!(" (new ones could not grow; they count at their first size until {until})")
            });
            let small = small.unwrap_or_default();
            return format!("a node has {resource} {has}, {needed} is needed{small}");
        }
    }
    if config.index.is_none() {
        return "there is one head".to_owned();
    }
    let stays = world.count(Node::stays).get(group).copied().unwrap_or(0);
    if stays >= config.max {
        return format!("at maxReplicas {}", config.max_replicas);
    }
    "its nodes are full, and the cluster is at its maximum".to_owned()
}
