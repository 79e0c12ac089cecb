//! The figures of one model: spare capacity now, and once one replica is gone.

use std::sync::Arc;

use crate::params::SaturationThresholds;
use crate::plan::{SaturationFigures, Spare, VariantFigures};
use crate::sample_reader::{ReplicaLoad, Report, SampleReader};
use crate::snapshot::VariantView;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SaturationAnalysis {
    pub(crate) figures: SaturationFigures,
    /// Spare capacity, in addition to its triggers.
    pub(crate) spare: Spare,
    thresholds: SaturationThresholds,
    /// What all replicas that report hold together.
    load: Sums,
    /// Spare capacity of the replicas that started within the time that peaks reach back, which report
    /// nothing older than themselves; `None` where none of them reports.
    pub(crate) newest: Option<Spare>,
}

impl SaturationAnalysis {
    /// Spare capacity once one of `published` replicas is gone, with the load of the non-saturated
    /// ones of today spread over the rest; `None` where no replica is left to carry it.
    pub(crate) fn after_shrink(&self, published: u32) -> Option<Spare> {
        let rest = published.checked_sub(1).filter(|rest| *rest > 0)?;
        let SaturationThresholds { kv_cache_threshold: kv, queue_length_threshold: queue, .. } =
            self.thresholds;
        let replicas = f64::from(self.figures.non_saturated);
        let left = |threshold: f64, spare: f64| {
            threshold - (threshold - spare) * replicas / f64::from(rest)
        };
        Some(compare(
            left(kv, self.figures.spare_kv),
            left(queue, self.figures.spare_queue),
            &self.thresholds,
        ))
    }

    /// Whether the load of all replicas of today would leave enough spare on `published` of them.
    pub(crate) fn fits_on(&self, published: u32) -> bool {
        let replicas = self.figures.replicas;
        let left = |threshold: f64, load: Samples| {
            threshold - load.total(replicas) / f64::from(published.max(1))
        };
        let thresholds = &self.thresholds;
        compare(
            left(thresholds.kv_cache_threshold, self.load.kv),
            left(thresholds.queue_length_threshold, self.load.queue),
            thresholds,
        )
        .is_sufficient()
    }
}

/// Samples of some replicas. One that has none counts as the mean of the others: it may be as loaded as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Samples {
    sum: f64,
    count: u32,
}

impl Samples {
    fn add(&mut self, sample: Option<f64>) {
        self.sum += sample.unwrap_or(0.0);
        self.count += u32::from(sample.is_some());
    }

    fn merge(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }

    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    fn total(self, replicas: u32) -> f64 {
        self.mean().unwrap_or(0.0) * f64::from(replicas)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    kv: Samples,
    queue: Samples,
}

impl Sums {
    fn add(&mut self, kv: Option<f64>, queue: Option<f64>) {
        self.kv.add(kv);
        self.queue.add(queue);
    }

    fn merge(&mut self, other: Self) {
        self.kv.merge(other.kv);
        self.queue.merge(other.queue);
    }

    /// Of what `count` replicas have below the thresholds, the mean; zero where there are none of them, or where saturated
    /// ones alone have a sample, and all of a threshold where none has. The pair counts replicas with a sample of each.
    fn spare(
        self,
        count: u32,
        (with_kv, with_queue): (u32, u32),
        thresholds: &SaturationThresholds,
    ) -> (f64, f64) {
        let of = |samples: Samples, sampled: u32, threshold: f64| match samples.mean() {
            _ if count == 0 => 0.0,
            Some(mean) => mean,
            None if sampled > 0 => 0.0,
            None => threshold,
        };
        (
            of(self.kv, with_kv, thresholds.kv_cache_threshold),
            of(self.queue, with_queue, thresholds.queue_length_threshold),
        )
    }
}

/// Figures of some replicas, and what the non-saturated ones have below the thresholds.
#[derive(Debug, Default)]
struct Measured {
    figures: VariantFigures,
    sums: Sums,
}

impl Measured {
    fn add(&mut self, load: ReplicaLoad, pod: &Arc<str>, thresholds: &SaturationThresholds) {
        let figures = &mut self.figures;
        let kv = load.kv.unwrap_or(0.0);
        let queue = load.queue.unwrap_or(0.0);
        figures.reporting += 1;
        figures.stale += u32::from(load.stale);
        figures.without_kv += u32::from(load.kv.is_none());
        figures.without_queue += u32::from(load.queue.is_none());
        figures.max_kv = figures.max_kv.max(kv);
        figures.max_queue = figures.max_queue.max(queue);
        if kv >= thresholds.kv_cache_threshold || queue >= thresholds.queue_length_threshold {
            figures.saturated.push(Arc::clone(pod));
        } else {
            figures.non_saturated += 1;
            let below = |threshold: f64, sample: Option<f64>| Some(threshold - sample?);
            self.sums.add(
                below(thresholds.kv_cache_threshold, load.kv),
                below(thresholds.queue_length_threshold, load.queue),
            );
        }
    }

