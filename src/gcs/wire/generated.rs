//! What `build.rs` makes of `proto/`.
#![allow(unreachable_pub, clippy::pedantic, clippy::style, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/gcs_client/ray.rs"));
