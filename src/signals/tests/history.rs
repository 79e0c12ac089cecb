//! The history of engines: what is asked, and how the answer is read.

use std::sync::Mutex;
use std::time::Duration;

use crate::policy::key::ModelKey;
use crate::policy::params::RequiredSignals;
use crate::policy::signal::FreshnessBands;
use crate::signals::decode::Decoder;
use crate::signals::query::HISTORY_QUERIES;
use crate::signals::{CollectionSettings, PromAnswer, PromApi, QueryError, QueryResult, history};
use wva_base::moment::WallTime;

/// Answers a history with what it holds.
#[derive(Debug, Default)]
struct Archive {
    answer: QueryResult,
    asked: Mutex<Vec<String>>,
}

impl PromApi for Archive {
    fn query<'a>(&'a self, _promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        panic!("a history is one query of its own");
    }

    fn history<'a>(&'a self, promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        self.asked.lock().unwrap().push(promql.to_owned());
        Box::pin(std::future::ready(Ok(self.answer.clone())))
    }
}

/// Keeps no history.
#[derive(Debug)]
struct Forgetful;
impl PromApi for Forgetful {
    fn query<'a>(&'a self, _promql: &'a str, _deadline: Duration) -> PromAnswer<'a> {
        Box::pin(std::future::ready(Ok(QueryResult::default())))
    }
}

fn settings() -> CollectionSettings {
    CollectionSettings {
        required_signals: RequiredSignals::Everything,
        freshness: FreshnessBands::default(),
        namespace: None,
        deadline: Duration::from_secs(10),
        max_samples: None,
    }
}

impl Archive {
    fn push(&mut self, part: &str, source: &str, time: f64, value: f64) {
        let labels = [
            ("namespace", "ns"),
            ("model_name", "m"),
            ("pod", "p"),
            ("engine", "0"),
            ("source", source),
            ("part", part),
        ];
        self.answer.push(labels, time, value);
    }
}

#[tokio::test]
async fn one_query_asks_for_all_and_every_step_becomes_a_snapshot() {
    let mut archive = Archive::default();
    for (time, usage, sum) in [(120.0, 0.5, 0.16), (60.0, 0.3, 0.12)] {
        archive.push("engine_state", "vllm:kv_cache_usage_perc", time, usage);
        archive.push("engine_rates", "vllm:inter_token_latency_seconds_sum", time, sum);
        archive.push("engine_rates", "vllm:inter_token_latency_seconds_count", time, 10.0);
        // The same series in another window is another one.
        archive.push("request_sizes", "vllm:request_prompt_tokens_sum", time, 3000.0);
        archive.push("request_sizes", "vllm:request_prompt_tokens_count", time, 3.0);
    }
    archive.push("kv_cache_usage", "vllm:kv_cache_usage_perc", 180.0, 0.9);
    let steps = history(&archive, &settings(), Duration::from_secs(15)).await.unwrap();
    let asked = archive.asked.into_inner().unwrap();
    assert_eq!(asked.len(), HISTORY_QUERIES);
    assert!(asked[0].starts_with('(') && asked[0].ends_with(")[20m:30s]"), "{}", asked[0]);
    assert!(asked[0].contains(
        "max by (namespace, model_name, pod, pod_name, engine, dp_rank) (vllm:kv_cache_usage_perc)"
    ));
    assert!(!asked[0].contains("last_over_time") && !asked[0].contains("timestamp("));
    let times: Vec<WallTime> = steps.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [WallTime(60_000), WallTime(120_000), WallTime(180_000)]);
    for ((_, metrics), (usage, latency)) in steps.iter().zip([(0.3, 0.012), (0.5, 0.016)]) {
        let pod = &metrics.models[&ModelKey::new("ns", "m")]["p"];
        let value = |sample: Option<crate::policy::snapshot::Sample>| sample.unwrap().value;
        assert!((value(pod.kv_usage_now) - usage).abs() < 1e-12);
        assert!((value(pod.inter_token_latency) - latency).abs() < 1e-12);
        assert!((value(pod.input_tokens) - 1_000.0).abs() < 1e-9);
        assert_eq!(pod.kv_usage_now.unwrap().age, Duration::ZERO);
        assert!(pod.queue_length.is_none() && metrics.failures.is_empty());
    }
    // What belongs to no query of a history says nothing.
    assert!(steps[2].1.models.is_empty());
}

#[tokio::test]
async fn a_long_interval_has_fewer_steps_and_no_answer_is_no_history() {
    let archive = Archive::default();
    let steps = history(&archive, &settings(), Duration::from_mins(5)).await.unwrap();
    assert_eq!(steps, []);
    assert!(archive.asked.lock().unwrap()[0].ends_with(")[30m:5m]"));
    let error = history(&Forgetful, &settings(), Duration::from_mins(1)).await.unwrap_err();
    assert!(error.to_string().contains("no history is kept"), "{error}");
}

#[test]
fn a_matrix_is_read_where_a_history_is_expected_and_nowhere_else() {
    let matrix = br#"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{"pod":"a"},"values":[[60,"0.5"],[120.5,"NaN"]]},
        {"metric":{"pod":"b"},"values":[]}]}}"#;
    let read = |mut decoder: Decoder, body: &[u8]| {
        decoder.feed(body).unwrap();
        decoder.finish()
    };
    let result = read(Decoder::of_history(10_000), matrix).unwrap();
    let samples: Vec<(String, f64, f64)> = result
        .samples()
        .map(|sample| (sample.label("pod").unwrap().to_string(), sample.time, sample.value))
        .collect();
    assert_eq!(samples.len(), 2);
    assert_eq!((samples[0].1, samples[0].2), (60.0, 0.5));
    assert!((samples[1].1 - 120.5).abs() < 1e-12 && samples[1].2.is_nan() && samples[1].0 == "a");
    let error = read(Decoder::new(10_000), matrix).unwrap_err().to_string();
    assert!(error.contains("it is a matrix where a vector was expected"), "{error}");
    let vector = br#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"pod":"a"},"value":[60,"0.5"]}]}}"#;
    let error = read(Decoder::of_history(10_000), vector).unwrap_err().to_string();
    assert!(error.contains("it is a vector where a matrix was expected"), "{error}");
    let mut small = Decoder::of_history(20);
    assert!(matches!(small.feed(matrix), Err(QueryError::TooLarge(20))));
}
