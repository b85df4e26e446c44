//! The install: the folder in the repository, what kustomize makes of it, and what must hold for
//! every choice.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use rayfit_core::manifests::access::{Access, AccessScope, rights};
use rayfit_core::manifests::{
    Certificates, FailurePolicy, ManifestOptions, names, objects, to_yaml,
};
use serde_json::{Value, json};

const REGENERATE: &str = "make generate";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests")
}

fn files_below(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, root, found);
        } else {
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            found.insert(name, std::fs::read_to_string(&path).unwrap());
        }
    }
}

fn variants() -> Vec<(&'static str, ManifestOptions)> {
    let options = ManifestOptions::default();
    let own = options.with(|options| options.certificates = Some(Certificates::SelfManaged));
    let issued = options.with(|options| options.certificates = Some(Certificates::CertManager));
    vec![
        (
            "self-managed-fail-closed",
            own.with(|options| options.failure_policy = FailurePolicy::Closed),
        ),
        ("self-managed", own),
        (
            "cert-manager-fail-closed",
            issued.with(|options| options.failure_policy = FailurePolicy::Closed),
        ),
        ("cert-manager", issued),
    ]
}

fn find<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut of_kind = objects.iter().filter(|object| object["kind"] == kind);
    let found = of_kind.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(of_kind.next().is_none(), "more than one {kind}");
    found
}

fn webhooks(objects: &[Value]) -> Vec<&Value> {
    let configurations = [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    let lists = configurations.map(|kind| find(objects, kind)["webhooks"].as_array().unwrap());
    lists.into_iter().flatten().collect()
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// The pods that serve webhooks.
fn pod(objects: &[Value]) -> &Value {
    &named(objects, "Deployment", "rayfit")["spec"]["template"]["spec"]
}

/// The pods of all Deployments.
fn pods(objects: &[Value]) -> Vec<&Value> {
    let deployments = objects
        .iter()
        .filter(|object| object["kind"] == "Deployment");
    deployments
        .map(|deployment| &deployment["spec"]["template"]["spec"])
        .collect()
}

/// Files that are not made from the code.
const BY_HAND: [&str; 4] = [
    "monitoring/",
    "helm/templates/_helpers.tpl",
    "helm/templates/NOTES.txt",
    "helm/templates/tests/",
];

/// And writes the chart into a folder of manifests that `RAYFIT_CHART` names, for `make generate`.
#[test]
fn the_folder_is_what_the_command_writes() {
    let chart = crate::chart::files();
    if let Some(folder) = std::env::var_os("RAYFIT_CHART") {
        for (name, text) in chart {
            std::fs::write(Path::new(&folder).join(name), text).unwrap();
        }
        return;
    }
    let mut there = BTreeMap::new();
    files_below(&folder(), &folder(), &mut there);
    there.retain(|name, _| !BY_HAND.iter().any(|by_hand| name.starts_with(by_hand)));
    let written = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(["manifests", "--write-to"])
        .arg(written.path())
        .status()
        .unwrap();
    assert!(status.success());
    let mut made = chart;
    files_below(written.path(), written.path(), &mut made);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&there), names(&made), "run: {REGENERATE}");
    for (name, text) in made {
        assert!(
            there[&name] == text,
            "manifests/{name} is out of date, run: {REGENERATE}"
        );
    }
}

