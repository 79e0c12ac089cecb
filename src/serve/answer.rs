//! Answers in the forms that several routes share.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::access::AccessDenied;

/// A whole answer, made from memory.
pub type HttpResponse = Response<Full<Bytes>>;

/// A line of text.
pub fn plain(status: StatusCode, text: &str) -> HttpResponse {
    typed(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

/// A document for people and programs.
pub fn json(status: StatusCode, value: &impl Serialize) -> HttpResponse {
    match serde_json::to_string_pretty(value) {
        Ok(text) => typed(status, "application/json", text),
        Err(error) => {
            tracing::error!(%error, "document cannot be encoded");
            plain(StatusCode::INTERNAL_SERVER_ERROR, "cannot be encoded; see the log")
        }
    }
}

pub(super) fn typed(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(super) fn only_get() -> HttpResponse {
    let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    refused
}

pub(super) fn status_of(refusal: &AccessDenied) -> StatusCode {
    match refusal {
        AccessDenied::Unauthenticated => StatusCode::UNAUTHORIZED,
        AccessDenied::Forbidden { .. } => StatusCode::FORBIDDEN,
        AccessDenied::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Says which kind of proof is wanted, where one is.
pub(super) fn challenge(mut answer: HttpResponse) -> HttpResponse {
    if answer.status() == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}
