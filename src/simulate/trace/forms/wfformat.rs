//! Workflows as WfCommons records them: WfFormat 1.0 to 1.6, the fields that say when what runs.
//!
//! The form of each version is in the schema and the tool that migrates instances, both of
//! <https://github.com/wfcommons/WfFormat>: up to 1.4 tasks stand in `workflow.tasks` (before 1.3
//! `workflow.jobs`) and name each other by name; from 1.5 on their structure is in
//! `workflow.specification`, what was measured in `workflow.execution`, and they name each other by id.

use std::collections::HashMap;

use serde::Deserialize;

use crate::simulate::trace::assemble::some;
use crate::simulate::trace::draft::{JobDraft, as_name, bytes};
use crate::simulate::trace::error::{Place, TraceError, TraceFault, syntax};
use crate::simulate::trace::job::MemoryUse;
use crate::text::shown_text;

/// What the memory of a task is in up to version 1.3: kilobytes.
const KILOBYTE: f64 = 1000.0;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instance {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    schema_version: Option<String>,
    workflow: Workflow,
}

#[derive(Deserialize)]
struct Workflow {
    /// Up to version 1.4.
    #[serde(default, alias = "jobs")]
    tasks: Vec<Task>,
    specification: Option<Specified>,
    execution: Option<Tasks>,
}

#[derive(Deserialize)]
struct Tasks {
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Specified {
    tasks: Vec<Task>,
    #[serde(default)]
    files: Vec<File>,
}

/// A file that tasks read and write.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    /// From version 1.5 on.
    id: Option<String>,
    /// Up to version 1.4: whether the task that has it writes it.
    link: Option<String>,
    #[serde(alias = "size")]
    size_in_bytes: Option<f64>,
}

/// A task: its structure, what was measured of it, or both.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    children: Vec<String>,
    #[serde(alias = "runtime")]
    runtime_in_seconds: Option<f64>,
    #[serde(alias = "cores")]
    core_count: Option<f64>,
    memory_in_bytes: Option<f64>,
    /// In kilobytes, up to version 1.3.
    memory: Option<f64>,
    /// Up to version 1.4.
    #[serde(default)]
    files: Vec<File>,
    /// From version 1.5 on, by id.
    #[serde(default)]
    output_files: Vec<String>,
    /// The bytes of what it writes, where that is known.
    #[serde(skip)]
    output: f64,
}

/// The name of the workflow, and a description of each task.
pub(in crate::simulate::trace) fn read(
    text: &str,
) -> Result<(Option<String>, Vec<JobDraft>), TraceError> {
    let instance: Instance =
        serde_json::from_str(text).map_err(|error| syntax(&error, "workflow of WfCommons"))?;
    let version = instance.schema_version.unwrap_or_default();
    if !version.starts_with("1.") {
        return Err(Place::Whole.fault(TraceFault::Version {
            found: shown_text(&version),
            remedy: "schemaVersion of WfFormat is 1.0 to 1.6",
        }));
    }
    let workflow = instance.workflow;
    let drafts = match (workflow.specification, workflow.execution) {
        (Some(specification), Some(execution)) => measured(specification, execution.tasks)?,
        (Some(_), None) => {
            return Err(Place::Whole.fault(TraceFault::Missing {
                field: "workflow.execution",
                remedy: "without it nothing says how long tasks run; take an instance that was run",
            }));
        }
        (None, _) => described(&workflow.tasks)?,
    };
    some(&drafts, ": workflow has no tasks")?;
    Ok((instance.name, drafts))
}

/// From version 1.5 on: two lists of the same tasks.
fn measured(specified: Specified, measured: Vec<Task>) -> Result<Vec<JobDraft>, TraceError> {
    let files = specified.files.into_iter();
    let sizes: HashMap<String, f64> = files
        .filter_map(|file| Some((file.id?, file.size_in_bytes?)))
        .collect();
    let by_id = measured
        .into_iter()
        .filter_map(|task| Some((task.id.clone()?, task)));
    let mut by_id: HashMap<String, Task> = by_id.collect();
    let whole = specified.tasks.into_iter().map(|task| {
        let written = task.output_files.iter();
        let output = written.filter_map(|file| sizes.get(file)).sum();
        let task = Task { output, ..task };
        let run = task.id.as_ref().and_then(|id| by_id.remove(id));
        match run {
            Some(run) => Task {
                runtime_in_seconds: run.runtime_in_seconds,
                core_count: run.core_count,
                memory_in_bytes: run.memory_in_bytes,
                ..task
            },
            None => task,
        }
    });
    described(&whole.collect::<Vec<Task>>())
}

fn described(tasks: &[Task]) -> Result<Vec<JobDraft>, TraceError> {
    let ids = ids(tasks)?;
    // Up to version 1.4 tasks refer to each other by name. The first task of a name has it.
    let mut indices: HashMap<&str, usize> = HashMap::new();
    for (index, task) in tasks.iter().enumerate().rev() {
        indices.extend(task.name.as_deref().map(|name| (name, index)));
    }
    for (index, id) in ids.iter().enumerate() {
        indices.insert(id, index);
    }
    let named = |name: &String| indices.get(name.as_str()).copied();
    let mut drafts = Vec::with_capacity(tasks.len());
    for (task, id) in tasks.iter().zip(&ids) {
        let parents = task.parents.iter();
        // What there is not is left as it is, and refused where parents are found.
        let parents = parents.map(|name| named(name).map_or(name.as_str(), |index| ids[index]));
        drafts.push(JobDraft {
            after: parents.map(str::to_owned).collect(),
            ..draft(task, (*id).to_owned())?
        });
    }
    // A dependency may stand on either side.
    for (task, id) in tasks.iter().zip(&ids) {
        for child in &task.children {
            let Some(child) = named(child) else {
                return Err(
                    Place::Task((*id).to_owned()).fault(TraceFault::UnknownName {
                        what: "task",
                        found: shown_text(child),
                        remedy: "children has ids of tasks of the same workflow".to_owned(),
                    }),
                );
            };
            drafts[child].after.push((*id).to_owned());
        }
    }
    Ok(drafts)
}