/// Several installations in one Kubernetes cluster: one serves webhooks, and further ones scale. None of them has an
/// object of another one.
#[test]
fn installations_in_several_namespaces_share_nothing() {
    let own = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::SelfManaged));
    let first = ManifestOptions {
        controller: false,
        ..own.clone()
    };
    let further = |namespace: &str, scaled: &str| ManifestOptions {
        namespace: namespace.to_owned(),
        only_namespaces: vec![scaled.to_owned()],
        webhooks: false,
        definitions: false,
        ..own.clone()
    };
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for options in [first, further("rayfit-a", "a"), further("rayfit-b", "b")] {
        let objects = objects(&options);
        let scales_only = !options.webhooks;
        assert_eq!(pods(&objects).len(), 1);
        let kinds: BTreeSet<&str> = objects
            .iter()
            .map(|object| object["kind"].as_str().unwrap())
            .collect();
        let asked = kinds.contains("ValidatingWebhookConfiguration");
        assert_eq!(asked, !scales_only, "{kinds:?}");
        assert!(!scales_only || !kinds.contains("Secret"));
        for object in objects {
            let identity = by_identity(&to_yaml(std::slice::from_ref(&object)));
            let identity = identity.into_keys().next().unwrap();
            let other = known.insert(identity.clone(), object);
            assert!(other.is_none(), "{identity} is in two installations");
        }
    }
    let binding = &known[r#""ClusterRoleBinding" null "rayfit-policies-rayfit-a""#];
    assert_eq!(binding["roleRef"]["name"], "rayfit-policies-rayfit-a");
    assert_eq!(binding["subjects"][0]["namespace"], "rayfit-a");
    let guard = &known[r#""ValidatingAdmissionPolicyBinding" null "rayfit-pod-writes-rayfit-b""#];
    assert_eq!(guard["spec"]["policyName"], "rayfit-pod-writes-rayfit-b");
}

/// An installation elsewhere may write the webhook configurations that are its own, by their names.
#[test]
fn rights_name_the_cluster_wide_objects_of_their_installation() {
    let options = ManifestOptions {
        namespace: "elsewhere".to_owned(),
        ..ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::SelfManaged))
    };
    let objects = objects(&options);
    let rules = rules(&objects, "ClusterRole", None, "rayfit-ca-bundles-elsewhere");
    for (at, kind) in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]
    .into_iter()
    .enumerate()
    {
        let name = &find(&objects, kind)["metadata"]["name"];
        assert_eq!(rules[at]["resourceNames"], json!([name]));
    }
}

#[test]
fn a_critical_priority_class_comes_with_its_quota() {
    let options = ManifestOptions {
        priority_class: Some("system-cluster-critical".to_owned()),
        ..ManifestOptions::default()
    };
    let objects = objects(&options);
    let quota = &find(&objects, "ResourceQuota")["spec"];
    let counted = &quota["scopeSelector"]["matchExpressions"][0];
    assert_eq!(counted["scopeName"], "PriorityClass");
    for pod in pods(&objects) {
        assert_eq!(counted["values"], json!([pod["priorityClassName"]]));
    }
}

/// Documents by identity, so that the order in which kustomize prints them does not matter.
fn by_identity(yaml: &str) -> BTreeMap<String, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let identity = |object: &Value| {
        let metadata = &object["metadata"];
        format!(
            "{} {} {}",
            object["kind"], metadata["namespace"], metadata["name"]
        )
    };
    documents
        .into_iter()
        .map(|object| (identity(&object), object))
        .collect()
}

