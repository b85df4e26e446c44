//! Groups that cannot be served now: what their pods, their spec and KubeRay say about it.
//!
//! Ray's autoscaler only sees that a pod has not become a Ray node, and waits for an hour. Here the
//! reason is read from the objects, so that the demand goes to another group within seconds.

use std::collections::BTreeMap;

use crate::hash::{HashMap, HashSet};
use crate::plan::growth::pod_size;
use crate::plan::list::{ByGroup, GroupIndex};
use crate::plan::nodes::group::ClusterConfig;
use crate::plan::nodes::node::Stage;
use crate::plan::nodes::rows::NodeRow;
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::situation::Situation;
use crate::plan::slice::Slice;
use crate::plan::slices::blocked::outlook::{Outlook, is_said_to_come, outlook};
use crate::plan::slices::blocked::reason::{BlockReason, PodTrouble, StartStage};
use crate::plan::slices::objects::hanging::hangs;
use crate::snapshot::Snapshot;
use crate::snapshot::group_spec::GroupSpec;
use crate::snapshot::pod::{Pod, PodRole};
use crate::snapshot::pod_condition::PodCondition;
use crate::snapshot::pod_object::ContainerStatus;

/// Seconds for which a pod may have scheduling gates: where Kueue has quota left, it removes its
/// gate within a second.
const GATED_S: f64 = 2.0;

/// Waiting reasons for an image that is not there. (Kubernetes, `pkg/kubelet/images/types.go`.)
const NO_IMAGE: [&str; 5] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "RegistryUnavailable",
];

/// Waiting reasons for a container that cannot be made. (Kubernetes,
/// `pkg/kubelet/kuberuntime/kuberuntime_container.go`.)
const NOT_MADE: [&str; 3] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
];

/// Evidence in the objects about pods that do not start and groups that cannot be served.
#[derive(Debug, Default)]
pub(crate) struct Evidence<'a> {
    /// The pods that do not start, by name.
    pub(crate) pods: HashMap<&'a str, BlockReason>,
    /// The groups that cannot be served.
    pub(crate) groups: ByGroup<Option<BlockReason>>,
    /// The pods that the scheduler has no room for now, and for which a Kubernetes node is on its
    /// way.
    pub(crate) awaited: HashSet<&'a str>,
    /// The pods that do not start in time though Ray runs in younger ones of their group, which is not
    /// blocked for that, by name, with their groups.
    pub(crate) lone: BTreeMap<&'a str, (&'a str, BlockReason)>,
    /// The pods that are deleted, so that others are made, and why. One that is larger than its template,
    /// and that no Kubernetes node has room for, is: smaller ones may find some.
    pub(crate) given_up: HashMap<&'a str, RemovalCause>,
    /// By group, whether it has such pods, or whether KubeRay could not make pods of it while these
    /// were to be larger than their template: a quota or limit may allow smaller ones.
    pub(crate) has_too_large: ByGroup<bool>,
    /// The worker pods that ended before Ray ran in them.
    pub(crate) early_ends: Vec<&'a Pod<'a>>,
}

