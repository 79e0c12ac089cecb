//! That what is rendered fits together: what pods mount is there, names are short enough, and a values
//! file of the original arrives.

use std::collections::BTreeSet;

use serde_json::Value;

use super::rendering::{original_values, render, sets};
use super::{RELEASE, values_file};
use crate::harness::fault::Result;
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;

/// What pods mount and no template renders, each with who brings it.
const BROUGHT: [(&str, &str, &str); 1] =
    [("ConfigMap", "openshift-service-ca.crt", "OpenShift puts it into every namespace")];

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// ConfigMaps and Secrets without which the pods of a Deployment would not start: kind and name.
fn needed(deployment: &Value) -> Vec<(&'static str, String)> {
    let pod = &deployment["spec"]["template"]["spec"];
    let containers = list(&pod["containers"]);
    let variables = containers.flat_map(|container| list(&container["env"]));
    let mut sources: Vec<(&'static str, &Value, &str)> = Vec::new();
    for volume in list(&pod["volumes"]) {
        sources.push(("ConfigMap", &volume["configMap"], "name"));
        sources.push(("Secret", &volume["secret"], "secretName"));
    }
    for variable in variables {
        let from = &variable["valueFrom"];
        sources.push(("ConfigMap", &from["configMapKeyRef"], "name"));
        sources.push(("Secret", &from["secretKeyRef"], "name"));
    }
    let needed = sources.into_iter().filter(|(_, source, _)| source["optional"] != true);
    let named =
        needed.filter_map(|(kind, source, name)| Some((kind, source[name].as_str()?.to_owned())));
    named.collect()
}

pub(super) async fn what_pods_mount_is_there(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut rendered = Vec::new();
    for (set, values) in sets() {
        let objects = shipping.template(RELEASE, "default", &values).await?;
        rendered.push((set, objects));
    }
    for folder in ["default", "openshift"] {
        rendered.push((folder, shipping.kustomize(folder).await?));
    }
    let mut seen = BTreeSet::new();
    for (set, objects) in &rendered {
        let deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
        for (kind, name) in deployments.flat_map(needed) {
            let is_rendered =
                objects.iter().any(|object| object["kind"] == kind && name_of(object) == name);
            let mut brought = BROUGHT.iter();
            let is_brought = brought.any(|(of, known, _)| *of == kind && *known == name);
            assert!(is_rendered || is_brought, "{set}: who makes {kind} {name}?");
            seen.insert((kind, name));
        }
    }
    for (kind, name, why) in BROUGHT {
        let wanted = (kind, name.to_owned());
        assert!(seen.contains(&wanted), "{name} is not mounted: {why}");
    }
    Ok(())
}

/// As long as Helm and Kubernetes allow, names are accepted and differ.
pub(super) async fn long_names_fit(cx: &Cx) -> Result {
    const LONG: &str = "a-release-with-a-name-as-long-as-helm-allows-which-is";
    const PREFIX: &str = "namespaces-that-begin-alike-up-to-their-very-last-letters-";
    let shipping = Shipping::to(&cx.world)?;
    let values = set(&[
        ("externalMetrics.enabled", "true"),
        ("externalMetrics.apiService", "false"),
        ("keda.enabled", "true"),
        ("va.enabled", "true"),
        ("vllmService.enabled", "true"),
    ]);
    let mut of_cluster = Vec::new();
    for ending in ["a", "b"] {
        let namespace = format!("{PREFIX}{ending}");
        let objects = shipping.template(LONG, &namespace, &values).await?;
        for object in &objects {
            // Names that become labels, and labels.
            let is_short = ["Service", "VariantAutoscaling", "ScaledObject"]
                .map(|kind| object["kind"] == kind)
                .contains(&true);
            let name = name_of(object);
            assert!(!is_short || name.len() <= 63, "{} {name}", object["kind"]);
        }
        let va = name_of(find(&objects, "VariantAutoscaling", "-va")?);
        let scaler = find(&objects, "ScaledObject", "-scaler")?;
        let query = scaler["spec"]["triggers"][0]["metadata"]["query"].to_string();
        assert!(query.contains(va), "{query}");
        let names = objects.iter().filter(|object| object["kind"] == "ClusterRole");
        let names: BTreeSet<String> = names.map(|object| name_of(object).to_owned()).collect();
        of_cluster.push(names);
        for mut object in objects {
            object["metadata"]["namespace"] = cx.namespace.name.clone().into();
            manifest::dry_run(&cx.world.client, object, None).await?;
        }
    }
    let mut of_cluster = of_cluster.into_iter();
    let [first, second] = [of_cluster.next(), of_cluster.next()].map(Option::unwrap_or_default);
    assert!(!first.is_empty() && !second.is_empty());
    assert!(first.is_disjoint(&second), "{first:?}");
    Ok(())
}

/// Each value of a file for the original's chart is found where it acts.
pub(super) async fn original_values_arrive(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let objects = shipping.template(RELEASE, "wva-system", &original_values()).await?;
    let manager = find(&objects, "Deployment", "-controller-manager")?;
    assert_eq!(manager["spec"]["replicas"], 2);
    let container = &manager["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/wva:v0.5.1");
    let arguments = container["args"].to_string();
    for argument in
        ["--watch-namespace=wva-system", "--metrics-bind-address=:8443", "--metrics-secure=true"]
    {
        assert!(arguments.contains(argument), "{arguments}");
    }
    let config = find(&objects, "ConfigMap", "-variantautoscaling-config")?;
    for (key, value) in wva_base::cases! {
        ("GLOBAL_OPT_INTERVAL", "60s"),
        ("LOG_LEVEL", "info"),
        ("WVA_LIMITED_MODE", "false"),
        ("WVA_SCALE_TO_ZERO", "false"),
        ("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "true"),
        ("PROMETHEUS_BASE_URL", "https://thanos-querier.openshift-monitoring.svc.cluster.local:9091"),
        ("PROMETHEUS_TOKEN_PATH", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ("PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL", "30s"),
        ("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "5m"),
    } {
        assert_eq!(config["data"][key], value, "{key}");
    }
    let saturation = find(&objects, "ConfigMap", "-saturation-scaling-config")?;
    let entry = &saturation["data"]["llama-prod"];
    assert_eq!(entry, "kvCacheThreshold: 0.7\nmodel_id: meta/llama\nnamespace: prod\n");
    let va = find(&objects, "VariantAutoscaling", "-va")?;
    assert_eq!(va["metadata"]["namespace"], "llm-d-autoscaler");
    assert_eq!(va["spec"]["modelID"], "Qwen/Qwen3-0.6B");
    let hpa = find(&objects, "HorizontalPodAutoscaler", "-hpa")?;
    let target = "ms-workload-autoscaler-llm-d-modelservice-decode";
    assert_eq!(hpa["spec"]["scaleTargetRef"]["name"], target);
    assert_eq!(hpa["spec"]["maxReplicas"], 2);
    let up = &hpa["spec"]["behavior"]["scaleUp"];
    assert_eq!(up["stabilizationWindowSeconds"], 240);
    let service = find(&objects, "Service", "-vllm")?;
    assert_eq!(service["spec"]["ports"][0]["port"], 8200);
    Ok(())
}

/// Labels by which a Prometheus selects monitors come in addition to those that are always there.
pub(super) async fn monitors_are_labelled(cx: &Cx) -> Result {
    let labelled = [
        ("wva.metrics.serviceMonitor.labels.release", "monitoring"),
        ("vllmService.labels.release", "monitoring"),
    ];
    let without = render(cx, &[]).await?;
    let with = render(cx, &labelled).await?;
    for ending in ["-metrics-monitor", "-vllm-mon"] {
        let [before, after] = [&without, &with].map(|objects| {
            let monitor = find(objects, "ServiceMonitor", ending)?;
            Result::Ok(monitor["metadata"]["labels"].clone())
        });
        let mut before = before?;
        assert_eq!(before["release"], Value::Null);
        before["release"] = "monitoring".into();
        assert_eq!(after?, before);
    }
    Ok(())
}

/// Development values change what they say, and nothing else.
pub(super) async fn development_values_act(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut values = values_file("values-dev.yaml");
    let dev = shipping.template(RELEASE, "default", &values).await?;
    let config = find(&dev, "ConfigMap", "-variantautoscaling-config")?;
    for (key, value) in [
        ("GLOBAL_OPT_INTERVAL", "30s"),
        ("LOG_LEVEL", "debug"),
        ("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "true"),
    ] {
        assert_eq!(config["data"][key], value, "{key}");
    }
    let manager = find(&dev, "Deployment", "-controller-manager")?;
    assert_eq!(manager["spec"]["replicas"], 1);
    // A Prometheus without TLS has no certificate to verify or not.
    values.extend(set(&[
        ("wva.prometheus.baseURL", "http://prometheus:9090"),
        ("wva.prometheus.allowHTTP", "true"),
    ]));
    let plain = shipping.template(RELEASE, "default", &values).await?;
    let config = find(&plain, "ConfigMap", "-variantautoscaling-config")?;
    assert_eq!(config["data"]["PROMETHEUS_ALLOW_HTTP"], "true");
    for key in ["PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "PROMETHEUS_TOKEN_PATH"] {
        assert_eq!(config["data"][key], Value::Null, "{key}");
    }
    Ok(())
}

/// The account that asks endpoint pickers is there, and its token mounted, exactly where no other token is
/// given.
pub(super) async fn routers_are_asked_by_one_token(cx: &Cx) -> Result {
    const OTHER: &str = "EPP_METRIC_READER_BEARER_TOKEN";
    let by_key = format!("wva.config.{OTHER}");
    let cases: [(&[(&str, &str)], bool); 4] = wva_base::cases! {
        (&[], true),
        (&[("wva.eppMetricsReader.enabled", "false")], false),
        (&[("wva.extraEnv[0].name", OTHER), ("wva.extraEnv[0].value", "t")], false),
        (&[(&by_key, "t")], false),
    };
    for (values, is_made) in cases {
        let objects = render(cx, values).await?;
        let manager = find(&objects, "Deployment", "-controller-manager")?;
        let is_mounted = manager.to_string().contains("/var/run/secrets/epp-metrics");
        assert_eq!(is_mounted, is_made, "{values:?}");
        for (kind, ending) in [
            ("ServiceAccount", "-epp-metrics-reader"),
            ("Secret", "-epp-metrics-token"),
            ("ClusterRoleBinding", "-epp-metrics-reader"),
        ] {
            assert_eq!(find(&objects, kind, ending).is_ok(), is_made, "{kind} {values:?}");
        }
    }
    let bases = Shipping::to(&cx.world)?.kustomize("default").await?;
    let manager = find(&bases, "Deployment", "-controller-manager")?.to_string();
    let secret = name_of(find(&bases, "Secret", "-epp-metrics-token")?);
    assert!(manager.contains("/var/run/secrets/epp-metrics") && manager.contains(secret));
    Ok(())
}
