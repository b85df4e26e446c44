//! Files that must be readable: manifests, and facts about a cluster.

use std::path::Path;

use anyhow::Context as _;
use rayfit_core::facts::Facts;
use rayfit_core::objects::items;
use rayfit_core::report::{UnreadInput, Unreadable};
use rayfit_core::yaml::{self, Document, YamlFault};
use serde_json::Value;

use super::source;

/// Facts about a Kubernetes cluster, from a file; none without one.
pub(in crate::cli) fn facts(path: Option<&Path>) -> anyhow::Result<Facts> {
    let Some(path) = path else {
        return Ok(Facts::default());
    };
    let values = documents(path)?.into_iter().map(|document| document.value);
    let value = values.into_iter().find(|value| !value.is_null());
    serde_json::from_value(value.unwrap_or_else(|| Value::Object(serde_json::Map::new())))
        .with_context(|| {
            format!(
                "{}: this is not a file of facts about a cluster",
                path.display()
            )
        })
}

/// Every document of a file that must be readable.
pub(in crate::cli) fn documents(path: &Path) -> anyhow::Result<Vec<Document>> {
    let source = source::single(path);
    let name = source.name();
    let text = source.read().with_context(|| name.clone())?;
    let documents = yaml::read(&text).into_iter();
    documents
        .map(|document| document.map_err(|fault| unread(&name, fault)))
        .collect()
}

/// The error of a document that is no manifest.
pub(in crate::cli) fn unread(file: &str, fault: YamlFault) -> anyhow::Error {
    let file = file.to_owned();
    let reason = Unreadable::Content(fault);
    anyhow::anyhow!("{}", UnreadInput { file, reason })
}

/// Every object of a file that must be readable, with those in lists.
pub(in crate::cli) fn objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let documents = documents(path)?;
    let items = documents.iter().flat_map(|document| items(&document.value));
    Ok(items.map(|item| item.object.into_owned()).collect())
}