fn kubectl_kustomize(overlay: &Path) -> String {
    let kubectl = std::env::var("RAYFIT_KUBECTL").unwrap_or_else(|_| "kubectl".to_owned());
    let output = Command::new(&kubectl).arg("kustomize").arg(overlay).output().unwrap_or_else(|e| {
        panic!(
            "cannot run {kubectl} ({e}): this test compares the folder with what kustomize makes \
             of it. Install kubectl 1.27 or later (https://kubernetes.io/docs/tasks/tools/) or \
             say where it is with RAYFIT_KUBECTL=/path/to/kubectl"
        )
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "kubectl kustomize {}: {errors}",
        overlay.display()
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn kustomize_and_the_command_install_the_same() {
    for (overlay, options) in variants() {
        let built = by_identity(&kubectl_kustomize(&folder().join("overlays").join(overlay)));
        let printed = by_identity(&to_yaml(&objects(&options)));
        assert_eq!(
            built.keys().collect::<Vec<_>>(),
            printed.keys().collect::<Vec<_>>(),
            "{overlay}"
        );
        for (identity, object) in printed {
            assert_eq!(built[&identity], object, "{overlay}: {identity}");
        }
    }
}

#[test]
fn the_yaml_says_what_was_meant() {
    for (name, options) in variants() {
        let meant = objects(&options);
        let read: Vec<Value> = serde_saphyr::from_multiple(&to_yaml(&meant)).unwrap();
        assert_eq!(read, meant, "{name}");
    }
}

/// The webhooks that are asked about Ray objects.
fn of_ray(objects: &[Value]) -> Vec<&Value> {
    let groups = serde_json::json!(["ray.io"]);
    let of_ray = |webhook: &&Value| webhook["rules"][0]["apiGroups"] == groups;
    webhooks(objects).into_iter().filter(of_ray).collect()
}

#[test]
fn what_is_asked_about_other_objects_never_stands_in_the_way() {
    for (name, options) in variants() {
        let objects = objects(&options);
        let others: Vec<&Value> = webhooks(&objects)
            .into_iter()
            .filter(|webhook| webhook["rules"][0]["apiGroups"] != serde_json::json!(["ray.io"]))
            .collect();
        let names: Vec<&Value> = others.iter().map(|webhook| &webhook["name"]).collect();
        assert_eq!(
            names,
            [
                "validate.raypolicy.rayfit.dev",
                "validate.resize.rayfit.dev"
            ]
        );
        for webhook in others {
            assert_eq!(webhook["failurePolicy"], "Ignore", "{name}");
            assert_eq!(webhook["sideEffects"], "None");
            assert!(webhook["timeoutSeconds"].as_u64().unwrap() <= 3);
        }
    }
}

/// Pods are sent only if that is chosen, and only the workers that KubeRay makes: never those of anything else in
/// the Kubernetes cluster, whatever happens to Rayfit.
#[test]
fn new_pods_are_sent_only_if_that_is_chosen_and_never_wait_for_long() {
    for (name, options) in variants() {
        let options = ManifestOptions {
            only_namespaces: vec!["team-a".to_owned()],
            timeout_seconds: 30,
            ..options
        };
        let (without, with) = (
            objects(&options),
            objects(&options.with(|options| options.initial_sizes = true)),
        );
        let all = |objects: &[Value]| -> Vec<Value> {
            let mutating = find(objects, "MutatingWebhookConfiguration");
            mutating["webhooks"].as_array().unwrap().clone()
        };
        let (before, after) = (all(&without), all(&with));
        assert_eq!(after[..before.len()], before[..], "{name}");
        let [webhook] = &after[before.len()..] else {
            panic!("{name}: not one more webhook");
        };
        assert_eq!(webhook["name"], "mutate.pod.rayfit.dev");
        let rule = &webhook["rules"][0];
        assert_eq!(rule["apiGroups"], json!([""]));
        assert_eq!(rule["resources"], json!(["pods"]));
        assert_eq!(rule["operations"], json!(["CREATE"]));
        assert_eq!(webhook["failurePolicy"], "Ignore", "{name}");
        assert_eq!(webhook["timeoutSeconds"], 2, "{name}");
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["reinvocationPolicy"], "Never");
        assert_eq!(
            webhook["objectSelector"],
            json!({
                "matchLabels": {"ray.io/node-type": "worker"},
                "matchExpressions": [{"key": "ray.io/cluster", "operator": "Exists"}]
            })
        );
        assert_eq!(webhook["namespaceSelector"], before[0]["namespaceSelector"]);
        let condition = webhook["matchConditions"][0]["expression"].as_str();
        assert!(condition.unwrap().contains("owner.kind == 'RayCluster'"));
    }
}

#[test]
fn every_webhook_is_safe_for_the_cluster() {
    for (name, options) in variants() {
        let objects = objects(&options);
        let webhooks = of_ray(&objects);
        let names: BTreeSet<_> = webhooks
            .iter()
            .map(|hook| hook["name"].to_string())
            .collect();
        assert_eq!(names.len(), 8, "{name}: {names:?}");
        for webhook in webhooks {
            let spared = &webhook["namespaceSelector"]["matchExpressions"][0]["values"];
            assert_eq!(spared, &json!(["kube-system", options.namespace]), "{name}");
            assert_eq!(webhook["sideEffects"], "None");
            assert_eq!(webhook["timeoutSeconds"], 3);
            assert_eq!(webhook["matchPolicy"], "Equivalent");
            let rule = &webhook["rules"][0];
            assert_eq!(rule["apiGroups"], json!(["ray.io"]));
            let resource = rule["resources"][0].as_str().unwrap();
            assert!(!resource.contains(['/', '*']), "{resource}");
            assert!(
                webhook["clientConfig"]["caBundle"].is_null(),
                "applying again would reset it"
            );
        }
    }
}

#[test]
fn a_trial_judges_the_namespaces_that_were_named() {
    let options = ManifestOptions {
        only_namespaces: vec!["team-a".to_owned()],
        ..ManifestOptions::default()
    };
    for webhook in of_ray(&objects(&options)) {
        let expressions = &webhook["namespaceSelector"]["matchExpressions"];
        assert_eq!(expressions[0]["operator"], "NotIn", "{webhook}");
        assert_eq!(expressions[1]["operator"], "In");
        assert_eq!(expressions[1]["values"], json!(["team-a"]));
        assert_eq!(expressions[1]["key"], "kubernetes.io/metadata.name");
    }
}

#[test]
fn only_fail_closed_refuses_and_never_through_the_mutating_webhook() {
    for (name, options) in variants() {
        let closed = name.ends_with("fail-closed");
        for webhook in of_ray(&objects(&options)) {
            let mutating = webhook["name"].as_str().unwrap().starts_with("mutate.");
            let expected = if closed && !mutating {
                "Fail"
            } else {
                "Ignore"
            };
            assert_eq!(
                webhook["failurePolicy"], expected,
                "{name}: {}",
                webhook["name"]
            );
        }
    }
}

/// The rules of a role, by kind and name; in a namespace if one is given.
fn rules<'a>(objects: &'a [Value], kind: &str, namespace: Option<&str>, name: &str) -> &'a Value {
    let found = objects.iter().find(|object| {
        let metadata = &object["metadata"];
        object["kind"] == kind
            && metadata["name"] == name
            && metadata["namespace"].as_str() == namespace
    });
    &found.unwrap_or_else(|| panic!("no {kind} {name}"))["rules"]
}

