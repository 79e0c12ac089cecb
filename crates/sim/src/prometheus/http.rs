//! The HTTP API, as far as a controller and people with `curl` use it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

use super::eval::QueryValue;
use super::labels::LabelSet;
use super::number::{milliseconds, text, time};
use super::refusal::{FaultKind, QueryRefusal};
use super::server::{Outage, Prometheus, QueryAnswer};
use wva_base::moment::WallTime;

/// The version that the answers follow.
const VERSION: &str = "3.15.0";

impl Prometheus {
    /// The answer to a request; `None` where nobody would listen.
    pub fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        body: &[u8],
        now: WallTime,
    ) -> Option<Response<Full<Bytes>>> {
        match self.outage() {
            Some(Outage::Unreachable) => return None,
            Some(Outage::Status(status)) => return Some(plain(status, status.as_str())),
            None => {}
        }
        let read = matches!(*method, Method::GET | Method::POST);
        Some(match uri.path() {
            "/-/healthy" => plain(StatusCode::OK, "Prometheus Server is Healthy.\n"),
            "/-/ready" => plain(StatusCode::OK, "Prometheus Server is Ready.\n"),
            "/api/v1/query" if read => self.answer_query(uri, body, now),
            "/api/v1/status/buildinfo" if *method == Method::GET => success(
                &json!({"version": VERSION, "revision": "", "branch": "", "buildUser": "",
                    "buildDate": "", "goVersion": ""}),
                &[],
            ),
            "/api/v1/query" | "/api/v1/status/buildinfo" => {
                plain(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed")
            }
            path if path.starts_with("/api/") => failure(&QueryRefusal {
                kind: FaultKind::NotFound,
                text: format!("{path} is not part of this simulated Prometheus"),
            }),
            _ => plain(StatusCode::NOT_FOUND, "404 page not found\n"),
        })
    }

    fn answer_query(&self, uri: &Uri, body: &[u8], now: WallTime) -> Response<Full<Bytes>> {
        // Of two values of one name the first counts, and a form goes before the query of the URI.
        let mut parameters = BTreeMap::new();
        let query = uri.query().unwrap_or_default();
        for part in [body, query.as_bytes()] {
            for (name, value) in form_urlencoded::parse(part) {
                parameters.entry(name).or_insert(value);
            }
        }
        let parameter = |name: &str| parameters.get(name).map(|value| &**value);
        let at = match parameter("time").filter(|text| !text.is_empty()) {
            None => now,
            Some(text) => {
                let Some(at) = instant(text) else {
                    let problem = format!(
                        "invalid time value for 'time': cannot parse {text:?} to a valid timestamp"
                    );
                    return failure(&QueryRefusal::parameter("time", &problem));
                };
                at
            }
        };
        match self.query_at(parameter("query").unwrap_or_default(), at, now) {
            Ok(QueryAnswer { value, warnings }) => success(&data(&value, at), &warnings),
            Err(refusal) => failure(&refusal),
        }
    }
}

/// A time in seconds since the Unix epoch, or as RFC 3339 writes it.
fn instant(text: &str) -> Option<WallTime> {
    if let Ok(seconds) = text.parse::<f64>() {
        let size = Duration::try_from_secs_f64(seconds.abs()).ok()?;
        let size = milliseconds(size.checked_add(Duration::from_micros(500))?);
        return Some(WallTime(if seconds < 0.0 { -size } else { size }));
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(WallTime(time.as_millisecond()))
}

fn data(value: &QueryValue, WallTime(at): WallTime) -> Value {
    let pair = |at: i64, value: f64| json!([time(at), text(value)]);
    let result = match value {
        QueryValue::Scalar(number) => pair(at, *number),
        QueryValue::Vector(samples) => samples
            .iter()
            .map(|one| json!({"metric": metric(&one.labels), "value": pair(at, one.value)}))
            .collect(),
        QueryValue::Matrix(all) => all
            .iter()
            .map(|one| {
                let values = one.values.iter().map(|(at, value)| pair(*at, *value));
                json!({"metric": metric(&one.labels), "values": values.collect::<Value>()})
            })
            .collect(),
    };
    json!({"resultType": value.kind(), "result": result})
}

fn metric(labels: &LabelSet) -> Value {
    let pairs = labels
        .iter()
        .map(|(name, value)| (name.to_owned(), Value::from(value)));
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn success(data: &Value, warnings: &[String]) -> Response<Full<Bytes>> {
    let mut document = json!({"status": "success", "data": data});
    if let (Some(document), false) = (document.as_object_mut(), warnings.is_empty()) {
        document.insert("warnings".to_owned(), warnings.into());
    }
    document_of(StatusCode::OK, &document)
}

fn failure(refusal: &QueryRefusal) -> Response<Full<Bytes>> {
    let status = StatusCode::from_u16(refusal.kind.status());
    let document = json!({
        "status": "error", "errorType": refusal.kind.as_str(), "error": refusal.text,
    });
    document_of(
        status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        &document,
    )
}

fn document_of(status: StatusCode, document: &Value) -> Response<Full<Bytes>> {
    respond(status, "application/json", document.to_string())
}

fn plain(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", text.to_owned())
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
