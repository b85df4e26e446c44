//! Reading a workload of any form: the form is recognized by what is in it.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::Deserializer;

use super::assemble::{assemble, some};
use super::draft::as_name;
use super::error::{Place, TraceError};
use super::forms::{lines, ray_tasks, table};
use super::job::Trace;
use super::loss::Loss;

/// A form in which workloads come.
#[derive(Debug, PartialEq)]
enum Form {
    /// The project's own: JSON lines.
    Lines,
    /// The output of `ray list tasks`.
    RayTasks,
    /// CSV.
    Table,
}

/// The fault of a text in none of these forms.
const NO_FORM: &str = "it has no known form of a workload:
  - JSON lines (rayfit trace --schema describes a line)
  - Ray's list of tasks (ray list tasks --detail --format json --limit 10000)
  - CSV whose header has seconds or duration
docs/traces.md has an example of each";

/// Reads a workload of any form. It is called what it calls itself, or else `name`.
///
/// # Errors
///
/// The text is no workload: place, fault and remedy.
pub fn read(text: &str, name: &str) -> Result<Trace, TraceError> {
    Ok(import(text, name)?.0)
}

/// Reads as [`read`] does, and says which facts were left out or assumed.
///
/// # Errors
///
/// As of [`read`].
pub fn import(text: &str, name: &str) -> Result<(Trace, Vec<Loss>), TraceError> {
    let text = text.trim_start_matches('\u{feff}');
    let form = recognize(text).ok_or_else(|| Place::Whole.fault(NO_FORM))?;
    let (own_name, drafts, losses) = match form {
        Form::Lines => {
            let (name, drafts) = lines::read(text)?;
            (name, drafts, Vec::new())
        }
        Form::Table => (None, table::read(text)?, Vec::new()),
        Form::RayTasks => {
            let (drafts, losses) = ray_tasks::read(text)?;
            (None, drafts, losses)
        }
    };
    let hint = if losses.is_empty() {
        ""
    } else {
        " that has ended"
    };
    some(&drafts, hint)?;
    let name = own_name.unwrap_or_else(|| name.to_owned());
    Ok((assemble(as_name(&name), drafts)?, losses))
}

/// The form of a text, by the names of the first fields in it.
fn recognize(text: &str) -> Option<Form> {
    let text = text.trim_start();
    let items = text.strip_prefix('[');
    // An empty list has no object to tell its form by. Ray prints one where nothing ran; as
    // that it gets the message about a trace without jobs.
    if items.is_some_and(|items| items.trim_start().starts_with(']')) {
        return Some(Form::RayTasks);
    }
    // Only the first object is read, so that a large file is not parsed twice.
    let objects = Deserializer::from_str(items.unwrap_or(text));
    let mut objects = objects.into_iter::<BTreeMap<String, Option<IgnoredAny>>>();
    let first = objects.next().and_then(Result::ok);
    let has = |object: &BTreeMap<String, Option<IgnoredAny>>, keys: &[&str]| {
        keys.iter()
            .any(|key| object.get(*key).is_some_and(Option::is_some))
    };
    if items.is_some() {
        let is_record = has(&first?, &["task_id", "bundles", "class_name"]);
        return is_record.then_some(Form::RayTasks);
    }
    let line = text.lines().next()?;
    if !text.starts_with('{') {
        return table::is_header(line).then_some(Form::Table);
    }
    let is_own = match first {
        Some(first) => has(&first, &["kind", "task", "actor", "placementGroup"]),
        // A line that is cut off is told as such.
        None => line.contains("\"Trace\""),
    };
    is_own.then_some(Form::Lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_recognised_by_their_content() {
        for (text, form) in [
            (
                "\u{feff}{\"kind\":\"Trace\",\"apiVersion\":\"x\"}",
                Form::Lines,
            ),
            ("{\"task\":\"t\",\"seconds\":1}\n", Form::Lines),
            ("{\"kind\":\"Trace\",", Form::Lines),
            ("[{\"task_id\":\"t\"}]", Form::RayTasks),
            (
                "[{\"placement_group_id\":\"t\",\"bundles\":[]}]",
                Form::RayTasks,
            ),
            ("[]", Form::RayTasks),
            ("id, \"Duration\"\n", Form::Table),
        ] {
            let text = text.trim_start_matches('\u{feff}');
            assert_eq!(recognize(text), Some(form), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1]",
            "{}",
            "null",
            "a,b\n1,2",
            "---\n- task_id: t",
        ] {
            assert_eq!(recognize(text), None, "{text}");
        }
    }

    #[test]
    fn an_unknown_form_leads_to_a_list_of_the_known_ones() {
        let error = read("kind: Trace\n", "x").unwrap_err().to_string();
        for form in ["JSON lines", "ray list tasks", "CSV"] {
            assert!(error.contains(form), "{error}");
        }
    }

    #[test]
    fn what_is_empty_is_refused_and_not_read_as_nothing_to_do() {
        for text in ["[]", "seconds\n"] {
            let error = read(text, "x").unwrap_err().to_string();
            assert!(
                error.starts_with("there is no job in it"),
                "{text}: {error}"
            );
        }
    }
}
