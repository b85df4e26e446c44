//! Audit annotations: what the API server's audit log records of a decision. The API server puts
//! the webhook's name before each key.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use rayfit_core::finding::Finding;
use rayfit_core::judge::Verdict;
use rayfit_core::rule_id::RuleId;

/// API servers cut the values of their own policies' audit annotations after 10 kB; longer ones
/// would only bloat the log.
const VALUE_BYTES: usize = 10_000;

/// Keys and values.
pub type Annotations = BTreeMap<&'static str, String>;

/// The rules that had findings, by mode, and the policies that decided the modes.
pub fn of_verdict(verdict: &Verdict) -> Annotations {
    let rules = [
        ("denied", &verdict.denied),
        ("warned", &verdict.warned),
        ("audited", &verdict.audited),
    ]
    .map(|(key, findings)| (key, bounded(rules_of(findings).iter(), ",")));
    let decided: BTreeSet<String> = verdict
        .findings()
        .filter_map(|(_, finding)| Some((finding.rule, finding.decided.as_ref()?)))
        .map(|(rule, decided)| match &decided.exemption {
            None => format!("{rule}={}", decided.policy),
            Some(_) => format!("{rule}={} (exempt)", decided.policy),
        })
        .collect();
    rules
        .into_iter()
        .chain([("decided-by", bounded(decided.iter(), ","))])
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// The rules of some findings, each once, by number.
pub fn rules_of(findings: &[Finding]) -> BTreeSet<RuleId> {
    findings.iter().map(|finding| finding.rule).collect()
}

/// The items joined in one text; those that do not fit are counted.
pub fn bounded(items: impl ExactSizeIterator<Item: std::fmt::Display>, separator: &str) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for item in items {
        let item = item.to_string();
        let separator = if text.is_empty() { "" } else { separator };
        if left_out > 0 || text.len() + separator.len() + item.len() > VALUE_BYTES {
            left_out += 1;
        } else {
            text.push_str(separator);
            text.push_str(&item);
        }
    }
    if left_out > 0 {
        let _ = write!(text, "{separator}+{left_out} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_counted() {
        let text = bounded(vec!["x".repeat(999); 12].iter(), "; ");
        assert!(text.len() <= VALUE_BYTES + 20);
        assert!(text.ends_with("; +3 more"), "{}", &text[text.len() - 20..]);
        assert_eq!(bounded(["a", "b"].iter(), ","), "a,b");
    }
}
