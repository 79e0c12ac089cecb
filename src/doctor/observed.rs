//! Findings that the controller has by itself, from what it holds after a cycle: no request is sent for them.

use std::collections::BTreeSet;

use super::checks::{
    autoscaler_code, equal_costs, obstacle_code, prometheus_code, spelling_code, unnamed_tiers,
};
use super::facts::LiveKind;
use super::finding::FindingCode;
use crate::cluster::kinds::WatchedKind;
use crate::cluster::mirror::SyncState;
use crate::policy::actuation::judge;
use crate::policy::condition::{Condition, ConditionReason, ConditionStatus, Hints};
use crate::policy::filter::Admission;
use crate::policy::key::ObjectKey;
use crate::policy::metrics_gap::MetricsGap;
use crate::policy::ownership::{Exposure, Ownership};
use crate::policy::params::ActuationMode;
use crate::policy::record::PublishedRecord;
use crate::policy::scaler::Scalers;
use crate::policy::snapshot::{TargetView, VariantView};
use crate::policy::{self};
use crate::settings::generation::Generation;
use crate::state::Readers;
use crate::state::mirrors::SyncStatus;

/// Codes with the objects that they are about.
pub(crate) type ObservedFindings = BTreeSet<(FindingCode, ObjectKey)>;

pub(crate) fn observe(shared: &Readers) -> ObservedFindings {
    let mut found = ObservedFindings::new();
    let kind = LiveKind::VariantAutoscaling;
    let is_absent = |one: SyncStatus| {
        one.kind == WatchedKind::VariantAutoscaling && one.sync == SyncState::KindAbsent
    };
    // Annotated scalers are variants without that kind.
    if !shared.mirrors.takes_annotations() && shared.mirrors.contacts().any(is_absent) {
        let name = format!("{}.llmd.ai", kind.resource());
        found.insert((FindingCode::VariantKindMissing, ObjectKey::new("", name)));
    }
    let left_out = shared.mirrors.left_out().into_iter();
    for one in left_out.filter(|one| !one.is_handled) {
        let code = match one.admission {
            Admission::ForeignInstance => FindingCode::ForeignInstance,
            Admission::Excluded => FindingCode::NamespaceExcluded,
            Admission::OutsideScope => FindingCode::NamespaceNotWatched,
            Admission::Ours => continue,
        };
        found.insert((code, ObjectKey::new(one.key.namespace, one.key.name)));
    }
    for (key, stored) in shared.mirrors.pod_autoscalers.all() {
        if shared.mirrors.managed_autoscaler(&key).is_none() {
            continue;
        }
        let conditions = stored.status.conditions.iter();
        let codes =
            conditions.filter_map(|one| autoscaler_code(&one.kind, &one.status, &one.reason));
        found.extend(codes.map(|code| (code, key.clone())));
    }
    let views = shared.board.snapshot();
    let costs = views
        .values()
        .filter(|view| !matches!(view.target, TargetView::Malformed { .. }))
        .map(|view| ((&view.model, view.template.role), view.cost, &view.key));
    for (_, variants) in equal_costs(costs) {
        let first = variants.first();
        found.extend(first.map(|key| {
            let object = ObjectKey::new(&*key.namespace, &*key.name);
            (FindingCode::CostsEqual, object)
        }));
    }
    found.extend(tiers(views.values().map(|view| &**view), &shared.settings.load().generation));
    let plan = shared.plan.load();
    let conflicts = shared.ownership_conflicts.load();
    for view in views.values() {
        let Some(record) = shared.records.get(&view.key) else {
            continue;
        };
        let hints = Hints {
            gap: (*plan).as_ref().and_then(|plan| plan.gaps.get(&view.key)),
            exposure: conflicts.exposure(&view.key),
        };
        let key = ObjectKey::new(&*view.key.namespace, &*view.key.name);
        let codes = of_variant(view, &record, hints).into_iter();
        found.extend(codes.map(|code| (code, key.clone())));
    }
    found
}

