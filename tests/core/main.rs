//! What the pure core promises: rules, defaults and plans on fixtures, on recorded cases and on random
//! ones, and what is generated from the code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod architecture;
mod architecture_support;
#[path = "../chart/mod.rs"]
mod chart;
mod clock;
mod defaults;
mod detail;
mod docs;
mod faults;
mod fix;
mod fuzz;
mod judge;
mod kuberay;
mod lease;
mod malformed;
mod manifests;
mod mutants;
mod outcome;
#[path = "../outcome/mod.rs"]
mod outcome_support;
mod parity;
mod planner;
mod protos;
mod recommend;
mod reconcile;
mod reconcile_support;
mod rules;
mod schemas;
mod settings;
mod simulate;
mod simulate_agrees;
mod simulate_consolidation;
mod simulate_faults;
mod simulate_neighbours;
mod simulate_placement;
mod simulate_shared;
mod simulation_page;
mod targets;
mod traces;
