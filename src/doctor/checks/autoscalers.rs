//! PodAutoscalers: their specifications, and what their conditions say.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::Value;

use super::scalers::{ReadScaler, scalers};
use super::storm_services::{role_templates, storm_mode, whole_service};
use super::targets::{missing_target, of_key, target_key, templates};
use crate::api::pod_autoscaler::PodAutoscaler;
use crate::cluster::project::pod_autoscaler::StoredAutoscaler;
use crate::cluster::project::{Interner, Projected as _};
use crate::doctor::facts::{FactSource, Facts, LiveKind};
use crate::doctor::finding::{Finding, FindingCode};
use crate::doctor::object::{LiveObject, ObjectName, condition, list, member, text};
use crate::policy::key::{ObjectKey, TargetKey};
use crate::policy::object::group_version;
use crate::policy::pod_autoscaler::check::{AutoscalerPolicy, ScalingStrategy, Violations};
use crate::policy::pod_autoscaler::claims::{ClaimKind, TargetClaim, conflict, yielding};
use crate::policy::pod_autoscaler::metric_name::{ENGINE_LABEL, MetricNameError, PageMetric};
use crate::policy::pod_autoscaler::object::{KIND, read_known, unreadable};
use crate::policy::pod_autoscaler::record::TargetOwner;
use crate::policy::pod_autoscaler::source::{MetricSource, SourceKind};
use crate::settings::FeatureSwitch;
use crate::settings::endpoint_hosts::EndpointHosts;
use crate::settings::generation::Generation;
use crate::signals::{PageReadError, PageUrl};
use wva_base::moment::WallTime;
use wva_base::names::check_object_name;

checks! {
    PodAutoscalers "specifications are accepted" specifications: Kind(PodAutoscaler);
    PodAutoscalers "every target has one object of the manifests" conflicts:
        Manifests Kind(PodAutoscaler) Kind(VariantAutoscaling) Kind(HorizontalPodAutoscaler) Kind(ScaledObject);
    PodAutoscalers "targets of the manifests can be scaled" targets: Manifests Kind(PodAutoscaler);
    PodAutoscalers "sources of the manifests can be read" sources: Manifests Kind(PodAutoscaler);
    PodAutoscalers "a controller takes PodAutoscalers" support: Cluster Installed Kind(PodAutoscaler);
    PodAutoscalers "targets exist and follow" conditions:
        Cluster Kind(PodAutoscaler) Kind(Deployment) Kind(StatefulSet) Kind(LeaderWorkerSet);
}

/// Kinds that are scaled without a definition to look up, with the version that is read.
const SCALED_KINDS: [(&str, &str); 7] = [
    ("Deployment", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("ReplicaSet", "apps/v1"),
    ("ReplicationController", "v1"),
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
    ("StormService", "orchestration.aibrix.ai/v1alpha1"),
    ("RayClusterFleet", "orchestration.aibrix.ai/v1alpha1"),
];

/// Groups and kinds of definitions without a scale.
const UNSCALED_KINDS: [(&str, &str); 3] = [
    ("autoscaling.aibrix.ai", "PodAutoscaler"),
    ("llmd.ai", "VariantAutoscaling"),
    ("keda.sh", "ScaledObject"),
];

/// Every PodAutoscaler to look at, with what a controller keeps of it.
fn autoscalers(facts: &Facts) -> impl Iterator<Item = (&LiveObject, StoredAutoscaler)> {
    let all = facts.all(LiveKind::PodAutoscaler).iter();
    all.filter_map(|object| {
        let is_wanted = facts.variant.is_none()
            && !object.is_leaving()
            && !facts.ambiguous.contains(&object.title());
        let (read, _) = is_wanted.then(|| read_known::<PodAutoscaler>(object.0.clone()).ok())??;
        Some((object, read.project(&mut Interner::default())))
    })
}

/// Those whose specification holds together, with it.
fn accepted(
    facts: &Facts,
) -> impl Iterator<Item = (&LiveObject, StoredAutoscaler, AutoscalerPolicy)> {
    autoscalers(facts).filter_map(|(object, stored)| {
        let policy = stored.object.as_ref().ok()?.check().ok()?;
        Some((object, stored, policy))
    })
}

fn specifications(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (object, stored) in autoscalers(facts) {
        let mut invalid =
            |cause: String| found.push(FindingCode::AutoscalerInvalid.at(object.title(), cause));
        // Of its metadata; the rest is read apart.
        unreadable::<PodAutoscaler>(object.0.clone()).into_iter().for_each(&mut invalid);
        let target = stored.target();
        let faults = match stored.object {
            Err(why) => {
                invalid(why.to_string());
                Vec::new()
            }
            Ok(object) => match object.check() {
                Ok(mut policy) => {
                    let target = target.filter(|_| policy.target.is_storm_service());
                    let service = target.as_ref().and_then(|key| whole_service(facts, key));
                    let overridden = service.and_then(|(_, service)| service.overridden(&policy));
                    if let Some(fault) = overridden {
                        fault.add_to(&mut policy.faults);
                    }
                    policy.faults
                }
                Err(violations) => {
                    violations.iter().for_each(|one| invalid(one.to_string()));
                    violations.faults().to_vec()
                }
            },
        };
        let code = FindingCode::AutoscalerAnnotation;
        let causes: Vec<String> = named_faults(facts, object).map_or_else(
            || faults.iter().map(ToString::to_string).collect(),
            |named| vec![named.to_owned()],
        );
        found.extend(causes.into_iter().map(|cause| code.at(object.title(), cause)));
    }
    found
}

/// What a condition of a cluster names as without effect: by the target as well, which the specification does not show.
fn named_faults<'a>(facts: &Facts, object: &'a LiveObject) -> Option<&'a str> {
    let named = condition(&object.0, "AnnotationsAccepted");
    let named = named.filter(|one| text(one, "/status") == "False");
    let message = named.map(|one| text(one, "/message"));
    message.filter(|message| facts.source == FactSource::Cluster && !message.is_empty())
}

