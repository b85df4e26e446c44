//! Pods with scheduling gates: what a cluster has asked for and has not been admitted.

use crate::hash::HashMap;
use crate::plan::decided::Decided;
use crate::plan::demand::requests::DemandOrigin;
use crate::plan::list::{ByGroup, DemandIndex, GroupIndex, List};
use crate::plan::nodes::life::Stage;
use crate::plan::nodes::node::PlannedNode;
use crate::plan::packing::state::DecisionState;
use crate::snapshot::history::JumpMemory;
use crate::snapshot::pod::PodRole;

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

impl<'d> Jump<'d> {
    /// `None` if nothing of a jump is there or remembered.
    pub(super) fn of(decided: &'d Decided<'_>, memory: Option<&JumpMemory>) -> Option<Self> {
        let (state, now) = (&decided.state, decided.situation.now);
        // Most clusters have no such pods.
        if memory.is_none() && !state.in_order().any(|node| node.gated_s.is_some()) {
            return None;
        }
        // By group, when the newest pod without scheduling gates was made, in seconds since 1970.
        let mut newest: HashMap<&str, f64> = HashMap::default();
        for pod in decided.situation.own_pods {
            if pod.role == PodRole::Worker && !pod.deleting && !pod.is_gated() {
                let newest = newest.entry(pod.group).or_insert(f64::MIN);
                *newest = newest.max(pod.created().unwrap_or(f64::MIN));
            }
        }
        // If younger pods of its group were admitted, its gate is not about what is asked for.
        let is_gated = |node: &PlannedNode| {
            let (group, pod) = (state.group_name(node), node.pod().unwrap_or_default());
            let newest = node.group().and_then(|_| newest.get(group)).copied();
            let is_passed_over =
                |gated: f64| newest.is_some_and(|newest| newest > now - gated + ROUNDED_S);
            let is_gated = node.gated_s.is_some_and(|gated| !is_passed_over(gated));
            is_gated && node.stays() && !decided.config.is_listed(group, pod)
        };
        let is_of_gang = of_gangs(decided);
        let gated: Vec<&PlannedNode> = state.in_order().filter(|node| is_gated(node)).collect();
        let turn = |group: GroupIndex| memory?.groups.get(state.name(group));
        let mut concerned = state.count(is_gated);
        for (number, _) in state.groups.enumerate() {
            concerned[number] += u64::from(turn(number).is_some());
        }
        let concerned = concerned.map(|count| *count > 0);
        let gated_s = gated.iter().filter_map(|node| node.gated_s);
        let youngest = gated_s.reduce(f64::min);
        let lasts = |seconds: f64| seconds >= PATIENCE_S;
        let replicas = |nodes: &ByGroup<u64>| -> ByGroup<u64> {
            let of = |(number, count): (GroupIndex, &u64)| {
                let counts = concerned.holds(number);
                count.div_ceil(state.hosts(number)) * u64::from(counts)
            };
            nodes.enumerate().map(of).collect()
        };
        let admitted = state.count(|node| {
            node.pod().is_some() && node.stays() && node.gated_s.is_none() && !node.head
        });
        let requested = state
            .count(|node| node.stage() == Stage::Requested && node.stays() && !is_of_gang(node));
        let mut jump = Self {
            is_gated: !gated.is_empty(),
            is_refused: youngest.is_some_and(lasts)
                && memory.is_none_or(|memory| lasts(now - memory.at)),
            admitted: sum(&replicas(&admitted)),
            pending: replicas(&requested),
            is_less: (state.in_order()).any(|node| node.gated_s.is_some() && node.is_deleted()),
            needed: state.count(|node| node.is_to_launch() && !is_of_gang(node)),
            of_gangs: state.count(|node| node.is_to_launch() && is_of_gang(node)),
            replicas: whole_replicas(state, &gated, &is_of_gang),
            concerned,
        };
        for one in &jump.replicas {
            if let Some(pending) = jump.pending.get_mut(one.group) {
                *pending = pending.saturating_add(1);
            }
        }
        jump.is_refused &= !jump.replicas.is_empty();
        let times = |group: GroupIndex| turn(group).map_or(0, |turn| turn.times);
        // Taken back are first what nothing needs, then what has made way before, then the last one.
        jump.replicas.sort_by(|one, other| {
            let by_need = one.is_needed.cmp(&other.is_needed);
            let by_turn = || times(other.group).cmp(&times(one.group));
            let by_name = || (other.group, &other.pods).cmp(&(one.group, &one.pods));
            by_need.then_with(by_turn).then_with(by_name)
        });
        Some(jump)
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

/// The sum over all groups.
pub(super) fn sum(counts: &ByGroup<u64>) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// The replicas of which all hosts have scheduling gates and none is for a placement group.
fn whole_replicas<'d>(
    state: &DecisionState,
    gated: &[&'d PlannedNode],
    is_of_gang: impl Fn(&PlannedNode) -> bool,
) -> Vec<GatedReplica<'d>> {
    let mut named: HashMap<(GroupIndex, &str), Vec<&'d PlannedNode>> = HashMap::default();
    let mut unnamed: HashMap<GroupIndex, Vec<&'d PlannedNode>> = HashMap::default();
    for node in gated {
        let Some(group) = node.group() else { continue };
        match node.replica().filter(|_| state.hosts(group) > 1) {
            Some(replica) => named.entry((group, replica)).or_default().push(node),
            None => unnamed.entry(group).or_default().push(node),
        }
    }
    let mut present: HashMap<(GroupIndex, &str), usize> = HashMap::default();
    for node in state.in_order().filter(|node| node.stays()) {
        if let (Some(group), Some(replica)) = (node.group(), node.replica()) {
            *present.entry((group, replica)).or_default() += 1;
        }
    }
    let mut replicas: Vec<(GroupIndex, Vec<&PlannedNode>)> = Vec::new();
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
    replicas.retain(|(_, nodes)| !nodes.iter().any(|node| is_of_gang(node)));
    let is_needed = |node: &PlannedNode| !node.is_unneeded() || state.is_on_standby(node);
    let replica = |(group, nodes): (GroupIndex, Vec<&'d PlannedNode>)| {
        let mut pods: Vec<&str> = nodes.iter().filter_map(|node| node.pod()).collect();
        pods.sort_unstable();
        GatedReplica {
            group,
            pods,
            is_needed: nodes.iter().any(|node| is_needed(node)),
        }
    };
    replicas.into_iter().map(replica).collect()
}

/// A test for nodes that are for a placement group of several bundles.
fn of_gangs(decided: &Decided<'_>) -> impl Fn(&PlannedNode) -> bool {
    let gangs: List<DemandIndex, bool> = decided.demands.map(|demand| {
        let counts = demand.batches.iter().flatten().map(|batch| batch.count);
        let units = counts.fold(0, u64::saturating_add);
        matches!(demand.kind, DemandOrigin::Gang(..)) && units > 1
    });
    move |node| {
        let mut takes = node.takes.iter();
        takes.any(|take| gangs.get(take.demand).copied().unwrap_or(false))
    }
}
