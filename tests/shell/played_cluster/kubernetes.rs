//! KubeRay and the kubelets.

use k8s_openapi::jiff::Timestamp;
use rayfit::quantity::Quantity;
use serde_json::{Value, json};

use super::{World, container};

/// Seconds from a pod's creation to its containers' start.
const START_S: f64 = 1.5;

/// Seconds that a resize takes.
const RESIZE_S: f64 = 1.0;

pub fn name(pod: &Value) -> &str {
    pod["metadata"]["name"].as_str().unwrap()
}

pub fn is_deleting(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

fn cpu(resources: &Value) -> Quantity {
    Quantity::from_json(&resources["requests"]["cpu"]).unwrap()
}

impl World {
    pub(super) fn make_head(&mut self) {
        let mut pod = self.pod("headgroup", "head", "demo-head", 1);
        pod["status"]["phase"] = json!("Running");
        self.pods.insert("demo-head".to_owned(), pod);
        self.start_ray("demo-head");
    }

    fn pod(&mut self, group: &str, kind: &str, name: &str, cpu: i64) -> Value {
        let container = container(if kind == "head" { "head" } else { "worker" }, cpu);
        let status = json!({"name": container["name"], "resources": container["resources"]});
        self.names += 1;
        #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970")]
        let created = Timestamp::from_second(self.now as i64).unwrap().to_string();
        json!({
            "metadata": {
                "name": name, "namespace": "ray", "uid": format!("uid-{}", self.names),
                "creationTimestamp": created,
                "labels": {"ray.io/cluster": "demo", "ray.io/group": group, "ray.io/node-type": kind},
                "annotations": {"played/born": self.now.to_string()},
            },
            "spec": {"restartPolicy": "Never", "containers": [container]},
            "status": {"phase": "Pending", "conditions": [], "containerStatuses": [status]},
        })
    }

    /// As KubeRay does with autoscaling on: what is listed goes, what is missing comes, nothing
    /// is deleted at random. (`raycluster_controller.go`, `reconcilePods`.)
    pub(super) fn kuberay(&mut self) {
        for group in self.setup.groups.clone() {
            let spec = self.spec(group.name).clone();
            if spec.is_null() {
                // Its pods are nobody's business.
                continue;
            }
            let of = |pod: &Value| pod["metadata"]["labels"]["ray.io/group"] == group.name;
            let mut gone: Vec<String> = spec["scaleStrategy"]["workersToDelete"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|pod| pod.as_str().unwrap().to_owned())
                .collect();
            let ended = |pod: &&Value| of(pod) && pod["status"]["phase"] == "Succeeded";
            gone.extend(
                self.pods
                    .values()
                    .filter(ended)
                    .map(|pod| name(pod).to_owned()),
            );
            for pod in gone {
                self.delete_with_its_replica(&pod, group.hosts);
            }
            let (min, max) = (
                spec["minReplicas"].as_i64().unwrap(),
                spec["maxReplicas"].as_i64().unwrap(),
            );
            let replicas = spec["replicas"].as_i64().unwrap_or(min).max(min).min(max);
            let there = self
                .pods
                .values()
                .filter(|pod| of(pod) && !is_deleting(pod))
                .count();
            let missing = replicas * group.hosts - i64::try_from(there).unwrap();
            for _ in 0..missing / group.hosts.max(1) {
                self.make_replica(group.name, group.cpu, group.hosts);
            }
        }
    }

    fn make_replica(&mut self, group: &str, cpu: i64, hosts: i64) {
        let replica = format!("{group}-{}", self.names);
        for _ in 0..hosts {
            let name = format!("demo-{group}-worker-{:05}", self.names);
            let mut pod = self.pod(group, "worker", &name, cpu);
            if hosts > 1 {
                pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] = json!(replica);
            }
            self.pods.insert(name, pod);
            *self.made.entry(group.to_owned()).or_default() += 1;
        }
    }

    fn delete_with_its_replica(&mut self, name: &str, hosts: i64) {
        let Some(pod) = self.pods.get(name) else {
            return;
        };
        let label = "ray.io/worker-group-replica-name";
        let replica = pod["metadata"]["labels"][label].clone();
        let same = |(other, pod): (&String, &Value)| {
            let with = hosts > 1 && pod["metadata"]["labels"][label] == replica;
            (other == name || with).then(|| other.clone())
        };
        let names: Vec<String> = self.pods.iter().filter_map(same).collect();
        for name in names {
            self.delete(&name);
        }
    }

    fn delete(&mut self, name: &str) {
        let Some(pod) = self.pods.get_mut(name).filter(|pod| !is_deleting(pod)) else {
            return;
        };
        pod["metadata"]["deletionTimestamp"] = json!("now");
        let ray = self.rays.iter().find(|ray| ray.pod == name && !ray.dead);
        if let Some(ray) = ray.filter(|ray| !ray.tasks.is_empty()) {
            let tasks = &ray.tasks;
            self.faults
                .push(format!("pod {name} was deleted while it ran {tasks:?}"));
        }
    }

    pub(super) fn kubelets(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            let pod = &self.pods[&name];
            let born: f64 = pod["metadata"]["annotations"]["played/born"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap();
            if is_deleting(pod) {
                self.pods.remove(&name);
                self.end_ray(&name);
            } else if pod["status"]["phase"] == "Pending" && self.now - born >= START_S {
                self.schedule(&name);
            } else if pod["status"]["phase"] == "Running" {
                self.resize(&name);
            }
        }
    }

    fn schedule(&mut self, name: &str) {
        let wanted = cpu(&self.pods[name]["spec"]["containers"][0]["resources"]);
        let nodes = self.kube_nodes.clone();
        let fits = nodes
            .iter()
            .find(|node| self.room(node["metadata"]["name"].as_str().unwrap(), name) >= wanted);
        let Some(node) = fits else { return };
        let pod = self.pods.get_mut(name).unwrap();
        pod["spec"]["nodeName"] = node["metadata"]["name"].clone();
        pod["status"]["phase"] = json!("Running");
        self.start_ray(name);
    }

    /// What a node has left for a pod.
    fn room(&self, node: &str, without: &str) -> Quantity {
        let allocatable = self.allocatable(node);
        let others = self.pods.values().filter(|pod| {
            pod["spec"]["nodeName"] == node
                && name(pod) != without
                && pod["status"]["phase"] == "Running"
        });
        others.fold(allocatable, |left, pod| {
            let given = cpu(&pod["status"]["containerStatuses"][0]["resources"]);
            left.checked_sub(given).unwrap()
        })
    }

    pub(super) fn allocatable(&self, node: &str) -> Quantity {
        let node = self
            .kube_nodes
            .iter()
            .find(|of| of["metadata"]["name"] == node)
            .unwrap();
        Quantity::from_json(&node["status"]["allocatable"]["cpu"]).unwrap()
    }

    fn resize(&mut self, name: &str) {
        let pod = &self.pods[name];
        let spec = pod["spec"]["containers"][0]["resources"].clone();
        if spec == pod["status"]["containerStatuses"][0]["resources"] {
            self.pods.get_mut(name).unwrap()["status"]["conditions"] = json!([]);
            return;
        }
        let node = pod["spec"]["nodeName"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let (wanted, room) = (cpu(&spec), self.room(&node, name));
        let asked = pod["metadata"]["annotations"]["played/resized"].as_str();
        let asked: f64 = asked.map_or(self.now, |at| at.parse().unwrap());
        let ready = self.now - asked >= RESIZE_S;
        let allocatable = self.allocatable(&node);
        let pod = self.pods.get_mut(name).unwrap();
        if wanted > room {
            let used = allocatable.checked_sub(room).unwrap();
            let message = format!(
                "Node didn't have enough resource: cpu, requested: {}, used: {}, capacity: {}",
                wanted.ceil_milli(),
                used.ceil_milli(),
                allocatable.ceil_milli()
            );
            pod["status"]["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": message}]);
        } else if ready {
            pod["status"]["containerStatuses"][0]["resources"] = spec;
            pod["status"]["conditions"] = json!([]);
        } else {
            pod["status"]["conditions"] =
                json!([{"type": "PodResizeInProgress", "status": "True"}]);
        }
    }
}
