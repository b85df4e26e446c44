//! What the planner decides: stories (`tests/fixtures/plan`), what holds of every plan, and what comes of
//! several decisions one after the other.

mod gangs;
mod idle_end;
mod jumps;
mod memory_in_use;
mod played;
mod properties;
mod sent;
mod stories;
