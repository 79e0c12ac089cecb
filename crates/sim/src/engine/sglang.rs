//! The series of a server by the names of SGLang.

use super::page::{Shown, Writer};
use super::statistics::Statistics;
use crate::exposition::{MetricFamily, labels};
use crate::number;

impl Shown<'_> {
    pub(super) fn sglang(&self, model: &str) -> Vec<MetricFamily> {
        let mut page = Writer {
            labels: labels([("model_name", model), ("engine_type", "unified")]),
            families: Vec::new(),
        };
        let (running, waiting) = (self.running, self.waiting);
        let tokens = |blocks: u32| f64::from(blocks) * f64::from(self.block_size);
        let (used, kept) = (self.used, self.kept);
        let empty = self.capacity.saturating_sub(used).saturating_sub(kept);
        let s = self.statistics;
        let hit_rate = number::real(s.prefix_hits) / number::real(s.prefix_queries.max(1));
        for (name, help, value) in [
            ("sglang:num_running_reqs", "Requests that run.", running),
            ("sglang:num_queue_reqs", "Requests in the queue.", waiting),
            (
                "sglang:token_usage",
                "Share of the KV pool in use, 0 to 1.",
                self.usage(),
            ),
            ("sglang:kv_used_tokens", "Tokens in use.", tokens(used)),
            (
                "sglang:kv_available_tokens",
                "Tokens not in use.",
                tokens(empty),
            ),
            (
                "sglang:kv_evictable_tokens",
                "Tokens kept for later.",
                tokens(kept),
            ),
            (
                "sglang:cache_hit_rate",
                "Share of prompt tokens found in the cache.",
                hit_rate,
            ),
        ] {
            page.gauge(name, help, value);
        }
        totals(&mut page, s);
        page.families
    }
}

fn totals(page: &mut Writer, s: &Statistics) {
    for (name, help, value) in [
        (
            "sglang:prompt_tokens_total",
            "Prompt tokens.",
            s.prompt_tokens,
        ),
        (
            "sglang:generation_tokens_total",
            "Tokens answered.",
            s.generation_tokens,
        ),
    ] {
        page.counter(name, help, value);
    }
    for (name, help, buckets) in [
        (
            "sglang:time_to_first_token_seconds",
            "Arrival to first token.",
            &s.first_token,
        ),
        (
            "sglang:inter_token_latency_seconds",
            "Between two tokens.",
            &s.between_tokens,
        ),
        (
            "sglang:e2e_request_latency_seconds",
            "Arrival to end.",
            &s.whole,
        ),
    ] {
        page.histogram(name, help, buckets);
    }
}