/// Targets without a count, and generated objects whose name is taken. In a cluster, conditions show them.
fn targets(facts: &Facts) -> Vec<Finding> {
    let mut found = target_kinds(facts);
    for (object, stored, policy) in accepted(facts) {
        let why = match policy.strategy {
            ScalingStrategy::Hpa => foreign_hpa(facts, &policy),
            ScalingStrategy::Kpa | ScalingStrategy::Apa => uncounted(facts, &stored, &policy),
        };
        found.extend(why.map(|why| FindingCode::AutoscalerStuck.at(object.title(), why)));
    }
    found
}

/// A HorizontalPodAutoscaler that has the name of the generated one.
fn foreign_hpa(facts: &Facts, policy: &AutoscalerPolicy) -> Option<String> {
    let (namespace, own) = (&policy.metadata.namespace, &policy.metadata.name);
    let name = format!("{own}-hpa");
    let found = facts.find(LiveKind::HorizontalPodAutoscaler, namespace, &name)?;
    let mut owners = found.list("/metadata/ownerReferences").iter();
    let is_own = owners.any(|one| text(one, "/kind") == KIND && text(one, "/name") == &**own);
    let title = found.title();
    (!is_own).then(|| {
        format!("{title} is not this object's; delete or rename it, or rename the PodAutoscaler")
    })
}

/// Why a StormService of the manifests states no count.
fn uncounted(
    facts: &Facts,
    stored: &StoredAutoscaler,
    policy: &AutoscalerPolicy,
) -> Option<String> {
    let target = stored.target();
    let target = target.filter(|_| policy.target.is_storm_service())?;
    let (_, service) = whole_service(facts, &target)?;
    let counted = service.resolve(&policy.target, policy.tuning.storm_service);
    counted.err().map(|why| why.to_string())
}

/// References by which no object can be found.
fn target_kinds(facts: &Facts) -> Vec<Finding> {
    let found = autoscalers(facts).filter_map(|(object, stored)| {
        let read = stored.object.ok()?;
        let violations = read.check().err();
        let mut named = violations.iter().flat_map(Violations::iter);
        let is_named = named.any(|one| {
            let field = one.path.strip_prefix("spec.scaleTargetRef");
            matches!(field, Some("" | ".apiVersion" | ".kind" | ".name"))
        });
        let target = &read.spec.scale_target_ref;
        let cause = unserved(&target.api_version, &target.kind, &target.name);
        let cause = cause.filter(|_| !is_named)?;
        Some(FindingCode::AutoscalerStuck.at(object.title(), cause))
    });
    found.collect()
}

