//! Compiles `proto/`, without protoc.
//!
//! The library has the messages, and calls methods by their paths (`src/gcs/client.rs`). The server, with messages of
//! its own, is generated for tests only (`tests/play_gcs/`), so that none is in what is released.

use std::error::Error;
use std::path::{Path, PathBuf};

const PROTOS: &[&str] = &[
    "autoscaler.proto",
    "common.proto",
    "gcs.proto",
    "gcs_service.proto",
    "logging.proto",
    "pubsub.proto",
];

/// Messages of Ray that are types of a snapshot, and the names of these.
const SHARED: &[(&str, &str)] = &[
    ("autoscaler.AffinityConstraint", "Label"),
    ("autoscaler.AntiAffinityConstraint", "Label"),
    ("autoscaler.BundleSelector", "BundleSelector"),
    (
        "autoscaler.ClusterResourceConstraint",
        "ClusterResourceConstraint",
    ),
    ("autoscaler.GangResourceRequest", "GangResourceRequest"),
    ("autoscaler.NodeStatus", "NodeStatus"),
    ("autoscaler.PlacementConstraint", "PlacementConstraint"),
    ("autoscaler.ResourceRequest", "ResourceRequest"),
    (
        "autoscaler.ResourceRequestByCount",
        "ResourceRequestByCount",
    ),
    ("LabelSelector", "LabelSelector"),
    ("LabelSelectorConstraint", "LabelConstraint"),
    ("LabelSelectorOperator", "LabelOperator"),
];

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo tells build scripts so where to write"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    generate(&out.join("gcs_client"), true)?;
    generate(&out.join("gcs_server"), false)?;
    Ok(())
}

fn generate(folder: &Path, is_client: bool) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut config = tonic_prost_build::configure();
    // The client's requests are the snapshot's own types.
    for (message, name) in SHARED.iter().filter(|_| is_client) {
        let path = format!("::rayfit_core::snapshot::gcs::{name}");
        config = config.extern_path(format!(".ray.rpc.{message}"), path);
    }
    config
        .build_client(false)
        .build_server(!is_client)
        .build_transport(false)
        .btree_map(".")
        .include_file("ray.rs")
        .out_dir(folder)
        .compile_fds(protox::compile(PROTOS, ["proto"])?)?;
    Ok(())
}
