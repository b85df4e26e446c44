//! RF214: a head that runs tasks.

use crate::ray::start_params::start_integer;
use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(214),
    name: "head-takes-work",
    mode: OwnMode::Always(Mode::Audit),
    summary: "A head group without `num-cpus: \"0\"`",
    page: include_str!("head_takes_work.md"),
    why: "Tasks and actors are scheduled on the head, and one that uses too much memory brings the \
          whole cluster down.",
    cel: Cel::Covered(&[Check {
        each: Each::Head,
        // CEL cannot parse the annotation, so a mention of the head group in it counts as an entry. No
        // large exponent may reach `quantity()`, which takes the API server minutes to parse.
        faults: r#"!s.auto || s.ippr.contains('"headgroup"') ? []
: g.resources.size() > 0 && g.resources.exists(k, k.lowerAscii() == 'cpu')
? (g.resources.exists(k, k.lowerAscii() == 'cpu' && !g.resources[k].matches('[eE][-+]?[0-9.]{3}') && isQuantity(g.resources[k]) && quantity(g.resources[k]).compareTo(quantity('0')) == 0) ? [] : ['.resources lets tasks run on the head'])
: 'num-cpus' in g.params
? (g.params['num-cpus'].matches(r'^\s*[+]?[0_]*[1-9][0-9_]*\s*$') || g.resources.size() > 0 && !g.params['num-cpus'].matches(r'^\s*[-+]?0+(_0+)*\s*$') ? ['.rayStartParams.num-cpus "' + g.params['num-cpus'] + '" lets tasks run on the head'] : [])
: ['.rayStartParams.num-cpus is absent, so tasks run on the head too']"#,
        fix: r#"Write num-cpus: "0" in the rayStartParams of the head group."#,
    }]),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let head = subject.autoscaled().and_then(|c| c.head.as_ref());
    // Neither field may be set in a group that grows in place (RF105, RF106).
    let Some(head) = head.filter(|head| subject.resize_limits(head).is_none()) else {
        return;
    };
    // KubeRay starts Ray on the head with as many CPUs as the container has (`generateRayStartCommand`), and Ray
    // schedules on it as on any node.
    let param = head.start_param("num-cpus").filter(|v| !v.is_null());
    let (path, cpus, fix) = if let Some(resources) = head.resources {
        let path = head.path().key("resources");
        // KubeRay reads the key in any case of letters.
        let mut entries = resources.iter();
        let (path, cpus) = match entries.find(|(key, _)| key.eq_ignore_ascii_case("cpu")) {
            Some((_, cpus)) if Quantity::from_json(cpus).is_ok_and(Quantity::is_zero) => return,
            Some((key, cpus)) => (path.key(key.to_owned()), Some(cpus)),
            // RF206 reports `num-cpus` beside `resources`.
            None if param.and_then(start_integer) == Some(0) => return,
            None => (path.key("CPU"), None),
        };
        let fix = "Write CPU: \"0\" in the head group's resources.";
        (path, cpus, fix)
    } else {
        // RF204 reports values that are not counts.
        if param.is_some_and(|cpus| start_integer(cpus).is_none_or(|count| count <= 0)) {
            return;
        }
        let path = if head.start_params.is_some() {
            head.start_param_path("num-cpus")
        } else {
            head.path().key("rayStartParams")
        };
        let fix = "Write num-cpus: \"0\" in the head group's rayStartParams.";
        (path, param, fix)
    };
    let finding = match cpus.map(shown) {
        Some(cpus) => RULE
            .finding(path, format!("{cpus} lets tasks run on the head"), fix)
            .valued(cpus),
        None => RULE.finding(path, "is absent, so tasks run on the head too", fix),
    };
    let has_map = head.resources.is_some() || head.start_params.is_some();
    findings.push(if has_map {
        finding.mended_by("0")
    } else {
        finding
    });
}
