//! Breaks objects, settings and workloads, and puts them back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::fault::ObjectFault as Broken;
use super::process_manager::MAIN;
use super::workload::{ChaosWorkload, may_go_to_zero};
use crate::apiserver::Insider;
use crate::workloads::Workloads;
use crate::workloads::object::{Object, path};
use crate::world::objects::{SYSTEM, autoscaler, autoscaling, workload};
use crate::world::{
    AUTOSCALER_PLURAL, AUTOSCALERS, Replica, SATURATION, ScenarioModel, ScenarioVariant,
};
use wva::api::{COST_ANNOTATION, MANAGED_ANNOTATION, MODEL_ANNOTATION};
use wva::policy::pod_autoscaler::object::API_VERSION;

mod broken;
mod burdens;
mod edits;
mod fixed;
mod random;

const VARIANTS: &str = "variantautoscalings";
const STORED: &str = "variantautoscalings.llmd.ai";
const GROUP: &str = "llmd.ai/v1alpha1";
const SCALERS: &str = "horizontalpodautoscalers";

#[derive(Debug, Clone)]
pub(super) struct Injector {
    pub(super) server: Insider,
    pub(super) workloads: Workloads,
    pub(super) plot: Arc<ChaosWorkload>,
}

impl Injector {
    fn variants(&self) -> impl Iterator<Item = (&ScenarioModel, &ScenarioVariant)> {
        let models = self.plot.scenario.models.iter();
        models.flat_map(|model| model.variants.iter().map(move |one| (model, one)))
    }

    fn variant(&self, number: usize) -> Option<(&ScenarioModel, &ScenarioVariant)> {
        self.variants().nth(number)
    }

    fn at(&self, group: &str, plural: &str, name: &str) -> String {
        path(group, self.plot.scenario.namespace, plural, name)
    }

    fn target(&self, model: &ScenarioModel, variant: &ScenarioVariant) -> String {
        let (group, plural, _) = workload(model, variant);
        self.at(group, plural, variant.name)
    }

    pub(super) async fn settle(&self) -> Result<(), String> {
        let maps = path("v1", SYSTEM, "configmaps", "");
        self.server.create(&maps, &self.main()).await?;
        for (model, variant) in self.variants() {
            let path = self.at(GROUP, VARIANTS, variant.name);
            let original = self.original(model, variant);
            if self.is_declared(variant) {
                self.server.delete(&path, &json!({})).await?;
                let path = self.at("autoscaling/v2", SCALERS, variant.name);
                let annotations = json!({
                    MANAGED_ANNOTATION: "true", MODEL_ANNOTATION: model.id,
                    COST_ANNOTATION: variant.cost.to_string(),
                });
                let labels = original.pointer("/metadata/labels");
                let metadata = json!({"labels": labels, "annotations": annotations});
                self.server.merge(&path, &json!({"metadata": metadata})).await?;
            } else {
                self.server.merge(&path, &original).await?;
            }
        }
        for (name, object) in self.autoscalers() {
            let path = self.at(API_VERSION, AUTOSCALER_PLURAL, name);
            self.server.merge(&path, &object).await?;
        }
        let all = self.at("inference.networking.k8s.io/v1", "inferencepools", "");
        let router = self.plot.scenario.models.first();
        let router = router.map(|model| format!("{}-epp", model.name));
        for number in 0..self.plot.more_pools {
            let pool = json!({
                "metadata": {"name": format!("pool-{number}")},
                "spec": {
                    "selector": {"matchLabels": {"app": "nothing"}},
                    "targetPorts": [{"number": 8000}],
                    "endpointPickerRef": {"name": router, "port": {"number": 9002}},
                },
            });
            self.server.create(&all, &pool).await?;
        }
        Ok(())
    }

    fn original(&self, model: &ScenarioModel, variant: &ScenarioVariant) -> Value {
        self.labelled(autoscaling(model, variant))
    }

    fn labelled(&self, mut object: Value) -> Value {
        if let (Some(instance), Some(labels)) = (self.plot.instance, labels_of(&mut object)) {
            labels.insert(wva::api::INSTANCE_LABEL.to_owned(), instance.into());
        }
        object
    }

    /// Whether there is no object of a variant to break, or to put back.
    fn is_declared(&self, variant: &ScenarioVariant) -> bool {
        self.plot.declared == Some(variant.name)
    }

    fn main(&self) -> Value {
        let interval = format!("{}s", self.plot.scenario.interval.as_secs());
        let mut data = BTreeMap::from([("GLOBAL_OPT_INTERVAL", &*interval)]);
        data.extend(self.plot.main.iter().copied());
        json!({"metadata": {"name": MAIN}, "data": data})
    }

