//! From rows to nodes in numbers, with their faults, resizes and sizes.

use std::collections::BTreeMap;

use crate::plan::demand::requests::{self, Demand};
use crate::plan::demand::shape::Shapes;
use crate::plan::growth::resize::Resize;
use crate::plan::growth::size::{Size, counted};
use crate::plan::list::{DemandIndex, List, NodeIndex};
use crate::plan::nodes::amounts::CountedAmounts;
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::{NodeClasses, PlannedNode, SizeNames};
use crate::plan::nodes::preference::preferences;
use crate::plan::nodes::rows::NodeRow;
use crate::plan::nodes::tables::SliceTables;
use crate::plan::nodes::view::NodeReader;
use crate::plan::outcome::problem::{Problem, ProblemPlace, ProblemReason};
use crate::plan::packing::budget::{BUDGET, WorkBudget};
use crate::plan::packing::state::{DecisionState, PlannedGroup};
use crate::plan::situation::Situation;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::Pod;

/// Turns the nodes, the groups and the requests into numbers, so that comparing them is cheap. There is a node for
/// each row, in their order. `further` are the names of resources that something other than demand asks for.
pub(crate) fn state<'a>(
    situation: &Situation<'a>,
    config: &ClusterConfig,
    rows: &[NodeRow<'_>],
    further: &[&str],
) -> (DecisionState, List<DemandIndex, Demand<'a>>) {
    let (snapshot, settings) = (situation.snapshot, situation.settings);
    let reader = NodeReader::of(snapshot, config, further);
    let mut nodes = List::default();
    for row in rows {
        let group = config.number(row.group);
        let group = group.map(|number| (number, &config.groups[number]));
        let mut node = reader.node(row, group);
        node.born = nodes.upcoming(0);
        nodes.push(node);
    }
    let unavailable = &situation.history().unavailable;
    let preferred = preferences(&config.groups, unavailable, situation.now);
    let groups = config.groups.enumerate().zip(preferred);
    let groups = groups.map(|((number, group), preference)| {
        let base = reader.template(group, number);
        PlannedGroup {
            config: group.clone(),
            preference,
            block: None,
            template: base.clone(),
            base,
            at_base: None,
            draining: 0,
        }
    });
    let groups = groups.collect();
    let names = reader.names;
    let mut shapes = Shapes::default();
    let demands = requests::all(&snapshot.gcs, &names, &mut shapes);
    let state = DecisionState {
        cpu: names.number("CPU"),
        memory: names.number("memory"),
        gpu: names.number("GPU"),
        names,
        shapes,
        classes: NodeClasses::default(),
        groups,
        has_blocked: false,
        order: nodes.positions().collect(),
        nodes,
        tables: SliceTables::default(),
        headrooms: List::default(),
        max_nodes: config.max_nodes,
        max_workers: settings.max_workers,
        unread_nodes: 0,
        is_cut: false,
        unneeded_since: BTreeMap::new(),
        work: WorkBudget::new(BUDGET),
        conserve_gpus: settings.conserve_gpus,
    };
    (state, demands)
}

/// Problems of nodes of which more is free than they have. On such a node Ray's assertions fail, which aborts Ray's
/// loop.
pub(crate) fn faults(state: &DecisionState, effect: &'static str) -> Vec<Problem> {
    let fault = |node: &PlannedNode| {
        let name = node.amounts.listed.iter().find_map(|amount| {
            let total = amount.total.filter(|total| *total != 0.0)?;
            let used = (total - amount.free[CountedAmounts::Free as usize]?) / total;
            (!(0.0..=1.0).contains(&used)).then_some(amount.name)
        })?;
        Some(Problem {
            at: ProblemPlace::RayNode {
                pod: node.pod().unwrap_or_default().to_owned(),
            },
            reason: ProblemReason::FreeAboveTotal(state.names.text(name).to_owned()),
            effect: effect.into(),
        })
    };
    state.nodes.iter().filter_map(fault).collect()
}

/// Reads the resizes of the pods whose groups may grow, by `read`. Returns what cannot be read.
pub(crate) fn read_resizes<'r, 'a: 'r>(
    state: &mut DecisionState,
    rows: &'r [NodeRow<'a>],
    mut read: impl FnMut(
        NodeIndex,
        &'r NodeRow<'a>,
        &Pod<'_>,
        &GroupSpec,
        (Size, Size),
    ) -> Result<Resize, ProblemReason>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, row) in state.nodes.positions().zip(rows) {
        let node = &mut state.nodes[number];
        let group = node.group().map(|group| &state.groups[group].config);
        let Some((pod, group)) = row.pod.zip(group) else {
            continue;
        };
        let Some(sizes) = group.resize_limits.zip(group.base) else {
            continue;
        };
        match read(number, row, pod, group, sizes) {
            Ok(mut resize) => {
                // The note may name the raylet that ran before the container was started again.
                if let Some(id) = node.ray_id() {
                    resize.note.raylet_id = Some(id.to_owned());
                }
                node.resize = Some(Box::new(resize));
            }
            Err(reason) => problems.push(Problem {
                at: ProblemPlace::Pod(pod.name.to_owned()),
                reason,
                effect: "it does not grow in place".into(),
            }),
        }
    }
    problems
}

/// Counts new nodes of groups that may grow at their resize limits.
pub(crate) fn count_at_limits(state: &mut DecisionState) {
    let names = (state.cpu, state.memory);
    for group in state.groups.iter_mut() {
        let limits = group.config.resize_limits;
        if let Some(limits) = limits.filter(|_| group.at_base.is_none()) {
            raise(&mut group.template, names, limits);
        }
    }
}

/// Counts a node with no less than a size.
pub(crate) fn raise(node: &mut PlannedNode, names: SizeNames, least: Size) {
    for (name, least) in [(names.0, least.cpu), (names.1, counted(least.memory))] {
        let total = node.amounts.total(name).unwrap_or(0.0);
        node.set_total(name, least.max(total));
    }
}
