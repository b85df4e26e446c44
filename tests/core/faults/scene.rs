//! The cluster, the jobs and the world in which faults happen, as data: small ones, so that many can be
//! tried, and a person can read them.

use rayfit_core::plan;
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::resource::Amounts;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::reconcile::settings::Pace;
use rayfit_core::seconds::Retry;
use rayfit_core::simulate::settings::{LIVENESS_S, NodePool, WorldSettings};
use rayfit_core::simulate::trace::{Job, JobDemand, JobShape, MemoryUse, PlacementStrategy, Trace};
use rayfit_core::snapshot::pod_object::{
    OwnerReference, PodLabels, PodMetadata, PodObject, PodStatus,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::standby::SceneStandby;

/// For how many seconds small pods are kept at the most.
pub(super) const KEEP_SMALL_S: f64 = 120.0;

/// The memory that goes with a core, in GiB.
pub(super) const MEMORY_GI: i64 = 4;

/// Bytes of a GiB.
const GI: f64 = 1_073_741_824.0;

/// Where faults happen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scene {
    /// What holds for all of it.
    pub(crate) settings: SceneSettings,
    /// The worker groups.
    pub(crate) groups: Vec<SceneGroup>,
    /// The jobs.
    pub(crate) jobs: Vec<SceneJob>,
}

/// What holds for all of a scene.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SceneSettings {
    /// The seed of everything random.
    pub(crate) seed: u64,
    /// How the planner decides.
    pub(crate) strategy: plan::Strategy,
    /// For how long idle workers are kept, in seconds.
    pub(crate) idle_timeout_seconds: u32,
    /// The cores of a Kubernetes node; there are 4 GiB for each.
    pub(crate) node_cores: i64,
    /// The most workers that a policy lets the cluster have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_workers: Option<u64>,
    /// From when a raylet has ended until the containers of its pod have, in seconds; by its liveness
    /// probe without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod_end_seconds: Option<f64>,
    /// Whether there is a pod that carries the cluster's label and is somebody else's, with a Ray node
    /// that the GCS lists as idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stranger: bool,
    /// What a policy keeps ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standby: Option<SceneStandby>,
    /// How many replicas of the controller there are, if more than one: then they need Leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<usize>,
    /// Whether the webhook checks changes of the RayCluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) judged: bool,
    /// How pods that can be resized are kept small, if not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_place: Option<SceneInPlace>,
    /// After how many seconds pods count no more that have not become Ray nodes, if not as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress_deadline_seconds: Option<u32>,
    /// Whether new pods are made larger than their template where a single request needs that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) initial_sizes: bool,
}

/// How pods that can be resized are kept small; 0 seconds stand for never.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SceneInPlace {
    /// After how long CPU that was spare is given up.
    pub(crate) shrink_after_seconds: u32,
    /// For how long small pods are kept at the most.
    pub(crate) keep_small_seconds: u32,
    /// Whether that is learnt from the gaps between bursts.
    pub(crate) learn_gaps: bool,
    /// Whether pods grow with the memory in use.
    pub(crate) follow_memory: bool,
}

/// A worker group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SceneGroup {
    /// Its name.
    pub(crate) name: String,
    /// The cores of a pod; there are 4 GiB for each.
    pub(crate) cores: i64,
    /// The cores up to which a pod may grow, if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_cores: Option<i64>,
    /// The cores that the pod has as a whole, if it has any, of which its container is given more or fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod_cores: Option<i64>,
    /// The fewest replicas.
    pub(crate) min: i64,
    /// The most replicas.
    pub(crate) max: i64,
    /// The pods of a replica.
    pub(crate) hosts: i64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SceneJob {
    /// When it is submitted, in seconds.
    pub(crate) at: f64,
    /// For how long it runs, in seconds.
    pub(crate) seconds: f64,
    /// The CPUs that it takes; those of each bundle, where it has bundles.
    pub(crate) cpu: f64,
    /// The memory that it takes, in GiB.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) memory_gi: f64,
    /// The memory that it really uses: pairs of seconds since it started, and GiB from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) uses_gi: Vec<(f64, f64)>,
    /// Whether it is an actor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) actor: bool,
    /// How the two bundles lie on nodes, if it is a placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bundles: Option<PlacementStrategy>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(amount: &f64) -> bool {
    *amount == 0.0
}

