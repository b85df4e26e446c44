//! RF706: settings of a RayService that KubeRay refuses.

use crate::ray::feature_gate::INCREMENTAL_UPGRADE;
use crate::ray::object::INITIALIZING_TIMEOUT;
use crate::rules::prelude::*;
use crate::seconds::go_duration;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(706),
    name: "service-settings",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "A RayService that names its head's service, or upgrades in a way that does not exist or lacks options",
    page: include_str!("service_settings.md"),
    why: "KubeRay considers the service invalid and creates nothing.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

const INCREMENTAL: &str = "NewClusterWithIncrementalUpgrade";

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.object.kind != Kind::RayService {
        return;
    }
    let mut report = |path: FieldPath, problem: &str, fix: &str| {
        findings.push(RULE.finding(path, problem, fix));
    };
    if let Some(text) = subject.object.annotation(INITIALIZING_TIMEOUT)
        && !text.is_empty()
        && !is_positive_time(text)
    {
        let problem = format!("{} is not a positive time", shown_text(text));
        let path = FieldPath::annotation(INITIALIZING_TIMEOUT);
        report(path, &problem, "Write a time such as 30m, or seconds.");
    }
    // KubeRay names the Services of a RayService itself, that of the head among them (`ValidateRayServiceSpec`).
    let head = subject.cluster().and_then(|cluster| cluster.head.as_ref());
    if let Some(head) = head
        && let Some(metadata) = head.spec.object_in(&["headService", "metadata"])
        && metadata.filled("name").is_some()
    {
        let path = head.path().key("headService").key("metadata").key("name");
        report(path, "is not allowed in a RayService", "Remove the name.");
    }
    let Some(spec) = subject.object.spec() else {
        return;
    };
    let delay = "rayClusterDeletionDelaySeconds";
    let seconds = spec.get(delay).and_then(Json::as_i64);
    if seconds.is_some_and(|seconds| seconds < 0) {
        let path = FieldPath::of(&["spec", delay]);
        report(path, "is negative", "Write 0 or more.");
    }
    let Some(strategy) = spec.object("upgradeStrategy") else {
        return;
    };
    let path = FieldPath::of(&["spec", "upgradeStrategy"]);
    match strategy.text("type") {
        None | Some("NewCluster" | "None") => {}
        Some(INCREMENTAL) if !subject.settings.has_gate(&INCREMENTAL_UPGRADE) => {}
        Some(INCREMENTAL) => {
            if subject.autoscaled().is_none() {
                let problem = format!("{INCREMENTAL} needs autoscaling");
                let fix = "Write rayClusterConfig.enableInTreeAutoscaling: true, or another type.";
                report(path.clone().key("type"), &problem, fix);
            }
            let surge_bounds_step = subject.settings.kuberay >= since::KUBERAY_WITH_STEP_IN_SURGE;
            let path = path.key("clusterUpgradeOptions");
            let Some(options) = strategy.object("clusterUpgradeOptions") else {
                let fix = "Write gatewayClassName, stepSizePercent and intervalSeconds there.";
                report(path, &format!("{INCREMENTAL} needs it"), fix);
                return;
            };
            for (key, problem, fix) in option_faults(options, surge_bounds_step) {
                report(path.clone().key(key), &problem, fix);
            }
        }
        Some(other) => {
            let problem = format!("{} is unknown", shown_text(other));
            let fix = "Write NewCluster, NewClusterWithIncrementalUpgrade or None.";
            report(path.key("type"), &problem, fix);
        }
    }
}

/// The keys of an upgrade's options that KubeRay refuses, each with the problem and its fix.
fn option_faults(
    options: Fields<'_>,
    surge_bounds_step: bool,
) -> Vec<(&'static str, String, &'static str)> {
    let mut faults = Vec::new();
    let mut add = |key, problem: &str, fix| faults.push((key, problem.to_owned(), fix));
    let number = |key| options.get(key).and_then(Json::as_i64);
    let surge = number("maxSurgePercent").unwrap_or(100);
    let step = number("stepSizePercent");
    if !(0..=100).contains(&surge) {
        let problem = format!("{surge} is not a share");
        add("maxSurgePercent", &problem, "Write 0 to 100.");
    }
    if !step.is_some_and(|step| (0..=100).contains(&step)) {
        let problem = "is absent, or not a share";
        add("stepSizePercent", problem, "Write 0 to 100.");
    } else if surge_bounds_step && step > Some(surge) {
        let problem = format!("is above maxSurgePercent, which is {surge}");
        let fix = "Write at most as much as maxSurgePercent.";
        add("stepSizePercent", &problem, fix);
    }
    if number("intervalSeconds").is_none_or(|seconds| seconds <= 0) {
        let problem = "is absent, or not positive";
        add("intervalSeconds", problem, "Write 1 or more.");
    }
    if options.filled("gatewayClassName").is_none() {
        let fix = "Write the name of a GatewayClass.";
        add("gatewayClassName", "is absent", fix);
    }
    faults
}

/// The units of times in Go, in seconds.
const UNITS: [(&str, f64); 8] = [
    ("h", 3600.0),
    ("m", 60.0),
    ("s", 1.0),
    ("ms", 1e-3),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ns", 1e-9),
];

/// Reads a time above zero as Go writes it, or as a number of whole seconds.
fn is_positive_time(text: &str) -> bool {
    let text = text.strip_prefix('+').unwrap_or(text);
    match text.parse::<i64>() {
        Ok(seconds) => seconds > 0,
        Err(_) => go_duration(text, &UNITS).is_some_and(|time| !time.is_zero()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for text in ["30m", "1h30m", "1.5h", "10ms", "600", "+5s"] {
            assert!(is_positive_time(text), "{text}");
        }
        for text in ["0", "-1", "0s", "-5m", "5 minutes", "5m3", "m", "x"] {
            assert!(!is_positive_time(text), "{text}");
        }
    }
}
