//! Scenarios: `tests/fixtures/plan/*.yaml`, each a short story; the plans of both strategies and
//! their reports are snapshots beside it. A new one costs ten lines:
//!
//! ```yaml
//! story: what happens, in a sentence
//! groups: {cpu: {cpu: 1, memory: 2Gi, max: 3, replicas: 1, limits: {cpu: 4, memory: 8Gi}}}
//! pods: {cpu-1: {group: cpu, free: {CPU: 0}}}     # Ray runs in it, `pending: true` if not
//! tasks: [{CPU: 2, count: 3}]                     # also: gangs, ask (request_resources)
//! cluster: {status: {..}}                         # more of the RayCluster
//! reconcile: {headroom: {cpus: 4}}                # of a RayPolicy
//! ```

use std::path::Path;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rayfit_core::facts::Facts;
use rayfit_core::plan::check::check;
use rayfit_core::plan::{Plan, PlanSettings, Slice, Strategy, decide};
use rayfit_core::policy::Policies;
use rayfit_core::policy::settings::ReconcileSettings;
use rayfit_core::quantity::Quantity;
use rayfit_core::ray::RayObject;
use rayfit_core::raypolicy::compile;
use rayfit_core::reconcile::RoundSettings;
use rayfit_core::snapshot::Snapshot;
use serde_json::{Map, Value, json};

const NOW: &str = "2026-01-14T12:00:00Z";

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// The snapshot of a story; `history` in it is the snapshot's.
fn snapshot(story: &Value) -> Value {
    let mut pods = vec![pod(
        "head",
        "headgroup",
        "head",
        &json!({"cpu": 1, "memory": "2Gi"}),
        &story["head"],
    )];
    let mut nodes = vec![ray_node(
        "head",
        "headgroup",
        &json!({"total": {"node:__internal_head__": 1}}),
        &json!({}),
    )];
    for (name, of) in map(&story["pods"]).iter().flat_map(alike) {
        let group = of["group"].as_str().unwrap();
        let spec = &story["groups"][group];
        pods.push(pod(&name, group, "worker", spec, &of));
        if of["pending"] != true {
            nodes.push(ray_node(&name, group, &of, spec));
        }
    }
    let groups: Vec<Value> = map(&story["groups"])
        .iter()
        .map(|(name, group)| worker_group(name, group))
        .collect();
    let mut snapshot = json!({
        "apiVersion": "rayfit.dev/v1alpha1", "kind": "Snapshot", "time": NOW,
        "rayCluster": {
            "metadata": {"name": "demo", "namespace": "ray", "annotations": {"ray.io/ippr": resize_limits(&story["groups"]).to_string()}},
            "spec": {
                "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": {"spec": {"containers": [container("head", &json!({"cpu": 1, "memory": "2Gi"}), None)]}}},
                "workerGroupSpecs": groups,
            },
        },
        "pods": pods,
        "gcs": {
            "nodeStates": nodes,
            "pendingResourceRequests": list(&story["tasks"]).iter().map(|task| json!({"request": request(task), "count": task["count"].as_i64().unwrap_or(1)})).collect::<Vec<_>>(),
            "pendingGangResourceRequests": list(&story["gangs"]).iter().enumerate().map(gang).collect::<Vec<_>>(),
            "clusterResourceConstraints": constraints(&story["ask"]),
        },
        "history": story["history"].as_object().cloned().unwrap_or_default(),
    });
    if story["cluster"].is_object() {
        json_patch::merge(&mut snapshot["rayCluster"], &story["cluster"]);
    }
    if story["nodes"].is_object() {
        snapshot["nodes"] = map(&story["nodes"]).iter().map(kube_node).collect();
    }
    snapshot
}

