//! RF204: start parameters that Ray cannot read as a number.

use crate::ray::start_params::start_integer;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(204),
    name: "start-param-integer",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A parameter in `rayStartParams` that `ray start` reads as a whole number and that is none",
    page: include_str!("start_param_integer.md"),
    why: "`ray start` ends on it, so no pod of the group joins the cluster.",
    cel: Cel::InPart(
        &[Check {
            each: Each::Group,
            // `\s` knows only ASCII in CEL's regular expressions (RE2), and Python also strips blanks
            // of other scripts, so these are named one by one.
            faults: r#"!s.auto ? [] : ['num-cpus', 'num-gpus', 'memory'].filter(k, k in g.params
  && !((k == 'num-cpus' ? 'CPU' : k == 'num-gpus' ? 'GPU' : 'memory') in g.resources)
  && !g.params[k].matches(r'^[\s\pZ\x{1c}-\x{1f}\x{85}]*([+]?\p{Nd}+(_\p{Nd}+)*|-0+(_0+)*|-.*[^\x00-\x7f].*)[\s\pZ\x{1c}-\x{1f}\x{85}]*$'))
  .map(k, '.rayStartParams.' + k + ' "' + g.params[k] + '" is not a whole number of at least 0')"#,
            fix: "Write a whole number in quotes.",
        }],
        "Negative numbers in digits of other scripts are accepted, and only `num-cpus`, `num-gpus` and \
     `memory` with autoscaling on are checked.",
    ),
    check,
};

const AUTOSCALER: &str = "Ray's autoscaler fails on it, and scales no group of the cluster.";

/// A parameter that the autoscaler reads, with the resource in the group's `resources` that takes
/// precedence over it.
const SIZES: [(&str, &str); 3] = [
    ("num-cpus", "CPU"),
    ("num-gpus", "GPU"),
    ("memory", "memory"),
];

/// The other whole numbers among the options of `ray start` (Ray, `scripts.py`).
const OPTIONS: [&str; 13] = [
    "object-store-memory",
    "system-reserved-memory",
    "port",
    "object-manager-port",
    "node-manager-port",
    "min-worker-port",
    "max-worker-port",
    "ray-client-server-port",
    "dashboard-port",
    "dashboard-agent-listen-port",
    "dashboard-agent-grpc-port",
    "runtime-env-agent-port",
    "metrics-export-port",
];

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let autoscaled = subject.autoscaled().is_some();
    for group in subject.groups() {
        // KubeRay does not start Ray where the ray container does. (KubeRay, `BuildPod`.)
        let starts_itself = group.command().any(|word| word.contains("ray start"));
        let started = !starts_itself && !subject.object.overwrites_commands();
        // The autoscaler converts these with Python's `int()` in every round, whatever becomes of them in a command
        // (`_get_num_cpus`, `_get_num_gpus`, `_get_memory`).
        for (param, resource) in SIZES {
            let overridden = group.resources.is_some_and(|r| r.contains_key(resource));
            if !overridden && (autoscaled || started) {
                findings.extend(check_param(group, param, autoscaled));
            }
        }
        let options = OPTIONS.into_iter().filter(|_| started);
        findings.extend(options.filter_map(|param| check_param(group, param, false)));
    }
}

fn check_param(group: &Group<'_>, param: &'static str, by_autoscaler: bool) -> Option<Finding> {
    let value = group.start_param(param)?;
    if !matches!(value, Json::String(_) | Json::Number(_)) {
        return None;
    }
    // `ray start` may get a number all the same: KubeRay leaves out an option that is false, and a shell
    // replaces variables and takes quotes away.
    let may_be_number = value.as_str().is_some_and(|text| {
        text.eq_ignore_ascii_case("false") || text.contains(['$', '`', '"', '\'', '\\'])
    });
    let problem = match start_integer(value) {
        Some(amount) if amount >= 0 || !by_autoscaler => return None,
        Some(_) => format!("{} is negative", shown(value)),
        None if !by_autoscaler && may_be_number => return None,
        None => format!("{} is not a whole number", shown(value)),
    };
    let text = value.as_str().map(str::trim);
    let amount = text.map_or_else(|| Quantity::from_json(value), Quantity::parse);
    let fix = match amount {
        Ok(meant) if meant.is_negative() => format!("Write {param}: \"0\" or more, or remove it."),
        Ok(meant) => format!("Write {param}: \"{}\".", meant.ceil_units()),
        Err(_) => {
            let (what, sample) = match param {
                "memory" | "object-store-memory" | "system-reserved-memory" => {
                    (" of bytes", "4294967296")
                }
                "num-gpus" => ("", "1"),
                "num-cpus" => ("", "4"),
                _ => ("", "8080"),
            };
            format!("Write a whole number{what}, like {param}: \"{sample}\", or remove it.")
        }
    };
    let finding = RULE.finding(group.start_param_path(param), problem, fix);
    let why = if by_autoscaler { AUTOSCALER } else { RULE.why };
    let finding = finding.because(why).valued(shown(value));
    Some(match amount {
        Ok(meant) => finding.mended_by(meant.max(Quantity::ZERO).ceil_units().to_string()),
        Err(_) => finding,
    })
}
