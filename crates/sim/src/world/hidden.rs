//! Signals that a world does not show.

use serde::Deserialize;

use crate::exposition::Page;

/// A signal that servers or routers do not show, by what controllers take it for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HiddenSignal {
    /// Running requests of each server.
    Running,
    /// Waiting requests of each server.
    Waiting,
    /// KV usage of each server.
    KvUsage,
    /// Size of the KV cache of each server.
    CacheConfig,
    /// Tokens that servers generated.
    Generated,
    /// Requests that servers completed.
    Completed,
    /// Time to the first token.
    Ttft,
    /// Time between tokens.
    Itl,
    /// Tokens of prompts and of answers.
    Lengths,
    /// Hits of prefix caches.
    PrefixHits,
    /// Requests that the router holds.
    RouterQueue,
    /// Requests that reached the router, and those that it placed.
    RouterRequests,
    /// Everything that the router shows.
    Router,
    /// The `InferencePool` that names the router.
    Pool,
}

impl HiddenSignal {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Running => &["vllm:num_requests_running"],
            Self::Waiting => &["vllm:num_requests_waiting"],
            Self::KvUsage => &["vllm:kv_cache_usage_perc"],
            Self::CacheConfig => &["vllm:cache_config_info"],
            Self::Generated => &["vllm:generation_tokens_total"],
            Self::Completed => &["vllm:request_success_total"],
            Self::Ttft => &["vllm:time_to_first_token_seconds"],
            Self::Itl => &["vllm:inter_token_latency_seconds"],
            Self::Lengths => &["vllm:request_prompt_tokens", "vllm:request_generation_tokens"],
            Self::PrefixHits => &["vllm:prefix_cache"],
            Self::RouterQueue => &["_flow_control_"],
            Self::RouterRequests => &["_epp_request_", "_scheduler_attempts_"],
            Self::Router => &["_epp_", "inference_extension_"],
            Self::Pool => &[],
        }
    }
}

pub(super) fn without(mut page: Page, missing: &[HiddenSignal]) -> Page {
    page.families.retain(|family| {
        let mut names = missing.iter().flat_map(|signal| signal.names());
        !names.any(|name| family.name.contains(name))
    });
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::{MetricFamily, MetricKind, labels};

    #[test]
    fn a_page_shows_the_rest() {
        let names = [
            "vllm:num_requests_running",
            "vllm:request_prompt_tokens",
            "llm_d_epp_request_total",
            "llm_d_epp_flow_control_queue_size",
            "inference_extension_flow_control_queue_size",
        ];
        let family = |name| MetricFamily::single(name, MetricKind::Gauge, &labels([]), 1.0);
        let page = Page { families: names.into_iter().map(family).collect() };
        let shown = |missing: &[HiddenSignal]| {
            let left = without(page.clone(), missing).families.into_iter();
            let left = left.filter_map(|left| names.iter().position(|name| left.name == *name));
            left.collect::<Vec<_>>()
        };
        assert_eq!(shown(&[]), [0, 1, 2, 3, 4]);
        assert_eq!(shown(&[HiddenSignal::Itl]), [0, 1, 2, 3, 4]);
        assert_eq!(shown(&[HiddenSignal::Running]), [1, 2, 3, 4]);
        assert_eq!(shown(&[HiddenSignal::RouterQueue]), [0, 1, 2]);
        let several = [HiddenSignal::RouterRequests, HiddenSignal::Lengths];
        assert_eq!(shown(&several), [0, 3, 4]);
        assert_eq!(shown(&[HiddenSignal::Router]), [0, 1]);
    }
}
