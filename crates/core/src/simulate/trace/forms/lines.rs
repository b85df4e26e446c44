//! Reading the project's own form: JSON lines.

use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Map, Number, Value, json};

use super::line::{API_VERSION, Header, JobLine, KIND, LineAmounts};
use crate::simulate::trace::draft::{JobDraft, bytes};
use crate::simulate::trace::error::{Place, TraceError, reason};
use crate::simulate::trace::job::{JobDemand, JobShape, MemoryUse, PlacementStrategy};
use crate::text::shown;

/// Most bytes of a line: a job that waits for ten thousands of others takes as much.
const LINE_BYTES: usize = 16 << 20;

/// The name that the header gives, and a description of each job.
pub(in crate::simulate::trace) fn read(
    text: &str,
) -> Result<(Option<String>, Vec<JobDraft>), TraceError> {
    let lines = text.lines().enumerate();
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let (first, line) = lines.next().unwrap_or_default();
    let place = Place::Line(first + 1);
    // Another version may have other fields, so the version comes before them.
    let keys: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| place.fault(reason(&error)))?;
    if keys.get("kind").and_then(Value::as_str) != Some(KIND) {
        return Err(place.fault(
            "the header is missing; write this as the first line: \
             {\"apiVersion\":\"rayfit.dev/v1alpha1\",\"kind\":\"Trace\",\"name\":\"...\"}",
        ));
    }
    let version = keys.get("apiVersion").unwrap_or(&Value::Null);
    if version != API_VERSION {
        let version = shown(version);
        return Err(place.fault(format!(
            "version {version} is not known; write \"apiVersion\":\"rayfit.dev/v1alpha1\", or take a newer release"
        )));
    }
    let header: Header = parse(&place, line)?;
    let drafts = lines.map(|(index, line)| {
        let place = Place::Line(index + 1);
        draft(parse(&place, line)?, place)
    });
    let drafts = drafts.collect::<Result<Vec<JobDraft>, TraceError>>()?;
    Ok((header.name, drafts))
}

fn parse<T: DeserializeOwned + JsonSchema>(place: &Place, line: &str) -> Result<T, TraceError> {
    if line.len() > LINE_BYTES {
        let remedy = "let the job wait for one that waits for many";
        return Err(place.many(LINE_BYTES, "bytes in it", remedy));
    }
    let error = match serde_json::from_str(line) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // Only where that fails is it looked for what may have been meant.
    let schema = json!(schema_for!(T));
    let fields = schema["properties"].as_object().into_iter().flatten();
    let fields: Vec<&str> = fields.map(|(name, _)| name.as_str()).collect();
    let keys: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    if let Some(unknown) = keys.keys().find(|key| !fields.contains(&key.as_str())) {
        let otherwise = || format!("there are {}", fields.join(", "));
        return Err(place.unknown("field", unknown, fields.iter().copied(), otherwise));
    }
    let mut parser = Deserializer::from_str(line);
    let text = match serde_path_to_error::deserialize::<_, T>(&mut parser) {
        Err(found) if error.is_data() && found.path().iter().next().is_some() => {
            format!("{}: {}", found.path(), reason(found.inner()))
        }
        _ => format!("{} (column {})", reason(&error), error.column()),
    };
    Err(place.fault(text))
}

fn draft(mut line: JobLine, place: Place) -> Result<JobDraft, TraceError> {
    let (id, demand) = demand(&mut line, &place)?;
    let used = line.memory.iter().map(|(at, amount)| {
        Ok(MemoryUse {
            at: float(at),
            bytes: bytes(&place, "memory", float(amount))?,
        })
    });
    let memory = used.collect::<Result<Vec<MemoryUse>, TraceError>>()?;
    let output = bytes(&place, "output", float(&line.output))?;
    let retries = match line.retries {
        None => demand.usual_retries(),
        Some(-1) => u32::MAX,
        Some(retries) => u32::try_from(retries).map_err(|_| {
            let expected = "it is 0 or more, or -1 for no end";
            place.wrong("retries", &retries.to_string(), expected)
        })?,
    };
    let mut draft = JobDraft::new(place, id, demand);
    let job = &mut draft.job;
    job.name = line.name.unwrap_or_else(|| job.id.clone());
    (job.at, job.seconds) = (float(&line.at), float(&line.seconds));
    (job.memory, job.output, job.retries) = (memory, output, retries);
    draft.after = line.after;
    draft.count = line.count.unwrap_or(1);
    Ok(draft)
}

