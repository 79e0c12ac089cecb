//! Calls over a socket, as KEDA makes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Uri;
use http::uri::PathAndQuery;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::core::PartialObjectMeta;
use prost::Message;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::ExternalScalerServer;
use super::proto::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, ScaledObjectRef,
};
use crate::actors::variants::tests::shared;
use crate::api::scaled_object::ScaledObject;
use crate::api::variant_autoscaling::VariantAutoscaling;
use crate::serve::tests::Running;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;

mod calls;
mod many;
mod streams;
mod tls;

const DESIRED: &str = "wva_desired_replicas";

/// A VariantAutoscaling of namespace `ns` with a decision, or with none yet.
fn variant(name: &str, target: &str, desired: Option<u32>) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"modelID": "m", "scaleTargetRef": {"kind": "Deployment", "name": target}},
        "status": {"desiredOptimizedAlloc": {"numReplicas": desired, "accelerator": "H100"}},
    })
}

fn scaled_object(name: &str, target: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": []},
    })
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name},
        "spec": {"replicas": replicas, "selector": {}, "template": {}},
    })
}

fn store_variants(shared: &SharedState, objects: impl IntoIterator<Item = Value>) {
    let mirror = &shared.writers.mirrors.variants;
    list::<VariantAutoscaling>(mirror, objects);
}

fn store_scaled_objects(shared: &SharedState, objects: impl IntoIterator<Item = Value>) {
    let mirror = &shared.writers.mirrors.scaled_objects;
    list::<ScaledObject>(mirror, objects);
}

fn store_deployments(shared: &SharedState, objects: impl IntoIterator<Item = Value>) {
    let mirror = &shared.writers.mirrors.deployments;
    list::<Deployment>(mirror, objects);
}

fn exclude_namespace(shared: &SharedState) {
    let annotations = json!({"wva.llmd.ai/exclude": "true"});
    let namespace = json!({"metadata": {"name": "ns", "annotations": annotations}});
    let mirror = &shared.writers.mirrors.namespaces;
    list::<PartialObjectMeta<Namespace>>(mirror, [namespace]);
}

/// A server in plain text, what it answers from, and a client of it.
async fn connected() -> (SharedState, Running, Client) {
    let shared = shared();
    let server = ExternalScalerServer::new(shared.readers.clone(), None, None);
    let server = Running::with(server).await;
    let client = Client::connect(&server).await;
    (shared, server, client)
}

/// Names a ScaledObject of namespace `ns`.
fn reference(name: &str, metadata: &[(&str, &str)]) -> ScaledObjectRef {
    let pairs = metadata.iter();
    let pairs = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ScaledObjectRef {
        name: name.to_owned(),
        namespace: "ns".to_owned(),
        scaler_metadata: pairs.collect::<BTreeMap<_, _>>(),
    }
}

/// The client side of one connection.
#[derive(Clone)]
struct Client {
    connection: SendRequest<Body>,
    authorization: Option<Arc<str>>,
}

impl Client {
    async fn connect(server: &Running) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        Self::over(stream).await
    }

    async fn over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let io = TokioIo::new(stream);
        let (sender, connection) = handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        Self { connection: sender, authorization: None }
    }

    fn with_token(mut self, token: &str) -> Self {
        self.authorization = Some(Arc::from(format!("Bearer {token}")));
        self
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(authorization) = &self.authorization {
            let value = authorization.parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        request
    }

    async fn call<Q, A>(&self, method: &str, message: Q) -> Result<A, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let connection = self.connection.clone();
        let service = tower::service_fn(move |request| connection.clone().send_request(request));
        let mut grpc = tonic::client::Grpc::with_origin(service, origin());
        let codec = ProstCodec::<Q, A>::default();
        let answer = grpc.unary(self.request(message), path(method), codec);
        answer.await.map(tonic::Response::into_inner)
    }

    async fn open<A>(&self, method: &str, message: ScaledObjectRef) -> Result<Streaming<A>, Status>
    where
        A: Message + Default + 'static,
    {
        let connection = self.connection.clone();
        let service = tower::service_fn(move |request| connection.clone().send_request(request));
        let mut grpc = tonic::client::Grpc::with_origin(service, origin());
        let codec = ProstCodec::<ScaledObjectRef, A>::default();
        let answer = grpc.server_streaming(self.request(message), path(method), codec);
        answer.await.map(tonic::Response::into_inner)
    }

    async fn is_active(&self, reference: ScaledObjectRef) -> Result<bool, Status> {
        let answer: IsActiveResponse = self.call("IsActive", reference).await?;
        Ok(answer.result)
    }

    async fn spec(&self, reference: ScaledObjectRef) -> Result<GetMetricSpecResponse, Status> {
        self.call("GetMetricSpec", reference).await
    }

    /// The count, of which both forms must agree.
    async fn count(&self, reference: ScaledObjectRef) -> Result<i64, Status> {
        let answer: GetMetricsResponse = self.metrics(reference, DESIRED).await?;
        let [value] = answer.metric_values.as_slice() else {
            panic!("{answer:?}");
        };
        assert_eq!(value.metric_name, DESIRED);
        let count = i32::try_from(value.whole).unwrap();
        assert!((value.float - f64::from(count)).abs() < f64::EPSILON);
        Ok(value.whole)
    }

    async fn metrics(
        &self,
        reference: ScaledObjectRef,
        metric: &str,
    ) -> Result<GetMetricsResponse, Status> {
        let wanted = GetMetricsRequest {
            scaled_object_ref: Some(reference),
            metric_name: metric.to_owned(),
        };
        self.call("GetMetrics", wanted).await
    }
}

fn origin() -> Uri {
    Uri::from_static("https://external-scaler.test")
}

fn path(method: &str) -> PathAndQuery {
    let path = format!("/externalscaler.ExternalScaler/{method}");
    path.parse().unwrap()
}
