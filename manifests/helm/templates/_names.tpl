{{/* The labels by which the pods are found. A Deployment's selector is immutable, so they never change. */}}
{{- define "rayfit.selector" -}}
app.kubernetes.io/name: rayfit
app.kubernetes.io/component: admission
{{- end }}

{{/* The same of what scales clusters, where it is a Deployment of its own. */}}
{{- define "rayfit.controllerSelector" -}}
app.kubernetes.io/name: rayfit
app.kubernetes.io/component: controller
{{- end }}

{{/* The account under which clusters are scaled. */}}
{{- define "rayfit.scaler" -}}
{{ ternary "rayfit" "rayfit-controller" .Values.singleDeployment }}
{{- end }}

{{/* There is a Deployment of its own for it. */}}
{{- define "rayfit.apart" -}}
{{ if and .Values.controller (not .Values.singleDeployment) }}yes{{ end }}
{{- end }}

{{/* The labels of objects that are there for scaling clusters. */}}
{{- define "rayfit.scalerLabels" -}}
{{ include (ternary "rayfit.selector" "rayfit.controllerSelector" .Values.singleDeployment) . }}
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

{{/* The pods of a Deployment kept apart from each other; takes the name of its selector. */}}
{{- define "rayfit.spread" -}}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include .selector .root | nindent 12 }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: topology.kubernetes.io/zone
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include .selector .root | nindent 6 }}
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include .selector .root | nindent 6 }}
{{- end }}

{{- define "rayfit.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{/* What the containers of both Deployments have in common. */}}
{{- define "rayfit.container" -}}
startupProbe:
  httpGet:
    path: /livez
    port: health
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet:
    path: /livez
    port: health
  periodSeconds: 10
  timeoutSeconds: 2
  failureThreshold: 3
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 5
  timeoutSeconds: 2
  failureThreshold: 1
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop:
    - ALL
  seccompProfile:
    type: RuntimeDefault
env:
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- end }}

{{/* Which clusters are scaled. */}}
{{- define "rayfit.scaledNamespaces" -}}
{{- with .Values.onlyNamespaces }}
- --namespaces={{ join "," . }}
{{- end }}
{{- end }}

{{/* Rules of network policies: TCP ports; API servers at the other end, where they are known. */}}
{{- define "rayfit.ports" -}}
ports:
{{- range . }}
- port: {{ . }}
  protocol: TCP
{{- end }}
{{- end }}

{{- define "rayfit.apiServers" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{/* From where metrics are read. Kubelets need no rule: a pod's own node always reaches it. */}}
{{- define "rayfit.fromMonitoring" -}}
- from:
  {{- range .Values.monitoringNamespaceLabels }}
  {{- $label := splitn "=" 2 . }}
  - namespaceSelector:
      matchLabels:
        {{ $label._0 }}: {{ $label._1 | quote }}
  {{- end }}
  {{- include "rayfit.ports" (list .Values.healthPort) | nindent 2 }}
{{- end }}

{{/* To DNS, where a provider gives API servers a name, and to API servers. */}}
{{- define "rayfit.toApiServers" -}}
- to:
  - namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: kube-system
  ports:
  - port: 53
    protocol: UDP
  - port: 53
    protocol: TCP
- {{ include "rayfit.ports" .Values.apiServerPorts | nindent 2 | trim }}
  {{- with .Values.apiServerCidrs }}
  to: {{- include "rayfit.apiServers" . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "rayfit.toHeads" -}}
- to:
  - namespaceSelector: {}
    podSelector:
      matchLabels:
        ray.io/node-type: head
  {{- include "rayfit.ports" .Values.gcsPorts | nindent 2 }}
{{- end }}

{{/* Choices that cannot work, beyond what values.schema.json refuses. */}}
{{- define "rayfit.check" -}}
{{- if eq (int .Values.port) (int .Values.healthPort) }}
{{- fail (printf "the webhooks cannot have port %v because probes and metrics use it: choose two different ones" .Values.port) }}
{{- end }}
{{- if and .Values.hostNetwork (eq (int .Values.port) 10250) }}
{{- fail "the kubelet uses port 10250 in the node's network: with hostNetwork set another one, for example port: 9443, and open it from the control plane to the nodes" }}
{{- end }}
{{- if and .Values.singleDeployment (not .Values.controller) }}
{{- fail "singleDeployment without controller: without the controller there is only one Deployment anyway" }}
{{- end }}
{{- range .Values.onlyNamespaces }}
{{- if has . (concat (list "kube-system" $.Release.Namespace) $.Values.excludedNamespaces) }}
{{- fail (printf "namespace %q cannot be selected: kube-system, Rayfit's own namespace and excluded ones are never checked" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* A role for a purpose, in a namespace if there is one, and its binding to an account. */}}
{{- define "rayfit.role" }}
{{- $labels := ternary "rayfit.selector" "rayfit.controllerSelector" (eq .account "rayfit") }}
{{- $kind := ternary "Role" "ClusterRole" (not (empty .namespace)) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: rayfit-{{ .purpose }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include $labels .root | nindent 4 }}
rules: {{- get (.root.Files.Get "files/rights.yaml" | fromYaml) .purpose | toYaml | nindent 0 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: rayfit-{{ .purpose }}
  {{- with .namespace }}
  namespace: {{ . }}
  {{- end }}
  labels: {{- include $labels .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: rayfit-{{ .purpose }}
subjects:
{{- with .group }}
- apiGroup: rbac.authorization.k8s.io
  kind: Group
  name: {{ . }}
{{- else }}
- kind: ServiceAccount
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace }}
{{- end }}
{{- end }}