    pub(super) fn kind(&self, number: usize, how: Broken) -> &'static str {
        let target = self.variant(number);
        let target = target.and_then(|(_, variant)| variant.resource().split('.').next());
        match how {
            Broken::TargetReplaced | Broken::ScaledTo(_) => target.unwrap_or(VARIANTS),
            Broken::SecondScaler => SCALERS,
            _ => VARIANTS,
        }
    }

    pub(super) async fn break_object(&self, number: usize, how: Broken) -> bool {
        let Some((model, variant)) = self.variant(number) else {
            return false;
        };
        let (server, name) = (&self.server, variant.name);
        let object = self.at(GROUP, VARIANTS, name);
        let target = self.target(model, variant);
        if self.is_declared(variant) && self.kind(number, how) == VARIANTS {
            return false;
        }
        let spec = |spec: Value| json!({"spec": spec});
        let label = |label: &str, text: &str| json!({"metadata": {"labels": {label: text}}});
        let background = json!({"propagationPolicy": "Background"});
        let done = match how {
            Broken::TargetReplaced => server.delete(&target, &background).await,
            Broken::Removed | Broken::Unseen | Broken::Midway => {
                server.delete(&object, &json!({})).await
            }
            Broken::ScaledTo(count) => {
                let size = spec(json!({"replicas": count}));
                server.merge(&target, &size).await
            }
            Broken::SecondScaler => {
                let second = autoscaler(self.plot.scenario.namespace, variant);
                let second = renamed(second, &format!("{name}-second"));
                let all = self.at("autoscaling/v2", SCALERS, "");
                server.create(&all, &second).await
            }
            Broken::Contested => {
                let rival = renamed(self.original(model, variant), &format!("{name}-rival"));
                let all = self.at(GROUP, VARIANTS, "");
                server.create(&all, &rival).await
            }
            Broken::Crowd(count) => return self.crowd(model, variant, count).await,
            Broken::MinAboveMax => {
                return self.bend(name, &json!({"minReplicas": 5, "maxReplicas": 2}));
            }
            Broken::Malformed(number) => {
                let original = self.original(model, variant);
                let spec = original.get("spec").unwrap_or(&Value::Null);
                return self.bend(name, &broken::shape(number, spec));
            }
            Broken::Bounds(min, max) => {
                let bounds = json!({"minReplicas": min, "maxReplicas": max});
                server.merge(&object, &spec(bounds)).await
            }
            Broken::Renamed => {
                let model = format!("{}-renamed", model.id);
                let renamed = spec(json!({"modelID": model}));
                server.merge(&object, &renamed).await
            }
            Broken::Moved => {
                let moved = label(wva::api::INSTANCE_LABEL, "elsewhere");
                server.merge(&object, &moved).await
            }
            Broken::Relabelled => {
                let relabelled = label(wva::api::ACCELERATOR_LABEL, "MI300X");
                server.merge(&object, &relabelled).await
            }
        };
        done.is_ok()
    }

    fn bend(&self, name: &str, spec: &Value) -> bool {
        let namespace = self.plot.scenario.namespace;
        self.server.bend(STORED, namespace, name, spec)
    }

    /// Objects whose targets do not exist: of the kind that is known by its scale subresource alone,
    /// where there is one.
    async fn crowd(&self, model: &ScenarioModel, variant: &ScenarioVariant, count: u32) -> bool {
        let mut all = self.variants().map(|(_, variant)| variant);
        let single = all.find(|variant| variant.replica == Replica::Single);
        let variant = single.unwrap_or(variant);
        let collection = self.at(GROUP, VARIANTS, "");
        let mut made = 0;
        for number in 0..count {
            let mut one = renamed(self.original(model, variant), &format!("crowd-{number}"));
            if let Some(target) = one.pointer_mut("/spec/scaleTargetRef/name") {
                *target = format!("crowd-{number}").into();
            }
            made += u32::from(self.server.create(&collection, &one).await.is_ok());
        }
        made > 0
    }

    pub(super) async fn restore(&self, number: usize) {
        let Some((model, variant)) = self.variant(number) else {
            return;
        };
        let (namespace, name) = (self.plot.scenario.namespace, variant.name);
        for extra in [
            self.at(GROUP, VARIANTS, &format!("{name}-rival")),
            self.at("autoscaling/v2", SCALERS, &format!("{name}-second")),
        ] {
            // Not there is as good.
            drop(self.server.delete(&extra, &json!({})).await);
        }
        let original = self.original(model, variant);
        let mut wanted = original.clone();
        if self.is_declared(variant) {
            // Its HPA is never broken.
        } else if let Some(stored) = self.server.get(STORED, namespace, name) {
            drop_unknown(&stored, &mut wanted);
            if let Some(labels) = labels_of(&mut wanted) {
                labels.entry(wva::api::INSTANCE_LABEL).or_insert(Value::Null);
            }
            // A malformed object takes no merge before it makes sense again.
            let spec = original.get("spec");
            if let Some(spec) = spec.filter(|spec| stored.get("spec") != Some(*spec)) {
                self.bend(name, spec);
            }
            let path = self.at(GROUP, VARIANTS, name);
            drop(self.server.merge(&path, &wanted).await);
        } else {
            let all = self.at(GROUP, VARIANTS, "");
            drop(self.server.create(&all, &original).await);
        }
        let (group, plural, target) = workload(model, variant);
        let resource = variant.resource();
        if self.server.get(resource, namespace, name).is_none() {
            let all = self.at(group, plural, "");
            drop(self.server.create(&all, &target).await);
        } else {
            let path = self.at(group, plural, name);
            let key = template_key(variant);
            let template = target.pointer(&format!("/spec/{key}"));
            let template = json!({"spec": {key: template}});
            drop(self.server.merge(&path, &template).await);
            self.replace_odd_pods(variant).await;
            self.wake((model, variant), &path).await;
        }
    }

    /// An HPA leaves alone what is scaled to nothing.
    async fn wake(&self, (model, variant): (&ScenarioModel, &ScenarioVariant), path: &str) {
        // Without a minimum a model may keep one by its policy.
        let sleeps = may_go_to_zero(&self.plot.scenario, model);
        let least = variant.bounds.0.max(u32::from(!sleeps));
        let namespace = self.plot.scenario.namespace;
        let stored = (self.server).get(variant.resource(), namespace, variant.name);
        let is_asleep = stored.is_some_and(|one| Object(one).number("/spec/replicas") == 0);
        if is_asleep {
            let size = json!({"spec": {"replicas": least}});
            drop(self.server.merge(path, &size).await);
        }
    }

    fn autoscalers(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.plot.scenario.autoscaled.iter().flat_map(|autoscaled| {
            let variants = autoscaled.model.variants.iter();
            variants.map(|variant| (variant.name, self.labelled(autoscaled.object(variant))))
        })
    }

    pub(super) async fn remove_autoscaler(&self, number: usize) -> bool {
        let Some((name, _)) = self.autoscalers().nth(number) else {
            return false;
        };
        let path = self.at(API_VERSION, AUTOSCALER_PLURAL, name);
        self.server.delete(&path, &json!({})).await.is_ok()
    }

    pub(super) async fn restore_autoscaler(&self, number: usize) {
        let Some((name, object)) = self.autoscalers().nth(number) else {
            return;
        };
        let stored = (self.server).get(AUTOSCALERS, self.plot.scenario.namespace, name);
        if stored.is_some() {
            return;
        }
        let all = self.at(API_VERSION, AUTOSCALER_PLURAL, "");
        if let Err(denied) = self.server.create(&all, &object).await {
            tracing::warn!(%denied, name, "a PodAutoscaler is not put back");
        }
    }

    pub(super) async fn disperse(&self) {
        let all = self.server.list(STORED);
        for one in all.into_iter().map(Object) {
            if one.name().starts_with("crowd-") {
                let path = self.at(GROUP, VARIANTS, one.name());
                drop(self.server.delete(&path, &json!({})).await);
            }
        }
    }
}

fn drop_unknown(stored: &Value, wanted: &mut Value) {
    let fields = stored.get("spec").and_then(Value::as_object);
    let wanted = wanted.get_mut("spec").and_then(Value::as_object_mut);
    if let (Some(fields), Some(wanted)) = (fields, wanted) {
        for field in fields.keys() {
            wanted.entry(field.clone()).or_insert(Value::Null);
        }
    }
}

fn template_key(variant: &ScenarioVariant) -> &'static str {
    match variant.replica {
        Replica::Group { .. } => "leaderWorkerTemplate",
        Replica::Pod | Replica::Single => "template",
    }
}

fn labels_of(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    object.pointer_mut("/metadata/labels")?.as_object_mut()
}

fn renamed(mut object: Value, name: &str) -> Value {
    if let Some(place) = object.pointer_mut("/metadata/name") {
        *place = name.into();
    }
    object
}
