//! What is read, and from where.

use std::fs;

use serde_json::{Value, json};

use super::{Proof, SOON, gave_up, started};
use crate::harness::controller::{Controller, ControllerSpec, Pace};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::suite::Cx;
use crate::harness::variants::{Variants, variant};
use crate::harness::wait::{eventually, seen};

const INTERVAL: &str = "wva_config_optimization_interval_seconds";

pub(super) fn proofs() -> Vec<Proof> {
    vec![
        Proof::of(&["POOL_GROUP"], "pools_of_one_group_are_watched", pool_group),
        Proof::of(
            &["POD_AUTOSCALERS_ENABLED", "--controllers"],
            "pod_autoscalers_are_switched",
            pod_autoscalers,
        ),
        Proof::of(
            &["ANNOTATED_SCALERS_ENABLED"],
            "annotated_scalers_are_switched",
            annotated_scalers,
        ),
        Proof::of(
            &["POD_DELETION_COST_ENABLED"],
            "pods_that_go_first_are_switched",
            deletion_costs,
        ),
        Proof::of(
            &["POD_AUTOSCALER_ENDPOINT_HOSTS", "POD_AUTOSCALER_CA_CERT_PATH"],
            "what_pod_autoscalers_may_read_is_checked_at_start",
            pod_pages,
        ),
        Proof::of(&["--config-file"], "a_file_stands_in_for_the_map", file),
        Proof::of(&["CONFIG_MAP_NAME"], "the_main_map_has_its_name", main_map),
        Proof::of(
            &[
                "SATURATION_CONFIG_MAP_NAME",
                "QUEUEING_MODEL_CONFIG_MAP_NAME",
                "SERVICE_CLASSES_CONFIG_MAP_NAME",
            ],
            "policy_maps_have_their_names",
            policy_maps,
        ),
        Proof::of(&["WVA_SCALE_TO_ZERO"], "a_model_may_stay_at_zero", to_zero),
    ]
}

async fn pool_group(cx: &Cx) -> Result {
    let watched = async |group: &str| -> Result<[bool; 4]> {
        let controller = started(cx, vec![("POOL_GROUP", group.to_owned())], &[]).await?;
        controller.ready().await?;
        let text = controller.readiness().await?;
        controller.crash();
        Ok(["v1", "v1alpha2", "gateway", "llm-d"]
            .map(|group| text.contains(&format!("mirror/InferencePool.{group}:"))))
    };
    assert_eq!(watched("").await?, [true; 4]);
    let groups = [
        "inference.networking.k8s.io",
        "inference.networking.x-k8s.io",
        "gateway.networking.k8s.io",
        "llm-d.ai",
    ];
    for (index, group) in groups.into_iter().enumerate() {
        let expected: [bool; 4] = std::array::from_fn(|other| other == index);
        assert_eq!(watched(group).await?, expected);
    }
    Ok(())
}

async fn pod_pages(cx: &Cx) -> Result {
    for (key, value) in [
        ("POD_AUTOSCALER_ENDPOINT_HOSTS", "http://metrics.example"),
        ("POD_AUTOSCALER_CA_CERT_PATH", "/nowhere/ca.crt"),
    ] {
        let controller = started(cx, vec![(key, value.to_owned())], &[]).await?;
        let text = gave_up(controller).await?;
        assert!(text.contains(key) && text.contains(value), "{text}");
    }
    Ok(())
}

async fn pod_autoscalers(cx: &Cx) -> Result {
    let watched = async |enabled: &str, arguments: &[&str]| -> Result<bool> {
        let environment = vec![("POD_AUTOSCALERS_ENABLED", enabled.to_owned())];
        let arguments: Vec<String> = (arguments.iter()).map(|flag| (*flag).to_owned()).collect();
        let controller = started(cx, environment, &arguments).await?;
        controller.ready().await?;
        let text = controller.readiness().await?;
        controller.crash();
        Ok(text.contains("mirror/PodAutoscaler:"))
    };
    assert!(watched("true", &[]).await?);
    assert!(!watched("false", &[]).await?);
    assert!(!watched("true", &["--controllers=-pod-autoscaler-controller"]).await?);
    assert!(watched("true", &["--controllers=pod-autoscaler-controller"]).await?);
    Ok(())
}

async fn annotated_scalers(cx: &Cx) -> Result {
    for name in ["llama", "other"] {
        cx.namespace.deploy(&Workload::new(name, 1)).await?;
    }
    let other = variant("other", "other", &json!({ "maxReplicas": 4 }));
    cx.namespace.apply(other).await?;
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": "llama", "annotations": {
            "llm-d.ai/managed": "true", "llm-d.ai/model-id": "m",
        }},
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "llama" },
            "maxReplicas": 4,
        },
    });
    cx.namespace.apply(scaler).await?;
    for (enabled, expected) in [("true", true), ("false", false)] {
        let environment = vec![("ANNOTATED_SCALERS_ENABLED", enabled.to_owned())];
        let controller = started(cx, environment, &[]).await?;
        controller.ready().await?;
        let is_shown = async |name: &str| -> Result<bool> {
            let labels = [("variant_name", name)];
            let count = controller.value("wva_desired_replicas", &labels).await?;
            Ok(count.is_some())
        };
        eventually("counts are shown of what is a variant", SOON, async || {
            // Both are shown from the same cycle on.
            let shown = (is_shown("other").await?, is_shown("llama").await?);
            seen(&shown, &(true, expected))
        })
        .await?;
        controller.crash();
    }
    Ok(())
}

