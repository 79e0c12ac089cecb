//! The samples that AIBrix ships, by their fields and values: what of each is in force, what has no effect, and what is
//! refused. This is the check that the webhook and the controller share.

use serde_json::{Value, json};

use super::super::object::{PodAutoscalerObject, read_known};
use super::super::source::MetricSource;
use super::super::tuning::{StormServiceMode, Tuning, WithoutEffect};
use super::*;

/// What becomes of a sample.
enum Expected {
    /// Strategy, bounds, target and sources in force.
    Accepted(&'static str),
    /// Paths that are refused.
    Refused(&'static [&'static str]),
}
use Expected::{Accepted, Refused};

/// The file, annotations, spec, what becomes of it, and annotations and fields without effect.
type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    Expected,
    &'static [&'static str],
);

const DEPLOYMENT: &str = "scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}";

/// Annotations of the first releases.
const FLUCTUATION: &[(&str, &str)] = &[
    ("autoscaling.aibrix.ai/up-fluctuation-tolerance", "0.1"),
    ("autoscaling.aibrix.ai/down-fluctuation-tolerance", "0.2"),
    ("apa.autoscaling.aibrix.ai/window", "30s"),
];
const FLUCTUATION_FAULTS: &[&str] = &[
    "apa.autoscaling.aibrix.ai/window",
    "autoscaling.aibrix.ai/down-fluctuation-tolerance",
    "autoscaling.aibrix.ai/up-fluctuation-tolerance",
];
const DELAY: &[(&str, &str)] = &[("kpa.autoscaling.aibrix.ai/scale-down-delay", "3m")];

