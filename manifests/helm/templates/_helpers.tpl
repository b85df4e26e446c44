{{/* Which Deployments there are: both, single (one for both), webhooks or controller. */}}
{{- define "rayfit.parts" -}}
{{- if not .Values.controller.enabled }}webhooks
{{- else if not .Values.webhook.enabled }}controller
{{- else if .Values.singleDeployment }}single
{{- else }}both
{{- end }}
{{- end }}

{{/* The end of the names of cluster-wide objects, so that several installations can be in one Kubernetes cluster. */}}
{{- define "rayfit.suffix" -}}
{{- if ne .Release.Namespace "rayfit-system" }}-{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- define "rayfit.image" -}}
{{- with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}
{{- with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Three where the Ray objects of the cluster depend on them. */}}
{{- define "rayfit.replicas" -}}
{{ .Values.webhook.replicaCount | default (ternary 3 2 .Values.failClosed) }}
{{- end }}

{{/* Choices that cannot work, beyond what values.schema.json refuses. */}}
{{- define "rayfit.check" -}}
{{- $v := .Values }}
{{- if not (or $v.webhook.enabled $v.controller.enabled) }}
{{- fail "with neither webhook.enabled nor controller.enabled there is nothing to install" }}
{{- end }}
{{- if not (or $v.webhook.enabled $v.onlyNamespaces) }}
{{- fail "without webhook.enabled this is a further installation: name its namespaces in onlyNamespaces" }}
{{- end }}
{{- if and $v.singleDeployment (not (and $v.webhook.enabled $v.controller.enabled)) }}
{{- fail "singleDeployment is for webhooks and controller in one: there is only one Deployment anyway" }}
{{- end }}
{{- if eq (int $v.webhook.port) (int $v.healthPort) }}
{{- fail (printf "the webhooks cannot have port %v because probes and metrics use it: choose two different ones" $v.healthPort) }}
{{- end }}
{{- if and $v.webhook.hostNetwork (eq (int $v.webhook.port) 10250) }}
{{- fail "the kubelet uses port 10250 in the node's network: with webhook.hostNetwork set another one, for example webhook.port: 9443, and open it from the control plane to the nodes" }}
{{- end }}
{{- range $v.onlyNamespaces }}
{{- if has . (concat (list "kube-system" $.Release.Namespace) $v.excludedNamespaces) }}
{{- fail (printf "namespace %q cannot be selected: kube-system, Rayfit's own namespace and excluded ones are never checked" .) }}
{{- end }}
{{- end }}
{{- end }}
