//! Answers as the HTTP API of Prometheus writes them.

use serde_json::{Map, Value, json};

use super::eval::QueryValue;
use super::labels::LabelSet;
use super::number::seconds;
use super::server::Prometheus;
use wva_base::moment::WallTime;

impl Prometheus {
    /// Returns the status and the document of an answer to a query.
    pub fn document(&self, promql: &str, now: WallTime) -> (u16, Value) {
        if self.is_down() {
            return (503, refused("unavailable", "the server is down"));
        }
        match self.query(promql, now) {
            Ok(answer) => {
                let result = series(&answer, now);
                let data = json!({"resultType": answer.kind(), "result": result});
                (200, json!({"status": "success", "data": data}))
            }
            Err(refusal) => {
                let kind = refusal.kind.as_str();
                (refusal.kind.status(), refused(kind, &refusal.text))
            }
        }
    }
}

fn refused(kind: &str, error: &str) -> Value {
    json!({"status": "error", "errorType": kind, "error": error})
}

fn series(value: &QueryValue, WallTime(now): WallTime) -> Vec<Value> {
    let point = |time: i64, value: f64| json!([seconds(time), text(value)]);
    match value {
        QueryValue::Vector(samples) => {
            let each = samples.iter();
            each.map(|one| json!({"metric": metric(&one.labels), "value": point(now, one.value)}))
                .collect()
        }
        QueryValue::Matrix(all) => {
            let each = all.iter().map(|past| {
                let values = past.values.iter();
                let values: Vec<Value> = values.map(|(time, value)| point(*time, *value)).collect();
                json!({"metric": metric(&past.labels), "values": values})
            });
            each.collect()
        }
    }
}

fn metric(labels: &LabelSet) -> Map<String, Value> {
    let pairs = labels.iter();
    pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

/// As Go writes a number.
fn text(value: f64) -> String {
    if value.is_infinite() {
        let sign = if value.is_sign_positive() { '+' } else { '-' };
        return format!("{sign}Inf");
    }
    value.to_string()
}
