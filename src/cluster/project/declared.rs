//! Variants without an object of their own: annotations of a HorizontalPodAutoscaler or `ScaledObject` declare them, or
//! the trigger of a `ScaledObject`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::scaler::{EXTERNAL_VARIANT, is_of_keda, refused_idle};
use super::variant::VariantRecord;
use super::{Interner, annotation, label, lifecycle, name, namespace_of, uid, wall_time};
use crate::api::variant_autoscaling::VariantAutoscalingStatus;
use crate::api::{
    ACCELERATOR_LABEL, COST_ANNOTATION, COUNT_ANNOTATION, INSTANCE_LABEL, MANAGED_ANNOTATION,
    MODEL_ANNOTATION, OUTPUT_ANNOTATION, START_ANNOTATION, TIER_ANNOTATION,
};
use crate::cluster::status::{CountPatch, annotators};
use crate::policy::key::VariantKey;
use crate::policy::object::{
    SpecReading, StoredAllocation, TargetReference, VariantObject, VariantSpec,
};
use crate::policy::ownership::StatusOwner;
use crate::policy::params::DEFAULT_KEY;
use crate::policy::scaler::ScalerKind;
use crate::policy::snapshot::VariantPolicy;
use crate::policy::units::{Cost, Replicas};
use wva_base::nearest::nearest;
use wva_base::text::{listed, shortened};

/// What a scaler may state of the variant that it declares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatedField {
    /// Its key in the metadata of a trigger.
    pub(crate) key: &'static str,
    /// The annotation that says the same.
    annotation: &'static str,
    is_sound: fn(&str) -> bool,
    /// What a text that is not sound is, with the remedy.
    remedy: &'static str,
}

impl StatedField {
    pub(crate) fn takes(&self, text: &str) -> bool {
        (self.is_sound)(text)
    }

    /// What a text that may not stand there is, with the remedy.
    pub(crate) fn refusal(&self, text: &str) -> &'static str {
        match text.trim() {
            "" if self.key == MODEL.key => BLANK_MODEL,
            _ => self.remedy,
        }
    }
}

const GROUP: &str = "llm-d.ai/";
/// What the group of an annotation that is meant for us may look like: labels have the second one.
const NEAR_GROUPS: [&str; 2] = ["llm-d.ai", "wva.llmd.ai"];
const BLANK_MODEL: &str = "is blank; set it to the model name that the engine reports";

pub(super) const MODEL: StatedField = StatedField {
    key: "modelID",
    annotation: MODEL_ANNOTATION,
    is_sound: |text| !text.trim().is_empty() && !text.chars().any(char::is_control),
    remedy: "names no model; set it to the model name that the engine reports",
};
const COST: StatedField = StatedField {
    key: "variantCost",
    annotation: COST_ANNOTATION,
    is_sound: |text| cost(text).is_some(),
    remedy: "is no cost; set it to a number of at least 0, or remove it",
};
const TIER: StatedField = StatedField {
    key: "scalingPolicy",
    annotation: TIER_ANNOTATION,
    is_sound: is_tier,
    remedy: "is no key of a tier; set it to that of an entry without modelId in the saturation ConfigMap, or remove \
             it: default acts by itself",
};
const OUTPUT: StatedField = StatedField {
    key: "defaultOutputTokens",
    annotation: OUTPUT_ANNOTATION,
    is_sound: |text| whole(text, VariantPolicy::MOST_OUTPUT_TOKENS).is_some(),
    remedy: "is no number of tokens; set it to a whole number from 1 to 1000000, or remove it",
};
const START: StatedField = StatedField {
    key: "replicaStartSeconds",
    annotation: START_ANNOTATION,
    is_sound: |text| whole(text, VariantPolicy::MOST_START_SECONDS).is_some(),
    remedy: "is no number of seconds; set it to a whole number from 1 to 86400, or remove it",
};
/// Everything that a scaler may state of its variant, the model first.
pub(crate) const STATED: [StatedField; 5] = [MODEL, COST, TIER, OUTPUT, START];

/// The annotation of a variant that another key nearly is: by its name in our group, or by its group.
pub(crate) fn nearly_stated(key: &str) -> Option<&'static str> {
    let known = STATED.map(|field| field.annotation);
    let known = [MANAGED_ANNOTATION, COUNT_ANNOTATION].into_iter().chain(known);
    if known.clone().any(|own| own == key) {
        return None;
    }
    let (group, name) = key.split_once('/')?;
    let named = known.filter_map(|own| Some((own.strip_prefix(GROUP)?, own)));
    let near = if key.starts_with(GROUP) {
        nearest(name, named.clone().map(|(name, _)| name))?
    } else {
        nearest(group, NEAR_GROUPS).map(|_| name)?
    };
    // A longer name is more than a slip: `managed-by`.
    let is_slip = near.len().abs_diff(name.len()) <= 1;
    let mut named = named.filter(|_| is_slip);
    named.find_map(|(name, own)| (name == near).then_some(own))
}