/// The objects with tiers that have no effect: variants, and ConfigMaps of tiers that no variant names.
pub(super) fn tiers<'a>(
    views: impl Iterator<Item = &'a VariantView>,
    generation: &Generation,
) -> ObservedFindings {
    let models = policy::named_tiers(views);
    let entries = &generation.dynamic.saturation.entries;
    let exists = |view: &&VariantView, tier: &str| entries.has_tier(&view.key.namespace, tier);
    let named = models.values().flatten().map(|(_, tier)| *tier).collect();
    let faults = models.values().flat_map(|variants| {
        let faults = policy::tier_faults(variants, exists).into_iter();
        faults.map(|(view, ..)| ObjectKey::new(&*view.key.namespace, &*view.key.name))
    });
    // Variants of another instance or namespace may name the others.
    let scope = &generation.statics.scope;
    let sees_all = scope.controller_instance.is_none() && scope.watch_namespace.is_none();
    let unnamed = unnamed_tiers(generation, &named).filter(|_| sees_all);
    let objects = faults.chain(unnamed.map(|(map, _)| map));
    let found = objects.map(|object| (FindingCode::TierWithoutEffect, object));
    found.collect()
}

/// What keeps one variant from working.
pub(super) fn of_variant(
    view: &VariantView,
    record: &PublishedRecord,
    hints: Hints<'_>,
) -> BTreeSet<FindingCode> {
    let failing = record.conditions.iter();
    let failing = failing.filter(|one| one.status == ConditionStatus::False);
    let mut found: BTreeSet<FindingCode> = failing.filter_map(of_condition).collect();
    if record.standing != Ownership::Alone {
        found.insert(FindingCode::NotApplied);
    }
    let is_direct = record.actuation == ActuationMode::Direct;
    if let (Scalers::Known(scalers), Some(_)) = (&view.scalers, view.target.resolved())
        && !(scalers.is_empty() && (is_direct || record.awaits_decision()))
    {
        let desired = record.values.map(|values| values.desired);
        let obstacles = judge(scalers, &view.key, view.bounds, desired);
        found.extend(obstacles.iter().map(obstacle_code));
    }
    // A scaler that gets no count does not work because of that.
    let is_unseen = hints.exposure == Exposure::Missing && view.scalers.read_series();
    if is_unseen && found.remove(&FindingCode::ScalerFails) {
        found.insert(FindingCode::VariantSeriesMissing);
    }
    found.extend(hints.gap.and_then(|gap| of_gap(gap, &view.model.model)));
    found
}

/// The code of a condition whose cause is not seen otherwise.
pub(super) fn of_condition(condition: &Condition) -> Option<FindingCode> {
    use ConditionReason as Reason;
    match condition.reason {
        Reason::TargetNotFound => Some(FindingCode::TargetMissing),
        Reason::TargetContested => Some(FindingCode::TargetContested),
        Reason::UnsupportedTargetKind => Some(FindingCode::TargetKindUnknown),
        Reason::MalformedObject => Some(FindingCode::VariantMalformed),
        Reason::RequestsWaiting | Reason::VariantQuarantined => Some(FindingCode::NotApplied),
        _ => None,
    }
}

pub(super) fn of_gap(gap: &MetricsGap, model: &str) -> Option<FindingCode> {
    match gap {
        MetricsGap::QueryFailed { error } => Some(prometheus_code(error)),
        // They may only be starting.
        MetricsGap::NoReadyPod | MetricsGap::Gated { .. } => None,
        MetricsGap::NoValue => Some(FindingCode::UnknownGeneration),
        MetricsGap::OtherModel { models } => {
            let names = models.iter().map(|name| &**name);
            Some(spelling_code(model, names).0)
        }
        MetricsGap::OtherNamespace { .. }
        | MetricsGap::NoPodLabel
        | MetricsGap::NoNamespaceLabel => Some(FindingCode::LabelsMissing),
        MetricsGap::OtherPods { .. }
        | MetricsGap::OtherModels { .. }
        | MetricsGap::NothingInNamespace
        | MetricsGap::Nothing => Some(FindingCode::EngineNotScraped),
    }
}
