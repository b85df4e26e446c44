//! What only the chart can set: values that have no flag, and their places in the objects.

/// What a value does at a place. `<<of>>` in its name is `webhook` or `controller`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Graft {
    /// The value stands in place of what the objects have.
    Replace(&'static str),
    /// The same, if it is set.
    Prefer(&'static str),
    /// The same, with a value of one line.
    Scalar(&'static str),
    /// The value's fields or items come after those of the objects.
    Extend(&'static str),
    /// A field more, if the value is set.
    Add(&'static str, &'static str),
    /// These lines of a template come after the fields or items of the objects.
    Lines(&'static str),
}

/// Values by the kind of an object (all kinds, if it is empty) and the place in it.
pub(super) const GRAFTS: &[(&str, &str, Graft)] = &[
    ("", "/metadata/labels", Graft::Extend("commonLabels")),
    (
        "CustomResourceDefinition",
        "/metadata",
        Graft::Lines(
            "{{- if $.Values.crds.keep }}\nannotations:\n  helm.sh/resource-policy: keep\n{{- end }}",
        ),
    ),
    (
        "ServiceMonitor",
        "/metadata/labels",
        Graft::Extend("metrics.serviceMonitor.additionalLabels"),
    ),
    (
        "ServiceMonitor",
        "/spec/endpoints/*/interval",
        Graft::Scalar("metrics.serviceMonitor.interval"),
    ),
    (
        "PrometheusRule",
        "/metadata/labels",
        Graft::Extend("metrics.prometheusRule.additionalLabels"),
    ),
    (
        "ConfigMap",
        "/metadata/labels",
        Graft::Extend("metrics.dashboard.additionalLabels"),
    ),
    (
        "ConfigMap",
        "",
        Graft::Lines("data:\n  dashboard.json: {{ $.Files.Get \"dashboard.json\" | toJson }}"),
    ),
    (
        "ServiceAccount",
        "/metadata/labels",
        Graft::Extend("<<of>>.serviceAccount.labels"),
    ),
    (
        "ServiceAccount",
        "/metadata",
        Graft::Add("annotations", "<<of>>.serviceAccount.annotations"),
    ),
    (
        "Deployment",
        "/spec/template/metadata/labels",
        Graft::Extend("commonLabels"),
    ),
    (
        "Deployment",
        "/spec/template/metadata/labels",
        Graft::Extend("<<of>>.podLabels"),
    ),
    (
        "Deployment",
        "/spec/template/metadata/annotations",
        Graft::Extend("<<of>>.podAnnotations"),
    ),
    (
        "Deployment",
        "/spec/template/spec",
        Graft::Add("imagePullSecrets", "imagePullSecrets"),
    ),
    (
        "Deployment",
        "/spec/template/spec",
        Graft::Add("nodeSelector", "<<of>>.nodeSelector"),
    ),
    (
        "Deployment",
        "/spec/template/spec",
        Graft::Add("tolerations", "<<of>>.tolerations"),
    ),
    (
        "Deployment",
        "/spec/template/spec/affinity",
        Graft::Prefer("<<of>>.affinity"),
    ),
    (
        "Deployment",
        "/spec/template/spec/topologySpreadConstraints",
        Graft::Prefer("<<of>>.topologySpreadConstraints"),
    ),
    (
        "Deployment",
        "/spec/template/spec/securityContext",
        Graft::Replace("<<of>>.podSecurityContext"),
    ),
    (
        "Deployment",
        "/spec/template/spec/containers/*/securityContext",
        Graft::Replace("<<of>>.containerSecurityContext"),
    ),
    (
        "Deployment",
        "/spec/template/spec/containers/*/resources",
        Graft::Replace("<<of>>.resources"),
    ),
    (
        "Deployment",
        "/spec/template/spec/containers/*/imagePullPolicy",
        Graft::Scalar("image.pullPolicy"),
    ),
    (
        "Deployment",
        "/spec/template/spec/containers/*/env",
        Graft::Extend("<<of>>.extraEnv"),
    ),
    (
        "Deployment",
        "/spec/template/spec/containers/*/args",
        Graft::Lines(
            "{{- range $rule, $mode := $.Values.<<of>>.rules }}\n- --rule={{ $rule }}={{ $mode }}\n{{- end }}\n\
             {{- range $.Values.<<of>>.extraArgs }}\n- {{ . | quote }}\n{{- end }}",
        ),
    ),
];
