//! RF207: node labels in the start parameters.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(207),
    name: "labels-in-start-params",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`labels` in `rayStartParams` instead of the group's `labels`",
    page: include_str!("labels_in_start_params.md"),
    why: "KubeRay stops reconciling the whole cluster because of it, and Ray's autoscaler does not \
          read labels from there.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"'labels' in g.params ? ['.rayStartParams.labels "' + g.params['labels'] + '" stands where KubeRay allows no labels'] : []"#,
        fix: "Remove it and write the labels as a map in the group itself.",
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        let Some(value) = group.start_param("labels").filter(|v| !v.is_null()) else {
            continue;
        };
        // Ray ignores labels there with a warning in its log, so tasks with a label selector start no workers
        // (`_get_labels_from_group_spec`).
        let pair = |text: &str| {
            let (key, value) = text.split_once('=')?;
            Some(format!("{}: {:?}", key.trim(), value.trim()))
        };
        // The group's `labels` that say the same, if the text can be read.
        let text = value.as_str();
        let text = text.filter(|text| !text.is_empty() && text.len() <= 200);
        let pairs: Option<Vec<String>> = text.and_then(|text| text.split(',').map(pair).collect());
        let fix = match pairs {
            Some(pairs) => format!(
                "Remove it and write in the group itself: labels: {{{}}}.",
                pairs.join(", ")
            ),
            None => "Remove it and write the labels as a map in the group itself, like labels: \
                     {tier: \"spot\"}."
                .to_owned(),
        };
        let problem = format!("{} stands where KubeRay allows no labels", shown(value));
        let finding = RULE.finding(group.start_param_path("labels"), problem, fix);
        findings.push(finding.valued(shown(value)));
    }
}
