//! What the API server serves.

use serde_json::Value;

use super::{Check, Need};
use crate::doctor::facts::{Facts, LiveKind, Reading};
use crate::doctor::finding::{Finding, FindingCode, FindingGroup};
use crate::doctor::object::{LiveObject, ObjectName, list, text};
use crate::settings::problem::Layer;
use crate::settings::{FeatureSwitch, schema};

const EXTERNAL_METRICS: &str = "v1beta1.external.metrics.k8s.io";
/// What this project's webhooks are called with.
const WEBHOOK_GROUPS: [&str; 2] = ["llmd.ai", "autoscaling.aibrix.ai"];

/// The first version with rules in definitions.
const OLDEST: (u32, u32) = (1, 25);

pub(super) const CHECKS: &[Check] = &[
    Check {
        group: FindingGroup::Cluster,
        title: "Kubernetes is recent enough",
        needs: &[Need::Version],
        run: version,
    },
    Check {
        group: FindingGroup::Cluster,
        title: "VariantAutoscaling is served",
        needs: &[Need::Cluster, Need::Kind(LiveKind::VariantAutoscaling)],
        run: variant_kind,
    },
    Check {
        group: FindingGroup::Cluster,
        title: "PodAutoscaler is served where it is enabled",
        needs: &[
            Need::Cluster,
            Need::Controllers,
            Need::Kind(LiveKind::PodAutoscaler),
        ],
        run: autoscaler_kind,
    },
    Check {
        group: FindingGroup::Cluster,
        title: "KEDA or an adapter for external metrics is installed",
        needs: &[
            Need::Cluster,
            Need::Kind(LiveKind::ScaledObject),
            Need::Kind(LiveKind::APIService),
        ],
        run: scaler_kind,
    },
    Check {
        group: FindingGroup::Cluster,
        title: "external metrics are available",
        needs: &[
            Need::Cluster,
            Need::Kind(LiveKind::HorizontalPodAutoscaler),
            Need::Kind(LiveKind::APIService),
        ],
        run: external_metrics,
    },
    Check {
        group: FindingGroup::Cluster,
        title: "webhooks have a server",
        needs: &[
            Need::Cluster,
            Need::Kind(LiveKind::ValidatingWebhookConfiguration),
            Need::Kind(LiveKind::MutatingWebhookConfiguration),
            Need::Kind(LiveKind::EndpointSlice),
        ],
        run: webhooks,
    },
];

fn version(facts: &Facts) -> Vec<Finding> {
    let old = facts.version.known().filter(|version| **version < OLDEST);
    let found = old.map(|(major, minor)| {
        let cause =
            format!("it is {major}.{minor}, and 1.25 is the oldest that enforces the definitions");
        FindingCode::OldKubernetes.at(ObjectName::new("APIServer", "", ""), cause)
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
    let generations = facts.controllers().iter();
    let mut generations = generations.filter_map(|one| one.generation()).peekable();
    // Annotated scalers are variants without that kind.
    let is_spared = generations.peek().is_some()
        && generations.all(|one| one.statics.annotated_scalers == FeatureSwitch::Enabled);
    let is_missing = !is_spared && is_absent(facts, kind);
    let finding = is_missing.then(|| definition(FindingCode::VariantKindMissing, kind));
    finding.into_iter().collect()
}

fn autoscaler_kind(facts: &Facts) -> Vec<Finding> {
    let kind = LiveKind::PodAutoscaler;
    let mut generations = facts
        .controllers()
        .iter()
        .filter_map(|one| one.generation());
    // By default they are decided on where they are served.
    let is_wanted = generations.any(|one| {
        let origin = one.values.get(&schema::POD_AUTOSCALERS_ENABLED).origin;
        one.statics.pod_autoscalers == FeatureSwitch::Enabled && origin.layer != Layer::Default
    });
    let is_missing = is_wanted && is_absent(facts, kind);
    let finding = is_missing.then(|| definition(FindingCode::PodAutoscalerKindMissing, kind));
    finding.into_iter().collect()
}

fn scaler_kind(facts: &Facts) -> Vec<Finding> {
    let has_adapter = facts.find(LiveKind::APIService, "", EXTERNAL_METRICS);
    if has_adapter.is_some() || !is_absent(facts, LiveKind::ScaledObject) {
        return Vec::new();
    }
    let cause =
        format!("there is neither the kind ScaledObject nor the APIService {EXTERNAL_METRICS}");
    vec![FindingCode::NoScalerKind.at(ObjectName::new("APIService", "", EXTERNAL_METRICS), cause)]
}

/// Of HorizontalPodAutoscalers of our count alone: KEDA looks after its own.
fn external_metrics(facts: &Facts) -> Vec<Finding> {
    let autoscalers = facts.all(LiveKind::HorizontalPodAutoscaler);
    let reads = |object: &&LiveObject| {
        let mut metrics = object.list("/spec/metrics").iter();
        metrics
            .any(|metric| text(metric, "/external/metric/name") == crate::policy::series::DESIRED)
    };
    let readers: Vec<&LiveObject> = autoscalers.iter().filter(reads).collect();
    let Some(reader) = readers.first() else {
        return Vec::new();
    };
    // That no scaler is installed at all has a finding of its own.
    let Some(service) = facts.find(LiveKind::APIService, "", EXTERNAL_METRICS) else {
        let is_known = !is_absent(facts, LiveKind::ScaledObject);
        let cause = format!(
            "{} reads an external metric, and there is no APIService",
            reader.title()
        );
        let finding = FindingCode::ExternalMetricsMissing
            .at(ObjectName::new("APIService", "", EXTERNAL_METRICS), cause);
        return is_known.then_some(finding).into_iter().collect();
    };
    let conditions = service.list("/status/conditions");
    let failed = conditions
        .iter()
        .find(|one| text(one, "/type") == "Available" && text(one, "/status") == "False");
    let finding = failed.map(|one| {
        let cause = format!("{}: {}", text(one, "/reason"), text(one, "/message"));
        FindingCode::ExternalMetricsMissing.at(service.title(), cause)
    });
    finding.into_iter().collect()
}

/// The webhooks of this project, each with its configuration.
pub(in crate::doctor) fn webhooks_of(facts: &Facts) -> impl Iterator<Item = (&LiveObject, &Value)> {
    let kinds = [
        LiveKind::ValidatingWebhookConfiguration,
        LiveKind::MutatingWebhookConfiguration,
    ];
    let objects = kinds.into_iter().flat_map(|kind| facts.all(kind));
    let pairs = objects.flat_map(|object| {
        let webhooks = object.list("/webhooks").iter();
        webhooks.map(move |webhook| (object, webhook))
    });
    pairs.filter(|(_, webhook)| {
        let mut groups = list(webhook, "/rules")
            .iter()
            .flat_map(|rule| list(rule, "/apiGroups"));
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
