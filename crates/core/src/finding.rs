//! A rule's report, as data. Rendering happens in [`crate::report`] and in the admission response,
//! never here.

use serde_json::Value;

use crate::path::FieldPath;
use crate::policy::{DecidedBy, Mode};
use crate::quantity::Quantity;
use crate::rule_id::RuleId;

/// One thing that is wrong with one place of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that found it.
    pub rule: RuleId,
    /// The mode where no policy sets another one.
    pub mode: Mode,
    /// The place of the fault.
    pub path: FieldPath,
    /// The offending value, if there is one. It is part of the finding's identity.
    pub value: Option<String>,
    /// The thing of which there is too much, and its amount: an update that makes it less adds no fault.
    pub amount: Option<(&'static str, Quantity)>,
    /// The fault, a clause that follows the path: `"2.5" is not an integer`.
    pub problem: String,
    /// The consequence, a full sentence.
    pub why: String,
    /// The remedy, an imperative sentence.
    pub fix: String,
    /// The value that the place is to have, or null if it is to be taken away, where that alone mends it: the first
    /// of the ways that `fix` names.
    pub mend: Option<Value>,
    /// The policy or flag that decided its mode, after policies were applied and if it was not the
    /// rule itself.
    pub decided: Option<DecidedBy>,
}

impl Finding {
    /// The identity of the finding: the rule, the place (with groups by name) and the value. It
    /// decides whether an update adds a finding or the stored object already has it.
    pub fn fault(&self) -> FaultIdentity<'_> {
        (self.rule, self.path.to_string(), self.value.as_deref())
    }
}

/// The identity of a fault, by which two findings are the same: rule, place, value.
pub type FaultIdentity<'a> = (RuleId, String, Option<&'a str>);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A finding of a rule that says how it is mended.
    pub(crate) fn finding(path: FieldPath, mend: Value) -> Finding {
        Finding {
            rule: RuleId(105),
            mode: Mode::Enforce,
            path,
            value: None,
            amount: None,
            problem: String::new(),
            why: String::new(),
            fix: String::new(),
            mend: Some(mend),
            decided: None,
        }
    }
}
