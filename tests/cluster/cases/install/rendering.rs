//! What the chart renders: accepted whatever the values, refused where they are wrong.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{RELEASE, SAMPLE, at_home, values_file};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, chart, find, set};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;

/// A certificate authority in form; nothing is verified with it here.
const CA: &str = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----";

/// A values file of the original, with this project's image.
pub(super) fn original_values() -> Vec<String> {
    let file = repository().join("tests/cluster/values/original.yaml");
    let mut values = vec!["-f".to_owned(), file.display().to_string()];
    values.extend(set(&[("wva.image.repository", "registry.example/wva")]));
    values
}

/// The sets of values that people use, by name.
pub(super) fn sets() -> Vec<(&'static str, Vec<String>)> {
    let everything = [
        ("wva.imagePullSecret", "registry"),
        ("wva.controllerInstance", "blue"),
        ("wva.poolGroup", "inference.networking.k8s.io"),
        ("wva.nodeSelector", "wva.llmd.ai/shard=a"),
        ("wva.limitedMode", "true"),
        ("wva.scaleToZero", "true"),
        ("wva.scaleToZeroModels.qwen.modelID", "Qwen/Qwen3-0.6B"),
        ("wva.scaleToZeroModels.qwen.enabled", "true"),
        ("wva.queueingModel.enabled", "true"),
        ("wva.capacityScaling.overrides.llama.modelID", "meta/llama"),
        ("wva.capacityScaling.overrides.llama.kvSpareTrigger", "0.2"),
        ("wva.prometheus.caCert", CA),
        ("wva.prometheus.metricsCache.freshThreshold", "90s"),
        ("wva.config.REST_CLIENT_TIMEOUT", "30s"),
        ("wva.networkPolicy.enabled", "true"),
        ("wva.extraEnv[0].name", "HTTPS_PROXY"),
        ("wva.extraEnv[0].value", "http://proxy:3128"),
        ("wva.extraArgs[0]", "--enable-http2=false"),
        ("wva.podAnnotations.note", "x"),
        ("wva.priorityClassName", "system-cluster-critical"),
        ("prometheusRule.enabled", "true"),
        ("dashboard.enabled", "true"),
        ("va.minReplicas", "0"),
        ("va.maxReplicas", "4"),
        ("llmd.scaleTargetKind", "LeaderWorkerSet"),
        ("llmd.scaleTargetName", "llama-405b"),
        ("vllmService.type", "NodePort"),
        ("vllmService.nodePort", "30817"),
    ];
    vec![
        ("default", Vec::new()),
        ("dev", values_file("values-dev.yaml")),
        ("openshift", values_file("values-openshift.yaml")),
        ("client", set(&[("controller.enabled", "false")])),
        ("scoped", set(&[("wva.namespaceScoped", "true")])),
        ("keda", set(&[("keda.enabled", "true")])),
        (
            "external",
            set(&[("externalMetrics.enabled", "true"), ("externalMetrics.apiService", "false")]),
        ),
        ("original", original_values()),
        ("everything", set(&everything)),
    ]
}

/// Each set is linted, rendered, and judged by the server, every object of it.
pub(super) async fn every_set_of_values_is_accepted(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    for (set, mut values) in sets() {
        values.extend(at_home(cx));
        let folder = chart().display().to_string();
        shipping.helm(&["lint", "--strict", &folder], namespace, &values).await?;
        let objects = shipping.template(set, namespace, &values).await?;
        assert!(objects.len() >= 7, "{set}: {} objects", objects.len());
        for object in objects {
            let what = format!("{set}: {} {}", object["kind"], object["metadata"]["name"]);
            manifest::dry_run(&cx.world.client, object, Some(namespace))
                .await
                .map_err(|fault| Fault::new(format!("{what}: {}", fault.text())))?;
        }
    }
    Ok(())
}

/// Kinds with names, sorted.
fn kinds(objects: &[Value]) -> BTreeSet<&str> {
    let kinds = objects.iter().filter_map(|object| object["kind"].as_str());
    kinds.collect()
}

/// The kinds of the sample.
const SAMPLE_KINDS: [&str; 4] =
    ["HorizontalPodAutoscaler", "Service", "ServiceMonitor", "VariantAutoscaling"];

