//! Every value acts: with another one, something else is rendered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RELEASE;
use super::observability::read_yaml;
use crate::harness::fault::{Fault, Result};
use crate::harness::shipping::{MONITORS, Shipping, chart};
use crate::harness::suite::Cx;

const PEM: &str = r#""-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----""#;

/// Values, each with another one as JSON, where not just any other will do.
const OTHER: &[(&str, &str)] = &[
    ("wva.imagePullPolicy", r#""Never""#),
    ("wva.metrics.serviceMonitor.interval", r#""20s""#),
    ("wva.reconcileInterval", r#""30s""#),
    ("wva.prometheus.baseURL", r#""https://thanos:9091""#),
    ("wva.prometheus.tokenPath", r#""/token""#),
    ("wva.prometheus.tls.caCertPath", r#""/ca.crt""#),
    ("wva.prometheus.caCert", PEM),
    ("wva.prometheus.metricsCache", r#"{"ttl": "10s"}"#),
    ("wva.nodeSelector", r#""shard=a""#),
    ("wva.scaleToZeroModels", r#"{"q": {"modelID": "m"}}"#),
    (
        "wva.serviceClasses",
        r#"{"q": {"name": "q", "priority": 1, "data": []}}"#,
    ),
    ("wva.poolGroup", r#""inference.networking.k8s.io""#),
    ("wva.logging.level", r#""debug""#),
    ("wva.config", r#"{"REST_CLIENT_TIMEOUT": "30s"}"#),
    ("wva.capacityScaling.default", r#"{"kvSpareTrigger": 0.2}"#),
    (
        "wva.capacityScaling.overrides",
        r#"{"q": {"modelID": "m"}}"#,
    ),
    (
        "wva.queueingModel.overrides",
        r#"{"q": {"modelID": "m", "namespace": "n"}}"#,
    ),
    ("wva.resources.limits.cpu", r#""1""#),
    ("wva.resources.limits.memory", r#""1Gi""#),
    ("wva.resources.requests.cpu", r#""1""#),
    ("wva.resources.requests.memory", r#""1Gi""#),
    ("wva.podDisruptionBudget.minAvailable", r#""50%""#),
    (
        "wva.topologySpreadConstraints",
        r#"[{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]"#,
    ),
    ("wva.extraArgs", r#"["--enable-http2=true"]"#),
    ("wva.extraEnv", r#"[{"name": "HTTPS_PROXY", "value": "p"}]"#),
    ("wva.tolerations", r#"[{"operator": "Exists"}]"#),
    ("wva.affinity", r#"{"podAffinity": {}}"#),
    (
        "externalMetrics.certificate.existingSecret",
        r#""of-somebody""#,
    ),
    ("externalMetrics.certificate.caBundle", PEM),
    (
        "externalScaler.certificate.existingSecret",
        r#""of-scalers""#,
    ),
    ("externalScaler.clientCASecret", r#""of-clients""#),
    ("webhooks.certificate.existingSecret", r#""of-others""#),
    ("webhooks.certificate.caBundle", PEM),
    ("doctor.wait", r#""45s""#),
    ("keda.serverAddress", r#""https://thanos:9091""#),
    ("keda.fallback.behavior", r#""static""#),
    ("keda.authModes", r#""bearer""#),
    ("llmd.scaleTargetKind", r#""LeaderWorkerSet""#),
    ("va.minReplicas", "0"),
    ("va.maxReplicas", "4"),
    ("va.variantCost", r#""11.0""#),
    ("hpa.targetAverageValue", r#""2""#),
    ("hpa.tolerance", r#""0.1""#),
    ("hpa.behavior.scaleUp.selectPolicy", r#""Min""#),
    ("hpa.behavior.scaleDown.selectPolicy", r#""Min""#),
    ("vllmService.type", r#""NodePort""#),
    ("vllmService.interval", r#""20s""#),
    ("vllmService.scheme", r#""https""#),
];

/// Values that mean something beside others only: what they begin with, and these others.
const BESIDE: &[(&str, &[&str])] = &[
    (
        "externalMetrics.",
        &[
            "externalMetrics.enabled=true",
            r#"externalMetrics.certificate.existingSecret="mine""#,
            r#"externalMetrics.certificate.caBundle="-----BEGIN CERTIFICATE-----\nT1RI\n-----END CERTIFICATE-----""#,
        ],
    ),
    (
        "externalScaler.",
        &[
            "externalScaler.enabled=true",
            r#"externalScaler.certificate.existingSecret="mine""#,
        ],
    ),
    (
        "webhooks.",
        &[
            "webhooks.enabled=true",
            r#"webhooks.certificate.existingSecret="mine""#,
            r#"webhooks.certificate.caBundle="-----BEGIN CERTIFICATE-----\nT1RI\n-----END CERTIFICATE-----""#,
        ],
    ),
    ("doctor.", &["doctor.enabled=true"]),
    ("keda.", &["keda.enabled=true"]),
    ("va.", &["va.enabled=true"]),
    ("hpa.", &["hpa.enabled=true"]),
    ("llmd.", &["va.enabled=true", "vllmService.enabled=true"]),
    ("vllmService.", &["vllmService.enabled=true"]),
    ("prometheusRule.", &["prometheusRule.enabled=true"]),
    ("dashboard.", &["dashboard.enabled=true"]),
    ("wva.queueingModel.", &["wva.queueingModel.enabled=true"]),
    ("wva.watchNamespace", &["wva.namespaceScoped=true"]),
    (
        "wva.prometheus.tls.caCertPath",
        &[r#"wva.prometheus.caFrom.secret="mine""#],
    ),
    (
        "wva.prometheus.caFrom.key",
        &[r#"wva.prometheus.caFrom.secret="mine""#],
    ),
    ("vllmService.nodePort", &[r#"vllmService.type="NodePort""#]),
];

/// It goes into a certificate that is another one every time, and a switch that is refused alone.
const ELSEWHERE: [&str; 4] = [
    "externalMetrics.certificate.validityDays",
    "externalScaler.certificate.validityDays",
    "webhooks.certificate.validityDays",
    "wva.prometheus.allowHTTP",
];

/// The chart's values by their dotted paths.
fn leaves(at: &str, value: &Value, found: &mut BTreeMap<String, Value>) {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (key, child) in object {
                let dot = if at.is_empty() { "" } else { "." };
                leaves(&format!("{at}{dot}{key}"), child, found);
            }
        }
        None => {
            found.insert(at.to_owned(), value.clone());
        }
    }
}

/// Another value of the same kind.
fn another(key: &str, value: &Value) -> String {
    let chosen = OTHER.iter().find(|(known, _)| *known == key);
    if let Some((_, other)) = chosen {
        return (*other).to_owned();
    }
    match value {
        Value::Bool(on) => json!(!on),
        Value::Number(number) => json!(number.as_f64().unwrap_or_default() + 1.0),
        Value::String(_) => json!("other"),
        Value::Array(_) => json!([{ "type": "Pods", "value": 1, "periodSeconds": 15 }]),
        _ => json!({ "other": "other" }),
    }
    .to_string()
    .replace(".0", "")
}

async fn render(shipping: &Shipping, values: &[String]) -> Result<String> {
    let folder = chart().display().to_string();
    let command = ["template", RELEASE, &folder, "--api-versions", MONITORS];
    let values = values
        .iter()
        .flat_map(|value| ["--set-json".to_owned(), value.clone()]);
    let values: Vec<String> = values.collect();
    shipping.helm(&command, "default", &values).await
}

/// Of each value alone, so that none is a mere name.
pub(super) async fn every_value_acts(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut values = BTreeMap::new();
    leaves("", &read_yaml(&chart().join("values.yaml"))?, &mut values);
    for key in OTHER.iter().map(|(key, _)| *key).chain(ELSEWHERE) {
        assert!(values.contains_key(key), "{key} is no value");
    }
    values.retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
    let mut rendered: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (key, value) in values {
        let changed = format!("{key}={}", another(&key, &value));
        let beside = BESIDE.iter().filter(|(start, _)| key.starts_with(start));
        let beside = beside.flat_map(|(_, others)| others.iter());
        let beside = beside.filter(|other| **other != changed);
        let mut before: Vec<String> = beside.map(ToString::to_string).collect();
        if !rendered.contains_key(&before) {
            rendered.insert(before.clone(), render(&shipping, &before).await?);
        }
        let without = rendered.get(&before).cloned().unwrap_or_default();
        before.push(changed);
        if render(&shipping, &before).await? == without {
            return Err(Fault::new(format!("{before:?} changes nothing")));
        }
    }
    Ok(())
}
