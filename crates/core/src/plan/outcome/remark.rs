//! Remarks of the report on single nodes: why a pod did not grow, or why it is removed.

use crate::plan::outcome::amounts::{cpu, mebibytes, memory};
use crate::plan::outcome::cause::RemovalCause;
use crate::plan::slices::small_pods::reason::KeptSmall;
use crate::plan::slices::standby::reason::StandbyReason;
use crate::text::text_in_json;

/// The reason why a node is not grown, or why it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display, derive_more::From)]
pub enum NodeRemark {
    /// It is removed.
    #[display("removed ({_0})")]
    Removed(RemovalCause),
    /// It is to be removed, and waits for the other hosts of its replica.
    #[display(
        "to be removed ({_0}) together with the other hosts of its replica, and waits for them"
    )]
    WaitsForHosts(RemovalCause),
    /// It is to be removed once no group is suspended: until then KubeRay deletes nothing.
    #[display(
        "to be removed ({_0}) once no group is suspended: until then KubeRay deletes nothing"
    )]
    WaitsForKubeRay(RemovalCause),
    /// It has been idle for long enough to go, and is kept ready.
    #[display("idle, and kept {by} {_0}", by = if *_0 == StandbyReason::Headroom { "as" } else { "by" })]
    Kept(StandbyReason),
    /// It has been idle for long enough to go, and has not been needed on standby for so many seconds.
    #[display(
        "idle, and not needed as headroom for {_0} s; goes when that has been so for as \
         long as its idle timeout"
    )]
    Released(i64),
    /// It is idle, and a slice keeps it, for the reason that it gives.
    #[display("idle, and kept: {_0}")]
    KeptFor(&'static str),
    /// It was asked to stop in an earlier round.
    #[display("was asked to stop")]
    Stopping,
    /// Kubernetes was asked for a resize so many seconds ago.
    #[display("resize in progress for {_0} s")]
    InFlight(i64),
    /// Its last resize failed, and it waits before the next.
    #[display("its last resize failed ({why}); it may grow again in {seconds} s")]
    Barred {
        /// The reason why the resize failed.
        why: String,
        /// The time for which it still waits, in whole seconds.
        seconds: i64,
    },
    /// The kubelet does not carry out its resize, for the reason that Kubernetes gives.
    #[display("its resize is {_0}")]
    Pending(String),
    /// Its resize is under way.
    #[display("its resize is under way")]
    Underway,
    /// Its resize failed.
    #[display("its resize failed")]
    Failed,
    /// Its resize failed and is not asked for again, for the reason in its note.
    #[display("its resize failed for good: {_0}")]
    FailedForGood(String),
    /// It has had more CPU than it needs.
    #[display(
        "has needed {} of its {} CPU of late, and gives up the rest if it stays so",
        cpu(*needed_milli), cpu(*has_milli)
    )]
    Spare {
        /// The most that it has needed of late, in thousandths of cores.
        needed_milli: i64,
        /// The CPU that it has, in thousandths of cores.
        has_milli: i64,
    },
    /// It is idle, and kept for longer than others because it is small.
    #[from]
    KeptSmall(KeptSmall),
    /// Its memory is nearly full, and it does not grow.
    #[display(
        "{} of its {} memory is in use{}",
        mebibytes(*used), memory(*has),
        why.as_ref().map(|why| format!("; {why}")).unwrap_or_default()
    )]
    NearlyFull {
        /// The bytes in use.
        used: i64,
        /// The bytes that it has.
        has: i64,
        /// The reason why it does not grow, or does not grow further.
        why: Option<Box<NodeRemark>>,
    },
    /// It has all that it may have.
    #[display("at its resize limit")]
    AtResizeLimit,
    /// Its Kubernetes node has too little left for it to reach its resize limit.
    #[display("node {node}: {free} free, {short} short of its resize limit")]
    NodeFull {
        /// The name of the Kubernetes node.
        node: String,
        /// The amount and name of the resource that the node has left.
        free: String,
        /// The missing amount.
        short: String,
    },
}

text_in_json!(NodeRemark);
