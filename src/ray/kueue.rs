//! How Kueue marks what it manages.

/// The label with the queue of an object that Kueue manages.
pub const QUEUE: &str = "kueue.x-k8s.io/queue-name";

/// The annotation of a job that may change its size while Kueue manages it: `"true"`.
pub const ELASTIC: &str = "kueue.x-k8s.io/elastic-job";
