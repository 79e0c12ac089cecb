//! StormServices of manifests, by which PodAutoscalers scale.

use kube::api::DynamicObject;
use serde_json::Value;

use crate::cluster::project::storm_service::storm_service;
use crate::doctor::facts::{Facts, LiveKind};
use crate::doctor::object::{LiveObject, text};
use crate::policy::key::TargetKey;
use crate::policy::pod_autoscaler::check::ScaledObject;
use crate::policy::pod_autoscaler::storm_service::StormServiceObject;
use crate::policy::pod_autoscaler::tuning::StormServiceMode;

/// The manifests of a StormService.
fn services<'a>(
    facts: &'a Facts,
    target: &TargetKey,
) -> impl Iterator<Item = (&'a LiveObject, StormServiceObject)> {
    let all = facts.all(LiveKind::StormService).iter();
    all.filter_map(move |one| {
        let is_one = one.namespace() == &*target.namespace
            && one.name() == &*target.name
            && !facts.ambiguous.contains(&one.title());
        let object = is_one.then(|| one.read::<DynamicObject>().ok())??;
        Some((one, storm_service(&object)))
    })
}

/// How a StormService is scaled. Its own mode wins over annotations: where that is not known, two roles may be two
/// targets.
pub(super) fn storm_mode(
    facts: &Facts,
    target: &TargetKey,
    annotated: StormServiceMode,
) -> StormServiceMode {
    let modes = services(facts, target).filter_map(|(_, service)| {
        // One without roles is a patch of another one.
        let is_whole = !service.roles.is_empty();
        service.mode.or_else(|| is_whole.then_some(annotated))
    });
    let mut modes: Vec<StormServiceMode> = modes.collect();
    modes.dedup();
    match modes.as_slice() {
        [mode] => *mode,
        _ => StormServiceMode::Pooled,
    }
}

/// A StormService with its roles. Which of several manifests is applied is not known.
pub(super) fn whole_service<'a>(
    facts: &'a Facts,
    target: &TargetKey,
) -> Option<(&'a LiveObject, StormServiceObject)> {
    let mut all = services(facts, target);
    let only = all.next().filter(|(_, service)| !service.roles.is_empty());
    only.filter(|_| all.next().is_none())
}

/// The templates of the pods that are measured.
pub(super) fn role_templates<'a>(
    object: &'a LiveObject,
    service: &StormServiceObject,
    target: &ScaledObject,
) -> Vec<&'a Value> {
    let is_measured = |name: &str| {
        let mut measured = service.measured_roles(target);
        measured.any(|role| &*role.name == name)
    };
    let roles = object.list("/spec/template/spec/roles").iter();
    let measured = roles.filter(|one| is_measured(text(one, "/name")));
    measured.filter_map(|one| one.get("template")).collect()
}