impl<'a> Evidence<'a> {
    /// Reads what the objects say. Pods that no Kubernetes node has room for are waited for
    /// `unschedulable_s` seconds if nothing says more, and pods that have one `progress_deadline_s`.
    pub(crate) fn of(
        situation: &Situation<'a>,
        rows: &[NodeRow<'_>],
        config: &ClusterConfig,
    ) -> Self {
        let mut evidence = Self {
            groups: config.groups.map(|_| None),
            has_too_large: config.groups.map(|_| false),
            ..Self::default()
        };
        let (snapshot, own_pods) = (situation.snapshot, situation.own_pods);
        let (settings, now) = (situation.settings, situation.now);
        if !settings.has(Slice::Blocked) {
            return evidence;
        }
        evidence.groups = config.groups.map(|group| {
            let gate = group.scale_gates.first().filter(|_| !group.is_head())?;
            Some(BlockReason::ScaleGate(gate.clone()))
        });
        evidence.read_starts(situation, config);
        evidence.early_ends = early_ends(snapshot, own_pods);
        for pod in evidence.early_ends.clone() {
            let remembered = snapshot.history.early_ends.get(pod.group);
            if remembered
                .is_some_and(|ends| ends.counts(now) && ends.pods.iter().any(|one| one != pod.name))
            {
                evidence.add(pod, config, PodTrouble::EndsAtStart);
            }
        }
        // KubeRay expects a listed pod to go, without end, before it makes others.
        // (`scale_expectations.go`.)
        let is_stuck = |pod: &&Pod<'_>| hangs(pod, now) && config.is_listed(pod.group, pod.name);
        for pod in own_pods.iter().filter(is_stuck) {
            evidence.add(pod, config, PodTrouble::Terminating);
        }
        let is_late = |row: &&NodeRow<'_>| {
            let waited = now - row.since.unwrap_or(now);
            let is_asked_for = row.pod.is_none() && row.stage == Stage::Requested;
            is_asked_for && waited >= situation.settings.progress_deadline_s
        };
        for row in rows.iter().filter(is_late) {
            if let Some(group) = config.number(row.group) {
                evidence.groups[group].get_or_insert(BlockReason::NotCreated);
            }
        }
        if snapshot.ray_cluster.fails_to_create
            && let Some((number, group)) = refused(config, own_pods)
        {
            // A pod of the group gives a more exact reason, which stays.
            evidence.groups[number].get_or_insert(BlockReason::NotCreated);
            let sizes = &snapshot.ray_cluster.initial_sizes;
            evidence.has_too_large[number] |= sizes.of_group(&group.name, now).is_some();
        }
        evidence
    }

    /// Reads the pods that start: why they do not, or whether they have not become Ray nodes in time.
    fn read_starts(&mut self, situation: &Situation<'a>, config: &ClusterConfig) {
        let (settings, now) = (situation.settings, situation.now);
        let is_starting = |pod: &&Pod<'_>| {
            pod.role == PodRole::Worker
                && !pod.deleting
                && !pod.ended
                && !situation.live.contains_key(pod.name)
                && !config.is_listed(pod.group, pod.name)
        };
        let starting: Vec<&Pod<'_>> = situation.own_pods.iter().filter(is_starting).collect();
        self.awaited = awaited(&starting, now);
        let mut late = Vec::new();
        for pod in starting {
            let is_awaited = self.awaited.contains(pod.name);
            let unschedulable_s = (!is_awaited).then_some(settings.unschedulable_s);
            let Some(trouble) = of_pod(pod, unschedulable_s, now) else {
                let stage = overdue(pod, settings.progress_deadline_s, now);
                late.extend(stage.map(|stage| (pod, stage)));
                continue;
            };
            // Smaller pods may find room where larger ones do not.
            let finds_none = matches!(
                trouble,
                PodTrouble::Unschedulable | PodTrouble::NoNodeComes(..)
            );
            let too_large = finds_none.then(|| larger_than_template(pod, config));
            match too_large.flatten() {
                Some(group) => {
                    self.given_up.insert(pod.name, RemovalCause::MadeTooLarge);
                    self.has_too_large[group] = true;
                }
                None => self.add(pod, config, trouble),
            }
        }
        if !late.is_empty() {
            self.add_late(situation, config, late);
        }
    }

    /// Adds pods that have not become Ray nodes in time, each at its stage.
    fn add_late(
        &mut self,
        situation: &Situation<'a>,
        config: &ClusterConfig,
        late: Vec<(&'a Pod<'a>, StartStage)>,
    ) {
        let mut youngest: HashMap<&str, f64> = HashMap::default();
        let runs = |pod: &&Pod<'_>| situation.live.contains_key(pod.name);
        for pod in situation.own_pods.iter().filter(runs) {
            let created = youngest.entry(pod.group).or_default();
            *created = created.max(pod.created().unwrap_or_default());
        }
        for (pod, stage) in late {
            if stage == StartStage::Raylet {
                self.given_up.insert(pod.name, RemovalCause::NeverJoined);
            }
            let trouble = PodTrouble::NotInTime(stage);
            if youngest.get(pod.group).copied() > pod.created() {
                let reason = reason(pod, trouble);
                self.lone.insert(pod.name, (pod.group, reason));
            } else {
                self.add(pod, config, trouble);
            }
        }
    }

    /// Adds a pod that does not start.
    fn add(&mut self, pod: &Pod<'a>, config: &ClusterConfig, trouble: PodTrouble) {
        let reason = reason(pod, trouble);
        if let Some(group) = config.number(pod.group) {
            let group = &mut self.groups[group];
            // The first pod by name stands for all, so that the same is said in every round.
            let is_first = |other: &BlockReason| other.pod().is_some_and(|other| pod.name < other);
            if group.as_ref().is_none_or(is_first) {
                *group = Some(reason.clone());
            }
        }
        self.pods.insert(pod.name, reason);
    }
}

