//! What is served where. Nothing here waits: every answer is made from memory.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::server::Handler;
use crate::actors::facts::Facts;
#[cfg(feature = "sim")]
use crate::kit::Role;
use crate::kit::{Aliveness, Census};
use crate::metrics::{TEXT_FORMAT, Visibility};
use crate::policy::readiness;

type Answer = Response<Full<Bytes>>;

/// `/metrics` and the debug page.
#[derive(Debug)]
pub struct MetricsRoutes {
    facts: Facts,
    census: Census,
}

impl MetricsRoutes {
    /// Serves what these hold.
    pub fn new(facts: Facts, census: Census) -> Self {
        Self { facts, census }
    }

    fn metrics(&self) -> Answer {
        let now = self.facts.clock.now();
        self.facts.refresh_process_series(&self.census, now);
        let visibility = if self.facts.claim.may_write(now) {
            Visibility::Shown
        } else {
            Visibility::Hidden
        };
        match self.facts.series.exposition(visibility) {
            Ok(text) => answer(StatusCode::OK, TEXT_FORMAT, text),
            Err(error) => {
                tracing::error!(%error, "metrics cannot be encoded");
                plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "metrics cannot be encoded; see the log",
                )
            }
        }
    }

    #[cfg(feature = "sim")]
    fn kill(&self, request: &Request<Incoming>) -> Answer {
        let role = request
            .uri()
            .query()
            .and_then(|query| query.strip_prefix("role="));
        let Some(role) = role.and_then(|role| role.parse().ok()) else {
            return plain(StatusCode::BAD_REQUEST, "name a role: ?role=optimizer");
        };
        if role == Role::Root {
            return plain(StatusCode::BAD_REQUEST, "the root ends with the process");
        }
        if self.census.kill(&role) {
            plain(StatusCode::OK, "killed")
        } else {
            plain(StatusCode::NOT_FOUND, "no such role is alive")
        }
    }
}

impl Handler for MetricsRoutes {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/metrics") => self.metrics(),
            (&Method::GET, "/debug/tree") => json(&self.census.report()),
            (&Method::GET, "/debug/decisions") => json(&*self.facts.plan.load()),
            (&Method::GET, "/debug/snapshot") => json(&self.facts.debug_snapshot()),
            #[cfg(feature = "sim")]
            (&Method::POST, "/debug/kill") => self.kill(request),
            (_, "/metrics" | "/debug/tree" | "/debug/decisions" | "/debug/snapshot") => only_get(),
            _ => plain(StatusCode::NOT_FOUND, "not found"),
        }
    }
}

/// `/healthz` and `/readyz`.
#[derive(Debug)]
pub struct ProbeRoutes {
    facts: Facts,
    census: Census,
}

impl ProbeRoutes {
    /// Serves what these hold.
    pub fn new(facts: Facts, census: Census) -> Self {
        Self { facts, census }
    }

    fn live(&self) -> Answer {
        match self.census.alive(self.facts.clock.now()) {
            Aliveness::Alive => plain(StatusCode::OK, "ok"),
            Aliveness::NoRoot => plain(StatusCode::SERVICE_UNAVAILABLE, "the tree is not running"),
            Aliveness::Stuck(roles) => {
                let names: Vec<_> = roles.iter().map(ToString::to_string).collect();
                plain(
                    StatusCode::SERVICE_UNAVAILABLE,
                    &format!("stalled: {}", names.join(", ")),
                )
            }
        }
    }

    fn ready(&self, request: &Request<Incoming>) -> Answer {
        let reasons = self.facts.readiness();
        let status = if readiness::is_ready(&reasons) {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let verbose = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("verbose"));
        if status == StatusCode::OK && !verbose {
            return plain(status, "ok");
        }
        plain(status, &readiness::render(&reasons))
    }
}

impl Handler for ProbeRoutes {
    fn answer(&self, request: &Request<Incoming>) -> Answer {
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/healthz") => self.live(),
            (&Method::GET | &Method::HEAD, "/readyz") => self.ready(request),
            (_, "/healthz" | "/readyz") => only_get(),
            _ => plain(StatusCode::NOT_FOUND, "not found"),
        }
    }
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_string_pretty(value) {
        Ok(text) => answer(StatusCode::OK, "application/json", text),
        Err(error) => {
            tracing::error!(%error, "debug page cannot be encoded");
            plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "cannot be encoded; see the log",
            )
        }
    }
}

fn only_get() -> Answer {
    let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    refused
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static("GET"));
    refused
}

fn plain(status: StatusCode, text: &str) -> Answer {
    answer(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn answer(status: StatusCode, content_type: &'static str, text: String) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
