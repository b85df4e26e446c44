//! Findings and the catalogue in formats for people and programs. Everything here returns text and
//! prints nothing. Styles are ANSI codes, which the caller removes where the output is not a
//! terminal.
//!
//! In: findings, verdicts or the catalogue of rules. Out: text. Invariant: text from objects cannot pass for Rayfit's own.

pub mod catalogue;
pub mod diff;
mod findings;
pub mod github;
pub mod html;
mod inside;
pub mod json;
pub mod message;
pub mod page;
pub mod sarif;
pub mod table;
pub mod text;
mod wrap;

pub(crate) use findings::counted;
pub use findings::{FindingsReport, ReportEntry, UnreadInput, Unreadable, severity};

#[cfg(test)]
mod tests;
