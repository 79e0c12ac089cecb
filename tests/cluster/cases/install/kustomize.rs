//! The kustomize bases and overlays.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use wva::api::INSTANCE_LABEL;

use super::release::LATER;
use super::{RELEASE, SOON, running};
use crate::harness::audit::granted;
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::shipping::{Shipping, find, name_of, set};
use crate::harness::suite::Cx;
use crate::harness::tools::repository;
use crate::harness::wait::eventually;

const SYSTEM: &str = "workload-variant-autoscaler-system";
const FOLDERS: [&str; 20] = [
    "crd",
    "rbac",
    "annotated-scalers",
    "pod-marker",
    "direct-actuation",
    "manager",
    "default",
    "prometheus",
    "network-policy",
    "openshift",
    "external-metrics",
    "external-scaler",
    "webhook",
    "samples",
    "samples/pod-autoscalers",
    "samples/policies",
    "samples/external-scaler",
    "samples/scalers",
    "samples/workloads",
    "grafana",
];

/// An object of a base in the namespace of a case. Bindings get a name of the case's own: cases that
/// run at the same time must not take each other's rights.
fn moved(mut object: Value, namespace: &str) -> Value {
    for place in ["/metadata/namespace", "/subjects/0/namespace"] {
        if let Some(place) = object.pointer_mut(place)
            && place != "kube-system"
        {
            *place = json!(namespace);
        }
    }
    if object["kind"] == "ClusterRoleBinding" {
        let name = format!("{namespace}-{}", name_of(&object));
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// The server judges every object; those of cert-manager it does not know.
pub(super) async fn every_folder_is_accepted(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    for folder in FOLDERS {
        let objects = shipping.kustomize(folder).await?;
        assert!(!objects.is_empty(), "{folder}");
        for object in objects {
            if ["Issuer", "Certificate"].map(|kind| object["kind"] == kind) != [false; 2] {
                continue;
            }
            let what = format!("{folder}: {} {}", object["kind"], name_of(&object));
            let object = moved(object, namespace);
            manifest::dry_run(&cx.world.client, object, Some(namespace))
                .await
                .map_err(|fault| Fault::new(format!("{what}: {}", fault.text())))?;
        }
    }
    // What is applied by itself.
    for entry in std::fs::read_dir(repository().join("deploy"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            for object in manifest::read(&path)? {
                let object = moved(object, namespace);
                manifest::dry_run(&cx.world.client, object, None).await?;
            }
        }
    }
    Ok(())
}

/// The rules of the role that is named so.
fn rules(objects: &[Value], kind: &str, ending: &str) -> Result<Value> {
    Ok(find(objects, kind, ending)?["rules"].clone())
}

pub(super) async fn grants_what_the_chart_grants(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let bases = shipping.kustomize("default").await?;
    let chart = shipping.template(RELEASE, "default", &[]).await?;
    for (kind, ending) in [
        ("ClusterRole", "-manager"),
        ("ClusterRole", "-pod-autoscalers"),
        ("ClusterRole", "-metrics-auth"),
        ("ClusterRole", "-debug-reader"),
        ("ClusterRole", "-epp-metrics-reader"),
        ("ClusterRole", "-variantautoscaling-admin"),
        ("ClusterRole", "-variantautoscaling-editor"),
        ("ClusterRole", "-variantautoscaling-viewer"),
        ("ClusterRole", "-podautoscaler-editor"),
        ("ClusterRole", "-podautoscaler-viewer"),
        ("Role", "-leader-election"),
    ] {
        let both = [rules(&bases, kind, ending)?, rules(&chart, kind, ending)?];
        let [base, chart] = both.map(|rules| granted(&[json!({ "rules": rules })]));
        assert_eq!(base, chart, "{kind} *{ending}");
    }
    // One namespace alone: the same in a Role, but for kinds without a namespace.
    let values = set(&[("wva.namespaceScoped", "true")]);
    let scoped = shipping.template(RELEASE, "default", &values).await?;
    let whole = granted(&[json!({ "rules": rules(&chart, "ClusterRole", "-manager")? })]);
    let narrow = granted(&[json!({ "rules": rules(&scoped, "Role", "-manager")? })]);
    let wide: BTreeSet<_> =
        whole.difference(&narrow).map(|(_, resource, _)| resource.as_str()).collect();
    let of_cluster = ["namespaces", "nodes", "resourceclaims", "resourceslices"];
    assert_eq!(wide, BTreeSet::from(of_cluster));
    let whole = rules(&chart, "ClusterRole", "-pod-autoscalers")?;
    assert_eq!(rules(&scoped, "Role", "-pod-autoscalers")?, whole);
    // Variants by annotation, and pods that go first, switched on: the same right in both.
    for (value, folder, ending) in wva_base::cases! {
        ("annotatedScalers.enabled", "annotated-scalers", "-annotated-scalers"),
        ("podDeletionCost.enabled", "pod-marker", "-pod-markers"),
        ("directActuation.enabled", "direct-actuation", "-target-scalers"),
    } {
        let values = set(&[(value, "true")]);
        let on = shipping.template(RELEASE, "default", &values).await?;
        let folder = shipping.kustomize(folder).await?;
        let [base, of_chart] = [&folder, &on].map(|objects| rules(objects, "ClusterRole", ending));
        assert_eq!(base?, of_chart?);
        assert!(rules(&chart, "ClusterRole", ending).is_err());
    }
    // Switched off: no right of the kind at all.
    let values = set(&[("podAutoscalers.enabled", "false")]);
    let off = shipping.template(RELEASE, "default", &values).await?;
    let config = find(&off, "ConfigMap", "-variantautoscaling-config")?;
    assert_eq!(config["data"]["POD_AUTOSCALERS_ENABLED"], "false");
    let roles = ["-pod-autoscalers", "-podautoscaler-editor", "-podautoscaler-viewer"];
    let mut names = off.iter().map(name_of);
    let left = names.find(|name| roles.iter().any(|role| name.ends_with(role)));
    assert_eq!(left, None);
    Ok(())
}

/// One namespace alone: nothing of the whole cluster, but where growth is limited to the GPUs of nodes
/// the nodes and the pods on them.
pub(super) async fn grants_the_cluster_to_limits_alone(cx: &Cx) -> Result {
    const LIMITER: &str = "wva.capacityScaling.default.enableLimiter";
    const QUOTA: &str = "wva.capacityScaling.default.limiters[0].quotas.H100";
    let shipping = Shipping::to(&cx.world)?;
    let of_nodes = granted(&[json!({ "rules": [
        { "apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"] },
        {
            "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims", "resourceslices"],
            "verbs": ["list", "watch"],
        },
    ] })]);
    let cases: [(&[(&str, &str)], bool); 4] = [
        (&[], false),
        (&[("wva.limitedMode", "true")], true),
        (&[(LIMITER, "true")], true),
        (&[(LIMITER, "true"), (QUOTA, "8")], false),
    ];
    for (values, is_wide) in cases {
        let values = [&[("wva.namespaceScoped", "true")], values].concat();
        let objects = shipping.template(RELEASE, "default", &set(&values)).await?;
        let wide = rules(&objects, "ClusterRole", "-manager").ok();
        let wide = wide.map(|rules| granted(&[json!({ "rules": rules })]));
        assert_eq!(wide, is_wide.then(|| of_nodes.clone()), "{values:?}");
    }
    Ok(())
}

