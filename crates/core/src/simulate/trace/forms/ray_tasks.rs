//! Tasks as Ray lists them: `ray list tasks --detail --format json`, `TaskState` of
//! `python/ray/util/state/common.py` of Ray 2.60.0; with them, in any order, the lists of placement
//! groups (`PlacementGroupState`) and of actors, of which nothing is needed.

use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::Offset;
use serde::Deserialize;
use serde_json::{Deserializer, Value};

use super::ray_runs::{ActorEnds, Groups, RayGroup, RayKind, RayRun, drafts};
use crate::simulate::trace::draft::JobDraft;
use crate::simulate::trace::error::{Place, TraceError, syntax};
use crate::simulate::trace::job::JobShape;
use crate::simulate::trace::loss::Loss;
use crate::text::{shown, shown_text};

/// The state from which on a task waits for a node and for nothing else: its arguments are there.
const READY: &str = "PENDING_NODE_ASSIGNMENT";

/// The number of tasks that Ray lists by default, and the most that it lists.
const LIMITS: [usize; 2] = [100, 10_000];

/// A record of any of the lists.
#[derive(Deserialize)]
struct ListedRecord {
    task_id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    func_or_class_name: Option<String>,
    actor_id: Option<String>,
    placement_group_id: Option<String>,
    parent_task_id: Option<String>,
    required_resources: Option<JobShape>,
    events: Option<Vec<ListedEvent>>,
    creation_time_ms: Option<Value>,
    start_time_ms: Option<Value>,
    end_time_ms: Option<Value>,
    bundles: Option<Vec<ListedBundle>>,
}

#[derive(Deserialize)]
struct ListedEvent {
    state: String,
    created_ms: Option<Value>,
}

#[derive(Deserialize)]
struct ListedBundle {
    unit_resources: JobShape,
}

/// Seconds since 1970 of some zone. The command line writes the local time of the machine, without its zone;
/// `list_tasks()` has milliseconds since 1970. Only differences count.
fn seconds(moment: &Value, place: &Place) -> Result<f64, TraceError> {
    if let Some(milliseconds) = moment.as_f64() {
        return Ok(milliseconds / 1000.0);
    }
    let time = moment
        .as_str()
        .and_then(|text| text.parse::<DateTime>().ok());
    let time = time.and_then(|time| Offset::UTC.to_timestamp(time).ok());
    let time = time.ok_or_else(|| {
        let expected = "Ray writes 2026-01-31 12:00:00.000000, or milliseconds";
        place.wrong("a time", &shown(moment), expected)
    })?;
    Ok(time.as_duration().as_secs_f64())
}

/// A description of each task, actor and placement group, and what is lost.
pub(in crate::simulate::trace) fn read(
    text: &str,
) -> Result<(Vec<JobDraft>, Vec<Loss>), TraceError> {
    let mut groups = Groups::new();
    let mut runs = Vec::new();
    let mut cut = Vec::new();
    for list in Deserializer::from_str(text).into_iter::<Vec<ListedRecord>>() {
        let list = list.map_err(|error| syntax(&error, "list of Ray"))?;
        let tasks = list
            .iter()
            .filter(|record| record.task_id.is_some())
            .count();
        cut.extend(LIMITS.contains(&tasks).then_some(Loss::Limit(tasks)));
        for record in list {
            match (record.task_id.is_some(), &record.bundles) {
                (true, _) => runs.extend(run(record)?),
                (false, Some(bundles)) => {
                    let bundles = bundles.iter().map(|bundle| bundle.unit_resources.clone());
                    let id = record.placement_group_id.unwrap_or_default();
                    let group = RayGroup {
                        bundles: bundles.collect(),
                        strategy: None,
                    };
                    groups.insert(id, group);
                }
                (false, None) => {}
            }
        }
    }
    let (drafts, mut losses) = drafts(runs, &groups, &ActorEnds::new())?;
    losses.extend(cut);
    Ok((drafts, losses))
}

