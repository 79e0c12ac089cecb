//! Values that cannot be meant, each refused by its name.

use std::collections::BTreeMap;

use super::RELEASE;
use crate::harness::fault::{Fault, Result};
use crate::harness::shipping::{Shipping, set};
use crate::harness::suite::Cx;

/// Key, value, and what the refusal must name.
const WRONG: &str = "\
wva.enabled | false | externalMetrics.enabled
wva.reconcilInterval | 30s | reconcilInterval
wva.reconcileInterval | soon | /wva/reconcileInterval
wva.replicaCount | -1 | /wva/replicaCount
wva.replicaCount | 1 | wva.replicaCount: with 1
wva.imagePullPolicy | Sometimes | /wva/imagePullPolicy
wva.image.digest | x | digest
wva.metrics.port | 0 | /wva/metrics/port
wva.metrics.secure | maybe | /wva/metrics/secure
wva.logging.level | loud | /wva/logging/level
wva.poolGroup | example.org | /wva/poolGroup
wva.controllerInstance | a/b | /wva/controllerInstance
wva.namespaceScoped | 1 | /wva/namespaceScoped
wva.watchNamespace | elsewhere | wva.watchNamespace
wva.prometheus.baseURL | prometheus:9090 | /wva/prometheus/baseURL
wva.prometheus.baseURL | http://prometheus:9090 | wva.prometheus.baseURL
wva.prometheus.caCert | no certificate | /wva/prometheus/caCert
wva.prometheus.metricsCache.ttl | 5 | /wva/prometheus/metricsCache/ttl
wva.prometheus.metricsCache.tll | 5s | tll
wva.capacityScaling.default.kvSpareTrigger | 1.5 | kvSpareTrigger
wva.capacityScaling.default.kvSpare | 0.1 | kvSpare
wva.capacityScaling.overrides.llama.kvSpareTrigger | 0.1 | modelID
wva.scaleToZeroModels.qwen.enabled | true | modelID
wva.config.GLOBAL_OPT_INTERVAL | 5s | wva.config.GLOBAL_OPT_INTERVAL
hpa | null | 'hpa'
wva.metrics | null | 'metrics'
hpa.behavior | null | 'behavior'
wva.reconcileInterval | 500ms | wva.reconcileInterval
wva.reconcileInterval | 1h1s | wva.reconcileInterval
wva.image.repository | ghcr.io/llm-d/llm-d-workload-variant-autoscaler | --set wva.image.repository=
wva.prometheus.allowHTTP | true | wva.prometheus.allowHTTP
wva.capacityScaling.default.kvSpareTrigger | 0.9 | wva.capacityScaling.default.kvSpareTrigger
wva.capacityScaling.overrides.l.modelID=m,wva.capacityScaling.overrides.l.kvCacheThreshold | 0.05 | wva.capacityScaling.overrides.l.kvSpareTrigger
wva.capacityScaling.default.analyzerName=saturation,wva.capacityScaling.default.scaleUpThreshold | 0.6 | scaleDownBoundary
wva.capacityScaling.default.scaleUpThreshold | 0.6 | scaleDownBoundary
wva.capacityScaling.default.analyzerName | tokens | analyzerName
wva.capacityScaling.default.analyzers[0].nam | tokens | /wva/capacityScaling/default/analyzers/0
wva.capacityScaling.overrides.default.modelID | m | wva.capacityScaling.overrides.default
wva.queueingModel.default.sloMultiplier | 1 | wva.queueingModel.default.sloMultiplier
wva.queueingModel.default.targetTTFT | 500 | wva.queueingModel.overrides
wva.queueingModel.overrides.l.modelID=m,wva.queueingModel.overrides.l.namespace=n,wva.queueingModel.overrides.l.targetTTFT | 500 | wva.queueingModel.overrides.l: targetTTFT
wva.metrics.port | 8081 | wva.metrics.port
wva.metrics.port | 6443 | externalMetrics.port
wva.metrics.port | 9443 | webhooks.port
externalMetrics.port | 9443 | webhooks.port
externalMetrics.port | 50051 | externalScaler.port
externalScaler.port | 9443 | webhooks.port
vllmService.nodePort | 80 | /vllmService/nodePort
wva.nodeSelector | shard in a | /wva/nodeSelector
wva.config.METRICS_SECURE | false | wva.metrics.secure
wva.config.PROMETHEUS_TOKEN_PATH | /t | wva.prometheus.tokenPath
wva.config.METRICS_BIND_ADDRESS | :9 | wva.metrics.port
wva.config.RECONCILE | 5s | 'RECONCILE'
wva.config.REST_CLIENT_TIMEOUT | 5 | /wva/config/REST_CLIENT_TIMEOUT
wva.extraEnv[0].name | CONTROLLER_INSTANCE | wva.controllerInstance
wva.extraEnv[0].name | CONFIG_MAP_NAME | wva.extraEnv: CONFIG_MAP_NAME
wva.extraEnv[0].name=A,wva.extraEnv[1].name | A | wva.extraEnv: A
wva.extraEnv[0].name=A,wva.extraEnv[0].valu | b | 'valu'
wva.extraArgs[0] | --leader-elect=false | wva.extraArgs: --leader-elect=false
wva.extraArgs[0] | --config-file=/x | wva.config
wva.resources.limits.cpu | lots | /wva/resources/limits/cpu
wva.resources.limit.cpu | 1 | 'limit'
wva.tolerations[0].efect | NoSchedule | 'efect'
wva.affinity.node | x | 'node'
wva.affinity.podAffinity.required | x | 'required'
wva.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchLabels.zone | a | 'matchLabels'
wva.topologySpreadConstraints[0].labelSelector.matchLabel | x | 'matchLabel'
wva.podLabels.control-plane | x | wva.podLabels.control-plane
wva.podDisruptionBudget.minAvailable | 2 | wva.podDisruptionBudget.minAvailable: 2
wva.podDisruptionBudget.minAvailable | 100% | wva.podDisruptionBudget.minAvailable: 100%
wva.extraArgs[0] | --lead-elect=false | /wva/extraArgs/0
fullnameOverride | A_b | /fullnameOverride
nameoverride | x | 'nameoverride'
wva.podDisruptionBudget.minAvailable | one | /wva/podDisruptionBudget/minAvailable
keda.serverAddress | prometheus:9090 | /keda/serverAddress
keda.authModes | token | /keda/authModes
wva.config.interval | 5s | /wva/config
wva.extraEnv[0].name | LOG_LEVEL | wva.extraEnv
llmd.scaleTargetKind | Pod | /llmd/scaleTargetKind
va.variantCost | cheap | /va/variantCost
va.maxReplicas | 0 | /va/maxReplicas
hpa.minReplicas | 11 | hpa.minReplicas
keda.fallback.replicas | 0 | /keda/fallback/replicas
externalMetrics.certificate.existingSecret | mine | externalMetrics.certificate.caBundle
webhooks.certificate.existingSecret | mine | webhooks.certificate.caBundle
wva.config.WEBHOOK_CERT_PATH | /t | webhooks.certificate.existingSecret
wva.extraArgs[0] | --webhook-bind-address=:1 | webhooks.enabled
wva.config.EXTERNAL_SCALER_CERT_PATH | /t | externalScaler.certificate.existingSecret
wva.extraArgs[0] | --external-scaler-bind-address=:1 | externalScaler.enabled";

