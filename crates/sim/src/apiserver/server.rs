//! The server as a service: from requests to answers.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::dates;
use super::delete::Deletion;
use super::discovery;
use super::openapi;
use super::refusal::ApiRefusal;
use super::request::{Ask, RequestTarget, ResponseForm};
use super::state::State;
use super::versions::Versions;
use super::watch::WatchStream;
use super::write::Written;
use crate::threads::locked;
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

/// Largest body of a request, as of the real server.
const BODY_BYTES: usize = 3 * 1024 * 1024;
/// How long a request waits for a version that is not reached yet, as of the real server.
const VERSION_PATIENCE: Duration = Duration::from_secs(3);

/// What may go wrong between one client and the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RequestFault {
    pub(crate) latency: Duration,
    pub(crate) refuse: Option<u16>,
    pub(crate) hang: bool,
    pub(crate) cut_after: Option<Duration>,
}

/// What becomes of a request that comes now.
type Faults = dyn Fn() -> RequestFault + Send + Sync;

/// The body of an answer.
pub type Wire = UnsyncBoxBody<Bytes, Infallible>;

pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) versions: Versions,
}

impl Shared {
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = locked(&self.state);
        let before = state.store.revision();
        let result = act(&mut state);
        let revision = state.store.revision();
        if revision != before {
            let since = state.store.all_changes(before).into_iter().flatten();
            let mut touched: Vec<&str> = since.map(|change| &*change.key.resource).collect();
            touched.dedup();
            self.versions.set(revision, &touched);
        }
        result
    }
}

/// A handle of a server. Cheap to clone; all clones share the objects.
#[derive(Clone)]
pub struct ApiServer {
    pub(super) shared: Arc<Shared>,
    faults: Option<Arc<Faults>>,
    /// The date that the reader's clock shows, if it is another one.
    date: Option<WallTime>,
}

wva_base::debug_of!(ApiServer: date);

enum Answer {
    /// With warnings about the request.
    Document(u16, Arc<Value>, Vec<String>),
    Text(&'static str),
    Watch(Box<WatchStream>),
}

impl ApiServer {
    /// A server with the namespaces that every cluster has, and without custom kinds: those come
    /// with their definitions.
    pub fn new(clock: Clock, seed: &SeedTree) -> Self {
        let state = State::new(clock, seed.child("apiserver"));
        let versions = Versions::default();
        versions.set(state.store.revision(), &[]);
        Self {
            shared: Arc::new(Shared { state: Mutex::new(state), versions }),
            faults: None,
            date: None,
        }
    }

    /// The same server for one request of a reader whose clock shows this date: events are dated by
    /// times by which their ages come out right.
    #[must_use]
    pub(crate) fn read_at(&self, date: WallTime) -> Self {
        Self { date: Some(date), ..self.clone() }
    }