impl Scene {
    /// How the cluster is scaled.
    pub(crate) fn reconciler(&self) -> RoundSettings {
        let mut settings = RoundSettings {
            // Fewer looks and shorter waits make more seeds in the same time. Changes of objects lead
            // to looks at once.
            pace: Pace {
                busy_s: 1.0,
                calm_s: 4.0,
                ..Pace::default()
            },
            backoff: Retry {
                longest_s: 30.0,
                ..RoundSettings::default().backoff
            },
            ..RoundSettings::default()
        };
        settings.plan.strategy = self.settings.strategy;
        // What is kept for long makes a trial long.
        settings.plan.keep_small_s = Some(KEEP_SMALL_S);
        if let Some(in_place) = &self.settings.in_place {
            let unless_zero = |seconds: u32| (seconds > 0).then(|| f64::from(seconds));
            settings.plan.shrink_after_s = unless_zero(in_place.shrink_after_seconds);
            settings.plan.keep_small_s = unless_zero(in_place.keep_small_seconds);
            let slices = [
                (plan::Slice::Gaps, in_place.learn_gaps),
                (plan::Slice::MemoryInUse, in_place.follow_memory),
            ];
            let left_out = slices.into_iter().filter(|(_, is_on)| !is_on);
            settings.plan.left_out = left_out.map(|(slice, _)| slice).collect();
        }
        settings.plan.initial_sizes = self
            .settings
            .initial_sizes
            .then_some(plan::SizedFor::Request);
        if let Some(seconds) = self.settings.progress_deadline_seconds {
            settings.plan.progress_deadline_s = f64::from(seconds);
        }
        if let Some(max) = self.settings.max_workers {
            settings.plan.max_workers = max;
        }
        if let Some(standby) = &self.settings.standby
            && let Some(group) = self.groups.first()
        {
            standby.apply(&mut settings.plan, &group.name);
        }
        settings
    }

    /// How the world behaves.
    pub(crate) fn world(&self) -> WorldSettings {
        let cores = self.settings.node_cores;
        WorldSettings {
            seed: self.settings.seed,
            pod_end_s: self.settings.pod_end_seconds.unwrap_or(LIVENESS_S),
            pools: vec![NodePool {
                name: "pool".to_owned(),
                allocatable: Amounts::new(
                    Quantity::from_units(cores),
                    Quantity::from_units((MEMORY_GI * cores) << 30),
                ),
                min: 1,
                max: 5,
                start_s: 20.0,
                idle_s: 60.0,
                ..NodePool::default()
            }],
            ..WorldSettings::default()
        }
    }

    /// The jobs.
    pub(crate) fn trace(&self) -> Trace {
        Trace {
            name: "faults".to_owned(),
            jobs: self.jobs.iter().map(SceneJob::job).collect(),
        }
    }

