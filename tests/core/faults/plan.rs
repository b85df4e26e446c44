//! A scene, faults and their times, as lines of JSON.

use serde::{Deserialize, Serialize};

use super::scene::{Scene, SceneGroup, SceneJob, SceneSettings};
use crate::faults::lies::GcsLie;
use crate::faults::trouble::{Answer, CallEvent, CallKind, LostWatches, ResizeRefusal};

/// The messages that are lost while a process is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Cut {
    /// Its requests are lost.
    Requests,
    /// Its requests arrive, and the answers are lost.
    Answers,
}

/// What goes wrong in a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FaultPlan {
    /// The cluster, its jobs and its world.
    pub(crate) scene: Scene,
    /// The faults.
    pub(crate) faults: Vec<Fault>,
}

/// A fault, and when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fault {
    /// Seconds after the first moment at which jobs are submitted.
    pub(crate) at: f64,
    /// What happens.
    #[serde(flatten)]
    pub(crate) kind: FaultKind,
}

/// What can happen. `seconds` is for how long it lasts. Groups are numbers in the list of worker
/// groups; `pick` says which of those that there are, counted round and round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum FaultKind {
    /// The scaler's process is killed when the next calls but so many are under way, and loses
    /// everything that it remembers.
    ScalerDies {
        /// How many calls are answered before.
        calls: u32,
        /// Whether the calls that are under way are carried out.
        is_done: bool,
        /// From then on until another process looks at the cluster.
        seconds: f64,
    },
    /// The next calls of the scaler are answered wrongly.
    CallsFail {
        /// How many.
        calls: u32,
        /// The answer.
        answer: Answer,
        /// Whether the calls are carried out, unless the answer is a refusal.
        is_done: bool,
    },
    /// The Lease of the cluster's shard goes to another replica: calls that have not begun are not
    /// sent, and the other replica knows nothing of this one's rounds.
    LeaseLost {
        /// Until the other replica looks at the cluster.
        seconds: f64,
    },
    /// All calls of one kind are answered wrongly.
    CallsRefused {
        /// The kind.
        of: CallKind,
        /// The answer.
        answer: Answer,
        /// For how long.
        seconds: f64,
    },
    /// Watchers hear of changes later.
    WatchLags {
        /// How much later, in seconds.
        lag: f64,
        /// For how long.
        seconds: f64,
    },
    /// Watchers hear of changes of some objects later than of others, which so overtake them.
    WatchOvertaken {
        /// Of which they hear later.
        of: LostWatches,
        /// How much later, in seconds.
        lag: f64,
        /// For how long.
        seconds: f64,
    },
    /// Watchers hear nothing of some objects, or of all, until they list again.
    WatchStops {
        /// Of which.
        of: LostWatches,
        /// For how long.
        seconds: f64,
    },
    /// Watchers hear again what was so many seconds ago, as from an API server that lags behind the
    /// one that they watched before, and then what is so now.
    WatchRepeats {
        /// How long ago.
        ago: f64,
    },
    /// The GCS does not answer.
    GcsAway {
        /// For how long.
        seconds: f64,
    },
    /// The GCS is started anew, and does not answer until it runs. Nodes and jobs go on.
    GcsRestarts {
        /// For how long.
        seconds: f64,
    },
    /// The GCS says what is not so.
    GcsLies {
        /// What it says.
        lie: GcsLie,
        /// For how long.
        seconds: f64,
    },
    /// Something happens when the next call of a kind is on its way, if there is one in time. Maxima
    /// that are lowered by it are set back in the end.
    AtCall {
        /// The kind.
        of: CallKind,
        /// What happens.
        event: CallEvent,
        /// Until when there must be such a call.
        seconds: f64,
    },
    /// Kubelets resize nothing.
    ResizesRefused {
        /// What they say.
        refusal: ResizeRefusal,
        /// For how long.
        seconds: f64,
    },
    /// A Kubernetes node vanishes with its pods. It is never the head's.
    NodeLost {
        /// Which one.
        pick: usize,
    },
    /// The containers of a worker end with an error.
    PodFails {
        /// Which one.
        pick: usize,
    },
    /// The kubelets of pods of a group that would be gone meanwhile never come to an end with them.
    DeletionsHang {
        /// The group.
        group: usize,
        /// For how long pods begin to hang.
        seconds: f64,
    },
    /// An init container never ends in pods of a group whose containers would begin to run meanwhile.
    InitContainersHang {
        /// The group.
        group: usize,
        /// For how long pods begin to hang.
        seconds: f64,
    },
    /// Containers take longer to start.
    PodsStartSlowly {
        /// How long they take, in seconds.
        takes: f64,
        /// For how long.
        seconds: f64,
    },
    /// People set `maxReplicas` of a group, and later set it back.
    MaxReplicas {
        /// The group.
        group: usize,
        /// The value.
        max: i64,
        /// For how long.
        seconds: f64,
    },
    /// People suspend a group, and later resume it. KubeRay leaves the whole cluster alone meanwhile.
    GroupSuspended {
        /// The group.
        group: usize,
        /// For how long.
        seconds: f64,
    },
    /// People remove the second group for good.
    GroupRemoved,
    /// A tool writes the `replicas` of a group that its repository has.
    ReplicasReset {
        /// The group.
        group: usize,
        /// The value.
        replicas: i64,
    },
    /// People set `minReplicas` of a group, and later set it back.
    MinReplicas {
        /// The group.
        group: usize,
        /// The value.
        min: i64,
        /// For how long.
        seconds: f64,
    },
    /// A tool applies the RayCluster as its repository has it, without what was added since.
    ManifestApplied,
    /// People remove the annotation that lets pods grow, and later write it again.
    GrowthRemoved {
        /// For how long.
        seconds: f64,
    },
    /// People delete a worker pod.
    PodDeleted {
        /// Which one.
        pick: usize,
    },
    /// People remove Ray's notes about resizes from all pods.
    NotesRemoved,
    /// The head pod is lost, and Ray with everything that it knew: KubeRay makes another one.
    HeadLost {
        /// Whether its Kubernetes node vanishes, and not the pod alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        node: bool,
        /// Whether drivers start again then, and submit again what was lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// The cache of an API server stands still, and reads show what was so then. Watches and writes go
    /// on with another one.
    ReadsHeld {
        /// For how long.
        seconds: f64,
    },
    /// The GCS tells of a part only of what waits, as where raylets have not said all of it yet.
    DemandInPart {
        /// How much of each shape it tells of, in percent.
        percent: u32,
        /// For how long.
        seconds: f64,
    },
    /// People drain a Kubernetes node: its pods are evicted, and no pod is bound to it. It is never
    /// the head's.
    NodeDrained {
        /// Which one.
        pick: usize,
        /// Until pods can be bound to it again.
        seconds: f64,
    },
    /// Pods of others take all CPU that there is on the Kubernetes nodes.
    NodesFilled {
        /// For how long.
        seconds: f64,
    },
    /// All calls of the scaler take longer.
    CallsSlow {
        /// How long they take, in seconds.
        takes: f64,
        /// For how long.
        seconds: f64,
    },
    /// A replica is killed, and another one starts in its place.
    ReplicaDies {
        /// Which one.
        replica: usize,
        /// From then on until the other one runs.
        seconds: f64,
    },
    /// A replica is asked to stop, and another one starts in its place later.
    ReplicaStops {
        /// Which one.
        replica: usize,
        /// From then on until the other one starts.
        seconds: f64,
    },
    /// A replica reaches neither the API server nor a GCS.
    ReplicaCut {
        /// Which one.
        replica: usize,
        /// What is lost.
        what: Cut,
        /// For how long.
        seconds: f64,
    },
    /// Nothing of a replica's process runs, and what it has sent arrives.
    ReplicaFrozen {
        /// Which one.
        replica: usize,
        /// For how long.
        seconds: f64,
    },
    /// The namespace gets a quota, which is taken away later.
    QuotaSet {
        /// The cores that its pods may request.
        cores: i64,
        /// For how long.
        seconds: f64,
    },
    /// A driver calls `request_resources()`, and later takes it back.
    ResourcesRequested {
        /// The CPUs of each bundle.
        cpu: f64,
        /// How many bundles.
        bundles: i64,
        /// For how long.
        seconds: f64,
    },
    /// The scaler's clock is ahead, or behind, and is then set right.
    ClockAhead {
        /// By how many seconds; below 0 it is behind.
        by: f64,
        /// For how long.
        seconds: f64,
    },
}

