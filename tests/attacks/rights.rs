//! What somebody could do who has taken over one of Rayfit's pods, read off the manifests as data:
//! neither account reaches what the other one is trusted with, and the network admits nobody who is
//! not named.

use std::collections::BTreeSet;

use rayfit_core::manifests::{Certificates, FailurePolicy, ManifestOptions, objects};
use serde_json::{Value, json};

const SYSTEM: &str = "rayfit-system";
const ADMISSION: &str = "rayfit";
const CONTROLLER: &str = "rayfit-controller";

/// One verb of one rule that an account has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    /// Only there; everywhere if there is none.
    namespace: Option<String>,
    group: String,
    resource: String,
    /// Only that object.
    name: Option<String>,
    verb: String,
}

impl Right {
    fn writes(&self) -> bool {
        !["get", "list", "watch"].contains(&&*self.verb)
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// What an account may do, by the bindings that name it.
fn rights(objects: &[Value], account: &str) -> BTreeSet<Right> {
    let mut found = BTreeSet::new();
    for binding in objects
        .iter()
        .filter(|object| object["roleRef"].is_object())
    {
        let subjects = binding["subjects"].as_array().unwrap();
        // What is granted to everybody is asserted below.
        let ours = |subject: &Value| {
            if subject["kind"] == "Group" {
                return false;
            }
            assert_eq!(subject["kind"], "ServiceAccount", "{binding}");
            assert_eq!(subject["namespace"], SYSTEM, "{binding}");
            subject["name"] == account
        };
        if !subjects.iter().any(ours) {
            continue;
        }
        let namespace = binding["metadata"]["namespace"].as_str();
        let role = objects.iter().find(|object| {
            object["kind"] == binding["roleRef"]["kind"]
                && object["metadata"]["name"] == binding["roleRef"]["name"]
                && object["metadata"]["namespace"].as_str() == namespace
        });
        for rule in role.unwrap()["rules"].as_array().unwrap() {
            found.extend(of_rule(rule, namespace));
        }
    }
    assert!(!found.is_empty(), "{account} has no rights at all");
    found
}

fn of_rule(rule: &Value, namespace: Option<&str>) -> Vec<Right> {
    let names: Vec<Option<String>> = match texts(&rule["resourceNames"]) {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(Some).collect(),
    };
    let mut found = Vec::new();
    for group in texts(&rule["apiGroups"]) {
        for resource in texts(&rule["resources"]) {
            for name in &names {
                for verb in texts(&rule["verbs"]) {
                    assert!(![&*group, &*resource, &*verb].contains(&"*"), "{rule}");
                    found.push(Right {
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb,
                    });
                }
            }
        }
    }
    found
}

/// Every kind of install in which the two are apart, with the most rights that can be chosen.
fn installs() -> Vec<Vec<Value>> {
    let everywhere = ManifestOptions::default()
        .with(|options| options.ray_auth = true)
        .with(|options| options.delete_idle_clusters = true)
        .with(|options| options.initial_sizes = true);
    let in_namespaces = ManifestOptions {
        only_namespaces: vec!["team-a".to_owned()],
        ..everywhere.clone()
    };
    let mut installs = Vec::new();
    for options in [everywhere, in_namespaces] {
        for certificates in [Certificates::SelfManaged, Certificates::CertManager] {
            let options = options.with(|options| options.certificates = Some(certificates));
            installs.push(objects(&options));
            installs.push(objects(
                &options.with(|options| options.failure_policy = FailurePolicy::Closed),
            ));
        }
    }
    installs
}

#[test]
fn what_reads_tenants_answers_reaches_neither_webhooks_nor_keys() {
    for install in installs() {
        for right in rights(&install, CONTROLLER) {
            let forbidden = [
                "admissionregistration.k8s.io",
                "rbac.authorization.k8s.io",
                "apiextensions.k8s.io",
                "apps",
                "openreports.io",
                "cert-manager.io",
            ];
            assert!(!forbidden.contains(&&*right.group), "{right:?}");
            let ways = [
                "serviceaccounts/token",
                "pods/exec",
                "pods/ephemeralcontainers",
            ];
            assert!(!ways.contains(&&*right.resource), "{right:?}");
            // What is decided for everybody is read, and never written.
            if right.group == "rayfit.dev" || right.resource == "namespaces" {
                assert!(!right.writes(), "{right:?}");
            }
            if right.namespace.as_deref() == Some(SYSTEM) {
                assert_eq!(right.resource, "leases", "{right:?}");
            }
        }
    }
}

/// `--ray-auth` gives the Secrets of tenants, which in the whole cluster are those of everybody: so it
/// is a choice, and without it there is no right to any Secret.
#[test]
fn without_ray_auth_the_controller_reads_no_secret() {
    for certificates in [Certificates::SelfManaged, Certificates::CertManager] {
        let install = objects(
            &ManifestOptions::default().with(|options| options.certificates = Some(certificates)),
        );
        for right in rights(&install, CONTROLLER) {
            assert_ne!(right.resource, "secrets", "{right:?}");
        }
    }
}

/// Without `--delete-idle-clusters` nothing of a tenant can be deleted, and with it only RayClusters.
#[test]
fn only_ray_clusters_can_be_deleted_and_only_if_that_is_chosen() {
    let deletes = |options: &ManifestOptions| -> Vec<String> {
        let rights = rights(&objects(options), CONTROLLER);
        let tenants = rights.into_iter().filter(|right| {
            right.verb.starts_with("delete") && right.namespace.as_deref() != Some(SYSTEM)
        });
        tenants.map(|right| right.resource).collect()
    };
    let default = ManifestOptions::default().with(|options| options.ray_auth = true);
    assert!(deletes(&default).is_empty());
    assert_eq!(
        deletes(&default.with(|options| options.delete_idle_clusters = true)),
        ["rayclusters"]
    );
}

/// With `--ray-auth` in chosen namespaces it still does not reach ours.
#[test]
fn with_ray_auth_in_a_namespace_no_other_secret_is_read() {
    let install = objects(&ManifestOptions {
        only_namespaces: vec!["team-a".to_owned()],
        ..ManifestOptions::default()
            .with(|options| options.certificates = Some(Certificates::SelfManaged))
            .with(|options| options.ray_auth = true)
    });
    for right in rights(&install, CONTROLLER) {
        if right.resource == "secrets" {
            assert_eq!(right.namespace.as_deref(), Some("team-a"), "{right:?}");
            assert_eq!(right.verb, "get");
        }
    }
}

/// Without `--initial-sizes` no pod is sent to the webhooks, and no RayCluster is read for one; with it one more
/// right to read is all that follows.
#[test]
fn new_pods_are_sent_and_their_ray_clusters_read_only_if_that_is_chosen() {
    let default = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::SelfManaged));
    let chosen = default.with(|options| options.initial_sizes = true);
    let (without, with) = (objects(&default), objects(&chosen));
    let sent = |install: &[Value]| -> Vec<Value> {
        let mutating = install
            .iter()
            .find(|object| object["kind"] == "MutatingWebhookConfiguration");
        let webhooks = mutating.unwrap()["webhooks"].as_array().unwrap();
        let of_pods = |webhook: &&Value| webhook["rules"][0]["resources"] == json!(["pods"]);
        webhooks.iter().filter(of_pods).cloned().collect()
    };
    assert!(sent(&without).is_empty());
    let [webhook] = &sent(&with)[..] else {
        panic!("not one webhook of pods: {:?}", sent(&with));
    };
    assert_eq!(webhook["failurePolicy"], "Ignore");
    let read = |install: &[Value]| rights(install, ADMISSION);
    let more: Vec<Right> = read(&with).difference(&read(&without)).cloned().collect();
    let right = |namespace: Option<&str>| Right {
        namespace: namespace.map(str::to_owned),
        group: "ray.io".to_owned(),
        resource: "rayclusters".to_owned(),
        name: None,
        verb: "get".to_owned(),
    };
    assert_eq!(more, [right(None)]);
    let trial = ManifestOptions {
        only_namespaces: vec!["team-a".to_owned()],
        ..chosen
    };
    let trial = read(&objects(&trial));
    assert!(trial.contains(&right(Some("team-a"))) && !trial.contains(&right(None)));
    assert_eq!(rights(&with, CONTROLLER), rights(&without, CONTROLLER));
}

