//! The names with which every rule is written.

pub use super::cel::{Cel, Check, Each, NO_PODS, PLAIN};
pub use super::rule::{OwnMode, Rule};
pub use super::subject::Subject;
pub use crate::finding::Finding;
pub use crate::policy::Mode;
pub use crate::rule_id::RuleId;
pub use crate::rule_page::RulePage;
