//! Findings as people read them.

pub mod message;
