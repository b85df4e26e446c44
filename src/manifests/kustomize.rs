//! The kustomize folder: a base, components for what can be chosen, overlays that combine them.
//!
//! A component is the difference between two descriptions of an install, so it cannot say anything
//! else than [`objects()`] does.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::yaml::document;
use super::{Certificates, ManifestOptions, objects, to_yaml};

/// Texts of files by their path in the folder.
pub type Tree = BTreeMap<String, String>;

const HEADER: &str = "# Made by `rayfit manifests --write-to manifests`; change it there.\n";

/// The whole folder for an install with these options, whatever they say about certificates and
/// failure policy: there is an overlay for each combination.
pub fn tree(options: &ManifestOptions) -> Tree {
    let base = ManifestOptions {
        certificates: None,
        failure_policy: super::FailurePolicy::Open,
        ray_auth: false,
        ..options.clone()
    };
    let plain = objects(&base);
    let cert_manager = base.with_certificates(Certificates::CertManager);
    let self_managed = base.with_certificates(Certificates::SelfManaged);

    let mut tree = Tree::new();
    folder(&mut tree, "base", kustomization(), &[], &plain);
    component(&mut tree, "cert-manager", &plain, &objects(&cert_manager));
    component(&mut tree, "self-managed", &plain, &objects(&self_managed));
    component(
        &mut tree,
        "fail-closed",
        &plain,
        &objects(&base.fail_closed()),
    );
    component(
        &mut tree,
        "ray-auth",
        &plain,
        &objects(&base.with_ray_auth()),
    );
    for certificates in ["cert-manager", "self-managed"] {
        overlay(&mut tree, certificates, &[certificates]);
        let closed = format!("{certificates}-fail-closed");
        overlay(&mut tree, &closed, &[certificates, "fail-closed"]);
    }
    tree
}

fn kustomization() -> Value {
    json!({ "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization" })
}

/// Objects that only `after` has become files; what differs in the others becomes patches.
fn component(tree: &mut Tree, name: &str, before: &[Value], after: &[Value]) {
    let mut added = Vec::new();
    let mut patches = Vec::new();
    for object in after {
        match before
            .iter()
            .find(|other| identity(other) == identity(object))
        {
            None => added.push(object.clone()),
            Some(same) if same == object => {}
            Some(other) => patches.push((object, json!(json_patch::diff(other, object)))),
        }
    }
    let kind = json!({ "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component" });
    folder(tree, &format!("components/{name}"), kind, &patches, &added);
}

fn overlay(tree: &mut Tree, name: &str, components: &[&str]) {
    let path = |component: &&str| format!("../../components/{component}");
    let mut overlay = kustomization();
    overlay["resources"] = json!(["../../base"]);
    overlay["components"] = components.iter().map(path).collect();
    let file = format!("overlays/{name}/kustomization.yaml");
    tree.insert(file, format!("{HEADER}{}", document(&overlay)));
}

fn folder(
    tree: &mut Tree,
    name: &str,
    mut kustomization: Value,
    patches: &[(&Value, Value)],
    resources: &[Value],
) {
    let mut files: Vec<String> = Vec::new();
    for object in resources {
        let file = format!("{}.yaml", kebab(text(object, "kind")));
        if files.contains(&file) {
            continue;
        }
        let alike: Vec<Value> = resources
            .iter()
            .filter(|other| other["kind"] == object["kind"])
            .cloned()
            .collect();
        tree.insert(
            format!("{name}/{file}"),
            format!("{HEADER}{}", to_yaml(&alike)),
        );
        files.push(file);
    }
    if !files.is_empty() {
        kustomization["resources"] = json!(files);
    }
    let mut listed = Vec::new();
    for (object, patch) in patches {
        let file = format!("{}-patch.yaml", kebab(text(object, "kind")));
        listed.push(json!({ "path": file, "target": target(object) }));
        tree.insert(
            format!("{name}/{file}"),
            format!("{HEADER}{}", document(patch)),
        );
    }
    if !listed.is_empty() {
        kustomization["patches"] = json!(listed);
    }
    let file = format!("{name}/kustomization.yaml");
    tree.insert(file, format!("{HEADER}{}", document(&kustomization)));
}

/// What kustomize finds an object by.
fn target(object: &Value) -> Value {
    let mut target = json!({ "kind": object["kind"], "name": object["metadata"]["name"] });
    match text(object, "apiVersion").split_once('/') {
        Some((group, version)) => {
            target["group"] = json!(group);
            target["version"] = json!(version);
        }
        None => target["version"] = object["apiVersion"].clone(),
    }
    target
}

fn identity(object: &Value) -> [&Value; 4] {
    let metadata = &object["metadata"];
    [
        &object["apiVersion"],
        &object["kind"],
        &metadata["namespace"],
        &metadata["name"],
    ]
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// `PodDisruptionBudget` as `pod-disruption-budget`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
    }
    kebab
}
