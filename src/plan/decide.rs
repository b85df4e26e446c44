//! From a snapshot to a plan: the phases in order.
//! (Ray, `scheduler.py`, `ResourceDemandScheduler.schedule`.)

use std::collections::BTreeSet;

use super::candidates::States;
use super::demand::{self, Demand, Kind};
use super::fit::Run;
use super::group::ClusterConfig;
use super::improvements::{Improvements, Strategy};
use super::names::{Name, Names};
use super::node::{Amount, Cause, Fate, Node, Source, Stage};
use super::outcome::{Plan, Problem};
use super::pod_size::{self, Around};
use super::report::Report;
use super::resize::Size;
use super::room::Room;
use super::shape::Shapes;
use super::view::{self, Leftovers, Row, Sight};
use super::world::World;
use super::{availability, conclude, explain, limits, raylet};
use crate::ray::{Cluster, Kind as ObjectKind, object_at, text_at};
use crate::snapshot::Snapshot;
use crate::snapshot::pod::Pod;

/// How to decide.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Ray's way, or better.
    pub strategy: Strategy,
    /// After how many seconds pods on their way that nothing needs are given up; `None`, as in
    /// Ray by default, keeps them.
    pub pending_idle_timeout_s: Option<f64>,
    /// Keep GPU nodes for requests that name a GPU (`AUTOSCALER_CONSERVE_GPU_NODES`).
    pub conserve_gpus: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            strategy: Strategy::default(),
            pending_idle_timeout_s: None,
            conserve_gpus: true,
        }
    }
}

/// What the phases leave behind.
pub(crate) struct Decided<'a> {
    pub(crate) world: World,
    pub(crate) config: ClusterConfig,
    pub(crate) demands: Vec<Demand<'a>>,
    /// Units that could not be placed, in order.
    pub(crate) left: Vec<Run>,
    pub(crate) own: &'a [Pod<'a>],
    pub(crate) leftovers: Leftovers<'a>,
    pub(crate) unneeded_since: std::collections::BTreeMap<String, Vec<f64>>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) now: f64,
}

/// Decides what is to be done about the RayCluster of a snapshot. A pure function: equal
/// snapshots give equal plans.
pub fn decide(snapshot: &Snapshot, settings: &Settings) -> (Plan, Report) {
    let pods: Vec<Pod<'_>> = snapshot.pods.iter().filter_map(Pod::parse).collect();
    let name = snapshot.cluster_name();
    let (own, others): (Vec<_>, Vec<_>) = pods
        .into_iter()
        .partition(|pod| pod.cluster().is_none_or(|cluster| cluster == name));
    let decided = Decision {
        snapshot,
        settings,
        own: &own,
        others: &others,
    }
    .run();
    let plan = conclude::plan(snapshot, settings, &decided);
    let report = explain::report(&decided, &plan);
    (plan, report)
}

/// The groups of a snapshot's RayCluster.
pub(crate) fn read_config(snapshot: &Snapshot) -> ClusterConfig {
    let object = snapshot.ray_cluster.as_object();
    let part = |key| object.and_then(|object| object_at(object, key));
    let annotations = part("metadata").and_then(|metadata| object_at(metadata, "annotations"));
    let annotation = annotations.and_then(|all| text_at(all, crate::ray::ippr::ANNOTATION));
    part("spec").map_or_else(ClusterConfig::default, |spec| {
        ClusterConfig::of(&Cluster::parse(ObjectKind::RayCluster, spec), annotation)
    })
}

struct Decision<'a> {
    snapshot: &'a Snapshot,
    settings: &'a Settings,
    own: &'a [Pod<'a>],
    others: &'a [Pod<'a>],
}