pub(super) async fn wrong_values_are_refused_by_name(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut alone = Vec::new();
    let mut together: BTreeMap<&str, [&str; 2]> = BTreeMap::new();
    for row in WRONG.lines() {
        let parts: Vec<&str> = row.split(" | ").collect();
        let [key, value, named] = parts[..] else {
            return Err(Fault::new(format!("{row} has not three parts")));
        };
        // What the schema refuses is all named at once, a place or a name of a field each.
        let is_of_schema = named.starts_with(['/', '\'']) && value != "null";
        if is_of_schema && !together.contains_key(key) {
            together.insert(key, [value, named]);
        } else {
            alone.push(BTreeMap::from([(key, [value, named])]));
        }
    }
    assert!(together.len() > 30, "{together:?}");
    for rows in alone.into_iter().chain([together]) {
        let pairs: Vec<(&str, &str)> =
            rows.iter().map(|(key, [value, _])| (*key, *value)).collect();
        let mut values = set(&pairs);
        let others = [
            ("externalMetrics.enabled", "true"),
            ("externalScaler.enabled", "true"),
            ("webhooks.enabled", "true"),
        ];
        values.extend(set(&others));
        let rendered = shipping.template(RELEASE, "default", &values).await;
        let Err(fault) = rendered else {
            return Err(Fault::new(format!("{pairs:?} are accepted")));
        };
        let (_, refusal) = fault.text().split_once("Error: ").unwrap_or_default();
        for (key, [value, named]) in rows {
            assert!(refusal.contains(named), "{key}={value}: {}", fault.text());
        }
    }
    Ok(())
}
