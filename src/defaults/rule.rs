//! What a default is.

use super::applied::DefaultId;
use super::draft::Draft;

/// A default: what it is, for people, and how it is applied.
#[derive(Debug)]
pub struct DefaultRule {
    /// The stable number.
    pub id: DefaultId,
    /// The stable short name, in kebab case.
    pub name: &'static str,
    /// One line for tables.
    pub summary: &'static str,
    /// What is filled in, and when.
    pub what: &'static str,
    /// What it is good for.
    pub why: &'static str,
    /// A manifest (YAML) that gets the default, reduced to the relevant fields.
    pub before: &'static str,
    /// The same manifest as it is stored.
    pub after: &'static str,
    /// The first release that has it.
    pub since: &'static str,
    /// Drafts what it fills in.
    pub apply: fn(&mut Draft<'_>),
}
