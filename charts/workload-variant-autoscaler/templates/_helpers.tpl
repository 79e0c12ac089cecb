{{- define "wva.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The release's name, or release and chart where the one does not hold the other. */}}
{{- define "wva.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* A name of at most 63 letters, as Services and label values want it: (list . "metrics") is
`<fullname>-metrics`. What would be longer is cut before a digest of the whole, so that two do not meet. */}}
{{- define "wva.short" -}}
{{- $name := printf "%s-%s" (include "wva.fullname" (index . 0)) (index . 1) -}}
{{- if gt (len $name) 63 -}}
{{- $room := int (sub 55 (len (index . 1))) -}}
{{- $name = printf "%s-%s-%s" ($name | trunc $room | trimSuffix "-") ($name | sha256sum | trunc 6) (index . 1) -}}
{{- end -}}
{{ $name }}
{{- end }}

{{/* For objects without a namespace, so that releases in two namespaces do not meet. */}}
{{- define "wva.clusterResourceName" -}}
{{- $name := printf "%s-%s" (include "wva.fullname" .) .Release.Namespace -}}
{{- if gt (len $name) 63 -}}
{{- $name = printf "%s-%s" ($name | trunc 54 | trimSuffix "-") ($name | sha256sum | trunc 8) -}}
{{- end -}}
{{ $name }}
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

{{/* The labels, with those of a value: (list . .Values.some.labels). */}}
{{- define "wva.labelsAnd" -}}
{{ mergeOverwrite (include "wva.labels" (index . 0) | fromYaml) (index . 1 | default dict) | toYaml }}
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

{{/* Non-empty where growth is limited to the GPUs of nodes. */}}
{{- define "wva.limitsToNodes" -}}
{{- $default := .Values.wva.capacityScaling.default -}}
{{- if or .Values.wva.limitedMode (and $default.enableLimiter (not $default.limiters)) }}yes{{ end -}}
{{- end }}

{{/* Non-empty where the token for endpoint pickers is made and mounted; another one would beat it. */}}
{{- define "wva.makesRouterToken" -}}
{{- $key := "EPP_METRIC_READER_BEARER_TOKEN" -}}
{{- $given := hasKey (.Values.wva.config | default dict) $key -}}
{{- range .Values.wva.extraEnv }}{{ if eq .name $key }}{{ $given = true }}{{ end }}{{ end -}}
{{- if and .Values.wva.eppMetricsReader.enabled (not $given) }}yes{{ end -}}
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
{{- if not (has (toString .Values.hpa.tolerance) (list "" "<nil>")) -}}
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
  "POD_AUTOSCALERS_ENABLED" (toString .Values.podAutoscalers.enabled)
  "ANNOTATED_SCALERS_ENABLED" (toString .Values.annotatedScalers.enabled)
  "POD_DELETION_COST_ENABLED" (toString .Values.podDeletionCost.enabled)
  "WVA_LIMITED_MODE" (toString $w.limitedMode)
  "WVA_SCALE_TO_ZERO" (toString $w.scaleToZero) -}}
{{- if $p.allowHTTP -}}
{{- $_ := set $data "PROMETHEUS_ALLOW_HTTP" "true" -}}
{{- else -}}
{{- $_ := set $data "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY" (toString $p.tls.insecureSkipVerify) -}}
{{- if $p.tokenPath }}{{ $_ := set $data "PROMETHEUS_TOKEN_PATH" $p.tokenPath }}{{ end -}}
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
{{- with get (include "wva.owned" $ | fromYaml) $key }}{{ fail (printf "wva.config.%s: %s" $key .) }}{{ end -}}
{{- $_ := set $data $key (toString $value) -}}
{{- end -}}
{{ toYaml $data }}
{{- end }}

{{/* An entry of a policy ConfigMap: the values but for null ones, the model's name as model_id, and what
--set left as text as the number that it is, but for names. */}}
{{- define "wva.entry" -}}
{{- $entry := dict -}}
{{- range $field, $value := . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $is_name := has $field (list "modelID" "namespace" "analyzerName" "retentionPeriod") -}}
{{- if and (kindIs "string" $value) (not $is_name) (regexMatch "^[0-9]+\\.[0-9]+$" $value) -}}{{- $value = float64 $value -}}{{- end -}}
{{- $_ := set $entry (get (dict "modelID" "model_id" "enabled" "enable_scale_to_zero" "retentionPeriod" "retention_period") $field | default $field) $value -}}
{{- end -}}
{{- end -}}
{{ toYaml $entry }}
{{- end }}

{{/* Non-empty where a saturation entry states neither an analyzer nor a threshold of percentages. */}}
{{- define "wva.isUnchosen" -}}
{{- $chosen := or .analyzers (and (hasKey . "analyzerName") (not (kindIs "invalid" .analyzerName))) -}}
{{- if not (or $chosen (include "wva.statesPercentages" .)) }}yes{{ end -}}
{{- end }}

{{/* Non-empty where a saturation entry states a threshold of percentages. */}}
{{- define "wva.statesPercentages" -}}
{{- $entry := . -}}
{{- range list "kvCacheThreshold" "queueLengthThreshold" "kvSpareTrigger" "queueSpareTrigger" -}}
{{- if and (hasKey $entry .) (not (kindIs "invalid" (get $entry .))) }}yes{{ end -}}
{{- end -}}
{{- end }}

{{/* The saturation entry of a model, by percentages where it states a threshold of theirs and would else be
     sized for latency objectives. */}}
{{- define "wva.saturationOverride" -}}
{{- $entry := deepCopy (index . 0) -}}
{{- $unnamed := or (not (hasKey $entry "analyzerName")) (kindIs "invalid" $entry.analyzerName) -}}
{{- if and (include "wva.isUnchosen" (index . 1)) (include "wva.statesPercentages" $entry) $unnamed (not $entry.analyzers) -}}
{{- $_ := set $entry "analyzerName" "percentage" -}}
{{- end -}}
{{ include "wva.entry" $entry }}
{{- end }}

{{/* The data of a Secret with a certificate for a Service, as YAML: (list . <name of both> <days>). It is made
once: upgrades find it and keep it. Each call makes another one. */}}
{{- define "wva.servingCertificate" -}}
{{- $namespace := (index . 0).Release.Namespace -}}
{{- $name := index . 1 -}}
{{- $days := int (index . 2) -}}
{{- $data := dict -}}
{{- with lookup "v1" "Secret" $namespace $name -}}
{{- $data = .data | default dict -}}
{{- end -}}
{{- if not (and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key")) -}}
{{- $hosts := list (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.cluster.local" $name $namespace) (printf "%s.%s" $name $namespace) -}}
{{- $ca := genCA $name $days -}}
{{- $certificate := genSignedCert (index $hosts 0 | trunc 63 | trimSuffix ".") nil $hosts $days $ca -}}
{{- $data = dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($certificate.Cert | b64enc) "tls.key" ($certificate.Key | b64enc) -}}
{{- end -}}
{{- toYaml $data -}}
{{- end }}

{{- /* The fewest replicas of the scaler of the sample. Kubernetes lets an HPA have 0 by default from 1.37 on. */ -}}
{{- define "wva.hpaMinimum" -}}
{{- $stated := .Values.hpa.minReplicas -}}
{{- $served := semverCompare ">=1.37.0-0" .Capabilities.KubeVersion.Version -}}
{{- if not (kindIs "invalid" $stated) -}}
{{- int $stated -}}
{{- else if and $served (not .Values.keda.enabled) -}}
0
{{- else -}}
1
{{- end -}}
{{- end }}
