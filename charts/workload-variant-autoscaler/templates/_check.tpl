{{/* Values that cannot be meant, each refused by its name. The schema has what one value alone may be. */}}
{{- define "wva.check" -}}
{{- include "wva.check.image" . -}}
{{- include "wva.check.prometheus" . -}}
{{- include "wva.check.scope" . -}}
{{- include "wva.check.container" . -}}
{{- include "wva.check.budget" . -}}
{{- include "wva.check.policies" . -}}
{{- include "wva.check.sample" . -}}
{{- include "wva.check.externalMetrics" . -}}
{{- include "wva.check.webhooks" . -}}
{{- end }}

{{/* Keys and variables that this chart sets itself, each with what to use. */}}
{{- define "wva.owned" -}}
PROMETHEUS_BASE_URL: use wva.prometheus.baseURL
PROMETHEUS_ALLOW_HTTP: use wva.prometheus.allowHTTP
PROMETHEUS_TOKEN_PATH: use wva.prometheus.tokenPath
PROMETHEUS_TLS_INSECURE_SKIP_VERIFY: use wva.prometheus.tls.insecureSkipVerify
PROMETHEUS_CA_CERT_PATH: use wva.prometheus.caCert or wva.prometheus.caFrom
PROMETHEUS_SERVER_NAME: use wva.prometheus.serverName
PROMETHEUS_METRICS_CACHE_TTL: use wva.prometheus.metricsCache.ttl
PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL: use wva.prometheus.metricsCache.cleanupInterval
PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL: use wva.prometheus.metricsCache.fetchInterval
PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD: use wva.prometheus.metricsCache.freshThreshold
PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD: use wva.prometheus.metricsCache.staleThreshold
PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD: use wva.prometheus.metricsCache.unavailableThreshold
PROMETHEUS_METRICS_CACHE_MAX_SIZE: use wva.prometheus.metricsCache.maxSize
GLOBAL_OPT_INTERVAL: use wva.reconcileInterval
LOG_LEVEL: use wva.logging.level
WVA_LIMITED_MODE: use wva.limitedMode
WVA_NODE_SELECTOR: use wva.nodeSelector
WVA_SCALE_TO_ZERO: use wva.scaleToZero
POOL_GROUP: use wva.poolGroup
POD_AUTOSCALERS_ENABLED: use podAutoscalers.enabled
ANNOTATED_SCALERS_ENABLED: use annotatedScalers.enabled
POD_DELETION_COST_ENABLED: use podDeletionCost.enabled
CONTROLLER_INSTANCE: use wva.controllerInstance
WATCH_NAMESPACE: use wva.namespaceScoped and wva.watchNamespace
METRICS_BIND_ADDRESS: use wva.metrics.enabled and wva.metrics.port
METRICS_ADDR: use wva.metrics.enabled and wva.metrics.port
METRICS_SECURE: use wva.metrics.secure
EXTERNAL_METRICS_BIND_ADDRESS: use externalMetrics.enabled and externalMetrics.port
EXTERNAL_METRICS_CERT_PATH: use externalMetrics.certificate.existingSecret
EXTERNAL_SCALER_BIND_ADDRESS: use externalScaler.enabled and externalScaler.port
EXTERNAL_SCALER_CERT_PATH: use externalScaler.certificate.existingSecret
EXTERNAL_SCALER_CLIENT_CA_PATH: use externalScaler.clientCASecret
WEBHOOK_BIND_ADDRESS: use webhooks.enabled and webhooks.port
WEBHOOK_CERT_PATH: use webhooks.certificate.existingSecret
HEALTH_PROBE_BIND_ADDRESS: the probes of the chart ask port 8081; leave it out
PROBE_ADDR: the probes of the chart ask port 8081; leave it out
LEADER_ELECT: the chart elects a leader whatever wva.replicaCount is; leave it out
POD_NAMESPACE: it is the namespace of the release; leave it out
POD_NAME: it is the name of the pod; leave it out
CONFIG_MAP_NAME: it follows from the name of the release; leave it out
SATURATION_CONFIG_MAP_NAME: it follows from the name of the release; leave it out
QUEUEING_MODEL_CONFIG_MAP_NAME: it follows from the name of the release; leave it out
SERVICE_CLASSES_CONFIG_MAP_NAME: it follows from the name of the release; leave it out
{{- end }}

