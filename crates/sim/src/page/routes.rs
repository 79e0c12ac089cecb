//! What is served where, and what the document may do.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;

use super::film::Film;
use wva::page;
use wva::serve::answer::{HttpResponse, plain};

#[derive(Debug)]
pub(super) struct PageRoutes {
    film: Film,
    document: Bytes,
    policy: HeaderValue,
}

impl PageRoutes {
    pub(super) fn new(film: Film) -> Self {
        // It is ASCII; a document without its script would say why nothing is drawn.
        let policy = HeaderValue::from_str(&page::live_policy())
            .unwrap_or_else(|_invalid| HeaderValue::from_static("default-src 'none'"));
        Self { film, document: page::live("wva-sim demo").into(), policy }
    }

    fn document(&self) -> HttpResponse {
        let mut answer = respond("text/html; charset=utf-8", self.document.clone());
        let headers = answer.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(
            HeaderName::from_static("x-content-type-options"),
            HeaderValue::from_static("nosniff"),
        );
        answer
    }

    /// `after` is the number of the last frame that the reader knows.
    fn frames(&self, query: &str) -> HttpResponse {
        let after = form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| name == "after")
            .map_or(Ok(0), |(_, number)| number.parse());
        let Ok(after) = after else {
            return plain(StatusCode::BAD_REQUEST, "after has to be a number");
        };
        match serde_json::to_vec(&self.film.after(after)) {
            Ok(document) => respond("application/json", document.into()),
            Err(error) => {
                tracing::error!(%error, "frames cannot be encoded");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "frames cannot be encoded")
            }
        }
    }

    /// One of the two that it has.
    pub(super) fn answer(&self, head: &Parts) -> HttpResponse {
        match (&head.method, head.uri.path()) {
            (&Method::GET | &Method::HEAD, "/") => self.document(),
            (&Method::GET, "/frames") => self.frames(head.uri.query().unwrap_or_default()),
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET"),
        }
    }
}

fn respond(kind: &'static str, body: Bytes) -> HttpResponse {
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
