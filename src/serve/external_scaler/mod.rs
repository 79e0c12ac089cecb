//! KEDA's external scaler: gRPC methods by which a ScaledObject follows decisions, without Prometheus in between.
//! Every replica answers from the status of the objects as it mirrors them: a Service knows no leader.

mod decisions;
mod proto;
mod server;
mod streams;
mod trigger;

use std::fmt::Display;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use prost::Message;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use self::decisions::DecisionLookup;
use self::proto::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse,
    MetricTargetSpec, MetricValue, ScaledObjectRef,
};
pub use self::server::ExternalScalerServer;
use self::streams::StreamTerms;
use self::trigger::ScalerTrigger;
pub use self::trigger::refused;
use super::access::{AccessDenied, Authorizer};
use super::connection::path_access;
use crate::cluster::project::scaler::STATED;
use crate::policy::key::ObjectKey;
use crate::policy::series::DESIRED;
use crate::state::Readers;

/// Largest request: the metadata of one trigger.
const MESSAGE_BYTES: usize = 16 * 1024;
/// Calls that are read at once, of all connections: they hold 16 MiB. Further ones wait within their time.
const READING: usize = 1024;
/// Longest wait for a request and its answer, or for the first part of a stream.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Streams at once, of all connections: two for each of 10 000 ScaledObjects, and as many again while KEDA restarts.
const STREAMS: usize = 40_000;
const SERVICE: &str = "/externalscaler.ExternalScaler/";

#[derive(Debug, Clone)]
pub(super) struct ExternalScaler {
    decisions: DecisionLookup,
    authorizer: Option<Arc<Authorizer>>,
    reading: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
struct ScalerClient {
    /// Whether its certificate is signed by an authority of clients.
    is_proven: bool,
    /// True once the connection closes.
    closing: watch::Receiver<bool>,
}

impl ExternalScaler {
    fn new(shared: Readers, authorizer: Option<Arc<Authorizer>>) -> Self {
        Self {
            decisions: DecisionLookup::new(shared),
            authorizer,
            reading: Arc::new(Semaphore::new(READING)),
            streams: Arc::new(Semaphore::new(STREAMS)),
        }
    }

    async fn respond(self, request: Request<Incoming>, client: ScalerClient) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let call = async {
            let _place = self.reading.acquire().await;
            self.dispatch(request, client).await
        };
        let response = timeout(CALL_TIMEOUT, call).await;
        let response = response.unwrap_or_else(|_elapsed| {
            let why = format!("the call is not complete after {} s", CALL_TIMEOUT.as_secs());
            Status::deadline_exceeded(why).into_http()
        });
        if let Some(status) = Status::from_header_map(response.headers()) {
            tracing::debug!(path, %status, "call refused");
        }
        response
    }

    async fn dispatch(&self, request: Request<Incoming>, client: ScalerClient) -> Response<Body> {
        let (head, body) = request.into_parts();
        if let Err(refusal) = self.admit(&head, &client).await {
            return refusal.into_http();
        }
        let method = head.uri.path().strip_prefix(SERVICE).unwrap_or_default();
        let method = method.to_owned();
        let request = Request::from_parts(head, body);
        match method.as_str() {
            "IsActive" => unary(request, |reference| self.is_active(&reference)).await,
            "GetMetricSpec" => unary(request, |reference| self.metric_spec(&reference)).await,
            "GetMetrics" => unary(request, |wanted| self.metrics(&wanted)).await,
            "StreamIsActive" => {
                let open = |reference: ScaledObjectRef| {
                    let trigger = self.trigger(&reference)?;
                    let terms = self.terms(client)?;
                    Ok(streams::activity(self.decisions.clone(), trigger, terms))
                };
                streaming(request, open).await
            }
            "StreamMetricSpec" => {
                let open = |reference: ScaledObjectRef| {
                    let specs = self.metric_spec(&reference)?;
                    Ok(streams::metric_specs(specs, self.terms(client)?))
                };
                streaming(request, open).await
            }
            _ => Status::unimplemented("no method of externalscaler.ExternalScaler").into_http(),
        }
    }