/// The keys of the external scaler. All but the first make the `ScaledObject` itself a variant.
pub(crate) fn own_keys() -> impl Iterator<Item = &'static str> {
    std::iter::once(EXTERNAL_VARIANT).chain(STATED.iter().map(|field| field.key))
}

/// Why the external scaler refuses metadata of triggers with keys that are neither its own nor KEDA's.
pub(crate) fn unknown_keys<'a>(
    metadata: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Option<String> {
    let is_known = |key: &str| is_of_keda(key) || own_keys().any(|own| own == key);
    let unknown = metadata.into_iter().filter(|(key, _)| !is_known(key));
    // Several triggers may have the same key.
    let unknown: BTreeMap<&String, &String> = unknown.collect();
    let texts =
        unknown.iter().map(|(key, value)| format!("{:?}={:?}", shortened(key), shortened(value)));
    let texts: Vec<String> = texts.collect();
    let (fault, them) = match texts.len() {
        0 => return None,
        1 => ("is no key", "it"),
        _ => ("are no keys", "them"),
    };
    let own: Vec<&str> = own_keys().collect();
    Some(format!(
        "{} {fault} of this scaler; remove {them}, the keys are {}",
        listed(&texts),
        own.join(", ")
    ))
}

/// What the specification of a scaler states about its variant; each bound with the name of its field.
pub(super) struct Declaration<'a> {
    pub(super) kind: ScalerKind,
    pub(super) target: TargetReference,
    pub(super) min: (&'static str, Option<i32>),
    pub(super) max: (&'static str, i32),
    /// `idleReplicaCount` of a `ScaledObject`.
    pub(super) idle: Option<i32>,
    /// The triggers of a `ScaledObject` that name a model.
    pub(super) triggers: Vec<&'a BTreeMap<String, String>>,
}

impl Declaration<'_> {
    /// The value of a field in the annotation or a trigger, if that may stand there. Both may state the same.
    fn stated<'a>(
        &'a self,
        metadata: &'a ObjectMeta,
        field: StatedField,
    ) -> Result<Option<&'a str>, String> {
        let name = field.annotation;
        let annotated = annotation(metadata, name).map(|text| (format!("annotation {name}"), text));
        let triggers = self.triggers.iter().filter_map(|trigger| {
            let text = trigger.get(field.key)?;
            Some((format!("trigger metadata {}", field.key), text.as_str()))
        });
        let mut all = annotated.into_iter().chain(triggers);
        let first = all.next();
        let other = (first.as_ref()).and_then(|(_, one)| all.find(|(_, other)| other != one));
        match (first, other) {
            (Some((one, first)), Some((other, second))) => Err(format!(
                "{one}={:?} and {other}={:?} differ; remove one of them",
                shortened(first),
                shortened(second)
            )),
            (Some((source, text)), None) if !field.takes(text) => {
                Err(format!("{source}={:?} {}", shortened(text), field.refusal(text)))
            }
            (first, _) => Ok(first.map(|(_, text)| text)),
        }
    }

    /// The keys of its triggers that the scaler refuses, so that the object is never scaled.
    fn unknown_keys(&self) -> Option<String> {
        let why = unknown_keys(self.triggers.iter().copied().flatten())?;
        Some(format!("trigger metadata {why}"))
    }

    /// What is wrong with its target and its bounds.
    fn wrong_fields(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.target.name.is_empty() {
            let empty =
                "spec.scaleTargetRef.name is empty; name the workload that serves the model";
            wrong.push(empty.to_owned());
        }
        let ((least, min), (most, max)) = (self.min, self.max);
        match min {
            Some(min) if min < 0 => {
                wrong.push(format!("spec.{least} is {min}; it must be at least 0"));
            }
            Some(min) if min > max && max > 0 => wrong.push(format!(
                "spec.{least} is {min}, and spec.{most} {max}; the minimum must not be above the maximum"
            )),
            _ => {}
        }
        if max < 1 {
            wrong.push(format!("spec.{most} is {max}; it must be at least 1"));
        }
        wrong.extend(refused_idle(self.idle.map(i64::from), min.map(i64::from)));
        wrong
    }
}

