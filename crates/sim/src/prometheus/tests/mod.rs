//! Scraping, staleness, faults and the API; the evaluator is compared with a real Prometheus by the
//! cases of the cluster tests, and what has no counterpart there is tested here.

mod pages;
mod serving;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Conflicts, Prometheus, QueryValue, ScrapeTarget, Scraped, TargetId};
use wva_base::moment::WallTime;

/// The beginning of every test, in milliseconds; a multiple of all intervals.
const START: i64 = 1_700_000_040_000;

/// No values.
const NONE: [f64; 0] = [];

fn seconds(after: i64) -> WallTime {
    WallTime(START + after * 1_000)
}

fn target(pod: &str) -> ScrapeTarget {
    let labels = [("job", "pods"), ("namespace", "ns"), ("pod", pod)];
    ScrapeTarget {
        labels: labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        address: pod.to_owned(),
        interval: Duration::from_secs(10),
        conflicts: Conflicts::Exported,
    }
}

/// A server with one target, of which the tests themselves say when it is scraped.
fn server(target: ScrapeTarget) -> (Prometheus, TargetId) {
    let mut server = Prometheus::default();
    server.set_targets(vec![target], seconds(0));
    let id = server.due(seconds(10))[0].0;
    (server, id)
}

/// The value of an expression: labels without name, job, namespace and pod, and values.
fn asked(server: &Prometheus, promql: &str, at: i64) -> BTreeMap<String, f64> {
    match server.query(promql, seconds(at)).unwrap() {
        QueryValue::Vector(samples) => {
            let known = ["__name__", "job", "namespace", "pod"].map(str::to_owned);
            let shown = samples.into_iter().map(|sample| {
                let labels = sample.labels.without(&known);
                let labels = labels.iter().map(|(name, value)| format!("{name}={value:?}"));
                let labels: Vec<String> = labels.collect();
                (format!("{{{}}}", labels.join(", ")), sample.value)
            });
            shown.collect()
        }
        QueryValue::Matrix(_) => panic!("{promql} has values at several moments"),
    }
}

fn values(server: &Prometheus, promql: &str, at: i64) -> Vec<f64> {
    asked(server, promql, at).into_values().collect()
}

fn page(server: &mut Prometheus, id: TargetId, at: i64, text: &str) {
    server.scraped(id, seconds(at), Scraped::Text(text));
}
