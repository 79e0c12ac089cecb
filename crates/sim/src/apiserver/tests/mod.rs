//! Tests of the server.

use serde_json::{Value, json};

use super::ApiServer;
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

mod contract;
mod definition;
mod lifecycle;

const DEFINITION: &str =
    include_str!("../../../../../config/crd/bases/llmd.ai_variantautoscalings.yaml");

/// A server in virtual time that knows our own kind, and has a namespace `ns`.
pub(super) async fn server() -> ApiServer {
    let clock = Clock::at(WallTime(1_767_225_600_000));
    let server = ApiServer::new(clock, &SeedTree::new(7));
    let definition: Value = serde_yaml::from_str(DEFINITION).unwrap();
    let (code, made) = ask(
        &server,
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
    assert_eq!(code, 201, "{made}");
    let namespace = json!({"metadata": {"name": "ns"}});
    let (code, made) = ask(&server, "POST", "/api/v1/namespaces", &namespace).await;
    assert_eq!(code, 201, "{made}");
    server
}

/// One request, and what comes back. Patches are merge patches.
pub(super) async fn ask(
    server: &ApiServer,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(kube::client::Body::from(body.into_bytes()))
        .unwrap();
    let answer = server.clone().oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}