    #[must_use]
    pub(crate) fn with_faults(&self, faults: Arc<Faults>) -> Self {
        Self { faults: Some(faults), ..self.clone() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// Forgets past changes, as compaction does: watches from before now end with 410.
    pub(crate) fn compact(&self) {
        self.shared.with(|state| state.store.compact());
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Wire>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        let answer = match Limited::new(body, BODY_BYTES).collect().await {
            Ok(body) => {
                let ask = Ask::new(&head, body.to_bytes());
                self.judge(&ask).await
            }
            Err(_too_large) => Err(ApiRefusal::too_large(BODY_BYTES)),
        };
        answer.map_or_else(|refusal| refused(&refusal), respond)
    }

    pub(super) async fn answer_inside(&self, ask: &Ask) -> Result<Arc<Value>, ApiRefusal> {
        match self.judge(ask).await? {
            Answer::Document(_, document, _) => Ok(document),
            Answer::Text(_) | Answer::Watch(_) => Err(ApiRefusal::method_not_allowed()),
        }
    }

    async fn judge(&self, ask: &Ask) -> Result<Answer, ApiRefusal> {
        let fault = self.faults.as_ref().map(|faults| faults());
        let fault = fault.unwrap_or_default();
        if fault.hang {
            std::future::pending::<()>().await;
        }
        if !fault.latency.is_zero() {
            sleep(fault.latency).await;
        }
        if let Some(code) = fault.refuse {
            return Err(ApiRefusal::injected(code, None));
        }
        if ask.method == Method::GET && !ask.flag("watch") {
            self.reach(ask).await?;
        }
        let document = |document| Answer::Document(200, Arc::new(document), Vec::new());
        let steps: Vec<&str> = ask.path.iter().map(String::as_str).collect();
        self.shared.with(|state| match &*steps {
            ["healthz" | "readyz" | "livez", ..] => Ok(Answer::Text("ok")),
            ["openapi", "v3", rest @ ..] => openapi::document(state, rest).map(document),
            ["version"] => Ok(document(discovery::version())),
            // Every account may do everything here.
            ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews"]
                if ask.method == Method::POST =>
            {
                let review = json!({
                    "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                    "metadata": {}, "spec": {}, "status": {"allowed": true},
                });
                Ok(Answer::Document(201, Arc::new(review), Vec::new()))
            }
            ["api", "v1", rest @ ..] if !rest.is_empty() => {
                self.resource(state, ask, ("", "v1"), rest, fault.cut_after)
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                self.resource(state, ask, (group, version), rest, fault.cut_after)
            }
            _ => discovery::document(state, &steps).map(document),
        })
    }

    async fn reach(&self, ask: &Ask) -> Result<(), ApiRefusal> {
        let asked = ask.number("resourceVersion")?.unwrap_or(0);
        let reached = self.shared.versions.reach(asked);
        let reached = timeout(VERSION_PATIENCE, reached).await;
        reached.map_err(|_elapsed| ApiRefusal::ahead(asked, self.shared.versions.current()))
    }

    fn resource(
        &self,
        state: &mut State,
        ask: &Ask,
        group_version: (&str, &str),
        rest: &[&str],
        cut_after: Option<Duration>,
    ) -> Result<Answer, ApiRefusal> {
        let target = target(state, group_version, rest)?;
        if matches!(&*target.subresource, "log" | "exec" | "attach" | "portforward" | "proxy") {
            return Err(ApiRefusal::not_simulated(&target.subresource));
        }
        // A write that is not to be stored must not be.
        if ask.parameter("dryRun").is_some() {
            return Err(ApiRefusal::bad_request("dryRun is not served"));
        }
        if ask.method == Method::GET && ask.flag("watch") {
            let watch = WatchStream::open(&self.shared, state, &target, ask, cut_after)?;
            return Ok(Answer::Watch(Box::new(watch)));
        }
        let document = |document| Ok(Answer::Document(200, document, Vec::new()));
        match (ask.method.as_str(), &target.name) {
            ("GET", name) => {
                let mut found = match name {
                    Some(_) => state.get(&target, ask)?,
                    None => Arc::new(state.list(&target, ask)?),
                };
                if let Some(WallTime(date)) = self.date
                    && target.kind.kind == "Event"
                    && ask.shape() == ResponseForm::Full
                {
                    let found = Arc::make_mut(&mut found);
                    dates::shift(found, date.div_euclid(1_000) - state.seconds());
                }
                document(found)
            }
            ("POST", None) => Ok(written(state, &target, ask, State::create)?),
            ("PUT", Some(_)) => Ok(written(state, &target, ask, State::update)?),
            ("PATCH", Some(_)) => Ok(written(state, &target, ask, State::patch)?),
            ("DELETE", Some(_)) if target.subresource.is_empty() => {
                let key = target.key()?;
                let deleted = state.delete(&target.kind, &key, &Deletion::read(ask)?)?;
                document(Arc::new(deleted))
            }
            _ => Err(ApiRefusal::method_not_allowed()),
        }
    }
}

fn written(
    state: &mut State,
    target: &RequestTarget,
    ask: &Ask,
    write: impl FnOnce(&mut State, &RequestTarget, &Ask) -> Result<Written, ApiRefusal>,
) -> Result<Answer, ApiRefusal> {
    let written = write(state, target, ask)?;
    let code = if written.created { 201 } else { 200 };
    let shape = if target.subresource == "scale" { ResponseForm::Full } else { ask.shape() };
    let object = state.in_shape(target, shape, written.object);
    Ok(Answer::Document(code, object, written.warnings))
}

fn target(
    state: &State,
    (group, version): (&str, &str),
    rest: &[&str],
) -> Result<RequestTarget, ApiRefusal> {
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..]
            if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) =>
        {
            (Some((*namespace).to_owned()), rest)
        }
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, ""),
        [plural, name] => (plural, Some((*name).to_owned()), ""),
        [plural, name, subresource] => (plural, Some((*name).to_owned()), *subresource),
        _ => return Err(ApiRefusal::no_such_path()),
    };
    let kind = state.kind(group, version, plural);
    let kind = kind.ok_or_else(ApiRefusal::no_such_path)?;
    let known = match subresource {
        "" => true,
        "status" => kind.status,
        "scale" => kind.scale.is_some(),
        "log" | "exec" | "attach" | "portforward" | "proxy" => kind.is("", "Pod"),
        _ => false,
    };
    let placed = kind.namespaced == namespace.is_some() || (kind.namespaced && name.is_none());
    if !known || !placed {
        return Err(ApiRefusal::no_such_path());
    }
    Ok(RequestTarget {
        kind: Arc::clone(kind),
        namespace,
        name,
        subresource: subresource.to_owned(),
    })
}

fn refused(refusal: &ApiRefusal) -> Response<Wire> {
    let document = Arc::new(refusal.document());
    respond(Answer::Document(refusal.code, document, Vec::new()))
}

/// The refusal of a request that is refused for a test, by its status and the seconds to wait.
pub(crate) fn injected(code: u16, after: Option<u64>) -> Response<Wire> {
    refused(&ApiRefusal::injected(code, after))
}

fn respond(answer: Answer) -> Response<Wire> {
    let json =
        |code: u16| Response::builder().status(code).header("content-type", "application/json");
    let built = match answer {
        Answer::Document(code, document, warnings) => {
            let mut builder = json(code);
            let retry = &document["details"]["retryAfterSeconds"];
            if let Some(seconds) = retry.as_u64().filter(|_| code >= 400) {
                builder = builder.header("retry-after", seconds);
            }
            for warning in warnings {
                builder = builder.header("warning", format!("299 - {}", json!(warning)));
            }
            // A document always has a text.
            builder.body(full(serde_json::to_vec(&*document).unwrap_or_default()))
        }
        Answer::Text(text) => {
            Response::builder().header("content-type", "text/plain").body(full(text))
        }
        Answer::Watch(watch) => {
            let frames = watch.lines().map(|line| Ok(Frame::data(line)));
            json(200).body(StreamBody::new(frames).boxed_unsync())
        }
    };
    built.unwrap_or_else(|_header| Response::new(full("")))
}

fn full(text: impl Into<Bytes>) -> Wire {
    Full::new(text.into()).boxed_unsync()
}

/// A kubeconfig for the server at an address: no credentials, no encryption.
pub fn kubeconfig(address: SocketAddr) -> String {
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "embedded",
        "clusters": [{"name": "embedded", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "embedded", "user": {}}],
        "contexts": [{
            "name": "embedded",
            "context": {"cluster": "embedded", "user": "embedded", "namespace": "default"},
        }],
    });
    // YAML is a superset of JSON.
    format!("{document:#}\n")
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Wire>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}