fn as_rules<'a>(needed: impl IntoIterator<Item = &'a Access>) -> Value {
    let rule = |need: &Access| {
        let mut rule = json!({ "apiGroups": [need.group], "resources": [need.resource] });
        if let Some(name) = need.name {
            rule["resourceNames"] = json!([name]);
        }
        rule["verbs"] = json!(need.verbs);
        rule
    };
    needed.into_iter().map(rule).collect()
}

/// The roles, by kind, namespace and name.
fn roles(objects: &[Value]) -> Vec<String> {
    let is_role = |object: &&Value| matches!(object["kind"].as_str(), Some("Role" | "ClusterRole"));
    let title = |object: &Value| {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        format!(
            "{} {namespace}/{}",
            object["kind"].as_str().unwrap(),
            metadata["name"].as_str().unwrap()
        )
    };
    objects.iter().filter(is_role).map(title).collect()
}

#[test]
fn rights_are_exactly_those_that_the_code_uses() {
    let own = objects(
        &ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::SelfManaged))
            .with(|options| options.ray_auth = true)
            .with(|options| options.delete_idle_clusters = true)
            .with(|options| options.initial_sizes = true),
    );
    let system = Some("rayfit-system");
    let of = |scope| {
        rights::CERTIFICATES
            .iter()
            .filter(move |need| need.scope == scope)
    };
    assert_eq!(
        *rules(&own, "Role", system, "rayfit-certificates"),
        as_rules(of(AccessScope::Namespace))
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-ca-bundles"),
        as_rules(of(AccessScope::Cluster))
    );
    assert_eq!(
        *rules(&own, "Role", system, "rayfit-leader"),
        as_rules(rights::LEASE)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-nodes"),
        as_rules(rights::NODES)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-scaling"),
        as_rules(rights::CLUSTERS)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-ray-auth"),
        as_rules(rights::RAY_AUTH)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-idle-clusters"),
        as_rules(rights::IDLE_CLUSTERS)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-initial-sizes"),
        as_rules(rights::OWNERS)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-watch"),
        as_rules(rights::WATCHES)
    );
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-policies"),
        as_rules(rights::POLICIES)
    );
    let audited = |scope| {
        let needed = rights::AUDIT.iter();
        needed.filter(move |need| need.scope == scope)
    };
    assert_eq!(
        *rules(&own, "ClusterRole", None, "rayfit-audit"),
        as_rules(audited(AccessScope::Cluster))
    );
    assert_eq!(
        *rules(&own, "Role", system, "rayfit-audit-lease"),
        as_rules(audited(AccessScope::Namespace))
    );
    assert_eq!(roles(&own).len(), 12);
}

