//! Scalers of targets: `HorizontalPodAutoscaler` and `ScaledObject`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v2::{
    ExternalMetricSource, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerStatus, MetricSpec, MetricTarget,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::declared::{Declaration, LeftoverCount, MODEL, declared};
pub(crate) use super::declared::{STATED, nearly_stated, own_keys, unknown_keys};
use super::keda::{aimed, formula_aim, is_off, keda_aim, rests, trigger};
use super::variant::VariantRecord;
use super::{
    Interner, Projected, annotation, controller, lifecycle, name, namespace_of, wall_time,
};
use crate::api::MANAGED_ANNOTATION;
use crate::api::scaled_object::{ScaledObject, ScaledObjectStatus, Trigger};
use crate::api::text::{both_ends, bounded};
use crate::policy::key::TargetKey;
use crate::policy::object::{ControllerRef, Lifecycle, TargetReference};
use crate::policy::pod_autoscaler::object::KIND;
use crate::policy::pod_autoscaler::resource_quantity::resource_quantity;
use crate::policy::scaler::{
    Absence, Aim, Input, Published, Scaler, ScalerActivity, ScalerKind, Tolerance,
};
use crate::policy::series::DESIRED;
use crate::policy::units::Replicas;
use wva_base::moment::WallTime;

/// Labels that name the variant and its namespace, as Prometheus stores them and as our own door
/// serves them.
pub(super) const VARIANT: &str = "variant_name";
pub(super) const NAMESPACES: [&str; 2] = ["exported_namespace", "namespace"];
/// Metadata of a trigger of the external scaler that names the variant.
pub(crate) const EXTERNAL_VARIANT: &str = "variantName";
/// Metadata of a trigger of the external scaler by which its `ScaledObject` is a variant: the model.
/// Source: llm-scaling-manager, external scaler.
pub(crate) const MODEL_KEY: &str = MODEL.key;
/// KEDA reads these itself and passes them on. With the suffix, a value comes from the environment of the target.
const OF_KEDA: [&str; 3] = ["scalerAddress", "enableTLS", "unsafeSsl"];
const FROM_ENV: &str = "FromEnv";
/// Source: KEDA's documentation of `maxReplicaCount`.
pub(crate) const KEDA_MAXIMUM: i32 = 100;
/// Annotations that stop KEDA from scaling, and those that stop it in one direction.
const PAUSED: &str = "autoscaling.keda.sh/paused";
pub(crate) const PAUSED_REPLICAS: &str = "autoscaling.keda.sh/paused-replicas";
const SHRINKING_PAUSED: &str = "autoscaling.keda.sh/paused-scale-in";
const GROWTH_PAUSED: &str = "autoscaling.keda.sh/paused-scale-out";

/// Longest message of a scaler that is repeated, in bytes.
const MAX_WORDS: usize = 300;
/// Longest value of an annotation that is repeated, in bytes.
const MAX_VALUE: usize = 40;

/// What is kept of a scaler.
#[derive(Debug, Clone, PartialEq)]
pub struct ScalerObject {
    pub namespace: Arc<str>,
    /// What it scales, if that is a kind that a variant can have as target.
    pub target: Option<TargetKey>,
    pub scaler: Scaler,
    /// `metadata.creationTimestamp`.
    pub created: WallTime,
    pub owner: Option<ControllerRef>,
    pub lifecycle: Lifecycle,
    /// All of it, where it was generated for a `PodAutoscaler`.
    pub generated: Option<Arc<HorizontalPodAutoscaler>>,
    /// The variant that its annotations declare.
    pub declared: Option<Arc<VariantRecord>>,
    /// The count that stayed from a variant that its annotations declared.
    pub leftover: Option<Arc<LeftoverCount>>,
    /// Whether its annotation says that it is no variant.
    pub is_excluded: bool,
}

impl ScalerObject {
    /// Whether it reads a count of ours, from anywhere.
    pub fn reads_count(&self) -> bool {
        (self.scaler.inputs.iter()).any(|input| *input != Input::Other)
    }
}

impl Projected for HorizontalPodAutoscaler {
    type View = ScalerObject;

