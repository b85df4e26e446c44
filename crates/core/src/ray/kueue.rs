//! The label and the annotation by which Kueue marks the objects that it manages.

/// The label that names the queue of an object that Kueue manages.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The annotation that is `"true"` on a job that may change its size while Kueue manages it.
pub const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