/// The variant that an object declares, if it does, else the count that stayed from one. One whose annotations are
/// wrong is malformed.
pub(super) fn declared(
    metadata: &ObjectMeta,
    declaration: Declaration<'_>,
    texts: &mut Interner,
) -> (Option<Arc<VariantRecord>>, Option<Arc<LeftoverCount>>) {
    match annotation(metadata, MANAGED_ANNOTATION) {
        Some("true") => {}
        None if !declaration.triggers.is_empty() => {}
        _ => return (None, leftover(metadata, declaration.kind, texts)),
    }
    let kind = declaration.kind;
    let key = VariantKey::new(namespace_of(metadata, texts), name(metadata));
    let spec = match spec(metadata, declaration, texts) {
        Ok(spec) => SpecReading::Read(spec),
        Err(why) => SpecReading::Malformed { why: Arc::from(format!("{kind} {key}: {why}")) },
    };
    let accelerator = label(metadata, ACCELERATOR_LABEL).map(|text| texts.intern(text));
    let owners = annotators(metadata, COUNT_ANNOTATION);
    // What no controller of our kind wrote was copied, restored or edited, and was never decided for this object.
    let count = (!owners.is_empty()).then(|| annotation(metadata, COUNT_ANNOTATION)?.parse().ok());
    let record = VariantRecord {
        object: VariantObject {
            key,
            uid: uid(metadata),
            generation: metadata.generation.unwrap_or_default(),
            lifecycle: lifecycle(metadata),
            accelerator_label: accelerator.clone(),
            spec,
            stored: StoredAllocation { desired: count.flatten().map(Replicas), accelerator },
        },
        declared_by: Some(kind),
        instance: label(metadata, INSTANCE_LABEL).map(|text| texts.intern(text)),
        resource_version: Arc::from(metadata.resource_version.as_deref().unwrap_or_default()),
        created: wall_time(metadata.creation_timestamp.as_ref()),
        owners: Arc::from(owners),
        status: VariantAutoscalingStatus::default(),
    };
    (Some(Arc::new(record)), None)
}

/// A count that stayed on an object which declares no variant any more.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftoverCount {
    pub removal: CountPatch,
    /// The controllers of our kind that wrote it.
    pub owners: Vec<StatusOwner>,
}

/// The count of an object that declares no variant, if a controller of our kind wrote it.
fn leftover(
    metadata: &ObjectMeta,
    kind: ScalerKind,
    texts: &mut Interner,
) -> Option<Arc<LeftoverCount>> {
    annotation(metadata, COUNT_ANNOTATION)?;
    let owners = annotators(metadata, COUNT_ANNOTATION);
    let removal = CountPatch {
        kind,
        key: VariantKey::new(namespace_of(metadata, texts), name(metadata)),
        uid: uid(metadata),
        resource_version: Arc::from(metadata.resource_version.as_deref().unwrap_or_default()),
        desired: None,
    };
    (!owners.is_empty()).then(|| Arc::new(LeftoverCount { removal, owners }))
}

/// What a scaler states about its variant, or everything that is wrong with that.
fn spec(
    metadata: &ObjectMeta,
    declaration: Declaration<'_>,
    texts: &mut Interner,
) -> Result<VariantSpec, String> {
    let mut faults: Vec<String> = Vec::new();
    let stated = |field| declaration.stated(metadata, field);
    let mut sound = |found: Result<Option<_>, String>| {
        found.unwrap_or_else(|fault| {
            faults.push(fault);
            None
        })
    };
    let model = sound(stated(MODEL).and_then(|model| {
        let missing = || {
            format!(
                "annotation {MODEL_ANNOTATION} is missing; set it to the model name that the engine reports"
            )
        };
        model.map(Some).ok_or_else(missing)
    }));
    let model = model.map(|model| texts.intern(model));
    let cost = sound(stated(COST)).and_then(cost);
    let policy = VariantPolicy {
        scaling_policy: sound(stated(TIER)).map(|tier| texts.intern(tier)),
        default_output_tokens: sound(stated(OUTPUT))
            .and_then(|text| whole(text, VariantPolicy::MOST_OUTPUT_TOKENS)),
        replica_start_seconds: sound(stated(START))
            .and_then(|text| whole(text, VariantPolicy::MOST_START_SECONDS)),
    };
    faults.extend(declaration.wrong_fields());
    // Last, since they may be long, and the note of an event is cut.
    faults.extend(declaration.unknown_keys());
    let Some(model_id) = model.filter(|_| faults.is_empty()) else {
        return Err(faults.join(". "));
    };
    Ok(VariantSpec {
        model_id,
        target: declaration.target,
        cost: cost.map(|text| texts.intern(&text)),
        min: declaration.min.1,
        max: Some(declaration.max.1),
        policy,
    })
}

/// Whether a text may be the key of a tier: of an entry of a ConfigMap besides `default`.
fn is_tier(text: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric() || "-._".contains(sign);
    (1..=253).contains(&text.len()) && text != DEFAULT_KEY && text.chars().all(fits)
}

fn whole(text: &str, most: u32) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (1..=most).contains(&number).then_some(number)
}

/// A cost as a `VariantAutoscaling` writes it, which knows no exponents; `None` where the text is no cost.
fn cost(text: &str) -> Option<String> {
    let number: f64 = text.parse().ok().filter(|number| *number >= 0.0)?;
    let decimal = format!("{number:.6}");
    let decimal = decimal.trim_end_matches('0').trim_end_matches('.');
    Cost::parse(decimal).is_ok().then(|| decimal.to_owned())
}
