//! KubeRay's operator, as it acts on a RayCluster with autoscaling. (`raycluster_controller.go`,
//! `reconcilePods`.)

use std::collections::BTreeMap;

use super::log::{DeletionCause, LogEntry};
use super::state::World;
use crate::initial_size::resized;
use crate::simulate::world::group::SimulatedGroup;
use crate::simulate::world::objects::{SimulatedPod, unscheduled, wanted};
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
            let pods = self.pods_of(&group.name);
            // KubeRay leaves a group alone until its deletions are over. (`scale_expectations.go`)
            if pods.iter().any(|pod| self.machines.pods[*pod].is_awaited) {
                continue;
            }
            let done = if group.hosts > 1 {
                self.operate_replicas(&group, &pods)
            } else {
                self.operate_pods(&group, &pods)
            };
            if !done {
                // It returns an error, and is called again.
                let delay = if self.has_quota() {
                    AFTER_REFUSAL_S
                } else {
                    self.settings.operator_s
                };
                return self.after(delay, WorldEvent::Operator);
            }
        }
    }

    fn pods_of(&self, group: &str) -> Vec<usize> {
        let of_group = |pod: &usize| self.machines.pods[*pod].group() == group;
        self.own().filter(of_group).collect()
    }

    /// Acts on a group of single pods. Returns whether it came to the end.
    fn operate_pods(&mut self, group: &SimulatedGroup, pods: &[usize]) -> bool {
        let ended = pods
            .iter()
            .filter(|pod| self.machines.pods[**pod].has_ended());
        let ended: Vec<usize> = ended.copied().collect();
        // KubeRay makes no pods in a pass in which it has deleted ended ones: it returns an error
        // instead.
        if !ended.is_empty() {
            self.delete_and_wait(&ended, DeletionCause::Ended);
            return false;
        }
        let is_listed = |pod: usize| {
            let mut names = group.to_delete.iter();
            names.any(|name| *name == self.machines.pods[pod].name())
        };
        let others = pods.iter().filter(|pod| !is_listed(**pod)).count();
        // By name, of whatever group they are.
        let names = group.to_delete.iter();
        let listed: Vec<usize> = names.filter_map(|name| self.pod_named(name)).collect();
        self.delete_and_wait(&listed, DeletionCause::Listed);
        let there = i64::try_from(others).unwrap_or(i64::MAX);
        (there..group.replicas_wanted()).all(|_| self.make_replica(group))
    }

    /// Acts on a group whose replicas have several pods, which come and go together.
    /// (`reconcileMultiHostWorkerGroup`.)
    fn operate_replicas(&mut self, group: &SimulatedGroup, pods: &[usize]) -> bool {
        let mut replicas: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for pod in pods {
            let replica = self.machines.pods[*pod]
                .object
                .metadata
                .labels
                .replica
                .clone();
            replicas
                .entry(replica.unwrap_or_default())
                .or_default()
                .push(*pod);
        }
        let hosts = usize::try_from(group.hosts).unwrap_or(usize::MAX);
        // One in each pass: KubeRay returns an error after it, and is called again.
        let incomplete = replicas.values().find(|pods| pods.len() < hosts).cloned();
        if let Some(incomplete) = incomplete {
            self.delete_and_wait(&incomplete, DeletionCause::Replica);
            return false;
        }
        let has_ended =
            |pods: &Vec<usize>| pods.iter().any(|pod| self.machines.pods[*pod].has_ended());
        let (ended, others): (Vec<_>, Vec<_>) = replicas.into_values().partition(has_ended);
        self.delete_and_wait(&ended.concat(), DeletionCause::Replica);
        let is_listed = |pods: &Vec<usize>| {
            let mut names = pods.iter().map(|pod| self.machines.pods[*pod].name());
            names.any(|name| group.to_delete.iter().any(|listed| listed == name))
        };
        let (listed, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_listed);
        self.delete_and_wait(&listed.concat(), DeletionCause::Listed);
        // Nor does it make replicas in a pass in which it has deleted listed ones.
        if !listed.is_empty() {
            return false;
        }
        let there = i64::try_from(others.len()).unwrap_or(i64::MAX);
        (there..group.replicas_wanted()).all(|_| self.make_replica(group))
    }

    fn delete_and_wait(&mut self, pods: &[usize], cause: DeletionCause) {
        for pod in pods {
            self.machines.pods[*pod].is_awaited = true;
            if !self.machines.pods[*pod].is_deleting() {
                self.note_deletion(*pod, cause);
            }
            self.delete_pod(*pod);
        }
    }

    fn note_deletion(&mut self, number: usize, cause: DeletionCause) {
        let pod = &self.machines.pods[number];
        let node = self.ray.node_of(number);
        self.log.add(self.now, || LogEntry::Deleted {
            name: pod.name().to_owned(),
            cause,
            jobs: node.map_or(0, |node| self.ray.nodes[node].running),
        });
    }

    /// Returns whether all pods could be made: the first one that is refused ends the operator's look.
    fn make_replica(&mut self, group: &SimulatedGroup) -> bool {
        let replica = (group.hosts > 1).then(|| format!("{}-{}", group.name, self.letters()));
        if group.is_head() {
            self.make_head(group);
            return true;
        }
        let spec = self.spec_of(group);
        for _ in 0..group.hosts {
            if self.exceeds_quota(wanted(&spec).cpu) {
                return false;
            }
            let name = format!("{}-{}-worker-{}", self.name(), group.name, self.letters());
            self.make_pod(group, spec.clone(), name, replica.clone());
            self.ledger.pods_made += 1;
        }
        self.after(0.0, WorldEvent::Scheduler);
        true
    }

    /// Makes the head pod, whose name does not change.
    pub(super) fn make_head(&mut self, group: &SimulatedGroup) {
        let name = format!("{}-head", self.name());
        self.make_pod(group, group.pod.clone(), name, None);
        self.after(0.0, WorldEvent::Scheduler);
    }

    /// Makes a pod, and returns its number.
    pub(super) fn make_pod(
        &mut self,
        group: &SimulatedGroup,
        mut spec: PodSpec,
        name: String,
        replica: Option<String>,
    ) -> usize {
        let number = self.machines.pods.len();
        let is_head = group.name == crate::ray::group::HEAD_NAME;
        // KubeRay sets this where Ray's autoscaler v2 scales. (`common/pod.go`.)
        spec.restart_policy = Some("Never".to_owned());
        let statuses = spec.containers.iter().map(|container| ContainerStatus {
            name: container.name.clone(),
            ..ContainerStatus::default()
        });
        let gated = !spec.scheduling_gates.is_empty();
        let status = PodStatus {
            phase: Some("Pending".to_owned()),
            container_statuses: statuses.collect(),
            // The API server sets it. (`pkg/registry/core/pod/strategy.go`)
            conditions: (gated.then(|| unscheduled("SchedulingGated")))
                .into_iter()
                .collect(),
            ..PodStatus::default()
        };
        let metadata = PodMetadata {
            name: name.clone(),
            namespace: self.cluster_text("/metadata/namespace"),
            uid: Some(format!("pod-{number}")),
            generation: Some(1),
            creation_timestamp: Some(self.now.timestamp()),
            labels: PodLabels {
                cluster: Some(self.name()),
                node_type: Some(if is_head { "head" } else { "worker" }.to_owned()),
                group: Some(group.name.clone()),
                replica,
            },
            owner_references: vec![OwnerReference {
                kind: "RayCluster".to_owned(),
                name: self.name(),
                uid: self.uid(),
                controller: Some(true),
            }],
            ..PodMetadata::default()
        };
        self.machines.pods.push(SimulatedPod {
            object: PodObject {
                metadata,
                spec,
                status,
                ..PodObject::default()
            },
            cluster: self.number,
            gpus: group.gpus,
            admitted: self.machines.admitting(&group.placement),
            node: None,
            bound: None,
            pulled_s: 0.0,
            is_awaited: false,
            is_head,
            is_gone: false,
        });
        if let Some(own) = self.machines.present.get_mut(self.number) {
            own.insert(name, number);
        }
        self.objects_changed();
        number
    }

    /// The spec of a new worker pod, with what the webhook for new pods changes.
    fn spec_of(&self, group: &SimulatedGroup) -> PodSpec {
        let mut spec = group.pod.clone();
        let cluster = self.cluster_object();
        let sizes = &cluster.initial_sizes;
        let size = sizes.of_group(&group.name, self.now.epoch_seconds());
        if let (Some(size), Some(container)) = (size, spec.containers.first_mut())
            && let Ok(larger) = resized(container.resources, &group.name, size, &cluster.ippr)
        {
            container.resources = larger;
        }
        spec
    }

    fn letters(&mut self) -> String {
        let mut letter = || char::from(LETTERS[self.random.usize(..LETTERS.len())]);
        (0..5).map(|_| letter()).collect()
    }
}
