//! What is served where, and what the document may do.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use ring::digest::{SHA256, digest};

use super::film::Film;
use wva::serve::access::AccessDenied;
use wva::serve::answer::HttpResponse;
use wva::serve::connection::Routes;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("plot.js"), include_str!("page.js"));

#[derive(Debug)]
pub(super) struct PageRoutes {
    film: Film,
    document: Bytes,
    policy: HeaderValue,
}

impl PageRoutes {
    pub(super) fn new(film: Film) -> Self {
        let document = DOCUMENT
            .replace("/* style */", STYLE)
            .replace("/* script */", SCRIPT);
        Self {
            film,
            document: document.into(),
            policy: policy(),
        }
    }

    fn document(&self) -> HttpResponse {
        let mut answer = respond(
            StatusCode::OK,
            "text/html; charset=utf-8",
            self.document.clone(),
        );
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
            return text(StatusCode::BAD_REQUEST, "after has to be a number\n");
        };
        match serde_json::to_vec(&self.film.after(after)) {
            Ok(document) => respond(StatusCode::OK, "application/json", document.into()),
            Err(error) => {
                tracing::error!(%error, "frames cannot be encoded");
                text(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "frames cannot be encoded\n",
                )
            }
        }
    }
}

impl Routes for PageRoutes {
    fn answer(&self, head: &Parts) -> HttpResponse {
        match (&head.method, head.uri.path()) {
            (&Method::GET | &Method::HEAD, "/") => self.document(),
            (&Method::GET, "/frames") => self.frames(head.uri.query().unwrap_or_default()),
            (_, "/" | "/frames") => text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"),
            _ => text(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    fn refuse(&self, refusal: &AccessDenied) -> HttpResponse {
        text(StatusCode::FORBIDDEN, &refusal.to_string())
    }
}

/// Only the script and the style of the document itself, and only requests to where it came from.
fn policy() -> HeaderValue {
    let source = |text: &str| {
        let hash = digest(&SHA256, text.as_bytes());
        format!("'sha256-{}'", base64(hash.as_ref()))
    };
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        source(SCRIPT),
        source(STYLE),
    );
    // It is ASCII; a document without its script would say why nothing is drawn.
    HeaderValue::from_str(&policy)
        .unwrap_or_else(|_invalid| HeaderValue::from_static("default-src 'none'"))
}

/// Base64 with padding, as RFC 4648 has it.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |bits: u32| {
        let place = usize::try_from(bits & 63).unwrap_or_default();
        char::from(LETTERS.get(place).copied().unwrap_or(b'='))
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letters = [
            letter(bits >> 18),
            letter(bits >> 12),
            letter(bits >> 6),
            letter(bits),
        ];
        for (place, letter) in letters.into_iter().enumerate() {
            text.push(if place <= chunk.len() { letter } else { '=' });
        }
    }
    text
}

fn text(status: StatusCode, text: &str) -> HttpResponse {
    let body = Bytes::copy_from_slice(text.as_bytes());
    respond(status, "text/plain; charset=utf-8", body)
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> HttpResponse {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