impl<'a> Decision<'a> {
    fn run(&self) -> Decided<'a> {
        let now = self.snapshot.seconds().unwrap_or_default();
        let mut config = read_config(self.snapshot);
        let mut problems = std::mem::take(&mut config.problems);
        let (mut rows, leftovers) = view::rows(self.snapshot, self.own);
        if self.improvements().settled_first {
            view::add_awaited(&mut rows, &config, self.own);
        }
        let (mut world, demands) = self.world(&config, &rows, now, &mut problems);
        if self.improvements().settled_replicas {
            world.leaving = leaving(&config, &leftovers);
        }
        limits::enforce_minima(&mut world);
        limits::enforce_group_maxima(&mut world);
        limits::enforce_cluster_maximum(&mut world);
        let left = serve(&mut world, &demands);
        let unneeded_since = self.idle(&mut world, &config, now);
        Decided {
            world,
            config,
            demands,
            left,
            own: self.own,
            leftovers,
            unneeded_since,
            problems,
            now,
        }
    }

    fn improvements(&self) -> Improvements {
        self.settings.strategy.improvements()
    }

    /// Everything as numbers, nodes included.
    fn world(
        &self,
        config: &ClusterConfig,
        rows: &[Row<'_>],
        now: f64,
        problems: &mut Vec<Problem>,
    ) -> (World, Vec<Demand<'a>>) {
        let gcs = &self.snapshot.gcs;
        let mut texts = demand::texts(gcs);
        view::texts(self.snapshot, config, &mut texts);
        let names = Names::of(texts);
        let sight = Sight {
            wanted: wanted(gcs, &names),
            labels: labels(gcs, &names),
            names: &names,
        };
        let groups = config.groups.iter().enumerate();
        let mut templates: Vec<Node> = groups
            .map(|(number, group)| sight.template(group, number))
            .collect();
        let rooms = self.rooms();
        let mut nodes = Nodes {
            decision: self,
            config,
            sight: &sight,
            rooms: &rooms.1,
            now,
            list: Vec::new(),
        };
        for row in rows {
            nodes.add(row, problems);
        }
        let mut nodes = nodes.list;
        let (cpu, memory, gpu) = (names.get("CPU"), names.get("memory"), names.get("GPU"));
        let bases = templates.clone();
        size(
            config,
            (cpu, memory),
            &mut templates,
            &mut nodes,
            self.improvements(),
        );
        let mut shapes = Shapes::default();
        let demands = demand::all(gcs, &names, &mut shapes);
        let world = World {
            preferences: availability::preferences(
                &config.groups,
                &self.snapshot.history.unavailable,
                now,
            ),
            names,
            cpu,
            memory,
            gpu,
            shapes,
            states: States::default(),
            groups: config.groups.clone(),
            bases,
            templates,
            order: (0..nodes.len()).collect(),
            nodes,
            rooms: rooms.0,
            leaving: Vec::new(),
            max_nodes: config.max_nodes,
            conserve_gpus: self.settings.conserve_gpus,
            improvements: self.improvements(),
        };
        (world, demands)
    }

    fn rooms(&self) -> (Vec<Room>, std::collections::HashMap<String, usize>) {
        match &self.snapshot.nodes {
            Some(nodes) if self.improvements().node_room => {
                let pods: Vec<Pod<'_>> = self.own.iter().chain(self.others).cloned().collect();
                Room::all(nodes, &pods)
            }
            _ => (Vec::new(), std::collections::HashMap::new()),
        }
    }

    fn idle(
        &self,
        world: &mut World,
        config: &ClusterConfig,
        now: f64,
    ) -> std::collections::BTreeMap<String, Vec<f64>> {
        let pending = self.settings.pending_idle_timeout_s;
        let remembered = &self.snapshot.history.unneeded_since;
        let mut notes = match pending {
            Some(_) => limits::note_unneeded(world, remembered, now),
            None => std::collections::BTreeMap::new(),
        };
        limits::enforce_idle(
            world,
            limits::Timeouts {
                cluster: config.idle_timeout_s,
                pending,
            },
        );
        limits::forget_removed(world, &mut notes);
        notes
    }
}

