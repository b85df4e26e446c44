//! RF222: labels of a group that are not valid labels.

use crate::ray::label;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(222),
    name: "group-labels",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A group's `labels` are not in Kubernetes' label syntax",
    page: include_str!("group_labels.md"),
    why: "KubeRay considers the spec invalid and stops reconciling the whole cluster; Ray's \
          autoscaler fails on it too.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"[g.spec.?labels.orValue({})].map(labels, labels.filter(k,
  !k.matches(r'^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') || k.indexOf('/') > 253
  || !labels[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))
  .map(k, '.labels.' + k + ' "' + labels[k] + '" is not in the syntax of labels').join('\n'))"#,
        fix: "Use at most 63 letters, digits, dashes, dots and underscores that begin and end with a letter or digit.",
    }]),
    check,
};

const SYNTAX: &str = "Use at most 63 letters, digits, dashes, dots and underscores that begin and end with a \
                      letter or digit";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        for (key, value) in group.spec.below("labels").iter() {
            // KubeRay changes no pod until they are mended (from 1.5 on, `validateRayGroupLabels`), and Ray fails on
            // the same labels (`validate_node_label_syntax`).
            let (problem, fix) = match value {
                _ if !label::is_key(key) => (
                    format!("{} is not a label key", shown_text(key)),
                    format!(
                        "{SYNTAX}; a DNS name and a slash may precede them, as in example.com/team."
                    ),
                ),
                Json::String(text) if label::is_value(text) => continue,
                Json::String(text) => (
                    format!("{} is not a label value", shown_text(text)),
                    format!("{SYNTAX}."),
                ),
                // The API server drops nulls.
                Json::Null => continue,
                other => (
                    format!("{} is not a string", shown(other)),
                    format!("Write it in quotes: {}.", shown_text(&other.to_string())),
                ),
            };
            let path = group.path().key("labels").key(key.to_owned());
            let finding = RULE.finding(path, problem, fix).valued(shown(value));
            findings.push(if value.as_str().is_some() {
                finding
            } else {
                finding.because("The API server refuses the object.")
            });
        }
    }
}
