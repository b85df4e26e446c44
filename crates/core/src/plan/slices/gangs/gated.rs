//! Pods with scheduling gates: what a cluster has asked for and has not been admitted.

use crate::hash::HashMap;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::DemandOrigin;
use crate::plan::list::{ByGroup, DemandIndex, GroupIndex, List, NodeIndex};
use crate::plan::nodes::node::{PlannedNode, Stage};
use crate::plan::packing::state::DecisionState;
use crate::snapshot::history::JumpMemory;
use crate::snapshot::pod::{Pod, PodRole};

/// Seconds for which pods keep their scheduling gates before they count as not admitted. Kueue
/// admits within a second what fits, and may have to end other pods before.
const PATIENCE_S: f64 = 30.0;

/// Seconds by which a pod may seem older than it is: Kubernetes writes whole seconds.
const ROUNDED_S: f64 = 1.0;

/// A replica whose pods all have scheduling gates.
pub(super) struct GatedReplica<'d> {
    pub(super) group: GroupIndex,
    /// Its pods, by name.
    pub(super) pods: Vec<&'d str>,
    /// Demand, or what is kept ready, needs it.
    pub(super) is_needed: bool,
}

/// The replicas that a cluster has asked for and not got.
pub(super) struct Jump<'d> {
    /// The replicas that have not been admitted and that no placement group needs, those first that
    /// are taken back first.
    pub(super) replicas: Vec<GatedReplica<'d>>,
    /// A pod has scheduling gates.
    pub(super) is_gated: bool,
    /// It has been asked for as it is for long.
    pub(super) is_refused: bool,
    /// The number of admitted replicas of its groups.
    pub(super) admitted: u64,
    /// By group, the number of replicas not admitted, those without a pod included.
    pub(super) pending: ByGroup<u64>,
    /// Pods with scheduling gates are deleted in this round, so that what is asked for changes.
    pub(super) is_less: bool,
    /// By group, the number of further nodes that are needed, but for placement groups.
    pub(super) needed: ByGroup<u64>,
    /// By group, the number of further nodes that placement groups need.
    pub(super) of_gangs: ByGroup<u64>,
    /// By group, true for a part of it.
    concerned: ByGroup<bool>,
}

/// A node with its number.
type NumberedNode<'d> = (NodeIndex, &'d PlannedNode);

impl<'d> Jump<'d> {
    /// `None` if nothing of a jump is there or remembered.
    pub(super) fn of(decided: &'d Decided<'_>, memory: Option<&JumpMemory>) -> Option<Self> {
        let (state, now) = (&decided.state, decided.situation.now);
        let held_s = gated_s(decided);
        // Most clusters have no such pods.
        if memory.is_none() && held_s.is_empty() {
            return None;
        }
        let gated_s = |node: &PlannedNode| held_s.get(node.pod()?).copied();
        let gated = not_admitted(decided, &held_s);
        let is_of_gang = of_gangs(decided);
        let turn = |group: GroupIndex| memory?.groups.get(state.name(group));
        let groups = state.groups.enumerate();
        let mut concerned: ByGroup<bool> =
            groups.map(|(number, _)| turn(number).is_some()).collect();
        for group in gated.iter().filter_map(|(_, node)| node.group()) {
            concerned[group] = true;
        }
        let youngest = gated.iter().filter_map(|(_, node)| gated_s(node));
        let lasts = |seconds: f64| seconds >= PATIENCE_S;
        let is_refused = youngest.reduce(f64::min).is_some_and(lasts)
            && memory.is_none_or(|memory| lasts(now - memory.at));
        let replicas = |nodes: &ByGroup<u64>| -> ByGroup<u64> {
            let of = |(number, count): (GroupIndex, &u64)| {
                let counts = concerned.holds(number);
                count.div_ceil(state.hosts(number)) * u64::from(counts)
            };
            nodes.enumerate().map(of).collect()
        };
        let admitted = state.count(|node| {
            node.pod().is_some() && node.stays() && gated_s(node).is_none() && !node.head
        });
        let requested = state
            .count(|node| node.stage() == Stage::Requested && node.stays() && !is_of_gang(node));
        let mut pending = replicas(&requested);
        let mut whole = whole_replicas(state, &gated, &is_of_gang);
        for one in &whole {
            pending[one.group] = pending[one.group].saturating_add(1);
        }
        let times = |group: GroupIndex| turn(group).map_or(0, |turn| turn.times);
        // Taken back are first what nothing needs, then what has made way before, then the last one.
        whole.sort_by(|one, other| {
            let by_need = one.is_needed.cmp(&other.is_needed);
            let by_turn = || times(other.group).cmp(&times(one.group));
            let by_name = || (other.group, &other.pods).cmp(&(one.group, &one.pods));
            by_need.then_with(by_turn).then_with(by_name)
        });
        Some(Self {
            is_gated: !gated.is_empty(),
            is_refused: is_refused && !whole.is_empty(),
            admitted: sum(&replicas(&admitted)),
            pending,
            is_less: (state.in_order()).any(|node| gated_s(node).is_some() && node.is_deleted()),
            needed: state.count(|node| node.is_to_launch() && !is_of_gang(node)),
            of_gangs: state.count(|node| node.is_to_launch() && is_of_gang(node)),
            replicas: whole,
            concerned,
        })
    }