/// Serves the demands in order; what could not be placed.
fn serve(world: &mut World, demands: &[Demand<'_>]) -> Vec<Run> {
    let mut left = Vec::new();
    let mut tasks = Vec::new();
    for demand in demands {
        match (&demand.kind, &demand.runs) {
            (Kind::Tasks(..), Ok(runs)) => tasks.extend(runs.iter().copied()),
            (Kind::Constraint(0), Ok(runs)) => {
                all_or_nothing(world, runs, Source::Constraint, &mut left);
            }
            (Kind::Gang(..), Ok(runs)) => all_or_nothing(world, runs, Source::Demand, &mut left),
            (_, Ok(runs)) => left.extend(runs.iter().copied()),
            (_, Err(_)) => {}
        }
    }
    let packed = world.pack(tasks, Source::Demand);
    left.extend(packed.left.iter().copied());
    world.commit(packed);
    left
}

fn all_or_nothing(world: &mut World, runs: &[Run], source: Source, left: &mut Vec<Run>) {
    let packed = world.pack(runs.to_vec(), source);
    if packed.left.is_empty() {
        world.commit(packed);
    } else {
        left.extend(runs.iter().copied());
    }
}

/// Turns rows into nodes.
struct Nodes<'d, 'a> {
    decision: &'d Decision<'a>,
    config: &'d ClusterConfig,
    sight: &'d Sight<'d>,
    rooms: &'d std::collections::HashMap<String, usize>,
    now: f64,
    list: Vec<Node>,
}

impl Nodes<'_, '_> {
    fn add(&mut self, row: &Row<'_>, problems: &mut Vec<Problem>) {
        let number = self.config.number(row.group);
        let group = number.and_then(|number| self.config.groups.get(number));
        let improvements = self.decision.improvements();
        if group.is_none() && !(improvements.isolated_faults && row.stage == Stage::Running) {
            return;
        }
        let mut node = self.sight.node(row, number.unwrap_or(usize::MAX), group);
        if let Some(reason) = fault(&node, self.sight.names) {
            let counted = improvements.isolated_faults;
            problems.push(Problem {
                at: format!("Ray node of pod {}", node.pod),
                reason,
                effect: if counted {
                    "only what there is counts"
                } else {
                    "it is not counted on"
                }
                .to_owned(),
            });
            if !counted {
                return;
            }
            node.amounts.iter_mut().for_each(Amount::bound);
        }
        if group.is_none() {
            node.fate = Fate::Remove(Cause::GroupGone);
            node.gone_group = Some(row.group.to_owned());
        }
        match self.resize(row, &node) {
            Ok(resize) => node.resize = resize,
            Err(reason) => problems.push(Problem {
                at: format!("pod {}", node.pod),
                reason,
                effect: "it does not grow in place".to_owned(),
            }),
        }
        if improvements.mended_raylets {
            let names = self.sight.names;
            raylet::mend(&mut node, names.get("CPU"), names.get("memory"));
        }
        self.list.push(node);
    }

    fn resize(&self, row: &Row<'_>, node: &Node) -> Result<Option<super::resize::Resize>, String> {
        let group = self.config.groups.get(node.group);
        let (caps, base) = (
            group.and_then(|group| group.caps),
            group.and_then(|group| group.base),
        );
        let (Some(pod), Some(caps), Some(base)) = (row.pod, caps, base) else {
            return Ok(None);
        };
        let memory = self
            .decision
            .snapshot
            .history
            .resizes
            .get(pod.name)
            .copied()
            .unwrap_or_default();
        let around = Around {
            now: self.now,
            improvements: self.decision.improvements(),
            memory,
            used: used(row),
        };
        let mut resize = pod_size::resize(pod, caps, base, around)?;
        if !node.ray_id.is_empty() {
            resize.raylet = Some(node.ray_id.clone());
        }
        resize.room = pod
            .node
            .and_then(|node| self.rooms.get(node))
            .copied()
            .unwrap_or(usize::MAX);
        Ok(Some(resize))
    }
}

/// Pods that still take a place in their group while they leave.
fn leaving(config: &ClusterConfig, leftovers: &Leftovers<'_>) -> Vec<u64> {
    let count = |group: &super::group::GroupConfig| {
        let of_group = |pod: &&&Pod<'_>| {
            pod.group == group.name && !group.to_delete.iter().any(|name| name == pod.name)
        };
        leftovers.draining.iter().filter(of_group).count() as u64
    };
    config.groups.iter().map(count).collect()
}