/// Why no API server can scale what a reference names.
pub(crate) fn unserved(version: &str, kind: &str, name: &str) -> Option<String> {
    if let Err(why) = check_object_name(name) {
        return Some(format!("spec.scaleTargetRef.name: {why}"));
    }
    let why = unserved_kind(version, kind)?;
    Some(format!("spec.scaleTargetRef.apiVersion: {why}"))
}

/// Why no API server scales a kind. Its own groups have no dot. Those of definitions have one, and any kind and version,
/// but for the kinds that are known to have no scale.
pub(super) fn unserved_kind(version: &str, kind: &str) -> Option<String> {
    let mut known = SCALED_KINDS.iter();
    let known = known.find(|(known, _)| *known == kind);
    let expected = known.map(|(_, expected)| *expected);
    let remedy =
        expected.unwrap_or("apiVersion and kind of an object that has a scale subresource");
    if version.is_empty() {
        return Some(format!("must be set; write {remedy}"));
    }
    let Some((group, _)) = group_version(version) else {
        return Some(format!("{version:?} is no group and version; write {remedy}"));
    };
    let is_own = !group.contains('.') && expected != Some(version);
    (is_own || UNSCALED_KINDS.contains(&(group, kind)))
        .then(|| format!("{version:?} has no {kind} that can be scaled; write {remedy}"))
}

/// Objects of the manifests that a scaler, an older one, or of equal age the first, keeps from their target.
fn conflicts(facts: &Facts) -> Vec<Finding> {
    let mut claims: BTreeMap<TargetKey, Vec<TargetClaim>> = BTreeMap::new();
    let mut titles: BTreeMap<TargetKey, Vec<ObjectName>> = BTreeMap::new();
    for (object, stored, policy) in accepted(facts) {
        if let Some(target) = stored.target() {
            let mode = storm_mode(facts, &target, policy.tuning.storm_service);
            let claim = TargetClaim::of_autoscaler(&policy, mode, stored.created);
            claims.entry(target.clone()).or_default().push(claim);
            titles.entry(target).or_default().push(object.title());
        }
    }
    for variant in facts.variants() {
        let claims = target_key(variant).and_then(|target| claims.get_mut(&target));
        if let Some(claims) = claims {
            let key = ObjectKey::new(variant.namespace(), variant.name());
            claims.push(TargetClaim {
                owner: TargetOwner { kind: variant.kind().into(), key },
                created: WallTime(0),
                kind: ClaimKind::VariantAutoscaling,
            });
        }
    }
    let scalers = scalers(facts);
    let mut found = Vec::new();
    for (target, claims) in &claims {
        // Those of PodAutoscalers are the first.
        for (own, object) in claims.iter().zip(titles.remove(target).into_iter().flatten()) {
            // Which of them is older is not known before they are created.
            let is_variant = |other: &TargetOwner| &*other.kind != KIND;
            let rival = foreign_scaler(&scalers, target)
                .or_else(|| conflict(own, claims))
                .or_else(|| yielding(own, claims).into_iter().find(is_variant));
            found.extend(rival.map(|rival| {
                let cause = format!("{rival} names {target}, too");
                FindingCode::AutoscalerConflict.at(object, cause)
            }));
        }
    }
    found
}