/// The id of each task, or its name where there are none.
fn ids(tasks: &[Task]) -> Result<Vec<&str>, TraceError> {
    let ids = tasks.iter().enumerate().map(|(index, task)| {
        let id = task.id.as_deref().or(task.name.as_deref());
        id.ok_or_else(|| {
            Place::Task(format!("number {}", index + 1)).fault(TraceFault::Missing {
                field: "id",
                remedy: "each task of WfFormat has one",
            })
        })
    });
    ids.collect()
}

fn draft(task: &Task, id: String) -> Result<JobDraft, TraceError> {
    let place = Place::Task(id.clone());
    let seconds = task.runtime_in_seconds.ok_or_else(|| {
        place.fault(TraceFault::Missing {
            field: "runtimeInSeconds",
            remedy: "nothing else says how long the task runs; take it out, or write how long",
        })
    })?;
    let cores = task.core_count.filter(|cores| *cores > 0.0).unwrap_or(1.0);
    let used = task
        .memory_in_bytes
        .or(task.memory.map(|amount| amount * KILOBYTE));
    let written = task.files.iter();
    let written = written.filter(|file| file.link.as_deref() == Some("output"));
    let written: f64 = written.filter_map(|file| file.size_in_bytes).sum();
    // One of the two is 0: up to version 1.4 the sizes of files stand in the task, later in a list
    // of all files.
    let output = bytes(&place, "the size of its output", task.output.max(written))?;
    let used = used
        .map(|amount| bytes(&place, "memory", amount))
        .transpose()?;
    let name = as_name(task.name.as_deref().unwrap_or_default());
    let shape = [("CPU".to_owned(), cores)].into();
    let draft = JobDraft::task(place, id, shape);
    Ok(JobDraft {
        name: if name.is_empty() { draft.name } else { name },
        seconds,
        memory: used
            .map(|bytes| MemoryUse { at: 0.0, bytes })
            .into_iter()
            .collect(),
        output,
        ..draft
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match read(text) {
            Ok(_) => panic!("{text}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn before_1_4_memory_is_in_kilobytes_and_tasks_are_named() {
        let (name, drafts) = read(
            r#"{"name":"w","schemaVersion":"1.2","workflow":{"jobs":[
                {"name":"b_ID2","id":"ID2","runtime":2.5,"cores":2,"memory":3,"parents":["a_ID1"]},
                {"name":"a_ID1","id":"ID1","runtime":1}]}}"#,
        )
        .unwrap();
        assert_eq!(name.as_deref(), Some("w"));
        let first = &drafts[0];
        assert_eq!((first.id.as_str(), first.name.as_str()), ("ID2", "b_ID2"));
        assert_eq!(first.after, ["ID1"]);
        assert_eq!(first.memory[0].bytes, 3000);
        assert_eq!(first.demand.shapes()[0]["CPU"].to_string(), "2");
        assert_eq!(drafts[1].demand.shapes()[0]["CPU"].to_string(), "1");
    }

    #[test]
    fn a_dependency_may_stand_on_either_side() {
        let (_, drafts) = read(
            r#"{"schemaVersion":"1.5","workflow":{
                "specification":{"tasks":[
                    {"name":"n","id":"a","parents":[],"children":["b"]},
                    {"name":"n","id":"b","parents":[],"children":[]}]},
                "execution":{"tasks":[
                    {"id":"b","runtimeInSeconds":2},{"id":"a","runtimeInSeconds":1}]}}}"#,
        )
        .unwrap();
        assert_eq!(drafts[1].after, ["a"]);
        let seconds: Vec<String> = drafts
            .iter()
            .map(|draft| draft.seconds.to_string())
            .collect();
        assert_eq!(seconds, ["1", "2"]);
    }

    #[test]
    fn what_says_no_durations_is_refused() {
        let planned = r#"{"schemaVersion":"1.5","workflow":{"specification":{"tasks":[]}}}"#;
        assert!(refused(planned).starts_with("workflow.execution is missing; without it"));
        let one = r#"{"schemaVersion":"1.4","workflow":{"tasks":[{"name":"a"}]}}"#;
        assert!(refused(one).starts_with("task \"a\": runtimeInSeconds is missing"));
        let none = r#"{"schemaVersion":"1.4","workflow":{"tasks":[]}}"#;
        assert_eq!(
            refused(none),
            "there is no job in it: workflow has no tasks"
        );
        let newer = r#"{"schemaVersion":"2.0","workflow":{}}"#;
        assert!(refused(newer).starts_with("version \"2.0\" is not known"));
        let odd = "{\"schemaVersion\":\"1.4\",\n\"workflow\":{\"tasks\":3}}";
        assert!(refused(odd).starts_with("line 2: no workflow of WfCommons: invalid type"));
    }
}
