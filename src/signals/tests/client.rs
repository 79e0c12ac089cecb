//! The client against a server on a real socket that answers well and badly.

use std::time::Duration;

use super::http::{FakePrometheus, Mode, ONE_SAMPLE};
use super::pki::install_provider;
use crate::scratch::Folder;
use crate::settings::TokenSource;
use crate::settings::secret::Secret;
use crate::signals::{
    HttpPrometheus, PromApi as _, PrometheusClientSettings, QueryError, QueryResult,
};

/// Long enough for anything on a loopback socket.
const PATIENCE: Duration = Duration::from_secs(20);

fn settings(server: &FakePrometheus) -> PrometheusClientSettings {
    PrometheusClientSettings {
        allow_http: true,
        ..PrometheusClientSettings::new(format!("http://127.0.0.1:{}", server.port))
    }
}

fn client(settings: PrometheusClientSettings) -> HttpPrometheus {
    install_provider();
    HttpPrometheus::new(settings).unwrap()
}

async fn ask(client: &HttpPrometheus) -> Result<QueryResult, QueryError> {
    client.query("up", PATIENCE).await
}

fn answer(body: &str) -> Mode {
    Mode::Answer(200, body.to_owned())
}

#[tokio::test]
async fn a_query_is_a_form_in_a_post_below_the_path_prefix() {
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let client = client(PrometheusClientSettings {
        base_url: format!("http://127.0.0.1:{}/prefix/", server.port),
        ..settings(&server)
    });
    assert_eq!(server.seen(), []);
    let result = client.query("up{a=\"b&c\"} + 1", Duration::from_secs(9)).await.unwrap();
    assert_eq!(result.len(), 1);
    let seen = server.seen().remove(0);
    assert_eq!(seen.method, "POST");
    assert_eq!(seen.path, "/prefix/api/v1/query");
    assert_eq!(seen.host, Some(format!("127.0.0.1:{}", server.port)));
    assert_eq!(seen.authorization, None);
    assert_eq!(seen.body, "query=up%7Ba%3D%22b%26c%22%7D+%2B+1&timeout=9000ms");
}

