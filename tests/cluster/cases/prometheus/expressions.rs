//! What both servers are asked: what the controller asks, and variations of it by seed.

use std::sync::Mutex;
use std::time::Duration;

use futures::future::BoxFuture;
use wva::policy::params::RequiredSignals;
use wva::policy::signal::FreshnessBands;
use wva::signals::{
    CollectionSettings, Namespace, PromApi, QueryError, QueryResult, collect, history,
};

use super::history::Luck;

/// Keeps what it is asked.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<String>>);

impl PromApi for Recorder {
    fn query<'a>(
        &'a self,
        promql: &'a str,
        _deadline: Duration,
    ) -> BoxFuture<'a, Result<QueryResult, QueryError>> {
        self.0.lock().unwrap().push(promql.to_owned());
        Box::pin(std::future::ready(Ok(QueryResult::default())))
    }

    fn history<'a>(
        &'a self,
        promql: &'a str,
        deadline: Duration,
    ) -> BoxFuture<'a, Result<QueryResult, QueryError>> {
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
const MATCHERS: [&str; 12] = [
    "",
    "",
    "{namespace=\"ns-a\"}",
    "{namespace!=\"ns-a\"}",
    "{pod=~\"llama-.*\"}",
    "{pod!~\".*-0\",namespace=~\"ns-a|ns-b\"}",
    "{engine=\"0\"}",
    "{engine!=\"\"}",
    "{engine=\"\"}",
    "{model_name=\"meta/\\\"llama\\\"\\\\8b\"}",
    "{pod=~\"(llama|epp)-[0-9]+\",}",
    "{status=\"success\"}",
];
const WINDOWS: [&str; 6] = ["30s", "1m", "2m", "5m", "315s", "1h"];
const STEPS: [&str; 5] = ["15s", "7s", "1m", "", "2m30s"];
const GROUPS: [&str; 6] = [
    "",
    "by (namespace)",
    "by (namespace, model_name, pod, pod_name, engine)",
    "without (engine)",
    "by (pod)",
    "without (instance, job, le)",
];

/// `G` stands for a gauge, `C` for a counter, `W` for a window, `S` for a step, `B` for a grouping,
/// `A` for an aggregation, `T` for a time in the past.
const TEMPLATES: [&str; 50] = [
    "G",
    "C",
    "G T",
    "{__name__=~\"vllm:.*\"}",
    "{__name__=~\"vllm:num_.+|up\",namespace=\"ns-b\"}",
    "max_over_time(G[W] T)",
    "min_over_time(G[W])",
    "avg_over_time(G[W])",
    "sum_over_time(G[W])",
    "count_over_time(G[W])",
    "last_over_time(G[W])",
    "last_over_time({__name__=~\"vllm:num.*\"}[W])",
    "max_over_time({__name__=~\"vllm:num.*\"}[W])",
    "rate(C[W] T)",
    "increase(C[W])",
    "delta(G[W])",
    "timestamp(G T)",
    "timestamp(sum(G))",
    "time() - timestamp(G)",
    "max_over_time(timestamp(G)[W:S] T)",
    "last_over_time(G[W:S])",
    "avg_over_time(rate(C[1m])[W:S])",
    "increase(C[W:S])",
    "max_over_time((G > 500)[W:S])",
    "max_over_time((sum B (G))[W:S])",
    "A B (G)",
    "A(G) B",
    "A B (rate(C[W]))",
    "A B (max_over_time(G[W])) or A B (last_over_time(G[W]))",
    "A B (max_over_time(G[1m])) or on (namespace, pod) A B (last_over_time(G[W]))",
    "G or G",
    "G and C",
    "G and on (pod) C",
    "G unless on (namespace, pod) G",
    "G unless ignoring (engine) G",
    "G > 100",
    "100 < G",
    "G >= bool 700",
    "G == G",
    "G != bool 0",
    "-G",
    "G * 2 + 1 / 3 - 7 % 4 ^ 2",
    "C / C",
    "C / ignoring (engine) C",
    "C / on (namespace, pod) group_left (model_name) sum by (namespace, pod, model_name) (C)",
    "sum by (namespace) (C) * on (namespace) group_right G",
    "label_replace(G, \"source\", \"gauge\", \"\", \"\")",
    "label_replace(G, \"pod\", \"$2-$1\", \"pod\", \"(.*)-([0-9]+)\")",
    "histogram_quantile(0.9, sum by (le, namespace, pod) (rate(vllm:time_to_first_token_seconds_bucket[W])))",
    "histogram_quantile(0.5, vllm:time_to_first_token_seconds_bucket) or vector(1)",
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
                'T' if alone => (*luck.pick(&["", "offset 37s", "offset 6m"])).to_owned(),
                'A' if alone => (*luck.pick(&["sum", "max", "min", "avg", "count"])).to_owned(),
                other => other.to_string(),
            };
            text.push_str(&filled);
            before = letter;
        }
        text
    };
    TEMPLATES.iter().map(fill).collect()
}
