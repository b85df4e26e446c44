//! What one tenant, object or fault could do to the others, played out: each test is an attack or an
//! accident, and asserts that the neighbour is served as if it was alone. `docs/security.md` names
//! the test of each threat.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    clippy::cast_precision_loss,
    clippy::match_same_arms,
    unreachable_pub
)]

mod callers;
mod check;
mod control;
mod events;
mod gcs;
mod greedy;
mod memory;
mod new_pods;
mod node_autoscalers;
mod ownership;
mod planner;
mod planner_random;
mod record;
mod rights;
mod rule_limits;
mod rules;
mod webhook;

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