#[tokio::test]
async fn every_bad_answer_has_its_own_error() {
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let client = client(settings(&server));
    assert_eq!(ask(&client).await.unwrap().len(), 1);
    let api_error =
        |text: &str| format!(r#"{{"status":"error","errorType":"execution","error":"{text}"}}"#);
    let page = "<html>\n <body>Bad\tGateway</body></html>".to_owned();
    for (mode, reason, part) in wva_base::cases! {
        (Mode::Answer(401, String::new()), "unauthorized", "PROMETHEUS_TOKEN_PATH"),
        (Mode::Answer(403, "no\n".to_owned()), "forbidden", "(HTTP 403: no)"),
        (Mode::Answer(422, api_error("too many samples")), "bad_request", "HTTP 422: execution: too many samples"),
        (Mode::Answer(400, api_error("parse error")), "bad_request", "parse error"),
        (Mode::Answer(404, "404 page".to_owned()), "unexpected_status", "path prefix"),
        (Mode::Answer(500, String::new()), "server_error", "(HTTP 500)"),
        (Mode::Answer(502, page.clone()), "server_error", "<html> <body>Bad Gateway"),
        (Mode::Answer(503, api_error("timed out")), "server_error", "execution: timed out"),
        (answer(&page), "malformed", "it starts with \"<html>"),
        (answer(""), "malformed", "it is empty"),
        (answer("{\"status\":"), "malformed", "it breaks off after 10 bytes"),
        (answer("{}"), "malformed", "missing field `status`"),
        (Mode::BreakOff, "malformed", "it breaks off"),
    } {
        server.become_(mode.clone());
        let error = ask(&client).await.expect_err("a bad answer");
        assert_eq!(error.reason(), reason, "{mode:?}: {error}");
        assert!(error.to_string().contains(part), "{mode:?}: {error}");
    }
    server.become_(answer(ONE_SAMPLE));
    assert_eq!(ask(&client).await.unwrap().len(), 1, "it recovers by itself");
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let server = FakePrometheus::plain(Mode::Hang).await;
    let client = client(settings(&server));
    let deadline = Duration::from_millis(100);
    for mode in [Mode::Hang, Mode::Stall] {
        server.become_(mode.clone());
        let error = client.query("up", deadline).await.unwrap_err();
        assert_eq!(error, QueryError::Timeout(deadline), "{mode:?}");
        assert!(error.to_string().contains("100ms"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let server = FakePrometheus::plain(Mode::Flood).await;
    let client = client(PrometheusClientSettings { response_limit: 100_000, ..settings(&server) });
    let expected = QueryError::TooLarge(100_000);
    assert_eq!(ask(&client).await.unwrap_err(), expected);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable_until_it_is() {
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let port = server.port;
    let settings = settings(&server);
    drop(server);
    let client = client(settings);
    // The socket closes when the dropped server's task is next looked at.
    let mut answered = ask(&client).await;
    while answered.is_ok() {
        answered = ask(&client).await;
    }
    let error = answered.unwrap_err();
    assert_eq!(error.reason(), "unreachable", "{error}");
    assert!(error.to_string().contains("PROMETHEUS_BASE_URL"), "{error}");
    assert!(!error.to_string().contains(&port.to_string()), "{error}");
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_unreachable() {
    let client = client(PrometheusClientSettings::new("https://prometheus.invalid"));
    let error = ask(&client).await.unwrap_err();
    assert_eq!(error.reason(), "unreachable", "{error}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let target = format!("http://127.0.0.1:{}/api/v1/query", elsewhere.port);
    let server = FakePrometheus::plain(Mode::Redirect(target)).await;
    let error = ask(&client(settings(&server))).await.unwrap_err();
    assert_eq!(error.reason(), "unexpected_status");
    assert!(error.to_string().contains("HTTP 302"), "{error}");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(elsewhere.seen(), []);
}

/// A client that may send its token over plain http, which the settings refuse.
fn careless(settings: &PrometheusClientSettings, token: TokenSource) -> HttpPrometheus {
    let mut client = client(settings.clone());
    client.settings.token = token;
    client
}

#[tokio::test]
async fn a_token_is_sent_and_never_shown() {
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let token = TokenSource::Value(Secret::new(" hush-hush\n"));
    let client = careless(&settings(&server), token);
    assert_eq!(ask(&client).await.unwrap().len(), 1);
    let sent = server.seen().remove(0).authorization;
    assert_eq!(sent.as_deref(), Some("Bearer hush-hush"));
    assert!(!format!("{client:?}").contains("hush"), "{client:?}");

    server.become_(Mode::Echo);
    let error = ask(&client).await.unwrap_err().to_string();
    assert!(error.contains("who is Some(\"Bearer [secret]\")?"), "{error}");
}

#[tokio::test]
async fn a_token_file_is_read_again_for_every_query() {
    let folder = Folder::new();
    let path = folder.write("token", "first\n");
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let client = careless(&settings(&server), TokenSource::File(path.clone()));
    let sent = || server.seen().pop().and_then(|seen| seen.authorization);

    assert!(ask(&client).await.is_ok());
    assert_eq!(sent().as_deref(), Some("Bearer first"));
    folder.write("token", "second");
    assert!(ask(&client).await.is_ok());
    assert_eq!(sent().as_deref(), Some("Bearer second"));

    for (text, part) in
        [(Some(""), "holds no token"), (Some("a\nb"), "not a bearer token"), (None, "No such file")]
    {
        match text {
            Some(text) => drop(folder.write("token", text)),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let error = ask(&client).await.unwrap_err();
        assert_eq!(error.reason(), "credentials", "{error}");
        let error = error.to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("PROMETHEUS_TOKEN_PATH"), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    assert_eq!(server.seen().len(), 2, "nothing is sent without its token");

    folder.write("token", "third");
    assert!(ask(&client).await.is_ok());
    assert_eq!(sent().as_deref(), Some("Bearer third"));
}

#[tokio::test]
async fn a_folder_in_place_of_a_file_is_an_error() {
    let folder = Folder::new();
    let server = FakePrometheus::plain(answer(ONE_SAMPLE)).await;
    let client = careless(&settings(&server), TokenSource::File(folder.join(".")));
    let error = ask(&client).await.unwrap_err().to_string();
    assert!(error.contains("it is not a file of at most 1048576 bytes"), "{error}");
}
