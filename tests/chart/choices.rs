//! The choices that the values of the chart leave: which objects come of each, and how a template asks for them.

use serde_json::{Value, json};

use rayfit_core::manifests::names::APP;
use rayfit_core::manifests::{Certificates, FailurePolicy, ManifestOptions, objects};

/// One alternative for each choice, by their places in [`CHOICES`].
pub(super) type Assignment = Vec<usize>;

/// An alternative: its name, and what it makes of the options.
pub(super) type Alternative = (&'static str, fn(&mut ManifestOptions));

/// A choice between alternatives.
pub(super) struct InstallChoice {
    pub(super) alternatives: &'static [Alternative],
    /// The condition of a template. With two alternatives that of the second one; otherwise an expression whose
    /// value is an alternative's name.
    pub(super) expression: &'static str,
}

/// A choice that is off or on.
const fn switch(
    expression: &'static str,
    alternatives: &'static [Alternative; 2],
) -> InstallChoice {
    InstallChoice {
        alternatives,
        expression,
    }
}

/// Every choice. Lists and numbers are no choices: [`TOKENS`] stand for them.
pub(super) const CHOICES: &[InstallChoice] = &[
    InstallChoice {
        alternatives: &[
            ("both", |_| ()),
            ("single", |options| options.single_deployment = true),
            ("webhooks", |options| options.controller = false),
            ("controller", |options| options.webhooks = false),
        ],
        expression: "include \"rayfit.parts\" $",
    },
    switch(
        "eq $.Values.certificates \"cert-manager\"",
        &[
            ("", |_| ()),
            ("", |options| {
                options.certificates = Some(Certificates::CertManager);
            }),
        ],
    ),
    switch(
        "$.Values.onlyNamespaces",
        &[
            ("", |_| ()),
            ("", |options| {
                options.only_namespaces = vec!["<<only>>".to_owned()];
            }),
        ],
    ),
    switch(
        "$.Values.failClosed",
        &[
            ("", |_| ()),
            ("", |options| {
                options.failure_policy = FailurePolicy::Closed;
            }),
        ],
    ),
    switch(
        "$.Values.webhook.hostNetwork",
        &[("", |_| ()), ("", |options| options.host_network = true)],
    ),
    switch(
        "$.Values.priorityClassName",
        &[
            ("", |_| ()),
            ("", |options| {
                options.priority_class = Some("<<priority>>".to_owned());
            }),
        ],
    ),
    switch(
        "$.Values.apiServerCidrs",
        &[
            ("", |_| ()),
            ("", |options| {
                options.api_server_cidrs = vec!["<<cidr>>".to_owned()];
            }),
        ],
    ),
    switch(
        "$.Values.webhook.clientCaConfigMap",
        &[
            ("", |_| ()),
            ("", |options| {
                options.client_ca_config_map = Some("<<callers>>".to_owned());
            }),
        ],
    ),
    switch(
        "$.Values.rayAuth",
        &[
            ("", |_| ()),
            ("", |options| {
                options.ray_auth = true;
            }),
        ],
    ),
    switch(
        "$.Values.deleteIdleClusters",
        &[
            ("", |_| ()),
            ("", |options| {
                options.delete_idle_clusters = true;
            }),
        ],
    ),
    switch(
        "$.Values.initialSizes",
        &[("", |_| ()), ("", |options| options.initial_sizes = true)],
    ),
    switch(
        "gt (int (include \"rayfit.replicas\" $)) 1",
        &[
            ("", |options| options.replicas = Some(1)),
            ("", |options| options.replicas = Some(2)),
        ],
    ),
    switch(
        "gt (int $.Values.controller.replicaCount) 1",
        &[
            ("", |options| options.controller_replicas = 1),
            ("", |options| options.controller_replicas = 2),
        ],
    ),
];

/// Texts in objects, and what a template has in their place. The namespace after a dash comes first: it ends the
/// names of cluster-wide objects.
pub(super) const TOKENS: &[(&str, &str)] = &[
    ("-<<namespace>>", "{{ include \"rayfit.suffix\" $ }}"),
    ("<<namespace>>", "{{ $.Release.Namespace }}"),
    ("<<image>>", "{{ include \"rayfit.image\" $ }}"),
    ("<<open>>", "{{ \"{{\" }}"),
    ("<<priority>>", "{{ $.Values.priorityClassName }}"),
    ("<<callers>>", "{{ $.Values.webhook.clientCaConfigMap }}"),
    ("40001", "{{ $.Values.webhook.port }}"),
    ("40002", "{{ $.Values.healthPort }}"),
    ("40005", "{{ include \"rayfit.replicas\" $ }}"),
    ("40006", "{{ $.Values.controller.replicaCount }}"),
    ("251", "{{ $.Values.webhook.timeoutSeconds }}"),
];

/// Texts that stand for one element of a list: the list, and what is written of the element.
pub(super) const LISTS: &[(&str, &str, &str)] = &[
    ("<<only>>", "onlyNamespaces", "{{ $each }}"),
    ("<<excluded>>", "excludedNamespaces", "{{ $each }}"),
    ("<<cidr>>", "apiServerCidrs", "{{ $each }}"),
    (
        "<<label>>",
        "monitoringNamespaceLabels",
        "{{ (splitn \"=\" 2 $each)._0 }}",
    ),
    (
        "<<labelled>>",
        "monitoringNamespaceLabels",
        "{{ (splitn \"=\" 2 $each)._1 }}",
    ),
    ("40003", "apiServerPorts", "{{ $each }}"),
    ("40004", "gcsPorts", "{{ $each }}"),
];

/// The options with the alternatives of an assignment, and tokens for all values.
pub(super) fn options(assignment: &[usize]) -> ManifestOptions {
    let mut options = ManifestOptions {
        namespace: "<<namespace>>".to_owned(),
        image: "<<image>>".to_owned(),
        port: 40001,
        health_port: 40002,
        api_server_ports: vec![40003],
        gcs_ports: vec![40004],
        timeout_seconds: 251,
        excluded_namespaces: vec!["<<excluded>>".to_owned()],
        monitoring_namespace_labels: vec!["<<label>>=<<labelled>>".to_owned()],
        certificates: Some(Certificates::SelfManaged),
        definitions: false,
        ..ManifestOptions::default()
    };
    for (choice, chosen) in CHOICES.iter().zip(assignment) {
        if let Some((_, apply)) = choice.alternatives.get(*chosen) {
            apply(&mut options);
        }
    }
    options
}

/// The objects of an assignment. Numbers of replicas decide about disruption budgets, and are tokens too.
pub(super) fn made(assignment: &[usize]) -> Value {
    let mut made = objects(&options(assignment));
    for object in &mut made {
        if object["kind"] == "Deployment" {
            let is_webhooks = object["metadata"]["name"] == APP;
            object["spec"]["replicas"] = json!(if is_webhooks { 40005 } else { 40006 });
        }
    }
    Value::Array(made)
}

/// Assignments from which every condition can be told: with each part of an installation and each issuer, everything
/// else off or on, and next to each of these one choice made otherwise.
pub(super) fn samples() -> Vec<Assignment> {
    let off = vec![0; CHOICES.len()];
    let on = vec![1; CHOICES.len()];
    let mut cluster_wide = on.clone();
    cluster_wide[2] = 0;
    let mut samples = Vec::new();
    for start in [off, on, cluster_wide] {
        for parts in 0..CHOICES[0].alternatives.len() {
            for issuer in 0..2 {
                let mut base = start.clone();
                base[0] = parts;
                base[1] = issuer;
                samples.extend(neighbours(&base));
                samples.push(base);
            }
        }
    }
    samples.sort();
    samples.dedup();
    samples
}

fn neighbours(base: &[usize]) -> Vec<Assignment> {
    let mut neighbours = Vec::new();
    for (at, choice) in CHOICES.iter().enumerate() {
        for other in 0..choice.alternatives.len() {
            let mut neighbour = base.to_vec();
            neighbour[at] = other;
            neighbours.push(neighbour);
        }
    }
    neighbours
}
