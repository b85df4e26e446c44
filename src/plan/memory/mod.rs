//! What one decision stores for the next: launches and their times, groups whose pods failed to
//! appear ([`availability`]), and groups whose pods failed to grow ([`growth_backoff`]).

pub(crate) mod at_work;
pub(crate) mod availability;
pub(crate) mod growth_backoff;
pub(crate) mod remember;