/// `cordoned`, `deleting`, `taints` beside what is allocatable.
fn kube_node((name, of): (&String, &Value)) -> Value {
    let mut node = json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": of["cpu"], "memory": of["memory"]}},
        "spec": {"unschedulable": of["cordoned"] == true, "taints": list(&of["taints"])}});
    if of["deleting"] == true {
        node["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    node
}

/// `count: 3`: three pods alike.
fn alike((name, of): (&String, &Value)) -> Vec<(String, Value)> {
    let count = of["count"].as_u64();
    let all = |count| (1..=count).map(|number| (format!("{name}-{number:02}"), of.clone()));
    count.map_or_else(
        || vec![(name.clone(), of.clone())],
        |count| all(count).collect(),
    )
}

fn resize_limits(groups: &Value) -> Value {
    let groups = map(groups).into_iter().filter(|(_, group)| group["limits"].is_object()).map(|(name, group)| {
        let limits = &group["limits"];
        let entry = json!({"max-cpu": limits["cpu"], "max-memory": limits["memory"], "resize-timeout": 300});
        (name, entry)
    });
    json!({"groups": groups.collect::<Map<_, _>>()})
}

fn worker_group(name: &str, group: &Value) -> Value {
    let mut spec = json!({
        "groupName": name,
        "replicas": group["replicas"].as_i64().unwrap_or(0),
        "minReplicas": group["min"].as_i64().unwrap_or(0),
        "maxReplicas": group["max"].as_i64().unwrap_or(10),
        "rayStartParams": {},
        "template": {"spec": {"containers": [container("worker", group, None)]}},
    });
    for key in [
        "labels",
        "priority",
        "idleTimeoutSeconds",
        "numOfHosts",
        "resources",
        "scaleStrategy",
    ] {
        if !group[key].is_null() {
            spec[key] = group[key].clone();
        }
    }
    let env = map(&group["env"]).into_iter();
    let env = env.map(|(name, value)| json!({"name": name, "value": value}));
    spec["template"]["spec"]["containers"][0]["env"] = env.collect();
    if group["pod"].is_object() {
        spec["template"]["spec"]["resources"] = group["pod"].clone();
    }
    if !group["nodeSelector"].is_null() {
        spec["template"]["spec"]["nodeSelector"] = group["nodeSelector"].clone();
    }
    spec
}

fn container(name: &str, group: &Value, size: Option<&Value>) -> Value {
    let size = size.unwrap_or(group);
    let mut amounts = json!({"cpu": size["cpu"], "memory": size["memory"]});
    if !group["gpu"].is_null() {
        amounts["nvidia.com/gpu"] = group["gpu"].clone();
    }
    for (device, count) in map(&group["devices"]) {
        amounts[device] = count;
    }
    json!({"name": name, "resources": {"requests": amounts, "limits": amounts}})
}

/// `size`: what its spec asks for; `given`: what it has; `resize`: Ray's record; `condition`;
/// `generation`; `unschedulable`, `gated`: for so many seconds; `prospects`: what node autoscalers say of it;
/// `killed`: when its grace period ends; `created`; `tolerations`; `late`: how far it has come for so many
/// `seconds`: to its `init` container of that name, or to a raylet that is not ready.
fn pod(name: &str, group: &str, role: &str, spec: &Value, of: &Value) -> Value {
    let container = container(
        if role == "head" { "head" } else { "worker" },
        spec,
        of["size"].as_object().map(|_| &of["size"]),
    );
    let given = of["given"]
        .as_object()
        .map_or(container["resources"].clone(), |given| {
            let given = json!(given);
            json!({"requests": given, "limits": given})
        });
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"ray.io/cluster": "demo", "ray.io/node-type": role, "ray.io/group": group}},
        "spec": {"containers": [container], "nodeName": of["node"]},
        "status": {"phase": "Running", "containerStatuses": [{"name": container["name"], "state": {"running": {}}, "resources": given}]},
    });
    if of["killed"].is_string() {
        pod["metadata"]["deletionTimestamp"] = of["killed"].clone();
    }
    if of["created"].is_string() {
        pod["metadata"]["creationTimestamp"] = of["created"].clone();
    }
    if of["tolerations"].is_array() {
        pod["spec"]["tolerations"] = of["tolerations"].clone();
    }
    if of["replica"].is_string() {
        pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] = of["replica"].clone();
    }
    if of["resize"].is_object() {
        pod["metadata"]["annotations"] = json!({"ray.io/ippr-status": of["resize"].to_string()});
    }
    if of["starting"] == true {
        pod["status"]["phase"] = json!("Pending");
    }
    if let Some(seconds) = of["unschedulable"].as_i64() {
        let now: Timestamp = NOW.parse().unwrap();
        pod["metadata"]["creationTimestamp"] = json!(now - SignedDuration::from_secs(seconds));
        pod["status"]["phase"] = json!("Pending");
        pod["status"]["conditions"] =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    }
    if let Some(seconds) = of["gated"].as_i64() {
        let now: Timestamp = NOW.parse().unwrap();
        pod["metadata"]["creationTimestamp"] = json!(now - SignedDuration::from_secs(seconds));
        pod["status"]["phase"] = json!("Pending");
        pod["spec"]["schedulingGates"] = json!([{"name": "kueue.x-k8s.io/elastic-job"}]);
    }
    if let Some(seconds) = of["late"]["seconds"].as_i64() {
        let now: Timestamp = NOW.parse().unwrap();
        let since = json!(now - SignedDuration::from_secs(seconds));
        pod["metadata"]["creationTimestamp"] = since.clone();
        pod["spec"]["nodeName"] = json!("n");
        if of["late"]["init"].is_string() {
            pod["status"] = json!({"phase": "Pending", "initContainerStatuses": [
                {"name": of["late"]["init"], "state": {"running": {"startedAt": since}}}]});
        } else {
            pod["status"]["conditions"] =
                json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]);
        }
    }
    if of["prospects"].is_array() {
        pod["nodeProspects"] = of["prospects"].clone();
    }
    if of["condition"].is_object() {
        let mut condition = of["condition"].clone();
        if condition["status"].is_null() {
            condition["status"] = json!("True");
        }
        pod["status"]["conditions"] = json!([condition]);
        pod["metadata"]["generation"] = of["generation"].clone();
    }
    pod
}

