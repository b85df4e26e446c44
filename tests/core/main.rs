//! What the pure core promises: rules, defaults and plans on fixtures, on recorded cases and on random
//! ones, and what is generated from the code.

mod architecture;
mod architecture_support;
mod defaults;
mod detail;
mod docs;
mod judge;
mod malformed;
mod manifests;
mod plan_properties;
mod protos;
mod ray_parity;
mod rules;
mod scenarios;
mod schemas;
