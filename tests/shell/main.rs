//! What the shell promises: webhooks, certificates, the client of the GCS with a played Ray and with
//! real Ray, scaling with played clusters, and the command line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod admission;
mod certs;
mod check_fix;
mod ci;
mod cli;
mod command;
mod connections;
mod dev_certs;
mod gcs;
mod gcs_real;
mod gcs_tls;
mod hostile;
mod live_cli;
mod new_pods;
mod plan_cli;
mod recommend_cli;
mod record_trace;
mod serve;
mod sidecar;
mod simulate_cli;
mod terminal;
mod tls;
mod trace_cli;

mod gcs_contract;
mod monitoring_support;
mod real_ray;

#[path = "../client_support/mod.rs"]
mod client_support;
#[path = "../play_gcs/mod.rs"]
mod play_gcs;
#[path = "../played_api/mod.rs"]
mod played_api;
#[path = "../process_support/mod.rs"]
mod process_support;
#[path = "../review_support/mod.rs"]
mod review_support;
#[path = "../tls_support/mod.rs"]
mod tls_support;
