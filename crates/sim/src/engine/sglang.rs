//! The series of a server by the names of SGLang.

use super::page::{Shown, Writer};
use crate::exposition::{MetricFamily, labels};
use crate::number;

impl Shown<'_> {
    pub(super) fn sglang(&self, model: &str) -> Vec<MetricFamily> {
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
}
