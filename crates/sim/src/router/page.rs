//! The series of a router that controllers and scaling policies read.

use super::generation::{Name, RouterMetricNames};
use super::pool::RouterPool;
use crate::exposition::{ExpositionLabels, MetricFamily, MetricKind, Page, SeriesValue, labels};
use crate::number;

/// The port behind which servers listen, as the scheduler's series name it.
const PORT: &str = "8000";
/// Who asks and how urgently, where nobody says.
const FAIRNESS: [(&str, &str); 2] = [("fairness_id", "default-flow"), ("priority", "0")];

/// Collects the families of one page.
struct Writer {
    generation: RouterMetricNames,
    families: Vec<MetricFamily>,
}

impl Writer {
    fn family(
        &mut self,
        name: Name,
        help: &'static str,
        kind: MetricKind,
        series: &[(ExpositionLabels, SeriesValue)],
    ) {
        for name in self.generation.names(name) {
            let family = MetricFamily::of(name, help, kind, series.to_vec());
            self.families.push(family);
        }
    }

    fn gauge(&mut self, name: Name, help: &'static str, labels: &ExpositionLabels, value: f64) {
        let series = [(labels.clone(), SeriesValue::Value(value))];
        self.family(name, help, MetricKind::Gauge, &series);
    }
}

impl RouterPool {
    /// What the router shows to a scrape, by the names of a generation.
    pub fn page(&self, generation: RouterMetricNames) -> Page {
        let mut page = Writer {
            generation,
            families: Vec::new(),
        };
        self.requests(&mut page);
        self.scheduler(&mut page);
        if self.spec().flow_control.is_some() {
            let flow = self.flow();
            self.queue_size(&mut page, &flow);
            let name = Name::Extension("flow_control_queue_bytes", "flow_control_queue_bytes");
            page.gauge(
                name,
                "Bytes of the requests held.",
                &flow,
                self.held_bytes(),
            );
        }
        let families = page.families;
        Page { families }
    }

    /// The part of [`RouterPool::page`] that says how many requests are held.
    pub(crate) fn queue_page(&self, generation: RouterMetricNames) -> Page {
        let mut page = Writer {
            generation,
            families: Vec::new(),
        };
        if self.spec().flow_control.is_some() {
            self.queue_size(&mut page, &self.flow());
        }
        let families = page.families;
        Page { families }
    }

    fn models(&self) -> [(&'static str, &str); 2] {
        [
            ("model_name", &*self.spec.model),
            ("target_model_name", &*self.spec.target_model),
        ]
    }

    fn requests(&self, page: &mut Writer) {
        let fairness = FAIRNESS.iter().copied();
        let fairness = fairness.filter(|_| page.generation.has_fairness());
        let who = labels(self.models().into_iter().chain(fairness));
        let came = SeriesValue::Value(number::real(self.statistics.requests));
        page.family(
            Name::Request("request_total", "request_total"),
            "Requests that came.",
            MetricKind::Counter,
            &[(who.clone(), came)],
        );
        let running = if page.generation.has_fairness() {
            who
        } else {
            labels([("model_name", &*self.spec.model)])
        };
        page.gauge(
            Name::Request("request_running", "running_requests"),
            "Requests that servers have.",
            &running,
            number::length(self.reading().dispatched),
        );
    }

    fn scheduler(&self, page: &mut Writer) {
        let endpoint_label = page.generation.endpoint_label();
        let attempts = |status: &str, endpoint: &str, count: u64| {
            let (namespace, port) = if endpoint.is_empty() {
                ("", "")
            } else {
                (&*self.spec.namespace, PORT)
            };
            let what = labels([
                ("status", status),
                ("target_model_name", &*self.spec.target_model),
                (endpoint_label, endpoint),
                ("namespace", namespace),
                ("port", port),
            ]);
            (what, SeriesValue::Value(number::real(count)))
        };
        let s = &self.statistics;
        let picked = s.picked.iter();
        let picked = picked.map(|(endpoint, count)| attempts("success", endpoint, *count));
        let picked = picked.chain([attempts("failure", "", s.not_picked)]);
        page.family(
            Name::Extension("scheduler_attempts_total", "scheduler_attempts_total"),
            "Attempts to pick a server.",
            MetricKind::Counter,
            &picked.collect::<Vec<_>>(),
        );
    }

    fn flow(&self) -> ExpositionLabels {
        let pool = [("inference_pool", &*self.spec.name)];
        labels(FAIRNESS.into_iter().chain(pool).chain(self.models()))
    }

    fn queue_size(&self, page: &mut Writer, flow: &ExpositionLabels) {
        page.gauge(
            Name::Extension("flow_control_queue_size", "flow_control_queue_size"),
            "Requests held.",
            flow,
            number::length(self.held()),
        );
    }
}
