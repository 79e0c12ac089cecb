//! Rules about what is shipped: values and their schema, copies, alerts, dashboard, documentation. What
//! needs helm or servers is in `tests/cluster/cases/install`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "test code"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use wva::metrics::Metrics;

const CHART: &str = "charts/workload-variant-autoscaler";

fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn text(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_yaml::from_str(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn values() -> Value {
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
wva.namespaceScoped false
wva.watchNamespace ""
wva.reconcileInterval "60s"
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
wva.controllerInstance ""
wva.poolGroup ""
wva.logging.level ""
wva.config {}
wva.capacityScaling.default.kvCacheThreshold 0.8
wva.capacityScaling.default.queueLengthThreshold 5
wva.capacityScaling.default.kvSpareTrigger 0.1
wva.capacityScaling.default.queueSpareTrigger 3
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
externalMetrics.enabled false
externalMetrics.port 6443
externalMetrics.apiService true
externalMetrics.certificate.existingSecret ""
externalMetrics.certificate.caBundle ""
externalMetrics.certificate.validityDays 3650
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
va.enabled true
va.accelerator "H100"
va.variantCost "10.0"
va.minReplicas null
va.maxReplicas null
va.sloTpot 10
va.sloTtft 1000
hpa.enabled true
hpa.minReplicas 1
hpa.maxReplicas 10
hpa.targetAverageValue "1"
hpa.tolerance "0"
hpa.behavior.scaleUp.stabilizationWindowSeconds 240
hpa.behavior.scaleUp.selectPolicy "Max"
hpa.behavior.scaleUp.policies [{"type":"Pods","value":10,"periodSeconds":150}]
hpa.behavior.scaleDown.stabilizationWindowSeconds 240
hpa.behavior.scaleDown.selectPolicy "Max"
hpa.behavior.scaleDown.policies [{"type":"Pods","value":10,"periodSeconds":150}]
vllmService.enabled true
vllmService.type "ClusterIP"
vllmService.port 8200
vllmService.targetPort 8200
vllmService.nodePort 30000
vllmService.interval "15s"
vllmService.scheme "http"
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
    assert_eq!(
        format!("v{}", env!("CARGO_PKG_VERSION")),
        found["wva.image.tag"]
    );
}

#[test]
fn development_values_differ_where_they_say() {
    let dev = yaml(&format!("{CHART}/values-dev.yaml"));
    for (pointer, value) in [
        ("/wva/replicaCount", json!(1)),
        ("/wva/image/tag", json!("latest")),
        ("/wva/reconcileInterval", json!("30s")),
        ("/wva/logging/level", json!("debug")),
        ("/wva/prometheus/tls/insecureSkipVerify", json!(true)),
        ("/hpa/minReplicas", json!(1)),
        ("/hpa/behavior/scaleUp/stabilizationWindowSeconds", json!(0)),
    ] {
        assert_eq!(dev.pointer(pointer), Some(&value), "{pointer}");
    }
}

/// Whether a schema takes any key below it on purpose.
fn is_free_form(schema: &Value) -> bool {
    schema["properties"].is_null() && schema["type"] == "object"
}

fn is_closed(at: &str, schema: &Value) {
    for (key, child) in schema["properties"].as_object().into_iter().flatten() {
        is_closed(&format!("{at}/{key}"), child);
    }
    if schema["properties"].is_object() {
        let others = &schema["additionalProperties"];
        assert!(*others == false || others.is_object(), "{at} takes any key");
    }
}

#[test]
fn the_schema_has_every_value_and_no_other() {
    let schema = schema();
    is_closed("", &schema);
    for file in ["values.yaml", "values-dev.yaml", "values-openshift.yaml"] {
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

/// Fields of an entry of the saturation ConfigMap, by the page that is made from the code.
#[test]
fn the_schema_knows_the_fields_that_the_controller_reads() {
    let page = text("docs/user-guide/configuration.md");
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
    assert_eq!(
        keys(&wva["capacityScaling"]["properties"]["default"]),
        fields
    );
    let mut fields = section("Queueing model");
    fields.retain(identity);
    assert_eq!(keys(&wva["queueingModel"]["properties"]["default"]), fields);
}

/// What the chart holds of other files; a chart is one folder.
#[test]
fn copies_are_equal() {
    for (original, copy) in [
        ("config/rbac/role.yaml", "role.yaml"),
        ("config/prometheus/alerts.yaml", "alerts.yaml"),
        ("config/grafana/dashboard.json", "dashboard.json"),
    ] {
        let copy = format!("{CHART}/files/{copy}");
        let original = text(original);
        is_current(&copy, &original);
    }
}

fn is_current(file: &str, wanted: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path(file), wanted).unwrap();
    }
    let found = fs::read_to_string(path(file)).unwrap_or_default();
    assert!(found == wanted, "{file} is out of date: run with UPDATE=1");
}

/// `README.md` of the chart: each value with the comment before it.
#[test]
fn the_readme_of_the_chart_is_made_from_its_values() {
    let mut page = "\
# workload-variant-autoscaler

<!-- Made from values.yaml. Do not edit: run the tests with UPDATE=1. -->

```sh
helm install workload-variant-autoscaler charts/workload-variant-autoscaler \\
  --namespace workload-variant-autoscaler-system --create-namespace \\
  --values charts/workload-variant-autoscaler/values.yaml --dry-run
```

`values-dev.yaml` and `values-openshift.yaml` are layered on `values.yaml` with `--values`. A key that is
not in this table is refused. Uninstalling leaves the CustomResourceDefinition and your own objects.

| Value | Default | Meaning |
|---|---|---|
"
    .to_owned();
    let source = text(&format!("{CHART}/values.yaml"));
    let values = values();
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut comment: Vec<String> = Vec::new();
    for line in source.lines() {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        if let Some(words) = bare.strip_prefix("# ") {
            comment.push(words.to_owned());
            continue;
        }
        let key = bare.split_once(':').map(|(key, _)| key);
        let Some(key) = key.filter(|key| !key.starts_with(['-', '#'])) else {
            comment.clear();
            continue;
        };
        parents.retain(|(depth, _)| *depth < indent);
        parents.push((indent, key.to_owned()));
        let keys: Vec<&str> = parents.iter().map(|(_, key)| &**key).collect();
        let value = values.pointer(&format!("/{}", keys.join("/")));
        let is_parent = value
            .and_then(Value::as_object)
            .is_some_and(|object| !object.is_empty());
        let words = std::mem::take(&mut comment).join(" ").replace('|', "\\|");
        assert!(
            is_parent || !words.is_empty(),
            "{} has no meaning",
            keys.join(".")
        );
        if let Some(value) = value.filter(|_| !is_parent || !words.is_empty()) {
            let default = if is_parent || value.is_null() {
                String::new()
            } else {
                format!("`{value}`")
            };
            writeln!(page, "| `{}` | {default} | {words} |", keys.join(".")).unwrap();
        }
    }
    is_current(&format!("{CHART}/README.md"), &page);
}

fn alerts() -> Vec<Value> {
    let object = yaml("config/prometheus/alerts.yaml");
    let groups = object["spec"]["groups"].as_array().unwrap();
    let rules = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    rules.cloned().collect()
}

#[test]
fn every_alert_says_what_to_do_and_is_tested() {
    let tests = yaml("tests/alerts.yaml").to_string();
    let page = text("docs/operations.md");
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        for field in [
            "/labels/severity",
            "/annotations/summary",
            "/annotations/description",
        ] {
            assert!(alert.pointer(field).is_some(), "{name}{field}");
        }
        assert!(
            tests.contains(&format!("\"alertname\":\"{name}\"")),
            "{name} has no test"
        );
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/operations.md"
        );
    }
}