/// An attempt of a task, unless it is the program that submits all others.
fn run(record: ListedRecord) -> Result<Option<RayRun>, TraceError> {
    let task = record.task_id.unwrap_or_default();
    let place = Place::Task(task.clone());
    let kind = match record.kind.as_deref() {
        Some("NORMAL_TASK") => RayKind::Task,
        Some("ACTOR_CREATION_TASK") => RayKind::Creation,
        Some("ACTOR_TASK") => RayKind::Call,
        Some("DRIVER_TASK") => return Ok(None),
        other => {
            let expected = "Ray 2.60 has NORMAL_TASK, ACTOR_CREATION_TASK, ACTOR_TASK, DRIVER_TASK";
            let other = shown_text(other.unwrap_or_default());
            return Err(place.wrong("type", &other, expected));
        }
    };
    let seconds = |moment: Option<Value>| moment.map(|moment| seconds(&moment, &place)).transpose();
    let events = record.events.into_iter().flatten();
    let mut ready = events.filter(|event| event.state == READY);
    let ready = ready.find_map(|event| event.created_ms);
    let ready = seconds(ready.or(record.creation_time_ms))?.ok_or_else(|| {
        let remedy =
            "list again with --detail: ray list tasks --detail --format json --limit 10000";
        place.missing("creation_time_ms", remedy)
    })?;
    let start = seconds(record.start_time_ms)?;
    let end = seconds(record.end_time_ms)?;
    let full = |id: Option<String>| id.filter(|id| !id.is_empty());
    Ok(Some(RayRun {
        name: full(record.name)
            .or(record.func_or_class_name)
            .unwrap_or_default(),
        kind,
        actor: full(record.actor_id),
        group: full(record.placement_group_id),
        parent: full(record.parent_task_id),
        ready,
        ran: start.zip(end),
        shape: record.required_resources.unwrap_or_default(),
        task,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn record(id: &str, kind: &str, from: u64, to: u64) -> Value {
        json!({"task_id": id, "type": kind, "name": "f", "actor_id": null, "placement_group_id": null,
            "required_resources": {"CPU": 1.0}, "creation_time_ms": from, "start_time_ms": from + 500,
            "end_time_ms": to})
    }

    fn with(mut record: Value, fields: &Value) -> Value {
        for (key, value) in fields.as_object().unwrap() {
            record[key] = value.clone();
        }
        record
    }

    fn jobs(records: &[Value]) -> (Vec<(String, f64, f64)>, Vec<Loss>) {
        let (drafts, losses) = read(&json!(records).to_string()).unwrap();
        let jobs = drafts
            .into_iter()
            .map(|JobDraft { job, .. }| (job.id, job.at, job.seconds));
        (jobs.collect(), losses)
    }

    #[test]
    fn calls_are_part_of_the_life_of_their_actor() {
        let actor = json!({"actor_id": "a"});
        let (jobs, losses) = jobs(&[
            with(record("call", "ACTOR_TASK", 9_000, 12_000), &actor),
            with(record("made", "ACTOR_CREATION_TASK", 1_000, 2_000), &actor),
            with(
                record("stray", "ACTOR_TASK", 0, 1),
                &json!({"actor_id": "b"}),
            ),
            record("driver", "DRIVER_TASK", 0, 1),
        ]);
        assert_eq!(jobs, [("made".to_owned(), 0.0, 10.5)]);
        assert_eq!(losses, [Loss::CallsOnly(1)]);
    }

    #[test]
    fn the_last_attempt_counts_from_when_the_first_was_ready() {
        let (jobs, losses) = jobs(&[
            record("t", "NORMAL_TASK", 5_000, 8_500),
            record("t", "NORMAL_TASK", 1_000, 2_000),
            with(
                record("u", "NORMAL_TASK", 0, 1),
                &json!({"end_time_ms": null}),
            ),
        ]);
        assert_eq!(jobs, [("t".to_owned(), 0.0, 3.0)]);
        assert_eq!(losses, [Loss::Unfinished(1)]);
    }

    #[test]
    fn a_task_whose_retry_has_not_ended_has_not_ended() {
        let failed = |id: &str| record(id, "NORMAL_TASK", 1_000, 2_000);
        let waits = json!({"start_time_ms": null, "end_time_ms": null});
        let runs = json!({"end_time_ms": null});
        let (jobs, losses) = jobs(&[
            failed("waits"),
            with(record("waits", "NORMAL_TASK", 3_000, 0), &waits),
            with(record("runs", "NORMAL_TASK", 3_000, 0), &runs),
            failed("runs"),
            record("ended", "NORMAL_TASK", 0, 4_500),
        ]);
        assert_eq!(jobs, [("ended".to_owned(), 0.0, 4.0)]);
        assert_eq!(losses, [Loss::Unfinished(2)]);
    }

    #[test]
    fn what_runs_in_a_placement_group_is_the_group() {
        let inside = json!({"placement_group_id": "g"});
        let tasks = [
            with(record("s", "NORMAL_TASK", 4_000, 5_000), &inside),
            with(record("t", "NORMAL_TASK", 3_000, 9_000), &inside),
            record("u", "NORMAL_TASK", 1_000, 2_000),
        ];
        let error = read(&json!(tasks).to_string()).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no placement group \"g\"; tasks ran in it"),
            "{error}"
        );
        let group =
            json!({"placement_group_id": "g", "bundles": [{"unit_resources": {"CPU": 2.0}}]});
        let other = with(group.clone(), &json!({"placement_group_id": "h"}));
        let text = format!("{}\n{}", json!(tasks), json!([group, other]));
        let (drafts, losses) = read(&text).unwrap();
        let group = drafts.iter().find(|draft| draft.job.id == "g").unwrap();
        assert_eq!(
            (group.job.at.to_string(), group.job.seconds.to_string()),
            ("2".into(), "6".into())
        );
        assert_eq!(group.job.demand.total("CPU").to_string(), "2");
        assert!(losses.contains(&Loss::UnusedGroups(1)), "{losses:?}");
        assert!(losses.contains(&Loss::Strategy(1)), "{losses:?}");
    }

    #[test]
    fn a_task_is_ready_when_its_arguments_are() {
        let events = json!({"events": [
            {"state": "PENDING_ARGS_AVAIL", "created_ms": "2026-01-31 12:00:00"},
            {"state": "PENDING_NODE_ASSIGNMENT", "created_ms": "2026-01-31 12:00:07.250000"}],
            "creation_time_ms": "2026-01-31 12:00:00", "start_time_ms": "2026-01-31 12:00:08",
            "end_time_ms": "2026-01-31 12:00:09"});
        let early = json!({"creation_time_ms": "2026-01-31 12:00:00",
            "start_time_ms": "2026-01-31 12:00:01", "end_time_ms": "2026-01-31 12:00:02"});
        let (jobs, _) = jobs(&[
            with(record("early", "NORMAL_TASK", 0, 0), &early),
            with(record("late", "NORMAL_TASK", 0, 0), &events),
        ]);
        assert_eq!(jobs[1], ("late".to_owned(), 7.25, 1.0));
    }

    #[test]
    fn what_is_missing_is_said_with_the_command_that_has_it() {
        let short = json!([{"task_id": "t", "type": "NORMAL_TASK"}]).to_string();
        let error = read(&short).unwrap_err().to_string();
        assert!(error.contains("list again with --detail"), "{error}");
        let odd = json!([record("t", "SOME_TASK", 0, 1)]).to_string();
        let error = read(&odd).unwrap_err().to_string();
        assert!(
            error.starts_with("task \"t\": type is \"SOME_TASK\""),
            "{error}"
        );
        let many: Vec<Value> = (0..100)
            .map(|index| record(&index.to_string(), "NORMAL_TASK", 0, 1_000))
            .collect();
        assert_eq!(jobs(&many).1, [Loss::Limit(100)]);
    }
}
