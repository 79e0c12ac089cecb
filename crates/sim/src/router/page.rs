//! The series of a router.

use super::generation::{Name, RouterMetricNames};
use super::pool::RouterPool;
use crate::exposition::{
    ExpositionLabels, Histogram, MetricFamily, MetricKind, Page, SeriesValue, labels, with,
};
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
        series: impl IntoIterator<Item = (ExpositionLabels, SeriesValue)>,
    ) {
        let series: Vec<_> = series.into_iter().collect();
        for name in self.generation.names(name) {
            let family = MetricFamily::of(name, help, kind, series.clone());
            self.families.push(family);
        }
    }

    fn gauge(&mut self, name: Name, help: &'static str, labels: &ExpositionLabels, value: f64) {
        let series = [(labels.clone(), SeriesValue::Value(value))];
        self.family(name, help, MetricKind::Gauge, series);
    }

    fn counter(&mut self, name: Name, help: &'static str, labels: &ExpositionLabels, value: u64) {
        let series = [(labels.clone(), SeriesValue::Value(number::real(value)))];
        self.family(name, help, MetricKind::Counter, series);
    }

    fn histogram(
        &mut self,
        name: Name,
        help: &'static str,
        labels: &ExpositionLabels,
        buckets: &Histogram,
    ) {
        let series = [(labels.clone(), SeriesValue::Buckets(buckets.clone()))];
        self.family(name, help, MetricKind::Histogram, series);
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
        self.servers(&mut page);
        self.scheduler(&mut page);
        if self.spec().flow_control.is_some() {
            self.flow_control(&mut page);
        }
        let families = page.families;
        Page { families }
    }

    /// The part of [`RouterPool::page`] that says how many requests are held.
    pub fn queue_page(&self, generation: RouterMetricNames) -> Page {
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
        let s = &self.statistics;
        let fairness = FAIRNESS.iter().copied();
        let fairness = fairness.filter(|_| page.generation.has_fairness());
        let who = labels(self.models().into_iter().chain(fairness));
        page.counter(
            Name::Request("request_total", "request_total"),
            "Requests that came.",
            &who,
            s.requests,
        );
        let errors = s.errors.iter().map(|(code, count)| {
            (
                with(&who, "error_code", code),
                SeriesValue::Value(number::real(*count)),
            )
        });
        page.family(
            Name::Request("request_error_total", "request_error_total"),
            "Requests that failed, by code.",
            MetricKind::Counter,
            errors,
        );
        let running = if page.generation.has_fairness() {
            who.clone()
        } else {
            labels([("model_name", &*self.spec.model)])
        };
        page.gauge(
            Name::Request("request_running", "running_requests"),
            "Requests that servers have.",
            &running,
            number::length(self.reading().dispatched),
        );
        self.sizes_and_times(page, &who);
    }

    fn sizes_and_times(&self, page: &mut Writer, who: &ExpositionLabels) {
        let s = &self.statistics;
        for (name, help, buckets) in [
            (
                Name::Request("request_duration_seconds", "request_duration_seconds"),
                "Arrival to end.",
                &s.duration,
            ),
            (
                Name::Request("request_size_bytes", "request_size_bytes"),
                "Bytes asked.",
                &s.request_bytes,
            ),
            (
                Name::Request("response_size_bytes", "response_size_bytes"),
                "Bytes answered.",
                &s.response_bytes,
            ),
            (
                Name::Request("request_input_tokens", "input_tokens"),
                "Tokens of a prompt.",
                &s.input_tokens,
            ),
            (
                Name::Request("request_output_tokens", "output_tokens"),
                "Tokens of an answer.",
                &s.output_tokens,
            ),
            (
                Name::Request("request_cached_tokens", "prompt_cached_tokens"),
                "Prompt tokens from a prefix cache.",
                &s.cached_tokens,
            ),
            (
                Name::Request(
                    "request_ntpot_seconds",
                    "normalized_time_per_output_token_seconds",
                ),
                "Duration over tokens answered.",
                &s.normalized_per_token,
            ),
            (
                Name::New("request_streaming_tpot_seconds"),
                "Mean time between the tokens of a request.",
                &s.per_token,
            ),
        ] {
            page.histogram(name, help, who, buckets);
        }
        page.histogram(
            Name::New("request_ttft_seconds"),
            "Arrival to first token.",
            &with(who, "streaming", "true"),
            &s.first_token,
        );
    }

    fn servers(&self, page: &mut Writer) {
        let reading = self.reading();
        let pool = labels([("name", &*self.spec.name)]);
        for (name, help, value) in [
            (
                Name::Pool(
                    "average_kv_cache_utilization",
                    "average_kv_cache_utilization",
                ),
                "Mean share of the KV cache in use, 0 to 1.",
                reading.kv_usage,
            ),
            (
                Name::Pool("average_queue_size", "average_queue_size"),
                "Mean queue per server.",
                reading.queue,
            ),
            (
                Name::New("average_running_requests"),
                "Mean of running requests per server.",
                reading.running,
            ),
            (
                Name::Pool("ready_endpoints", "ready_pods"),
                "Servers that take requests.",
                number::length(reading.ready),
            ),
        ] {
            page.gauge(name, help, &pool, value);
        }
        let server = page.generation.server_label();
        let ready = self
            .endpoints
            .iter()
            .filter(|(_, endpoint)| endpoint.serves());
        let queues = ready.map(|(name, endpoint)| {
            let waiting = number::length(endpoint.engine.reading().waiting);
            (with(&pool, server, name), SeriesValue::Value(waiting))
        });
        page.family(
            Name::Pool("per_endpoint_queue_size", "per_pod_queue_size"),
            "Queue of a server.",
            MetricKind::Gauge,
            queues,
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
        page.family(
            Name::Extension("scheduler_attempts_total", "scheduler_attempts_total"),
            "Attempts to pick a server.",
            MetricKind::Counter,
            picked.chain([attempts("failure", "", s.not_picked)]),
        );
    }

    /// The labels of what flow control shows of requests.
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

    fn flow_control(&self, page: &mut Writer) {
        let s = &self.statistics;
        let reading = self.reading();
        let pool = [("inference_pool", &*self.spec.name)];
        let flow = self.flow();
        self.queue_size(page, &flow);
        page.gauge(
            Name::Extension("flow_control_queue_bytes", "flow_control_queue_bytes"),
            "Bytes of the requests held.",
            &flow,
            self.held_bytes(),
        );
        page.gauge(
            Name::Extension(
                "flow_control_pool_saturation",
                "flow_control_pool_saturation",
            ),
            "How full the servers are, 1 at the set point and without servers.",
            &with(&labels(pool), "stage", "effective"),
            reading.saturation,
        );
        let outcomes = s.outcomes.iter();
        let outcomes = outcomes.map(|(outcome, count)| {
            (
                with(&flow, "outcome", outcome),
                SeriesValue::Value(number::real(*count)),
            )
        });
        page.family(
            Name::New("flow_control_requests_total"),
            "Requests that left the queue, by outcome.",
            MetricKind::Counter,
            outcomes,
        );
        let held = s.held.iter().map(|(outcome, buckets)| {
            (
                with(&flow, "outcome", outcome),
                SeriesValue::Buckets(buckets.clone()),
            )
        });
        page.family(
            Name::Extension(
                "flow_control_request_queue_duration_seconds",
                "flow_control_request_queue_duration_seconds",
            ),
            "Time held, by outcome.",
            MetricKind::Histogram,
            held,
        );
    }
}
