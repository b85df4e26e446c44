//! The first versions of Ray and KubeRay that do what rules and defaults are about, in one table.

use super::release::RayVersion;

/// Ray whose image holds the autoscaler that KubeRay starts.
pub const AUTOSCALER_IN_IMAGE: RayVersion = RayVersion::new(2, 0, 0);

/// Ray whose autoscaler takes the size of a group from requests where there are no limits (Ray pull
/// request 49613).
pub const SIZE_FROM_REQUESTS: RayVersion = RayVersion::new(2, 41, 0);

/// Ray whose autoscaler reads `resources` and `labels` of a group (Ray issue 57260).
pub const GROUP_RESOURCES_AND_LABELS: RayVersion = RayVersion::new(2, 51, 0);

/// Ray whose autoscaler reads `ray.io/ippr`.
pub const IPPR: RayVersion = RayVersion::new(2, 56, 0);

/// Ray whose autoscaler knows priorities of groups. KubeRay refuses them with an earlier one.
pub const PRIORITY: RayVersion = RayVersion::new(2, 56, 0);

/// Ray with which later versions of KubeRay let pods restart under autoscaler v2 (KubeRay pull
/// request 4816).
pub const RESTARTS: RayVersion = RayVersion::new(2, 56, 0);

/// KubeRay that lets pods restart so. KubeRay counts as Ray does.
pub const KUBERAY_WITH_RESTARTS: RayVersion = RayVersion::new(1, 8, 0);

/// Ray that drains its node on SIGTERM: 2.56 ends its processes at once.
pub const DRAIN_ON_SIGTERM: RayVersion = RayVersion::new(2, 57, 0);

/// Ray whose memory monitor may follow its pod (Ray pull request 63868).
pub const MONITOR_FOLLOWS_POD: RayVersion = RayVersion::new(2, 61, 0);

/// Ray with authentication by tokens.
pub const TOKENS: RayVersion = RayVersion::new(2, 52, 0);

/// Ray that accepts Kubernetes' tokens.
pub const KUBERNETES_TOKENS: RayVersion = RayVersion::new(2, 55, 0);

/// KubeRay that takes the time zone of a schedule from a field of its own.
pub const KUBERAY_WITH_TIME_ZONE: RayVersion = RayVersion::new(1, 7, 0);

/// KubeRay that wants the step of an incremental upgrade to be within its surge.
pub const KUBERAY_WITH_STEP_IN_SURGE: RayVersion = RayVersion::new(1, 7, 0);
