use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Value, json};
use tokio::time::advance;

use super::{AccessDenied, Authorizer};
use crate::cluster::event::EventReason;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal};
use crate::cluster::review::Access;
use crate::policy::readiness::ReadinessState;
use crate::state::events::Events;
use crate::state::permission_reporter::PermissionReporter;
use wva_base::moment::WallTime;
use wva_supervise::Clock;

const JUST_FRESH: Duration = Duration::from_secs(10);
const A_MOMENT: Duration = Duration::from_millis(1);

pub(in crate::serve) fn authorizer(server: &FakeServer) -> Authorizer {
    authorizer_with(server, &Events::for_test())
}

/// A gate that says in these events what it is denied.
fn authorizer_with(server: &FakeServer, events: &Events) -> Authorizer {
    let clock = Clock::at(WallTime(0));
    let permissions = PermissionReporter::for_test(clock.clone(), events.clone());
    Authorizer::new("metrics", clock, server.client(), None, permissions)
}

fn carrying(authorization: &str) -> HeaderMap {
    let value = HeaderValue::from_str(authorization).unwrap();
    [(AUTHORIZATION, value)].into_iter().collect()
}

fn get(path: &str) -> Access {
    Access::Path { verb: "get".to_owned(), path: path.to_owned() }
}

async fn ask(authorizer: &Authorizer, token: &str, path: &str) -> Result<(), AccessDenied> {
    let headers = carrying(&format!("Bearer {token}"));
    authorizer.admit(&headers, None, get(path)).await
}

pub(in crate::serve) fn token_of(name: &str) -> FakeResponse {
    let user = json!({ "username": name, "groups": ["system:authenticated"] });
    reviewed(&json!({ "authenticated": true, "user": user }))
}

pub(in crate::serve) fn of_no_user() -> FakeResponse {
    reviewed(&json!({ "authenticated": false }))
}

pub(in crate::serve) fn allowed() -> FakeResponse {
    reviewed(&json!({ "allowed": true }))
}

fn denied() -> FakeResponse {
    reviewed(&json!({ "allowed": false, "reason": "no rule" }))
}

fn reviewed(status: &Value) -> FakeResponse {
    FakeResponse::Json(201, json!({ "status": status }))
}

/// What the server was asked, in short.
fn questions(server: &FakeServer) -> Vec<String> {
    let asked = server.asked();
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    asked.iter().map(|asked| last(&asked.path)).collect()
}