/// `free`: what is free where not all is; `idle`: seconds; `draining`, `dead`; `says`: the group that it names
/// where that is not its pod's; `total`: what it has where not its size;
/// `inUse`: the memory that is really in use, `rise`: by how much it grows a second, `told`: how many
/// seconds ago.
fn ray_node(name: &str, group: &str, of: &Value, spec: &Value) -> Value {
    let size = |key: &str| {
        Quantity::from_json(
            of["given"]
                .get(key)
                .or(of["size"].get(key))
                .unwrap_or(&spec[key]),
        )
        .ok()
    };
    let units = |quantity: Quantity| quantity.to_string().parse::<f64>().unwrap();
    let mut total = Map::new();
    total.extend(size("cpu").map(|cpu| ("CPU".to_owned(), json!(units(cpu).ceil()))));
    total.extend(size("memory").map(|memory| ("memory".to_owned(), json!(units(memory)))));
    total.extend(
        spec["gpu"]
            .as_f64()
            .map(|gpus| ("GPU".to_owned(), json!(gpus))),
    );
    total.extend(map(&of["total"]));
    let mut free = total.clone();
    free.extend(map(&of["free"]));
    free.retain(|_, amount| amount.as_f64() != Some(0.0));
    let idle = of["idle"].as_i64().unwrap_or(0) * 1000;
    let id: Vec<u8> = name.bytes().cycle().take(28).collect();
    let id = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, id);
    let status = match idle {
        _ if of["dead"] == true => "DEAD",
        _ if of["draining"] == true => "DRAINING",
        0 => "RUNNING",
        _ => "IDLE",
    };
    let mut node = json!({
        "nodeId": id, "instanceId": name, "rayNodeTypeName": of["says"].as_str().unwrap_or(group), "totalResources": total,
        "availableResources": free, "status": status, "idleDurationMs": idle.to_string(), "labels": spec["labels"],
    });
    let bytes = |key: &str| Quantity::from_json(&of[key]).map_or(0, whole);
    if !of["inUse"].is_null() {
        let now: Timestamp = NOW.parse().unwrap();
        let at = now.as_second() - of["told"].as_i64().unwrap_or(0);
        node["memoryInUse"] = json!({"bytes": bytes("inUse"), "risePerS": bytes("rise"), "at": at});
    }
    node
}

fn whole(quantity: Quantity) -> i64 {
    i64::try_from(quantity.nanos() / 1_000_000_000).unwrap()
}

/// `{CPU: 1, where: {zone: [a]}}`
fn request(task: &Value) -> Value {
    let mut bundle = map(task);
    // Of a list, the second and further ones are what the task falls back to.
    let selectors = match bundle.remove("where").unwrap_or_default() {
        Value::Array(selectors) => selectors,
        selector => vec![selector],
    };
    bundle.remove("count");
    let selectors = selectors.iter().map(|labels| {
        let conditions = map(labels).into_iter().map(|(key, values)| json!({"labelKey": key, "operator": "LABEL_OPERATOR_IN", "labelValues": values}));
        json!({"labelConstraints": conditions.collect::<Vec<_>>()})
    });
    json!({"resourcesBundle": bundle, "labelSelectors": selectors.collect::<Vec<_>>()})
}

/// `{strategy: STRICT_SPREAD, bundles: [{CPU: 1}, {CPU: 1}]}`
fn gang((number, gang): (usize, &Value)) -> Value {
    let label = json!({"labelName": format!("_PG_{number}"), "labelValue": ""});
    let bundles = list(&gang["bundles"]).into_iter().map(|bundle| {
        let constraints = match gang["strategy"].as_str() {
            Some("STRICT_PACK") => json!([{"affinity": label}]),
            Some("STRICT_SPREAD") => json!([{"antiAffinity": label}]),
            _ => json!([]),
        };
        json!({"resourcesBundle": bundle, "placementConstraints": constraints})
    });
    json!({"requests": bundles.collect::<Vec<_>>(), "details": format!("{number:02}:{}|PENDING", gang["strategy"].as_str().unwrap())})
}

fn constraints(asked: &Value) -> Value {
    match asked.as_array() {
        None => json!([]),
        Some(bundles) => json!([{"resourceRequests": bundles.iter().map(|bundle| {
            let mut request = request(bundle);
            request["labelSelectors"] = json!([]);
            json!({"request": request, "count": bundle["count"].as_i64().unwrap_or(1)})
        }).collect::<Vec<_>>()}]),
    }
}