fn demand(line: &mut JobLine, place: &Place) -> Result<(String, JobDemand), TraceError> {
    let misplaced =
        |field: &str, remedy: &str| place.fault(format!("there is no field {field}; {remedy}"));
    let shape = |amounts: LineAmounts| -> JobShape {
        let amounts = amounts.into_iter();
        amounts
            .map(|(name, amount)| (name, float(&amount)))
            .collect()
    };
    let resources = line.resources.take();
    let kind = (
        line.task.take(),
        line.actor.take(),
        line.placement_group.take(),
    );
    if let (None, None, Some(id)) = kind {
        if resources.is_some() {
            let field = "\"resources\" in a placement group";
            return Err(misplaced(field, "write bundles"));
        }
        let bundles = line.bundles.take().unwrap_or_default().into_iter();
        let demand = JobDemand::PlacementGroup {
            strategy: line.strategy.unwrap_or(PlacementStrategy::Pack),
            bundles: bundles.map(shape).collect(),
        };
        return Ok((id, demand));
    }
    if line.strategy.is_some() || line.bundles.is_some() {
        let field = "\"strategy\" or \"bundles\" in a task or an actor";
        return Err(misplaced(field, "write resources"));
    }
    let shape = resources.map(shape).unwrap_or_default();
    match kind {
        (Some(id), None, None) => Ok((id, JobDemand::Task(shape))),
        (None, Some(id), None) => Ok((id, JobDemand::Actor(shape))),
        _ => Err(place.missing(
            "one of task, actor and placementGroup",
            "each line but the first has exactly one, whose value is the id",
        )),
    }
}

/// NaN for a number that 64 bits do not hold: checks of amounts and times refuse that.
fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","name":"n"}"#;

    fn refused(line: &str) -> String {
        match read(&format!("{HEADER}\n\n{line}\n")) {
            Ok((_, mut drafts)) => drafts[0].check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_field_is_read() {
        let line = r#"{"placementGroup":"pg","name":"g","at":1.5,"after":["a"],"seconds":2,
            "strategy":"STRICT_SPREAD","bundles":[{"CPU":1},{"GPU":0.5}],"memory":[[0,1e9]],
            "retries":-1,"count":4}"#
            .replace('\n', "");
        let (name, drafts) = read(&format!("{HEADER}\n{line}")).unwrap();
        assert_eq!(name.as_deref(), Some("n"));
        let draft = &drafts[0];
        assert_eq!(
            (draft.job.id.as_str(), draft.job.name.as_str()),
            ("pg", "g")
        );
        assert_eq!((draft.count, draft.job.retries), (4, u32::MAX));
        assert_eq!(draft.after, ["a"]);
        assert_eq!(draft.job.memory[0].bytes, 1_000_000_000);
        let expected = JobDemand::PlacementGroup {
            strategy: PlacementStrategy::StrictSpread,
            bundles: vec![
                [("CPU".to_owned(), 1.0)].into(),
                [("GPU".to_owned(), 0.5)].into(),
            ],
        };
        assert_eq!(draft.job.demand, expected);
    }

    #[test]
    fn mistakes_are_reported_with_their_line_and_a_suggestion() {
        for (line, message) in [
            (
                r#"{"task":"t","secnds":3}"#,
                "line 3: there is no field \"secnds\"; did you mean \"seconds\"?",
            ),
            (
                r#"{"task":"t"}"#,
                "line 3: missing field `seconds` (column 12)",
            ),
            (
                r#"{"task":"t","seconds":"3"}"#,
                "line 3: seconds: invalid type: string \"3\", expected a JSON number",
            ),
            (
                r#"{"task":"t","actor":"a","seconds":3}"#,
                "line 3: one of task, actor and placementGroup is missing; each line but the first \
                 has exactly one, whose value is the id",
            ),
            (
                r#"{"placementGroup":"t","seconds":3,"resources":{"CPU":1}}"#,
                "line 3: there is no field \"resources\" in a placement group; write bundles",
            ),
            (
                r#"{"placementGroup":"t","seconds":3}"#,
                "line 3: bundles is missing; a placement group has at least one",
            ),
            (
                r#"{"task":"t","seconds":3,"retries":-2}"#,
                "line 3: retries is -2; it is 0 or more, or -1 for no end",
            ),
            (
                r#"{"task":"t","seconds":3,"memory":[[1,5],[0,5]]}"#,
                "line 3: a moment is 0; moments in memory are in the order of time",
            ),
            (
                r#"{"task":"t","seconds":3,"count":0}"#,
                "line 3: count is 0; it is 1 or more",
            ),
            (
                r#"{"task":"","seconds":3}"#,
                "line 3: the id is \"\"; it has 1 to 256 bytes, and no control characters",
            ),
            (
                r#"{"task":"t","seconds":-1}"#,
                "line 3: seconds is -1; a time is from 0 to 1e9 seconds",
            ),
            (
                r#"{"task":"t","#,
                "line 3: EOF while parsing a value (column 12)",
            ),
        ] {
            assert_eq!(refused(line), message);
        }
        let long = format!("{{\"task\":\"{}\",\"seconds\":1}}", "x".repeat(LINE_BYTES));
        assert!(refused(&long).starts_with("line 3: there are more than 16777216 bytes"));
    }

    #[test]
    fn a_header_comes_first_and_has_a_known_version() {
        let header = |text: &str| read(text).unwrap_err().to_string();
        let job = header(r#"{"task":"t","seconds":1}"#);
        assert!(job.starts_with("line 1: the header is missing"), "{job}");
        let newer = header(r#"{"apiVersion":"rayfit.dev/v9","kind":"Trace"}"#);
        assert!(
            newer.starts_with("line 1: version \"rayfit.dev/v9\" is not known"),
            "{newer}"
        );
        let typo = header(r#"{"apiVersion":"rayfit.dev/v1alpha1","kind":"Trace","nme":"x"}"#);
        assert!(typo.ends_with("did you mean \"name\"?"), "{typo}");
    }
}
