//! The mode of each rule for one object, and which policy decided it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Exemption, Mode};
use crate::rule_id::RuleId;
use crate::text::shown_text;

/// The mode of each rule for one object, and which policy decided it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modes {
    rules: BTreeMap<RuleId, Setting>,
    ceiling: Option<Setting>,
    /// The exemptions in force, each with its policy and the position of that in the order.
    pub(super) exemptions: Vec<(usize, Arc<str>, Arc<Exemption>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    mode: Mode,
    /// The policy and its position in the order; `None` for a flag, which comes after all policies.
    by: Option<(usize, Arc<str>)>,
}

/// The policy or flag that decided the mode of a finding, where it was not the rule itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedBy {
    /// The RayPolicy.
    pub policy: Arc<str>,
    /// The exemption because of which it is only recorded.
    pub exemption: Option<Arc<Exemption>>,
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = &self.policy;
        let Some(exemption) = &self.exemption else {
            return write!(f, "by policy {policy}");
        };
        let Exemption {
            reason,
            ticket,
            expires,
            ..
        } = exemption.as_ref();
        let reason = shown_text(reason);
        write!(f, "exempt until {expires} by policy {policy}: {reason}")?;
        ticket
            .as_deref()
            .map_or(Ok(()), |ticket| write!(f, " ({})", shown_text(ticket)))
    }
}

/// The mode of a finding after policies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// Its mode.
    pub mode: Mode,
    /// The mode that it would have if policies had no `mode` and no exemptions.
    pub unbounded: Mode,
    /// The policy or flag that decided.
    pub decided: Option<DecidedBy>,
}

impl Modes {
    /// Sets the mode of a rule where no policy decides.
    pub fn set(&mut self, rule: RuleId, mode: Mode) {
        self.rules.insert(rule, Setting { mode, by: None });
    }

    /// The mode that was set for a rule, if one was.
    pub fn get(&self, rule: RuleId) -> Option<Mode> {
        self.rules.get(&rule).map(|setting| setting.mode)
    }

    /// Turns the rule off, so that its findings are not needed.
    pub fn is_off(&self, rule: RuleId) -> bool {
        self.rules
            .get(&rule)
            .or(self.ceiling.as_ref())
            .is_some_and(|setting| setting.mode == Mode::Off)
    }

    /// These modes, but with every rule that is off set to audit, so that its findings are
    /// seen.
    #[must_use]
    pub fn awake(&self) -> Self {
        let mut awake = self.clone();
        for setting in awake.rules.values_mut().chain(&mut awake.ceiling) {
            setting.mode = setting.mode.max(Mode::Audit);
        }
        awake
    }

    /// The mode of a finding of `rule` whose own mode is `own`.
    pub fn rule_on(&self, rule: RuleId, own: Mode) -> Ruling {
        let set = self.rules.get(&rule);
        let unbounded = set.map_or(own, |setting| setting.mode);
        let by = set.or(self.ceiling.as_ref());
        // The entry of a rule is exact, while `mode` is a ceiling, which makes no rule stricter than it is by itself.
        let bounded = match (set, &self.ceiling) {
            (None, Some(ceiling)) => own.min(ceiling.mode),
            _ => unbounded,
        };
        let by = by.and_then(|setting| setting.by.as_ref());
        let rank = by.map_or(usize::MAX, |(rank, _)| *rank);
        let exempt = self
            .exemptions
            .iter()
            // A policy that takes precedence also takes precedence over exemptions of those behind
            // it.
            .find(|(from, _, exemption)| {
                let rules = exemption.rules.as_ref();
                *from <= rank && rules.is_none_or(|rules| rules.contains(&rule))
            });
        let exempt = exempt.filter(|_| bounded > Mode::Audit);
        let policy = exempt.map(|(_, policy, _)| policy);
        let policy = policy.or(by.map(|(_, policy)| policy));
        Ruling {
            mode: exempt.map_or(bounded, |_| Mode::Audit),
            unbounded,
            decided: policy.map(|policy| DecidedBy {
                policy: policy.clone(),
                exemption: exempt.map(|(.., exemption)| exemption.clone()),
            }),
        }
    }

    /// Adds the modes of single rules and of all rules that the policy at position `rank` sets, by its limits too.
    /// Policies before it take precedence, and what was added of it before.
    pub(crate) fn take(
        &mut self,
        rank: usize,
        policy: &Arc<str>,
        rules: impl IntoIterator<Item = (RuleId, Mode)>,
        ceiling: Option<Mode>,
    ) {
        let setting = |mode| Setting {
            mode,
            by: Some((rank, policy.clone())),
        };
        // A policy before this one that sets the mode of all rules leaves nothing to decide.
        if self.ceiling.is_none() {
            for (rule, mode) in rules {
                self.rules.entry(rule).or_insert_with(|| setting(mode));
            }
            self.ceiling = ceiling.map(setting);
        }
    }

    /// Adds the modes that flags set, where no policy decided.
    pub(crate) fn complete(&mut self, flags: &Self) {
        if self.ceiling.is_none() {
            for (rule, setting) in &flags.rules {
                self.rules.entry(*rule).or_insert_with(|| setting.clone());
            }
        }
    }
}
