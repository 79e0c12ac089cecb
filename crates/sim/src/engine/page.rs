//! The series of a server that controllers and scaling policies read, by the names of vLLM (V1 engine)
//! or SGLang.

use super::server::{Engine, Phase};
use super::statistics::Statistics;
use crate::exposition::{
    ExpositionLabels, Histogram, MetricFamily, MetricKind, Page, labels, with,
};
use crate::number;

/// Whose names a server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// vLLM.
    Vllm,
    /// SGLang, started with `--enable-metrics`.
    Sglang,
}

struct Writer {
    labels: ExpositionLabels,
    families: Vec<MetricFamily>,
}

impl Writer {
    fn gauge(&mut self, name: &'static str, value: f64) {
        self.single(name, MetricKind::Gauge, value);
    }

    fn counter(&mut self, name: &'static str, value: u64) {
        self.single(name, MetricKind::Counter, number::real(value));
    }

    fn single(&mut self, name: &'static str, kind: MetricKind, value: f64) {
        let family = MetricFamily::single(name, kind, &self.labels, value);
        self.families.push(family);
    }

    fn histogram(&mut self, name: &'static str, buckets: &Histogram) {
        let family = MetricFamily::histogram(name, &self.labels, buckets);
        self.families.push(family);
    }
}

impl Engine {
    /// What it shows to a scrape; none once it has stopped.
    pub(crate) fn page(&self, dialect: Dialect, model: &str) -> Option<Page> {
        if self.phase() == Phase::Stopped {
            return None;
        }
        let shown = EngineFigures {
            running: number::length(self.running()),
            waiting: number::length(self.waiting.len()),
            used: self.kv.used(),
            kept: self.kv.kept,
            capacity: self.kv.capacity,
            block_size: self.kv.block_size,
            statistics: &self.statistics,
        };
        Some(shown.page(dialect, model))
    }
}

pub(super) struct EngineFigures<'a> {
    pub(super) running: f64,
    pub(super) waiting: f64,
    pub(super) used: u32,
    pub(super) kept: u32,
    pub(super) capacity: u32,
    pub(super) block_size: u32,
    pub(super) statistics: &'a Statistics,
}

impl EngineFigures<'_> {
    pub(super) fn page(&self, dialect: Dialect, model: &str) -> Page {
        let families = match dialect {
            Dialect::Vllm => self.vllm(model),
            Dialect::Sglang => self.sglang(model),
        };
        Page { families }
    }

    fn usage(&self) -> f64 {
        f64::from(self.used) / f64::from(self.capacity.max(1))
    }

    fn vllm(&self, model: &str) -> Vec<MetricFamily> {
        let mut page = Writer {
            labels: labels([("model_name", model), ("engine", "0")]),
            families: Vec::new(),
        };
        page.gauge("vllm:num_requests_running", self.running);
        page.gauge("vllm:num_requests_waiting", self.waiting);
        page.gauge("vllm:kv_cache_usage_perc", self.usage());
        page.families.push(self.cache_config());
        let s = self.statistics;
        page.counter("vllm:generation_tokens_total", s.generation_tokens);
        page.counter("vllm:prefix_cache_queries_total", s.prefix_queries);
        page.counter("vllm:prefix_cache_hits_total", s.prefix_hits);
        let finished = MetricFamily::single(
            "vllm:request_success_total",
            MetricKind::Counter,
            &with(&page.labels, "finished_reason", "stop"),
            number::real(s.finished),
        );
        page.families.push(finished);
        page.histogram("vllm:time_to_first_token_seconds", &s.first_token);
        page.histogram("vllm:inter_token_latency_seconds", &s.between_tokens);
        page.histogram("vllm:request_prompt_tokens", &s.prompt_lengths);
        page.histogram("vllm:request_generation_tokens", &s.output_lengths);
        page.families
    }

    fn sglang(&self, model: &str) -> Vec<MetricFamily> {
        let mut page = Writer {
            labels: labels([("model_name", model), ("engine_type", "unified")]),
            families: Vec::new(),
        };
        let tokens = |blocks: u32| f64::from(blocks) * f64::from(self.block_size);
        let (used, kept) = (self.used, self.kept);
        let empty = self.capacity.saturating_sub(used).saturating_sub(kept);
        let s = self.statistics;
        let hit_rate = number::real(s.prefix_hits) / number::real(s.prefix_queries.max(1));
        page.gauge("sglang:num_running_reqs", self.running);
        page.gauge("sglang:num_queue_reqs", self.waiting);
        page.gauge("sglang:token_usage", self.usage());
        page.gauge("sglang:kv_used_tokens", tokens(used));
        page.gauge("sglang:kv_available_tokens", tokens(empty));
        page.gauge("sglang:kv_evictable_tokens", tokens(kept));
        page.gauge("sglang:cache_hit_rate", hit_rate);
        page.counter("sglang:prompt_tokens_total", s.prompt_tokens);
        page.counter("sglang:generation_tokens_total", s.generation_tokens);
        page.histogram("sglang:time_to_first_token_seconds", &s.first_token);
        page.histogram("sglang:inter_token_latency_seconds", &s.between_tokens);
        page.histogram("sglang:e2e_request_latency_seconds", &s.whole);
        page.families
    }

    /// Without a model: the engine does not say which one its cache serves.
    fn cache_config(&self) -> MetricFamily {
        let block_size = self.block_size.to_string();
        let blocks = self.capacity.to_string();
        let described = labels([
            ("block_size", &*block_size),
            ("cache_dtype", "auto"),
            ("enable_prefix_caching", "True"),
            ("engine", "0"),
            ("gpu_memory_utilization", "0.9"),
            ("num_gpu_blocks", &*blocks),
        ]);
        MetricFamily::single("vllm:cache_config_info", MetricKind::Gauge, &described, 1.0)
    }
}
