//! A line of the project's own form, and its JSON schema.

use std::collections::BTreeMap;

use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

use crate::quantity::json_number;
use crate::simulate::trace::job::{Job, JobDemand, JobShape, PlacementStrategy, Trace};

/// The `apiVersion` of a trace.
pub(super) const API_VERSION: &str = "rayfit.dev/v1alpha1";

/// The `kind` of a trace.
pub(super) const KIND: &str = "Trace";

/// The first line of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Header {
    /// The version of the form, `rayfit.dev/v1alpha1`.
    pub api_version: String,
    /// The kind of the object, `Trace`.
    pub kind: String,
    /// The name of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Amounts of logical resources by name.
pub(super) type LineAmounts = BTreeMap<String, Number>;

/// Every other line of a trace: a task, an actor or a placement group. It has exactly one of the
/// fields `task`, `actor` and `placementGroup`, whose value is its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["task"]}, {"required": ["actor"]}, {"required": ["placementGroup"]}]))]
pub(super) struct JobLine {
    /// The id of a task: 1 to 256 bytes without control characters, unique in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub task: Option<String>,
    /// The id of an actor, which holds its resources until it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub actor: Option<String>,
    /// The id of a placement group, which gets all of its bundles at once, and holds them until it
    /// is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub placement_group: Option<String>,
    /// The name, such as that of the function. The id is taken where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub name: Option<String>,
    /// The time of submission, in seconds from the start of the trace. It counts as submitted no
    /// earlier than those that it waits for.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub at: Number,
    /// The ids of those that must have ended before it is ready. The id of a line with a count stands
    /// for all of them, with `#1` behind it for the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The seconds for which it runs once it has started; a placement group: until it is removed.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub seconds: Number,
    /// The resources that a task or an actor asks Ray for, such as `{"CPU": 1, "memory": 1073741824}`; memory in
    /// bytes. Without it, it asks for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<LineAmounts>,
    /// The placement of a placement group's bundles on nodes; without it, `PACK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<PlacementStrategy>,
    /// The resources of each bundle of a placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub bundles: Option<Vec<LineAmounts>>,
    /// The memory that it really uses: pairs of seconds since it started, and bytes from then on, in
    /// the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000))]
    pub memory: Vec<(Number, Number)>,
    /// The bytes of what it returns to those that wait for it.
    #[serde(default = "zero", skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub output: Number,
    /// The number of retries when its node is lost; -1 is without end. Without it: 3 for a
    /// task, 0 for an actor, -1 for a placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1, max = 4_294_967_294_u32))]
    pub retries: Option<i64>,
    /// The number of copies. Above 1, their ids get `#1`, `#2`, and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub count: Option<usize>,
}

/// A line of a trace.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "TraceLine")]
#[expect(dead_code, reason = "only its schema is of use")]
enum Line {
    Header(Header),
    Job(Box<JobLine>),
}

/// The JSON schema of a line of a trace.
pub fn schema() -> Value {
    json!(schema_for!(Line))
}

/// The lines of a trace, first the header, without line breaks. What is read of them is the trace
/// again.
pub fn lines(trace: &Trace) -> impl Iterator<Item = String> {
    let header = Header {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: (!trace.name.is_empty()).then(|| trace.name.clone()),
    };
    // Maps by text, numbers and texts: there is nothing that JSON does not have.
    let header = serde_json::to_string(&header).unwrap_or_default();
    let jobs = trace.jobs.iter().map(|job| line(job, &trace.jobs));
    let jobs = jobs.map(|job| serde_json::to_string(&job).unwrap_or_default());
    std::iter::once(header).chain(jobs)
}

fn line(job: &Job, jobs: &[Job]) -> JobLine {
    let id = Some(job.id.clone());
    let after = job.after.iter().map(|index| jobs[*index].id.clone());
    let memory = job.memory.iter();
    let memory = memory.map(|used| (json_number(used.at), used.bytes.into()));
    let retries = match job.retries {
        u32::MAX => -1,
        retries => retries.into(),
    };
    let mut line = JobLine {
        task: None,
        actor: None,
        placement_group: None,
        name: (job.name != job.id).then(|| job.name.clone()),
        at: json_number(job.at),
        after: after.collect(),
        seconds: json_number(job.seconds),
        resources: None,
        strategy: None,
        bundles: None,
        memory: memory.collect(),
        output: job.output.into(),
        retries: (job.retries != job.demand.usual_retries()).then_some(retries),
        count: None,
    };
    let amounts = |shape: &JobShape| -> LineAmounts {
        let amounts = shape.iter();
        amounts
            .map(|(name, amount)| (name.clone(), json_number(*amount)))
            .collect()
    };
    let some = |shape: &JobShape| (!shape.is_empty()).then(|| amounts(shape));
    match &job.demand {
        JobDemand::Task(shape) => (line.task, line.resources) = (id, some(shape)),
        JobDemand::Actor(shape) => (line.actor, line.resources) = (id, some(shape)),
        JobDemand::PlacementGroup { strategy, bundles } => {
            line.placement_group = id;
            line.strategy = Some(*strategy);
            line.bundles = Some(bundles.iter().map(amounts).collect());
        }
    }
    line
}

fn zero() -> Number {
    Number::from(0)
}

fn is_zero(number: &Number) -> bool {
    *number == zero()
}
