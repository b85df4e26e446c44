//! What a manifest says of itself, and how it is written, lets nothing pass `rayfit check` that
//! admission would deny, and keeps nothing from it that kubectl would apply.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::review_support::{bad_cluster, cluster};

/// The exit code of `rayfit check`, and what it wrote.
fn check(name: &str, files: &[(&str, &Value)], arguments: &[&str]) -> (i32, String) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("attacks-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    for (file, value) in files {
        std::fs::write(folder.join(file), value.to_string()).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .arg("check")
        .args(arguments)
        .current_dir(&folder)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

#[test]
fn a_forged_owner_excuses_nothing_offline() {
    let mut forged = bad_cluster();
    forged["metadata"]["ownerReferences"] = json!([{"apiVersion": "ray.io/v1", "kind": "RayJob",
        "name": "nightly", "uid": "1", "controller": true}]);
    let (code, said) = check("forged", &[("a.json", &forged)], &["a.json"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("RF105 error"), "{said}");
    // What an API server has stored was made by KubeRay, and admission only audits it.
    forged["metadata"]["uid"] = json!("2");
    let (code, said) = check("stored", &[("a.json", &forged)], &["a.json"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_stored_object_is_found_whichever_side_names_the_namespace() {
    let in_git = {
        let mut object = bad_cluster();
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("namespace");
        object["metadata"]["labels"] = json!({"team": "a"});
        object
    };
    let stored = bad_cluster();
    let files = [("new.json", &in_git), ("old.json", &stored)];
    let (code, said) = check("inherited", &files, &["new.json", "--old", "old.json"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("RF105 warning"), "{said}");
    let files = [("new.json", &stored), ("old.json", &in_git)];
    let (code, said) = check("inherited", &files, &["new.json", "--old", "old.json"]);
    assert_eq!(code, 0, "{said}");
    // Two namespaces have one of the name: nobody can tell which.
    let mut other = stored.clone();
    other["metadata"]["namespace"] = "other".into();
    let both = json!({"kind": "List", "apiVersion": "v1", "items": [stored, other]});
    let files = [("new.json", &in_git), ("old.json", &both)];
    let (code, said) = check("ambiguous", &files, &["new.json", "--old", "old.json"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("write its namespace"), "{said}");
}

/// A policy for a namespace holds for a manifest that does not name it, once the stored one does.
#[test]
fn a_manifest_is_judged_by_the_policies_of_what_it_changes() {
    let team = json!({"kubernetes.io/metadata.name": "ml"});
    let policy = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
        "metadata": {"name": "p"}, "spec": {"match": {"namespaceSelector": {"matchLabels": team}},
        "limits": {"maxWorkersPerCluster": 5}}});
    let mut grown = cluster();
    grown["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    grown["spec"]["workerGroupSpecs"][0]["replicas"] = 6.into();
    grown["spec"]["workerGroupSpecs"][0]["maxReplicas"] = 6.into();
    let files = [
        ("new.json", &grown),
        ("old.json", &cluster()),
        ("p.json", &policy),
    ];
    let arguments = ["new.json", "--old", "old.json", "--policy", "p.json"];
    let (code, said) = check("namespace", &files, &arguments);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("RF501"), "{said}");
}

#[test]
fn a_null_that_the_api_server_drops_counts_as_absent() {
    let mut object = cluster();
    object["spec"]["enableInTreeAutoscaling"] = true.into();
    object["metadata"]["annotations"]["ray.io/ippr"] =
        json!({"groups": {"small": {"max-cpu": 4, "max-memory": "8Gi", "resize-timeout": 60}}})
            .to_string()
            .into();
    let (code, said) = check("whole", &[("a.json", &object)], &["a.json"]);
    assert_eq!(code, 0, "{said}");
    let resources = "/spec/workerGroupSpecs/0/template/spec/containers/0/resources";
    object.pointer_mut(resources).unwrap()["requests"] = json!({"cpu": null, "memory": null});
    object["spec"]["workerGroupSpecs"][0]["rayStartParams"]["num-cpus"] = Value::Null;
    let (code, said) = check("nulls", &[("a.json", &object)], &["a.json"]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn limits_that_a_name_escapes_are_pointed_out_beside_what_they_find() {
    let policy = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
        "metadata": {"name": "p"}, "spec": {"match": {"names": ["exp-*"]},
        "limits": {"maxWorkersPerCluster": 5}}});
    let files = [("a.json", &cluster()), ("p.json", &policy)];
    let (code, said) = check("escape", &files, &["a.json", "--policy", "p.json"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("avoid maxWorkersPerCluster"), "{said}");
}
