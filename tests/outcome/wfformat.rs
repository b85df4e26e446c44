//! Workflows as WfCommons records them, as lines that `rayfit trace` reads: WfFormat 1.0 to 1.6, the fields
//! that say when what runs.
//!
//! The form of each version is in the schema and the tool that migrates instances, both of
//! <https://github.com/wfcommons/WfFormat>: up to 1.4 tasks stand in `workflow.tasks` (before 1.3
//! `workflow.jobs`) and name each other by name; from 1.5 on their structure is in
//! `workflow.specification`, what was measured in `workflow.execution`, and they name each other by id.
//! Files and the time to move them, energy, priorities and machines are left out.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::json;

/// What the memory of a task is in up to version 1.3: kilobytes.
const KILOBYTE: f64 = 1000.0;

#[derive(Deserialize)]
struct Instance {
    name: String,
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
}

/// The lines of a trace of what ran in a workflow: all tasks are submitted at 0, and wait for their parents.
///
/// # Errors
///
/// It is no workflow, or says not of every task how long it ran.
pub fn lines(text: &str) -> Result<String, String> {
    let instance: Instance = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Workflow {
        tasks,
        specification,
        execution,
    } = instance.workflow;
    let (structure, files) = specification.map_or((tasks, Vec::new()), |specified| {
        (specified.tasks, specified.files)
    });
    let sizes: HashMap<String, f64> = files
        .into_iter()
        .filter_map(|file| Some((file.id?, file.size_in_bytes?)))
        .collect();
    let measured = execution.into_iter().flat_map(|execution| execution.tasks);
    let measured: HashMap<String, Task> = measured
        .filter_map(|task| Some((task.id.clone()?, task)))
        .collect();
    let id = |task: &Task| {
        task.id
            .clone()
            .or(task.name.clone())
            .ok_or("a task has no id")
    };
    let ids = structure
        .iter()
        .map(id)
        .collect::<Result<Vec<String>, _>>()?;
    // Up to version 1.4 tasks refer to each other by name. The first task of a name has it.
    let mut indices: HashMap<&str, usize> = HashMap::new();
    for (index, task) in structure.iter().enumerate().rev() {
        indices.extend(task.name.as_deref().map(|name| (name, index)));
    }
    indices.extend(
        ids.iter()
            .enumerate()
            .map(|(index, id)| (id.as_str(), index)),
    );
    let named = |name: &String| {
        let index = indices.get(name.as_str()).copied();
        index.ok_or_else(|| format!("there is no task {name:?}"))
    };
    let mut after: Vec<Vec<&str>> = vec![Vec::new(); structure.len()];
    for (index, task) in structure.iter().enumerate() {
        for parent in &task.parents {
            after[index].push(&ids[named(parent)?]);
        }
        // A dependency may stand on either side.
        for child in &task.children {
            after[named(child)?].push(&ids[index]);
        }
    }
    let header =
        json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "Trace", "name": instance.name});
    let mut out = format!("{header}\n");
    for ((task, id), after) in structure.iter().zip(&ids).zip(after) {
        let run = measured.get(id).unwrap_or(task);
        let seconds = run
            .runtime_in_seconds
            .ok_or_else(|| format!("{id} has no runtimeInSeconds"))?;
        let used = run
            .memory_in_bytes
            .or(run.memory.map(|amount| amount * KILOBYTE));
        let written = task
            .files
            .iter()
            .filter(|file| file.link.as_deref() == Some("output"));
        let written: f64 = written.filter_map(|file| file.size_in_bytes).sum();
        // One of the two is 0: up to version 1.4 the sizes of files stand in the task.
        let listed: f64 = task
            .output_files
            .iter()
            .filter_map(|file| sizes.get(file))
            .sum();
        let line = json!({
            "task": id,
            "name": task.name.as_ref().unwrap_or(id),
            "seconds": seconds,
            "after": after,
            "resources": {"CPU": run.core_count.filter(|cores| *cores > 0.0).unwrap_or(1.0)},
            "memory": used.iter().map(|used| (0, used)).collect::<Vec<_>>(),
            "output": listed.max(written),
        });
        let _ = writeln!(out, "{line}");
    }
    Ok(out)
}