    fn project(self, texts: &mut Interner) -> ScalerObject {
        let namespace = namespace_of(&self.metadata, texts);
        let owner = controller(&self.metadata, texts);
        let is_generated = owner.as_ref().is_some_and(|owner| &*owner.kind == KIND);
        let generated = is_generated.then(|| Arc::new(without_history(self.clone())));
        let made_for = owner
            .clone()
            .filter(|owner| &*owner.group == "keda.sh" && &*owner.kind == "ScaledObject");
        let spec = self.spec.unwrap_or_default();
        let reference = &spec.scale_target_ref;
        let reference =
            reference_to(reference.api_version.as_deref(), Some(&reference.kind), &reference.name);
        let target = reference.resolve(&namespace);
        // KEDA copies annotations to the one that it makes, and a PodAutoscaler decides for its own.
        let (declared, leftover) = if made_for.is_none() && !is_generated {
            let declaration = Declaration {
                kind: ScalerKind::HorizontalPodAutoscaler,
                target: reference,
                min: ("minReplicas", Some(spec.min_replicas.unwrap_or(1))),
                max: ("maxReplicas", spec.max_replicas),
                idle: None,
                triggers: Vec::new(),
            };
            declared(&self.metadata, declaration, texts)
        } else {
            (None, None)
        };
        let status = self.status.unwrap_or_default();
        let scaler = Scaler {
            kind: ScalerKind::HorizontalPodAutoscaler,
            name: name(&self.metadata),
            min: Replicas::from_count(spec.min_replicas.unwrap_or(1)),
            min_field: "minReplicas",
            max: Replicas::from_count(spec.max_replicas),
            tolerance: tolerance(spec.behavior.as_ref()),
            inputs: spec.metrics.iter().flatten().map(metric).collect(),
            activity: if made_for.is_some() {
                // Its behavior is that of its ScaledObject.
                hpa_activity(&status, true)
            } else {
                half_paused(hpa_activity(&status, false), spec.behavior.as_ref(), None)
            },
            made_for: made_for.map(|owner| owner.name),
        };
        ScalerObject {
            owner,
            generated,
            declared,
            leftover,
            ..object(namespace, target, scaler, &self.metadata)
        }
    }
}

impl Projected for ScaledObject {
    type View = ScalerObject;

    fn project(self, texts: &mut Interner) -> ScalerObject {
        let namespace = namespace_of(&self.metadata, texts);
        let spec = self.spec;
        let reference = &spec.scale_target_ref;
        let reference = reference_to(
            reference.api_version.as_deref(),
            reference.kind.as_deref(),
            &reference.name,
        );
        let target = reference.resolve(&namespace);
        let max = spec.max_replica_count.unwrap_or(KEDA_MAXIMUM);
        let declaration = Declaration {
            kind: ScalerKind::ScaledObject,
            target: reference,
            min: ("minReplicaCount", spec.min_replica_count),
            max: ("maxReplicaCount", max),
            idle: spec.idle_replica_count,
            triggers: (spec.triggers.iter())
                .filter(|one| is_external(one) && declares(&one.metadata))
                .map(|one| &one.metadata)
                .collect(),
        };
        let (declared, leftover) = declared(&self.metadata, declaration, texts);
        let rests = rests(&spec);
        let modifiers = (spec.advanced.as_ref()).and_then(|one| one.scaling_modifiers.as_ref());
        let formula = modifiers.and_then(formula_aim);
        let behavior = spec
            .advanced
            .and_then(|advanced| advanced.horizontal_pod_autoscaler_config)
            .and_then(|config| config.behavior);
        let status = self.status.unwrap_or_default();
        let metrics = &status.external_metric_names;
        let triggers = spec.triggers.iter().enumerate();
        let is_excluded = annotation(&self.metadata, MANAGED_ANNOTATION) == Some("false");
        let inputs = triggers.map(|(at, one)| {
            let input = external(at, one, metrics, is_excluded);
            let input = input.unwrap_or_else(|| trigger(one, rests));
            match &formula {
                Some(aim) => aimed(input, aim),
                None => input,
            }
        });
        let (min_field, min) = match spec.idle_replica_count {
            None => ("minReplicaCount", spec.min_replica_count),
            idle => ("idleReplicaCount", idle),
        };
        let scaler = Scaler {
            kind: ScalerKind::ScaledObject,
            name: name(&self.metadata),
            made_for: None,
            min: Replicas::from_count(min.unwrap_or(0)),
            min_field,
            max: Replicas::from_count(max),
            tolerance: tolerance(behavior.as_ref()),
            inputs: inputs.collect(),
            activity: half_paused(
                keda_activity(&self.metadata, &status),
                behavior.as_ref(),
                Some(&self.metadata),
            ),
        };
        ScalerObject { declared, leftover, ..object(namespace, target, scaler, &self.metadata) }
    }
}

fn object(
    namespace: Arc<str>,
    target: Option<TargetKey>,
    scaler: Scaler,
    metadata: &ObjectMeta,
) -> ScalerObject {
    ScalerObject {
        namespace,
        target,
        scaler,
        created: wall_time(metadata.creation_timestamp.as_ref()),
        owner: None,
        lifecycle: lifecycle(metadata),
        generated: None,
        declared: None,
        leftover: None,
        is_excluded: annotation(metadata, MANAGED_ANNOTATION) == Some("false"),
    }
}

