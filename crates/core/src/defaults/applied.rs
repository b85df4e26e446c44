//! The values that defaults fill in.

use json_patch::Patch;
use serde_json::Value;

use crate::path::FieldPath;

/// The stable number of a default: never reused, never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
#[display("DF{_0:02}")]
pub struct DefaultId(pub u8);

/// The origin of a value that a default wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum Origin {
    /// It is the default's own value.
    #[display("")]
    Fresh,
    /// The stored object had it and the update lost it (server-side apply drops defaulted fields
    /// when the same manager applies again).
    #[display(" (as it was before this update)")]
    CarriedOver,
}

/// One value that was filled in.
#[derive(Debug, Clone, PartialEq, derive_more::Display)]
#[display("{id} {path} = {value}{origin}")]
pub struct AppliedValue {
    /// The default that did it.
    pub id: DefaultId,
    /// The JSON path of the value.
    pub path: FieldPath,
    /// The value.
    pub value: Value,
    /// The default, or carried over from the stored object.
    pub origin: Origin,
}

/// The values that admission fills in for one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DefaultPatch {
    /// The patch; empty if there is nothing to fill in.
    pub operations: Patch,
    /// The values of the patch, for people.
    pub applied: Vec<AppliedValue>,
}
