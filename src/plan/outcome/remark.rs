//! Remarks of the report on single nodes: why a pod did not grow, or why it is removed.

use std::fmt;

use crate::plan::outcome::cause::RemovalCause;
use crate::plan::outcome::display::{mebibytes, memory};
use crate::plan::outcome::json_text::text_in_json;
use crate::plan::outcome::standby_reason::{GapsSeen, StandbyReason};
use crate::quantity::Quantity;

/// A resource that can be resized in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResizedResource {
    /// CPU
    Cpu,
    /// Memory
    Memory,
}

/// The reason why a node is not grown, or why it is removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NodeRemark {
    /// It is removed.
    Removed(RemovalCause),
    /// It is to be removed, and waits for the other hosts of its replica.
    WaitsForHosts(RemovalCause),
    /// It is to be removed once no group is suspended: until then KubeRay deletes nothing.
    WaitsForKubeRay(RemovalCause),
    /// It has been idle for long enough to go, and is kept ready.
    Kept(StandbyReason),
    /// It has been idle for long enough to go, and was kept ready until a moment ago.
    Released {
        /// The time for which it has not been needed, in whole seconds.
        seconds: i64,
    },
    /// It is idle, and grows for demand that waits once pods have gone that go already.
    AwaitsRoom,
    /// It was asked to stop in an earlier round.
    Stopping,
    /// Kubernetes was asked for a resize.
    InFlight {
        /// The time since then, in whole seconds.
        seconds: i64,
    },
    /// Its last resize failed, and it waits before the next.
    Barred {
        /// The reason why the resize failed; `None` if it could not be asked for.
        why: Option<String>,
        /// The time for which it still waits, in whole seconds.
        seconds: i64,
    },
    /// The kubelet does not carry out its resize, for the reason that Kubernetes gives.
    Pending(String),
    /// Its resize is under way.
    Underway,
    /// Its resize failed.
    Failed,
    /// Its resize failed and is not asked for again, for the reason in its note.
    FailedForGood(String),
    /// It has had more CPU than it needs.
    Spare {
        /// The most that it has needed of late, in thousandths of cores.
        needed_milli: i64,
        /// The CPU that it has, in thousandths of cores.
        has_milli: i64,
    },
    /// It is idle, and kept for longer than others because it is small.
    KeptSmall {
        /// Seconds for which it is kept while it is idle.
        seconds: i64,
        /// The gaps between bursts of work, and how many ended in that time, if it was learnt from
        /// them.
        of_gaps: Option<GapsSeen>,
    },
    /// Its memory is nearly full, and it does not grow.
    NearlyFull {
        /// The bytes in use.
        used: i64,
        /// The bytes that it has.
        has: i64,
        /// The reason why it does not grow, or does not grow further.
        why: Option<Box<NodeRemark>>,
    },
    /// It has all that it may have.
    AtResizeLimit,
    /// Its Kubernetes node has too little left for it to reach its resize limit.
    NodeFull {
        /// The name of the Kubernetes node.
        node: String,
        /// The resource that is short.
        resource: ResizedResource,
        /// The amount of it that the node has left.
        free: Quantity,
        /// The missing amount.
        short: Quantity,
    },
}

impl fmt::Display for NodeRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed(cause) => write!(f, "removed ({})", cause.describe()),
            Self::WaitsForHosts(cause) => write!(
                f,
                "to be removed ({}) together with the other hosts of its replica, and waits for them",
                cause.describe()
            ),
            Self::WaitsForKubeRay(cause) => write!(
                f,
                "to be removed ({}) once no group is suspended: until then KubeRay deletes nothing",
                cause.describe()
            ),
            Self::Kept(StandbyReason::Headroom) => f.write_str("idle, and kept as headroom"),
            Self::Kept(reason) => write!(f, "idle, and kept by {reason}"),
            Self::Released { seconds } => write!(
                f,
                "idle, and not needed as headroom for {seconds} s; goes when that has been so for as \
                 long as its idle timeout"
            ),
            Self::AwaitsRoom => f.write_str(
                "idle, and kept: pods go from its Kubernetes node, and leave it room to grow for demand \
                 that waits",
            ),
            Self::Stopping => f.write_str("was asked to stop"),
            Self::InFlight { seconds } => write!(f, "resize in progress for {seconds} s"),
            Self::Barred { why, seconds } => {
                let why = why.as_deref().unwrap_or("it could not be asked for");
                write!(
                    f,
                    "its last resize failed ({why}); it may grow again in {seconds} s"
                )
            }
            Self::Pending(reason) => write!(f, "its resize is {reason}"),
            Self::Underway => f.write_str("its resize is under way"),
            Self::Failed => f.write_str("its resize failed"),
            Self::FailedForGood(why) => write!(f, "its resize failed for good: {why}"),
            Self::Spare {
                needed_milli,
                has_milli,
            } => {
                let cpu = |milli: i64| Quantity::from_milli(milli).display_cpu();
                write!(
                    f,
                    "has needed {} of its {} CPU of late, and gives up the rest if it stays so",
                    cpu(*needed_milli),
                    cpu(*has_milli)
                )
            }
            Self::KeptSmall { seconds, of_gaps } => {
                write!(
                    f,
                    "idle, and kept for {seconds} s because it is below its resize limits"
                )?;
                match of_gaps {
                    Some(GapsSeen { seen, ended }) => {
                        write!(
                            f,
                            ": of {seen} gaps between bursts {ended} ended in that time"
                        )
                    }
                    None => Ok(()),
                }
            }
            Self::NearlyFull { used, has, why } => {
                let (used, has) = (mebibytes(*used), memory(*has));
                write!(f, "{used} of its {has} memory is in use")?;
                why.iter().try_for_each(|why| write!(f, "; {why}"))
            }
            Self::AtResizeLimit => f.write_str("at its resize limit"),
            Self::NodeFull {
                node,
                resource,
                free,
                short,
            } => {
                let (name, free, short) = match resource {
                    ResizedResource::Cpu => ("CPU", free.display_cpu(), short.display_cpu()),
                    ResizedResource::Memory => {
                        ("memory", free.display_memory(), short.display_memory())
                    }
                };
                write!(
                    f,
                    "node {node}: {free} {name} free, {short} short of its resize limit"
                )
            }
        }
    }
}

text_in_json!(NodeRemark);
