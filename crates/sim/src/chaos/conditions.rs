//! What a status says besides the count, against what it should say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::apiserver::Insider;
use crate::workloads::object::Object;
use crate::world::Scenario;
use crate::world::controller::ControllerView;
use wva::policy::condition::{self, ConditionReason, ConditionStatus, ConditionType};
use wva::policy::key::VariantKey;
use wva::policy::record::{AllocationStatus, PublishedRecord};

type Said<'a> = BTreeMap<&'a str, (&'a str, &'a str)>;

/// The type of a condition, or that it is the accelerator, and what is said of it otherwise.
type Mismatch = (String, String);

pub(super) fn unlike_the_record(object: &Object, record: &PublishedRecord) -> Option<Mismatch> {
    let conflict = condition::conflict(&record.standing);
    let recorded = record.conditions.iter().chain(&conflict);
    let recorded = recorded.map(|one| (one.kind, one.status, one.reason));
    let unlike = unlike(&stored(object), &said(recorded));
    unlike.or_else(|| accelerator(object, record))
}

/// What is stored of a variant otherwise than it must be at rest, with this many replicas. Where there are none
/// there is nothing to measure, but for a while the last ones are still in answers of Prometheus.
fn unlike_at_rest(object: &Object, replicas: u32) -> Option<Mismatch> {
    use ConditionReason as Reason;
    use ConditionStatus::{False, True};
    use ConditionType as Type;
    let stored = stored(object);
    let metrics = stored.get(Type::MetricsAvailable.as_str());
    let is_silent = metrics.is_some_and(|(status, _)| *status == False.as_str());
    let metrics = if replicas == 0 && is_silent {
        (Type::MetricsAvailable, False, Reason::NoReplicas)
    } else {
        (Type::MetricsAvailable, True, Reason::MetricsFound)
    };
    let expected = [
        (Type::TargetResolved, True, Reason::TargetFound),
        metrics,
        (Type::OptimizationReady, True, Reason::SaturationOnlyMode),
        (Type::ActuationReady, True, Reason::ScalerFollows),
        (Type::Ready, True, Reason::VariantReady),
    ];
    unlike(&stored, &said(expected.into_iter()))
}

/// L1: what is stored of some variant otherwise than who leads has recorded, or than it must be at rest.
pub(super) fn unreported(
    leader: &ControllerView,
    scenario: &Scenario,
    server: &Insider,
) -> Option<String> {
    scenario.variants().find_map(|variant| {
        let (namespace, name) = (scenario.namespace, variant.name);
        let key = VariantKey::new(namespace, name);
        let object = server.get("variantautoscalings.llmd.ai", namespace, name);
        let (object, record) = object.map(Object).zip(leader.shared.records.get(&key))?;
        let replicas = record.values.map_or(0, |values| values.current.0);
        let recorded = unlike_the_record(&object, &record);
        let (_, unlike) = recorded.or_else(|| unlike_at_rest(&object, replicas))?;
        Some(format!("{key}: {unlike}"))
    })
}

fn said(
    conditions: impl Iterator<Item = (ConditionType, ConditionStatus, ConditionReason)>,
) -> Said<'static> {
    let said = conditions
        .map(|(kind, status, reason)| (kind.as_str(), (status.as_str(), reason.as_str())));
    said.collect()
}

pub(super) fn stored(object: &Object) -> Said<'_> {
    let said = object.list("/status/conditions").iter().map(|condition| {
        let word = |field: &str| {
            let word = condition.get(field).and_then(Value::as_str);
            word.unwrap_or_default()
        };
        (word("type"), (word("status"), word("reason")))
    });
    said.collect()
}

fn unlike(stored: &Said<'_>, expected: &Said<'_>) -> Option<Mismatch> {
    let kinds: BTreeSet<&str> = stored.keys().chain(expected.keys()).copied().collect();
    let mut kinds = kinds.into_iter();
    let kind = kinds.find(|kind| stored.get(kind) != expected.get(kind))?;
    let words = |said: &Said<'_>| match said.get(kind) {
        Some((status, reason)) => format!("{status} for {reason}"),
        None => "nothing".to_owned(),
    };
    Some(otherwise(kind, &words(stored), &words(expected)))
}

fn accelerator(object: &Object, record: &PublishedRecord) -> Option<Mismatch> {
    let stored = object.text("/status/desiredOptimizedAlloc/accelerator");
    let expected = record.accelerator.label();
    let is_odd = record.allocation == AllocationStatus::Written && stored != expected;
    is_odd.then(|| otherwise("accelerator", &format!("{stored:?}"), &format!("{expected:?}")))
}

fn otherwise(what: &str, stored: &str, expected: &str) -> Mismatch {
    let text = format!("{what} is stored as {stored} instead of {expected}");
    (what.to_owned(), text)
}