/// Who wrote which field is as long as the rest, and nothing reads it.
fn without_history(mut object: HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    object.metadata.managed_fields = None;
    object
}

fn reference_to(api_version: Option<&str>, kind: Option<&str>, name: &str) -> TargetReference {
    TargetReference {
        api_version: api_version.map(Arc::from),
        kind: Arc::from(kind.unwrap_or_default()),
        name: Arc::from(name),
    }
}

fn tolerance(behavior: Option<&HorizontalPodAutoscalerBehavior>) -> Tolerance {
    let stated = |rules: Option<&HPAScalingRules>| {
        let text = rules.and_then(|rules| rules.tolerance.as_ref());
        text.and_then(|text| resource_quantity(&text.0).ok()).unwrap_or(Tolerance::DEFAULT)
    };
    Tolerance {
        up: stated(behavior.and_then(|behavior| behavior.scale_up.as_ref())),
        down: stated(behavior.and_then(|behavior| behavior.scale_down.as_ref())),
    }
}

pub(super) fn is_one(text: &str) -> bool {
    resource_quantity(text).is_ok_and(|number| (number - 1.0).abs() < f64::EPSILON)
}

fn metric(spec: &MetricSpec) -> Input {
    match &spec.external {
        Some(external) if external.metric.name == DESIRED => published_by_api(external),
        _ => Input::Other,
    }
}

fn published_by_api(external: &ExternalMetricSource) -> Input {
    let selector = external.metric.selector.as_ref();
    let label = |name: &str| selector.and_then(|selector| selected(selector, name));
    Input::Published(Published {
        variant: label(VARIANT),
        namespace: NAMESPACES.iter().find_map(|name| label(name)),
        is_unclear: false,
        aim: aim_of(&external.target),
        absence: Absence::Error,
    })
}

fn aim_of(target: &MetricTarget) -> Aim {
    let number = |quantity: Option<&k8s_openapi::apimachinery::pkg::api::resource::Quantity>| {
        quantity.map_or_else(|| "nothing".to_owned(), |quantity| quantity.0.clone())
    };
    let average = number(target.average_value.as_ref());
    if target.type_ == "AverageValue" && is_one(&average) {
        return Aim::Replicas;
    }
    let value = match target.type_.as_str() {
        "AverageValue" => average,
        _ => number(target.value.as_ref()),
    };
    Aim::Other(Arc::from(format!("{} {value}", target.type_)))
}

fn selected(selector: &LabelSelector, label: &str) -> Option<Arc<str>> {
    let matched = selector.match_labels.iter().flatten();
    let by_label =
        matched.filter(|(name, _)| name.as_str() == label).map(|(_, value)| value.as_str());
    let expressions = selector.match_expressions.iter().flatten();
    let by_expression = expressions
        .filter(|one| one.key == label && one.operator == "In")
        .filter_map(|one| match one.values.as_deref() {
            Some([value]) => Some(value.as_str()),
            _ => None,
        });
    by_label.chain(by_expression).next().map(Arc::from)
}

/// Whether a trigger is answered by an external scaler, of whatever make.
pub(crate) fn is_external(trigger: &Trigger) -> bool {
    matches!(trigger.kind.as_str(), "external" | "external-push")
}

/// Whether a key of the metadata of an external trigger is for KEDA itself.
pub(super) fn is_of_keda(key: &str) -> bool {
    OF_KEDA.contains(&key.strip_suffix(FROM_ENV).unwrap_or(key))
}

/// Whether the metadata of a trigger make its ScaledObject a variant. One that names another variant does not.
fn declares(metadata: &BTreeMap<String, String>) -> bool {
    metadata.contains_key(MODEL_KEY) && !metadata.contains_key(EXTERNAL_VARIANT)
}

/// A trigger of an external scaler that is ours: it names or declares a variant, or KEDA has our metric in its status.
/// Before that status, an address alone may be ours. That of another scaler, which may state a model too, is excluded by
/// an annotation of its object.
fn external(at: usize, trigger: &Trigger, metrics: &[String], is_excluded: bool) -> Option<Input> {
    let metric = format!("s{at}-{DESIRED}");
    let variant = trigger.metadata.get(EXTERNAL_VARIANT);
    let is_bare = || trigger.metadata.keys().all(|key| is_of_keda(key));
    let may_be = declares(&trigger.metadata) || (metrics.is_empty() && is_bare());
    let is_asked = metrics.contains(&metric);
    let is_ours = variant.is_some() || is_asked || (!is_excluded && may_be);
    (is_external(trigger) && is_ours).then(|| Input::ExternalScaler {
        variant: variant.map(|name| Arc::from(&**name)),
        // The scaler answers that one replica stands for 1.
        aim: keda_aim(trigger.metric_type.as_deref(), "1"),
        is_asked,
    })
}

