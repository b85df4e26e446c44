//! Modules that several commands share: flags with what they stand for, files and progress.
//!
//! In: what clap has read. Out: values of the core, or an error that says what to do. Invariant: a flag means the
//! same with every command that has it.

pub mod controller;
pub mod documents;
pub mod format;
pub mod hashing;
pub mod outcome;
pub mod own_certificates;
pub mod policies;
pub mod progress;
pub mod replaced_file;
pub mod settings;
pub mod source;
pub mod workload;
