//! Every value acts: with another one, something else is rendered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RELEASE;
use super::observability::read_yaml;
use crate::harness::fault::{Fault, Result};
use crate::harness::shipping::{MONITORS, Shipping, chart};
use crate::harness::suite::Cx;

/// Certificates in form.
const PEM: [(&str, &str); 2] = [
    ("PEM", r#""-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----""#),
    ("CA", r#""-----BEGIN CERTIFICATE-----\nT1RI\n-----END CERTIFICATE-----""#),
];

/// Values, each with another one as JSON, where not just any other will do.
const OTHER: &str = r#"
wva.imagePullPolicy = "Never"
wva.metrics.serviceMonitor.interval = "20s"
wva.reconcileInterval = "30s"
wva.prometheus.baseURL = "https://thanos:9091"
wva.prometheus.tokenPath = "/token"
wva.prometheus.tls.caCertPath = "/ca.crt"
wva.prometheus.caCert = PEM
wva.prometheus.metricsCache = {"ttl": "10s"}
wva.nodeSelector = "shard=a"
wva.scaleToZeroModels = {"q": {"modelID": "m"}}
wva.serviceClasses = {"q": {"name": "q", "priority": 1, "data": []}}
wva.poolGroup = "inference.networking.k8s.io"
wva.logging.level = "debug"
wva.config = {"REST_CLIENT_TIMEOUT": "30s"}
wva.capacityScaling.default = {"kvSpareTrigger": 0.2}
wva.capacityScaling.overrides = {"q": {"modelID": "m"}}
wva.queueingModel.overrides = {"q": {"modelID": "m", "namespace": "n"}}
wva.resources.limits.cpu = "1"
wva.resources.limits.memory = "1Gi"
wva.resources.requests.cpu = "1"
wva.resources.requests.memory = "1Gi"
wva.podDisruptionBudget.minAvailable = "50%"
wva.topologySpreadConstraints = [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
wva.extraArgs = ["--enable-http2=true"]
wva.extraEnv = [{"name": "HTTPS_PROXY", "value": "p"}]
wva.tolerations = [{"operator": "Exists"}]
wva.affinity = {"podAffinity": {}}
externalMetrics.certificate.existingSecret = "existing"
externalMetrics.certificate.caBundle = PEM
externalScaler.certificate.existingSecret = "of-scalers"
externalScaler.clientCASecret = "of-clients"
webhooks.certificate.existingSecret = "of-others"
webhooks.certificate.caBundle = PEM
doctor.wait = "45s"
keda.serverAddress = "https://thanos:9091"
keda.fallback.behavior = "static"
keda.authModes = "bearer"
llmd.scaleTargetKind = "LeaderWorkerSet"
hpa.minReplicas = 3
va.minReplicas = 0
va.maxReplicas = 4
va.variantCost = "11.0"
hpa.targetAverageValue = "2"
hpa.tolerance = "0.1"
hpa.behavior.scaleUp.selectPolicy = "Min"
hpa.behavior.scaleDown.selectPolicy = "Min"
vllmService.type = "NodePort"
vllmService.interval = "20s"
vllmService.scheme = "https"
"#;

/// Values that mean something with others only: what they begin with, and these others.
const WITH: &str = r#"
externalMetrics. externalMetrics.enabled=true && externalMetrics.certificate.existingSecret="mine" && externalMetrics.certificate.caBundle=CA
externalScaler. externalScaler.enabled=true && externalScaler.certificate.existingSecret="mine"
webhooks. webhooks.enabled=true && webhooks.certificate.existingSecret="mine" && webhooks.certificate.caBundle=CA
doctor. doctor.enabled=true
keda. keda.enabled=true
va. va.enabled=true
hpa. hpa.enabled=true
llmd. va.enabled=true && vllmService.enabled=true
vllmService. vllmService.enabled=true
prometheusRule. prometheusRule.enabled=true
dashboard. dashboard.enabled=true
wva.queueingModel. wva.queueingModel.enabled=true
wva.watchNamespace wva.namespaceScoped=true
wva.prometheus.tls.caCertPath wva.prometheus.caFrom.secret="mine"
wva.prometheus.caFrom.key wva.prometheus.caFrom.secret="mine"
vllmService.nodePort vllmService.type="NodePort"
"#;

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

fn others() -> impl Iterator<Item = (&'static str, &'static str)> {
    OTHER.lines().filter_map(|row| row.split_once(" = "))
}

fn with_certificates(value: &str) -> String {
    let known = PEM.iter().find(|(name, _)| value.ends_with(name));
    known.map_or_else(|| value.to_owned(), |(name, pem)| value.replace(name, pem))
}

/// Another value of the same kind.
fn another(key: &str, value: &Value) -> String {
    if let Some((_, other)) = others().find(|(known, _)| *known == key) {
        return with_certificates(other);
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
    let values = values.iter().flat_map(|value| ["--set-json".to_owned(), value.clone()]);
    let values: Vec<String> = values.collect();
    shipping.helm(&command, "default", &values).await
}

/// Of each value alone, so that none is a mere name.
pub(super) async fn every_value_acts(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut values = BTreeMap::new();
    leaves("", &read_yaml(&chart().join("values.yaml"))?, &mut values);
    for key in others().map(|(key, _)| key).chain(ELSEWHERE) {
        assert!(values.contains_key(key), "{key} is no value");
    }
    values.retain(|key, _| !ELSEWHERE.contains(&key.as_str()));
    let mut rendered: BTreeMap<Vec<String>, String> = BTreeMap::new();
    for (key, value) in values {
        let changed = format!("{key}={}", another(&key, &value));
        let with = WITH.lines().filter_map(|row| row.split_once(' '));
        let with = with.filter(|(start, _)| key.starts_with(start));
        let with = with.flat_map(|(_, others)| others.split(" && "));
        let with = with.map(with_certificates);
        let mut before: Vec<String> = with.filter(|other| *other != changed).collect();
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
