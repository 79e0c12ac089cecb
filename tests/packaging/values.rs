//! Values of the chart, their schema, and the page that is made of them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wva::settings::schema::{Reach, all};
use wva::settings::value::ValueKind;

use super::{CHART, text, yaml};

pub(crate) fn values() -> Value {
    yaml(&format!("{CHART}/values.yaml"))
}

fn schema() -> Value {
    serde_json::from_str(&text(&format!("{CHART}/values.schema.json"))).unwrap()
}

/// Every value that is no object with keys of its own, by its dotted path.
fn leaves(parent: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (key, child) in object {
                let dot = if parent.is_empty() { "" } else { "." };
                leaves(&format!("{parent}{dot}{key}"), child, found);
            }
        }
        None => {
            found.insert(parent.to_owned(), value.clone());
        }
    }
}

/// The published defaults, and ours where they differ on purpose; one line per value.
const DEFAULTS: &str = r#"
nameOverride ""
fullnameOverride ""
controller.enabled true
wva.enabled true
wva.replicaCount 2
wva.image.repository "workload-variant-autoscaler"
wva.image.tag "v0.1.0"
wva.imagePullPolicy "Always"
wva.imagePullSecret ""
wva.metrics.enabled true
wva.metrics.port 8443
wva.metrics.secure true
wva.metrics.serviceMonitor.enabled true
wva.metrics.serviceMonitor.interval "10s"
wva.metrics.serviceMonitor.labels {}
wva.namespaceScoped false
wva.watchNamespace ""
wva.reconcileInterval "15s"
wva.configMap.immutable false
wva.prometheus.monitoringNamespace "openshift-user-workload-monitoring"
wva.prometheus.serviceAccountName "kube-prometheus-stack-prometheus"
wva.prometheus.baseURL "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091"
wva.prometheus.allowHTTP false
wva.prometheus.tokenPath "/var/run/secrets/kubernetes.io/serviceaccount/token"
wva.prometheus.clusterMonitoringView true
wva.prometheus.serverName ""
wva.prometheus.tls.insecureSkipVerify false
wva.prometheus.tls.caCertPath "/etc/ssl/certs/prometheus-ca.crt"
wva.prometheus.caCert ""
wva.prometheus.caFrom.configMap ""
wva.prometheus.caFrom.secret ""
wva.prometheus.caFrom.key "ca.crt"
wva.prometheus.metricsCache {}
wva.limitedMode false
wva.nodeSelector ""
wva.scaleToZero false
wva.scaleToZeroModels {}
wva.serviceClasses {}
wva.controllerInstance ""
wva.recordClaim ""
wva.poolGroup ""
wva.logging.level ""
wva.config {}
wva.capacityScaling.default {}
wva.capacityScaling.overrides {}
wva.queueingModel.enabled false
wva.queueingModel.default.sloMultiplier 3.0
wva.queueingModel.default.tuningEnabled true
wva.queueingModel.overrides {}
wva.eppMetricsReader.enabled true
wva.resources.limits.cpu "500m"
wva.resources.limits.memory "512Mi"
wva.resources.requests.cpu "10m"
wva.resources.requests.memory "64Mi"
wva.podDisruptionBudget.enabled true
wva.podDisruptionBudget.minAvailable 1
wva.topologySpreadConstraints []
wva.networkPolicy.enabled false
wva.extraArgs []
wva.extraEnv []
wva.podAnnotations {}
wva.podLabels {}
wva.podNodeSelector {}
wva.tolerations []
wva.affinity {}
wva.priorityClassName ""
wva.serviceAccount.annotations {}
podAutoscalers.enabled true
annotatedScalers.enabled false
podDeletionCost.enabled false
directActuation.enabled false
externalMetrics.enabled false
externalMetrics.port 6443
externalMetrics.apiService true
externalMetrics.certificate.existingSecret ""
externalMetrics.certificate.caBundle ""
externalMetrics.certificate.validityDays 3650
externalScaler.enabled false
externalScaler.port 50051
externalScaler.certificate.existingSecret ""
externalScaler.certificate.validityDays 3650
externalScaler.clientCASecret ""
webhooks.enabled false
webhooks.port 9443
webhooks.certificate.existingSecret ""
webhooks.certificate.caBundle ""
webhooks.certificate.validityDays 3650
keda.enabled false
keda.serverAddress ""
keda.pollingInterval 5
keda.cooldownPeriod 30
keda.initialCooldownPeriod 30
keda.fallback.failureThreshold 3
keda.fallback.replicas 2
keda.fallback.behavior "currentReplicasIfHigher"
keda.unsafeSsl false
keda.authModes ""
keda.authenticationRef ""
prometheusRule.enabled false
prometheusRule.labels {}
dashboard.enabled false
dashboard.labels.grafana_dashboard "1"
llmd.namespace "llm-d-autoscaler"
llmd.modelName "ms-inference-scheduling-llm-d-modelservice"
llmd.modelID "unsloth/Meta-Llama-3.1-8B"
llmd.deploymentName ""
llmd.scaleTargetKind "Deployment"
llmd.scaleTargetName ""
va.enabled false
va.accelerator "H100"
va.variantCost "10.0"
va.minReplicas null
va.maxReplicas null
va.sloTpot 10
va.sloTtft 1000
hpa.enabled false
hpa.minReplicas null
hpa.maxReplicas 10
hpa.targetAverageValue "1"
hpa.tolerance "0"
hpa.behavior.scaleUp.stabilizationWindowSeconds 0
hpa.behavior.scaleUp.selectPolicy "Max"
hpa.behavior.scaleUp.policies [{"type":"Pods","value":100,"periodSeconds":15}]
hpa.behavior.scaleDown.stabilizationWindowSeconds 0
hpa.behavior.scaleDown.selectPolicy "Max"
hpa.behavior.scaleDown.policies [{"type":"Pods","value":100,"periodSeconds":15}]
vllmService.enabled false
vllmService.type "ClusterIP"
vllmService.port 8200
vllmService.targetPort 8200
vllmService.nodePort 30000
vllmService.interval "15s"
vllmService.scheme "http"
vllmService.labels {}
doctor.enabled false
doctor.wait "90s"
"#;