#[test]
fn what_serves_webhooks_reaches_neither_tenants_secrets_nor_scaling() {
    for install in installs() {
        for right in rights(&install, ADMISSION) {
            if right.resource == "secrets" {
                assert_eq!(right.namespace.as_deref(), Some(SYSTEM), "{right:?}");
                assert_eq!(right.name.as_deref(), Some("rayfit-self-managed-certs"));
            }
            assert_ne!(right.resource, "pods/resize", "{right:?}");
            let of_tenants = right.group == "ray.io" || right.resource == "pods";
            assert!(!(of_tenants && right.writes()), "{right:?}");
            if right.group == "admissionregistration.k8s.io" {
                assert!(right.name.is_some(), "not only its own: {right:?}");
            }
            if right.resource == "leases" && right.verb != "create" {
                assert_eq!(right.name.as_deref(), Some("rayfit-audit"), "{right:?}");
            }
        }
    }
}

/// Whoever may patch pods may put an image into the webhooks' own pods, and so take their account. No
/// role can forbid that, so a policy of the API server does.
#[test]
fn the_rights_to_patch_reach_sizes_and_our_annotations_only() {
    let single = ManifestOptions::default()
        .with(|options| options.certificates = Some(Certificates::SelfManaged))
        .with(|options| options.single_deployment = true);
    let mut installs = installs();
    installs.push(objects(&single));
    for install in installs {
        let of_kind = |kind: &str| -> Vec<&Value> {
            install
                .iter()
                .filter(|object| object["kind"] == kind)
                .collect()
        };
        let writers: Vec<&str> = [ADMISSION, CONTROLLER]
            .into_iter()
            .filter(|account| has_account(&install, account))
            .filter(|account| {
                let rights = rights(&install, account);
                rights
                    .iter()
                    .any(|right| right.resource == "pods" && right.writes())
            })
            .collect();
        let [writer] = writers[..] else {
            panic!("not one account that writes pods: {writers:?}");
        };
        let bindings = of_kind("ValidatingAdmissionPolicyBinding");
        for policy in of_kind("ValidatingAdmissionPolicy") {
            let is_of = |binding: &&&Value| {
                binding["spec"]["policyName"] == policy["metadata"]["name"]
                    && binding["spec"]["validationActions"] == json!(["Deny"])
                    && binding["spec"]["matchResources"].is_null()
            };
            assert_eq!(bindings.iter().filter(is_of).count(), 1, "{policy}");
            assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        }
        let bounds = |name: &str| -> String {
            let policies = of_kind("ValidatingAdmissionPolicy");
            let policy = policies
                .iter()
                .find(|policy| policy["metadata"]["name"] == name);
            let spec = &policy.unwrap()["spec"];
            let who = spec["matchConditions"][0]["expression"].as_str().unwrap();
            let user = format!("'system:serviceaccount:{SYSTEM}:{writer}'");
            assert!(who.contains(&user), "{who} is not about {user}");
            let bounds = spec["validations"].as_array().unwrap().iter();
            let bounds = bounds.map(|bound| bound["expression"].as_str().unwrap());
            bounds.collect::<Vec<_>>().join("\n")
        };
        let kept = ["labels", "finalizers", "ownerReferences"]
            .map(|field| format!("object.metadata.?{field} == oldObject.metadata.?{field}"));
        let of_pods = bounds("rayfit-pod-writes");
        assert!(of_pods.contains(&format!("request.namespace != '{SYSTEM}'")));
        assert!(of_pods.contains("'ray.io/cluster' in oldObject.metadata.labels"));
        assert!(of_pods.contains("object.spec == oldObject.spec"));
        let of_clusters = bounds("rayfit-cluster-writes");
        for field in kept {
            assert!(of_pods.contains(&field) && of_clusters.contains(&field));
        }
        // Clusters that nobody uses end; nothing else of a spec or among finalizers is new.
        assert!(of_clusters.contains("k == 'idleSuspend' && variables.spec[k] == true"));
        assert!(of_clusters.contains(
            "== oldObject.metadata.?finalizers.orValue([]) + ['ray.io/idle-termination-cleanup-finalizer'])"
        ));
        if has_account(&install, CONTROLLER) {
            assert!(bounds("rayfit-lease-writes").contains("object.metadata.name =="));
        }
    }
}