impl FaultKind {
    /// For how long the fault lasts, in seconds. What waits for calls is over after half a minute,
    /// whether or not there were any.
    pub(crate) fn seconds(&self) -> f64 {
        match self {
            Self::ScalerDies { .. } | Self::CallsFail { .. } => 30.0,
            Self::CallsRefused { seconds, .. }
            | Self::WatchLags { seconds, .. }
            | Self::WatchOvertaken { seconds, .. }
            | Self::GcsLies { seconds, .. }
            | Self::AtCall { seconds, .. }
            | Self::WatchStops { seconds, .. }
            | Self::GcsAway { seconds }
            | Self::GcsRestarts { seconds }
            | Self::ResizesRefused { seconds, .. }
            | Self::PodsStartSlowly { seconds, .. }
            | Self::DeletionsHang { seconds, .. }
            | Self::InitContainersHang { seconds, .. }
            | Self::MaxReplicas { seconds, .. }
            | Self::MinReplicas { seconds, .. }
            | Self::GroupSuspended { seconds, .. }
            | Self::GrowthRemoved { seconds }
            | Self::NodeDrained { seconds, .. }
            | Self::NodesFilled { seconds }
            | Self::QuotaSet { seconds, .. }
            | Self::CallsSlow { seconds, .. }
            | Self::ReplicaDies { seconds, .. }
            | Self::ReplicaStops { seconds, .. }
            | Self::ReplicaCut { seconds, .. }
            | Self::ReplicaFrozen { seconds, .. }
            | Self::ResourcesRequested { seconds, .. }
            | Self::ReadsHeld { seconds }
            | Self::DemandInPart { seconds, .. }
            | Self::ClockAhead { seconds, .. } => *seconds,
            Self::WatchRepeats { .. } => 1.0,
            Self::LeaseLost { .. }
            | Self::NodeLost { .. }
            | Self::PodFails { .. }
            | Self::PodDeleted { .. }
            | Self::HeadLost { .. }
            | Self::GroupRemoved
            | Self::ManifestApplied
            | Self::NotesRemoved
            | Self::ReplicasReset { .. } => 0.0,
        }
    }
}

/// A line of a plan.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    Scene(SceneSettings),
    Group(SceneGroup),
    Job(SceneJob),
    Fault(Fault),
}

impl FaultPlan {
    /// The plan as lines of JSON: the scene, its groups, its jobs, then each fault.
    ///
    /// # Errors
    ///
    /// A number is not finite.
    pub(crate) fn lines(&self) -> Result<String, serde_json::Error> {
        let scene = &self.scene;
        let settings = std::iter::once(Line::Scene(scene.settings.clone()));
        let groups = scene.groups.iter().cloned().map(Line::Group);
        let jobs = scene.jobs.iter().cloned().map(Line::Job);
        let faults = self.faults.iter().copied().map(Line::Fault);
        let mut text = String::new();
        for line in settings.chain(groups).chain(jobs).chain(faults) {
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads what [`FaultPlan::lines`] writes.
    ///
    /// # Errors
    ///
    /// A line is not JSON, or none of these.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut plan = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str(line)? {
                Line::Scene(settings) => plan.scene.settings = settings,
                Line::Group(group) => plan.scene.groups.push(group),
                Line::Job(job) => plan.scene.jobs.push(job),
                Line::Fault(fault) => plan.faults.push(fault),
            }
        }
        Ok(plan)
    }
}