    fn spare(&self, thresholds: &SaturationThresholds) -> (f64, f64) {
        let figures = &self.figures;
        let with_samples =
            (figures.reporting - figures.without_kv, figures.reporting - figures.without_queue);
        (self.sums).spare(figures.non_saturated, with_samples, thresholds)
    }
}

/// Measures one model over the ready pods of its variants, and each variant by itself, in the order
/// in which they are given.
pub(crate) fn analyze(
    members: &[&VariantView],
    reader: SampleReader<'_>,
    thresholds: &SaturationThresholds,
) -> (SaturationAnalysis, Vec<VariantFigures>) {
    let mut figures = SaturationFigures::default();
    let (mut sums, mut load) = (Sums::default(), Sums::default());
    // Of replicas that started within the time that peaks reach back.
    let mut newest = Measured::default();
    let mut variants = Vec::with_capacity(members.len());
    for view in members {
        let Measured { figures: variant, sums: own } =
            measure(view, reader, thresholds, (&mut load, &mut newest));
        figures.replicas += variant.reporting;
        figures.non_saturated += variant.non_saturated;
        figures.stale += variant.stale;
        figures.without_kv += variant.without_kv;
        figures.without_queue += variant.without_queue;
        sums.merge(own);
        variants.push(variant);
    }
    let with_samples =
        (figures.replicas - figures.without_kv, figures.replicas - figures.without_queue);
    (figures.spare_kv, figures.spare_queue) =
        sums.spare(figures.non_saturated, with_samples, thresholds);
    let spare = compare(figures.spare_kv, figures.spare_queue, thresholds);
    figures.scale_up = figures.replicas > 0 && !spare.is_sufficient();
    let (kv, queue) = newest.spare(thresholds);
    let mut analysis = SaturationAnalysis {
        figures,
        spare,
        thresholds: *thresholds,
        load,
        newest: (newest.figures.reporting > 0).then(|| compare(kv, queue, thresholds)),
    };
    let after_shrink = analysis.after_shrink(figures.non_saturated);
    analysis.figures.scale_down_safe = after_shrink.is_some_and(Spare::is_sufficient);
    (analysis, variants)
}

fn measure(
    view: &VariantView,
    reader: SampleReader<'_>,
    thresholds: &SaturationThresholds,
    (all, newest): (&mut Sums, &mut Measured),
) -> Measured {
    let mut own = Measured::default();
    for (pod, report) in reader.reports(view) {
        own.figures.ready += 1;
        match report {
            Report::Usable(load) => {
                all.add(load.kv, load.queue);
                if reader.is_newest(pod) {
                    newest.add(load, &pod.name, thresholds);
                }
                own.add(load, &pod.name, thresholds);
            }
            Report::Outdated => own.figures.outdated += 1,
            Report::Nothing => {}
        }
    }
    (own.figures.spare_kv, own.figures.spare_queue) = own.spare(thresholds);
    own
}

fn compare(kv: f64, queue: f64, thresholds: &SaturationThresholds) -> Spare {
    Spare {
        kv,
        kv_trigger: thresholds.kv_spare_trigger,
        queue,
        queue_trigger: thresholds.queue_spare_trigger,
    }
}