/// Why KEDA refuses an idle count. It takes a stated minimum of 0 for 1, and an absent one for 0.
pub(crate) fn refused_idle(idle: Option<i64>, min: Option<i64>) -> Option<String> {
    let min = min.map_or(0, |min| min.max(1));
    let idle = idle.filter(|idle| *idle >= min)?;
    Some(format!(
        "spec.idleReplicaCount is {idle}; write less than {min}, which KEDA takes for the minimum"
    ))
}

/// The HorizontalPodAutoscaler that KEDA makes rests at 0 replicas, where KEDA itself scales.
fn hpa_activity(status: &HorizontalPodAutoscalerStatus, is_made: bool) -> ScalerActivity {
    let failing = status.conditions.iter().flatten().find(|condition| {
        let matters = ["AbleToScale", "ScalingActive"].contains(&condition.type_.as_str());
        let rests = is_made && condition.reason.as_deref() == Some("ScalingDisabled");
        matters && condition.status == "False" && !rests
    });
    let Some(condition) = failing else {
        return ScalerActivity::Working;
    };
    let went_itself = (status.conditions.iter().flatten())
        .any(|condition| condition.type_ == "ScaledToZero" && condition.status == "True");
    match condition.reason.as_deref() {
        Some("ScalingDisabled") if !went_itself => ScalerActivity::AtZeroByHand,
        reason => ScalerActivity::Failing {
            reason: Arc::from(reason.unwrap_or(&condition.type_)),
            message: own_words(condition.message.as_deref().unwrap_or_default()),
        },
    }
}

/// The value of a switch of KEDA that is on. What is no boolean is on.
fn switched_on<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    annotation(metadata, name).filter(|value| !is_off(value))
}

/// What a scaler that works may not do.
fn half_paused(
    activity: ScalerActivity,
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
    metadata: Option<&ObjectMeta>,
) -> ScalerActivity {
    if activity != ScalerActivity::Working {
        return activity;
    }
    let stops = |switch: &str, name: &str, rules: Option<&HPAScalingRules>| {
        let value = metadata.and_then(|metadata| switched_on(metadata, switch));
        let switch = value.map(|value| format!("{switch}={:?}", bounded(value, MAX_VALUE)));
        let policy = rules.and_then(|rules| rules.select_policy.as_deref());
        let disabled =
            (policy == Some("Disabled")).then(|| format!("{name}.selectPolicy is Disabled"));
        switch.into_iter().chain(disabled).collect::<Vec<_>>()
    };
    let up = behavior.and_then(|behavior| behavior.scale_up.as_ref());
    let down = behavior.and_then(|behavior| behavior.scale_down.as_ref());
    let (up, down) =
        (stops(GROWTH_PAUSED, "scaleUp", up), stops(SHRINKING_PAUSED, "scaleDown", down));
    let by = Arc::from([up.as_slice(), &down].concat().join(", "));
    match (up.is_empty(), down.is_empty()) {
        (true, true) => activity,
        (true, false) => ScalerActivity::GrowsOnly { by },
        (false, _) => ScalerActivity::GrowthPaused { by },
    }
}

fn keda_activity(metadata: &ObjectMeta, status: &ScaledObjectStatus) -> ScalerActivity {
    let replicas = annotation(metadata, PAUSED_REPLICAS).map(|value| (PAUSED_REPLICAS, value));
    let paused = switched_on(metadata, PAUSED).map(|value| (PAUSED, value));
    if let Some((name, value)) = replicas.or(paused) {
        let paused = format!("{name}={:?}", bounded(value, MAX_VALUE));
        return ScalerActivity::Paused { annotation: Arc::from(paused) };
    }
    let failing = status.conditions.iter().find(|condition| {
        matches!(
            (condition.kind.as_str(), condition.status.as_str()),
            ("Ready", "False") | ("Fallback", "True")
        )
    });
    failing.map_or(ScalerActivity::Working, |condition| ScalerActivity::Failing {
        reason: Arc::from(if condition.reason.is_empty() {
            condition.kind.as_str()
        } else {
            condition.reason.as_str()
        }),
        message: own_words(&condition.message),
    })
}

/// What a scaler reports, as far as a condition of ours has room: of the selector nothing, and the cause at the end.
fn own_words(message: &str) -> Arc<str> {
    let mut words = message.to_owned();
    if let Some((before, selector)) = message.split_once("/&LabelSelector{")
        && let Some((_, after)) = selector.split_once("},}")
    {
        words = [before, after].concat();
    }
    Arc::from(both_ends(&words, MAX_WORDS))
}
