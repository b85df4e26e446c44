//! The calls of a scaler.

use rayfit::quantity::Quantity;
use rayfit::reconcile::effects::effect::{
    ClusterPatch, Drain, DrainKind, Effect, PodPatch, RayletResize,
};
use rayfit::reconcile::effects::failure::{ApiStatus, GcsKind};
use rayfit::reconcile::{Failure, Reply};
use serde_json::{Value, json};

use super::World;

impl World {
    /// Does what an effect asks for, as the real ones would.
    pub fn perform(&mut self, effect: &Effect) -> Result<Reply, Failure> {
        match effect {
            Effect::PatchCluster(patch) => self.patch_cluster(patch),
            Effect::DeleteCluster(_) => Err(api(405, "no cluster is deleted here", &[])),
            Effect::NotePod(patch) => self.note_pod(patch),
            Effect::ResizePod(patch) => self.resize_pod(patch),
            Effect::ResizeRaylet(resize) => self.resize_raylet(resize),
            Effect::Drain(drain) => Ok(self.drain(drain)),
            Effect::Report(_) | Effect::PutError(_) => Ok(Reply::Ok),
        }
    }

    fn patch_cluster(&mut self, patch: &ClusterPatch) -> Result<Reply, Failure> {
        let mut patched = self.cluster.clone();
        let does_not_fit = "the server rejected our request due to an error in our request";
        json_patch::patch(&mut patched, &patch.operations)
            .map_err(|_| api(422, does_not_fit, &[]))?;
        self.cluster = patched;
        self.bump();
        Ok(Reply::Ok)
    }

    fn pod_of(&mut self, patch: &PodPatch) -> Result<&mut Value, Failure> {
        let pod = self.pods.get_mut(&patch.pod);
        let pod = pod.ok_or_else(|| api(404, "not found", &[]))?;
        let uid = &patch.body["metadata"]["uid"];
        if uid.is_string() && *uid != pod["metadata"]["uid"] {
            let message = "Pod is invalid: metadata.uid: Invalid value: field is immutable";
            return Err(api(422, message, &["FieldValueInvalid"]));
        }
        Ok(pod)
    }

    fn note_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
        let pod = self.pod_of(patch)?;
        for (key, value) in patch.body["metadata"]["annotations"].as_object().unwrap() {
            pod["metadata"]["annotations"][key] = value.clone();
        }
        Ok(Reply::Ok)
    }

    fn resize_pod(&mut self, patch: &PodPatch) -> Result<Reply, Failure> {
        let now = self.now;
        let node = self.pod_of(patch)?["spec"]["nodeName"]
            .as_str()
            .map(str::to_owned);
        let allocatable = node.map(|node| self.allocatable(&node));
        let pod = self.pod_of(patch)?;
        let change = &patch.body["spec"]["containers"][0];
        assert_eq!(
            change["name"], pod["spec"]["containers"][0]["name"],
            "a strategic merge"
        );
        let mut resources = pod["spec"]["containers"][0]["resources"].clone();
        for (part, amounts) in change["resources"].as_object().unwrap() {
            for (resource, amount) in amounts.as_object().unwrap() {
                resources[part][resource] = amount.clone();
            }
        }
        let asked = Quantity::from_json(&resources["requests"]["cpu"]).unwrap();
        if allocatable.is_some_and(|allocatable| asked > allocatable) {
            let message = format!(
                "node didn't have enough allocatable resources: cpu, requested: {}, allocatable: {}",
                asked.ceil_milli(),
                allocatable.unwrap_or_default().ceil_milli()
            );
            return Err(api(403, &message, &["NodeCapacity"]));
        }
        if pod["spec"]["containers"][0]["resources"] != resources {
            pod["metadata"]["annotations"]["played/resized"] = json!(now.to_string());
        }
        pod["spec"]["containers"][0]["resources"] = resources;
        let group = pod["metadata"]["labels"]["ray.io/group"]
            .as_str()
            .unwrap()
            .to_owned();
        let group = self.group(&group).clone();
        let limit = Quantity::from_units(group.limit.unwrap_or(group.cpu));
        if asked > limit || asked < Quantity::from_units(group.cpu) {
            self.faults
                .push(format!("pod {} was resized to {asked} CPU", patch.pod));
        }
        Ok(Reply::Ok)
    }

    fn resize_raylet(&mut self, resize: &RayletResize) -> Result<Reply, Failure> {
        let now = self.now;
        let ray = self
            .rays
            .iter_mut()
            .find(|ray| ray.id == resize.node_id && !ray.dead);
        let Some(ray) = ray else {
            let message = "NotFound: no such node".to_owned();
            return Err(Failure::Gcs {
                kind: GcsKind::NotFound,
                message,
            });
        };
        let before = (ray.cpu, ray.memory);
        #[expect(clippy::cast_precision_loss, reason = "small")]
        if let Some(cpu) = resize.cpu_milli {
            ray.cpu = (cpu as f64 / 1000.0).max(ray.used());
        }
        #[expect(clippy::cast_precision_loss, reason = "small")]
        if let Some(memory) = resize.memory_bytes {
            ray.memory = memory as f64;
        }
        if before != (ray.cpu, ray.memory) && ray.tasks.is_empty() {
            ray.idle_since = now;
        }
        Ok(Reply::RayletTotals {
            cpu: Some(ray.cpu),
            memory: Some(ray.memory),
        })
    }

    fn drain(&mut self, drain: &Drain) -> Reply {
        let ray = self
            .rays
            .iter_mut()
            .find(|ray| ray.id == drain.node_id && !ray.dead);
        let Some(ray) = ray else {
            return Reply::DrainAccepted;
        };
        if drain.kind == DrainKind::Idle && !ray.tasks.is_empty() {
            return Reply::DrainRefused;
        }
        if drain.kind == DrainKind::Stop {
            ray.tasks.clear();
        }
        ray.draining = true;
        Reply::DrainAccepted
    }
}

pub fn api(code: u16, message: &str, causes: &[&str]) -> Failure {
    Failure::Api(ApiStatus {
        code,
        message: message.to_owned(),
        causes: causes.iter().map(|cause| (*cause).to_owned()).collect(),
        ..ApiStatus::default()
    })
}