/// What is in use of CPU and memory.
fn used(row: &Row<'_>) -> Size {
    let used = |name: &str| {
        let total = row.ray.and_then(|ray| ray.total_resources.get(name));
        let free = row.ray.and_then(|ray| ray.available_resources.get(name));
        total.map_or(0.0, |total| total - free.copied().unwrap_or(0.0))
    };
    #[expect(clippy::cast_possible_truncation, reason = "whole bytes, saturating")]
    let memory = used("memory") as i64;
    Size {
        cpu: used("CPU"),
        memory,
    }
}

/// What Ray asserts of a node, and what would abort its loop.
fn fault(node: &Node, names: &Names) -> Option<String> {
    node.amounts.iter().find_map(|amount| {
        let total = amount.total.filter(|total| *total != 0.0)?;
        let used = (total - amount.free[Source::Demand as usize]?) / total;
        let name = names.text(amount.name);
        (!(0.0..=1.0).contains(&used)).then(|| format!("more of {name} is free than there is"))
    })
}

fn wanted(gcs: &crate::snapshot::gcs::ClusterResourceState, names: &Names) -> BTreeSet<Name> {
    let requested = demand::requests(gcs).flat_map(|request| request.resources_bundle.keys());
    let wanted = requested
        .map(String::as_str)
        .chain(["CPU", "memory", "GPU"]);
    wanted.filter_map(|name| names.get(name)).collect()
}

fn labels(gcs: &crate::snapshot::gcs::ClusterResourceState, names: &Names) -> BTreeSet<Name> {
    let of = |request: &crate::snapshot::gcs::ResourceRequest| {
        let selected = request
            .label_selectors
            .iter()
            .flat_map(|s| &s.label_constraints);
        let apart = request
            .placement_constraints
            .iter()
            .filter_map(|c| c.anti_affinity.as_ref());
        let labels: Vec<Name> = selected
            .filter_map(|c| names.get(&c.label_key))
            .chain(apart.filter_map(|label| names.get(&label.label_name)))
            .collect();
        labels
    };
    demand::requests(gcs).flat_map(of).collect()
}

/// Counts new nodes of growing groups at their caps; with the improved order, those on their way
/// too, and shrinking ones as if they had shrunk.
fn size(
    config: &ClusterConfig,
    (cpu, memory): (Option<Name>, Option<Name>),
    templates: &mut [Node],
    nodes: &mut [Node],
    improvements: Improvements,
) {
    let (Some(cpu), Some(memory)) = (cpu, memory) else {
        return;
    };
    let total = |node: &Node, name| {
        node.amount(name)
            .and_then(|amount| amount.total)
            .unwrap_or(0.0)
    };
    let at_cap = |node: &mut Node| {
        let Some(caps) = config.groups.get(node.group).and_then(|group| group.caps) else {
            return;
        };
        node.at_cap = true;
        node.set_total(cpu, caps.cpu.max(total(node, cpu)));
        #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
        node.set_total(memory, (caps.memory as f64).max(total(node, memory)));
    };
    templates.iter_mut().for_each(at_cap);
    if !improvements.settled_first {
        return;
    }
    for node in nodes {
        if node.stage != Stage::Running {
            at_cap(node);
        } else if let Some(desired) = node
            .resize
            .as_ref()
            .filter(|r| r.is_in_progress())
            .map(|r| r.desired)
        {
            node.set_total(cpu, desired.cpu.min(total(node, cpu)));
            #[expect(clippy::cast_precision_loss, reason = "Ray counts memory in f64 too")]
            node.set_total(memory, (desired.memory as f64).min(total(node, memory)));
        }
    }
}
