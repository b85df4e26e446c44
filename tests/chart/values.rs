//! The values of the chart, as one table: values.yaml, its schema and the README follow from it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rayfit_core::manifests::to_yaml;
use serde_json::{Map, Value, json};

use super::entries::{COMMON, DEPLOYMENTS, EACH, Entry, Source};

/// What `rayfit manifests --help` says of a flag.
struct FlagHelp {
    help: String,
    /// The values without the flag.
    default: Vec<String>,
}

fn flags() -> BTreeMap<String, FlagHelp> {
    let command = rayfit::cli::command();
    let flags = command
        .find_subcommand("manifests")
        .unwrap()
        .get_arguments();
    let flags = flags.filter_map(|argument| {
        let help = argument.get_long_help().or(argument.get_help());
        let default = argument.get_default_values().iter();
        let flag = FlagHelp {
            help: help.map(ToString::to_string).unwrap_or_default(),
            default: default
                .map(|value| value.to_string_lossy().into_owned())
                .collect(),
        };
        Some((argument.get_long()?.to_owned(), flag))
    });
    flags.collect()
}

/// A value of the chart.
pub(super) struct ChartValue {
    pub(super) path: String,
    pub(super) schema: Value,
    pub(super) default: Value,
    pub(super) help: String,
}

/// All values in the order of the file. `objects` are those of an installation as it comes.
pub(super) fn all(objects: &[Value]) -> Vec<ChartValue> {
    let flags = &flags();
    let common = COMMON.iter();
    let mut values: Vec<ChartValue> = common
        .map(|entry| value("", entry, flags, &Value::Null))
        .collect();
    for (prefix, deployment) in DEPLOYMENTS {
        let is_it = |object: &&Value| {
            object["kind"] == "Deployment" && object["metadata"]["name"] == deployment
        };
        let pod = objects
            .iter()
            .find(is_it)
            .map(|object| &object["spec"]["template"]["spec"]);
        let pod = pod.unwrap_or(&Value::Null);
        let prefix = format!("{prefix}.");
        let at = values
            .iter()
            .rposition(|value| value.path.starts_with(&prefix));
        let of = EACH.iter().map(|entry| value(&prefix, entry, flags, pod));
        let of: Vec<ChartValue> = of.collect();
        let at = at.map_or(values.len(), |at| at + 1);
        values.splice(at..at, of);
    }
    values
}

fn value(
    prefix: &str,
    entry: &Entry,
    flags: &BTreeMap<String, FlagHelp>,
    pod: &Value,
) -> ChartValue {
    let (path, schema, source) = entry;
    let schema = parsed(schema);
    let (default, help) = match source {
        Source::Own(default, help) => (parsed(default), (*help).to_owned()),
        Source::Pod(pointer, help) => (
            pod.pointer(pointer).cloned().unwrap_or_default(),
            (*help).to_owned(),
        ),
        Source::Flag(flag) => match flags.get(*flag) {
            Some(flag) => (
                of_flag(&schema, &flag.default),
                in_words_of_values(&flag.help),
            ),
            None => (Value::Null, String::new()),
        },
    };
    ChartValue {
        path: format!("{prefix}{path}"),
        schema,
        default,
        help,
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// The default of a flag, as the schema has it.
fn of_flag(schema: &Value, default: &[String]) -> Value {
    let is_list = schema["type"] == "array";
    let items = default.iter().flat_map(|text| text.split(','));
    let items = items.map(|text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)));
    let mut items: Vec<Value> = items.collect();
    if is_list {
        return Value::Array(items);
    }
    items
        .pop()
        .unwrap_or_else(|| match schema["type"].as_str() {
            Some("boolean") => json!(false),
            _ => json!(""),
        })
}

/// A help text, in which the names of values stand in place of flags.
fn in_words_of_values(help: &str) -> String {
    let mut text = help.replace("; can be repeated", "").replace("\n\n", ". ");
    let flags = COMMON.iter().filter_map(|(path, _, source)| match source {
        Source::Flag(flag) => Some((*flag, *path)),
        _ => None,
    });
    let mut flags: Vec<(&str, &str)> = flags.collect();
    // A flag may be the beginning of another one.
    flags.sort_by_key(|(flag, _)| std::cmp::Reverse(flag.len()));
    for (flag, path) in flags {
        text = text.replace(&format!("--{flag}"), path);
    }
    text
}

/// values.yaml.
pub(super) fn yaml(values: &[ChartValue]) -> String {
    let mut text = String::new();
    let mut open: Vec<&str> = Vec::new();
    for value in values {
        let names: Vec<&str> = value.path.split('.').collect();
        let (name, above) = names.split_last().unwrap_or((&"", &[]));
        let same = open
            .iter()
            .zip(above)
            .take_while(|(left, right)| left == right)
            .count();
        for (depth, key) in above.iter().enumerate().skip(same) {
            let _ = writeln!(text, "\n{}{key}:", "  ".repeat(depth));
        }
        open = above.to_vec();
        let indent = "  ".repeat(above.len());
        if !text.ends_with(":\n") {
            text.push('\n');
        }
        for line in wrapped(&value.help, 108 - indent.len()) {
            let _ = writeln!(text, "{indent}# {line}");
        }
        let document = to_yaml(std::slice::from_ref(&value.default));
        if matches!(&value.default, Value::Object(fields) if !fields.is_empty()) {
            let _ = writeln!(text, "{indent}{name}:");
            for line in document.lines() {
                let _ = writeln!(text, "{indent}  {line}");
            }
        } else {
            let _ = writeln!(text, "{indent}{name}: {}", value.default);
        }
    }
    text
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// values.schema.json.
pub(super) fn schema(values: &[ChartValue]) -> Value {
    let mut root = closed();
    root["$schema"] = json!("https://json-schema.org/draft-07/schema#");
    // Helm hands values of a chart above to every chart below it.
    root["properties"]["global"] = json!({ "type": "object" });
    for value in values {
        let mut at = &mut root;
        let names: Vec<&str> = value.path.split('.').collect();
        let (name, above) = names.split_last().unwrap_or((&"", &[]));
        for key in above {
            let properties = &mut at["properties"];
            if properties[key].is_null() {
                properties[key] = closed();
            }
            at = &mut properties[key];
        }
        at["properties"][name] = value.schema.clone();
    }
    root
}

fn closed() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": Map::new() })
}

/// The table of the README.
pub(super) fn table(values: &[ChartValue]) -> String {
    let mut text = String::from("| value | default | |\n|---|---|---|\n");
    for value in values {
        let help = value.help.replace('|', "\\|");
        let _ = writeln!(text, "| `{}` | `{}` | {help} |", value.path, value.default);
    }
    text
}
