//! Findings and the catalogue as people and programs read them. Everything here returns text and
//! prints nothing; styles are ANSI codes that the terminal's side takes out where they are unwanted.

pub mod catalogue;
pub mod diff;
mod findings;
pub mod github;
mod inside;
pub mod json;
pub mod message;
pub mod page;
pub mod sarif;
pub mod text;
mod wrap;

pub(crate) use findings::counted;
pub use findings::{Entry, FindingsReport, Level, ReportLine, Tally, Unread, Unreadable};

#[cfg(test)]
mod tests;
