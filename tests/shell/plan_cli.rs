//! `rayfit plan` as people and pipelines meet it.

use serde_json::{Value, json};

use crate::command::{Run, rayfit_reading};

fn plan(arguments: &[&str], input: &str) -> Run {
    rayfit_reading(&[&["plan"], arguments].concat(), input)
}

fn snapshot() -> Value {
    json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": "2026-01-14T12:00:00Z",
        "rayCluster": {"metadata": {"name": "demo", "namespace": "ray"}, "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}},
            "workerGroupSpecs": [{"groupName": "cpu", "replicas": 0, "minReplicas": 0, "maxReplicas": 40, "rayStartParams": {},
                "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "2"}}}]}}}],
        }},
        "pods": [{"metadata": {"name": "head", "labels": {"ray.io/node-type": "head", "ray.io/group": "headgroup"}}}],
        "gcs": {
            "node_states": [{"node_id": "AAECAw==", "instance_id": "head", "ray_node_type_name": "headgroup", "status": 1,
                "total_resources": {"node:__internal_head__": 1.0}, "idle_duration_ms": "0"}],
            "pendingResourceRequests": [{"request": {"resourcesBundle": {"CPU": 1}}, "count": "30"}],
        },
    })
}

#[test]
fn says_what_and_why() {
    let run = plan(&["-"], &snapshot().to_string());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.starts_with("ray/demo at 2026-01-14T12:00:00Z\n"),
        "{}",
        run.out
    );
    assert!(
        run.out
            .contains("group cpu: 0 -> 15 replicas (15 new nodes)"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("30 on new nodes (nodes of cpu: 15)"),
        "{}",
        run.out
    );
}

#[test]
fn ray_launches_ten_at_a_time() {
    let run = plan(
        &["--strategy", "ray", "-o", "json", "-"],
        &snapshot().to_string(),
    );
    let line: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(line["plan"]["groups"][0]["launchNow"], 10);
    assert_eq!(line["plan"]["groups"][0]["launch"], 15);
    assert_eq!(line["violations"], json!([]));
}

#[test]
fn yaml_and_json_lines_are_read_alike() {
    let yaml = "apiVersion: rayfit.dev/v1alpha1\nkind: Snapshot\ntime: 2026-01-14T12:00:00Z\nrayCluster: {metadata: {name: demo}, spec: {}}\n";
    assert_eq!(plan(&["-"], yaml).code, 0);
    let lines = format!("{}\n\n{}\n", snapshot(), snapshot());
    let run = plan(&["-o", "json", "-"], &lines);
    assert_eq!((run.code, run.out.lines().count()), (0, 2));
}

#[test]
fn a_bad_snapshot_is_exit_code_2_with_its_place_and_hides_nothing() {
    let mut bad = snapshot();
    bad["gcs"]["pendingResourceRequests"][0]["count"] = json!("many");
    let run = plan(&["-o", "json", "-"], &format!("{bad}\n{}\n", snapshot()));
    assert_eq!((run.code, run.out.lines().count()), (2, 1), "{}", run.out);
    assert!(
        run.err
            .contains("<stdin>: line 1: at gcs.pendingResourceRequests[0].count:"),
        "{}",
        run.err
    );

    let faults: [(&str, Value, &str); 5] = [
        (
            "time",
            json!("noon"),
            "at time: \"noon\" is not an RFC 3339 time",
        ),
        ("kind", json!("Pod"), "is not a snapshot"),
        ("rayCluster", Value::Null, "at rayCluster.spec: there is no"),
        (
            "rayCluster",
            json!({}),
            "at rayCluster.spec: there is no RayCluster with a spec",
        ),
        ("podz", json!([]), "unknown field `podz`"),
    ];
    for (key, value, message) in faults {
        let mut bad = snapshot();
        bad[key] = value;
        let run = plan(&["-"], &bad.to_string());
        assert_eq!(run.code, 2);
        assert!(run.err.contains(message), "{}", run.err);
    }
    assert_eq!(plan(&["-"], "{").code, 2);
    assert_eq!(plan(&["no-such-file.yaml"], "").code, 2);
}

#[test]
fn one_input_that_cannot_be_read_hides_no_other() {
    let inputs = ["no-such-file.yaml", "examples/good.yaml", "src", "-"];
    let run = plan(&inputs, &snapshot().to_string());
    assert_eq!(run.code, 2);
    assert!(run.out.contains("ray/demo at "), "{}", run.out);
    let complaints = [
        "no-such-file.yaml: there is no such file or folder",
        "examples/good.yaml: line 1: \"ray.io/v1 RayCluster\" is not a snapshot",
        "src: the folder has no",
    ];
    for complaint in complaints {
        assert!(run.err.contains(complaint), "{}", run.err);
    }
}

#[test]
fn the_example_is_planned() {
    let run = plan(&["examples/snapshot.yaml"], "");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.contains("resize w-1: 1 -> 4 CPU, 2Gi -> 8Gi"),
        "{}",
        run.out
    );
}

#[test]
fn schemas_are_printed() {
    for (what, title) in [("snapshot", "Snapshot"), ("plan", "PlanLine")] {
        let run = plan(&["--schema", what], "");
        let schema: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(schema["title"], title);
    }
}
