//! Answers of the Prometheus API.

use std::fmt::Write as _;

use wva::signals::decode::{Decoder, error_text};
use wva::signals::{QueryError, QueryResult};

use crate::campaign::{Campaign, Memory, Outcome};
use crate::mutate::Grammar;
use crate::seeds::{owned, texts, vectors};

/// Largest body that is read.
const LIMIT: u64 = 64 * 1024;

const LONGEST_ERROR: usize = 2_000;

fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<QueryResult, QueryError> {
    let mut decoder = Decoder::new(LIMIT);
    for chunk in chunks {
        decoder.feed(chunk)?;
    }
    decoder.finish()
}

/// Everything that an answer says, as text, so that NaN equals itself.
fn show(answer: &Result<QueryResult, QueryError>) -> String {
    let result = match answer {
        Ok(result) => result,
        Err(error) => return error.to_string(),
    };
    let mut text = format!("{:?}", result.warnings());
    for sample in result.samples() {
        write!(text, " {:?}@{}=", sample.time, sample.value).unwrap();
        for (name, value) in sample.labels() {
            write!(text, "{name:?}:{value:?},").unwrap();
        }
    }
    text
}

fn grammar() -> Grammar {
    let vectors = vectors(include_str!("../vectors/source.yaml"));
    let mut seeds = texts(&vectors, "body");
    seeds.extend(owned([
        r#"{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:1"}"#,
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"a","model_name":"meta-llama/Llama-3.1-8B","pod":"p-0","source":"vllm:kv_cache_usage_perc"},"value":[1789999990.5,"0.5"]},{"metric":{"pod":"p-1"},"value":[1789999990.5,"1789999985.25"]}]},"warnings":["w"],"infos":["i"]}"#,
    ]));
    let words = owned([
        "\"status\"",
        "\"success\"",
        "\"data\"",
        "\"resultType\"",
        "\"vector\"",
        "\"result\"",
        "\"metric\"",
        "\"value\"",
        "\"histogram\"",
        "\"warnings\"",
        "\"errorType\"",
        "]}}",
        "}]}}",
        "[1,\"2\"]",
        ",{\"metric\":{},\"value\":[1,\"2\"]}",
    ]);
    Grammar::new(seeds, words, 4 * 1024)
}

#[test]
fn prometheus_answer() {
    let check = |input: &[u8]| {
        let whole = read([input]);
        let shown = show(&whole);
        let size = 1 + input.len() % 13;
        assert_eq!(shown, show(&read(input.chunks(size))), "in chunks of {size}");
        if whole.is_err() {
            assert!(shown.len() <= LONGEST_ERROR, "{shown}");
        }
        Outcome::from(&whole)
    };
    Campaign::run("prometheus::prometheus_answer", grammar(), Memory::kib(32, 40), &check);
}

#[test]
fn prometheus_error() {
    let check = |input: &[u8]| {
        let body = String::from_utf8_lossy(input);
        let text = error_text(&body);
        assert!(text.len() <= LONGEST_ERROR, "{text}");
        assert!(!text.contains(char::is_control), "{text:?}");
        Outcome::from(text.contains("bad_data"))
    };
    Campaign::run("prometheus::prometheus_error", grammar(), Memory::kib(16, 40), &check);
}