#[test]
fn every_value_has_its_default() {
    let lines = DEFAULTS.trim().lines();
    let expected: BTreeMap<String, Value> = lines
        .map(|line| {
            let (key, value) = line.split_once(' ').unwrap();
            (key.to_owned(), serde_json::from_str(value).unwrap())
        })
        .collect();
    let mut found = BTreeMap::new();
    leaves("", &values(), &mut found);
    for key in expected.keys().chain(found.keys()) {
        assert_eq!(found.get(key), expected.get(key), "{key}");
    }
    let chart = yaml(&format!("{CHART}/Chart.yaml"));
    assert_eq!(chart["appVersion"], found["wva.image.tag"]);
    assert_eq!(format!("v{}", env!("CARGO_PKG_VERSION")), found["wva.image.tag"]);
}

/// What the development values change, all of it, and nothing that is the default anyway but what is
/// said on purpose.
#[test]
fn development_values_differ_where_they_say() {
    let mut found = BTreeMap::new();
    leaves("", &yaml(&format!("{CHART}/values-dev.yaml")), &mut found);
    let quick = json!([{ "type": "Pods", "value": 10, "periodSeconds": 15 }]);
    let expected = [
        ("wva.replicaCount", json!(1)),
        ("wva.image.tag", json!("latest")),
        ("wva.reconcileInterval", json!("30s")),
        ("wva.logging.level", json!("debug")),
        ("wva.prometheus.tls.insecureSkipVerify", json!(true)),
        ("wva.capacityScaling.default.kvCacheThreshold", json!(0.7)),
        ("wva.capacityScaling.default.queueLengthThreshold", json!(3)),
        ("wva.capacityScaling.default.kvSpareTrigger", json!(0.2)),
        ("wva.capacityScaling.default.queueSpareTrigger", json!(2)),
        ("hpa.behavior.scaleUp.stabilizationWindowSeconds", json!(0)),
        ("hpa.behavior.scaleUp.policies", quick.clone()),
        ("hpa.behavior.scaleDown.stabilizationWindowSeconds", json!(30)),
        ("hpa.behavior.scaleDown.policies", quick),
    ];
    let expected: BTreeMap<String, Value> =
        expected.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    assert_eq!(found, expected);
    let mut defaults = BTreeMap::new();
    leaves("", &values(), &mut defaults);
    let on_purpose = |key: &str| key == "hpa.behavior.scaleUp.stabilizationWindowSeconds";
    for (key, value) in expected {
        let is_default = defaults.get(&key) == Some(&value);
        assert_eq!(is_default, on_purpose(&key), "{key}");
    }
}

