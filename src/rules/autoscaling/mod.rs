//! RF2xx: autoscaling, and what KubeRay or the API server refuses in any cluster.
