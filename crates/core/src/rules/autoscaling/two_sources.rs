//! RF206: sizes in the start parameters and in the group's `resources`.

use crate::ray::start_params::start_integer;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(206),
    name: "two-sources",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "Resources of a group both in `rayStartParams` and in the group's `resources`",
    page: include_str!("two_sources.md"),
    why: "KubeRay takes a group's resources from one place only; it stops reconciling the whole \
          cluster when there are two.",
    cel: Cel::Covered(&[Check {
        each: Each::Group,
        faults: r#"g.resources.size() == 0 ? [] : ['num-cpus', 'num-gpus', 'memory', 'resources'].filter(k, g.params[?k].orValue('') != '')
  .map(k, '.rayStartParams.' + k + ' "' + g.params[k] + '" stands beside the resources of the group')"#,
        fix: "Remove it and write the amount in the group's resources.",
    }]),
    check,
};

/// Each parameter with its name in `resources`; `resources` holds any number of them.
const PARAMS: [(&str, &str); 4] = [
    ("num-cpus", "CPU"),
    ("num-gpus", "GPU"),
    ("memory", "memory"),
    ("resources", ""),
];

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for group in subject.groups() {
        // KubeRay refuses parameters beside the map, also those that say the same (`validateRayGroupResources`).
        let Some(resources) = group.resources else {
            continue;
        };
        for (param, resource) in PARAMS {
            let value = match group.start_param(param) {
                None | Some(Json::Null | Json::String("")) => continue,
                Some(value) => value,
            };
            let fix = match (resources.get(resource), start_integer(value)) {
                _ if resource.is_empty() => {
                    " and list its entries in the group's resources".to_owned()
                }
                (Some(stated), _) => format!(
                    "; the group's resources already say {resource}: {}",
                    shown(stated)
                ),
                (None, Some(amount)) => {
                    format!(" and write {resource}: \"{amount}\" in the group's resources")
                }
                (None, None) => format!(" and write {resource} in the group's resources"),
            };
            let finding = RULE.finding(
                group.start_param_path(param),
                format!(
                    "{} stands beside the resources map of {}",
                    shown(value),
                    group.title()
                ),
                format!("Remove {param} from rayStartParams{fix}."),
            );
            let finding = finding.valued(shown(value));
            // Elsewhere the value has to go to another place, too.
            findings.push(if resources.contains_key(resource) {
                finding.mended_by_removal()
            } else {
                finding
            });
        }
    }
}