/// Below `samples/autoscaling`.
const SAMPLES: [Case; 15] = [
    (
        "apa-resource",
        FLUCTUATION,
        "{scalingStrategy: APA, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: resource, \
         targetMetric: cpu, targetValue: '50'}], DEPLOYMENT}",
        Accepted("APA 1-8 Deployment llama: resource cpu at 50"),
        FLUCTUATION_FAULTS,
    ),
    (
        "apa",
        FLUCTUATION,
        "{scalingStrategy: APA, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: pod, protocolType: \
         http, port: '8000', path: metrics, targetMetric: kv_cache_usage_perc, targetValue: '0.5'}], DEPLOYMENT}",
        Accepted("APA 1-8 Deployment llama: pod http://:8000/metrics kv_cache_usage_perc at 0.5"),
        FLUCTUATION_FAULTS,
    ),
    (
        "external-metrics-apa",
        FLUCTUATION,
        "{scalingStrategy: APA, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: external, \
         targetMetric: aibrix_queue_depth, targetValue: '40'}], DEPLOYMENT}",
        Accepted("APA 1-8 Deployment llama: external aibrix_queue_depth at 40"),
        FLUCTUATION_FAULTS,
    ),
    (
        "external-metrics-kpa",
        DELAY,
        "{scalingStrategy: KPA, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: external, \
         targetMetric: aibrix_running_requests, targetValue: '100'}], DEPLOYMENT}",
        Accepted("KPA 1-8 Deployment llama: external aibrix_running_requests at 100"),
        &["kpa.autoscaling.aibrix.ai/scale-down-delay"],
    ),
    (
        "hpa",
        &[],
        "{scalingStrategy: HPA, minReplicas: 1, maxReplicas: 10, metricsSources: [{metricSourceType: pod, protocolType: \
         http, port: '8000', path: /metrics, targetMetric: kv_cache_usage_perc, targetValue: '50'}], DEPLOYMENT}",
        Accepted("HPA 1-10 Deployment llama: pod http://:8000/metrics kv_cache_usage_perc at 50"),
        &[],
    ),
    (
        "kpa of release 0.7",
        DELAY,
        "{scalingStrategy: KPA, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: pod, protocolType: \
         http, port: '8000', path: metrics, targetMetric: gpu_cache_usage_perc, targetValue: '0.5'}], DEPLOYMENT}",
        Accepted("KPA 1-8 Deployment llama: pod http://:8000/metrics gpu_cache_usage_perc at 0.5"),
        &["kpa.autoscaling.aibrix.ai/scale-down-delay"],
    ),
    (
        "kpa with a circuit breaker",
        DELAY,
        "{scalingStrategy: KPA, circuitBreaker: {enabled: true, action: freeze, failureThreshold: 3, recoveryThreshold: \
         3}, minReplicas: 1, maxReplicas: 8, metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', \
         path: metrics, targetMetric: gpu_cache_usage_perc, targetValue: '0.5'}], DEPLOYMENT}",
        Accepted("KPA 1-8 Deployment llama: pod http://:8000/metrics gpu_cache_usage_perc at 0.5"),
        &[
            "kpa.autoscaling.aibrix.ai/scale-down-delay",
            "spec.circuitBreaker",
        ],
    ),
    (
        "multimetrics-apa",
        FLUCTUATION,
        "{scalingStrategy: APA, minReplicas: 1, maxReplicas: 3, metricsSources: [{metricSourceType: pod, protocolType: \
         http, port: '8000', path: metrics, targetMetric: kv_cache_usage_perc, targetValue: '0.5'}, {metricSourceType: \
         pod, protocolType: http, port: '8000', path: metrics, targetMetric: num_requests_waiting, targetValue: \
         '100'}], DEPLOYMENT}",
        Accepted(
            "APA 1-3 Deployment llama: pod http://:8000/metrics kv_cache_usage_perc at 0.5, pod http://:8000/metrics \
             num_requests_waiting at 100",
        ),
        FLUCTUATION_FAULTS,
    ),
    (
        "optimizer-kpa",
        &[("autoscaling.aibrix.ai/scale-down-cooldown-window", "0s")],
        "{scalingStrategy: KPA, minReplicas: 1, maxReplicas: 8, metricsSources: [{endpoint: \
         'aibrix-gpu-optimizer.aibrix-system.svc.cluster.local:8080', metricSourceType: domain, path: \
         /metrics/default/llama, protocolType: http, targetMetric: 'vllm:deployment_replicas', targetValue: '100'}], \
         DEPLOYMENT}",
        Accepted(
            "KPA 1-8 Deployment llama: external http://aibrix-gpu-optimizer.aibrix-system.svc.cluster.local:8080\
             /metrics/default/llama vllm:deployment_replicas at 100, release after 0s",
        ),
        &[],
    ),
    (
        "predictive-kpa",
        &[("autoscaling.aibrix.ai/scale-down-cooldown-window", "3m")],
        "{scalingStrategy: KPA, minReplicas: 1, maxReplicas: 8, observeWindowSeconds: 180, panicWindowSeconds: 60, \
         predictive: {mode: Preview, horizonSeconds: 120}, metricsSources: [{metricSourceType: pod, protocolType: http, \
         port: '8000', path: metrics, targetMetric: gpu_cache_usage_perc, targetValue: '0.5'}], DEPLOYMENT}",
        Accepted(
            "KPA 1-8 Deployment llama: pod http://:8000/metrics gpu_cache_usage_perc at 0.5, release after 180s, \
             forecast",
        ),
        &[],
    ),
    (
        "scheduled-bounds-apa",
        &[],
        "{scalingStrategy: APA, minReplicas: 1, maxReplicas: 10, scheduledBounds: [{name: weekday-business-hours, \
         timezone: America/Los_Angeles, cron: '0 9-18 * * MON-FRI', duration: 1h, minReplicas: 4, maxReplicas: 12}], \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: metrics, targetMetric: \
         gpu_cache_usage_perc, targetValue: '0.5'}], DEPLOYMENT}",
        Accepted("APA 1-10 Deployment llama: pod http://:8000/metrics gpu_cache_usage_perc at 0.5"),
        &["spec.scheduledBounds"],
    ),
    (
        "stormservice-pool, prefill",
        &[("autoscaling.aibrix.ai/storm-service-mode", "pool")],
        "{STORM, subTargetSelector: {roleName: prefill}, minReplicas: 2, maxReplicas: 20, scalingStrategy: APA, \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: \
         prefill_queue_length, targetValue: '10'}]}",
        Accepted(
            "APA 2-20 StormService storm prefill: pod http://:8000/metrics prefill_queue_length at 10",
        ),
        &[],
    ),
    (
        "stormservice-pool, decode",
        &[("autoscaling.aibrix.ai/storm-service-mode", "pool")],
        "{STORM, subTargetSelector: {roleName: decode}, minReplicas: 3, maxReplicas: 30, scalingStrategy: APA, \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: \
         decode_batch_utilization, targetValue: '70'}], behavior: {scaleDown: {stabilizationWindowSeconds: 600}}}",
        Accepted(
            "APA 3-30 StormService storm decode: pod http://:8000/metrics decode_batch_utilization at 70",
        ),
        &["spec.behavior"],
    ),
    (
        "stormservice-replica",
        &[("autoscaling.aibrix.ai/storm-service-mode", "replica")],
        "{STORM, subTargetSelector: {roleName: prefill}, minReplicas: 2, maxReplicas: 20, scalingStrategy: APA, \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: \
         prefill_queue_length, targetValue: '10'}]}",
        Accepted(
            "APA 2-20 StormService storm prefill: pod http://:8000/metrics prefill_queue_length at 10, whole service",
        ),
        &[],
    ),
    (
        "of the first release, with a metric in spec",
        &[
            ("autoscaling.aibrix.ai/max-scale-up-rate", "2"),
            ("autoscaling.aibrix.ai/max-scale-down-rate", "2"),
            ("kpa.autoscaling.aibrix.ai/stable-window", "60s"),
            ("kpa.autoscaling.aibrix.ai/scale-down-delay", "60s"),
        ],
        "{DEPLOYMENT, minReplicas: 1, maxReplicas: 10, targetMetric: avg_prompt_throughput_toks_per_s, targetValue: \
         '20', scalingStrategy: KPA}",
        Refused(&["spec.metricsSources"]),
        &[
            "kpa.autoscaling.aibrix.ai/scale-down-delay",
            "kpa.autoscaling.aibrix.ai/stable-window",
            "spec.targetMetric",
            "spec.targetValue",
        ],
    ),
];

