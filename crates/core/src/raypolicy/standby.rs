//! Compiling `reconcile.headroom` and `reconcile.schedules`. The schema bounds lists, texts and
//! numbers; here they are bounded again, because a file is read without an API server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::plan::{Headroom, HeadroomRequest, ScheduledStandby, Strategy};
use crate::policy::resource::{self, Amount, Reconcile};
use crate::quantity::Quantity;
use crate::raypolicy::fault::{Faults, Weight, amount};
use crate::schedule::{self, CronExpression, Hours, HoursEnd, LONGEST_DAYS};

/// The most schedules of a policy, requests of a headroom, and resources of a request.
const MOST: usize = 20;

/// The most groups for which a schedule has minima.
const MOST_GROUPS: usize = 100;

/// The longest name of a schedule, in bytes.
const LONGEST_NAME: usize = 63;

/// The most CPUs, or replicas of a group, that are kept ready.
const MOST_UNITS: u32 = 1_000_000;

/// The most equal requests for which there is to be room.
const MOST_REQUESTS: i64 = 10_000;

/// The headroom of a policy, if it says anything about it.
pub(crate) fn headroom(written: &Reconcile, faults: &mut Faults) -> Option<Arc<Headroom>> {
    let place = "spec.reconcile.headroom";
    let read = room(written.headroom.as_ref()?, place, faults);
    without_effect(written, place, faults);
    Some(Arc::new(read))
}

/// The schedules of a policy, if it says anything about them. A schedule that cannot be read is left
/// out.
pub(crate) fn schedules(
    written: &Reconcile,
    faults: &mut Faults,
) -> Option<Arc<[ScheduledStandby]>> {
    let place = "spec.reconcile.schedules";
    let list = written.schedules.as_ref()?;
    without_effect(written, place, faults);
    too_many(list.len(), MOST, place, faults);
    let mut names = BTreeSet::new();
    let mut read = Vec::new();
    for (index, one) in list.iter().enumerate().take(MOST) {
        let place = format!("{place}[{index}]");
        // Reasons name schedules, so two of one name could not be told apart.
        if !names.insert(one.name.as_str()) {
            let problem = format!(
                "there is another schedule {:?}: give it its own name",
                one.name
            );
            faults.add(Weight::Part, format!("{place}.name"), problem);
            continue;
        }
        read.extend(scheduled(one, &place, faults));
    }
    Some(read.into())
}

/// Points out what has no effect because the policy lets Ray's own rules decide.
pub(crate) fn without_effect(written: &Reconcile, place: &str, faults: &mut Faults) {
    if written.strategy == Some(Strategy::Ray) {
        let problem = "has no effect, because this policy sets strategy: ray, which decides exactly \
                       as Ray does: remove one of the two";
        // Another policy may set the strategy for some of the clusters, so it is kept.
        faults.add(Weight::Doubt, place, problem);
    }
}

fn too_many(count: usize, most: usize, place: &str, faults: &mut Faults) {
    if count > most {
        let problem =
            format!("has {count} entries: write {most} at the most; the rest is left out");
        faults.add(Weight::Part, place, problem);
    }
}

fn room(written: &resource::HeadroomSpec, place: &str, faults: &mut Faults) -> Headroom {
    let percent = written.share_percent.unwrap_or(0);
    let in_range = u32::try_from(percent)
        .ok()
        .filter(|percent| *percent <= 1000);
    let in_range = in_range.ok_or("write a percentage from 0 to 1000");
    let cpus = amount(written.cpus.as_ref(), &format!("{place}.cpus"), faults);
    too_many(
        written.requests.len(),
        MOST,
        &format!("{place}.requests"),
        faults,
    );
    let requests = written.requests.iter().enumerate().take(MOST);
    Headroom {
        share_percent: faults
            .part(&format!("{place}.sharePercent"), in_range)
            .unwrap_or(0),
        cpus: cpus.map_or(0, |cpus| {
            u32::try_from(cpus.ceil_units()).map_or(MOST_UNITS, |cpus| cpus.min(MOST_UNITS))
        }),
        requests: requests
            .filter_map(|(index, one)| request(one, &format!("{place}.requests[{index}]"), faults))
            .collect(),
    }
}

