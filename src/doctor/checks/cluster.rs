//! What the API server serves.

use std::collections::BTreeSet;

use serde_json::Value;

use super::scalers::scaled_target;
use super::targets::target_key;
use crate::api::variant_autoscaling;
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, condition, list, text};
use crate::settings::problem::Layer;
use crate::settings::{FeatureSwitch, schema};

const EXTERNAL_METRICS: &str = "v1beta1.external.metrics.k8s.io";
/// What this project's webhooks are called with.
const WEBHOOK_GROUPS: [&str; 2] = ["llmd.ai", "autoscaling.aibrix.ai"];

/// The first version with rules in definitions.
const OLDEST: (u32, u32) = (1, 25);

checks! {
    Cluster "Kubernetes is recent enough" version: Version;
    Cluster "VariantAutoscaling is served" variant_kind: Cluster Kind(VariantAutoscaling);
    Cluster "the definition of VariantAutoscaling has every field" old_definition:
        Cluster Kind(CustomResourceDefinition);
    Cluster "PodAutoscaler is served where it is enabled" autoscaler_kind: Cluster Installed Kind(PodAutoscaler);
    Cluster "KEDA or an adapter for external metrics is installed" scaler_kind:
        Cluster Kind(ScaledObject) Kind(APIService);
    Cluster "external metrics are available" external_metrics:
        Cluster Kind(HorizontalPodAutoscaler) Kind(APIService) ScalerKind;
    Cluster "webhooks have a server" webhooks:
        Cluster Kind(ValidatingWebhookConfiguration) Kind(MutatingWebhookConfiguration) Kind(EndpointSlice);
}

fn version(facts: &Facts) -> Vec<Finding> {
    let old = facts.version.known().filter(|version| **version < OLDEST);
    let found = old.map(|(major, minor)| {
        let cause =
            format!("it is {major}.{minor}, and 1.25 is the oldest that enforces the definitions");
        FindingCode::OldKubernetes.at(ObjectName::new("APIServer", "", "kubernetes"), cause)
    });
    found.into_iter().collect()
}

fn is_absent(facts: &Facts, kind: LiveKind) -> bool {
    facts.objects.get(&kind) == Some(&Reading::Absent)
}

fn definition(code: FindingCode, kind: LiveKind) -> Finding {
    let name = format!("{}.{}", kind.resource(), kind.group());
    let cause = format!("the API server does not serve {}", kind.path());
    code.at(ObjectName::new("CustomResourceDefinition", "", name), cause)
}

fn variant_kind(facts: &Facts) -> Vec<Finding> {
    let kind = LiveKind::VariantAutoscaling;
    let mut generations = facts.generations().peekable();
    // Annotated scalers are variants without that kind.
    let is_spared = generations.peek().is_some()
        && generations.all(|one| one.statics.annotated_scalers == FeatureSwitch::Enabled);
    // The chart brings it.
    let is_spared = is_spared || facts.is_before;
    let is_missing = !is_spared && is_absent(facts, kind);
    let finding = is_missing.then(|| definition(FindingCode::VariantKindMissing, kind));
    finding.into_iter().collect()
}

/// Collects the paths of the fields below a schema.
fn fields(schema: &Value, path: &str, all: &mut BTreeSet<String>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, below) in properties.into_iter().flatten() {
        let path = [path, name.as_str()].join(".");
        fields(below, &path, all);
        all.insert(path);
    }
    if let Some(items) = schema.get("items") {
        fields(items, path, all);
    }
}

/// The fields of the version that the controller reads.
fn definition_fields(definition: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for version in list(definition, "/spec/versions") {
        let is_read = LiveKind::VariantAutoscaling.path().ends_with(text(version, "/name"));
        if let Some(schema) = version.pointer("/schema/openAPIV3Schema").filter(|_| is_read) {
            fields(schema, "", &mut all);
        }
    }
    all
}

fn old_definition(facts: &Facts) -> Vec<Finding> {
    // Without the version itself, that is the finding.
    if is_absent(facts, LiveKind::VariantAutoscaling) && !facts.is_before {
        return Vec::new();
    }
    let own = serde_json::to_value(variant_autoscaling::definition()).unwrap_or_default();
    let own = definition_fields(&own);
    let old = facts.all(LiveKind::CustomResourceDefinition).iter().filter_map(|object| {
        let known = definition_fields(&object.0);
        let missing: Vec<&str> =
            own.difference(&known).map(|path| path.trim_start_matches('.')).collect();
        let first = missing.first()?;
        let cause = format!("it lacks {} fields, like {first}", missing.len());
        Some(FindingCode::DefinitionOld.at(object.title(), cause))
    });
    old.collect()
}

fn autoscaler_kind(facts: &Facts) -> Vec<Finding> {
    let kind = LiveKind::PodAutoscaler;
    let mut generations = facts.generations();
    // By default they are decided on where they are served.
    let is_wanted = generations.any(|one| {
        let origin = one.values.get(&schema::POD_AUTOSCALERS_ENABLED).origin;
        one.statics.pod_autoscalers == FeatureSwitch::Enabled && origin.layer != Layer::Default
    });
    let is_missing = is_wanted && is_absent(facts, kind);
    let finding = is_missing.then(|| definition(FindingCode::PodAutoscalerKindMissing, kind));
    finding.into_iter().collect()
}

