//! What must never happen, whatever goes wrong.

use rayfit_core::plan::check;

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum WorldViolation {
    /// A pod was deleted on which jobs ran, because it was listed, or because another host of its replica
    /// had ended after a drain.
    #[error("pod {pod} was deleted because of the scaler while {jobs} jobs ran on it")]
    DeletesBusy {
        /// The pod.
        pod: String,
        /// How many jobs.
        jobs: usize,
    },
    /// A pod was stopped before the time that its jobs had to end.
    #[error(
        "the Ray node of pod {pod} was stopped while {jobs} jobs ran on it, which had more time"
    )]
    StopsBusy {
        /// The pod.
        pod: String,
        /// How many jobs.
        jobs: usize,
    },
    /// Work was killed for memory in a pod that could have grown in time.
    #[error(
        "work in pod {pod} was killed for memory {seconds:.0} s after a report that it would be full"
    )]
    NotRelieved {
        /// The pod.
        pod: String,
        /// For how many seconds it could have grown.
        seconds: f64,
    },
    /// Ray failed tasks that waited for a pod that became too small for them.
    #[error(
        "{tasks} tasks waited for pod {pod}, and were failed when it became too small for them"
    )]
    FailsTasks {
        /// The pod.
        pod: String,
        /// How many.
        tasks: usize,
    },
    /// A pod was resized again and again.
    #[error("pod {pod} was resized {count} times within a minute, more than {most}")]
    ResizedOften {
        /// The pod.
        pod: String,
        /// How often.
        count: usize,
        /// How often it may be.
        most: usize,
    },
    /// A list of pods to delete names something that was never a pod of the group.
    #[error("workersToDelete of group {group} names {pod}, which was never a pod of it")]
    DeletesForeign {
        /// The name.
        pod: String,
        /// The group.
        group: String,
    },
    /// A pod was made or asked to be larger than it may be.
    #[error("pod {pod} is to have {size} {unit}, above {most}")]
    AboveResizeLimit {
        /// The pod.
        pod: String,
        /// Its new size.
        size: i64,
        /// What the size counts.
        unit: &'static str,
        /// The largest size of its group.
        most: i64,
    },
    /// A pod was asked to be smaller than its template, or than what jobs use on it.
    #[error("pod {pod} was resized to {size} {unit}, below {least}")]
    TooSmall {
        /// The pod.
        pod: String,
        /// Its new size.
        size: i64,
        /// What the size counts.
        unit: &'static str,
        /// The smallest size that it may have now.
        least: i64,
    },
    /// A group was asked to have more replicas than it may have.
    #[error("group {group} was raised to {replicas} replicas, above {max}")]
    AboveMax {
        /// The group.
        group: String,
        /// The replicas.
        replicas: i64,
        /// `maxReplicas`
        max: i64,
    },
    /// The cluster was asked to have more workers than the policy lets it have.
    #[error("the cluster was raised to {workers} workers, above {max}")]
    AboveWorkers {
        /// The workers.
        workers: i64,
        /// The policy's maximum.
        max: u64,
    },
    /// The webhook denies what the scaler does.
    #[error("the webhook denies the scaler's patch: {0}")]
    Denied(String),
    /// Several replicas trust that they may scale the cluster.
    #[error("{replicas} replicas trust at the same time that they may scale the cluster")]
    SeveralScale {
        /// How many.
        replicas: usize,
    },
    /// A replica's write arrives when another one may write.
    #[error(
        "a call of one replica was made while another one trusted that it may scale the cluster"
    )]
    WritesLate,
    /// A plan breaks a rule of its own.
    #[error("a plan breaks a rule: {0}")]
    Plan(check::Violation),
    /// A call is about what is not the cluster's.
    #[error("{0}, which is not the cluster's")]
    TouchesForeign(String),
    /// There were too many calls.
    #[error(
        "{calls} writes to the API server, or calls of the GCS, within a minute, more than {most}"
    )]
    Storm {
        /// How many.
        calls: usize,
        /// How many there may be.
        most: usize,
    },
    /// Long after the last fault jobs still wait that could run.
    #[error("{seconds:.0} s after the last fault {jobs} jobs wait that fit in a group")]
    NotServed {
        /// How many.
        jobs: usize,
        /// The seconds.
        seconds: f64,
    },
    /// Long after the last job something is still written.
    #[error("{seconds:.0} s after the last job something is still done: {entry}")]
    NotQuiet {
        /// What.
        entry: String,
        /// The seconds.
        seconds: f64,
    },
    /// Long after the last job workers stay that nobody needs.
    #[error(
        "{seconds:.0} s after the last job there are {pods} workers in place of {wanted} to {most}"
    )]
    NotScaledDown {
        /// How many.
        pods: usize,
        /// How many there should be at least.
        wanted: usize,
        /// How many at the most.
        most: usize,
        /// The seconds.
        seconds: f64,
    },
}
