//! The figures of one model: spare capacity now, and once one replica is gone.

use std::sync::Arc;

use crate::params::SaturationThresholds;
use crate::plan::{SaturationFigures, Spare, VariantFigures};
use crate::sample_reader::{ReplicaLoad, Report, SampleReader};
use crate::snapshot::VariantView;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SaturationAnalysis {
    pub(crate) figures: SaturationFigures,
    /// Spare capacity, beside its triggers.
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
    /// ones of today spread over the rest; `None` where nobody is left to carry it.
    pub(crate) fn after_shrink(&self, published: u32) -> Option<Spare> {
        let rest = published.checked_sub(1).filter(|rest| *rest > 0)?;
        let SaturationThresholds {
            kv_cache_threshold: kv,
            queue_length_threshold: queue,
            ..
        } = self.thresholds;
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
        let left = |threshold: f64, load: f64| threshold - load / f64::from(published.max(1));
        let thresholds = &self.thresholds;
        compare(
            left(thresholds.kv_cache_threshold, self.load.kv),
            left(thresholds.queue_length_threshold, self.load.queue),
            thresholds,
        )
        .is_sufficient()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    kv: f64,
    queue: f64,
}

impl Sums {
    /// Means over `count` replicas; zero over none.
    fn means(self, count: u32) -> (f64, f64) {
        if count == 0 {
            (0.0, 0.0)
        } else {
            (self.kv / f64::from(count), self.queue / f64::from(count))
        }
    }
}

/// Figures of the replicas that started within the time that peaks reach back.
#[derive(Debug, Default)]
struct Newest {
    figures: VariantFigures,
    sums: Sums,
}

impl Newest {
    fn add(&mut self, load: ReplicaLoad, pod: &Arc<str>, thresholds: &SaturationThresholds) {
        add(&mut self.figures, &mut self.sums, load, pod, thresholds);
    }

    fn spare(&self, thresholds: &SaturationThresholds) -> Option<Spare> {
        let (kv, queue) = self.sums.means(self.figures.non_saturated);
        (self.figures.reporting > 0).then(|| compare(kv, queue, thresholds))
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
    let mut newest = Newest::default();
    let mut variants = Vec::with_capacity(members.len());
    for view in members {
        let (variant, own) = measure(view, reader, thresholds, (&mut load, &mut newest));
        figures.replicas += variant.reporting;
        figures.non_saturated += variant.non_saturated;
        figures.stale += variant.stale;
        figures.without_kv += variant.without_kv;
        figures.without_queue += variant.without_queue;
        sums.kv += own.kv;
        sums.queue += own.queue;
        variants.push(variant);
    }
    (figures.spare_kv, figures.spare_queue) = sums.means(figures.non_saturated);
    let spare = compare(figures.spare_kv, figures.spare_queue, thresholds);
    figures.scale_up = figures.replicas > 0 && !spare.is_sufficient();
    let mut analysis = SaturationAnalysis {
        figures,
        spare,
        thresholds: *thresholds,
        load,
        newest: newest.spare(thresholds),
    };
    let after_shrink = analysis.after_shrink(figures.non_saturated);
    analysis.figures.scale_down_safe = after_shrink.is_some_and(Spare::is_sufficient);
    (analysis, variants)
}

fn measure(
    view: &VariantView,
    reader: SampleReader<'_>,
    thresholds: &SaturationThresholds,
    (all, newest): (&mut Sums, &mut Newest),
) -> (VariantFigures, Sums) {
    let mut figures = VariantFigures::default();
    // What is left below the thresholds, over the non-saturated.
    let mut sums = Sums::default();
    for (pod, report) in reader.reports(view) {
        figures.ready += 1;
        match report {
            Report::Usable(load) => {
                all.kv += load.kv.unwrap_or(0.0);
                all.queue += load.queue.unwrap_or(0.0);
                if reader.is_newest(pod) {
                    newest.add(load, &pod.name, thresholds);
                }
                add(&mut figures, &mut sums, load, &pod.name, thresholds);
            }
            Report::Outdated => figures.outdated += 1,
            Report::Nothing => {}
        }
    }
    (figures.spare_kv, figures.spare_queue) = sums.means(figures.non_saturated);
    (figures, sums)
}

fn add(
    figures: &mut VariantFigures,
    sums: &mut Sums,
    load: ReplicaLoad,
    pod: &Arc<str>,
    thresholds: &SaturationThresholds,
) {
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
        sums.kv += thresholds.kv_cache_threshold - kv;
        sums.queue += thresholds.queue_length_threshold - queue;
    }
}

fn compare(kv: f64, queue: f64, thresholds: &SaturationThresholds) -> Spare {
    Spare {
        kv,
        kv_trigger: thresholds.kv_spare_trigger,
        queue,
        queue_trigger: thresholds.queue_spare_trigger,
    }
}
