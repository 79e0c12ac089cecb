//! The parser of answers: vectors, limits, and valid answers in any chunks. What is no valid answer is
//! left to `tests/fuzz/prometheus.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use serde::Deserialize;

use super::vectors::load;
use crate::policy::signal::FreshnessBands;
use crate::policy::snapshot::Sample;
use crate::signals::decode::Decoder;
use crate::signals::error::QueryError;
use crate::signals::resolver::SampleQuality;
use crate::signals::result::QueryResult;

const LIMIT: u64 = 1024 * 1024;

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<QueryResult, QueryError> {
    let mut decoder = Decoder::new(LIMIT);
    for chunk in chunks {
        decoder.feed(chunk)?;
    }
    decoder.finish()
}

/// Everything an answer says, as text, so that NaN equals itself.
fn show(answer: &Result<QueryResult, QueryError>) -> String {
    let result = match answer {
        Ok(result) => result,
        Err(error) => return error.to_string(),
    };
    let mut text = format!("{:?}", result.warnings());
    for sample in result.samples() {
        let labels: Vec<_> = sample.labels().collect();
        write!(text, " {labels:?}@{}={}", sample.time, sample.value).unwrap();
    }
    text
}

#[derive(Deserialize)]
struct Source {
    answers: Vec<AnswerCase>,
    ages: Vec<AgeCase>,
}

#[derive(Deserialize)]
struct AnswerCase {
    id: String,
    body: String,
    samples: Option<Vec<SampleCase>>,
    #[serde(default)]
    warnings: Vec<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct SampleCase {
    labels: BTreeMap<String, String>,
    time: f64,
    value: f64,
}

#[derive(Deserialize)]
struct AgeCase {
    id: String,
    age: u64,
    fresh: u64,
    standing: String,
}

#[test]
fn answers_are_read_as_expected() {
    for case in load::<Source>("source.yaml").answers {
        let id = &case.id;
        let answer = decode([case.body.as_bytes()]);
        match (case.samples, case.error) {
            (Some(samples), None) => {
                let mut expected = QueryResult::default();
                for sample in &samples {
                    let labels = sample.labels.iter().map(|(name, text)| (&**name, &**text));
                    expected.push(labels, sample.time, sample.value);
                }
                for warning in case.warnings {
                    expected.warn(warning);
                }
                assert_eq!(show(&sorted(answer)), show(&sorted(Ok(expected))), "{id}");
            }
            (None, Some(part)) => {
                let error = answer.expect_err(id).to_string();
                assert!(error.contains(&part), "{id}: {error}");
            }
            (_, _) => panic!("{id} needs either samples or an error"),
        }
    }
}

/// The order of labels does not matter.
fn sorted(answer: Result<QueryResult, QueryError>) -> Result<QueryResult, QueryError> {
    let answer = answer?;
    let mut sorted = QueryResult::default();
    for sample in answer.samples() {
        let labels: BTreeMap<_, _> = sample.labels().collect();
        let labels = labels.iter().map(|(name, text)| (&***name, &***text));
        sorted.push(labels, sample.time, sample.value);
    }
    for warning in answer.warnings() {
        sorted.warn(warning.clone());
    }
    Ok(sorted)
}

#[test]
fn ages_are_judged_as_expected() {
    use std::time::Duration;
    for case in load::<Source>("source.yaml").ages {
        let bands =
            FreshnessBands { fresh: Duration::from_secs(case.fresh), ..FreshnessBands::default() };
        let age = Duration::from_secs(case.age);
        let expected = match case.standing.as_str() {
            "fresh" => SampleQuality::Fresh,
            "no_shrink" => SampleQuality::NoShrink,
            other => panic!("{}: {other}", case.id),
        };
        assert_eq!(SampleQuality::of(Sample { value: 1.0, age }, &bands), expected, "{}", case.id);
    }
}

#[test]
fn a_body_may_have_its_limit_and_not_one_byte_more() {
    let body = br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let length = u64::try_from(body.len()).unwrap();
    let read = |limit| {
        let mut decoder = Decoder::new(limit);
        body.chunks(7).try_for_each(|chunk| decoder.feed(chunk))?;
        decoder.finish()
    };
    assert!(read(length).unwrap().is_empty());
    assert_eq!(read(length - 1).unwrap_err(), QueryError::TooLarge(length - 1));
}

#[test]
fn nothing_can_make_the_buffers_grow_without_end() {
    let start = br#"{"status":"success","data":{"resultType":"vector","result":["#;
    let long_label = [&start[..], br#"{"metric":{"a":""#, &vec![b'x'; 70_000]].concat();
    let error = decode([&long_label[..]]).unwrap_err().to_string();
    assert!(error.contains("one of its samples is absurdly long"), "{error}");

    let long_text = [br#"{"status":""#, &vec![b'x'; 70_000][..]].concat();
    for size in [1, 1000, 70_011] {
        let error = decode(long_text.chunks(size)).unwrap_err().to_string();
        assert!(error.contains("more than 65536 bytes besides its samples"), "{error}");
    }
}

/// A value that is no number, a field that is none: whatever is quoted of them is short.
#[test]
fn long_texts_of_an_answer_are_quoted_in_part() {
    let long = "9a".repeat(4_000);
    let with = |sample: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{sample}]}}}}"#)
    };
    for body in [
        with(&format!(r#"{{"metric":{{}},"value":[1,"{long}"]}}"#)),
        with(&format!(r#"{{"metric":"{long}","value":[1,"2"]}}"#)),
        format!(r#"{{"status":{{}},"data":"{long}"}}"#),
        format!(r#"{{"status":"success","data":"{long}"}}"#),
    ] {
        let error = decode([body.as_bytes()]).unwrap_err().to_string();
        assert!(error.len() < 1_000, "{} bytes: {error:.300}", error.len());
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for (open, inside) in [("[", false), ("{\"a\":", true), ("[", true)] {
        let start = if inside {
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":"#
        } else {
            ""
        };
        let body = format!("{start}{}", open.repeat(10_000));
        assert!(decode([body.as_bytes()]).is_err());
    }
}

/// A valid answer with the given samples.
fn body(samples: &[(BTreeMap<String, String>, f64)]) -> String {
    let elements: Vec<_> = samples
        .iter()
        .map(|(labels, value)| {
            let metric = serde_json::to_string(labels).unwrap();
            format!("{{\"metric\":{metric},\"value\":[1760000000.123,\"{value}\"]}}")
        })
        .collect();
    format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{}]}}}}"#,
        elements.join(" , ")
    )
}