/// A scaler that no other object made. It reads no claims, so that it scales in any case.
fn foreign_scaler(scalers: &[ReadScaler<'_>], target: &TargetKey) -> Option<TargetOwner> {
    let foreign = scalers.iter().find(|one| {
        let owner = one.kept.owner.as_ref();
        let is_generated = owner.is_some_and(|owner| &*owner.kind == KIND);
        let is_made = is_generated || one.kept.scaler.made_for.is_some();
        !is_made && one.kept.target.as_ref() == Some(target)
    })?;
    let object = foreign.object;
    Some(TargetOwner {
        kind: object.kind().into(),
        key: ObjectKey::new(object.namespace(), object.name()),
    })
}

/// Ports and names by which no pod of a target can answer. In a cluster, conditions show them.
fn sources(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    // A generated object reads no pages.
    let all = accepted(facts).filter(|(.., policy)| policy.strategy != ScalingStrategy::Hpa);
    for (object, stored, policy) in all {
        let templates = pod_templates(facts, &stored, &policy);
        for (index, source) in policy.sources.iter().enumerate() {
            let mut add = |field: &str, why: String| {
                let cause = format!("spec.metricsSources[{index}].{field}: {why}");
                found.push(FindingCode::AutoscalerMetricsFail.at(object.title(), cause));
            };
            if let Err((field, why)) = place(source, |page| permitted(facts, page)) {
                add(field, why);
            }
            if let Some(why) = unknown_name(source, &templates) {
                add("targetMetric", why);
            }
        }
        let ports = unstated_ports(&policy, &templates).into_iter();
        found.extend(ports.map(|port| FindingCode::AutoscalerPort.at(object.title(), port)));
    }
    found
}

/// The templates of the pods that are measured, where they were read.
fn pod_templates<'a>(
    facts: &'a Facts,
    stored: &StoredAutoscaler,
    policy: &AutoscalerPolicy,
) -> Vec<&'a Value> {
    let Some(key) = stored.target() else {
        return Vec::new();
    };
    if policy.target.is_storm_service() {
        let service = whole_service(facts, &key);
        service.map_or_else(Vec::new, |(object, service)| {
            role_templates(object, &service, &policy.target)
        })
    } else {
        // Of a group the leader.
        let target = of_key(facts, &key);
        target.and_then(|target| templates(target).next()).into_iter().collect()
    }
}

/// The field of a source by which a controller that permits these hosts finds no page, or no series on it, and what is
/// wrong with it.
pub(crate) fn unreadable_fields(
    source: &MetricSource,
    hosts: &EndpointHosts,
) -> Vec<(&'static str, String)> {
    let name = unknown_name(source, &[]).map(|why| ("targetMetric", why));
    let place = place(source, |page| page.permitted(hosts).map(drop)).err();
    place.into_iter().chain(name).collect()
}

/// Whether a source states where its page is; else the field, and what is wrong with it.
fn place(
    source: &MetricSource,
    permitted: impl Fn(&PageUrl) -> Result<(), PageReadError>,
) -> Result<(), (&'static str, String)> {
    let read = match &source.kind {
        SourceKind::Pod { port, page } => {
            // That of the pod is not known yet.
            let address = Ipv4Addr::LOCALHOST.into();
            let url = PageUrl::of_pod(address, port, page);
            url.map(drop).map_err(|error| ("port", error))
        }
        SourceKind::Service { endpoint, page } => {
            let url = PageUrl::of_service(endpoint, page).and_then(|url| permitted(&url));
            url.map_err(|error| ("endpoint", error))
        }
        _ => return Ok(()),
    };
    read.map_err(|(field, error)| (field, error.to_string()))
}

/// Whether some controller reads a page, or one that has no settings.
fn permitted(facts: &Facts, page: &PageUrl) -> Result<(), PageReadError> {
    let hosts = |one: &Generation| page.permitted(&one.statics.pod_pages.endpoint_hosts).map(drop);
    let read = facts.generations().map(hosts);
    read.reduce(Result::or).unwrap_or_else(|| page.permitted(&EndpointHosts::default()).map(drop))
}

/// Why `targetMetric` names nothing on any page of a source.
fn unknown_name(source: &MetricSource, templates: &[&Value]) -> Option<String> {
    let metric = &source.metric;
    let named = match &source.kind {
        SourceKind::Pod { .. } => {
            let read = templates.iter().map(|template| {
                let engine = member(template, "/metadata/labels", ENGINE_LABEL);
                PageMetric::of_pod(metric, engine)
            });
            // One of several roles may have the series.
            let read = read.reduce(|first, next| next.or(first));
            read.unwrap_or_else(|| PageMetric::of_pod(metric, None))
        }
        SourceKind::Service { .. } => PageMetric::of_service(metric),
        _ => return None,
    };
    let error = named.err()?;
    // The engine of pods that no manifest shows is not known.
    let is_of_engine = matches!(error, MetricNameError::NoSeries { .. });
    (!templates.is_empty() || !is_of_engine).then(|| error.to_string())
}

