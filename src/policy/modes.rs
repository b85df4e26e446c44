//! How far each rule is turned on for one object, and who decided that.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Exemption, Mode};
use crate::rule_id::RuleId;
use crate::text::shown_text;

/// How far each rule is turned on for one object, and who decided that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modes {
    rules: BTreeMap<RuleId, Setting>,
    ceiling: Option<Setting>,
    exemptions: Vec<(usize, Arc<str>, Arc<Exemption>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    mode: Mode,
    /// The policy and its place in the order; `None` if it was a flag, which comes after all.
    by: Option<(usize, Arc<str>)>,
}

/// Who decided how far a finding goes, where it was not the rule itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedBy {
    /// The RayPolicy.
    pub policy: Arc<str>,
    /// The exemption by which it is only recorded.
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

/// What a finding came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// How far it goes.
    pub mode: Mode,
    /// How far it would go if policies bounded nothing by their `mode` and exempted nothing.
    pub unbounded: Mode,
    /// Who decided.
    pub decided: Option<DecidedBy>,
}

impl Modes {
    /// Sets the mode of a rule, for where no policy decides.
    pub fn set(&mut self, rule: RuleId, mode: Mode) {
        self.rules.insert(rule, Setting { mode, by: None });
    }

    /// The mode that was set for a rule, if one was.
    pub fn get(&self, rule: RuleId) -> Option<Mode> {
        self.rules.get(&rule).map(|setting| setting.mode)
    }

    /// Nothing that the rule finds is of interest.
    pub fn is_off(&self, rule: RuleId) -> bool {
        self.rules
            .get(&rule)
            .or(self.ceiling.as_ref())
            .is_some_and(|setting| setting.mode == Mode::Off)
    }

    /// The same with every rule turned on at least so far that its findings are known.
    #[must_use]
    pub fn awake(&self) -> Self {
        let wake = |setting: &Setting| Setting {
            mode: setting.mode.max(Mode::Audit),
            by: setting.by.clone(),
        };
        Self {
            rules: self
                .rules
                .iter()
                .map(|(rule, setting)| (*rule, wake(setting)))
                .collect(),
            ceiling: self.ceiling.as_ref().map(wake),
            exemptions: self.exemptions.clone(),
        }
    }

    /// What a finding of `rule` comes to that goes as far as `own` by itself.
    pub fn rule_on(&self, rule: RuleId, own: Mode) -> Ruling {
        let set = self.rules.get(&rule);
        let unbounded = set.map_or(own, |setting| setting.mode);
        let by = set.or(self.ceiling.as_ref());
        let bounded = match (set, &self.ceiling) {
            (None, Some(ceiling)) => own.min(ceiling.mode),
            _ => unbounded,
        };
        let by = by.and_then(|setting| setting.by.as_ref());
        let rank = by.map_or(usize::MAX, |(rank, _)| *rank);
        let exempt = self
            .exemptions
            .iter()
            .find(|(from, _, exemption)| *from <= rank && exemption.is_about(rule));
        if let Some((_, policy, exemption)) = exempt.filter(|_| bounded > Mode::Audit) {
            return Ruling {
                mode: Mode::Audit,
                unbounded,
                decided: Some(DecidedBy {
                    policy: policy.clone(),
                    exemption: Some(exemption.clone()),
                }),
            };
        }
        Ruling {
            mode: bounded,
            unbounded,
            decided: by.map(|(_, policy)| DecidedBy {
                policy: policy.clone(),
                exemption: None,
            }),
        }
    }

    /// Takes what the policy at place `rank` of the order says of single rules and of all of them,
    /// after those before it.
    pub(crate) fn take(
        &mut self,
        rank: usize,
        policy: &Arc<str>,
        rules: &BTreeMap<RuleId, Mode>,
        ceiling: Option<Mode>,
    ) {
        let by = || Some((rank, policy.clone()));
        if self.ceiling.is_none() {
            for (rule, mode) in rules {
                self.rules.entry(*rule).or_insert(Setting {
                    mode: *mode,
                    by: by(),
                });
            }
            self.ceiling = ceiling.map(|mode| Setting { mode, by: by() });
        }
    }

    /// A limit of the policy at place `rank` is enforced, unless a mode was given by then.
    pub(crate) fn enforce_limit(&mut self, rank: usize, policy: &Arc<str>, rule: RuleId) {
        if self.ceiling.is_none() {
            self.rules.entry(rule).or_insert(Setting {
                mode: Mode::Enforce,
                by: Some((rank, policy.clone())),
            });
        }
    }

    /// Adds an exemption by the policy at place `rank`.
    pub(crate) fn exempt(&mut self, rank: usize, policy: &Arc<str>, exemption: &Arc<Exemption>) {
        self.exemptions
            .push((rank, policy.clone(), exemption.clone()));
    }

    /// Takes what was set by flags, for where no policy decided.
    pub(crate) fn complete(&mut self, flags: &Self) {
        if self.ceiling.is_none() {
            for (rule, setting) in &flags.rules {
                self.rules.entry(*rule).or_insert_with(|| setting.clone());
            }
        }
    }
}
