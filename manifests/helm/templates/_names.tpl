{{/* The labels by which the pods are found. A Deployment's selector is immutable, so they never change. */}}
{{- define "rayfit.selector" -}}
app.kubernetes.io/name: rayfit
app.kubernetes.io/component: admission
{{- end }}

{{- define "rayfit.image" -}}
{{ .Values.image | default (printf "rayfit:%s" .Chart.AppVersion) }}
{{- end }}

{{/* Three where the Ray objects of the cluster depend on them. */}}
{{- define "rayfit.replicas" -}}
{{ .Values.replicas | default (ternary 3 2 .Values.failClosed) }}
{{- end }}

{{/* That kube-system and our own namespace are left alone keeps a cluster startable. */}}
{{- define "rayfit.namespaces" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{- concat (list "kube-system" .Release.Namespace) .Values.excludedNamespaces | uniq | toYaml | nindent 4 }}
{{- with .Values.onlyNamespaces }}
- key: kubernetes.io/metadata.name
  operator: In
  values: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{/* Choices that cannot work, beyond what values.schema.json refuses. */}}
{{- define "rayfit.check" -}}
{{- if eq (int .Values.port) (int .Values.healthPort) }}
{{- fail (printf "the webhooks cannot have port %v while probes and metrics have it too: choose two different ones" .Values.port) }}
{{- end }}
{{- if and .Values.hostNetwork (eq (int .Values.port) 10250) }}
{{- fail "port 10250 belongs to the kubelet in the node's network: with hostNetwork set another one, for example port: 9443, and open it from the control plane to the nodes" }}
{{- end }}
{{- range .Values.onlyNamespaces }}
{{- if has . (concat (list "kube-system" $.Release.Namespace) $.Values.excludedNamespaces) }}
{{- fail (printf "namespace %q cannot be judged: kube-system, Rayfit's own namespace and excluded ones are left alone" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A role for a purpose, in a namespace if there is one, and its binding to the account. */}}
{{- define "rayfit.role" }}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .namespace)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: rayfit-{{ .purpose }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "rayfit.selector" .root | nindent 4 }}
rules: {{- get (.root.Files.Get "files/rights.yaml" | fromYaml) .purpose | toYaml | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: rayfit-{{ .purpose }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include "rayfit.selector" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: rayfit-{{ .purpose }}
subjects:
- kind: ServiceAccount
  name: rayfit
  namespace: {{ .root.Release.Namespace }}
{{- end }}
