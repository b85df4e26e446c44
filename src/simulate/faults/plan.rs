//! Faults and their times, as lines of JSON.

use serde::{Deserialize, Serialize};

use crate::simulate::world::trouble::{Answer, ResizeRefusal};

/// What goes wrong in a simulation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultPlan {
    /// The seed of the cluster, its jobs and everything random.
    pub seed: u64,
    /// The faults.
    pub faults: Vec<Fault>,
}

/// A fault, and when it happens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Seconds after the first moment at which jobs are submitted.
    pub at: f64,
    /// What happens.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// What can happen. `seconds` is for how long it lasts. Groups are numbers in the list of worker
/// groups; `pick` says which of those that there are, counted round and round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "fault",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum FaultKind {
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
    /// Watchers hear of changes later.
    WatchLags {
        /// How much later, in seconds.
        lag: f64,
        /// For how long.
        seconds: f64,
    },
    /// Watchers hear nothing until they list again.
    WatchStops {
        /// For how long.
        seconds: f64,
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
    /// The scaler's clock is ahead, and is then set back.
    ClockAhead {
        /// By how many seconds.
        by: f64,
        /// For how long.
        seconds: f64,
    },
}

impl FaultKind {
    /// For how long the fault lasts, in seconds. What waits for calls is over after half a minute,
    /// whether or not there were any.
    pub fn seconds(&self) -> f64 {
        match self {
            Self::ScalerDies { .. } | Self::CallsFail { .. } => 30.0,
            Self::WatchLags { seconds, .. }
            | Self::WatchStops { seconds }
            | Self::GcsAway { seconds }
            | Self::GcsRestarts { seconds }
            | Self::ResizesRefused { seconds, .. }
            | Self::PodsStartSlowly { seconds, .. }
            | Self::MaxReplicas { seconds, .. }
            | Self::GroupSuspended { seconds, .. }
            | Self::ClockAhead { seconds, .. } => *seconds,
            Self::NodeLost { .. }
            | Self::PodFails { .. }
            | Self::GroupRemoved
            | Self::ReplicasReset { .. } => 0.0,
        }
    }
}

/// The first line of a plan.
#[derive(Serialize, Deserialize)]
struct Head {
    seed: u64,
}

impl FaultPlan {
    /// The plan as lines of JSON: the seed, then each fault.
    ///
    /// # Errors
    ///
    /// A number is not finite.
    pub fn lines(&self) -> Result<String, serde_json::Error> {
        let mut lines = serde_json::to_string(&Head { seed: self.seed })?;
        for fault in &self.faults {
            lines.push('\n');
            lines.push_str(&serde_json::to_string(fault)?);
        }
        lines.push('\n');
        Ok(lines)
    }

    /// Reads what [`FaultPlan::lines`] writes.
    ///
    /// # Errors
    ///
    /// A line is not JSON, or is no fault. Without lines there is no seed, which is an error too.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut lines = text.lines();
        let head: Head = serde_json::from_str(lines.next().unwrap_or_default())?;
        let faults = lines
            .filter(|line| !line.trim().is_empty())
            .map(serde_json::from_str);
        Ok(Self {
            seed: head.seed,
            faults: faults.collect::<Result<_, _>>()?,
        })
    }
}
