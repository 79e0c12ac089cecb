//! What both servers are asked: what the controller asks, and variations of it by seed.

use std::sync::Mutex;
use std::time::Duration;

use wva::policy::params::RequiredSignals;
use wva::policy::signal::FreshnessBands;
use wva::signals::{
    CollectionSettings, Namespace, PromAnswer, PromApi, QueryResult, collect, history,
};

use super::history::Luck;

/// Keeps what it is asked.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl PromApi for Recorder {
    fn query<'a>(&'a self, promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        self.0.lock().unwrap().push(promql.to_owned());
        Box::pin(std::future::ready(Ok(QueryResult::default())))
    }

    fn history<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        self.query(promql, deadline)
    }
}

/// The beat of the loop, which is the step of a history.
const INTERVAL: Duration = Duration::from_secs(30);

/// All that a collection asks, for one namespace or for all, and the history of engines.
async fn collected(namespace: Option<&str>) -> Vec<String> {
    let recorder = Recorder::default();
    let settings = CollectionSettings {
        freshness: FreshnessBands::default(),
        namespace: namespace.map(|name| Namespace::parse(name).unwrap()),
        deadline: Duration::from_secs(1),
        max_samples: None,
        required_signals: RequiredSignals::Everything,
    };
    collect(&recorder, &settings, |_| Duration::ZERO).await;
    drop(history(&recorder, &settings, INTERVAL).await);
    recorder.0.into_inner().unwrap()
}

/// What the controller asks.
pub(super) async fn sent() -> Vec<String> {
    let mut sent = collected(None).await;
    sent.extend(collected(Some("ns-a")).await);
    let count = "count by (namespace, exported_namespace, variant_name) (wva_desired_replicas)";
    sent.extend([count.to_owned(), format!("{count} > 1")]);
    sent
}

const GAUGES: [&str; 7] = [
    "vllm:kv_cache_usage_perc",
    "vllm:num_requests_waiting",
    "sglang:token_usage",
    "inference_extension_flow_control_queue_size",
    "wva_desired_replicas",
    "up",
    "absent_from_everywhere",
];
const COUNTERS: [&str; 6] = [
    "vllm:request_success_total",
    "vllm:request_prompt_tokens_sum",
    "vllm:request_prompt_tokens_count",
    "sglang:e2e_request_latency_seconds_count",
    "llm_d_epp_scheduler_attempts_total",
    "vllm:time_to_first_token_seconds_count",
];
const MATCHERS: [&str; 7] = [
    "",
    "",
    "{namespace=\"ns-a\"}",
    "{engine=\"0\"}",
    "{engine=\"\",}",
    "{model_name=\"meta/\\\"llama\\\"\\\\8b\",namespace=\"ns-b\"}",
    "{status=\"success\"}",
];
const WINDOWS: [&str; 6] = ["30s", "1m", "2m", "5m", "315s", "1h"];
const STEPS: [&str; 4] = ["15s", "7s", "1m", "150s"];
const GROUPS: [&str; 6] = [
    "",
    "by (namespace)",
    "by (namespace, model_name, pod, pod_name, engine)",
    "without (engine)",
    "by (pod)",
    "without (instance, job, le)",
];

/// `G` stands for a gauge, `C` for a counter, `W` for a window, `S` for a step, `B` for a grouping,
/// and `A` for an aggregation.
const TEMPLATES: [&str; 19] = [
    "G",
    "C",
    "max_over_time(G[W])",
    "count_over_time(G[W])",
    "last_over_time(G[W])",
    "rate(C[W])",
    "timestamp(G)",
    "max_over_time(timestamp(G)[W:S])",
    "last_over_time((G)[W:S])",
    "max_over_time((G > 500)[W:S])",
    "max_over_time((sum B (G))[W:S])",
    "max_over_time((A B (G) or A B (rate(C[W])))[W:S])",
    "A B (G)",
    "A B (rate(C[W]))",
    "A B (max_over_time(G[W])) or A B (last_over_time(G[W]))",
    "A B (max_over_time(G[1m])) or on (namespace, pod) A B (last_over_time(G[W]))",
    "G or G",
    "G > 100",
    "label_replace(G, \"source\", \"gauge\", \"\", \"\")",
];

/// Every template once, filled in by chance.
pub(super) fn variations(luck: &mut Luck) -> Vec<String> {
    let fill = |template: &&str| {
        let mut text = String::new();
        let mut rest = template.chars().peekable();
        let mut before = ' ';
        while let Some(letter) = rest.next() {
            let after = rest.peek().copied().unwrap_or(' ');
            let alone = !before.is_alphanumeric() && !after.is_alphanumeric();
            let selector = |luck: &mut Luck, names: &[&str]| {
                format!("{}{}", luck.pick(names), luck.pick(&MATCHERS))
            };
            let filled = match letter {
                'G' if alone => selector(luck, &GAUGES),
                'C' if alone => selector(luck, &COUNTERS),
                'W' if alone => (*luck.pick(&WINDOWS)).to_owned(),
                'S' if alone => (*luck.pick(&STEPS)).to_owned(),
                'B' if alone => (*luck.pick(&GROUPS)).to_owned(),
                'A' if alone => (*luck.pick(&["sum", "max", "count"])).to_owned(),
                other => other.to_string(),
            };
            text.push_str(&filled);
            before = letter;
        }
        text
    };
    TEMPLATES.iter().map(fill).collect()
}