{{/* Flags for the same, by the key that has the answer. */}}
{{- define "wva.ownedFlags" -}}
leader-elect: LEADER_ELECT
enable-leader-election: LEADER_ELECT
health-probe-bind-address: HEALTH_PROBE_BIND_ADDRESS
probe-addr: HEALTH_PROBE_BIND_ADDRESS
metrics-bind-address: METRICS_BIND_ADDRESS
metrics-addr: METRICS_BIND_ADDRESS
metrics-secure: METRICS_SECURE
watch-namespace: WATCH_NAMESPACE
pod-autoscalers-enabled: POD_AUTOSCALERS_ENABLED
controllers: POD_AUTOSCALERS_ENABLED
annotated-scalers-enabled: ANNOTATED_SCALERS_ENABLED
pod-deletion-cost-enabled: POD_DELETION_COST_ENABLED
external-metrics-bind-address: EXTERNAL_METRICS_BIND_ADDRESS
external-metrics-cert-path: EXTERNAL_METRICS_CERT_PATH
external-scaler-bind-address: EXTERNAL_SCALER_BIND_ADDRESS
external-scaler-cert-path: EXTERNAL_SCALER_CERT_PATH
external-scaler-client-ca-path: EXTERNAL_SCALER_CLIENT_CA_PATH
webhook-bind-address: WEBHOOK_BIND_ADDRESS
webhook-cert-path: WEBHOOK_CERT_PATH
log-level: LOG_LEVEL
zap-log-level: LOG_LEVEL
{{- end }}

{{/* Seconds of a text like 1m30s. */}}
{{- define "wva.seconds" -}}
{{- $units := dict "ns" 0.000000001 "us" 0.000001 "µs" 0.000001 "ms" 0.001 "s" 1 "sec" 1 "m" 60 "min" 60 "h" 3600 "d" 86400 -}}
{{- $total := 0 -}}
{{- range regexFindAll "[0-9.]+ ?[a-zµ]+" . -1 -}}
{{- $total = addf $total (mulf (regexFind "^[0-9.]+" . | float64) (get $units (regexFind "[a-zµ]+$" .))) -}}
{{- end -}}
{{ $total }}
{{- end }}

