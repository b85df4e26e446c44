//! RF707: a schedule that KubeRay cannot read.

use crate::rules::prelude::*;

pub(crate) static RULE: Rule = Rule {
    id: RuleId(707),
    name: "cron-schedule",
    mode: OwnMode::Always(Mode::Enforce),
    summary: "`schedule` of a RayCronJob that is no cron expression of five fields",
    page: include_str!("cron_schedule.md"),
    why: "KubeRay makes no jobs.",
    cel: Cel::NotCovered("KubeRay refuses such objects itself, if later."),
    check,
};

fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let spec = subject.object.spec();
    let Some(spec) = spec.filter(|_| subject.object.kind == Kind::RayCronJob) else {
        return;
    };
    let has_zone = subject.settings.kuberay >= since::KUBERAY_WITH_TIME_ZONE;
    if has_zone && spec.text("timeZone") == Some("") {
        let path = FieldPath::of(&["spec", "timeZone"]);
        let fix =
            "Write a name such as Europe/Berlin, or remove it for the zone of KubeRay's operator.";
        findings.push(RULE.finding(path, "is empty", fix));
    }
    let Some(schedule) = spec.text("schedule") else {
        return;
    };
    let path = FieldPath::of(&["spec", "schedule"]);
    if has_zone && schedule.contains("TZ") {
        let fix = "Write spec.timeZone instead.";
        findings.push(RULE.finding(path, "has a time zone in it", fix));
    } else if !is_schedule(schedule) {
        let schedule = shown_text(schedule);
        let problem = format!("{schedule} is not a cron expression");
        let fix = "Write minute, hour, day, month and day of the week, such as 0 3 * * *.";
        findings.push(RULE.finding(path, problem, fix).valued(schedule));
    }
}

const MONTHS: &[&str] = &[
    "", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The least and the greatest number of each field, with the names for them.
const FIELDS: [(usize, usize, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, MONTHS),
    (0, 6, DAYS),
];

/// Reads a schedule as KubeRay's library does (`github.com/robfig/cron`, `ParseStandard`).
fn is_schedule(text: &str) -> bool {
    let has_zone = text.starts_with("TZ=") || text.starts_with("CRON_TZ=");
    let text = match text.split_once(' ') {
        Some((_, rest)) if has_zone => rest.trim(),
        _ => text,
    };
    // The duration behind `@every` is not looked at: a wrong one is left to KubeRay.
    if let Some(named) = text.strip_prefix('@') {
        let names = [
            "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
        ];
        return named.starts_with("every ") || names.contains(&named);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    fields.len() == FIELDS.len()
        && fields.iter().zip(FIELDS).all(|(field, bounds)| {
            let mut parts = field.split(',').filter(|part| !part.is_empty());
            parts.all(|part| is_range(part, bounds))
        })
}

/// Reads a number, a range or all, with a step or without.
fn is_range(text: &str, (least, most, names): (usize, usize, &[&str])) -> bool {
    let (range, step) = match text.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (text, None),
    };
    let number = |text: &str| {
        let is_name = |name: &str| !name.is_empty() && name.eq_ignore_ascii_case(text);
        let position = names.iter().position(|name| is_name(name));
        position.or_else(|| text.parse().ok())
    };
    let (start, end) = match range.split_once('-') {
        _ if matches!(range, "*" | "?") => (Some(least), Some(most)),
        Some((start, end)) => (number(start), number(end)),
        None if step.is_some() => (number(range), Some(most)),
        None => (number(range), number(range)),
    };
    let is_step = step.is_none_or(|step| step.parse::<usize>().is_ok_and(|step| step > 0));
    let is_inside = |start, end| least <= start && start <= end && end <= most;
    is_step
        && start
            .zip(end)
            .is_some_and(|(start, end)| is_inside(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_read_as_kuberay_reads_them() {
        for text in [
            "0 3 * * *",
            "*/5 1-3,7 ? JAN mon-Fri",
            "5/2 * * * *",
            "@daily",
            "@every 1h",
            "TZ=UTC 0 3 * * 6",
        ] {
            assert!(is_schedule(text), "{text}");
        }
        for text in [
            "",
            "every day",
            "0 3 * *",
            "60 3 * * *",
            "0 3 * * 7",
            "0 3 0 * *",
            "*/0 3 * * *",
            "3-1 * * * *",
            "@never",
            "1/2/3 * * * *",
        ] {
            assert!(!is_schedule(text), "{text}");
        }
    }
}
