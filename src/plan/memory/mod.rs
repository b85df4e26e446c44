//! What one decision leaves for the next: launches and their times, groups whose pods did not come
//! ([`availability`]), growth that did not happen ([`growth_backoff`]).

pub(crate) mod availability;
pub(crate) mod growth_backoff;
pub(crate) mod remember;