    /// The number of replicas that its groups have with it.
    pub(super) fn all(&self) -> u64 {
        self.admitted.saturating_add(sum(&self.pending))
    }

    /// Its groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = GroupIndex> {
        let groups = self.concerned.enumerate();
        groups.filter_map(|(number, is_concerned)| is_concerned.then_some(number))
    }
}

/// Seconds for which pods have had scheduling gates, by the name of the pod.
pub(super) fn gated_s<'a>(decided: &Decided<'a>) -> HashMap<&'a str, f64> {
    let (pods, now) = (decided.situation.own_pods, decided.situation.now);
    let gated = pods.iter().filter(|pod| pod.is_gated());
    let seconds = |pod: &Pod<'_>| (now - pod.created().unwrap_or(now)).max(0.0);
    gated.map(|pod| (pod.name, seconds(pod))).collect()
}

/// The nodes whose pods have had scheduling gates (`gates`, in seconds) since before the newest pod of their group was
/// admitted: if younger ones were, a gate is not about what is asked for.
fn not_admitted<'d>(decided: &'d Decided<'_>, gates: &HashMap<&str, f64>) -> Vec<NumberedNode<'d>> {
    let (state, now) = (&decided.state, decided.situation.now);
    // By group, when the newest pod without scheduling gates was made, in seconds since 1970.
    let mut newest: HashMap<&str, f64> = HashMap::default();
    for pod in decided.situation.own_pods {
        if pod.role == PodRole::Worker && !pod.deleting && !pod.is_gated() {
            let newest = newest.entry(pod.group).or_insert(f64::MIN);
            *newest = newest.max(pod.created().unwrap_or(f64::MIN));
        }
    }
    let is_one = |(_, node): &NumberedNode<'_>| {
        let (group, pod) = (state.group_name(node), node.pod().unwrap_or_default());
        let newest = node.group().and_then(|_| newest.get(group)).copied();
        let is_passed_over =
            |gated: f64| newest.is_some_and(|newest| newest > now - gated + ROUNDED_S);
        let is_gated = gates.get(pod).is_some_and(|gated| !is_passed_over(*gated));
        is_gated && node.stays() && !decided.config.is_listed(group, pod)
    };
    state.entries().filter(is_one).collect()
}

/// The sum over all groups.
pub(super) fn sum(counts: &ByGroup<u64>) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// The replicas of which all hosts have scheduling gates and none is for a placement group.
fn whole_replicas<'d>(
    state: &DecisionState,
    gated: &[NumberedNode<'d>],
    is_of_gang: impl Fn(&PlannedNode) -> bool,
) -> Vec<GatedReplica<'d>> {
    let mut named: HashMap<(GroupIndex, &str), Vec<NumberedNode<'d>>> = HashMap::default();
    let mut unnamed: HashMap<GroupIndex, Vec<NumberedNode<'d>>> = HashMap::default();
    for (number, node) in gated.iter().copied() {
        let Some(group) = node.group() else { continue };
        match node.replica().filter(|_| state.hosts(group) > 1) {
            Some(replica) => named
                .entry((group, replica))
                .or_default()
                .push((number, node)),
            None => unnamed.entry(group).or_default().push((number, node)),
        }
    }
    let mut present: HashMap<(GroupIndex, &str), usize> = HashMap::default();
    for node in state.in_order().filter(|node| node.stays()) {
        if let (Some(group), Some(replica)) = (node.group(), node.replica()) {
            *present.entry((group, replica)).or_default() += 1;
        }
    }
    let mut replicas: Vec<(GroupIndex, Vec<NumberedNode<'_>>)> = Vec::new();
    for ((group, replica), nodes) in named {
        if present.get(&(group, replica)) == Some(&nodes.len()) {
            replicas.push((group, nodes));
        }
    }
    for (group, nodes) in unnamed {
        let hosts = usize::try_from(state.hosts(group)).unwrap_or(usize::MAX);
        let whole = nodes.chunks_exact(hosts);
        replicas.extend(whole.map(|nodes| (group, nodes.to_vec())));
    }
    replicas.retain(|(_, nodes)| !nodes.iter().any(|(_, node)| is_of_gang(node)));
    let is_needed =
        |(number, node): &NumberedNode<'_>| !node.is_unneeded() || state.is_on_standby(*number);
    let replica = |(group, nodes): (GroupIndex, Vec<NumberedNode<'d>>)| {
        let mut pods: Vec<&str> = nodes.iter().filter_map(|(_, node)| node.pod()).collect();
        pods.sort_unstable();
        GatedReplica {
            group,
            pods,
            is_needed: nodes.iter().any(is_needed),
        }
    };
    replicas.into_iter().map(replica).collect()
}

/// A test for nodes that are for a placement group of several bundles.
fn of_gangs(decided: &Decided<'_>) -> impl Fn(&PlannedNode) -> bool {
    let gangs: List<DemandIndex, bool> = decided
        .demands
        .map(|demand| matches!(demand.kind, DemandOrigin::Gang(..)) && demand.units() > 1);
    move |node| {
        let mut takes = node.takes.iter();
        takes.any(|take| gangs.holds(take.demand))
    }
}
