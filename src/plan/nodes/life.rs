//! The stage of a node's life, with the parts of it that exist by then.

/// A stage of a node's life, with the parts of the node that exist by then.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeLife {
    /// It was added by this decision, or is only considered.
    New,
    /// It was decided on in an earlier round, and KubeRay was not asked for it yet.
    Queued,
    /// KubeRay was asked for it, and its pod does not exist yet.
    Requested {
        /// The time at which KubeRay was asked, in seconds since 1970, if that is known.
        since: Option<f64>,
    },
    /// Its pod exists.
    Existing {
        /// The pod's name.
        pod: String,
        /// The replica that it is a host of, in a multi-host group.
        replica: Option<String>,
        /// Ray's life in the pod.
        ray: RayInPod,
    },
}

/// Ray's life in a pod.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RayInPod {
    /// It does not.
    Absent,
    /// It was asked to stop, and has not begun to drain yet.
    Stopping {
        /// The time at which it was asked, in seconds since 1970.
        since: Option<f64>,
    },
    /// It does, as its raylet reports.
    Running {
        /// The id of the Ray node, in hexadecimal, if Ray reports it.
        id: Option<String>,
        /// Its CPU, in cores.
        cpu: f64,
        /// Its memory, in bytes.
        memory: f64,
    },
}

/// The stage of a node's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The node was added by this decision.
    New,
    /// The node was decided on in an earlier round, and KubeRay was not asked for it yet.
    Queued,
    /// KubeRay was asked for the node, and its pod does not exist yet.
    Requested,
    /// The pod exists, and Ray does not run in it.
    Allocated,
    /// The Ray node was asked to stop, and has not begun to drain yet.
    Stopping,
    /// Ray runs in the pod.
    Running,
}

impl NodeLife {
    /// The stage alone.
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::New => Stage::New,
            Self::Queued => Stage::Queued,
            Self::Requested { .. } => Stage::Requested,
            Self::Existing { ray, .. } => match ray {
                RayInPod::Absent => Stage::Allocated,
                RayInPod::Stopping { .. } => Stage::Stopping,
                RayInPod::Running { .. } => Stage::Running,
            },
        }
    }
}
