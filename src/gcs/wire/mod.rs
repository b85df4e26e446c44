//! Ray's messages, as far as they are used (`proto/`), and our own types in their place.
//!
//! The conversions are total: whatever a GCS sends is read, unknown enum values as unsaid.

mod autoscaling_state;
mod cluster_state;

/// What `build.rs` makes of `proto/`.
#[allow(unreachable_pub, clippy::pedantic, clippy::style, reason = "generated")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/gcs_client/ray.rs"));
}

pub(super) use generated::ray;

#[cfg(test)]
mod tests;
