//! The objects of a fleet as they are stored, untyped: one that cannot be read harms no other.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::fleet::{TargetPlace, identity, target_place};
use crate::cli::migrate::{StoredScaler, declared};
use crate::cluster::client::{RequestError, within};
use crate::cluster::event::REPORTING_CONTROLLER;
use crate::doctor::facts::LiveKind;
use crate::doctor::look::takes_annotations;
use crate::doctor::object::{list as values, text};
use crate::policy::scaler::ScalerKind;

/// Longest wait for one page of a list.
const DEADLINE: Duration = Duration::from_secs(15);

const PAGE: u32 = 500;

const MOST: usize = 50_000;

const WORKLOADS: [LiveKind; 3] =
    [LiveKind::Deployment, LiveKind::StatefulSet, LiveKind::LeaderWorkerSet];

#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::cli) struct FleetObjects {
    pub(in crate::cli) variants: Vec<Value>,
    /// Variants that annotations of scalers declare, in the form of `VariantAutoscaling` objects.
    pub(super) declared: Vec<Value>,
    pub(super) pod_autoscalers: Vec<Value>,
    /// Scale targets, each with its kind.
    pub(super) workloads: Vec<(&'static str, Value)>,
    pub(super) hpas: Vec<Value>,
    pub(super) scaled_objects: Vec<Value>,
    /// Pods that scheduling gates hold; `None` where pods are not read.
    pub(super) gated: Option<Vec<Value>>,
    /// What could not be read.
    pub(in crate::cli) notes: Vec<String>,
}

impl FleetObjects {
    /// With the pods that scheduling gates hold.
    pub(super) async fn with_gated(mut self, client: &Client, namespace: Option<&str>) -> Self {
        let held = ListParams::default().fields("status.phase=Pending");
        match list_of(client, LiveKind::Pod, namespace, held).await {
            Ok(found) => {
                let mut found = found.unwrap_or_default();
                found.retain(|pod| {
                    let is_live = pod.pointer("/metadata/deletionTimestamp").is_none();
                    is_live && !values(pod, "/spec/schedulingGates").is_empty()
                });
                self.gated = Some(found);
            }
            Err(error) => self.notes.push(refusal(LiveKind::Pod, &error)),
        }
        self
    }

    /// Lists one namespace, or all.
    ///
    /// # Errors
    /// VariantAutoscalings and PodAutoscalers cannot be listed; with the remedy. Where the right to do so is all that is
    /// missing, scalers that can be listed may declare variants.
    pub(in crate::cli) async fn read(
        client: &Client,
        namespace: Option<&str>,
    ) -> Result<Self, String> {
        let mut objects = Self::default();
        let is_served;
        let mut refused = None;
        let variants = list(client, LiveKind::VariantAutoscaling, namespace).await;
        let autoscalers = list(client, LiveKind::PodAutoscaler, namespace).await;
        match (variants, autoscalers) {
            (Err(error), Err(_) | Ok(None)) if !is_forbidden(&error) => {
                return Err(refusal(LiveKind::VariantAutoscaling, &error));
            }
            (variants, autoscalers) => {
                if let (Err(error), Err(_) | Ok(None)) = (&variants, &autoscalers) {
                    refused = Some(refusal(LiveKind::VariantAutoscaling, error));
                }
                is_served = !matches!((&variants, &autoscalers), (Ok(None), Ok(None)));
                objects.variants = objects.kept(LiveKind::VariantAutoscaling, variants);
                objects.pod_autoscalers = objects.kept(LiveKind::PodAutoscaler, autoscalers);
            }
        }
        for kind in WORKLOADS {
            let found = list(client, kind, namespace).await;
            let found = objects.kept(kind, found);
            let found = found.into_iter().map(|object| (kind.as_str(), object));
            objects.workloads.extend(found);
        }
        let hpas = list(client, LiveKind::HorizontalPodAutoscaler, namespace).await;
        let scaled_objects = list(client, LiveKind::ScaledObject, namespace).await;
        let is_listed = matches!(hpas, Ok(Some(_))) || matches!(scaled_objects, Ok(Some(_)));
        if let Some(why) = refused.filter(|_| !is_listed) {
            return Err(why);
        }
        objects.hpas = objects.kept(LiveKind::HorizontalPodAutoscaler, hpas);
        objects.scaled_objects = objects.kept(LiveKind::ScaledObject, scaled_objects);
        objects.declare();
        if !is_served && objects.declared.is_empty() {
            return Err(
                "the API server serves no VariantAutoscalings, and no HPA or ScaledObject is annotated \
                 llm-d.ai/managed; annotate one, or apply the output of wva crds"
                    .to_owned(),
            );
        }
        Ok(objects)
    }

    pub(super) fn declare(&mut self) {
        let declared: Vec<Value> = self.scalers().into_iter().filter_map(declared).collect();
        self.declared = declared;
    }

