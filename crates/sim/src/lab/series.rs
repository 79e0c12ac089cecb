//! The state of a run every few seconds.

use std::time::Duration;

use super::loads::ModelLoad;
use super::number;
use super::record::{LabSeries, ModelSeries};
use crate::world::Frame;

const EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct SeriesRecorder {
    pub(super) series: LabSeries,
    next: Duration,
    /// Requests of each model that came before the last point.
    came: Vec<usize>,
}

impl SeriesRecorder {
    pub(super) fn new(models: usize) -> Self {
        Self {
            series: LabSeries { every: EVERY.as_secs_f64(), ..LabSeries::default() },
            next: Duration::ZERO,
            came: vec![0; models],
        }
    }

    pub(super) fn observe(&mut self, frame: &Frame, loads: &[ModelLoad]) {
        let now = number::duration(frame.seconds);
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        self.series.at.push(frame.seconds);
        let models = frame.models.iter().zip(loads).zip(&mut self.came);
        for ((model, load), came) in models {
            let all = load.arrivals.partition_point(|arrival| arrival.at <= now);
            let new = all.saturating_sub(std::mem::replace(came, all));
            let series = self.series.models.entry(model.name.clone()).or_default();
            series.push(model, number::length(new) / EVERY.as_secs_f64());
        }
    }
}

impl ModelSeries {
    fn push(&mut self, model: &crate::world::ModelFrame, arrivals: f64) {
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        self.arrivals.push(Some(rounded(arrivals)));
        self.held.push(Some(number::length(model.held)));
        self.queue.push(Some(rounded(model.queue)));
        self.running.push(Some(rounded(model.running)));
        self.kv.push(Some(rounded(model.kv_usage)));
        let first_token = model.first_token_p95_ms;
        self.ttft_p95.push(first_token.map(|ms| rounded(ms / 1e3)));
        self.good.push(model.attainment.map(rounded));
        for variant in &model.variants {
            let series = self.variants.entry(variant.name.clone()).or_default();
            series.desired.push(variant.desired.map(f64::from));
            series.scale.push(Some(variant.scaled_to.into()));
            series.ready.push(Some(variant.ready.into()));
            series.starting.push(Some(variant.pending.into()));
        }
    }
}