fn has_account(install: &[Value], account: &str) -> bool {
    install
        .iter()
        .any(|object| object["kind"] == "ServiceAccount" && object["metadata"]["name"] == account)
}

#[test]
fn each_deployment_runs_under_its_own_account_and_does_its_own_work_only() {
    for install in installs() {
        let pod = |name: &str| {
            let deployment = install.iter().find(|object| {
                object["kind"] == "Deployment" && object["metadata"]["name"] == name
            });
            deployment.unwrap()["spec"]["template"]["spec"].clone()
        };
        let (admission, controller) = (pod(ADMISSION), pod(CONTROLLER));
        assert_eq!(admission["serviceAccountName"], ADMISSION);
        assert_eq!(controller["serviceAccountName"], CONTROLLER);
        let arguments = |pod: &Value| texts(&pod["containers"][0]["args"]);
        assert!(arguments(&admission).contains(&"--no-controller".to_owned()));
        let arguments = arguments(&controller);
        assert!(arguments.contains(&"--no-webhooks".to_owned()));
        assert!(!arguments.iter().any(|argument| argument.contains("cert")));
        assert!(controller["volumes"].is_null(), "it mounts no key");
    }
}

fn policies(options: &ManifestOptions) -> Vec<Value> {
    let objects =
        objects(&options.with(|options| options.certificates = Some(Certificates::SelfManaged)));
    let policies: Vec<Value> = objects
        .into_iter()
        .filter(|object| object["kind"] == "NetworkPolicy")
        .collect();
    for policy in &policies {
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    }
    policies
}

