//! An API server with prepared answers, in order, that records its requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::permit::WriteApi;

/// What the server does with one request.
pub(crate) enum FakeResponse {
    /// Answers with a status code and a document.
    Json(u16, Value),
    /// Answers 200 and then sends these lines as they come.
    Lines(mpsc::UnboundedReceiver<String>),
    /// Never answers.
    Hang,
    /// Breaks the connection.
    Break,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct RecordedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) body: Value,
}

#[derive(Clone, Default)]
pub(crate) struct FakeServer {
    answers: Arc<Mutex<VecDeque<FakeResponse>>>,
    asked: watch::Sender<Vec<RecordedRequest>>,
}

type Wire = UnsyncBoxBody<Bytes, Infallible>;

impl FakeServer {
    pub(crate) fn new(answers: impl IntoIterator<Item = FakeResponse>) -> Self {
        let server = Self::default();
        server.answers.lock().unwrap().extend(answers);
        server
    }

    pub(crate) fn then(&self, answer: FakeResponse) {
        self.answers.lock().unwrap().push_back(answer);
    }

    /// Every request so far, oldest first.
    pub(crate) fn asked(&self) -> Vec<RecordedRequest> {
        self.asked.borrow().clone()
    }

    /// Waits until so many requests have arrived.
    pub(crate) async fn is_asked(&self, times: usize) {
        let mut asked = self.asked.subscribe();
        // The sender lives in `self`, so there is always a sender.
        drop(asked.wait_for(|asked| asked.len() >= times).await);
    }

    /// Writes to it as this manager, with so many seconds for a request.
    pub(crate) fn writes(&self, manager: &str, seconds: u64) -> WriteApi {
        WriteApi {
            client: self.client(),
            manager: Arc::from(manager),
            timeout: Duration::from_secs(seconds),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> io::Result<Response<Wire>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let header = |name: &str| {
            let value = head.headers.get(name).map(|value| value.to_str().unwrap());
            value.unwrap_or_default().to_owned()
        };
        let request = RecordedRequest {
            method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            content_type: header("content-type"),
            accept: header("accept"),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        self.asked.send_modify(|asked| asked.push(request));
        let answer = self.answers.lock().unwrap().pop_front();
        match answer.unwrap_or_else(|| panic!("no answer is prepared for {}", head.uri)) {
            FakeResponse::Json(code, document) => {
                let body = Full::new(Bytes::from(document.to_string())).boxed_unsync();
                Ok(Response::builder().status(code).body(body).unwrap())
            }
            FakeResponse::Lines(lines) => {
                let frames = stream::unfold(lines, |mut lines| async move {
                    let line = lines.recv().await? + "\n";
                    Some((Ok(Frame::data(Bytes::from(line))), lines))
                });
                Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
            }
            FakeResponse::Hang => std::future::pending().await,
            FakeResponse::Break => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
        }
    }
}

/// A refusal as Kubernetes words it.
pub(crate) fn refusal(code: u16, reason: &str, message: &str) -> FakeResponse {
    FakeResponse::Json(
        code,
        json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure",
            "code": code, "reason": reason, "message": message,
        }),
    )
}

/// The resources of a group and version, each with its kind.
pub(crate) fn served(version: &str, resources: &[(&str, &str)]) -> FakeResponse {
    let resources = resources.iter().map(|(name, kind)| {
        json!({"name": name, "kind": kind, "namespaced": true, "singularName": "", "verbs": ["get"]})
    });
    let resources: Vec<Value> = resources.collect();
    let list = json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources});
    FakeResponse::Json(200, list)
}

/// The scale subresource of an object with so many replicas wanted and existing.
pub(crate) fn scale(name: &str, [wanted, existing]: [u32; 2]) -> FakeResponse {
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": wanted}, "status": {"replicas": existing},
    });
    FakeResponse::Json(200, scale)
}

/// A refusal for so many seconds, as Kubernetes words it.
pub(crate) fn throttled(seconds: u64) -> FakeResponse {
    FakeResponse::Json(
        429,
        json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 429,
            "reason": "TooManyRequests", "message": "later",
            "details": {"retryAfterSeconds": seconds},
        }),
    )
}