/// What `kubectl apply -k` would apply, in the system namespace of the case, and with an instance, as
/// objects of other cases are not its own.
pub(super) async fn rendered(cx: &Cx, folders: &[&str]) -> Result<Vec<Value>> {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.system().await?.name;
    let mut objects = Vec::new();
    for folder in folders {
        objects.extend(shipping.kustomize(folder).await?);
    }
    objects.retain(|object| {
        // Shared by all cases, or made by the harness.
        object["kind"] != "CustomResourceDefinition" && object["kind"] != "Namespace"
    });
    let text = json!(objects).to_string().replace(SYSTEM, namespace);
    let objects: Vec<Value> = serde_json::from_str(&text)?;
    let mut objects: Vec<Value> =
        objects.into_iter().map(|object| moved(object, namespace)).collect();
    main_config(&mut objects)["CONTROLLER_INSTANCE"] = json!(cx.namespace.name);
    Ok(objects)
}

/// The settings among rendered objects.
pub(super) fn main_config(objects: &mut [Value]) -> &mut Value {
    let mut found = objects.iter_mut().filter(|object| {
        object["kind"] == "ConfigMap" && name_of(object).ends_with("-variantautoscaling-config")
    });
    &mut found.next().expect("a main ConfigMap")["data"]
}

pub(super) async fn apply(cx: &Cx, objects: &[Value]) -> Result {
    let namespace = &cx.system().await?.name;
    for object in objects {
        manifest::apply(&cx.world.client, object.clone(), Some(namespace)).await?;
    }
    Ok(())
}

/// The default installation, with the Prometheus of the world.
async fn apply_default(cx: &Cx) -> Result<Vec<Value>> {
    let mut objects = rendered(cx, &["default", "prometheus"]).await?;
    let data = main_config(&mut objects);
    data["PROMETHEUS_BASE_URL"] = json!(cx.world.prometheus.url);
    data["PROMETHEUS_ALLOW_HTTP"] = json!("true");
    apply(cx, &objects).await?;
    Ok(objects)
}