/// The reason that a pod shows which does not start.
fn reason(pod: &Pod<'_>, trouble: PodTrouble) -> BlockReason {
    let pod = pod.name.to_owned();
    BlockReason::Pod { pod, trouble }
}

/// The group of a pod that is larger than its template.
fn larger_than_template(pod: &Pod<'_>, config: &ClusterConfig) -> Option<GroupIndex> {
    let group = config.number(pod.group)?;
    let base = config.groups[group].base?;
    let has = pod_size::size(pod.containers().first()?.resources).ok()?;
    base.is_below(has).then_some(group)
}

/// The worker pods that can be seen to have ended before Ray ran in them.
fn early_ends<'a>(snapshot: &Snapshot, own_pods: &'a [Pod<'a>]) -> Vec<&'a Pod<'a>> {
    let heads = own_pods.iter().filter(|pod| pod.role == PodRole::Head);
    let heads = heads.filter(|pod| !pod.deleting && !pod.ended);
    let Some(head_since) = heads.filter_map(Pod::created).reduce(f64::max) else {
        return Vec::new();
    };
    let is_early = |pod: &&Pod<'_>| {
        let disrupted = pod.condition("DisruptionTarget");
        pod.role == PodRole::Worker
            // An older pod may have been part of the Ray cluster of another head, of which the
            // present one knows nothing, and have ended with it.
            && pod.created().is_some_and(|created| created >= head_since)
            && !disrupted.is_some_and(PodCondition::is_true)
            // With Ray's autoscaler v2 KubeRay sets `restartPolicy: Never`, so `CrashLoopBackOff`
            // is never seen: KubeRay deletes such a pod and makes another one, every few seconds
            // and without end.
            && pod.ended_by_itself()
    };
    let mut ended: Vec<&Pod<'_>> = own_pods.iter().filter(is_early).collect();
    if !ended.is_empty() {
        let nodes = snapshot.gcs.node_states.iter();
        let reported: HashSet<&str> = nodes.map(|node| node.instance_id.as_str()).collect();
        ended.retain(|pod| !reported.contains(pod.name));
    }
    ended
}

/// The group of which KubeRay could not make a pod.
fn refused<'c>(
    config: &'c ClusterConfig,
    own_pods: &[Pod<'_>],
) -> Option<(GroupIndex, &'c GroupSpec)> {
    let workers = own_pods.iter().filter(|pod| pod.role == PodRole::Worker);
    let counts = config.count(workers);
    // KubeRay makes the pods of one group after the other, and stops at the first that is refused.
    // (KubeRay, `raycluster_controller.go`, `reconcilePods`.)
    config.groups.enumerate().find(|(number, group)| {
        let nodes = group.nodes(group.asked_for());
        !group.is_head() && !group.suspended && counts[*number] < nodes
    })
}

