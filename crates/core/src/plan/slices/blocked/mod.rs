//! Blocked groups: groups that cannot be served now, by [evidence] in the objects, are used after others,
//! and for a while after that was seen last ([memory], with the pods that ended before Ray ran in them,
//! [`early_ends`]).

pub(crate) mod early_ends;
pub(crate) mod evidence;
pub(crate) mod memory;
pub(crate) mod outlook;
pub(crate) mod reason;
