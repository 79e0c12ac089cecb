//! What is served where. Nothing here waits: every answer is made from memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::request::Parts;
use hyper::{Method, StatusCode};

use super::access::Authorizer;
use super::answer::{HttpResponse, json, only_get, plain, typed};
use super::connection::Routes;
use super::page::PageMaker;
use super::tls::Tls;
use crate::metrics::{TEXT_FORMAT, Visibility};
use crate::policy::readiness::{self, ReadinessReason};
use crate::roles::Role;
use crate::settings::print::SettingRow;
use crate::state::Readers;
use wva_base::moment::Moment;
use wva_supervise::{ActorRegistry, Aliveness, TreeRole as _};

/// The pages below `/debug/`, and what each shows.
const DEBUG_PAGES: [(&str, &str); 6] = [
    ("/debug/decisions", "the last plan"),
    ("/debug/page", "decisions and counts over time, for a browser"),
    ("/debug/recording", "the last decisions, for wva why and wva replay"),
    ("/debug/settings", "every setting with its source"),
    ("/debug/snapshot", "a file for wva plan"),
    ("/debug/tree", "actors with restarts"),
];

/// `/metrics` and the debug page.
#[derive(Debug)]
pub struct MetricsRoutes {
    shared: Readers,
    actors: ActorRegistry<Role>,
    pages: PageMaker,
}

impl MetricsRoutes {
    /// Serves what these hold.
    pub fn new(shared: Readers, actors: ActorRegistry<Role>) -> Self {
        Self { shared, actors, pages: PageMaker::default() }
    }

    /// Whether decisions are shown now.
    pub fn visibility(&self, now: Moment) -> Visibility {
        let may_write = self.shared.claim.may_write(now);
        if may_write || self.shared.hooks.shows_without_claim() {
            Visibility::Shown
        } else {
            Visibility::Hidden
        }
    }

    fn metrics(&self) -> HttpResponse {
        let now = self.shared.clock.now();
        self.shared.refresh_process_series(&self.actors, now);
        match self.shared.series.exposition(self.visibility(now)) {
            Ok(text) => typed(StatusCode::OK, TEXT_FORMAT, text),
            Err(error) => {
                tracing::error!(%error, "metrics cannot be encoded");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "metrics cannot be encoded; see the log")
            }
        }
    }

    fn recording(&self) -> HttpResponse {
        match self.shared.recorder.recording() {
            Some(recording) => typed(StatusCode::OK, "application/gzip", recording),
            None => unrecorded(),
        }
    }

    fn page(&self) -> HttpResponse {
        let recording = || self.shared.recorder.recording();
        let page = self.pages.page(&self.shared.clock, recording);
        page.unwrap_or_else(unrecorded)
    }
}

fn list() -> HttpResponse {
    let lines = DEBUG_PAGES.map(|(page, shows)| format!("{page:<17} {shows}"));
    plain(StatusCode::OK, &lines.join("\n"))
}

fn unrecorded() -> HttpResponse {
    plain(StatusCode::NOT_FOUND, "no decision is recorded in memory: see DECISION_HISTORY_BYTES")
}

impl Routes for MetricsRoutes {
    fn is_lengthy(&self, head: &Parts) -> bool {
        head.uri.path() == "/debug/page"
    }

    fn answer(&self, head: &Parts) -> HttpResponse {
        match (&head.method, head.uri.path()) {
            (&Method::GET, "/metrics") => self.metrics(),
            (&Method::GET, "/debug/tree") => json(StatusCode::OK, &self.actors.report()),
            (&Method::GET, "/debug/decisions") => json(StatusCode::OK, &self.shared.decisions()),
            (&Method::GET, "/debug/snapshot") => {
                json(StatusCode::OK, &self.shared.debug_snapshot())
            }
            (&Method::GET, "/debug/recording") => self.recording(),
            (&Method::GET, "/debug/page") => self.page(),
            (&Method::GET, "/debug/settings") => {
                let values = &self.shared.settings.load().generation.values;
                json(StatusCode::OK, &SettingRow::all(values))
            }
            (&Method::GET, "/debug" | "/debug/") => list(),
            (_, "/metrics" | "/debug" | "/debug/") => only_get(),
            (_, path) if DEBUG_PAGES.iter().any(|(page, _)| *page == path) => only_get(),
            _ => self
                .shared
                .hooks
                .answer(head, &self.actors)
                .unwrap_or_else(|| plain(StatusCode::NOT_FOUND, "not found")),
        }
    }
}

/// `/healthz` and `/readyz`.
#[derive(Debug)]
pub struct ProbeRoutes {
    shared: Readers,
    actors: ActorRegistry<Role>,
    doors: Vec<ProtectedServer>,
}

/// A protected server, as far as it can be in trouble.
#[derive(Debug, Clone)]
pub struct ProtectedServer {
    /// Its certificate.
    pub tls: Arc<Tls>,
    /// Who is let in; `None` lets everybody in.
    pub authorizer: Option<Arc<Authorizer>>,
}

impl ProtectedServer {
    fn readiness(&self) -> Vec<ReadinessReason> {
        let authorizer = self.authorizer.as_ref();
        let mut reasons = authorizer.map_or_else(Vec::new, |authorizer| authorizer.readiness());
        reasons.push(self.tls.readiness());
        reasons
    }
}

impl ProbeRoutes {
    /// Serves what these hold, and how well the `doors` are guarded.
    pub fn new(shared: Readers, actors: ActorRegistry<Role>, doors: Vec<ProtectedServer>) -> Self {
        Self { shared, actors, doors }
    }

    fn live(&self) -> HttpResponse {
        match self.actors.alive(self.shared.clock.now()) {
            Aliveness::Alive => plain(StatusCode::OK, "ok"),
            Aliveness::NoRoot => plain(StatusCode::SERVICE_UNAVAILABLE, "the tree is not running"),
            Aliveness::Stuck(roles) => {
                tracing::warn!(?roles, "the process is stalled");
                // The probe is open to everybody: it names no object.
                let labels: BTreeSet<&str> = roles.iter().map(Role::label).collect();
                let labels: Vec<&str> = labels.into_iter().collect();
                plain(StatusCode::SERVICE_UNAVAILABLE, &format!("stalled: {}", labels.join(", ")))
            }
        }
    }

    fn ready(&self, head: &Parts) -> HttpResponse {
        let mut reasons = self.shared.readiness();
        reasons.extend(self.doors.iter().flat_map(ProtectedServer::readiness));
        let status = if readiness::is_ready(&reasons) {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        let verbose = head.uri.query().is_some_and(|query| query.contains("verbose"));
        if status == StatusCode::OK && !verbose {
            return plain(status, "ok");
        }
        plain(status, &readiness::render(&reasons))
    }
}

impl Routes for ProbeRoutes {
    fn answer(&self, head: &Parts) -> HttpResponse {
        match (&head.method, head.uri.path()) {
            (&Method::GET | &Method::HEAD, "/healthz") => self.live(),
            (&Method::GET | &Method::HEAD, "/readyz") => self.ready(head),
            (_, "/healthz" | "/readyz") => only_get(),
            _ => plain(StatusCode::NOT_FOUND, "not found"),
        }
    }
}