/// The role that marks pods runs or does not.
async fn deletion_costs(cx: &Cx) -> Result {
    for enabled in [true, false] {
        let environment = vec![("POD_DELETION_COST_ENABLED", enabled.to_string())];
        let controller = started(cx, environment, &[]).await?;
        controller.ready().await?;
        let tree = controller.debug("tree").await?;
        let mut roles = tree.as_array().into_iter().flatten();
        let is_there = roles.any(|report| report["role"] == "pod-marker");
        assert_eq!(is_there, enabled, "{tree}");
        controller.crash();
    }
    Ok(())
}

/// A controller whose settings alone state how often to decide.
async fn settled(
    cx: &Cx,
    environment: Vec<(&'static str, String)>,
    arguments: Vec<String>,
) -> Result<Controller> {
    let spec = ControllerSpec {
        pace: Pace::Settings,
        environment,
        arguments,
        ..ControllerSpec::scoped(cx)
    };
    Controller::start(cx, &spec).await
}

async fn config_map(cx: &Cx, name: &str, data: Value) -> Result {
    cx.system().await?.configure(name, data).await
}

async fn file(cx: &Cx) -> Result {
    config_map(cx, "wva-variantautoscaling-config", json!({ "GLOBAL_OPT_INTERVAL": "20s" }))
        .await?;
    let controller = settled(cx, Vec::new(), Vec::new()).await?;
    controller.shows(INTERVAL, 20.0, SOON).await?;
    controller.crash();
    let path = cx.conf("config");
    fs::write(&path, "GLOBAL_OPT_INTERVAL: 7s\n")?;
    let argument = format!("--config-file={}", path.display());
    let controller = settled(cx, Vec::new(), vec![argument]).await?;
    controller.shows(INTERVAL, 7.0, SOON).await
}

async fn main_map(cx: &Cx) -> Result {
    config_map(cx, "own", json!({ "GLOBAL_OPT_INTERVAL": "7s" })).await?;
    let controller = settled(cx, Vec::new(), Vec::new()).await?;
    controller.shows(INTERVAL, 60.0, SOON).await?;
    controller.crash();
    let own = vec![("CONFIG_MAP_NAME", "own".to_owned())];
    let controller = settled(cx, own, Vec::new()).await?;
    controller.shows(INTERVAL, 7.0, SOON).await
}

/// Each map holds an entry that is refused, so that it is seen to be read.
async fn policy_maps(cx: &Cx) -> Result {
    const INVALID: &str = "wva_config_entries_invalid";
    let maps = [
        ("SATURATION_CONFIG_MAP_NAME", "own-saturation"),
        ("QUEUEING_MODEL_CONFIG_MAP_NAME", "own-queueing-model"),
        ("SERVICE_CLASSES_CONFIG_MAP_NAME", "own-service-classes"),
    ];
    for (_, name) in maps {
        config_map(cx, name, json!({ "default": "[" })).await?;
    }
    let refused = async |controller: &Controller| -> Result<usize> {
        let series = controller.series().await?;
        let invalid = series.into_iter().filter(|one| one.name == INVALID);
        Ok(invalid.filter(|one| one.value > 0.0).count())
    };
    let controller = started(cx, Vec::new(), &[]).await?;
    controller.ready().await?;
    assert_eq!(refused(&controller).await?, 0);
    controller.crash();
    for (key, name) in maps {
        let controller = started(cx, vec![(key, name.to_owned())], &[]).await?;
        controller.ready().await?;
        // It is ready once ConfigMaps are listed, and judges them right after that.
        eventually(format!("{key} names a map that is read"), SOON, async || {
            seen(&refused(&controller).await?, &1)
        })
        .await?;
        controller.crash();
    }
    Ok(())
}

/// A variant without replicas and without a minimum of its own.
async fn to_zero(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new("llama", 0)).await?;
    for (allowed, desired) in [("false", 1.0), ("true", 0.0)] {
        let setting = vec![("WVA_SCALE_TO_ZERO", allowed.to_owned())];
        let controller = started(cx, setting, &[]).await?;
        let variants = Variants::new(&cx.namespace, &controller);
        variants.apply("v", "llama", json!({})).await?;
        variants.publishes("v", Some(desired), SOON).await?;
        controller.crash();
        variants_gone(cx, allowed).await?;
    }
    Ok(())
}

/// The next controller must not begin with what the last one stored.
async fn variants_gone(cx: &Cx, after: &str) -> Result {
    let api = cx.namespace.dynamic("llmd.ai/v1alpha1", "VariantAutoscaling").await?;
    api.delete("v", &kube::api::DeleteParams::default()).await?;
    eventually(format!("v is gone after {after}"), SOON, async || match api.get_opt("v").await? {
        None => Ok(()),
        Some(_) => Err(Fault::new("it is still there")),
    })
    .await
}
