//! The description of a rule, and the findings of rules.

use serde_json::Value;

use super::cel::{Cel, Check};
use super::subject::Subject;
use crate::finding::Finding;
use crate::path::FieldPath;
use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::rule_id::RuleId;

/// The mode of a rule where no policy says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnMode {
    /// One mode for every finding.
    Always(Mode),
    /// It depends; the text says on what. Each finding sets its mode itself.
    ByCase(&'static str),
}

/// A rule: what it is, for people, and how it is checked.
#[derive(Debug)]
pub struct Rule {
    /// The stable number.
    pub id: RuleId,
    /// The stable short name, in kebab case.
    pub name: &'static str,
    /// The mode where no policy says otherwise.
    pub mode: OwnMode,
    /// One line for tables.
    pub summary: &'static str,
    /// The text about what it checks and reports; manifests `Reported` and `Corrected`, reduced to the
    /// relevant fields; and how Ray, KubeRay or Kubernetes behaves `Without this rule`, with the source of
    /// the fact.
    pub page: &'static str,
    /// The consequence: the sentence that findings carry as their reason.
    pub why: &'static str,
    /// The part of it that the API server can check by itself.
    pub cel: Cel,
    /// Reports its findings.
    pub check: fn(&Subject<'_>, &mut Vec<Finding>),
}

impl Rule {
    /// The mode of findings that set none: Enforce where it depends on the case.
    pub const fn usual_mode(&self) -> Mode {
        match self.mode {
            OwnMode::Always(mode) => mode,
            OwnMode::ByCase(_) => Mode::Enforce,
        }
    }

    /// The expressions in CEL by the mode of their findings where no setting changes it, the strictest
    /// mode first.
    pub fn checks(&self) -> impl Iterator<Item = (Mode, &'static [Check])> {
        let own = (self.usual_mode(), self.cel.checks());
        let all = [own, (Mode::Warn, self.cel.warnings())].into_iter();
        all.filter(|(_, checks)| !checks.is_empty())
    }

    /// A finding of this rule: the problem at `path` and its fix. Mode and reason are the rule's
    /// own until changed.
    pub fn finding(
        &self,
        path: FieldPath,
        problem: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding {
            rule: self.id,
            mode: self.usual_mode(),
            path,
            value: None,
            amount: None,
            problem: problem.into(),
            why: self.why.to_owned(),
            fix: fix.into(),
            mend: None,
            decided: None,
        }
    }
}

impl Finding {
    /// Adds the offending value, as it is to be shown and compared.
    #[must_use]
    pub fn valued(mut self, value: impl Into<String>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Adds the amount of what is too much, by which the finding is compared with the stored object.
    #[must_use]
    pub fn amounting(mut self, of: &'static str, amount: Quantity) -> Self {
        self.amount = Some((of, amount));
        self
    }

    /// Adds the value by which the place is mended.
    #[must_use]
    pub fn mended_by(mut self, value: impl Into<Value>) -> Self {
        self.mend = Some(value.into());
        self
    }

    /// Says that it is mended where the place is taken away.
    #[must_use]
    pub fn mended_by_removal(self) -> Self {
        self.mended_by(Value::Null)
    }

    /// Sets another mode than the rule's own.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets another reason than the rule's own.
    #[must_use]
    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }
}