#[test]
fn rights_that_are_not_needed_are_not_asked_for() {
    let issued = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::CertManager));
    let webhooks_only = ManifestOptions {
        controller: false,
        ..issued.clone()
    };
    assert_eq!(
        roles(&objects(&webhooks_only)),
        [
            "ClusterRole /rayfit-watch",
            "ClusterRole /rayfit-audit",
            "Role rayfit-system/rayfit-audit-lease",
        ]
    );
    let usual = [
        "ClusterRole /rayfit-watch",
        "ClusterRole /rayfit-audit",
        "Role rayfit-system/rayfit-audit-lease",
        "ClusterRole /rayfit-policies",
        "Role rayfit-system/rayfit-leader",
        "ClusterRole /rayfit-nodes",
        "ClusterRole /rayfit-scaling",
    ];
    assert_eq!(roles(&objects(&issued)), usual, "no Secrets");
    // Under one account, policies are read once.
    let single = roles(&objects(
        &issued.with(|options| options.single_deployment = true),
    ));
    let known = |role: &&str| *role != "ClusterRole /rayfit-policies";
    assert_eq!(
        single,
        usual.iter().copied().filter(known).collect::<Vec<_>>()
    );
    // And RayClusters too.
    let with_sizes = issued
        .with(|options| options.single_deployment = true)
        .with(|options| options.initial_sizes = true);
    assert_eq!(roles(&objects(&with_sizes)), single);
    let webhooks_only = roles(&objects(
        &webhooks_only.with(|options| options.initial_sizes = true),
    ));
    assert_eq!(webhooks_only[3], "ClusterRole /rayfit-initial-sizes");
    let trial = ManifestOptions {
        only_namespaces: vec!["team-a".to_owned(), "team-b".to_owned()],
        ..issued
    };
    let trial = objects(&trial);
    let restricted = [
        "ClusterRole /rayfit-watch",
        "ClusterRole /rayfit-audit",
        "Role rayfit-system/rayfit-audit-lease",
        "ClusterRole /rayfit-policies",
        "Role rayfit-system/rayfit-leader",
        "Role team-a/rayfit-scaling",
        "Role team-b/rayfit-scaling",
    ];
    assert_eq!(roles(&trial), restricted);
    let scaling = &named(&trial, "Deployment", "rayfit-controller")["spec"]["template"]["spec"];
    let arguments = &scaling["containers"][0]["args"];
    assert!(
        arguments
            .as_array()
            .unwrap()
            .contains(&json!("--namespaces=team-a,team-b"))
    );
}

#[test]
fn pods_keep_to_the_restricted_level() {
    for (name, options) in variants() {
        let objects = objects(&options);
        assert_eq!(pods(&objects).len(), 2);
        for pod in pods(&objects) {
            let container = &pod["containers"][0];
            let security = &container["securityContext"];
            // OpenShift refuses pods that choose their user or groups.
            for id in ["runAsUser", "runAsGroup", "fsGroup"] {
                assert!(pod["securityContext"][id].is_null(), "{name}");
                assert!(security[id].is_null(), "{name}");
            }
            assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
            assert_eq!(
                pod["securityContext"]["seccompProfile"]["type"],
                "RuntimeDefault"
            );
            assert_eq!(security["runAsNonRoot"], true);
            assert_eq!(security["readOnlyRootFilesystem"], true);
            assert_eq!(security["allowPrivilegeEscalation"], false);
            assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
            assert!(pod["hostNetwork"].is_null());
        }
    }
}

