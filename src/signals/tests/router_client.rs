//! Routers on real sockets that answer well and badly.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::http::{FakePrometheus, Mode};
use super::pki::install_provider;
use crate::scratch::Folder;
use crate::settings::TokenSource;
use crate::settings::secret::Secret;
use crate::signals::HeldRequests;
use crate::signals::page_lines::PageFault;
use crate::signals::router_client::{HttpRouters, ROUTER_TOKEN_FILE, RouterApi as _, RouterError};
use crate::signals::router_page::PageError;

/// Long enough for anything on a loopback socket.
const PATIENCE: Duration = Duration::from_secs(20);
const PAGE: &str =
    "llm_d_epp_flow_control_queue_size{model_name=\"m\",target_model_name=\"m\"} 3\n";

fn routers(token: TokenSource) -> HttpRouters {
    install_provider();
    HttpRouters::with_token(token).unwrap()
}

async fn ask(routers: &HttpRouters, port: u16) -> Result<HeldRequests, RouterError> {
    let router = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    routers.held(router, PATIENCE).await
}

#[tokio::test]
async fn a_router_is_asked_for_its_page_with_the_token_of_now() {
    let server = FakePrometheus::plain(Mode::Answer(200, PAGE.to_owned())).await;
    let folder = Folder::new();
    let file = folder.join("token");
    let mounted = routers(TokenSource::File(file.clone()));
    let held = HeldRequests::from([(Arc::from("m"), 3.0)]);
    assert_eq!(ask(&mounted, server.port).await, Ok(held.clone()));
    std::fs::write(&file, "one\n").unwrap();
    assert_eq!(ask(&mounted, server.port).await, Ok(held.clone()));
    std::fs::write(&file, "two").unwrap();
    assert_eq!(ask(&mounted, server.port).await, Ok(held.clone()));
    std::fs::write(&file, "t w o").unwrap();
    assert_eq!(ask(&mounted, server.port).await, Ok(held.clone()));
    let explicit = routers(TokenSource::Value(Secret::new("three")));
    assert_eq!(ask(&explicit, server.port).await, Ok(held));

    let seen = server.seen();
    let sent: Vec<Option<&str>> =
        seen.iter().map(|request| request.authorization.as_deref()).collect();
    let expected = [None, Some("Bearer one"), Some("Bearer two"), None, Some("Bearer three")];
    assert_eq!(sent, expected);
    assert!(seen.iter().all(|one| (&*one.method, &*one.path) == ("GET", "/metrics")));
}

#[tokio::test]
async fn a_refusal_says_what_was_sent_and_what_to_set() {
    let folder = Folder::new();
    let file = folder.join("token");
    std::fs::write(&file, "").unwrap();
    for (token, sent) in [
        (TokenSource::None, "without a token)"),
        (TokenSource::Value(Secret::new("s3cret")), "with a token)"),
        (TokenSource::File(file), "the mounted one cannot be used)"),
    ] {
        for status in [401, 403] {
            let server = FakePrometheus::plain(Mode::Answer(status, String::new())).await;
            let error = ask(&routers(token.clone()), server.port).await.unwrap_err();
            assert_eq!(error.reason(), "refused");
            let text = error.to_string();
            for part in [sent, "EPP_METRIC_READER_BEARER_TOKEN", ROUTER_TOKEN_FILE] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(!text.contains("s3cret"), "{text}");
        }
    }
}

#[tokio::test]
async fn every_bad_answer_has_its_own_error() {
    let server = FakePrometheus::plain(Mode::Answer(200, PAGE.to_owned())).await;
    let routers = routers(TokenSource::None);
    assert!(ask(&routers, server.port).await.is_ok());
    let page = |text: &str| Mode::Answer(200, text.to_owned());
    for (mode, reason, part) in wva_base::cases! {
        (page("<html></html>"), "malformed", "line 1 of the page"),
        (page("up 1\n"), "no_queue", "flow control"),
        (Mode::Answer(503, String::new()), "status", "HTTP 503; check that its port serves /metrics"),
        (Mode::Redirect("http://127.0.0.1:1/".to_owned()), "status", "HTTP 30"),
        (Mode::BreakOff, "unreachable", "cannot be reached"),
    } {
        server.become_(mode.clone());
        let error = ask(&routers, server.port).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{mode:?}: {error}");
        assert!(error.to_string().contains(part), "{mode:?}: {error}");
    }
    let refused = ask(&routers, 1).await.unwrap_err();
    assert_eq!(refused.reason(), "unreachable", "{refused}");
}

#[tokio::test]
async fn a_router_has_until_the_deadline_and_no_endless_line() {
    let server = FakePrometheus::plain(Mode::Hang).await;
    let routers = routers(TokenSource::None);
    let router = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let deadline = Duration::from_millis(50);
    let error = routers.held(router, deadline).await;
    let error = error.unwrap_err();
    assert_eq!(error, RouterError::Timeout(deadline));
    let expected =
        "its metrics did not come within 50ms; check its port, network policies and its load";
    assert_eq!(error.to_string(), expected);
    server.become_(Mode::Flood);
    let error = routers.held(router, PATIENCE).await.unwrap_err();
    let is_page = matches!(
        error,
        RouterError::Page(PageError::Unreadable(
            PageFault::LongLine { .. } | PageFault::Invalid(_)
        ))
    );
    assert!(is_page, "{error}");
}
