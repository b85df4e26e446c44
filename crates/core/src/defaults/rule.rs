//! The description of a default.

use super::applied::DefaultId;
use super::draft::DefaultsDraft;

/// A default: what it is, for people, and how it is applied.
#[derive(Debug)]
pub struct DefaultRule {
    /// The stable number.
    pub id: DefaultId,
    /// The stable short name, in kebab case.
    pub name: &'static str,
    /// One line for tables.
    pub summary: &'static str,
    /// The values filled in, and the condition, with manifests `Before` and `As stored`, reduced to the
    /// relevant fields.
    pub page: &'static str,
    /// The reason for the default.
    pub why: &'static str,
    /// Drafts what it fills in.
    pub apply: fn(&mut DefaultsDraft<'_>),
}