/// Below `config/samples`, which need fields that the definition of AIBrix does not have either.
const CONFIG_SAMPLES: [Case; 4] = [
    (
        "kpa",
        &[],
        "{DEPLOYMENT, minReplicas: 1, maxReplicas: 10, targetMetric: CPU, targetValue: '10', scalingStrategy: KPA, \
         circuitBreaker: {enabled: true, action: freeze, failureThreshold: 3, recoveryThreshold: 3}}",
        Refused(&["spec.metricsSources"]),
        &[
            "spec.circuitBreaker",
            "spec.targetMetric",
            "spec.targetValue",
        ],
    ),
    (
        "mock_llama_apa",
        &[],
        "{DEPLOYMENT, minReplicas: 1, maxReplicas: 10, targetMetric: avg_prompt_throughput_toks_per_s, targetValue: \
         '20', scalingStrategy: APA, circuitBreaker: {enabled: true, action: max, failureThreshold: 3, \
         recoveryThreshold: 3}}",
        Refused(&["spec.metricsSources"]),
        &[
            "spec.circuitBreaker",
            "spec.targetMetric",
            "spec.targetValue",
        ],
    ),
    (
        "per_role_autoscaler, KPA",
        &[],
        "{STORM, scalingStrategy: KPA, rolePolicies: [{roleName: prefill, minReplicas: 1, maxReplicas: 10, \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: \
         'vllm:time_to_first_token_seconds', targetValue: '2.0'}]}]}",
        Refused(&["spec.maxReplicas", "spec.metricsSources"]),
        &["spec.rolePolicies"],
    ),
    (
        "per_role_autoscaler, APA",
        &[],
        "{STORM, scalingStrategy: APA, rolePolicies: [{roleName: decode, minReplicas: 1, maxReplicas: 10, \
         metricsSources: [{metricSourceType: pod, protocolType: http, port: '8000', path: /metrics, targetMetric: \
         'vllm:gpu_cache_usage_perc', targetValue: '80'}]}]}",
        Refused(&["spec.maxReplicas", "spec.metricsSources"]),
        &["spec.rolePolicies"],
    ),
];

fn sample(annotations: &[(&str, &str)], spec: &str) -> PodAutoscalerObject {
    let storm = "scaleTargetRef: {apiVersion: orchestration.aibrix.ai/v1alpha1, kind: StormService, name: storm}";
    let spec = spec
        .replace("DEPLOYMENT", DEPLOYMENT)
        .replace("STORM", storm);
    let spec: Value = serde_yaml::from_str(&spec).unwrap();
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    let object = json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": "a", "namespace": "default", "annotations": annotations}, "spec": spec,
    });
    let (object, unknown) = read_known::<PodAutoscalerObject>(object).unwrap();
    PodAutoscalerObject { unknown, ..object }
}

/// What is in force, in one line.
fn in_force(policy: &AutoscalerPolicy) -> String {
    let (target, tuning) = (&policy.target, &policy.tuning);
    let names = [Some(&target.kind), Some(&target.name), target.role.as_ref()];
    let names: Vec<&str> = names.into_iter().flatten().map(|name| &**name).collect();
    let mut parts: Vec<String> = policy.sources.iter().map(MetricSource::identity).collect();
    if tuning.scale_down_window != Tuning::default().scale_down_window {
        parts.push(format!(
            "release after {}s",
            tuning.scale_down_window.as_secs()
        ));
    }
    if policy.forecast.is_some() {
        parts.push("forecast".to_owned());
    }
    if tuning.storm_service == StormServiceMode::Replica {
        parts.push("whole service".to_owned());
    }
    let (min, max) = (policy.base.min, policy.base.max);
    let strategy = policy.strategy.as_str();
    format!(
        "{strategy} {min}-{max} {}: {}",
        names.join(" "),
        parts.join(", ")
    )
}

fn named(faults: &[WithoutEffect]) -> Vec<&str> {
    let mut named: Vec<&str> = (faults.iter())
        .map(|fault| match fault {
            WithoutEffect::Annotation { key, .. } => key.as_str(),
            WithoutEffect::Field { path, .. } => path.as_str(),
        })
        .collect();
    named.sort_unstable();
    named
}

#[test]
fn each_sample_of_aibrix_is_in_force_or_refused_with_its_paths() {
    for (file, annotations, spec, expected, faults) in SAMPLES.iter().chain(&CONFIG_SAMPLES) {
        let checked = sample(annotations, spec).check();
        match (expected, &checked) {
            (Accepted(line), Ok(policy)) => {
                assert_eq!(in_force(policy), *line, "{file}");
                assert_eq!(named(&policy.faults), *faults, "{file}");
            }
            (Refused(paths), Err(violations)) => {
                let mut found: Vec<&str> = violations.iter().map(|one| &*one.path).collect();
                found.sort_unstable();
                assert_eq!(found, *paths, "{file}");
                assert_eq!(named(violations.faults()), *faults, "{file}");
            }
            _ => panic!("{file}: {checked:?}"),
        }
    }
}
