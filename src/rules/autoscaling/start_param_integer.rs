//! RF204: start parameters that Ray cannot read as a number.

use serde_json::Value;

use crate::policy::Mode;
use crate::quantity::Quantity;
use crate::ray::Group;
use crate::ray::start_params::start_integer;
use crate::rule_id::RuleId;
use crate::rules::{Cel, Check, Each, Findings, OwnMode, Rule, Subject};
use crate::text::shown;

/// RF204
pub static RULE: Rule = Rule {
    id: RuleId(204),
    name: "start-param-integer",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`num-cpus`, `num-gpus` or `memory` in `rayStartParams` that is not a whole number",
    what: "Checks `num-cpus`, `num-gpus` and `memory` in `rayStartParams` of every group, the head \
           included, of a cluster with autoscaling on, and reports what is not a whole number of \
           at least 0. Fractions and suffixes (`2.5`, `500m`, `4Gi`) are not; surrounding blanks, \
           a `+`, single underscores between digits and digits of all scripts are allowed, as in \
           Python.",
    why: "Ray's autoscaler fails on it, and scales no group of the cluster.",
    bad: r#"
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {memory: "4Gi"}
"#,
    good: r#"
spec:
  enableInTreeAutoscaling: true
  workerGroupSpecs:
  - groupName: small
    rayStartParams: {memory: "4294967296"}
"#,
    without: "The autoscaler converts the three with Python's `int()` in every round; ValueError \
              ends the round for all groups (Ray, `autoscaling_config.py`, `_get_num_cpus`, \
              `_get_num_gpus`, `_get_memory`). A negative number fails the check of the resulting \
              configuration, which allows none (Ray, `ray-schema.json`).",
    since: "0.1.0",
    cel: CEL,
    check,
};

const CEL: Cel = Cel::InPart(
    &[Check {
        each: Each::Group,
        mode: Mode::Enforce,
        // `\s` knows only ASCII in CEL's regular expressions (RE2), and Python also strips blanks
        // of other scripts, so these are named one by one.
        faults: r#"!s.auto ? [] : ['num-cpus', 'num-gpus', 'memory'].filter(k, k in g.params
  && !((k == 'num-cpus' ? 'CPU' : k == 'num-gpus' ? 'GPU' : 'memory') in g.resources)
  && !g.params[k].matches(r'^[\s\pZ\x{1c}-\x{1f}\x{85}]*([+]?\p{Nd}+(_\p{Nd}+)*|-0+(_0+)*|-.*[^\x00-\x7f].*)[\s\pZ\x{1c}-\x{1f}\x{85}]*$'))
  .map(k, '.rayStartParams.' + k + ' "' + g.params[k] + '" is not a whole number of at least 0')"#,
        fix: "Write a whole number in quotes.",
    }],
    "Negative numbers in digits of other scripts are accepted.",
);

/// Each parameter with the resource in the group's `resources` that takes precedence over it.
const PARAMS: [(&str, &str); 3] = [
    ("num-cpus", "CPU"),
    ("num-gpus", "GPU"),
    ("memory", "memory"),
];

fn check(subject: &Subject<'_>, findings: &mut Findings) {
    for group in subject.autoscaled_groups() {
        for (param, resource) in PARAMS {
            let overridden = group.resources().is_some_and(|r| r.contains_key(resource));
            match group.start_param(param) {
                Some(value @ (Value::String(_) | Value::Number(_))) if !overridden => {
                    check_value(group, param, value, findings);
                }
                _ => {}
            }
        }
    }
}

fn check_value(group: &Group<'_>, param: &'static str, value: &Value, findings: &mut Findings) {
    let problem = match start_integer(value) {
        Some(amount) if amount >= 0 => return,
        Some(_) => format!("{} is negative", shown(value)),
        None => format!("{} is not a whole number", shown(value)),
    };
    findings.add(
        RULE.finding(group.start_param_path(param), problem, fix(param, value))
            .valued(shown(value)),
    );
}

fn fix(param: &str, value: &Value) -> String {
    let text = value.as_str().map(str::trim);
    let meant = text.map_or_else(|| Quantity::from_json(value), Quantity::parse);
    match meant {
        Ok(meant) if meant.is_negative() => format!("Write {param}: \"0\" or more, or remove it."),
        Ok(meant) => format!("Write {param}: \"{}\".", meant.ceil_units()),
        Err(_) => format!("Write a whole number{}, or remove it.", example(param)),
    }
}

fn example(param: &str) -> &'static str {
    match param {
        "memory" => " of bytes, like memory: \"4294967296\"",
        "num-gpus" => ", like num-gpus: \"1\"",
        _ => ", like num-cpus: \"4\"",
    }
}
