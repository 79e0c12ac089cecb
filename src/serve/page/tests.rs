use std::io::Read as _;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use http::request::Parts;
use hyper::StatusCode;

use super::{PageMaker, TimedReader};
use crate::actors::variants::tests::with_environment;
use crate::cluster::fake::FakeServer;
use crate::page::document;
use crate::policy::document::SnapshotDocument;
use crate::policy::learned::Learned;
use crate::policy::params::DynamicSettings;
use crate::policy::plan;
use crate::serve::access::tests::{allowed, authorizer, of_no_user, token_of};
use crate::serve::answer::{HttpResponse, plain};
use crate::serve::connection::{ConnectionConfig, Routes};
use crate::serve::routes::MetricsRoutes;
use crate::serve::tests::Running;
use crate::state::recorder::CycleRecord;
use crate::state::{Readers, SharedState};
use wva_base::moment::WallTime;
use wva_recording::RecordingReader;
use wva_supervise::{ActorRegistry, Clock};

const FLEET: &str =
    "{version: 1, variants: [{namespace: ns, name: a, model: m, target: {current: 1}}]}";

/// With a record, which is kept where it is served.
fn shared() -> SharedState {
    with_environment(&[("METRICS_BIND_ADDRESS", "127.0.0.1:8443")])
}

/// Records one cycle; returns the recording.
fn recorded(readers: &Readers) -> Vec<u8> {
    assert!(readers.recorder.is_on());
    let settings = DynamicSettings::default();
    let document = SnapshotDocument::parse(FLEET).unwrap();
    let situation = document.situation(&settings.freshness).unwrap();
    let learned = Learned::default();
    let plan = plan(&situation.snapshot, &learned, &settings, 1, situation.now);
    readers.recorder.record(CycleRecord {
        now: situation.now,
        generation: 1,
        snapshot: situation.snapshot,
        learned: Arc::new(learned),
        settings: Arc::new(settings),
        plan: Arc::new(plan),
    });
    loop {
        match readers.recorder.recording() {
            Some(recording) => return recording,
            None => thread::yield_now(),
        }
    }
}

#[tokio::test]
async fn a_page_needs_a_right_and_is_what_the_command_writes() {
    let shared = shared();
    let api_server = FakeServer::new([of_no_user(), token_of("person"), allowed()]);
    let server = Running::with(ConnectionConfig {
        tls: None,
        authorizer: Some(Arc::new(authorizer(&api_server))),
        routes: Arc::new(MetricsRoutes::new(shared.readers.clone(), ActorRegistry::new())),
    })
    .await;
    let ask = async |method: &str, more: &str| {
        let head = format!("{method} /debug/page HTTP/1.1\r\nhost: x\r\n{more}\r\n");
        server.send(&head).await
    };
    let person = "authorization: Bearer t\r\n";
    let answer = ask("GET", "").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let answer = ask("GET", "authorization: Bearer wrong\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    let answer = ask("GET", person).await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("DECISION_HISTORY_BYTES"), "{answer}");

    let recording = recorded(&shared.readers);
    let answer = ask("GET", person).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: frame-ancestors 'none'",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{head}");
    }
    let written = document(&mut RecordingReader::new(&*recording)).unwrap();
    assert!(written.contains("\"name\":\"ns/m\""), "{written}");
    assert_eq!(body, written);
    api_server.then(allowed());
    let answer = ask("POST", person).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

/// Answers with the name of the thread.
struct Named;

impl Routes for Named {
    fn is_lengthy(&self, head: &Parts) -> bool {
        head.uri.path() != "/"
    }

    fn answer(&self, head: &Parts) -> HttpResponse {
        assert_ne!(head.uri.path(), "/panics");
        let name = thread::current().name().unwrap_or_default().to_owned();
        plain(StatusCode::OK, &name)
    }
}

#[tokio::test]
async fn a_lengthy_answer_is_made_on_a_thread_of_its_own() {
    let server = Running::serving(Named, None).await;
    let ask = async |path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        server.send(&head).await
    };
    let answer = ask("/").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(!answer.ends_with("\r\n\r\nlengthy-answer\n"), "{answer}");
    let answer = ask("/long").await;
    assert!(answer.ends_with("\r\n\r\nlengthy-answer\n"), "{answer}");
    let answer = ask("/panics").await;
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
}

#[test]
fn one_page_is_made_at_a_time_and_within_a_time() {
    let readers = shared().readers;
    let recording = recorded(&readers);
    let (clock, maker) = (Clock::at(WallTime(0)), PageMaker::default());
    let mut second = None;
    let first = maker.page(&clock, || {
        second = maker.page(&clock, || panic!("a second recording is copied"));
        Some(recording.clone())
    });
    assert_eq!(first.unwrap().status(), StatusCode::OK);
    let second = second.unwrap();
    assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE);
    let damaged = maker.page(&clock, || Some(b"no gzip".to_vec()));
    assert_eq!(damaged.unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(maker.page(&clock, || None).is_none());

    let mut late = TimedReader { bytes: &recording, clock: &clock, end: Duration::ZERO };
    let error = late.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.to_string(), "it takes longer than 20s; use wva page");
}
