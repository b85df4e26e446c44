//! KubeRay's operator, as it acts on a RayCluster with autoscaling. (`raycluster_controller.go`,
//! `reconcilePods`.)

use std::collections::BTreeMap;

use super::state::World;
use crate::initial_size::resized;
use crate::simulate::world::group::SimulatedGroup;
use crate::simulate::world::objects::{DeletionCause, SimulatedPod, spec_requests, unscheduled};
use crate::simulate::world::queue::WorldEvent;
use crate::snapshot::pod_object::{
    ContainerStatus, OwnerReference, PodLabels, PodMetadata, PodObject, PodSpec, PodStatus,
};

/// The letters of names that Kubernetes makes up. (`k8s.io/apimachinery/pkg/util/rand`.)
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Seconds after which it looks again if it could not make a pod. (Its rate limiter begins with less, and
/// doubles.)
const AFTER_REFUSAL_S: f64 = 2.0;

impl World {
    /// One look: what is listed or has ended goes, what is missing comes, and nothing is deleted at
    /// random.
    pub(super) fn operate(&mut self) {
        // It refuses to act on such a cluster. (`validation.go`.)
        if self.groups.iter().any(|group| group.is_suspended) {
            return;
        }
        for group in self.groups.clone() {
            let of_group = |pod: &usize| self.machines.pods[*pod].group() == group.name;
            let pods: Vec<usize> = self.own_pods().filter(of_group).collect();
            // KubeRay leaves a group alone until its deletions are over. (`scale_expectations.go`)
            if pods.iter().any(|pod| self.machines.pods[*pod].is_awaited) {
                continue;
            }
            let replicas = if group.hosts > 1 {
                self.delete_replicas(&group, &pods)
            } else {
                self.delete_pods(&group, &pods)
            };
            let is_done = replicas.is_some_and(|replicas| {
                let replicas = i64::try_from(replicas).unwrap_or(i64::MAX);
                (replicas..group.replicas).all(|_| self.make_replica(&group))
            });
            if !is_done {
                // It returns an error, and is called again.
                let delay = match self.disturbance.quota_left(self) {
                    Some(_) => AFTER_REFUSAL_S,
                    None => self.settings.operator_s,
                };
                return self.after(delay, WorldEvent::Operator);
            }
        }
    }

    /// Deletes what has ended or is listed in a group of single pods. Returns how many there are beside that,
    /// unless the pass ends here.
    fn delete_pods(&mut self, group: &SimulatedGroup, pods: &[usize]) -> Option<usize> {
        let all = &self.machines.pods;
        let ended = pods.iter().copied().filter(|pod| all[*pod].has_ended());
        let ended: Vec<usize> = ended.collect();
        // KubeRay makes no pods in a pass in which it has deleted ended ones: it returns an error
        // instead.
        if !ended.is_empty() {
            self.delete_and_wait(&ended, DeletionCause::Ended);
            return None;
        }
        let is_listed = |pod: usize| group.to_delete.iter().any(|name| name == all[pod].name());
        let others = pods.iter().filter(|pod| !is_listed(**pod)).count();
        // By name, of whatever group they are.
        let names = group.to_delete.iter();
        let listed: Vec<usize> = names.filter_map(|name| self.pod_named(name)).collect();
        self.delete_and_wait(&listed, DeletionCause::Listed);
        Some(others)
    }

    /// Deletes replicas of a group whose replicas have several pods, which come and go together.
    /// (`reconcileMultiHostWorkerGroup`.)
    fn delete_replicas(&mut self, group: &SimulatedGroup, pods: &[usize]) -> Option<usize> {
        let all = &self.machines.pods;
        let mut replicas: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        for pod in pods {
            let labels = &all[*pod].object.metadata.labels;
            let replica = replicas.entry(labels.replica.as_deref()).or_default();
            replica.push(*pod);
        }
        let hosts = usize::try_from(group.hosts).unwrap_or(usize::MAX);
        // One in each pass: KubeRay returns an error after it, and is called again.
        if let Some(incomplete) = replicas.values().find(|pods| pods.len() < hosts) {
            let incomplete = incomplete.clone();
            self.delete_and_wait(&incomplete, DeletionCause::Replica);
            return None;
        }
        let has_ended = |pods: &Vec<usize>| pods.iter().any(|pod| all[*pod].has_ended());
        let (ended, others): (Vec<_>, Vec<_>) = replicas.into_values().partition(has_ended);
        let is_listed = |pods: &Vec<usize>| {
            let mut names = pods.iter().map(|pod| all[*pod].name());
            names.any(|name| group.to_delete.iter().any(|listed| listed == name))
        };
        let (listed, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_listed);
        self.delete_and_wait(&ended.concat(), DeletionCause::Replica);
        self.delete_and_wait(&listed.concat(), DeletionCause::Listed);
        // Nor does it make replicas in a pass in which it has deleted listed ones.
        listed.is_empty().then_some(others.len())
    }

    fn delete_and_wait(&mut self, pods: &[usize], cause: DeletionCause) {
        for pod in pods {
            self.machines.pods[*pod].is_awaited = true;
            if !self.machines.pods[*pod].is_deleting() {
                self.disturbance.pod_deleted(self, *pod, cause);
            }
            self.delete_pod(*pod);
        }
    }

    /// Makes the pods of a replica. Returns whether all of them could be made: the first one that is refused
    /// ends the operator's look.
    pub(super) fn make_replica(&mut self, group: &SimulatedGroup) -> bool {
        let replica = (group.hosts > 1).then(|| format!("{}-{}", group.name, self.letters()));
        let cluster = self.metadata("name");
        let mut spec = group.pod.clone();
        // KubeRay sets this where Ray's autoscaler v2 scales. (`common/pod.go`.)
        spec.restart_policy = Some("Never".to_owned());
        // The webhook for new pods makes some of the workers larger.
        let sizes = &self.cluster.initial_sizes;
        let size = sizes.of_group(&group.name, self.now.epoch_seconds());
        if let (Some(size), Some(container)) = (size, spec.containers.first_mut())
            && let Ok(larger) = resized(container.resources, &group.name, size, &self.cluster.ippr)
        {
            container.resources = larger;
        }
        let hosts = if group.is_head() { 1 } else { group.hosts };
        for _ in 0..hosts {
            // The head's name does not change, and no quota keeps it off.
            let name = if group.is_head() {
                format!("{cluster}-head")
            } else {
                let quota = self.disturbance.quota_left(self);
                let cpu = spec_requests(&spec).cpu.unwrap_or_default();
                if quota.is_some_and(|quota| cpu > quota) {
                    return false;
                }
                self.ledger.pods_made += 1;
                format!("{cluster}-{}-worker-{}", group.name, self.letters())
            };
            let number = self.machines.pods.len();
            let pod = self.new_pod(group, spec.clone(), name.clone(), replica.clone());
            self.machines.pods.push(pod);
            if let Some(own) = self.machines.present.get_mut(self.number) {
                own.insert(name, number);
            }
            self.objects_changed();
        }
        self.after(0.0, WorldEvent::Scheduler);
        true
    }

    /// A pod as the operator creates it, with what the API server adds.
    fn new_pod(
        &self,
        group: &SimulatedGroup,
        spec: PodSpec,
        name: String,
        replica: Option<String>,
    ) -> SimulatedPod {
        let node_type = if group.is_head() { "head" } else { "worker" };
        let statuses = spec.containers.iter().map(|container| ContainerStatus {
            name: container.name.clone(),
            ..ContainerStatus::default()
        });
        let gated = (!spec.scheduling_gates.is_empty()).then(|| unscheduled("SchedulingGated"));
        let status = PodStatus {
            phase: Some("Pending".to_owned()),
            container_statuses: statuses.collect(),
            // (`pkg/registry/core/pod/strategy.go`)
            conditions: gated.into_iter().collect(),
            ..PodStatus::default()
        };
        let metadata = PodMetadata {
            name,
            namespace: Some(self.metadata("namespace")),
            uid: Some(format!("pod-{}", self.machines.pods.len())),
            generation: Some(1),
            creation_timestamp: Some(self.now.timestamp()),
            labels: PodLabels {
                cluster: Some(self.metadata("name")),
                node_type: Some(node_type.to_owned()),
                group: Some(group.name.clone()),
                replica,
            },
            owner_references: vec![OwnerReference {
                kind: "RayCluster".to_owned(),
                name: self.metadata("name"),
                uid: self.metadata("uid"),
                controller: Some(true),
            }],
            ..PodMetadata::default()
        };
        let pools = self.machines.pools.iter();
        SimulatedPod {
            object: PodObject {
                metadata,
                spec,
                status,
                ..PodObject::default()
            },
            cluster: self.number,
            gpus: group.gpus,
            admitted: pools.map(|pool| pool.admits(&group.placement)).collect(),
            is_head: group.is_head(),
            ..SimulatedPod::default()
        }
    }

    fn letters(&mut self) -> String {
        let mut letter = || char::from(LETTERS[self.random.usize(..LETTERS.len())]);
        (0..5).map(|_| letter()).collect()
    }
}