#[test]
fn selectors_find_the_pods() {
    let objects = objects(&ManifestOptions::default());
    let match_labels = |object: &Value| object["matchLabels"].clone();
    for name in ["rayfit", "rayfit-controller"] {
        let of = |kind: &str| &named(&objects, kind, name)["spec"];
        let labels = &of("Deployment")["template"]["metadata"]["labels"];
        assert_eq!(&match_labels(&of("Deployment")["selector"]), labels);
        assert_eq!(
            &match_labels(&of("PodDisruptionBudget")["selector"]),
            labels
        );
        assert_eq!(&match_labels(&of("NetworkPolicy")["podSelector"]), labels);
        let metrics = named(&objects, "Service", &format!("{name}-metrics"));
        assert_eq!(&metrics["spec"]["selector"], labels);
    }
    // Whatever calls the webhooks never meets a pod that only scales.
    let webhooks = &named(&objects, "Service", "rayfit")["spec"]["selector"];
    assert_eq!(*webhooks, names::Component::Admission.labels());
}

/// An install from before there were two can be applied over without an outage: what the API server
/// calls keeps its name, its labels and its account. A Deployment's selector is immutable.
#[test]
fn what_serves_webhooks_is_called_as_ever() {
    let labels = json!({
        "app.kubernetes.io/name": "rayfit",
        "app.kubernetes.io/component": "admission"
    });
    for (name, options) in variants() {
        for options in [
            options.with(|options| options.single_deployment = true),
            options,
        ] {
            let objects = objects(&options);
            let deployment = &named(&objects, "Deployment", "rayfit")["spec"];
            assert_eq!(deployment["selector"]["matchLabels"], labels, "{name}");
            assert_eq!(pod(&objects)["serviceAccountName"], "rayfit");
            assert_eq!(
                named(&objects, "Service", "rayfit")["spec"]["selector"],
                labels
            );
        }
    }
}

/// Everything that a single Deployment does not have can be told by one label, and so be deleted by it.
#[test]
fn what_is_there_for_the_controller_alone_has_its_label() {
    let identity = |object: &Value| {
        let metadata = &object["metadata"];
        (object["kind"].to_string(), metadata["name"].to_string())
    };
    for (name, options) in variants() {
        let single: BTreeSet<_> =
            objects(&options.with(|options| options.single_deployment = true))
                .iter()
                .map(identity)
                .collect();
        for object in objects(&options) {
            let more = !single.contains(&identity(&object));
            let component = &object["metadata"]["labels"]["app.kubernetes.io/component"];
            assert!(!more || *component == "controller", "{name}: {object}");
        }
    }
}

/// Callers show certificates to the webhooks, and nobody calls the controller.
#[test]
fn the_authority_of_callers_is_where_the_program_looks() {
    let options = ManifestOptions {
        client_ca_config_map: Some("callers".to_owned()),
        ..ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::CertManager))
    };
    let objects = objects(&options);
    let pod = pod(&objects);
    let container = &pod["containers"][0];
    assert_eq!(pod["volumes"][1]["configMap"]["name"], "callers");
    let mount = &container["volumeMounts"][1];
    assert_eq!(mount["name"], pod["volumes"][1]["name"]);
    let file = format!(
        "--client-ca-file={}/ca.crt",
        mount["mountPath"].as_str().unwrap()
    );
    assert!(container["args"].as_array().unwrap().contains(&json!(file)));
    let controller =
        &named(&objects, "Deployment", "rayfit-controller")["spec"]["template"]["spec"];
    assert!(controller["volumes"].is_null());
}

