//! The series of a router that controllers and scaling policies read.

use super::pool::RouterPool;
use crate::exposition::{
    ExpositionLabels, ExpositionSeries, MetricFamily, MetricKind, Page, SeriesValue, labels,
};
use crate::number;

/// The port behind which servers listen, as the scheduler's series name it.
const PORT: &str = "8000";
/// Who asks and how urgently, where the request does not say.
const FAIRNESS: [(&str, &str); 2] = [("fairness_id", "default-flow"), ("priority", "0")];

/// Under both names: the router still shows some series a second time, as they were called before.
/// Source: llm-d-autoscaling #1202.
fn twice(name: &str, kind: MetricKind, series: &[ExpositionSeries]) -> [MetricFamily; 2] {
    ["llm_d_epp", "inference_extension"]
        .map(|prefix| MetricFamily::of(format!("{prefix}_{name}"), kind, series.to_vec()))
}

impl RouterPool {
    /// What the router shows to a scrape, by the names of llm-d-router since June 2026.
    pub(crate) fn page(&self) -> Page {
        let mut families = Vec::from(self.requests());
        families.extend(self.scheduler());
        if self.spec.flow_control.is_some() {
            families.extend(self.queue_size());
            let held = [(self.flow(), SeriesValue::Value(self.held_bytes()))];
            families.extend(twice("flow_control_queue_bytes", MetricKind::Gauge, &held));
        }
        Page { families }
    }

    /// The part of [`RouterPool::page`] that says how many requests are held.
    pub(crate) fn queue_page(&self) -> Page {
        let held = self.spec.flow_control.map(|_control| self.queue_size());
        Page { families: held.into_iter().flatten().collect() }
    }

    fn models(&self) -> [(&'static str, &str); 2] {
        [("model_name", &*self.spec.model), ("target_model_name", &*self.spec.target_model)]
    }

    fn requests(&self) -> [MetricFamily; 2] {
        let who = labels(self.models().into_iter().chain(FAIRNESS));
        let single = |name, kind, value| MetricFamily::single(name, kind, &who, value);
        let came = number::real(self.statistics.requests);
        let running = number::length(self.reading().dispatched);
        [
            single("llm_d_epp_request_total", MetricKind::Counter, came),
            single("llm_d_epp_request_running", MetricKind::Gauge, running),
        ]
    }

    fn scheduler(&self) -> [MetricFamily; 2] {
        let attempts = |status: &str, endpoint: &str, count: u64| {
            let (namespace, port) =
                if endpoint.is_empty() { ("", "") } else { (&*self.spec.namespace, PORT) };
            let what = labels([
                ("status", status),
                ("target_model_name", &*self.spec.target_model),
                ("endpoint_name", endpoint),
                ("namespace", namespace),
                ("port", port),
            ]);
            (what, SeriesValue::Value(number::real(count)))
        };
        let s = &self.statistics;
        let picked = s.picked.iter();
        let picked = picked.map(|(endpoint, count)| attempts("success", endpoint, *count));
        let picked = picked.chain([attempts("failure", "", s.not_picked)]);
        let picked: Vec<ExpositionSeries> = picked.collect();
        twice("scheduler_attempts_total", MetricKind::Counter, &picked)
    }

    fn flow(&self) -> ExpositionLabels {
        let pool = [("inference_pool", &*self.spec.name)];
        labels(FAIRNESS.into_iter().chain(pool).chain(self.models()))
    }

    fn queue_size(&self) -> [MetricFamily; 2] {
        let size = number::length(self.queue.len());
        let held = [(self.flow(), SeriesValue::Value(size))];
        twice("flow_control_queue_size", MetricKind::Gauge, &held)
    }
}