/// The pods that no Kubernetes node has room for, and for which one is on its way.
///
/// Karpenter says so of ten pods at once and then of five a second, and what it does not say it
/// tries again only after two minutes. (`PodNominationRateLimiter` in
/// `pkg/controllers/provisioning/scheduling/events.go`, `pkg/events/recorder.go`.)
fn awaited<'a>(starting: &[&'a Pod<'a>], now: f64) -> HashSet<&'a str> {
    let waiting = starting.iter().filter(|pod| pod.is_unschedulable());
    let waiting = waiting.map(|pod| (*pod, outlook(pod, now)));
    let waiting: Vec<(&Pod<'_>, Outlook<'_>)> = waiting.collect();
    let coming = waiting.iter().filter(|(pod, _)| is_said_to_come(pod, now));
    let groups: HashSet<&str> = coming.map(|(pod, _)| pod.group).collect();
    let awaited = waiting.iter().filter(|(pod, outlook)| match outlook {
        Outlook::Coming => true,
        // Karpenter says of each pod that no node can come for it, so one of which nothing is said
        // is taken to fare like others of its group.
        Outlook::Unsaid => groups.contains(pod.group),
        Outlook::NoNode(_) => false,
    });
    awaited.map(|(pod, _)| pod.name).collect()
}

/// The trouble of a pod that does not start. One that no Kubernetes node has room for counts after
/// `unschedulable_s` seconds, in which a node autoscaler may make one, and at once if none can
/// come; without that number, one is on its way.
fn of_pod(pod: &Pod<'_>, unschedulable_s: Option<f64>, now: f64) -> Option<PodTrouble> {
    let age = pod.created().map_or(0.0, |created| now - created);
    if let Some(gate) = pod.object.spec.scheduling_gates.first() {
        return (age >= GATED_S).then(|| PodTrouble::Gated(gate.name.clone()));
    }
    if pod.node.is_none() {
        let unschedulable_s = unschedulable_s.filter(|_| pod.is_unschedulable())?;
        return match outlook(pod, now) {
            Outlook::Coming => None,
            Outlook::NoNode(prospect) => Some(PodTrouble::NoNodeComes(
                prospect.by,
                prospect.message.clone(),
            )),
            Outlook::Unsaid => (age >= unschedulable_s).then_some(PodTrouble::Unschedulable),
        };
    }
    // The others wait until all init containers have ended, so one of these that fails is the
    // reason.
    let status = &pod.object.status;
    let statuses = status.init_container_statuses.iter();
    let mut statuses = statuses.chain(&status.container_statuses);
    statuses.find_map(|container| {
        let reason = container.state.waiting.as_ref()?.reason.as_deref()?;
        match reason {
            "CrashLoopBackOff" => Some(PodTrouble::Crashes),
            reason if NO_IMAGE.contains(&reason) => Some(PodTrouble::NoImage),
            reason if NOT_MADE.contains(&reason) => Some(PodTrouble::NoContainer),
            _ => None,
        }
    })
}

/// The stage of a pod with a Kubernetes node, if it has not become a Ray node in time.
fn overdue(pod: &Pod<'_>, progress_deadline_s: f64, now: f64) -> Option<StartStage> {
    pod.node?;
    if pod.phase == Some("Running") {
        // A GCS that starts anew, or does not tell the truth, knows of no raylet, so what the pod says of itself
        // counts too. KubeRay gives it a probe that asks the raylet.
        let ready = pod.condition("Ready").filter(|ready| !ready.is_true())?;
        let since = pod.started()?.max(ready.since()?);
        return (now - since >= progress_deadline_s).then_some(StartStage::Raylet);
    }
    let scheduled = pod.condition("PodScheduled").and_then(PodCondition::since);
    let since = pod.created()?.max(scheduled.unwrap_or_default());
    if now - since < progress_deadline_s {
        return None;
    }
    let has_ended = |container: &&ContainerStatus| {
        let ended = container.state.terminated.as_ref();
        container.ready || ended.is_some_and(|ended| ended.exit_code == Some(0))
    };
    let mut inits = pod.object.status.init_container_statuses.iter();
    let sandbox = pod.condition("PodReadyToStartContainers");
    Some(match inits.find(|container| !has_ended(container)) {
        _ if sandbox.is_some_and(|sandbox| !sandbox.is_true()) => StartStage::Sandbox,
        Some(init) => StartStage::InitContainer(init.name.clone()),
        None => StartStage::Containers,
    })
}
