//! Deployments that PodAutoscalers scale, as parts of a scenario.

use serde_json::{Map, Value, json};

use super::objects::{create_all, target, workload};
use super::scenario::{Scenario, ScenarioModel, ScenarioVariant};
use crate::apiserver::Insider;
use wva::policy::pod_autoscaler::check::ScalingStrategy;
use wva::policy::pod_autoscaler::object::{API_VERSION, KIND};

pub(crate) const PLURAL: &str = "podautoscalers";
/// The same as the server keeps them.
pub(crate) const AUTOSCALERS: &str = "podautoscalers.autoscaling.aibrix.ai";
const DEFINITION: &str =
    include_str!("../../../../config/crd/bases/autoscaling.aibrix.ai_podautoscalers.yaml");

/// A model whose Deployments have a PodAutoscaler each, in place of a VariantAutoscaling and an HPA.
#[derive(Debug, Clone)]
pub struct AutoscaledModel {
    /// The model. The bounds of its variants are those of the PodAutoscalers, which have their names.
    pub model: ScenarioModel,
    /// How the PodAutoscalers decide.
    pub strategy: ScalingStrategy,
    /// The metric of pods that they decide by.
    pub metric: &'static str,
    /// How much of it each replica takes.
    pub per_replica: f64,
    /// Seconds of the long window and of the short one.
    pub windows: (u32, u32),
    /// Annotations, without the group.
    pub annotations: Vec<(&'static str, &'static str)>,
}

impl AutoscaledModel {
    pub(crate) fn object(&self, variant: &ScenarioVariant) -> Value {
        let annotations = self.annotations.iter();
        let annotations: Map<String, Value> = annotations
            .map(|(key, text)| (format!("autoscaling.aibrix.ai/{key}"), json!(text)))
            .collect();
        json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "metadata": {"name": variant.name, "labels": {}, "annotations": annotations},
            "spec": {
                "scalingStrategy": self.strategy.as_str(),
                "scaleTargetRef": target(variant),
                "minReplicas": variant.bounds.0, "maxReplicas": variant.bounds.1,
                "observeWindowSeconds": self.windows.0, "panicWindowSeconds": self.windows.1,
                "metricsSources": [self.source()],
            },
        })
    }

    /// A HorizontalPodAutoscaler in the world reads external metrics alone.
    fn source(&self) -> Value {
        let (metric, value) = (self.metric, self.per_replica.to_string());
        if self.strategy == ScalingStrategy::Hpa {
            return json!({
                "metricSourceType": "external", "targetMetric": metric, "targetValue": value,
            });
        }
        json!({
            "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
            "targetMetric": metric, "targetValue": value,
        })
    }
}

pub(super) async fn create(server: &Insider, scenario: &Scenario) -> Result<(), String> {
    if scenario.autoscaled.is_empty() {
        return Ok(());
    }
    let definition: Value = serde_yaml::from_str(DEFINITION).unwrap_or_default();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.create(definitions, &definition).await?;
    for autoscaled in &scenario.autoscaled {
        for variant in &autoscaled.model.variants {
            let all = vec![
                workload(&autoscaled.model, variant),
                (API_VERSION, PLURAL, autoscaled.object(variant)),
            ];
            create_all(server, scenario, all).await?;
        }
    }
    Ok(())
}