    /// The RayCluster.
    pub(crate) fn cluster(&self) -> Value {
        let group = |group: &SceneGroup| {
            let mut pod = json!({"containers": [container("ray-worker", group.cores)]});
            if let Some(cores) = group.pod_cores {
                pod["resources"] = json!({"limits": size(cores), "requests": size(group.cores)});
            }
            json!({
                "groupName": group.name, "replicas": group.min, "minReplicas": group.min,
                "maxReplicas": group.max, "numOfHosts": group.hosts, "rayStartParams": {},
                "template": {"spec": pod},
            })
        };
        let growing = self.groups.iter().filter_map(|group| {
            let most = group.max_cores?;
            let memory = format!("{}Gi", MEMORY_GI * most);
            let limits = json!({"max-cpu": most, "max-memory": memory, "resize-timeout": 30});
            Some((group.name.clone(), limits))
        });
        let growing: serde_json::Map<String, Value> = growing.collect();
        let mut cluster = json!({
            "apiVersion": "ray.io/v1", "kind": "RayCluster",
            "metadata": {"name": "demo", "namespace": "ray", "annotations": {}},
            "spec": {
                "autoscalerOptions": {"idleTimeoutSeconds": self.settings.idle_timeout_seconds},
                "headGroupSpec": {
                    "rayStartParams": {"num-cpus": "0"},
                    "template": {"spec": {"containers": [container("ray-head", 1)]}},
                },
                "workerGroupSpecs": self.groups.iter().map(group).collect::<Vec<_>>(),
            },
        });
        if !growing.is_empty() {
            let growing = json!({"groups": growing}).to_string();
            cluster["metadata"]["annotations"]["ray.io/ippr"] = json!(growing);
        }
        cluster
    }
}

impl SceneGroup {
    /// The most that a pod of it may have, as thousandths of cores and as bytes.
    pub(crate) fn most(&self) -> [i64; 2] {
        let own = self.max_cores.unwrap_or(self.cores);
        amounts(self.pod_cores.map_or(own, |whole| whole.min(own)))
    }

    /// What a pod of it has at first.
    pub(crate) fn least(&self) -> [i64; 2] {
        amounts(self.cores)
    }
}

fn amounts(cores: i64) -> [i64; 2] {
    [cores * 1000, (MEMORY_GI * cores) << 30]
}

impl SceneJob {
    fn job(&self) -> Job {
        let mut shape = JobShape::from([("CPU".to_owned(), self.cpu)]);
        if self.memory_gi > 0.0 {
            shape.insert("memory".to_owned(), self.memory_gi * GI);
        }
        let demand = match self.bundles {
            Some(strategy) => JobDemand::PlacementGroup {
                strategy,
                bundles: vec![shape; 2],
            },
            None if self.actor => JobDemand::Actor(shape),
            None => JobDemand::Task(shape),
        };
        Job {
            id: String::new(),
            name: String::new(),
            at: self.at,
            after: Vec::new(),
            seconds: self.seconds,
            demand,
            memory: self.uses_gi.iter().map(|(at, gi)| uses(*at, *gi)).collect(),
            output: 0,
            // A job that loses its node is tried again.
            retries: 1000,
        }
    }
}

fn uses(at: f64, gi: f64) -> MemoryUse {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float is cast to the nearest number that there is"
    )]
    let bytes = (gi * GI) as u64;
    MemoryUse { at, bytes }
}

/// A container of so many cores.
fn container(name: &str, cores: i64) -> Value {
    let size = size(cores);
    json!({
        "name": name, "image": "ray:2.60.0", "resources": {"limits": size, "requests": size},
        // Ray's memory monitor would take away jobs for good.
        "env": [{"name": "RAY_memory_monitor_refresh_ms", "value": "0"}],
    })
}

fn size(cores: i64) -> Value {
    json!({"cpu": cores.to_string(), "memory": format!("{}Gi", MEMORY_GI * cores)})
}

/// A pod that says that it is of the cluster, and is somebody else's.
pub(super) fn stranger() -> PodObject {
    let text = str::to_owned;
    PodObject {
        metadata: PodMetadata {
            name: text("stranger"),
            namespace: Some(text("ray")),
            uid: Some(text("stranger")),
            labels: PodLabels {
                cluster: Some(text("demo")),
                node_type: Some(text("worker")),
                group: Some(text("small")),
                replica: None,
            },
            owner_references: vec![OwnerReference {
                kind: text("RayCluster"),
                name: text("demo"),
                uid: text("another"),
                controller: Some(true),
            }],
            ..PodMetadata::default()
        },
        status: PodStatus {
            phase: Some(text("Running")),
            ..PodStatus::default()
        },
        ..PodObject::default()
    }
}
