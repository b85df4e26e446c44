//! The values that defaults fill in.

use std::fmt;

use json_patch::Patch;
use serde_json::Value;

use crate::path::FieldPath;

/// The stable number of a default: never reused, never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefaultId(pub u8);

impl fmt::Display for DefaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DF{:02}", self.0)
    }
}

/// The origin of a value that a default wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It is the default's own value.
    Fresh,
    /// The stored object had it and the update lost it (server-side apply drops defaulted fields
    /// when the same manager applies again).
    CarriedOver,
}

/// One value that was filled in.
#[derive(Debug, Clone, PartialEq)]
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

impl fmt::Display for AppliedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} = {}", self.id, self.path, self.value)?;
        match self.origin {
            Origin::Fresh => Ok(()),
            Origin::CarriedOver => f.write_str(" (as it was before this update)"),
        }
    }
}

/// The values that admission fills in for one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DefaultPatch {
    /// The patch; empty if there is nothing to fill in.
    pub operations: Patch,
    /// The values of the patch, for people.
    pub applied: Vec<AppliedValue>,
}