/// Every expression that is shipped, with where it stands.
fn expressions() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = alerts()
        .iter()
        .map(|alert| {
            (
                alert["alert"].to_string(),
                alert["expr"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let dashboard: Value = serde_json::from_str(&text("config/grafana/dashboard.json")).unwrap();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap().to_owned();
            found.push((panel["title"].to_string(), expression));
        }
    }
    for file in [
        "config/samples/scalers/scaledobject.yaml",
        "config/samples/scalers/hpa.yaml",
        "config/samples/prometheus-adapter-values.yaml",
        "config/samples/prometheus-adapter-values-ocp.yaml",
        "config/external-metrics/hpa.yaml",
    ] {
        let code = text(file);
        let code: Vec<&str> = code
            .lines()
            .filter(|line| !line.trim_start().starts_with('#'))
            .collect();
        found.push((file.to_owned(), code.join("\n")));
    }
    found
}

/// Names of series in an expression.
fn series(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| {
        ["wva_", "vllm:", "process_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    });
    words
        .map(|word| word.trim_end_matches(':').to_owned())
        .collect()
}

#[test]
fn every_series_that_is_named_is_exposed_or_documented() {
    let metrics = Metrics::new(None).unwrap();
    let page = text("docs/metrics.md");
    let mut exposed = BTreeSet::new();
    for family in metrics.families() {
        exposed.insert(family.name.clone());
        if family.kind == "histogram" {
            exposed
                .extend(["_bucket", "_sum", "_count"].map(|part| format!("{}{part}", family.name)));
        }
    }
    let mut named = 0;
    for (place, expression) in expressions() {
        for series in series(&expression) {
            let is_foreign = !series.starts_with("wva_") && page.contains(&format!("`{series}`"));
            assert!(
                exposed.contains(&series) || is_foreign,
                "{place}: nobody exposes {series}"
            );
            named += 1;
        }
    }
    assert!(named > 70, "only {named}");
}

/// Pages whose blocks are run by the cluster tests, but for those that are marked as text.
#[test]
fn blocks_of_the_documentation_are_run_or_marked() {
    for page in fs::read_to_string(path("tests/documents")).unwrap().lines() {
        for line in text(page).lines().filter(|line| line.starts_with("```")) {
            let kind = line.trim_start_matches('`');
            assert!(
                ["", "sh", "yaml", "text", "json"].contains(&kind),
                "{page}: {line}"
            );
        }
        // Code is no link.
        let prose: String = text(page).split('`').step_by(2).collect();
        for link in prose.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                let file = path(page).parent().unwrap().join(target);
                assert!(file.exists(), "{page}: {target} is not there");
            }
        }
    }
}
