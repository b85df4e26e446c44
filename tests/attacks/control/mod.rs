//! Faults and attacks on what moves clusters: watches, Leases, requests to the API server.

mod audit;
mod clusters;
mod heads;
mod leader;
mod pace;
mod policies;
mod watches;