/// What is applied by itself from `deploy` reaches the controller of the default installation.
pub(super) async fn reads_what_is_deployed(cx: &Cx) -> Result {
    const SPARE: &str = "wva_config_kv_spare_threshold";
    let mut objects = apply_default(cx).await?;
    let namespace = &cx.system().await?.name;
    for object in &mut objects {
        if object["kind"] == "ConfigMap" && name_of(object).ends_with("-saturation-scaling-config")
        {
            object["data"]["default"] = json!("kvSpareTrigger: 0.3\n");
            manifest::apply(&cx.world.client, object.clone(), None).await?;
        }
    }
    let reader = running::metrics_reader(cx, &objects, namespace).await?;
    let controller = running::start(cx, &objects, namespace, "wva-0").await?.controller;
    controller.ready().await?;
    running::gauge(&controller, &reader, SPARE, 0.3).await?;
    let generation = async || -> Result<f64> {
        let (_, page) = reader.get(&format!("https://{}/metrics", controller.metrics)).await?;
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with("wva_config_generation"));
        let value = line.and_then(|line| line.rsplit(' ').next());
        Ok(value.unwrap_or_default().parse()?)
    };
    for file in ["saturation-scaling", "queueing-model", "serviceclass"] {
        let before = generation().await?;
        let path = repository().join(format!("deploy/configmap-{file}.yaml"));
        for object in manifest::read(&path)? {
            manifest::apply(&cx.world.client, moved(object, namespace), None).await?;
        }
        eventually(format!("{file} is in force"), SOON, async || {
            let now = generation().await?;
            if now > before { Ok(()) } else { Err(Fault::new(format!("still {now}"))) }
        })
        .await?;
    }
    running::gauge(&controller, &reader, SPARE, 0.1).await?;
    let (_, page) = reader.get(&format!("https://{}/metrics", controller.metrics)).await?;
    assert!(page.contains("analyzer_name=\"queueing-model\""), "{page}");
    assert_eq!(controller.stop().await?, Some(0));
    running::nothing_was_refused(cx, namespace)
}

/// The workload and the variant of the samples.
pub(super) const NAME: &str = "llama-8b";
/// What its engines call the model.
pub(super) const MODEL: &str = "meta/llama-3.1-8b";

/// Applies the samples of a workload and its variant, with the instance of the case.
pub(super) async fn serve_the_sample(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let mut objects = shipping.kustomize("samples/workloads").await?;
    objects.extend(manifest::read(&samples().join("name-only.yaml"))?);
    for mut object in objects {
        if object["kind"] == "VariantAutoscaling" {
            object["metadata"]["labels"] = json!({ INSTANCE_LABEL: cx.namespace.name });
        }
        cx.namespace.apply(object).await?;
    }
    cx.namespace.settles(NAME, 1, SOON).await
}

fn samples() -> PathBuf {
    repository().join("config/samples")
}

/// Applies the sample of a ScaledObject, which asks the Prometheus of the world.
pub(super) async fn follow_the_sample(cx: &Cx) -> Result {
    let mut scaler = manifest::read(&samples().join("scalers/scaledobject.yaml"))?.remove(0);
    let metadata = &mut scaler["spec"]["triggers"][0]["metadata"];
    metadata["serverAddress"] = json!(cx.world.prometheus.url);
    let query = metadata["query"].as_str().unwrap_or_default();
    metadata["query"] = json!(query.replace("llm-d", &cx.namespace.name));
    cx.namespace.apply(scaler).await.map(drop)
}

/// A cycle a second, and pages that are scraped without a token.
pub(super) fn quick(objects: &[Value]) -> Result<Vec<Value>> {
    let text = json!(objects).to_string();
    let text = text.replace("--metrics-secure=true", "--metrics-secure=false");
    let (usual, quick) =
        [15, 1].map(|seconds| format!("\"GLOBAL_OPT_INTERVAL\":\"{seconds}s\"")).into();
    assert!(text.contains(&usual));
    Ok(serde_json::from_str(&text.replace(&usual, &quick))?)
}

/// The samples of a workload, its variant and its ScaledObject belong together, and the controller of the
/// default installation scales them.
pub(super) async fn scales_the_samples(cx: &Cx) -> Result {
    serve_the_sample(cx).await?;
    // Two thirds of three caches, which is below every trigger.
    let load = Load::cache(2.0);
    let fleet = EngineFleet::start(cx, &format!("app={NAME}"), MODEL, load);

    let objects = quick(&apply_default(cx).await?)?;
    apply(cx, &objects).await?;
    let system = &cx.system().await?.name;
    let controller = running::start(cx, &objects, system, "wva-0").await?.controller;
    controller.ready().await?;
    follow_the_sample(cx).await?;
    cx.namespace.settles(NAME, 3, LATER).await?;
    drop(fleet);
    running::nothing_was_refused(cx, system)
}
