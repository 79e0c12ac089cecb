{{- define "wva.name" -}}
{{ .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The release's name, or release and chart where the one does not hold the other. */}}
{{- define "wva.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* For objects without a namespace, so that releases in two namespaces do not meet. */}}
{{- define "wva.clusterResourceName" -}}
{{ printf "%s-%s" (include "wva.fullname" .) .Release.Namespace | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "wva.selectorLabels" -}}
app.kubernetes.io/name: {{ include "wva.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wva.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "wva.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "wva.controllerSelector" -}}
{{ include "wva.selectorLabels" . }}
control-plane: controller-manager
{{- end }}

{{- define "wva.account" -}}
{{ include "wva.fullname" . }}-controller-manager
{{- end }}

{{- define "wva.mainConfigMap" -}}
{{ include "wva.fullname" . }}-variantautoscaling-config
{{- end }}
{{- define "wva.saturationConfigMap" -}}
{{ include "wva.fullname" . }}-wva-saturation-scaling-config
{{- end }}
{{- define "wva.queueingConfigMap" -}}
{{ include "wva.fullname" . }}-wva-queueing-model-config
{{- end }}
{{- define "wva.serviceClasses" -}}
{{ include "wva.fullname" . }}-service-classes-config
{{- end }}

{{/* The one namespace that is watched; empty for all. */}}
{{- define "wva.watched" -}}
{{- if .Values.wva.namespaceScoped }}{{ .Values.wva.watchNamespace | default .Release.Namespace }}{{ end -}}
{{- end }}

{{/* Non-empty where an authority for Prometheus is given. */}}
{{- define "wva.hasCA" -}}
{{- $p := .Values.wva.prometheus -}}
{{- if or $p.caCert $p.caFrom.configMap $p.caFrom.secret }}yes{{ end -}}
{{- end }}

{{- define "wva.target" -}}
{{- $deployment := .Values.llmd.deploymentName | default (printf "%s-decode" .Values.llmd.modelName) -}}
{{ .Values.llmd.scaleTargetName | default $deployment }}
{{- end }}

{{- define "wva.targetRef" -}}
apiVersion: {{ if eq .Values.llmd.scaleTargetKind "LeaderWorkerSet" }}leaderworkerset.x-k8s.io/v1{{ else }}apps/v1{{ end }}
kind: {{ .Values.llmd.scaleTargetKind }}
name: {{ include "wva.target" . | quote }}
{{- end }}

{{/* The behaviour of the HPA, with the tolerance. */}}
{{- define "wva.behavior" -}}
{{- $behavior := deepCopy .Values.hpa.behavior -}}
{{- if ne (toString .Values.hpa.tolerance) "" -}}
{{- range $direction := list "scaleUp" "scaleDown" -}}
{{- $of := get $behavior $direction | default dict -}}
{{- $_ := set $of "tolerance" (toString $.Values.hpa.tolerance) -}}
{{- $_ := set $behavior $direction $of -}}
{{- end -}}
{{- end -}}
{{ toYaml $behavior }}
{{- end }}

{{/* The data of the main ConfigMap. */}}
{{- define "wva.config" -}}
{{- $w := .Values.wva -}}
{{- $p := $w.prometheus -}}
{{- $data := dict
  "PROMETHEUS_BASE_URL" $p.baseURL
  "GLOBAL_OPT_INTERVAL" $w.reconcileInterval
  "LOG_LEVEL" ($w.logging.level | default "info")
  "WVA_LIMITED_MODE" (toString $w.limitedMode)
  "WVA_SCALE_TO_ZERO" (toString $w.scaleToZero) -}}
{{- if $p.allowHTTP -}}
{{- $_ := set $data "PROMETHEUS_ALLOW_HTTP" "true" -}}
{{- else -}}
{{- $_ := set $data "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY" (toString $p.tls.insecureSkipVerify) -}}
{{- end -}}
{{- if include "wva.hasCA" . }}{{ $_ := set $data "PROMETHEUS_CA_CERT_PATH" $p.tls.caCertPath }}{{ end -}}
{{- range $key, $value := dict "PROMETHEUS_SERVER_NAME" $p.serverName "WVA_NODE_SELECTOR" $w.nodeSelector "POOL_GROUP" $w.poolGroup -}}
{{- if $value }}{{ $_ := set $data $key $value }}{{ end -}}
{{- end -}}
{{- $cache := dict "ttl" "TTL" "cleanupInterval" "CLEANUP_INTERVAL" "fetchInterval" "FETCH_INTERVAL" "freshThreshold" "FRESH_THRESHOLD" "staleThreshold" "STALE_THRESHOLD" "unavailableThreshold" "UNAVAILABLE_THRESHOLD" "maxSize" "MAX_SIZE" -}}
{{- range $name, $value := $p.metricsCache -}}
{{- if ne (toString $value) "" }}{{ $_ := set $data (printf "PROMETHEUS_METRICS_CACHE_%s" (get $cache $name)) (toString $value) }}{{ end -}}
{{- end -}}
{{- range $key, $value := $w.config -}}
{{- if hasKey $data $key }}{{ fail (printf "wva.config.%s: this key has a value of its own; see values.yaml" $key) }}{{ end -}}
{{- $_ := set $data $key (toString $value) -}}
{{- end -}}
{{ toYaml $data }}
{{- end }}

{{/* An entry of a policy ConfigMap: the values but for null ones, the model's name as model_id, and what
--set left as text as the number that it is. */}}
{{- define "wva.entry" -}}
{{- $entry := dict -}}
{{- range $field, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- if and (kindIs "string" $value) (regexMatch "^[0-9]+\\.[0-9]+$" $value) -}}{{- $value = float64 $value -}}{{- end -}}
{{- $_ := set $entry (get (dict "modelID" "model_id" "enabled" "enable_scale_to_zero" "retentionPeriod" "retention_period") $field | default $field) $value -}}
{{- end -}}
{{- end -}}
{{ toYaml $entry }}
{{- end }}

{{/* What cannot be wanted together. */}}
{{- define "wva.check" -}}
{{- $p := .Values.wva.prometheus -}}
{{- if and $p.allowHTTP (or $p.tls.insecureSkipVerify (include "wva.hasCA" .) $p.serverName) -}}
{{- fail "wva.prometheus.allowHTTP: plain http knows no TLS; remove wva.prometheus.tls.insecureSkipVerify, caCert, caFrom and serverName" -}}
{{- end -}}
{{- if and (not $p.allowHTTP) (hasPrefix "http://" $p.baseURL) -}}
{{- fail (printf "wva.prometheus.baseURL: %s is not https; write https://, or set wva.prometheus.allowHTTP=true for a Prometheus without TLS" $p.baseURL) -}}
{{- end -}}
{{- if gt (len (compact (list $p.caCert $p.caFrom.configMap $p.caFrom.secret))) 1 -}}
{{- fail "wva.prometheus.caFrom: give the authority once: caCert, caFrom.configMap or caFrom.secret" -}}
{{- end -}}
{{- if and .Values.wva.watchNamespace (not .Values.wva.namespaceScoped) -}}
{{- fail "wva.watchNamespace: it needs wva.namespaceScoped=true" -}}
{{- end -}}
{{- $data := include "wva.config" . | fromYaml -}}
{{- range .Values.wva.extraEnv -}}
{{- if hasKey $data .name -}}
{{- fail (printf "wva.extraEnv: %s is a key of the main ConfigMap; set it there, so that it can change live" .name) -}}
{{- end -}}
{{- end -}}
{{- $v := .Values.va -}}
{{- if and (not (kindIs "invalid" $v.minReplicas)) (not (kindIs "invalid" $v.maxReplicas)) (gt (int $v.minReplicas) (int $v.maxReplicas)) -}}
{{- fail (printf "va.minReplicas: %d is more than va.maxReplicas %d" (int $v.minReplicas) (int $v.maxReplicas)) -}}
{{- end -}}
{{- if gt (int .Values.hpa.minReplicas) (int .Values.hpa.maxReplicas) -}}
{{- fail (printf "hpa.minReplicas: %d is more than hpa.maxReplicas %d" (int .Values.hpa.minReplicas) (int .Values.hpa.maxReplicas)) -}}
{{- end -}}
{{- $e := .Values.externalMetrics -}}
{{- if and $e.enabled $e.apiService (not .Values.wva.enabled) -}}
{{- fail "externalMetrics.enabled: without a running controller (wva.enabled=false) its APIService would block the deletion of every namespace; set it to false" -}}
{{- end -}}
{{- if and $e.enabled $e.apiService (lt (int .Values.wva.replicaCount) 2) -}}
{{- fail (printf "wva.replicaCount: with %d, every restart of the pod takes the server from the APIService of externalMetrics, and that blocks the deletion of every namespace; set it to 2 or more, or externalMetrics.enabled=false" (int .Values.wva.replicaCount)) -}}
{{- end -}}
{{- if and $e.enabled $e.certificate.existingSecret $e.apiService (not $e.certificate.caBundle) -}}
{{- fail "externalMetrics.certificate.caBundle: the API server needs the authority of certificate.existingSecret" -}}
{{- end -}}
{{- end }}