    /// Where clients must prove themselves, a certificate suffices; others show a token.
    async fn admit(&self, head: &Parts, client: &ScalerClient) -> Result<(), Status> {
        let Some(authorizer) = self.authorizer.as_ref().filter(|_| !client.is_proven) else {
            return Ok(());
        };
        let admitted = authorizer.admit(&head.headers, None, path_access(head)).await;
        admitted.map_err(|refusal| match refusal {
            AccessDenied::Unauthenticated => Status::unauthenticated(
                "show a certificate that an authority of EXTERNAL_SCALER_CLIENT_CA_PATH has signed \
                 (tlsClientCert and tlsClientKey of a TriggerAuthentication), or a bearer token",
            ),
            AccessDenied::Forbidden { .. } => Status::permission_denied(refusal.to_string()),
            AccessDenied::Unavailable => Status::unavailable(refusal.to_string()),
        })
    }

    /// What an object states of a variant is not judged where its annotation says that it is none.
    fn trigger(&self, reference: &ScaledObjectRef) -> Result<ScalerTrigger, Status> {
        let mut reference = reference.clone();
        let object = ObjectKey::new(&*reference.namespace, &*reference.name);
        if self.decisions.is_excluded(&object) {
            let is_stated = |key: &String| STATED.iter().any(|field| field.key == key);
            reference.scaler_metadata.retain(|key, _| !is_stated(key));
        }
        ScalerTrigger::read(&reference).map_err(Status::invalid_argument)
    }

    /// A target of 1 makes the count the number of replicas.
    fn metric_spec(&self, reference: &ScaledObjectRef) -> Result<GetMetricSpecResponse, Status> {
        self.trigger(reference)?;
        Ok(GetMetricSpecResponse {
            metric_specs: vec![MetricTargetSpec {
                metric_name: DESIRED.to_owned(),
                target_size: 1,
                target_size_float: 1.0,
            }],
        })
    }

    fn is_active(&self, reference: &ScaledObjectRef) -> Result<IsActiveResponse, Status> {
        let trigger = self.trigger(reference)?;
        let answer = self.decisions.answer(&trigger)?;
        Ok(IsActiveResponse { result: answer.is_active() })
    }

    fn metrics(&self, wanted: &GetMetricsRequest) -> Result<GetMetricsResponse, Status> {
        let nothing = ScaledObjectRef::default();
        let reference = wanted.scaled_object_ref.as_ref().unwrap_or(&nothing);
        let trigger = self.trigger(reference)?;
        if wanted.metric_name != DESIRED {
            let why = no_metric(&trigger.object, &wanted.metric_name);
            return Err(Status::invalid_argument(why));
        }
        let answer = self.decisions.answer(&trigger)?;
        let count = answer.count(&trigger.object)?;
        Ok(GetMetricsResponse {
            metric_values: vec![MetricValue {
                metric_name: DESIRED.to_owned(),
                whole: i64::from(count.0),
                float: f64::from(count.0),
            }],
        })
    }

    fn terms(&self, client: ScalerClient) -> Result<StreamTerms, Status> {
        let place = Arc::clone(&self.streams).try_acquire_owned();
        let place = place.map_err(|_full| {
            Status::resource_exhausted(format!("{STREAMS} streams are open, the most there may be"))
        })?;
        Ok(StreamTerms::new(client.closing, place))
    }
}

fn no_metric(object: &impl Display, name: &str) -> String {
    let name = wva_base::text::shortened(name);
    format!("ScaledObject {object}: there is no metric {name:?}; there is {DESIRED}")
}

async fn unary<Q, A>(
    request: Request<Incoming>,
    answer: impl Fn(Q) -> Result<A, Status>,
) -> Response<Body>
where
    Q: Message + Default + 'static,
    A: Message + 'static,
{
    let method = tower::service_fn(|request: tonic::Request<Q>| {
        ready(answer(request.into_inner()).map(tonic::Response::new))
    });
    grpc::<Q, A>().unary(method, request).await
}

async fn streaming<Q, A, S>(
    request: Request<Incoming>,
    open: impl FnOnce(Q) -> Result<S, Status>,
) -> Response<Body>
where
    Q: Message + Default + 'static,
    A: Message + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
{
    let mut open = Some(open);
    let method = tower::service_fn(move |request: tonic::Request<Q>| {
        let opened = open.take().map(|open| open(request.into_inner()));
        let opened = opened.unwrap_or_else(|| Err(Status::internal("opened twice")));
        ready(opened.map(tonic::Response::new))
    });
    grpc::<Q, A>().server_streaming(method, request).await
}

fn grpc<Q, A>() -> tonic::server::Grpc<ProstCodec<A, Q>>
where
    Q: Message + Default + 'static,
    A: Message + 'static,
{
    tonic::server::Grpc::new(ProstCodec::default()).max_decoding_message_size(MESSAGE_BYTES)
}

#[cfg(test)]
mod tests;
