//! What Rayfit's strategy brings beside Ray's: sets of workloads, each simulated with both, and with a decider without
//! delay, and the page that tells what came of it, docs/outcome.md.
//!
//! `benches/outcome.rs` runs it (`make outcome`); `tests/core/outcome.rs` runs a part of it and compares.
//!
//! - [`made`]: workloads that are made; [`recorded`]: those that others have recorded
//! - [`sets`]: which workload on which RayCluster
//! - [`figures`]: what simulations led to, as docs/outcome/results.json keeps it
//! - [`measure`]: from a set to its figures
//! - [`ablation`]: what each slice of the strategy is worth, for docs/planner.md
//! - [`compare`]: the two strategies beside each other: ratios, and who is better
//! - [`page`], [`pictures`]: how that is told
//! - [`elastic`]: some of it over time, for docs/elastic.md

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "two programs include it and use a part of it"
)]

pub mod ablation;
pub mod compare;
pub mod elastic;
pub mod figures;
pub mod made;
pub mod measure;
pub mod page;
pub mod pictures;
pub mod recorded;
pub mod sets;
pub mod wfformat;
