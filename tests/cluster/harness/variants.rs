//! VariantAutoscalings of a test, and what a controller reports about them: on the objects, on its
//! metrics page, in its decisions.

use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use serde_json::{Value, json};
use wva::api::variant_autoscaling::VariantAutoscaling;

use super::controller::Controller;
use super::fault::{Fault, Result};
use super::namespace::{Namespace, condition_of};
use super::wait::{eventually, seen};

/// The model of variants that name no other.
pub(crate) const MODEL: &str = "meta-llama/Llama-3.1-8B";
pub(crate) const DESIRED: &str = "wva_desired_replicas";

/// A VariantAutoscaling for a Deployment, with further fields of its specification.
pub(crate) fn variant(name: &str, deployment: &str, fields: &Value) -> Value {
    let mut spec = json!({ "scaleTargetRef": { "name": deployment }, "modelID": MODEL });
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": { "name": name }, "spec": spec,
    })
}

/// The variants of one namespace as one controller shows them.
#[derive(Clone, Copy)]
pub(crate) struct Variants<'a> {
    namespace: &'a Namespace,
    controller: &'a Controller,
}

impl<'a> Variants<'a> {
    pub(crate) fn new(namespace: &'a Namespace, controller: &'a Controller) -> Self {
        Self { namespace, controller }
    }

    /// Untyped, since some of the objects break their type.
    fn objects(self) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<VariantAutoscaling>(&());
        self.namespace.erased(&resource)
    }

    pub(crate) async fn apply(self, name: &str, deployment: &str, fields: Value) -> Result {
        self.namespace.apply(variant(name, deployment, &fields)).await?;
        Ok(())
    }

    pub(crate) async fn delete(self, name: &str) -> Result {
        self.objects().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn delete_target(self, deployment: &str) -> Result {
        let deployments: Api<Deployment> = self.namespace.api();
        deployments.delete(deployment, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Status and reason of a condition as `False/TargetNotFound`, and its message.
    pub(crate) async fn condition(self, name: &str, kind: &str) -> Result<(String, String)> {
        let object = self.objects().get(name).await?;
        let [status, reason, message] = condition_of(&object, kind);
        if status.is_empty() {
            let text = format!("{name} has no condition {kind}: {}", object.data["status"]);
            return Err(Fault::new(text));
        }
        Ok((format!("{status}/{reason}"), message))
    }

    /// Waits until conditions have these states, and answers the message of the last.
    #[track_caller]
    pub(crate) fn says(
        self,
        name: &str,
        wanted: &[(&str, &str)],
        within: Duration,
    ) -> impl Future<Output = Result<String>> {
        eventually(format!("conditions of {name}"), within, async move || {
            let mut last = String::new();
            for (kind, wanted) in wanted {
                let (state, message) = self.condition(name, kind).await?;
                seen(&state.as_str(), wanted)?;
                last = message;
            }
            Ok(last)
        })
    }

    /// The replicas in the status of an object, if there are any.
    pub(crate) async fn stored(self, name: &str) -> Result<Option<i64>> {
        let status = self.status(name).await?;
        Ok(status["desiredOptimizedAlloc"]["numReplicas"].as_i64())
    }

    /// The cycle that the status of an object rests on.
    pub(crate) async fn cycle(self, name: &str) -> Result<i64> {
        let status = self.status(name).await?;
        let cycle = status["desiredOptimizedAlloc"]["cycleID"].as_i64();
        cycle.ok_or_else(|| Fault::new(format!("{name} has no decision: {status}")))
    }

    async fn status(self, name: &str) -> Result<Value> {
        Ok(self.objects().get(name).await?.data["status"].clone())
    }

    /// The desired count on the metrics page; `None` without a series, and a fault for several.
    pub(crate) async fn desired(self, name: &str) -> Result<Option<f64>> {
        self.controller.desired(&self.namespace.name, name).await
    }

    /// Waits until the metrics page shows this desired count, or no series.
    #[track_caller]
    pub(crate) fn publishes(
        self,
        name: &str,
        wanted: Option<f64>,
        within: Duration,
    ) -> impl Future<Output = Result> {
        let what = format!("desired count of {name}");
        eventually(what, within, async move || seen(&self.desired(name).await?, &wanted))
    }

    /// The newest decision about a variant.
    pub(crate) async fn decision(self, name: &str) -> Result<Value> {
        let plan = self.controller.debug("decisions").await?;
        let key = format!("{}/{name}", self.namespace.name);
        match &plan["decisions"][&key] {
            Value::Null => Err(Fault::new(format!("no decision about {key} yet"))),
            decision => Ok(decision.clone()),
        }
    }

    /// The number of the newest planning cycle.
    pub(crate) async fn plan_cycle(self) -> Result<i64> {
        let plan = self.controller.debug("decisions").await?;
        let cycle = plan["cycle"].as_i64();
        cycle.ok_or_else(|| Fault::new(format!("no cycle yet: {plan}")))
    }

    /// Waits until the decision about a variant holds these values, by JSON pointer.
    #[track_caller]
    pub(crate) fn decides(
        self,
        name: &str,
        wanted: &[(&str, Value)],
        within: Duration,
    ) -> impl Future<Output = Result> {
        eventually(format!("decision about {name}"), within, async move || {
            let decision = self.decision(name).await?;
            for (pointer, wanted) in wanted {
                let found = decision.pointer(pointer).unwrap_or(&Value::Null);
                if found != wanted {
                    let text = format!("{pointer} is {found} where {wanted} is wanted: {decision}");
                    return Err(Fault::new(text));
                }
            }
            Ok(())
        })
    }
}
