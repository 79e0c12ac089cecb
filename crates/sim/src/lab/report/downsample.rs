//! A run reduced to what a chart can show.

use std::collections::BTreeMap;

use super::super::number::{length, mean};
use super::super::record::{
    LabRecord, LabSeries, ModelSeries, Samples, ScaleChange, VariantSeries,
};
use wva_base::text::bounded;

pub(super) const POINTS: usize = 240;

const MARKS: usize = 40;

const REASON: usize = 200;

#[derive(Debug)]
pub(super) struct Timeline {
    pub seed: u64,
    pub series: LabSeries,
    pub marks: Vec<DecisionMark>,
}

#[derive(Debug)]
pub(super) struct DecisionMark {
    pub decision: ScaleChange,
    /// The changes close to it that have no mark of their own.
    pub others: usize,
}

pub(super) fn timeline(run: &LabRecord) -> Timeline {
    let series = downsample(&run.series, POINTS);
    let marks = marks(&run.decisions, run.virtual_seconds);
    Timeline { seed: run.seed, series, marks }
}

pub(super) fn downsample(series: &LabSeries, points: usize) -> LabSeries {
    let width = series.at.len().div_ceil(points.max(1)).max(1);
    let at = series.at.iter().copied().step_by(width).collect();
    let models = series.models.iter();
    let models = models.map(|(name, model)| (name.clone(), of_model(model, width)));
    LabSeries { every: series.every, at, models: models.collect() }
}

fn of_model(model: &ModelSeries, width: usize) -> ModelSeries {
    let variants = model.variants.iter();
    let variants = variants.map(|(name, counts)| {
        // Counts of replicas stay whole.
        let last = |samples| reduce(samples, width, |values| values.last().copied());
        let counts = VariantSeries {
            desired: last(&counts.desired),
            scale: last(&counts.scale),
            ready: last(&counts.ready),
            starting: last(&counts.starting),
        };
        (name.clone(), counts)
    });
    let average = |samples| reduce(samples, width, |values| mean(values.iter().copied()));
    // Peaks matter: of queues and latencies.
    let largest =
        |samples| reduce(samples, width, |values| values.iter().copied().reduce(f64::max));
    ModelSeries {
        arrivals: average(&model.arrivals),
        held: largest(&model.held),
        queue: largest(&model.queue),
        running: average(&model.running),
        kv: largest(&model.kv),
        ttft_p95: largest(&model.ttft_p95),
        good: average(&model.good),
        variants: variants.collect(),
    }
}

fn reduce(samples: &Samples, width: usize, of: fn(&[f64]) -> Option<f64>) -> Samples {
    let bins = samples.chunks(width);
    bins.map(|bin| of(&bin.iter().copied().flatten().collect::<Vec<f64>>())).collect()
}

/// The changes of each variant, at most one a fortieth of the run.
fn marks(decisions: &[ScaleChange], seconds: f64) -> Vec<DecisionMark> {
    let width = seconds / length(MARKS);
    let mut marks: BTreeMap<(&str, usize), DecisionMark> = BTreeMap::new();
    for decision in decisions.iter().filter(|one| one.from != one.to) {
        // The count of bin ends before the decision.
        let bin = (1..MARKS).take_while(|end| length(*end) * width <= decision.at);
        let key = (decision.variant.as_str(), bin.count());
        if let Some(mark) = marks.get_mut(&key) {
            mark.others += 1;
            if size(decision) > size(&mark.decision) {
                mark.decision = short(decision);
            }
        } else {
            let decision = short(decision);
            marks.insert(key, DecisionMark { decision, others: 0 });
        }
    }
    marks.into_values().collect()
}

fn size(decision: &ScaleChange) -> u32 {
    decision.to.abs_diff(decision.from)
}

fn short(decision: &ScaleChange) -> ScaleChange {
    ScaleChange { why: bounded(&decision.why, REASON), ..decision.clone() }
}
