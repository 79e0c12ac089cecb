//! The series of a router that controllers and scaling policies read.

use std::borrow::Cow;

use super::pool::RouterPool;
use crate::exposition::{ExpositionLabels, MetricFamily, MetricKind, Page, SeriesValue, labels};
use crate::number;

/// The port behind which servers listen, as the scheduler's series name it.
const PORT: &str = "8000";
/// Who asks and how urgently, where the request does not say.
const FAIRNESS: [(&str, &str); 2] = [("fairness_id", "default-flow"), ("priority", "0")];

#[derive(Default)]
struct Writer(Vec<MetricFamily>);

impl Writer {
    fn family(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        kind: MetricKind,
        series: &[(ExpositionLabels, SeriesValue)],
    ) {
        let family = MetricFamily::of(name, kind, series.to_vec());
        self.0.push(family);
    }

    /// Under both names: the router still shows some series a second time, as they were called before.
    /// Source: llm-d-autoscaling #1202.
    fn twice(&mut self, name: &str, kind: MetricKind, series: &[(ExpositionLabels, SeriesValue)]) {
        for prefix in ["llm_d_epp", "inference_extension"] {
            self.family(format!("{prefix}_{name}"), kind, series);
        }
    }
}

impl RouterPool {
    /// What the router shows to a scrape, by the names of llm-d-router since June 2026.
    pub(crate) fn page(&self) -> Page {
        let mut page = Writer::default();
        self.requests(&mut page);
        self.scheduler(&mut page);
        if self.spec.flow_control.is_some() {
            let flow = self.flow();
            self.queue_size(&mut page, &flow);
            let held = [(flow, SeriesValue::Value(self.held_bytes()))];
            page.twice("flow_control_queue_bytes", MetricKind::Gauge, &held);
        }
        Page { families: page.0 }
    }

    /// The part of [`RouterPool::page`] that says how many requests are held.
    pub(crate) fn queue_page(&self) -> Page {
        let mut page = Writer::default();
        if self.spec.flow_control.is_some() {
            self.queue_size(&mut page, &self.flow());
        }
        Page { families: page.0 }
    }

    fn models(&self) -> [(&'static str, &str); 2] {
        [
            ("model_name", &*self.spec.model),
            ("target_model_name", &*self.spec.target_model),
        ]
    }

    fn requests(&self, page: &mut Writer) {
        let who = labels(self.models().into_iter().chain(FAIRNESS));
        let came = SeriesValue::Value(number::real(self.statistics.requests));
        page.family(
            "llm_d_epp_request_total",
            MetricKind::Counter,
            &[(who.clone(), came)],
        );
        let running = SeriesValue::Value(number::length(self.reading().dispatched));
        page.family(
            "llm_d_epp_request_running",
            MetricKind::Gauge,
            &[(who, running)],
        );
    }

    fn scheduler(&self, page: &mut Writer) {
        let attempts = |status: &str, endpoint: &str, count: u64| {
            let (namespace, port) = if endpoint.is_empty() {
                ("", "")
            } else {
                (&*self.spec.namespace, PORT)
            };
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
        page.twice(
            "scheduler_attempts_total",
            MetricKind::Counter,
            &picked.collect::<Vec<_>>(),
        );
    }

    fn flow(&self) -> ExpositionLabels {
        let pool = [("inference_pool", &*self.spec.name)];
        labels(FAIRNESS.into_iter().chain(pool).chain(self.models()))
    }

    fn queue_size(&self, page: &mut Writer, flow: &ExpositionLabels) {
        let held = SeriesValue::Value(number::length(self.queue.len()));
        page.twice(
            "flow_control_queue_size",
            MetricKind::Gauge,
            &[(flow.clone(), held)],
        );
    }
}
