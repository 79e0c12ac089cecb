//! Latency lines of engines from their own history, for a process that has just begun.

use super::group::group_by_model;
use super::learned::Learned;
use super::observations::Observations;
use super::sample_reader::SampleReader;
use super::snapshot::{ClusterSnapshot, MetricsSnapshot};
use super::startup::{StartOutlook, StartSeeds};
use super::throughput::LearnedThroughput;
use super::tier::tiered;
use crate::params::DynamicSettings;
use wva_base::moment::Moment;

/// What would be known of latency lines if the collections of `history`, each as of its moment and
/// oldest first, had been taken in one by one; everything else stays as it is. Variants and pods are
/// those of `snapshot`: what a pod that is gone did counts no more. Nothing is learned of variants that
/// something is known of. Source: wva-next 16.3.
pub fn refit(
    snapshot: &ClusterSnapshot,
    history: &[(Moment, MetricsSnapshot)],
    learned: &Learned,
    settings: &DynamicSettings,
) -> Learned {
    if !learned.throughput.is_empty() || group_by_model(snapshot).is_empty() {
        return learned.clone();
    }
    let settings = &*tiered(settings, snapshot);
    let seeds = StartSeeds::of(snapshot, settings);
    let mut throughput = LearnedThroughput::default();
    for (at, metrics) in history {
        let reader = SampleReader::new(metrics, &settings.freshness, settings.cache.reuse, *at);
        let outlook = StartOutlook {
            starts: &learned.starts,
            seeds: &seeds,
            pending: settings.transition_limits.pending,
            now: *at,
        };
        let observed = Observations::of(snapshot, learned, settings, reader, outlook);
        throughput = throughput.learn(&observed.throughput(), *at);
    }
    Learned { throughput: throughput.lines(), ..learned.clone() }
}