/// What an own condition of a PodAutoscaler means, by its type, status and reason.
pub(crate) fn autoscaler_code(kind: &str, status: &str, reason: &str) -> Option<FindingCode> {
    if status != "False" {
        return None;
    }
    match (kind, reason) {
        ("ValidSpec", _) => Some(FindingCode::AutoscalerInvalid),
        ("AnnotationsAccepted", _) => Some(FindingCode::AutoscalerAnnotation),
        ("MultiPodAutoscalerConflict", _) => Some(FindingCode::AutoscalerConflict),
        ("MetricsAvailable", "MetricsAbsent") => Some(FindingCode::AutoscalerMetricAbsent),
        ("MetricsAvailable", "PodsGated") => Some(FindingCode::AutoscalerGated),
        ("MetricsAvailable", _) => Some(FindingCode::AutoscalerMetricsFail),
        ("Asleep", _) => Some(FindingCode::AutoscalerAtZero),
        // That the specification is not accepted, or another object scales, has a condition of its own.
        ("AbleToScale", "InvalidSpec") => None,
        ("AbleToScale", _) => Some(FindingCode::AutoscalerStuck),
        // Of the generated HorizontalPodAutoscaler; the own one is about differences of counts.
        ("ScalingActive", reason) if reason.starts_with("Failed") => {
            Some(FindingCode::AutoscalerMetricsFail)
        }
        _ => None,
    }
}

fn conditions(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for (object, stored) in autoscalers(facts) {
        if let Some(cause) = stored.target().and_then(|key| missing_target(facts, &key)) {
            found.push(FindingCode::AutoscalerTargetMissing.at(object.title(), cause));
            continue;
        }
        for one in object.list("/status/conditions") {
            let (kind, reason) = (text(one, "/type"), text(one, "/reason"));
            // What is found together with the specification.
            let is_of_spec = ["ValidSpec", "AnnotationsAccepted"].contains(&kind);
            let code = autoscaler_code(kind, text(one, "/status"), reason);
            let Some(code) = code.filter(|_| !is_of_spec) else {
                continue;
            };
            let cause = format!("{kind} is False ({reason}): {}", text(one, "/message"));
            let mut causes = Vec::new();
            if code == FindingCode::AutoscalerMetricsFail
                && let Some(policy) = stored.object.as_ref().ok().and_then(|one| one.check().ok())
                && policy.strategy != ScalingStrategy::Hpa
            {
                causes = unstated_ports(&policy, &pod_templates(facts, &stored, &policy));
            }
            causes.push(cause);
            found.push(code.at(object.title(), causes.join("; ")));
        }
    }
    found
}

/// Ports of sources that no container states, where some port is stated. Kubernetes opens them all the same.
fn unstated_ports(policy: &AutoscalerPolicy, templates: &[&Value]) -> Vec<String> {
    let paths = ["/spec/containers", "/spec/initContainers"];
    let templates = templates.iter().copied();
    let containers =
        templates.flat_map(|template| paths.into_iter().flat_map(|path| list(template, path)));
    let ports = containers.flat_map(|container| list(container, "/ports"));
    let ports = ports.filter_map(|port| port.get("containerPort")?.as_u64());
    let stated: BTreeSet<u64> = ports.collect();
    let sources = policy.sources.iter().filter(|_| !stated.is_empty());
    let read = sources.filter_map(|source| match &source.kind {
        SourceKind::Pod { port, .. } => port.parse::<u16>().ok().filter(|port| *port > 0),
        _ => None,
    });
    let read = read.map(u64::from);
    let read: BTreeSet<u64> = read.collect();
    let shown: Vec<String> = stated.iter().map(u64::to_string).collect();
    let shown = shown.join(", ");
    let text = |port: &u64| {
        format!(
            "port {port} is read, and the pods state {shown}; check that a container listens there"
        )
    };
    read.difference(&stated).map(text).collect()
}

fn support(facts: &Facts) -> Vec<Finding> {
    let mut settings = facts.generations();
    let is_enabled = |one: &Generation| one.statics.pod_autoscalers == FeatureSwitch::Enabled;
    let is_known = facts.generations().next().is_some() && facts.source == FactSource::Cluster;
    if !is_known || settings.any(is_enabled) {
        return Vec::new();
    }
    // One with a status has another controller.
    let idle =
        autoscalers(facts).filter(|(object, _)| object.list("/status/conditions").is_empty());
    let found = idle.map(|(object, _)| {
        let cause = "POD_AUTOSCALERS_ENABLED is false for every controller, and it has no status";
        let place = facts.controllers().first();
        let place = place.map_or("", |one| &*one.key.namespace);
        FindingCode::AutoscalersIgnored.at(object.title(), cause).with(place)
    });
    found.collect()
}
