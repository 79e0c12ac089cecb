use std::collections::BTreeMap;
use std::time::Duration;

use super::{engine, finish, request};
use crate::engine::{Dialect, Engine, Limits, Profile};
use crate::exposition::MetricKind;

fn used() -> Engine {
    let mut engine = engine(376_000, Limits::default());
    engine.submit(request(1, 100, 10), Duration::ZERO).unwrap();
    finish(&mut engine);
    engine
}

#[test]
fn a_server_that_is_gone_shows_nothing() {
    let profile = Profile::QWEN3_8B_BF16_H100;
    let mut engine = Engine::new(profile, Limits::default(), Duration::ZERO);
    assert!(engine.page(Dialect::Vllm, "m").is_some());
    engine.stop(Duration::from_mins(1));
    assert_eq!(engine.page(Dialect::Vllm, "m"), None);
}

#[test]
fn vllm_series_have_their_names_types_labels_and_values() {
    let page = used().page(Dialect::Vllm, "Qwen/Qwen3-8B").unwrap();
    let kinds: BTreeMap<&str, MetricKind> =
        page.families.iter().map(|family| (&*family.name, family.kind)).collect();
    assert_eq!(kinds.len(), page.families.len(), "every name once");
    let wanted = [
        (
            MetricKind::Gauge,
            "num_requests_running num_requests_waiting kv_cache_usage_perc cache_config_info",
        ),
        (
            MetricKind::Counter,
            "generation_tokens_total prefix_cache_queries_total prefix_cache_hits_total request_success_total",
        ),
        (
            MetricKind::Histogram,
            "time_to_first_token_seconds inter_token_latency_seconds request_prompt_tokens request_generation_tokens",
        ),
    ];
    for (kind, names) in wanted {
        for name in names.split(' ') {
            assert_eq!(kinds.get(&*format!("vllm:{name}")), Some(&kind), "{name}");
        }
    }
    let text = page.to_string();
    for line in [
        "vllm:num_requests_running{model_name=\"Qwen/Qwen3-8B\",engine=\"0\"} 0",
        "vllm:generation_tokens_total{model_name=\"Qwen/Qwen3-8B\",engine=\"0\"} 10",
        "vllm:request_success_total{model_name=\"Qwen/Qwen3-8B\",engine=\"0\",finished_reason=\"stop\"} 1",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"Qwen/Qwen3-8B\",engine=\"0\",le=\"0.005\"} 0",
        "vllm:time_to_first_token_seconds_bucket{model_name=\"Qwen/Qwen3-8B\",engine=\"0\",le=\"0.01\"} 1",
        "vllm:inter_token_latency_seconds_count{model_name=\"Qwen/Qwen3-8B\",engine=\"0\"} 9",
        "vllm:request_prompt_tokens_bucket{model_name=\"Qwen/Qwen3-8B\",engine=\"0\",le=\"100.0\"} 1",
        "vllm:request_prompt_tokens_bucket{model_name=\"Qwen/Qwen3-8B\",engine=\"0\",le=\"50.0\"} 0",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_cache_says_its_size_but_not_its_model() {
    let page = used().page(Dialect::Vllm, "m").unwrap();
    let sample = page.samples().find(|sample| sample.name == "vllm:cache_config_info").unwrap();
    let label = |name: &str| {
        let found = sample.labels.iter().find(|(label, _)| label == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(label("num_gpu_blocks").as_deref(), Some("23500"));
    assert_eq!(label("block_size").as_deref(), Some("16"));
    assert_eq!(label("model_name"), None);
}

#[test]
fn sglang_has_names_of_its_own() {
    let page = used().page(Dialect::Sglang, "m").unwrap();
    let text = page.to_string();
    for line in [
        "sglang:num_queue_reqs{model_name=\"m\",engine_type=\"unified\"} 0",
        "sglang:kv_available_tokens{model_name=\"m\",engine_type=\"unified\"} 376000",
        "sglang:generation_tokens_total{model_name=\"m\",engine_type=\"unified\"} 10",
        "sglang:inter_token_latency_seconds_count{model_name=\"m\",engine_type=\"unified\"} 9",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} is not in\n{text}");
    }
}
