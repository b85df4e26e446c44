//! The four kinds of Ray objects.

/// The four kinds that carry a RayClusterSpec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
pub enum Kind {
    /// A Ray cluster.
    RayCluster,
    /// A job with a cluster of its own, or one that selects a cluster.
    RayJob,
    /// Ray Serve on a cluster of its own.
    RayService,
    /// A schedule that makes RayJobs.
    RayCronJob,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::RayCluster,
        Self::RayJob,
        Self::RayService,
        Self::RayCronJob,
    ];

    /// The kind as manifests write it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The resource as URLs and webhook rules write it.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::RayCluster => "rayclusters",
            Self::RayJob => "rayjobs",
            Self::RayService => "rayservices",
            Self::RayCronJob => "raycronjobs",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The path of the RayClusterSpec in an object of this kind.
    pub const fn cluster_path(self) -> &'static [&'static str] {
        match self {
            Self::RayCluster => &["spec"],
            Self::RayJob => &["spec", "rayClusterSpec"],
            Self::RayService => &["spec", "rayClusterConfig"],
            Self::RayCronJob => &["spec", "jobTemplate", "rayClusterSpec"],
        }
    }
}
