//! Hands samples to a real Prometheus at times of our choice, marks at the end of series included:
//! the remote-write protocol, as much of it as that takes.

use std::collections::{BTreeMap, BTreeSet};

use wva_sim::prometheus::Conflicts;

use super::history::{Course, Sample};
use crate::harness::fault::{Fault, Result};

/// The value that marks the end of a series.
const STALE: u64 = 0x7ff0_0000_0000_0002;

type Labels = BTreeMap<String, String>;

/// Series with their samples in order.
pub(super) type Stored = BTreeMap<Labels, Vec<(i64, f64)>>;

/// What a Prometheus stores of these scrapes. Worked out here anew, not by what is tested.
pub(super) fn stored(courses: &[Course]) -> Stored {
    let mut stored = Stored::new();
    for course in courses {
        let mut live: BTreeSet<Labels> = BTreeSet::new();
        for scrape in &course.scrapes {
            let mut put = |labels: Labels, value: f64| {
                stored.entry(labels).or_default().push((scrape.time, value));
            };
            let mut shown = BTreeSet::new();
            for sample in scrape.page.iter().flatten() {
                let labels = labels(course, sample);
                put(labels.clone(), sample.2);
                shown.insert(labels);
            }
            for ended in live.difference(&shown) {
                put(ended.clone(), f64::from_bits(STALE));
            }
            live = shown;
            let count = scrape.page.as_ref().map_or(0, Vec::len);
            let count = f64::from(u32::try_from(count).unwrap());
            let up = f64::from(u8::from(scrape.page.is_some()));
            let reports = [
                ("up", up),
                ("scrape_samples_scraped", count),
                ("scrape_samples_post_metric_relabeling", count),
            ];
            for (name, value) in reports {
                let mut labels = course.target.labels.clone();
                labels.insert("__name__".to_owned(), name.to_owned());
                put(labels, value);
            }
        }
    }
    stored
}

fn labels(course: &Course, (name, own, _): &Sample) -> Labels {
    let mut labels = course.target.labels.clone();
    for (label, value) in own {
        let exported = match course.target.conflicts {
            Conflicts::Exported if course.target.labels.contains_key(label) => {
                format!("exported_{label}")
            }
            _ => label.clone(),
        };
        labels.insert(exported, value.clone());
    }
    labels.insert("__name__".to_owned(), name.clone());
    labels
}

/// Sends the samples.
pub(super) async fn send(http: &reqwest::Client, url: &str, stored: &Stored) -> Result {
    let response = http
        .post(format!("{url}/api/v1/write"))
        .header("Content-Encoding", "snappy")
        .header("Content-Type", "application/x-protobuf")
        .header("X-Prometheus-Remote-Write-Version", "0.1.0")
        .body(snappy(&request(stored)))
        .send()
        .await?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let text = response.text().await?;
    Err(Fault::new(format!("samples not taken: {status}: {text}")))
}

/// A `prometheus.WriteRequest`.
fn request(stored: &Stored) -> Vec<u8> {
    let mut request = Vec::new();
    for (labels, samples) in stored {
        let mut series = Vec::new();
        for (name, value) in labels {
            let mut label = Vec::new();
            field(&mut label, 1, name.as_bytes());
            field(&mut label, 2, value.as_bytes());
            field(&mut series, 1, &label);
        }
        for (time, value) in samples {
            // Field 1 is a double, field 2 a variable-length integer.
            let mut sample = vec![1 << 3 | 1];
            sample.extend(value.to_bits().to_le_bytes());
            sample.push(2 << 3);
            varint(&mut sample, u64::try_from(*time).unwrap());
            field(&mut series, 2, &sample);
        }
        field(&mut request, 1, &series);
    }
    request
}

fn field(message: &mut Vec<u8>, number: u8, content: &[u8]) {
    message.push(number << 3 | 2);
    varint(message, u64::try_from(content.len()).unwrap());
    message.extend(content);
}

fn varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    message.push(u8::try_from(number).unwrap());
}

/// The block format of Snappy, without compressing anything.
fn snappy(content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    varint(&mut block, u64::try_from(content.len()).unwrap());
    for chunk in content.chunks(1 << 16) {
        // A literal whose length less one follows in two bytes.
        block.push(61 << 2);
        block.extend(u16::try_from(chunk.len() - 1).unwrap().to_le_bytes());
        block.extend(chunk);
    }
    block
}
