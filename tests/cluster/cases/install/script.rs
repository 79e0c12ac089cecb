//! `deploy/install.sh`.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Namespace;
use crate::harness::shipping::{Ended, Shipping};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;

async fn run(
    shipping: &Shipping,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<Ended> {
    let script = repository().join("deploy/install.sh");
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    shipping.try_run(&script, &arguments, environment).await
}

const IMAGE: &str = "registry.example:5000/wva:v9";

/// Flags and variables of the original arrive in the objects, and the release goes again.
pub(super) async fn installs(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let system = cx.system().await?;
    let namespace = &cx.namespace.name;
    let release = format!("{namespace}-r");
    let release = release.get(..20).unwrap_or(&release).trim_end_matches('-');
    let environment = [
        ("WVA_NS", system.name.as_str()),
        ("LLMD_NS", namespace),
        ("MONITORING_NAMESPACE", namespace),
        ("WVA_IMAGE_PULL_POLICY", "IfNotPresent"),
        ("WVA_RECONCILE_INTERVAL", "45s"),
        ("NAMESPACE_SCOPED", "true"),
        ("ENABLE_SCALE_TO_ZERO", "true"),
        ("SLO_TPOT", "24"),
        ("KV_SPARE_TRIGGER", "0.15"),
        ("HPA_STABILIZATION_SECONDS", "30"),
        ("VLLM_SVC_PORT", "8000"),
        ("DEPLOY_PROMETHEUS", "false"),
        ("SCALER_BACKEND", "keda"),
        ("HF_TOKEN", "not-needed"),
    ];
    let model = ["-m", "Qwen/Qwen3-0.6B", "-a", "L40S"];
    let arguments = [
        &["-e", "kind-emulator", "-i", IMAGE, "-r", release],
        &model[..],
    ]
    .concat();
    let ended = run(&shipping, &arguments, &environment).await?;
    assert!(ended.well, "{}", ended.text);
    let says = ended.text.contains("HF_TOKEN is not used");
    assert!(says, "{}", ended.text);

    let name = format!("{release}-workload-variant-autoscaler");
    controller_is_as_asked(system, &name).await?;
    sample_is_as_asked(&cx.namespace, &name).await?;

    let ended = run(&shipping, &["-u", "-r", release], &environment).await?;
    assert!(ended.well, "{}", ended.text);
    let left = system.dynamic("apps/v1", "Deployment").await?;
    let left = left.get_opt(&format!("{name}-controller-manager")).await?;
    assert!(left.is_none());
    Ok(())
}

async fn get(namespace: &Namespace, (version, kind): (&str, &str), name: String) -> Result<Value> {
    let found: DynamicObject = namespace.dynamic(version, kind).await?.get(&name).await?;
    Ok(found.data)
}

async fn controller_is_as_asked(system: &Namespace, name: &str) -> Result {
    let manager = format!("{name}-controller-manager");
    let manager = get(system, ("apps/v1", "Deployment"), manager).await?;
    let container = &manager["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], IMAGE);
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert!(container["args"].to_string().contains("--watch-namespace="));
    let config = format!("{name}-variantautoscaling-config");
    let config = get(system, ("v1", "ConfigMap"), config).await?;
    for (key, value) in [
        ("GLOBAL_OPT_INTERVAL", "45s"),
        ("WVA_SCALE_TO_ZERO", "true"),
        ("LOG_LEVEL", "debug"),
        ("PROMETHEUS_TLS_INSECURE_SKIP_VERIFY", "true"),
    ] {
        assert_eq!(config["data"][key], value, "{key}");
    }
    let saturation = format!("{name}-wva-saturation-scaling-config");
    let saturation = get(system, ("v1", "ConfigMap"), saturation).await?;
    let default = saturation["data"]["default"].to_string();
    assert!(default.contains("kvSpareTrigger: 0.15"), "{default}");
    Ok(())
}

async fn sample_is_as_asked(namespace: &Namespace, name: &str) -> Result {
    let va = ("llmd.ai/v1alpha1", "VariantAutoscaling");
    let va = get(namespace, va, format!("{name}-va")).await?;
    assert_eq!(va["spec"]["modelID"], "Qwen/Qwen3-0.6B");
    let service = get(namespace, ("v1", "Service"), format!("{name}-vllm")).await?;
    assert_eq!(service["spec"]["ports"][0]["port"], 8000);
    let scaler = ("keda.sh/v1alpha1", "ScaledObject");
    let scaler = get(namespace, scaler, format!("{name}-scaler")).await?;
    let behavior = &scaler["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"];
    assert_eq!(behavior["scaleUp"]["stabilizationWindowSeconds"], 30);
    Ok(())
}

type Variables = &'static [(&'static str, &'static str)];

/// What the script cannot do it says, and then does nothing.
pub(super) async fn refuses_by_name(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let refused: [(&[&str], Variables, &str); 8] = [
        (
            &[],
            &[("DEPLOY_PROMETHEUS", "true")],
            "DEPLOY_PROMETHEUS=true",
        ),
        (
            &[],
            &[("DEPLOY_LLM_D", "true"), ("CREATE_CLUSTER", "true")],
            "CREATE_CLUSTER=true",
        ),
        (
            &[],
            &[("KEDA_HELM_INSTALL", "true")],
            "KEDA_HELM_INSTALL=true",
        ),
        (&["--no-such"], &[], "unknown flag --no-such"),
        (&["-e", "mars"], &[], "environment mars"),
        (&[], &[("SLO_TPOT", "fast")], "SLO_TPOT=fast"),
        (&[], &[("DEPLOY_VA", "maybe")], "DEPLOY_VA=maybe"),
        (
            &[],
            &[("PROM_CA_CERT_PATH", "/nowhere")],
            "PROM_CA_CERT_PATH=/nowhere",
        ),
    ];
    for (arguments, environment, named) in refused {
        // Nothing runs here that could change the cluster.
        let arguments = [&["--print"], arguments].concat();
        let ended = run(&shipping, &arguments, environment).await?;
        assert!(!ended.well && ended.text.contains(named), "{}", ended.text);
        assert!(!ended.text.contains("helm upgrade"), "{}", ended.text);
    }
    // Every value that it makes is one of the chart.
    let ended = run(&shipping, &["--print", "-e", "openshift"], &[]).await?;
    if !ended.well || !ended.text.contains("values-openshift.yaml") {
        return Err(Fault::new(ended.text));
    }
    Ok(())
}
