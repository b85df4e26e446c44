//! Faults and attacks on what moves clusters: watches, Leases, requests to the API server.

mod audit;
mod clusters;
mod divisions;
mod heads;
mod pace;
mod policies;
mod watches;