fn ports(rule: &Value) -> Vec<u64> {
    let ports = rule["ports"].as_array().unwrap();
    ports
        .iter()
        .map(|port| port["port"].as_u64().unwrap())
        .collect()
}

/// Every pod of ours is chosen by one policy, and no policy chooses others.
#[test]
fn each_deployment_has_a_network_policy() {
    for single in [false, true] {
        let options = ManifestOptions {
            single_deployment: single,
            ..ManifestOptions::default()
                .with(|options| options.certificates = Some(Certificates::SelfManaged))
        };
        let chosen = |policy: Value| policy["spec"]["podSelector"]["matchLabels"].clone();
        let chosen: Vec<Value> = policies(&options).into_iter().map(chosen).collect();
        let run = objects(&options);
        let run = run.iter().filter(|object| object["kind"] == "Deployment");
        let run: Vec<Value> = run
            .map(|object| object["spec"]["template"]["metadata"]["labels"].clone())
            .collect();
        assert_eq!(chosen, run);
    }
}

#[test]
fn metrics_are_for_the_namespaces_that_were_named() {
    let named = ManifestOptions {
        monitoring_namespace_labels: vec!["team=observability".to_owned()],
        ..ManifestOptions::default()
    };
    let name = |name: &str| json!({ "kubernetes.io/metadata.name": name });
    let usual = vec![name("monitoring"), name("prometheus-system")];
    let expected = [
        (ManifestOptions::default(), usual),
        (named, vec![json!({ "team": "observability" })]),
    ];
    for (options, labels) in expected {
        let each = labels.iter();
        let each = each.map(|labels| json!({ "namespaceSelector": { "matchLabels": labels } }));
        let from = Value::Array(each.collect());
        for policy in policies(&options) {
            for rule in policy["spec"]["ingress"].as_array().unwrap() {
                if ports(rule).contains(&8080) {
                    assert_eq!(rule["from"], from, "{policy}");
                    assert_eq!(ports(rule), [8080], "and no other port: {policy}");
                }
            }
        }
    }
}

/// Nobody calls the controller, and with the addresses of API servers nobody but them calls the
/// webhooks: so no pod can fill their places with slow or large requests.
#[test]
fn with_their_addresses_only_api_servers_reach_the_webhooks_and_are_reached() {
    let options = ManifestOptions {
        api_server_cidrs: vec!["10.0.0.0/28".to_owned()],
        ..ManifestOptions::default()
    };
    let servers = json!([{ "ipBlock": { "cidr": "10.0.0.0/28" } }]);
    let mut open = Vec::new();
    for policy in policies(&options) {
        let name = policy["metadata"]["name"].as_str().unwrap();
        for rule in policy["spec"]["ingress"].as_array().unwrap() {
            if rule["from"] == servers {
                open.push((name.to_owned(), ports(rule)));
            } else {
                assert_eq!(ports(rule), [8080], "{policy}");
            }
        }
        for rule in policy["spec"]["egress"].as_array().unwrap() {
            let to = rule["to"]
                .as_array()
                .unwrap_or_else(|| panic!("to anywhere: {policy}"));
            assert!(!to.is_empty(), "to anywhere: {policy}");
            let everywhere = json!({});
            for peer in to
                .iter()
                .filter(|peer| peer["namespaceSelector"] == everywhere)
            {
                let head = json!({ "matchLabels": { "ray.io/node-type": "head" } });
                assert_eq!(peer["podSelector"], head, "{policy}");
                assert_eq!(ports(rule), [6379]);
                assert_eq!(name, CONTROLLER, "webhooks have no business with heads");
            }
        }
    }
    assert_eq!(open, [(ADMISSION.to_owned(), vec![10250])]);
}

/// What everybody's accounts may do: read one Lease, by its name, if that is chosen.
#[test]
fn what_other_accounts_may_read_is_one_lease_and_only_if_that_is_chosen() {
    let of_others = |options: &ManifestOptions| -> Vec<Value> {
        let all = objects(options);
        let is_ours = |subject: &Value| subject["kind"] == "ServiceAccount";
        let others = all.iter().filter(|object| {
            let subjects = object["subjects"].as_array();
            subjects.is_some_and(|subjects| !subjects.iter().all(is_ours))
        });
        let roles = others.map(|binding| {
            let named = |role: &&Value| {
                role["kind"] == binding["roleRef"]["kind"]
                    && role["metadata"]["name"] == binding["roleRef"]["name"]
            };
            let role = all.iter().find(named).unwrap();
            json!([
                binding["metadata"]["namespace"],
                binding["subjects"],
                role["rules"]
            ])
        });
        roles.collect()
    };
    let default = ManifestOptions::default();
    assert_eq!(of_others(&default), [json!(null); 0]);
}