fn cut(bytes: &[u8], sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut chunks = Vec::new();
    for size in sizes {
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks.push(rest.to_vec());
    chunks
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map("[a-z_]{1,8}|result|data", any::<String>(), 0..4)
}

proptest! {
    #[test]
    fn every_valid_answer_is_read_exactly(
        samples in proptest::collection::vec((labels(), any::<f64>()), 0..6),
        sizes in proptest::collection::vec(0usize..60, 0..12),
    ) {
        let text = body(&samples);
        let chunks = cut(text.as_bytes(), &sizes);
        let mut expected = QueryResult::default();
        for (labels, value) in &samples {
            let labels = labels.iter().map(|(name, text)| (&**name, &**text));
            expected.push(labels, 1_760_000_000.123, *value);
        }
        let read = decode(chunks.iter().map(Vec::as_slice));
        prop_assert_eq!(show(&read), show(&Ok(expected)));
    }

    #[test]
    fn every_cut_off_answer_is_refused(
        samples in proptest::collection::vec((labels(), any::<f64>()), 0..4),
        share in 0.0f64..1.0,
    ) {
        let text = body(&samples);
        #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss,
            clippy::cast_precision_loss, reason = "a share of a small length")]
        let end = (text.len() as f64 * share) as usize;
        prop_assert!(decode([&text.as_bytes()[..end]]).is_err());
    }
}