/// The chart with its sample.
pub(super) async fn render(cx: &Cx, values: &[(&str, &str)]) -> Result<Vec<Value>> {
    let shipping = Shipping::to(&cx.world)?;
    let values = [&SAMPLE[..], values].concat();
    shipping.template(RELEASE, "default", &set(&values)).await
}

/// Without values nothing of a model is rendered, and no ServiceMonitor where the cluster serves none.
pub(super) async fn bare(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let served = shipping.template(RELEASE, "default", &[]).await?;
    for kind in ["HorizontalPodAutoscaler", "VariantAutoscaling"] {
        assert!(!kinds(&served).contains(kind), "{kind}");
    }
    assert!(find(&served, "Service", "-vllm").is_err());
    find(&served, "ServiceMonitor", "-metrics-monitor")?;
    let classes = find(&served, "ConfigMap", "-service-classes-config")?;
    assert_eq!(classes["data"], json!({}));
    let folder = chart().display().to_string();
    let command = ["template", RELEASE, &folder];
    let values = set(&SAMPLE);
    let text = shipping.helm(&command, "default", &values).await?;
    let unserved = manifest::parse(&text, "helm template")?;
    assert!(kinds(&unserved).contains("VariantAutoscaling"));
    assert!(!kinds(&unserved).contains("ServiceMonitor"));
    Ok(())
}

/// CHT-01 and CHT-15: what belongs to a model alone.
pub(super) async fn client_only(cx: &Cx) -> Result {
    let client = render(cx, &[("controller.enabled", "false")]).await?;
    let mut wanted = BTreeSet::from(SAMPLE_KINDS);
    wanted.insert("ClusterRole");
    assert_eq!(kinds(&client), wanted, "CHT-01");
    assert_eq!(client.len(), 4 + 5, "CHT-01: the roles for people");
    assert!(!format!("{client:?}").contains("controller-manager"));
    for role in &client {
        if role["kind"] == "ClusterRole" {
            let group = &role["rules"][0]["apiGroups"][0];
            assert!(group == "llmd.ai" || group == "autoscaling.aibrix.ai");
        }
    }
    let bare = [("controller.enabled", "false"), ("va.enabled", "false"), ("hpa.enabled", "false")];
    let wanted = BTreeSet::from(["ClusterRole", "Service", "ServiceMonitor"]);
    assert_eq!(kinds(&render(cx, &bare).await?), wanted, "CHT-15");
    Ok(())
}

/// CHT-03, CHT-07, CHT-09, CHT-11, CHT-13.
pub(super) async fn defaults(cx: &Cx) -> Result {
    let all = render(cx, &[]).await?;
    assert!(kinds(&all).is_superset(&BTreeSet::from(SAMPLE_KINDS)), "CHT-03");
    let manager = find(&all, "Deployment", "-controller-manager")?.to_string();
    assert!(!manager.contains("--watch-namespace"), "CHT-07");
    assert!(!manager.contains("imagePullSecrets"), "no Secret is none");
    let target = "ms-inference-scheduling-llm-d-modelservice-decode";
    let va = find(&all, "VariantAutoscaling", "-va")?;
    let hpa = find(&all, "HorizontalPodAutoscaler", "-hpa")?;
    for object in [va, hpa] {
        assert_eq!(object["spec"]["scaleTargetRef"]["name"], target, "CHT-09");
    }
    for authority in ["prometheus-ca", "PROMETHEUS_CA_CERT_PATH"] {
        assert!(!format!("{all:?}").contains(authority), "CHT-11");
    }
    for bound in ["minReplicas", "maxReplicas"] {
        assert_eq!(va["spec"][bound], Value::Null, "CHT-13");
    }
    Ok(())
}