fn request(
    written: &resource::HeadroomRequestSpec,
    place: &str,
    faults: &mut Faults,
) -> Option<HeadroomRequest> {
    let at = format!("{place}.resources");
    too_many(written.resources.len(), MOST, &at, faults);
    let mut resources = BTreeMap::new();
    for (name, one) in written.resources.iter().take(MOST) {
        let read: Option<Quantity> = amount(Some(one as &Amount), &format!("{at}.{name}"), faults);
        resources.insert(name.clone(), read?);
    }
    if resources.values().all(|amount| amount.is_zero()) {
        let problem = "asks for nothing: write for example {CPU: 4}";
        faults.add(Weight::Part, at, problem);
        return None;
    }
    let count = written.count.unwrap_or(1);
    let in_range = (1..=MOST_REQUESTS).contains(&count).then_some(count);
    let in_range = in_range.and_then(|count| u32::try_from(count).ok());
    let in_range = in_range.ok_or_else(|| format!("write a count from 1 to {MOST_REQUESTS}"));
    Some(HeadroomRequest {
        resources,
        count: faults.part(&format!("{place}.count"), in_range)?,
    })
}

fn scheduled(
    written: &resource::Schedule,
    place: &str,
    faults: &mut Faults,
) -> Option<ScheduledStandby> {
    let fits =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    // It becomes a part of the reasons of plans and Events.
    let name = Some(written.name.clone())
        .filter(|name| (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits))
        .filter(|name| !name.starts_with('-') && !name.ends_with('-'));
    let name = name.ok_or(
        "write a name of up to 63 small letters, digits and hyphens, with no hyphen at its ends",
    );
    let name = faults.part(&format!("{place}.name"), name);
    let start = CronExpression::parse(&written.start);
    let start = faults.part(&format!("{place}.start"), start);
    let end = end(written, place, faults);
    let zone = written.time_zone.as_deref().map(schedule::zone);
    let zone = faults.part(
        &format!("{place}.timeZone"),
        zone.unwrap_or(Ok(TimeZone::UTC)),
    );
    let headroom = written.headroom.as_ref();
    let headroom = headroom.map(|written| room(written, &format!("{place}.headroom"), faults));
    let at = format!("{place}.minReplicas");
    too_many(written.min_replicas.len(), MOST_GROUPS, &at, faults);
    let mut min_replicas = BTreeMap::new();
    for (group, replicas) in written.min_replicas.iter().take(MOST_GROUPS) {
        let read = u32::try_from(*replicas).map_err(|_| "write 0 or more");
        let read = faults.part(&format!("{at}.{group}"), read);
        min_replicas.extend(read.map(|replicas| (group.clone(), replicas.min(MOST_UNITS))));
    }
    Some(ScheduledStandby {
        name: name?,
        hours: Hours {
            start: start?,
            end: end?,
            zone: zone?,
        },
        min_replicas,
        headroom: headroom.unwrap_or_default(),
    })
}