{{- define "wva.check.image" -}}
{{- $image := .Values.wva.image -}}
{{- if and .Values.controller.enabled (regexMatch "^ghcr.io/llm-d(-incubation)?/" $image.repository) -}}
{{- fail (printf "wva.image.repository: %s is the original's image, and this chart is for another program; keep your values file and add --set wva.image.repository=<where you pushed this project's image> --set wva.image.tag=%s" $image.repository .Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{- define "wva.check.prometheus" -}}
{{- $p := .Values.wva.prometheus -}}
{{- if and $p.allowHTTP (or (include "wva.hasCA" .) $p.serverName) -}}
{{- fail "wva.prometheus.allowHTTP: plain http knows no TLS; remove wva.prometheus.caCert, caFrom and serverName" -}}
{{- end -}}
{{- if and $p.allowHTTP (hasPrefix "https://" (default "" $p.baseURL)) -}}
{{- fail (printf "wva.prometheus.allowHTTP: it is for http://, and wva.prometheus.baseURL is %s; write http:// there, or leave allowHTTP out" $p.baseURL) -}}
{{- end -}}
{{- if and (not $p.allowHTTP) (hasPrefix "http://" (default "" $p.baseURL)) -}}
{{- fail (printf "wva.prometheus.baseURL: %s is not https; write https://, or set wva.prometheus.allowHTTP=true for a Prometheus without TLS" $p.baseURL) -}}
{{- end -}}
{{- if gt (len (compact (list $p.caCert $p.caFrom.configMap $p.caFrom.secret))) 1 -}}
{{- fail "wva.prometheus.caFrom: give the authority once: caCert, caFrom.configMap or caFrom.secret" -}}
{{- end -}}
{{- end }}

{{/* A budget that no eviction fits in would keep a drained node for ever. */}}
{{- define "wva.check.budget" -}}
{{- $w := .Values.wva -}}
{{- $least := $w.podDisruptionBudget.minAvailable -}}
{{- $is_all := eq (toString $least) "100%" -}}
{{- if not (kindIs "string" $least) }}{{ $is_all = ge (int $least) (int $w.replicaCount) }}{{ end -}}
{{- if and $w.podDisruptionBudget.enabled $w.enabled (gt (int $w.replicaCount) 1) $is_all -}}
{{- fail (printf "wva.podDisruptionBudget.minAvailable: %v of wva.replicaCount=%d lets no node with one of these pods be drained; leave one out" $least (int $w.replicaCount)) -}}
{{- end -}}
{{- end }}

{{- define "wva.check.scope" -}}
{{- $w := .Values.wva -}}
{{- if and $w.watchNamespace (not $w.namespaceScoped) -}}
{{- fail "wva.watchNamespace: it needs wva.namespaceScoped=true" -}}
{{- end -}}
{{- $seconds := include "wva.seconds" $w.reconcileInterval | float64 -}}
{{- if or (lt $seconds 1.0) (gt $seconds 3600.0) -}}
{{- fail (printf "wva.reconcileInterval: %s is not within 1s and 1h" $w.reconcileInterval) -}}
{{- end -}}
{{- end }}

{{- define "wva.check.container" -}}
{{- $owned := include "wva.owned" . | fromYaml -}}
{{- $data := include "wva.config" . | fromYaml -}}
{{- $seen := dict -}}
{{- range .Values.wva.extraEnv -}}
{{- $name := .name -}}
{{- with get $owned $name }}{{ fail (printf "wva.extraEnv: %s is set by the chart: %s" $name .) }}{{ end -}}
{{- if hasKey $data .name -}}
{{- fail (printf "wva.extraEnv: %s is a key of the main ConfigMap; set it there, so that it can change live" .name) -}}
{{- end -}}
{{- if hasKey $seen .name }}{{ fail (printf "wva.extraEnv: %s is there twice" .name) }}{{ end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- $flags := include "wva.ownedFlags" . | fromYaml -}}
{{- range $argument := .Values.wva.extraArgs -}}
{{- $flag := regexReplaceAll "=.*$" $argument "" | trimPrefix "-" | trimPrefix "-" -}}
{{- with get $flags $flag }}{{ fail (printf "wva.extraArgs: %s is set by the chart: %s" $argument (get $owned .)) }}{{ end -}}
{{- if eq $flag "config-file" -}}
{{- fail "wva.extraArgs: --config-file would take the place of the main ConfigMap, and nothing could change live; use wva.config" -}}
{{- end -}}
{{- end -}}
{{- range $label, $value := include "wva.controllerSelector" . | fromYaml -}}
{{- if hasKey $.Values.wva.podLabels $label }}{{ fail (printf "wva.podLabels.%s: by it the pods are selected; leave it out" $label) }}{{ end -}}
{{- end -}}
{{- $ports := list 8081 -}}
{{- if .Values.wva.metrics.enabled -}}
{{- if has (int .Values.wva.metrics.port) $ports }}{{ fail (printf "wva.metrics.port: %d is the port of the probes" (int .Values.wva.metrics.port)) }}{{ end -}}
{{- $ports = append $ports (int .Values.wva.metrics.port) -}}
{{- end -}}
{{- if and .Values.externalMetrics.enabled (has (int .Values.externalMetrics.port) $ports) -}}
{{- fail (printf "externalMetrics.port: %d is taken by the probes or by wva.metrics.port" (int .Values.externalMetrics.port)) -}}
{{- end -}}
{{- if .Values.externalMetrics.enabled }}{{ $ports = append $ports (int .Values.externalMetrics.port) }}{{ end -}}
{{- if and .Values.externalScaler.enabled (has (int .Values.externalScaler.port) $ports) -}}
{{- fail (printf "externalScaler.port: %d is taken by the probes, by wva.metrics.port or by externalMetrics.port" (int .Values.externalScaler.port)) -}}
{{- end -}}
{{- if .Values.externalScaler.enabled }}{{ $ports = append $ports (int .Values.externalScaler.port) }}{{ end -}}
{{- if and .Values.webhooks.enabled (has (int .Values.webhooks.port) $ports) -}}
{{- fail (printf "webhooks.port: %d is taken by the probes, by wva.metrics.port, by externalMetrics.port or by externalScaler.port" (int .Values.webhooks.port)) -}}
{{- end -}}
{{- end }}

{{/* The entries of the policy ConfigMaps, by the rules of the controller. */}}
{{- define "wva.check.policies" -}}
{{- $c := .Values.wva.capacityScaling -}}
{{- $q := .Values.wva.queueingModel -}}
{{- range $name, $of := dict "capacityScaling" $c.overrides "queueingModel" $q.overrides -}}
{{- if hasKey ($of | default dict) "default" -}}
{{- fail (printf "wva.%s.overrides.default: the name default is that of wva.%s.default; choose another" $name $name) -}}
{{- end -}}
{{- end -}}
{{- include "wva.check.saturation" (list "wva.capacityScaling.default" $c.default) -}}
{{- range $name, $entry := $c.overrides -}}
{{- include "wva.check.saturation" (list (printf "wva.capacityScaling.overrides.%s" $name) (mergeOverwrite (deepCopy $c.default) $entry)) -}}
{{- end -}}
{{- if or $q.default.targetTTFT $q.default.targetITL -}}
{{- fail "wva.queueingModel.default: targetTTFT and targetITL count for one model only; move them into wva.queueingModel.overrides" -}}
{{- end -}}
{{- range $name, $entry := mergeOverwrite (dict "the default" $q.default) (deepCopy ($q.overrides | default dict)) -}}
{{- $at := ternary "wva.queueingModel.default" (printf "wva.queueingModel.overrides.%s" $name) (eq $name "the default") -}}
{{- $factor := $entry.sloMultiplier | default 0 | float64 -}}
{{- if and (ne $factor 0.0) (le $factor 1.0) -}}
{{- fail (printf "%s.sloMultiplier: %v is not above 1" $at $entry.sloMultiplier) -}}
{{- end -}}
{{- if ne (gt ($entry.targetTTFT | default 0 | float64) 0.0) (gt ($entry.targetITL | default 0 | float64) 0.0) -}}
{{- fail (printf "%s: targetTTFT and targetITL go together" $at) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* (list <where> <entry with what it inherits>) */}}
{{- define "wva.check.saturation" -}}
{{- $at := index . 0 -}}
{{- $entry := index . 1 -}}
{{- $full := $entry.kvCacheThreshold -}}
{{- if kindIs "invalid" $full }}{{ $full = 0.80 }}{{ end -}}
{{- $spare := $entry.kvSpareTrigger -}}
{{- if kindIs "invalid" $spare }}{{ $spare = 0.1 }}{{ end -}}
{{- if gt (float64 $spare) (float64 $full) -}}
{{- fail (printf "%s.kvSpareTrigger: %v is more than kvCacheThreshold %v" $at $spare $full) -}}
{{- end -}}
{{- if or (has ($entry.analyzerName | default "") (list "saturation" "slo")) $entry.analyzers (include "wva.isUnchosen" $entry) -}}
{{- $up := $entry.scaleUpThreshold | default 0.85 | float64 -}}
{{- $down := $entry.scaleDownBoundary | default 0.70 | float64 -}}
{{- if le $up $down -}}
{{- fail (printf "%s.scaleUpThreshold: %v is not above scaleDownBoundary %v" $at $up $down) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "wva.check.sample" -}}
{{- $v := .Values.va -}}
{{- if and (not (kindIs "invalid" $v.minReplicas)) (not (kindIs "invalid" $v.maxReplicas)) (gt (int $v.minReplicas) (int $v.maxReplicas)) -}}
{{- fail (printf "va.minReplicas: %d is more than va.maxReplicas %d" (int $v.minReplicas) (int $v.maxReplicas)) -}}
{{- end -}}
{{- $least := int (include "wva.hpaMinimum" .) -}}
{{- if gt $least (int .Values.hpa.maxReplicas) -}}
{{- fail (printf "hpa.minReplicas: %d is more than hpa.maxReplicas %d" $least (int .Values.hpa.maxReplicas)) -}}
{{- end -}}
{{- end }}

{{- define "wva.check.externalMetrics" -}}
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

{{- define "wva.check.webhooks" -}}
{{- $w := .Values.webhooks -}}
{{- if and $w.enabled $w.certificate.existingSecret (not $w.certificate.caBundle) -}}
{{- fail "webhooks.certificate.caBundle: the API server needs the authority of certificate.existingSecret" -}}
{{- end -}}
{{- end }}
