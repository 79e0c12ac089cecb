//! Answers that are refusals, and what they ask for.

use std::time::Duration;

use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use serde_json::json;

use crate::apiserver::Wire;

pub(super) fn asks_for(answer: &Response<Wire>) -> Option<Duration> {
    let text = answer.headers().get("retry-after")?.to_str().ok()?;
    text.parse().ok().map(Duration::from_secs)
}

pub(super) fn refusal(code: u16, after: Option<u64>) -> Response<Wire> {
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        429 => "TooManyRequests",
        504 => "Timeout",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "the way to the server is disturbed", "reason": reason, "code": code,
    });
    let mut builder = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    if let Some(seconds) = after {
        builder = builder.header("retry-after", seconds);
        if let Some(status) = status.as_object_mut() {
            status.insert("details".to_owned(), json!({"retryAfterSeconds": seconds}));
        }
    }
    let body = |text: String| Full::new(Bytes::from(text)).boxed_unsync();
    let answer = builder.body(body(status.to_string()));
    answer.unwrap_or_else(|_header| Response::new(body(String::new())))
}