    /// Without what scalers declare, where no controller takes annotations.
    pub(in crate::cli) async fn decided(mut self, client: &Client) -> Self {
        if !self.declared.is_empty() && !takes_annotations(client).await {
            self.declared.clear();
            self.notes.push(
                "what is annotated llm-d.ai/managed is no variant; set ANNOTATED_SCALERS_ENABLED=true in the controller, \
                 or remove the annotation"
                    .to_owned(),
            );
        }
        self
    }

    pub(in crate::cli) fn scalers(&self) -> Vec<StoredScaler<'_>> {
        let hpas = self.hpas.iter();
        let hpas = hpas.map(|object| (ScalerKind::HorizontalPodAutoscaler, object));
        let scaled = self.scaled_objects.iter();
        hpas.chain(scaled.map(|object| (ScalerKind::ScaledObject, object))).collect()
    }

    /// The objects of this project with their targets and scalers, and what could not be read.
    pub(in crate::cli) fn into_document(mut self) -> (Value, Vec<String>) {
        let own = self.variants.iter().chain(&self.declared);
        let own = own.chain(&self.pod_autoscalers);
        let targets: BTreeSet<TargetPlace<'_>> = own.map(target_place).collect();
        self.workloads.retain(|(kind, object)| {
            let (namespace, name) = identity(object);
            targets.contains(&(namespace, *kind, name))
        });
        self.hpas.retain(|scaler| targets.contains(&target_place(scaler)));
        self.scaled_objects.retain(|scaler| targets.contains(&target_place(scaler)));
        let document = json!({
            "variantAutoscalings": self.variants,
            "podAutoscalers": self.pod_autoscalers,
            "workloads": self.workloads,
            "horizontalPodAutoscalers": self.hpas,
            "scaledObjects": self.scaled_objects,
        });
        (document, self.notes)
    }

    /// The objects, or none and a note. A kind that the cluster does not have needs no note.
    fn kept(
        &mut self,
        kind: LiveKind,
        listed: Result<Option<Vec<Value>>, RequestError>,
    ) -> Vec<Value> {
        match listed {
            Ok(found) => {
                let found = found.unwrap_or_default();
                if found.len() >= MOST {
                    let plural = kind.resource();
                    self.notes.push(format!("{plural}: the first {MOST} are shown"));
                }
                found
            }
            Err(error) => {
                self.notes.push(refusal(kind, &error));
                Vec::new()
            }
        }
    }
}

fn is_forbidden(error: &RequestError) -> bool {
    matches!(error, RequestError::Refused(status) if status.code == 403)
}

fn refusal(kind: LiveKind, error: &RequestError) -> String {
    let plural = kind.resource();
    let remedy = match error {
        RequestError::Refused(status) if status.code == 401 => {
            "log in, so that the kubeconfig has valid credentials".to_owned()
        }
        RequestError::Refused(status) if status.code == 403 => {
            let resource = [plural, kind.group()].join(".");
            let resource = resource.trim_end_matches('.');
            format!("grant list on {resource}, or name a namespace with --namespace")
        }
        _ => "check the kubeconfig".to_owned(),
    };
    format!("{plural} cannot be listed: {error}; {remedy}")
}

/// Events about objects of this project, and those that a controller of it reports on scalers, which may be variants.
///
/// # Errors
/// They cannot be listed; with the remedy.
pub(in crate::cli) async fn list_events(
    client: &Client,
    namespace: Option<&str>,
) -> Result<Vec<Value>, String> {
    let events = list(client, LiveKind::Event, namespace).await;
    let events = events.map_err(|error| refusal(LiveKind::Event, &error))?;
    let mut events = events.unwrap_or_default();
    events.retain(|event| match text(event, "/regarding/kind") {
        "VariantAutoscaling" | "PodAutoscaler" => true,
        "HorizontalPodAutoscaler" | "ScaledObject" => {
            text(event, "/reportingController") == REPORTING_CONTROLLER
        }
        _ => false,
    });
    Ok(events)
}

/// All objects of a kind; `None` where the API server does not serve it.
async fn list(
    client: &Client,
    kind: LiveKind,
    namespace: Option<&str>,
) -> Result<Option<Vec<Value>>, RequestError> {
    list_of(client, kind, namespace, ListParams::default()).await
}

async fn list_of(
    client: &Client,
    kind: LiveKind,
    namespace: Option<&str>,
    parameters: ListParams,
) -> Result<Option<Vec<Value>>, RequestError> {
    let version = kind.path().rsplit('/').next().unwrap_or_default();
    let of_kind = GroupVersionKind::gvk(kind.group(), version, kind.as_str());
    let resource = ApiResource::from_gvk_with_plural(&of_kind, kind.resource());
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let mut objects = Vec::new();
    let mut parameters = parameters.limit(PAGE);
    loop {
        let page = match within(DEADLINE, api.list(&parameters)).await {
            Err(RequestError::Refused(status)) if status.code == 404 => return Ok(None),
            page => page?,
        };
        let found = page.items.iter().map(serde_json::to_value);
        objects.extend(found.filter_map(Result::ok));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if objects.len() < MOST => {
                parameters = parameters.continue_token(&token);
            }
            _ => return Ok(Some(objects)),
        }
    }
}
