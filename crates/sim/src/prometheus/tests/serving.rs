//! The API, its faults, and both ways to reach it.

use std::sync::{Arc, Mutex};

use http::{Method, StatusCode, Uri};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::*;
use crate::prometheus::{InProcess, Outage};
use wva::signals::{PromApi, QueryError};
use wva_supervise::Clock;

fn filled() -> Prometheus {
    let (mut server, id) = server(target("a"));
    page(
        &mut server,
        id,
        10,
        "x{a=\"1\"} 0.0000001\nx{a=\"2\"} +Inf\ny 2\n",
    );
    server
}

async fn answered(server: &Prometheus, method: Method, uri: &str, body: &str) -> (u16, String) {
    let uri: Uri = uri.parse().unwrap();
    let response = server
        .answer(&method, &uri, body.as_bytes(), seconds(12))
        .unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn document(server: &Prometheus, method: Method, uri: &str, body: &str) -> (u16, Value) {
    let (status, text) = answered(server, method, uri, body).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn answers_have_the_form_of_the_api() {
    let server = filled();
    let query = "/api/v1/query";
    let metric =
        |a: &str| json!({"__name__": "x", "a": a, "job": "pods", "namespace": "ns", "pod": "a"});
    let wanted = json!({"status": "success", "data": {"resultType": "vector", "result": [
        {"metric": metric("1"), "value": [1_700_000_052, "1e-07"]},
        {"metric": metric("2"), "value": [1_700_000_052, "+Inf"]},
    ]}});
    let by_form = document(&server, Method::POST, query, "query=x&timeout=5s").await;
    assert_eq!(by_form, (200, wanted.clone()));
    let by_uri = document(&server, Method::GET, "/api/v1/query?query=x", "").await;
    assert_eq!(by_uri, (200, wanted));

    let (_, at) = document(&server, Method::POST, query, "query=y&time=1700000050.1234").await;
    assert_eq!(
        at["data"]["result"][0]["value"],
        json!([1_700_000_050.123, "2"])
    );
    let (_, before) = document(
        &server,
        Method::POST,
        query,
        "query=y&time=2023-11-14T22:14:09Z",
    )
    .await;
    assert_eq!(before["data"]["result"], json!([]));
    let (_, scalar) = document(&server, Method::POST, query, "query=1%2B1").await;
    assert_eq!(
        scalar["data"],
        json!({"resultType": "scalar", "result": [1_700_000_052, "2"]})
    );

    let (status, refused) = document(&server, Method::POST, query, "query=x%7B").await;
    assert_eq!((status, &refused["errorType"]), (400, &json!("bad_data")));
    assert_eq!(refused["status"], "error");
    let (status, refused) = document(&server, Method::POST, query, "query=y%2Bon()x").await;
    assert_eq!((status, &refused["errorType"]), (422, &json!("execution")));
    let (status, _) = document(&server, Method::POST, query, "query=y&time=soon").await;
    assert_eq!(status, 400);

    let (status, build) = document(&server, Method::GET, "/api/v1/status/buildinfo", "").await;
    assert_eq!((status, build["data"]["version"].is_string()), (200, true));
    assert_eq!(answered(&server, Method::GET, "/-/ready", "").await.0, 200);
    assert_eq!(
        answered(&server, Method::GET, "/api/v1/series", "").await.0,
        404
    );
    assert_eq!(answered(&server, Method::DELETE, query, "").await.0, 405);
}

#[tokio::test]
async fn faults_show_in_answers() {
    let mut server = filled();
    assert_eq!(values(&server, "y", 12), [2.0]);
    server.set_lag(Duration::from_secs(3));
    assert_eq!(values(&server, "y", 12), NONE);
    assert_eq!(values(&server, "y", 13), [2.0]);
    server.set_lag(Duration::ZERO);

    server.set_hidden(Some(("a", "1")));
    assert_eq!(asked(&server, "x", 12).len(), 1);
    let (_, document) = document(&server, Method::GET, "/api/v1/query?query=y", "").await;
    assert!(
        document["warnings"][0]
            .as_str()
            .unwrap()
            .contains("partial")
    );
    server.set_hidden(None);
    assert_eq!(asked(&server, "x", 12).len(), 2);

    server.set_outage(Some(Outage::Status(StatusCode::BAD_GATEWAY)));
    assert_eq!(
        answered(&server, Method::GET, "/api/v1/query?query=y", "")
            .await
            .0,
        502
    );
    server.set_outage(Some(Outage::Unreachable));
    let uri: Uri = "/-/ready".parse().unwrap();
    assert!(
        server
            .answer(&Method::GET, &uri, b"", seconds(12))
            .is_none()
    );
    server.set_outage(None);

    server.set_gap(Some(seconds(60)));
    assert_eq!(server.due(seconds(40)), []);
    assert_eq!(values(&server, "y", 55), [2.0]);
    assert_eq!(server.due(seconds(65)).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_controller_asks_without_a_network() {
    let server = Arc::new(Mutex::new(filled()));
    let client = InProcess::new(Arc::clone(&server), Clock::at(seconds(12)));
    let deadline = Duration::from_secs(1);
    let found = client.query("y", deadline).await.unwrap();
    let sample = found.samples().next().unwrap();
    assert_eq!((sample.time, sample.value), (1_700_000_052.0, 2.0));
    assert_eq!(sample.label("pod").map(|pod| &**pod), Some("a"));
    let refused = client.query("x{", deadline).await.unwrap_err();
    assert!(
        matches!(refused, QueryError::BadRequest { status: 400, .. }),
        "{refused}"
    );
    let scalar = client.query("1", deadline).await.unwrap_err();
    assert!(matches!(scalar, QueryError::Malformed { .. }), "{scalar}");
    let outages = [
        (Outage::Unreachable, "unreachable"),
        (
            Outage::Status(StatusCode::SERVICE_UNAVAILABLE),
            "server_error",
        ),
    ];
    for (outage, reason) in outages {
        server.lock().unwrap().set_outage(Some(outage));
        let failed = client.query("y", deadline).await.unwrap_err();
        assert_eq!(failed.reason(), reason);
    }
}

#[tokio::test]
async fn a_socket_leads_to_the_same_answers() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Arc::new(Mutex::new(filled()));
    let serving = tokio::spawn(super::super::serve(listener, Arc::clone(&server), || {
        seconds(12)
    }));
    // Nobody has installed another one in this process, or the same.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{address}/api/v1/query");
    let ask = || client.post(&url).form(&[("query", "y")]).send();
    let document: Value =
        serde_json::from_str(&ask().await.unwrap().text().await.unwrap()).unwrap();
    assert_eq!(document["data"]["result"][0]["value"][1], "2");
    server.lock().unwrap().set_outage(Some(Outage::Unreachable));
    assert!(ask().await.is_err());
    serving.abort();
}