#[test]
fn a_single_deployment_does_both() {
    let options = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::SelfManaged));
    let objects = objects(&options.with(|options| options.single_deployment = true));
    find(&objects, "Deployment");
    find(&objects, "NetworkPolicy");
    find(&objects, "ServiceAccount");
    let arguments = pod(&objects)["containers"][0]["args"].to_string();
    assert!(!arguments.contains("--no-"), "{arguments}");
}

#[test]
fn the_certificate_carries_the_name_that_is_called() {
    let options = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::CertManager));
    let objects = objects(&options);
    let service = &webhooks(&objects)[0]["clientConfig"]["service"];
    let called = format!(
        "{}.{}.svc",
        service["name"].as_str().unwrap(),
        service["namespace"].as_str().unwrap()
    );
    assert_eq!(called, names::service_host(&options.namespace));
    let leaf = objects
        .iter()
        .find(|object| object["spec"]["dnsNames"].is_array())
        .unwrap();
    assert_eq!(leaf["spec"]["dnsNames"][0], called);
}

#[test]
fn the_node_network_asks_for_what_it_needs() {
    let objects = objects(&ManifestOptions {
        host_network: true,
        port: 9443,
        ..ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::SelfManaged))
    });
    let level = &find(&objects, "Namespace")["metadata"]["labels"];
    assert_eq!(level["pod-security.kubernetes.io/enforce"], "privileged");
    assert_eq!(pod(&objects)["dnsPolicy"], "ClusterFirstWithHostNet");
    let strategy = |name| &named(&objects, "Deployment", name)["spec"]["strategy"]["rollingUpdate"];
    assert_eq!(strategy("rayfit")["maxSurge"], 0);
    // Nobody calls the controller.
    assert_eq!(strategy("rayfit-controller")["maxSurge"], 1);
    assert!(pods(&objects)[1]["hostNetwork"].is_null());
}

#[test]
fn a_single_pod_does_not_block_drains() {
    let single = ManifestOptions {
        replicas: Some(1),
        controller_replicas: 1,
        ..ManifestOptions::default()
    };
    assert!(
        objects(&single)
            .iter()
            .all(|object| object["kind"] != "PodDisruptionBudget")
    );
}

#[test]
fn bad_choices_are_refused_with_an_explanation() {
    let output = Command::new(env!("CARGO_BIN_EXE_rayfit"))
        .args(["manifests", "--host-network"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("--port 9443"), "{error}");
}

#[test]
fn the_program_understands_its_arguments() {
    let all = variants().into_iter().flat_map(|(name, options)| {
        [
            (
                name,
                options.with(|options| options.single_deployment = true),
            ),
            (name, options),
        ]
    });
    let containers = all.flat_map(|(name, options)| {
        let objects = objects(&options);
        let containers = pods(&objects)
            .into_iter()
            .map(|pod| (name, pod["containers"][0].clone()));
        containers.collect::<Vec<_>>()
    });
    for (name, container) in containers {
        let scales_only = container["args"].to_string().contains("--no-webhooks");
        let used = if scales_only {
            BTreeSet::from(["health"])
        } else {
            BTreeSet::from(["webhook", "health"])
        };
        let arguments = container["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap());
        let parsed = rayfit::cli::command()
            .try_get_matches_from([&["rayfit"], &*arguments.collect::<Vec<_>>()].concat());
        assert!(parsed.is_ok(), "{name}: {}", parsed.unwrap_err());
        let ports = container["ports"].as_array().unwrap().iter();
        assert_eq!(
            ports
                .map(|port| port["name"].as_str().unwrap())
                .collect::<BTreeSet<_>>(),
            used
        );
    }
    let defaults = ManifestOptions::default();
    let serve = rayfit::cli::command();
    let serve = serve.find_subcommand("serve").unwrap();
    let default = |id: &str| {
        let argument = serve
            .get_arguments()
            .find(|argument| argument.get_id() == id)
            .unwrap();
        argument.get_default_values()[0]
            .to_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(default("port"), defaults.port.to_string());
    assert_eq!(default("health_port"), defaults.health_port.to_string());
    assert_eq!(default("cert_dir"), names::CERTIFICATE_FOLDER);
}
