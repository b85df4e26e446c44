//! What a cluster's admins decided: how far each rule is turned on, and what defaults write.

pub mod mode;
pub mod settings;
pub mod verdict;

pub use mode::Mode;
pub use settings::{DefaultValues, Settings};
pub use verdict::{Verdict, fold};
