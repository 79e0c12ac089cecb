//! `learn`: takes one collection into everything that is remembered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::key::VariantKey;
use super::learned::{Learned, LearnedVersion, Reporting};
use super::observations::Observations;
use super::sample_reader::SampleReader;
use super::snapshot::{ClusterSnapshot, Readiness, ResolvedTarget, TargetView, VariantView};
use super::startup::{PodOrigin, StartOutlook, StartSeeds, StartingPod};
use super::tier::tiered;
use super::transition::Coverage;
use super::variant::oldest_unready;
use crate::params::DynamicSettings;
use wva_base::moment::{Moment, Since};

/// Takes one collection in.
///
/// A variant that does not report in full is silent from now on, or, when its pods are first seen by
/// this process, since the oldest one that is not ready was created. What cannot be judged (a failed
/// query, a target or pods not yet seen) leaves the record as it is.
pub fn learn(
    snapshot: &ClusterSnapshot,
    learned: &Learned,
    settings: &DynamicSettings,
    now: Moment,
) -> Learned {
    let settings = &*tiered(settings, snapshot);
    let seeds = StartSeeds::of(snapshot, settings);
    let reader = SampleReader::of(snapshot, settings, now);
    let reporting = snapshot
        .variants
        .iter()
        .filter_map(|(key, view)| {
            let before = learned.reporting.get(key).copied();
            let after = match &view.target {
                TargetView::Resolved(_) if reader.has_failed() || reader.has_expired() => before,
                TargetView::Resolved(target) => reporting_of(view, target, reader, before, now),
                TargetView::Unknown { .. } | TargetView::Malformed { .. } => before,
                TargetView::NotFound { .. }
                | TargetView::Contested { .. }
                | TargetView::UnsupportedKind { .. } => None,
            };
            after.map(|after| (key.clone(), after))
        })
        .collect();
    let next = Learned {
        version: LearnedVersion::default(),
        reporting,
        starts: (learned.starts).learn(
            &pods_of(snapshot, now),
            (&seeds, settings.transition_limits.pending),
            now.wall,
        ),
        ..learned.clone()
    };
    let collected = snapshot.metrics.collected.map(|at| at.monotonic);
    let is_readable = !reader.has_failed() && !reader.has_expired();
    let outlook = StartOutlook {
        starts: &next.starts,
        seeds: &seeds,
        pending: settings.transition_limits.pending,
        now,
    };
    if !is_readable {
        // A model may be in use, and be started from zero, all the same.
        let observed = Observations::without_samples(snapshot, learned, settings, outlook);
        let mut next = next;
        observed.update_use(&mut next, now);
        next
    } else if collected != learned.collected {
        let observed = Observations::of(snapshot, learned, settings, reader, outlook);
        Learned { collected, ..observed.update(next, now) }
    } else {
        next
    }
}

/// The pods of every variant; none of one whose target is not resolved now. A pod that turned ready
/// at a time that was not noted did so now.
fn pods_of(
    snapshot: &ClusterSnapshot,
    now: Moment,
) -> BTreeMap<VariantKey, Option<Vec<StartingPod>>> {
    let listed = |view: &VariantView| -> Option<Vec<StartingPod>> {
        view.target.resolved()?;
        let pods = view.pods.iter().map(|pod| StartingPod {
            name: Arc::clone(&pod.name),
            node: pod.node.clone(),
            created: pod.created,
            ready: match pod.readiness {
                Readiness::Ready => Some(pod.ready_since.unwrap_or(now.wall)),
                Readiness::NotReady | Readiness::Gated => None,
            },
            is_gated: pod.readiness == Readiness::Gated,
            origin: PodOrigin::Own,
        });
        Some(pods.collect())
    };
    let views = snapshot.variants.iter();
    views.map(|(key, view)| (key.clone(), listed(view))).collect()
}

fn reporting_of(
    view: &VariantView,
    target: &ResolvedTarget,
    reader: SampleReader<'_>,
    before: Option<Reporting>,
    now: Moment,
) -> Option<Reporting> {
    let (ready, reporting) = reader.count(view);
    let current = target.current;
    if Coverage::of(target, ready, reporting) == Coverage::Complete {
        return Some(Reporting::Complete);
    }
    let since = match before {
        Some(Reporting::Silent { since, current: known }) if current <= known => since,
        Some(_) => Since::at(now),
        None if view.pods.is_empty() => return None,
        None => oldest_unready(&view.pods, now),
    };
    Some(Reporting::Silent { since, current })
}