fn end(written: &resource::Schedule, place: &str, faults: &mut Faults) -> Option<HoursEnd> {
    match (&written.end, written.duration_seconds) {
        (Some(end), None) => {
            let end = faults.part(&format!("{place}.end"), CronExpression::parse(end))?;
            Some(HoursEnd::At(end))
        }
        (None, Some(seconds)) if (60..=LONGEST_DAYS * 86_400).contains(&seconds) => {
            Some(HoursEnd::After(SignedDuration::from_secs(seconds)))
        }
        (None, Some(_)) => {
            let problem = format!("write from 60 seconds to {LONGEST_DAYS} days in seconds");
            faults.add(Weight::Part, format!("{place}.durationSeconds"), problem);
            None
        }
        (Some(_), Some(_)) | (None, None) => {
            let problem = "write end or durationSeconds, one of the two";
            faults.add(Weight::Part, place, problem);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::raypolicy::compile;

    /// The problems of a policy, with their places.
    fn problems(reconcile: &Value) -> Vec<String> {
        let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
            "metadata": {"name": "a"}, "spec": {"reconcile": reconcile}});
        let read = compile::read(&written).unwrap();
        assert_eq!(crate::raypolicy::unknown(&written, &read), []);
        let (_, faults) = compile(&read);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_kept_ready_is_read() {
        let schedule = json!({"name": "mornings", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5",
            "timeZone": "Europe/Berlin", "minReplicas": {"cpu": 4},
            "headroom": {"cpus": "500m", "requests": [{"resources": {"GPU": 1, "memory": "16Gi"}}]}});
        let all = json!({"headroom": {"sharePercent": 20, "cpus": 8}, "schedules": [schedule]});
        assert_eq!(problems(&all), [] as [String; 0]);
    }

    #[test]
    fn what_cannot_be_read_says_where_and_what_to_write() {
        let schedule = |change: (&str, Value)| {
            let mut one = json!({"name": "a", "start": "0 8 * * *", "end": "0 18 * * *"});
            one[change.0] = change.1;
            json!({"schedules": [one]})
        };
        for (reconcile, place, hint) in [
            (
                schedule(("name", json!("A b"))),
                "schedules[0].name",
                "small letters",
            ),
            (
                schedule(("name", json!("-a"))),
                "schedules[0].name",
                "no hyphen at its ends",
            ),
            (
                schedule(("name", json!("a-"))),
                "schedules[0].name",
                "no hyphen at its ends",
            ),
            (
                schedule(("start", json!("8 o'clock"))),
                "schedules[0].start",
                "0 8 * * 1-5",
            ),
            (
                schedule(("end", json!("0 0 31 2 *"))),
                "schedules[0].end",
                "never",
            ),
            (
                schedule(("timeZone", json!("Berlin"))),
                "schedules[0].timeZone",
                "Europe/Berlin",
            ),
            (
                schedule(("durationSeconds", json!(60))),
                "schedules[0]",
                "one of the two",
            ),
            (
                schedule(("minReplicas", json!({"cpu": -1}))),
                "schedules[0].minReplicas.cpu",
                "0 or more",
            ),
            (
                json!({"headroom": {"cpus": "x"}}),
                "headroom.cpus",
                "number",
            ),
            (
                json!({"headroom": {"sharePercent": 1001}}),
                "headroom.sharePercent",
                "0 to 1000",
            ),
            (
                json!({"headroom": {"requests": [{"resources": {"CPU": 0}}]}}),
                "headroom.requests[0].resources",
                "{CPU: 4}",
            ),
            (
                json!({"headroom": {"requests": [{"resources": {"CPU": 1}, "count": 20_000}]}}),
                "headroom.requests[0].count",
                "1 to 10000",
            ),
            (
                json!({"headroom": {"cpus": 1}, "strategy": "ray"}),
                "headroom",
                "strategy: ray",
            ),
        ] {
            let faults = problems(&reconcile);
            let starts = format!("spec.reconcile.{place}: ");
            assert!(
                faults.len() == 1 && faults[0].starts_with(&starts) && faults[0].contains(hint),
                "{reconcile}: {faults:?}"
            );
        }
    }

    #[test]
    fn lists_are_bounded_and_names_are_their_own() {
        let one = |name: String| json!({"name": name, "start": "0 8 * * *", "durationSeconds": 60});
        let many: Vec<Value> = (0..21).map(|number| one(number.to_string())).collect();
        assert_eq!(problems(&json!({ "schedules": many })).len(), 1);
        let twice = [one("a".to_owned()), one("a".to_owned())];
        let faults = problems(&json!({ "schedules": twice }));
        assert!(faults[0].contains("its own name"), "{faults:?}");
    }
}
