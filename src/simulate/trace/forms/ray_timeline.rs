//! Ray's timeline: events in Chrome's trace format, as `ray timeline` writes them.
//!
//! An event whose category begins with `task::` is the run of a task. An id of a task ends with the
//! id of its actor (`src/ray/design_docs/id_specification.md` of Ray 2.60.0), so that actors can be told.

use serde::Deserialize;

use super::ray_runs::{ActorEnds, Groups, Run, RunKind, drafts};
use crate::simulate::trace::draft::JobDraft;
use crate::simulate::trace::error::{TraceError, syntax};
use crate::simulate::trace::loss::Loss;

/// What the category of a run begins with.
const RUN: &str = "task::";

/// Hexadecimal digits of an id: of the task itself, of the actor in its job, of the job.
const UNIQUE: usize = 16;
const ACTOR: usize = 24;
const JOB: usize = 8;

const MICROSECOND: f64 = 1e-6;

#[derive(Deserialize)]
#[serde(untagged)]
enum Timeline {
    Events(Vec<Event>),
    Object {
        #[serde(rename = "traceEvents")]
        events: Vec<Event>,
    },
}

#[derive(Deserialize)]
struct Event {
    cat: Option<String>,
    /// When it began, in microseconds.
    ts: Option<f64>,
    /// How long it took, in microseconds.
    dur: Option<f64>,
    args: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    task_id: Option<String>,
}

/// A description of each task and actor, and what is lost.
pub(in crate::simulate::trace) fn read(
    text: &str,
) -> Result<(Vec<JobDraft>, Vec<Loss>), TraceError> {
    let timeline: Timeline =
        serde_json::from_str(text).map_err(|error| syntax(&error, "timeline of Ray"))?;
    let (Timeline::Events(events) | Timeline::Object { events }) = timeline;
    let runs = events.into_iter().enumerate();
    let runs: Vec<Run> = runs
        .filter_map(|(index, event)| run(event, index))
        .collect();
    let (drafts, mut losses) = drafts(runs, &Groups::new(), &ActorEnds::new())?;
    losses.push(Loss::Resources(drafts.len()));
    Ok((drafts, losses))
}

fn run(event: Event, index: usize) -> Option<Run> {
    let name = event.cat?.strip_prefix(RUN)?.to_owned();
    let begin = event.ts? * MICROSECOND;
    let end = begin + event.dur? * MICROSECOND;
    let id = event.args.and_then(|details| details.task_id);
    let task = id.unwrap_or_else(|| format!("event-{}", index + 1));
    let (kind, actor) = kind(&task);
    Some(Run {
        name,
        kind,
        actor,
        group: None,
        parent: None,
        ready: begin,
        ran: Some((begin, end)),
        shape: [("CPU".to_owned(), 1.0)].into(),
        task,
    })
}

/// What an id says of its task: ids that are not given are all `f`.
fn kind(id: &str) -> (RunKind, Option<String>) {
    let none = |digits: &str| digits.bytes().all(|digit| digit == b'f');
    let parts = id.split_at_checked(UNIQUE);
    match parts.filter(|(_, actor)| actor.len() == ACTOR + JOB && actor.is_ascii()) {
        Some((_, actor)) if none(&actor[..ACTOR]) => (RunKind::Task, None),
        Some((unique, actor)) if none(unique) => (RunKind::Creation, Some(actor.to_owned())),
        Some((_, actor)) => (RunKind::Call, Some(actor.to_owned())),
        None => (RunKind::Task, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_tell_actors_from_tasks() {
        let actor = "c7fc6e5f08d2d2585236521d01000000";
        assert_eq!(
            kind("f91b78d7db9a6593ffffffffffffffffffffffff01000000"),
            (RunKind::Task, None)
        );
        let made = (RunKind::Creation, Some(actor.to_owned()));
        assert_eq!(kind(&format!("ffffffffffffffff{actor}")), made);
        let call = (RunKind::Call, Some(actor.to_owned()));
        assert_eq!(kind(&format!("e0dc174c83599034{actor}")), call);
        for odd in ["", "event-1", "ä", &"ä".repeat(24)] {
            assert_eq!(kind(odd), (RunKind::Task, None), "{odd}");
        }
    }

    #[test]
    fn tasks_are_distinguished_from_events_in_them() {
        let events = r#"[{"cat":"task::f","name":"m.f","ts":1000000.0,"dur":2000000,"ph":"X","args":{}},
            {"cat":"task:execute","ts":1000000.0,"dur":1900000,"ph":"X","args":{}},
            {"name":"process_name","ph":"M","pid":0,"args":{"name":"Node 192.0.2.1"}}]"#;
        for text in [events.to_owned(), format!("{{\"traceEvents\":{events}}}")] {
            let (drafts, losses) = read(&text).unwrap();
            let [draft] = &drafts[..] else {
                panic!("{drafts:?}")
            };
            assert_eq!((draft.id.as_str(), draft.name.as_str()), ("event-1", "f"));
            assert_eq!(
                (draft.at.to_string(), draft.seconds.to_string()),
                ("0".into(), "2".into())
            );
            assert!(losses.contains(&Loss::Resources(1)), "{losses:?}");
        }
    }
}
