//! `deploy/install.sh`.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::harness::fault::Result;
use crate::harness::namespace::Namespace;
use crate::harness::shipping::{Ended, Shipping, find};
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
    let arguments = [&["-e", "kind-emulator", "-i", IMAGE, "-r", release], &model[..]].concat();
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
    let refused: [(&[&str], Variables); 16] = [
        (&[], &[("DEPLOY_PROMETHEUS", "true")]),
        (&[], &[("CREATE_CLUSTER", "yes"), ("DEPLOY_LLM_D", "false")]),
        (&[], &[("KEDA_HELM_INSTALL", "1")]),
        (&[], &[("BENCHMARK_MODE", "perhaps")]),
        (&[], &[("LLM_D_RELEASE", "v0.3.0")]),
        (&[], &[("SLO_TPOT", "fast")]),
        (&[], &[("HPA_MIN_REPLICAS", "1.5")]),
        (&[], &[("VLLM_SVC_PORT", "http")]),
        (&[], &[("DEPLOY_VA", "maybe")]),
        (&[], &[("SKIP_CHECKS", "maybe")]),
        (&[], &[("INFRA_ONLY", "maybe")]),
        (&[], &[("UNDEPLOY", "maybe")]),
        (&["-u"], &[("DELETE_NAMESPACES", "maybe")]),
        (&[], &[("SCALER_BACKEND", "magic")]),
        (&[], &[("PROM_CA_CERT_PATH", "/nowhere")]),
        (&[], &[("VALUES_FILE", "/nowhere")]),
    ];
    for (arguments, environment) in refused {
        // Nothing runs here that could change the cluster.
        let arguments = [&["--print"], arguments].concat();
        let ended = run(&shipping, &arguments, environment).await?;
        let (variable, value) = environment.first().copied().unwrap_or_default();
        let named = format!("{variable}={value}");
        assert!(!ended.well && ended.text.contains(&named), "{named}: {}", ended.text);
        assert!(!ended.text.contains("helm upgrade"), "{}", ended.text);
    }
    for (arguments, named) in
        [(["--no-such", ""], "unknown flag --no-such"), (["-e", "mars"], "environment mars")]
    {
        let ended = run(&shipping, &[&["--print"], &arguments[..]].concat(), &[]).await?;
        assert!(!ended.well && ended.text.contains(named), "{}", ended.text);
    }
    Ok(())
}

/// `--print` shows what would be run, and runs nothing: no Secret is read, no namespace made.
pub(super) async fn prints_and_runs_nothing(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let environment = [
        ("LLMD_NS", "printed-and-not-made"),
        ("PROMETHEUS_SECRET_NAME", "prometheus-web-tls"),
        // What is not asked for may stand there.
        ("DEPLOY_LLM_D", "no"),
        ("DEPLOY_PROMETHEUS", "0"),
        ("CREATE_CLUSTER", "False"),
        // No server answers there.
        ("KUBECONFIG", "/nowhere"),
    ];
    let ended = run(&shipping, &["--print", "-e", "openshift"], &environment).await?;
    assert!(ended.well, "{}", ended.text);
    for shown in [
        "get secret prometheus-web-tls",
        "kubectl create namespace printed-and-not-made",
        "values-openshift.yaml",
        "wva.prometheus.caCert=prometheus-ca.crt",
    ] {
        assert!(ended.text.contains(shown), "{shown}: {}", ended.text);
    }
    let gone = run(&shipping, &["--print", "-u"], &[("DELETE_NAMESPACES", "yes")]).await?;
    assert!(gone.text.contains("kubectl delete namespace"), "{}", gone.text);
    Ok(())
}

/// A variable beats the user's file, and the file beats what an environment presets.
pub(super) async fn ranks_the_given_variants(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let file = "wva: {prometheus: {baseURL: \"http://mine:9090\", allowHTTP: true}, logging: {level: warn}}\nva: {accelerator: L4}\n";
    let file = cx.world.site.write("install-values.yaml", file)?;
    let file = file.display().to_string();
    let environment =
        [("VALUES_FILE", file.as_str()), ("WVA_LOG_LEVEL", "trace"), ("LLMD_NS", "llm-d")];
    let ended = run(&shipping, &["--print", "-e", "kind-emulator"], &environment).await?;
    assert!(ended.well, "{}", ended.text);
    // Rendered with the values of the command that is shown.
    let words: Vec<&str> = ended.text.split_whitespace().collect();
    let values =
        words.windows(2).filter(|pair| ["--values", "--set", "--set-string"].contains(&pair[0]));
    let values: Vec<String> = values.flatten().map(ToString::to_string).collect();
    let objects = shipping.template("wva", "default", &values).await?;
    let config = find(&objects, "ConfigMap", "-variantautoscaling-config")?;
    assert_eq!(config["data"]["PROMETHEUS_BASE_URL"], "http://mine:9090");
    assert_eq!(config["data"]["LOG_LEVEL"], "trace");
    let va = find(&objects, "VariantAutoscaling", "-va")?;
    let accelerator = &va["metadata"]["labels"]["inference.optimization/acceleratorName"];
    assert_eq!(accelerator, "L4");
    let classes = find(&objects, "ConfigMap", "-service-classes-config")?;
    assert!(classes.to_string().contains("slo-tpot: 24"), "{classes}");
    Ok(())
}