/// The HPA of the sample may go to zero where every API server allows that.
pub(super) async fn minimum(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let folder = chart().display().to_string();
    for (version, more, kind, expected) in wva_base::cases! {
        ("1.36.9", None, "HorizontalPodAutoscaler", 1),
        ("1.37.0", None, "HorizontalPodAutoscaler", 0),
        ("1.37.0", Some(("hpa.minReplicas", "2")), "HorizontalPodAutoscaler", 2),
        ("1.36.9", Some(("hpa.minReplicas", "0")), "HorizontalPodAutoscaler", 0),
        // A minimum of 0 would take its fallback.
        ("1.37.0", Some(("keda.enabled", "true")), "ScaledObject", 1),
    } {
        let command = ["template", RELEASE, &folder, "--kube-version", version];
        let values: Vec<_> = SAMPLE.into_iter().chain(more).collect();
        let text = shipping.helm(&command, "default", &set(&values)).await?;
        let objects = manifest::parse(&text, "helm template")?;
        let spec = &find(&objects, kind, "")?["spec"];
        let found = spec.get("minReplicas").or_else(|| spec.get("minReplicaCount"));
        assert_eq!(found, Some(&json!(expected)), "{version} {more:?}");
    }
    Ok(())
}

/// CHT-05: an instance arrives everywhere.
pub(super) async fn instance(cx: &Cx) -> Result {
    let blue = render(cx, &[("wva.controllerInstance", "inst-a")]).await?;
    let manager = find(&blue, "Deployment", "-controller-manager")?;
    let environment = &manager["spec"]["template"]["spec"]["containers"][0]["env"];
    let instance = environment.as_array().into_iter().flatten();
    let mut instance = instance.filter(|variable| variable["name"] == "CONTROLLER_INSTANCE");
    let instance = &instance.next().unwrap_or(&Value::Null)["value"];
    assert_eq!(instance, "inst-a", "CHT-05");
    let va = find(&blue, "VariantAutoscaling", "-va")?;
    let label = &va["metadata"]["labels"]["wva.llmd.ai/controller-instance"];
    assert_eq!(label, "inst-a", "CHT-05");
    let hpa = find(&blue, "HorizontalPodAutoscaler", "-hpa")?;
    let metric = &hpa["spec"]["metrics"][0]["external"]["metric"];
    let selector = &metric["selector"]["matchLabels"]["controller_instance"];
    assert_eq!(selector, "inst-a", "CHT-05");
    Ok(())
}

/// CHT-17, and values that leave something out or move it.
pub(super) async fn choices(cx: &Cx) -> Result {
    let key = "wva.capacityScaling.overrides.llama.modelID";
    let own = render(cx, &[(key, "meta/llama")]).await?;
    let saturation = find(&own, "ConfigMap", "-saturation-scaling-config")?;
    let entry = &saturation["data"]["llama"];
    assert_eq!(entry, "model_id: meta/llama\n", "CHT-17");
    let number = render(cx, &[(key, "1.5")]).await?;
    let saturation = find(&number, "ConfigMap", "-saturation-scaling-config")?;
    let entry = &saturation["data"]["llama"];
    assert_eq!(entry, "model_id: \"1.5\"\n", "a name stays a text");

    // No metrics: neither address, port, Service nor monitor.
    let silent = render(cx, &[("wva.metrics.enabled", "false")]).await?;
    assert!(find(&silent, "Service", "-metrics").is_err());
    assert!(find(&silent, "ServiceMonitor", "-metrics-monitor").is_err());
    let manager = find(&silent, "Deployment", "-controller-manager")?;
    assert!(!manager.to_string().contains("--metrics-bind-address"));
    // One namespace: a Role in place of the ClusterRole.
    let scoped = render(cx, &[("wva.namespaceScoped", "true")]).await?;
    find(&scoped, "Role", "-manager")?;
    let manager = find(&scoped, "Deployment", "-controller-manager")?;
    assert!(manager.to_string().contains("--watch-namespace=default"));
    // Paused.
    let paused = render(cx, &[("wva.enabled", "false")]).await?;
    let manager = find(&paused, "Deployment", "-controller-manager")?;
    assert_eq!(manager["spec"]["replicas"], 0);
    // LeaderWorkerSet.
    let groups = render(cx, &[("llmd.scaleTargetKind", "LeaderWorkerSet")]).await?;
    let va = find(&groups, "VariantAutoscaling", "-va")?;
    let version = &va["spec"]["scaleTargetRef"]["apiVersion"];
    assert_eq!(version, "leaderworkerset.x-k8s.io/v1");
    Ok(())
}
