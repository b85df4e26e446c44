//! Faults and attacks on what moves clusters: watches, Leases, requests to the API server.

mod api;
mod audit;
mod clusters;
mod divisions;
mod heads;
mod pace;
mod policies;
mod watches;