/// The settings of a story.
fn settings(story: &Value, strategy: Strategy) -> PlanSettings {
    PlanSettings {
        ..of_policy(&story["reconcile"], strategy)
    }
}

/// The settings of a policy with that section `reconcile`.
fn of_policy(reconcile: &Value, strategy: Strategy) -> PlanSettings {
    let written = json!({"apiVersion": "rayfit.dev/v1alpha1", "kind": "RayPolicy",
        "metadata": {"name": "story"}, "spec": {"reconcile": reconcile}});
    let (policy, faults) = compile(&compile::read(&written).unwrap());
    assert_eq!(faults, []);
    let cluster = json!({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {}});
    let folded = Policies::new(policy.into_iter().collect()).reconcile_for(
        &ReconcileSettings::default(),
        &RayObject::parse(&cluster).unwrap(),
        &Facts::default(),
    );
    PlanSettings {
        strategy,
        ..RoundSettings::of(&folded).plan
    }
}

fn told(snapshot: &Snapshot, settings: &PlanSettings) -> String {
    let (plan, report) = decide(snapshot, settings);
    let strategy = settings.strategy;
    let violations = check(snapshot, &plan)
        .iter()
        .fold(String::new(), |text, violation| {
            text + "  not to be acted on: "
                + &violation.to_string()
                + "
"
        });
    format!("{strategy:?}:\n{plan}{violations}why:\n{report}")
}

#[test]
fn every_story_leads_to_the_recorded_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plan");
    insta::glob!(&folder, "*.yaml", |path| {
        let story: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let snapshot: Snapshot = serde_json::from_value(snapshot(&story))
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut kept = snapshot.clone();
        kept.ray_cluster = rayfit_core::snapshot::allowed::RAY_CLUSTER
            .keep(snapshot.ray_cluster.object())
            .into();
        for strategy in [Strategy::Rayfit, Strategy::Ray] {
            let settings = settings(&story, strategy);
            let (whole, kept) = (told(&snapshot, &settings), told(&kept, &settings));
            assert_eq!(whole, kept, "{}", path.display());
        }
        let text = format!(
            "{}\n\n{}\n{}",
            story["story"].as_str().unwrap(),
            told(&snapshot, &settings(&story, Strategy::Rayfit)),
            told(&snapshot, &settings(&story, Strategy::Ray))
        );
        insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => &folder, snapshot_suffix => ""}, {
            insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), text);
        });
    });
}

/// What a slice prevents is shown by the stories that end otherwise without it.
#[test]
fn each_slice_is_what_makes_a_story_end_well() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plan");
    let mut stories = Vec::new();
    insta::glob!(&folder, "*.yaml", |path| {
        let story: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let snapshot: Snapshot = serde_json::from_value(snapshot(&story)).unwrap();
        stories.push((snapshot, settings(&story, Strategy::Rayfit)));
    });
    let ends = |less: &[Slice]| {
        let end = |(snapshot, settings): &(Snapshot, PlanSettings)| {
            let mut settings = settings.clone();
            settings.left_out.extend(less);
            decide(snapshot, &settings).0.to_string()
        };
        stories.iter().map(end).collect::<Vec<String>>()
    };
    let usual = ends(&[]);
    for slice in Slice::ALL {
        assert!(
            ends(&[*slice]) != usual,
            "{slice:?}: write a story that it makes end well"
        );
    }
}

/// The plan of a story.
fn plan(story: &str) -> Plan {
    let story: Value = serde_saphyr::from_str(story).unwrap();
    let snapshot: Snapshot = serde_json::from_value(snapshot(&story)).unwrap();
    decide(&snapshot, &settings(&story, Strategy::Rayfit)).0
}

#[test]
fn a_refusal_is_forgotten_with_its_group() {
    let plan = plan(
        "groups: {cpu: {cpu: 1, memory: 2Gi}}\n\
         history: {unavailable: {cpu: 1768391990, gone: 1768391990}}",
    );
    let known: Vec<&String> = plan.remember.unavailable.keys().collect();
    assert_eq!(known, ["cpu"]);
}

#[test]
fn of_launches_that_nothing_needs_any_more_the_minimum_is_kept() {
    let plan = plan(
        "groups: {cpu: {cpu: 1, memory: 2Gi, min: 1, max: 20, replicas: 10}}\n\
         gangs: [{strategy: SPREAD, bundles: [{CPU: 1}, {CPU: 1}, {CPU: 1}, {CPU: 1}]}]\n\
         history:\n  \
           gangs: {\"00:SPREAD\": {times: 1, retryAt: 1768392030}}\n  \
           instances: [{group: cpu, status: Requested, since: 1768391990, count: 10}]",
    );
    let group = &plan.groups[0];
    assert_eq!((group.replicas, group.cancel), (1, 9), "{plan}");
}