/// Sizing, pace and sample of the original's chart, from which ours differs on purpose.
#[test]
fn the_original_values_can_be_had() {
    let mut found = BTreeMap::new();
    leaves("", &yaml(&format!("{CHART}/values-original.yaml")), &mut found);
    let slow = json!([{ "type": "Pods", "value": 10, "periodSeconds": 150 }]);
    let mut expected = BTreeMap::from([
        ("wva.reconcileInterval".to_owned(), json!("60s")),
        ("wva.capacityScaling.default.kvCacheThreshold".to_owned(), json!(0.8)),
        ("wva.capacityScaling.default.queueLengthThreshold".to_owned(), json!(5)),
        ("wva.capacityScaling.default.kvSpareTrigger".to_owned(), json!(0.1)),
        ("wva.capacityScaling.default.queueSpareTrigger".to_owned(), json!(3)),
    ]);
    for sample in ["va", "hpa", "vllmService"] {
        expected.insert(format!("{sample}.enabled"), json!(true));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let at = format!("hpa.behavior.{direction}");
        expected.insert(format!("{at}.stabilizationWindowSeconds"), json!(240));
        expected.insert(format!("{at}.policies"), slow.clone());
    }
    assert_eq!(found, expected);
}

/// The schema of a key of the main ConfigMap.
fn schema_of(kind: ValueKind, duration: &Value) -> Value {
    match kind {
        ValueKind::Bool => json!({ "type": ["boolean", "string"], "pattern": "^(true|false)$" }),
        ValueKind::Duration { .. } => duration.clone(),
        ValueKind::Count { .. } => {
            json!({ "type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 0 })
        }
        ValueKind::LogFormat => json!({ "enum": ["json", "text"] }),
        _ => json!({ "type": "string" }),
    }
}

/// Intervals are those that a ServiceMonitor takes. Source: `Duration` of prometheus-operator.
#[test]
fn intervals_of_scrapes_are_those_of_a_service_monitor() {
    let units = ["y", "w", "d", "h", "m", "s", "ms"].map(|unit| format!("(([0-9]+){unit})?"));
    let pattern = format!("^(0|{})$", units.concat());
    let schema = schema();
    for path in [
        "/properties/wva/properties/metrics/properties/serviceMonitor/properties/interval",
        "/properties/vllmService/properties/interval",
    ] {
        let found = schema.pointer(path).unwrap();
        let wanted = json!({ "type": "string", "minLength": 1, "pattern": pattern });
        assert_eq!(*found, wanted, "{path}");
    }
}

/// `wva.config` takes every key that the controller reads from its ConfigMap, and no other.
#[test]
fn the_schema_knows_the_keys_that_the_controller_reads() {
    let schema = schema();
    let wva = &schema["properties"]["wva"]["properties"];
    let duration = &wva["reconcileInterval"];
    let mut wanted = BTreeMap::new();
    for spec in all().filter(|spec| spec.reach == Reach::Everywhere) {
        for name in spec.aliases.iter().chain([&spec.name]) {
            wanted.insert((*name).to_owned(), schema_of(spec.kind, duration));
        }
    }
    let found = wva["config"]["properties"].as_object().unwrap();
    let found: BTreeMap<String, Value> = found.clone().into_iter().collect();
    assert_eq!(found, wanted);
    let flags: BTreeSet<&str> = all().flat_map(|spec| spec.flags.iter().copied()).collect();
    let flags: Vec<&str> = flags.into_iter().collect();
    let wanted = format!("^--?({})(=.*)?$", flags.join("|"));
    assert_eq!(wva["extraArgs"]["items"]["pattern"], wanted, "wva.extraArgs");
    // A flag that the chart sets, by whatever name, is known to its check.
    let check = text(&format!("{CHART}/templates/_check.tpl"));
    let deployment = text(&format!("{CHART}/templates/deployment.yaml"));
    let own = all().filter(|spec| {
        let mut flags = spec.flags.iter();
        flags.any(|flag| deployment.contains(&format!("- --{flag}=")))
    });
    let mut seen = 0;
    for spec in own {
        for flag in spec.flags {
            let line = format!("{flag}: {}", spec.name);
            assert!(check.contains(&line), "{line}");
        }
        assert!(check.contains(&format!("\n{}: ", spec.name)), "{}", spec.name);
        seen += 1;
    }
    assert_eq!(seen, 12);
}

/// Objects and values below which null is a choice: it takes a default of ours or of Kubernetes away.
const MAY_BE_NULL: [&str; 8] = [
    "dashboard.labels.",
    "hpa.behavior.",
    "hpa.tolerance",
    "wva.capacityScaling.default.",
    "wva.queueingModel.default.",
    "wva.resources",
    "wva.resources.",
    "wva.prometheus.metricsCache",
];

/// A value that has a default cannot be taken away by null, which templates would stumble over.
#[test]
fn the_schema_misses_what_is_taken_away() {
    fn judge(at: &str, value: &Value, schema: &Value) {
        let required = schema["required"].as_array();
        let required: BTreeSet<&str> =
            required.into_iter().flatten().filter_map(Value::as_str).collect();
        for (key, child) in value.as_object().into_iter().flatten() {
            let path = format!("{at}{key}");
            let is_empty = [json!(""), json!({}), json!([]), Value::Null].contains(child);
            let may_miss = MAY_BE_NULL
                .iter()
                .any(|known| path == *known || (known.ends_with('.') && path.starts_with(known)));
            assert_eq!(required.contains(&**key), !is_empty && !may_miss, "{path}: required");
            judge(&format!("{path}."), child, &schema["properties"][key]);
        }
    }
    judge("", &values(), &schema());
}

/// Whether a schema takes any key below it on purpose.
fn is_free_form(schema: &Value) -> bool {
    schema["properties"].is_null() && schema["type"] == "object"
}

/// Every object of a schema, wherever it stands, names its keys or says what any of them may be.
fn is_closed(at: &str, schema: &Value) {
    for part in ["properties", "definitions"] {
        for (key, child) in schema[part].as_object().into_iter().flatten() {
            is_closed(&format!("{at}/{key}"), child);
        }
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            is_closed(&format!("{at}/{part}"), &schema[part]);
        }
    }
    // Helm itself puts `global` there, and parameters are each analyzer's own.
    let is_open = at == "/global" || at.ends_with("/analyzers/items/parameters");
    if schema["type"] == "object" && !is_open {
        let others = &schema["additionalProperties"];
        assert!(*others == false || others.is_object(), "{at} takes any key");
    }
}

#[test]
fn the_schema_has_every_value_and_no_other() {
    let schema = schema();
    is_closed("", &schema);
    for file in ["values.yaml", "values-dev.yaml", "values-original.yaml", "values-openshift.yaml"]
    {
        let mut found = BTreeMap::new();
        leaves("", &yaml(&format!("{CHART}/{file}")), &mut found);
        for key in found.keys() {
            let mut at = &schema;
            for part in key.split('.') {
                if is_free_form(at) {
                    break;
                }
                at = &at["properties"][part];
                assert!(at.is_object(), "{file}: {key} is not in the schema");
            }
        }
    }
}

/// Fields of an entry of the saturation ConfigMap, by the page that is compared with the code.
#[test]
fn the_schema_knows_the_fields_that_the_controller_reads() {
    let page = text("docs/saturation-scaling-config.md");
    let section = |title: &str| -> BTreeSet<String> {
        let after = page.split_once(&format!("### {title}\n")).unwrap().1;
        let section = after.split("\n### ").next().unwrap();
        let names = section.lines().filter_map(|line| line.strip_prefix("| `"));
        let names = names.filter_map(|line| line.split('`').next());
        let names = names.filter(|name| !name.contains('.'));
        names.map(str::to_owned).collect()
    };
    let schema = schema();
    let wva = &schema["properties"]["wva"]["properties"];
    let keys = |schema: &Value| -> BTreeSet<String> {
        let own = schema["properties"].as_object().unwrap().keys().cloned();
        own.collect()
    };
    let identity =
        |field: &String| !["modelId", "model_id", "modelID", "namespace"].contains(&&**field);
    let mut fields = section("Saturation");
    fields.retain(identity);
    assert_eq!(keys(&wva["capacityScaling"]["properties"]["default"]), fields);
    let mut fields = section("Queueing model");
    fields.retain(identity);
    assert_eq!(keys(&wva["queueingModel"]["properties"]["default"]), fields);
}
