//! The files of the Helm chart that are made from the code: what its templates, which are written by
//! hand, take as it stands.

use serde_json::{Map, Value};

use super::kustomize::Tree;
use super::names::{self, APP};
use super::yaml::document;
use super::{Certificates, ManifestOptions, objects};
use crate::policy::resource;

const HEADER: &str = "# Made by `rayfit manifests --write-to manifests`; change it there.\n";

/// The files by their path in the folder of the manifests.
pub fn files() -> Tree {
    let file = |name: &str, value: &Value| {
        let path = format!("helm/files/{name}");
        (path, format!("{HEADER}{}", document(value)))
    };
    let definition = names::labelled(resource::definition());
    Tree::from([
        file("custom-resource-definition.yaml", &definition),
        file("rights.yaml", &rights()),
    ])
}

/// The rules of every role by its purpose: `rayfit-watch` is for `watch`.
fn rights() -> Value {
    let everything = ManifestOptions::default()
        .with_certificates(Certificates::SelfManaged)
        .with_ray_auth();
    let mut rights = Map::new();
    for object in objects(&everything) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let purpose = name
            .strip_prefix(APP)
            .and_then(|name| name.strip_prefix('-'));
        if let (Some(purpose), Some(rules)) = (purpose, object.get("rules")) {
            rights.insert(purpose.to_owned(), rules.clone());
        }
    }
    Value::Object(rights)
}