pub(super) fn scaler_kind(facts: &Facts) -> Vec<Finding> {
    let has_adapter = facts.find(LiveKind::APIService, "", EXTERNAL_METRICS);
    if has_adapter.is_some() || !is_absent(facts, LiveKind::ScaledObject) {
        return Vec::new();
    }
    let cause =
        format!("there is neither the kind ScaledObject nor the APIService {EXTERNAL_METRICS}");
    vec![FindingCode::NoScalerKind.at(ObjectName::new("APIService", "", EXTERNAL_METRICS), cause)]
}

/// The HorizontalPodAutoscaler that shows who reads external metrics: one of our count, or of a variant's target, as
/// KEDA makes them.
fn metric_reader(facts: &Facts) -> Option<&LiveObject> {
    let targets: Vec<_> = facts.every_variant().filter_map(target_key).collect();
    let mut autoscalers = facts.all(LiveKind::HorizontalPodAutoscaler).iter();
    autoscalers.find(|object| {
        let metrics = object.list("/spec/metrics");
        let is_ours = |metric: &Value| {
            text(metric, "/external/metric/name") == crate::policy::series::DESIRED
        };
        let is_external = |metric: &Value| text(metric, "/type") == "External";
        let is_variants = || scaled_target(object).is_some_and(|key| targets.contains(&key));
        metrics.iter().any(is_ours) || (metrics.iter().any(is_external) && is_variants())
    })
}

/// What keeps HorizontalPodAutoscalers from reading external metrics, where any reads one or will.
pub(super) fn external_metrics(facts: &Facts) -> Vec<Finding> {
    let reader = metric_reader(facts).map(|object| format!("{} reads", object.title()));
    let will_read = || "what is to follow the counts reads".to_owned();
    let Some(reader) = reader.or_else(|| facts.is_before.then(will_read)) else {
        return Vec::new();
    };
    let object = || ObjectName::new("APIService", "", EXTERNAL_METRICS);
    let Some(service) = facts.find(LiveKind::APIService, "", EXTERNAL_METRICS) else {
        // That no scaler is installed at all has a finding of its own.
        let is_known = !is_absent(facts, LiveKind::ScaledObject);
        let cause = format!("{reader} an external metric, and there is no APIService");
        let finding = FindingCode::ExternalMetricsMissing.at(object(), cause);
        return is_known.then_some(finding).into_iter().collect();
    };
    let failed = condition(&service.0, "Available");
    let failed = failed.filter(|one| text(one, "/status") == "False");
    let finding = failed.map(|one| {
        let cause = format!("{}: {}", text(one, "/reason"), text(one, "/message"));
        FindingCode::ExternalMetricsMissing.at(object(), cause)
    });
    finding.into_iter().collect()
}

/// The webhooks of this project, each with its configuration.
pub(in crate::doctor) fn webhooks_of(facts: &Facts) -> impl Iterator<Item = (&LiveObject, &Value)> {
    let kinds = [LiveKind::ValidatingWebhookConfiguration, LiveKind::MutatingWebhookConfiguration];
    let objects = kinds.into_iter().flat_map(|kind| facts.all(kind));
    let pairs = objects.flat_map(|object| {
        let webhooks = object.list("/webhooks").iter();
        webhooks.map(move |webhook| (object, webhook))
    });
    pairs.filter(|(_, webhook)| {
        let mut groups = list(webhook, "/rules").iter().flat_map(|rule| list(rule, "/apiGroups"));
        groups.any(|group| WEBHOOK_GROUPS.contains(&group.as_str().unwrap_or_default()))
    })
}

fn webhooks(facts: &Facts) -> Vec<Finding> {
    let unserved = webhooks_of(facts).filter_map(|(object, webhook)| {
        let namespace = text(webhook, "/clientConfig/service/namespace");
        let name = text(webhook, "/clientConfig/service/name");
        // Writes that it cannot judge are stored.
        let is_optional = text(webhook, "/failurePolicy") == "Ignore";
        if name.is_empty() || is_optional || has_endpoint(facts, namespace, name) {
            return None;
        }
        let cause = format!(
            "webhook {} is sent to the Service {namespace}/{name}, which has no ready endpoint",
            text(webhook, "/name")
        );
        Some(FindingCode::WebhookUnserved.at(object.title(), cause))
    });
    unserved.collect()
}

fn has_endpoint(facts: &Facts, namespace: &str, service: &str) -> bool {
    let slices = facts.all(LiveKind::EndpointSlice).iter();
    let mut own = slices.filter(|slice| {
        slice.namespace() == namespace && slice.label("kubernetes.io/service-name") == Some(service)
    });
    own.any(|slice| {
        let mut endpoints = slice.list("/endpoints").iter();
        endpoints.any(|one| one.pointer("/conditions/ready") != Some(&Value::Bool(false)))
    })
}
