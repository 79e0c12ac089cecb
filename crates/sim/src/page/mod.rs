//! The pages of a world: one document without anything from outside with the frames that it draws, and what its
//! controller and its Prometheus show.

mod film;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use tokio::net::TcpListener;
use tower::{Service as _, service_fn};

pub(crate) use film::Film;

use crate::pace::Gateway;
use crate::socket;
use wva::page;
use wva::serve::answer::{HttpResponse, plain};

pub(crate) async fn serve(listener: TcpListener, film: Film, world: Gateway) -> Infallible {
    let routes = Arc::new(PageRoutes::new(film));
    let pages = service_fn(move |request: Request<Incoming>| {
        let (routes, mut world) = (Arc::clone(&routes), world.clone());
        async move {
            if !matches!(request.uri().path(), "/" | "/frames") {
                return world.call(request).await;
            }
            let (head, _unread) = request.into_parts();
            Ok(routes.answer(&head).map(BodyExt::boxed_unsync))
        }
    });
    socket::serve(listener, pages).await
}

#[derive(Debug)]
struct PageRoutes {
    film: Film,
    document: Bytes,
    policy: HeaderValue,
}

impl PageRoutes {
    fn new(film: Film) -> Self {
        // It is ASCII; a document without its script would say why nothing is drawn.
        let policy = HeaderValue::from_str(&page::live_policy())
            .unwrap_or_else(|_invalid| HeaderValue::from_static("default-src 'none'"));
        Self { film, document: page::live("wva-sim demo").into(), policy }
    }

    fn document(&self) -> HttpResponse {
        let mut answer = respond("text/html; charset=utf-8", self.document.clone());
        let headers = answer.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
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
    fn answer(&self, head: &Parts) -> HttpResponse {
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
