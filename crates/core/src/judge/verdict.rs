//! Combining findings into a verdict about the request.

use crate::finding::Finding;
use crate::policy::{Mode, Settings};

/// Findings by their consequence; each list keeps the order in which they were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The findings that deny the request; empty if it is allowed.
    pub denied: Vec<Finding>,
    /// The findings of which the user is warned.
    pub warned: Vec<Finding>,
    /// The findings that are only recorded.
    pub audited: Vec<Finding>,
}

impl Verdict {
    /// Has no finding that denies the request.
    pub fn is_allowed(&self) -> bool {
        self.denied.is_empty()
    }

    /// Adds the findings of another verdict about the same object.
    pub fn add(&mut self, other: Self) {
        self.denied.extend(other.denied);
        self.warned.extend(other.warned);
        self.audited.extend(other.audited);
    }

    /// Every finding with its mode, the strictest first.
    pub fn findings(&self) -> impl Iterator<Item = (Mode, &Finding)> {
        let mode = |mode| move |finding| (mode, finding);
        self.denied
            .iter()
            .map(mode(Mode::Enforce))
            .chain(self.warned.iter().map(mode(Mode::Warn)))
            .chain(self.audited.iter().map(mode(Mode::Audit)))
    }
}

/// Divides `findings` by their modes under `settings`. A finding for which `inherited` returns true
/// was in the stored object too, so it leads to a warning at most. `ceiling` is the strictest mode
/// of all findings (objects that KubeRay's operator creates from a checked parent are audited,
/// never denied).
pub fn fold(
    findings: Vec<Finding>,
    settings: &Settings,
    ceiling: Mode,
    inherited: impl Fn(&Finding) -> bool,
) -> Verdict {
    let mut verdict = Verdict::default();
    for mut finding in findings {
        let ruling = settings.modes.rule_on(finding.rule, finding.mode);
        finding.decided = ruling.decided;
        let mut mode = ruling.mode;
        if mode == Mode::Enforce && inherited(&finding) {
            mode = Mode::Warn;
        }
        match mode.min(ceiling) {
            Mode::Off => {}
            Mode::Audit => verdict.audited.push(finding),
            Mode::Warn => verdict.warned.push(finding),
            Mode::Enforce => verdict.denied.push(finding),
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::judge::verdict::*;
    use crate::path::FieldPath;
    use crate::rule_id::RuleId;

    const MODES: [Mode; 4] = [Mode::Off, Mode::Audit, Mode::Warn, Mode::Enforce];

    fn finding(mode: Mode) -> Finding {
        Finding {
            rule: RuleId(101),
            mode,
            path: FieldPath::default(),
            value: None,
            problem: String::new(),
            why: String::new(),
            fix: String::new(),
            amount: None,
            mend: None,
            decided: None,
        }
    }

    fn outcome(verdict: &Verdict) -> Mode {
        verdict
            .findings()
            .next()
            .map_or(Mode::Off, |(mode, _)| mode)
    }

    #[test]
    fn a_setting_overrides_the_rules_own_mode() {
        let mut settings = Settings::default();
        settings.modes.set(RuleId(101), Mode::Audit);
        let verdict = fold(
            vec![finding(Mode::Enforce)],
            &settings,
            Mode::Enforce,
            |_| false,
        );
        assert_eq!(outcome(&verdict), Mode::Audit);
    }

    proptest! {
        #[test]
        fn inherited_never_denies_and_the_ceiling_holds(
            own in prop::sample::select(MODES.to_vec()),
            set in prop::option::of(prop::sample::select(MODES.to_vec())),
            ceiling in prop::sample::select(MODES.to_vec()),
            inherited: bool,
        ) {
            let mut settings = Settings::default();
            if let Some(mode) = set {
                settings.modes.set(RuleId(101), mode);
            }
            let verdict = fold(vec![finding(own)], &settings, ceiling, |_| inherited);
            prop_assert!(outcome(&verdict) <= ceiling);
            prop_assert!(outcome(&verdict) <= set.unwrap_or(own));
            prop_assert!(!inherited || verdict.is_allowed());
        }
    }
}