#[tokio::test(start_paused = true)]
async fn without_a_token_no_review_is_sent() {
    let server = FakeServer::new([]);
    let authorizer = authorizer(&server);
    for authorization in ["", "Bearer", "Bearer ", "Basic dTpw", "Token x", "x"] {
        let headers = carrying(authorization);
        let outcome = authorizer.admit(&headers, None, get("/metrics")).await;
        assert_eq!(outcome, Err(AccessDenied::Unauthenticated), "{authorization:?}");
    }
    let outcome = authorizer.admit(&HeaderMap::new(), None, get("/metrics")).await;
    assert_eq!(outcome, Err(AccessDenied::Unauthenticated));
    assert_eq!(questions(&server), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_yes_is_asked_for_once_in_ten_seconds() {
    let server = FakeServer::new([token_of("prometheus"), allowed()]);
    let authorizer = authorizer(&server);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    advance(JUST_FRESH).await;
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    assert_eq!(questions(&server).len(), 2);

    // The token was revoked meanwhile.
    advance(A_MOMENT).await;
    server.then(of_no_user());
    let outcome = ask(&authorizer, "t", "/metrics").await;
    assert_eq!(outcome, Err(AccessDenied::Unauthenticated));
}

#[tokio::test(start_paused = true)]
async fn a_no_is_asked_for_once_in_ten_seconds() {
    let server = FakeServer::new([of_no_user(), token_of("someone"), denied()]);
    let authorizer = authorizer(&server);
    let forbidden = Err(AccessDenied::Forbidden {
        user: "someone".to_owned(),
        access: get("/metrics"),
        reason: "no rule".to_owned(),
    });
    for _ in 0..2 {
        let outcome = ask(&authorizer, "wrong", "/metrics").await;
        assert_eq!(outcome, Err(AccessDenied::Unauthenticated));
        assert_eq!(ask(&authorizer, "right", "/metrics").await, forbidden);
    }
    assert_eq!(questions(&server).len(), 3);

    // The rule was granted meanwhile.
    advance(JUST_FRESH + A_MOMENT).await;
    server.then(token_of("someone"));
    server.then(allowed());
    assert_eq!(ask(&authorizer, "right", "/metrics").await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn each_path_is_a_question_of_its_own() {
    let server = FakeServer::new([token_of("prometheus"), allowed(), denied()]);
    let authorizer = authorizer(&server);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    let outcome = ask(&authorizer, "t", "/debug/tree").await;
    assert!(matches!(outcome, Err(AccessDenied::Forbidden { .. })), "{outcome:?}");
    let wanted = ["tokenreviews", "subjectaccessreviews", "subjectaccessreviews"];
    assert_eq!(questions(&server), wanted);
}

#[tokio::test(start_paused = true)]
async fn masters_need_no_rule() {
    let user = json!({ "username": "admin", "groups": ["system:masters"] });
    let server = FakeServer::new([reviewed(&json!({ "authenticated": true, "user": user }))]);
    assert_eq!(ask(&authorizer(&server), "t", "/metrics").await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_known_reader_stays_let_in_while_the_api_server_is_away_and_not_for_ever() {
    let server = FakeServer::new([token_of("prometheus"), allowed()]);
    let authorizer = authorizer(&server);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));

    advance(Duration::from_mins(4)).await;
    server.then(FakeResponse::Break);
    for _ in 0..3 {
        assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    }
    assert_eq!(questions(&server).len(), 3);
    server.then(FakeResponse::Break);
    assert_eq!(ask(&authorizer, "new", "/metrics").await, Err(AccessDenied::Unavailable));

    advance(Duration::from_mins(2)).await;
    server.then(FakeResponse::Break);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Err(AccessDenied::Unavailable));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_refused_delays_no_other_answer() {
    let server = FakeServer::new([token_of("prometheus"), allowed()]);
    let authorizer = authorizer(&server);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    advance(JUST_FRESH + A_MOMENT).await;
    server.then(refusal(400, "BadRequest", "this token is malformed"));
    assert_eq!(ask(&authorizer, "odd", "/metrics").await, Err(AccessDenied::Unavailable));
    server.then(of_no_user());
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Err(AccessDenied::Unauthenticated));
}

#[tokio::test(start_paused = true)]
async fn a_right_to_ask_that_is_missing_is_said_in_readyz() {
    let server = FakeServer::new([token_of("prometheus"), allowed()]);
    let authorizer = authorizer(&server);
    let state = || authorizer.readiness().into_iter().next().unwrap();
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    assert_eq!(state().state, ReadinessState::Ok);

    let words = "User \"wva\" cannot create resource \"tokenreviews\"";
    server.then(refusal(403, "Forbidden", words));
    let refused = ask(&authorizer, "new", "/metrics").await.unwrap_err();
    assert_eq!(refused, AccessDenied::Unavailable);
    assert!(refused.to_string().contains("see /readyz and the log"), "{refused}");
    let reason = state();
    assert_eq!((reason.name.as_str(), reason.state), ("access/metrics", ReadinessState::Degraded));
    assert!(reason.detail.contains(words), "{}", reason.detail);

    server.then(token_of("someone"));
    server.then(allowed());
    assert_eq!(ask(&authorizer, "new", "/metrics").await, Ok(()));
    assert_eq!(state().state, ReadinessState::Ok);
}

/// Each question takes a right of its own, and that one works says nothing about the other.
#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_named_while_the_other_works() {
    let server = FakeServer::new([token_of("prometheus"), allowed()]);
    let events = Events::for_test();
    let authorizer = authorizer_with(&server, &events);
    assert_eq!(ask(&authorizer, "t", "/metrics").await, Ok(()));
    assert!(events.last().is_none());

    advance(JUST_FRESH + A_MOMENT).await;
    let why = "tokenreviews.authentication.k8s.io is forbidden";
    server.then(refusal(403, "Forbidden", why));
    server.then(allowed());
    assert_eq!(ask(&authorizer, "t", "/debug/tree").await, Ok(()));
    assert_eq!(questions(&server).len(), 4);
    let reasons = authorizer.readiness();
    assert_eq!(reasons[0].state, ReadinessState::Degraded);
    assert!(reasons[0].detail.contains(why), "{reasons:?}");
    let event = events.last().unwrap().notice;
    assert_eq!((event.reason, event.action), (EventReason::PermissionMissing, "Review"));
    assert!(event.note.contains(why), "{event:?}");

    advance(JUST_FRESH + A_MOMENT).await;
    server.then(token_of("prometheus"));
    server.then(allowed());
    assert_eq!(ask(&authorizer, "t", "/debug/tree").await, Ok(()));
    assert_eq!(authorizer.readiness()[0].state, ReadinessState::Ok);
    assert!(events.last().is_none());
}
