//! The code that `build.rs` generates from `proto/`.
#![allow(unreachable_pub, clippy::pedantic, clippy::style, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/gcs_client/ray.rs"));
