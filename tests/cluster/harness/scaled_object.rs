//! The ScaledObject that has KEDA make an HPA follow a variant's gauge.

use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use kube::Api;
use serde_json::{Value, json};

use super::fault::Result;
use super::suite::Cx;
use super::wait::{eventually, seen};

/// A ScaledObject on a Deployment, in the form that the pages for users show: no
/// series is no answer rather than 0, one number however many series there are, and no tolerance,
/// which would swallow the step from 10 to 11. No stabilisation, and steps of any size.
pub(crate) struct ScaledObject<'a> {
    pub(crate) target: &'a str,
    /// The value of the gauge's `variant_name`.
    pub(crate) variant: &'a str,
    pub(crate) min: i32,
    pub(crate) max: i32,
}

impl ScaledObject<'_> {
    /// Creates it in the namespace of the case once Prometheus has the gauge: three polls without
    /// an answer and KEDA falls back to a number of its own.
    pub(crate) async fn apply(&self, cx: &Cx) -> Result {
        let query = self.published(cx).await?;
        cx.namespace.apply(self.manifest(&cx.world.prometheus.url, &query)).await?;
        Ok(())
    }

    /// The query of the gauge, once Prometheus has a value of it.
    pub(crate) async fn published(&self, cx: &Cx) -> Result<String> {
        let query = format!(
            "max by (variant_name, exported_namespace) (wva_desired_replicas{{\
             variant_name=\"{}\",exported_namespace=\"{}\"}})",
            self.variant, cx.namespace.name
        );
        let what = format!("{query} has a value");
        eventually(what, Duration::from_secs(30), async || {
            seen(&cx.world.prometheus.query(&query).await?.len(), &1)
        })
        .await?;
        Ok(query)
    }

    /// Waits until the HPA shows this as the average value of its metric.
    pub(crate) async fn is_read(&self, cx: &Cx, average: &str) -> Result {
        let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
        let what = format!("the HPA reads {average}");
        eventually(what, Duration::from_mins(1), async || {
            let hpa = hpas.get(&format!("keda-hpa-{}", self.target)).await?;
            let metrics = hpa.status.and_then(|status| status.current_metrics).unwrap_or_default();
            let values: Vec<String> = metrics
                .into_iter()
                .filter_map(|metric| metric.external?.current.average_value)
                .map(|quantity| quantity.0)
                .collect();
            seen(&values, &vec![average.to_owned()])
        })
        .await
    }

    /// The object itself, for a query of one's own.
    pub(crate) fn manifest(&self, prometheus: &str, query: &str) -> Value {
        self.following(&json!({
            "type": "prometheus",
            "metricType": "AverageValue",
            "metadata": {
                "serverAddress": prometheus,
                "query": query,
                "threshold": "1",
                "activationThreshold": "0",
                "ignoreNullValues": "false",
            },
        }))
    }

    /// The object itself, for a trigger of one's own.
    pub(crate) fn following(&self, trigger: &Value) -> Value {
        let direction = json!({
            "stabilizationWindowSeconds": 0,
            "tolerance": "0",
            "policies": [{ "type": "Pods", "value": 100, "periodSeconds": 1 }],
        });
        json!({
            "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": { "name": self.target },
            "spec": {
                "scaleTargetRef": { "name": self.target },
                "minReplicaCount": self.min,
                "maxReplicaCount": self.max,
                "pollingInterval": 1,
                "cooldownPeriod": 1,
                "fallback": {
                    "failureThreshold": 3,
                    // A poll that fails under load then changes nothing.
                    "replicas": self.min,
                    "behavior": "currentReplicasIfHigher",
                },
                "advanced": { "horizontalPodAutoscalerConfig": {
                    "behavior": { "scaleUp": direction, "scaleDown": direction },
                }},
                "triggers": [trigger],
            },
        })
    }
}
