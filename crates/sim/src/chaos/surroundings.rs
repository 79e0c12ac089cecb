//! The cluster as the judge sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::AUTOSCALERS;
use wva::api::{COUNT_ANNOTATION, MANAGED_ANNOTATION};
use wva::policy::key::{ObjectKey, VariantKey};

const VARIANTS: &str = "variantautoscalings.llmd.ai";
const PODS: &str = "pods.";
const SCALERS: &str = "horizontalpodautoscalers.autoscaling";
const WATCHED: [&str; 5] = [VARIANTS, AUTOSCALERS, "deployments.apps", PODS, SCALERS];

#[derive(Debug, Clone)]
pub(super) struct Stored {
    /// None where the specification makes no sense: what was decided before counts then.
    pub(super) bounds: (Option<u32>, Option<u32>),
    pub(super) desired: Option<u32>,
    pub(super) allows_zero: bool,
    pub(super) object: Object,
}

#[derive(Debug, Default)]
pub(super) struct Surroundings {
    pub(super) version: u64,
    pub(super) number: u64,
    pub(super) variants: BTreeMap<VariantKey, Stored>,
    /// VariantAutoscalings of any instance.
    pub(super) objects: usize,
    /// PodAutoscalers of our instance.
    pub(super) autoscalers: BTreeSet<ObjectKey>,
    pub(super) pods: usize,
}

impl Surroundings {
    /// The surroundings as they are now; a look at everything only where something has changed.
    pub(super) fn follow(
        known: Option<Arc<Self>>,
        insider: &Insider,
        instance: Option<&str>,
    ) -> Arc<Self> {
        let number = known.as_ref().map_or(0, |known| known.number + 1);
        match known {
            Some(known) if !insider.changed_since(known.version, &WATCHED) => known,
            _ => Arc::new(Self::look(insider, instance, number)),
        }
    }

    fn look(insider: &Insider, instance: Option<&str>, number: u64) -> Self {
        let version = insider.version();
        let declaring = insider.list(SCALERS).into_iter().map(Object);
        let declaring = declaring.filter(is_declaring);
        let objects = insider.list(VARIANTS);
        let count = objects.len();
        let variants = objects.into_iter().map(Object).chain(declaring);
        // A controller without an instance manages what is labelled with any.
        let is_ours =
            |one: &Object| instance.is_none() || one.label(wva::api::INSTANCE_LABEL) == instance;
        let autoscalers = insider.list(AUTOSCALERS).into_iter().map(Object);
        let autoscalers =
            autoscalers.filter(is_ours).map(|one| ObjectKey::new(one.namespace(), one.name()));
        let variants = variants.filter(is_ours).map(|one| {
            let key = VariantKey::new(one.namespace(), one.name());
            let bounds = (one.count("/spec/minReplicas"), one.count("/spec/maxReplicas"));
            let stored = Stored {
                bounds: if is_declaring(&one) || is_read(&one) { bounds } else { (None, None) },
                desired: stored_count(&one),
                allows_zero: bounds.0 == Some(0) || bounds.1 == Some(0),
                object: one,
            };
            (key, stored)
        });
        Self {
            version,
            number,
            variants: variants.collect(),
            objects: count,
            autoscalers: autoscalers.collect(),
            pods: insider.list(PODS).len(),
        }
    }
}

/// Whether it is a scaler whose annotations declare the variant. They are never broken.
pub(super) fn is_declaring(variant: &Object) -> bool {
    variant.annotation(MANAGED_ANNOTATION).is_some()
}

pub(super) fn stored_count(variant: &Object) -> Option<u32> {
    if is_declaring(variant) {
        return variant.annotation(COUNT_ANNOTATION)?.parse().ok();
    }
    variant.count("/status/desiredOptimizedAlloc/numReplicas")
}

pub(super) fn object_of(server: &Insider, namespace: &str, name: &str) -> Option<Object> {
    let mut kinds = [VARIANTS, SCALERS].into_iter();
    kinds.find_map(|kind| server.get(kind, namespace, name)).map(Object)
}

pub(super) fn is_read(variant: &Object) -> bool {
    let text = |pointer: &str| variant.at(pointer).as_str();
    let is_absent_or_text =
        |pointer: &str| variant.at(pointer).is_null() || text(pointer).is_some();
    let is_bound = |pointer: &str, least: i64| {
        let value = variant.at(pointer);
        let count = value.as_i64();
        value.is_null() || count.is_some_and(|count| (least..=i32::MAX.into()).contains(&count))
    };
    let is_model = |model: &str| !model.is_empty() && !model.chars().any(char::is_control);
    let is_target = |name: &str| !name.is_empty();
    text("/spec/modelID").is_some_and(is_model)
        && text("/spec/scaleTargetRef/name").is_some_and(is_target)
        && is_absent_or_text("/spec/scaleTargetRef/kind")
        && is_absent_or_text("/spec/scaleTargetRef/apiVersion")
        && is_absent_or_text("/spec/variantCost")
        && is_bound("/spec/minReplicas", 0)
        && is_bound("/spec/maxReplicas", 1)
}
