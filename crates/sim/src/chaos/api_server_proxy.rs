//! The way from one process to the API server, with everything that can be wrong with it.

use std::pin::pin;
use std::time::Duration;

use allocations::Owner;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use kube::{Client, client};
use tokio::time::sleep;
use tower::{ServiceExt, service_fn};

use super::active_faults::ActiveFaults;
use super::check::claims::Sent;
use super::checker::RequestObserver;
use super::fault::{Api, ProcessFault};
use super::process_state::ProcessState;
use super::stream::{self, Watches};
use super::trace::{Misses, short};
use crate::apiserver::{ApiServer, Insider, Wire, injected};
use crate::workloads::object::Object;

const LOOK: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
pub(super) struct ApiServerProxy {
    pub(super) server: ApiServer,
    pub(super) insider: Insider,
    pub(super) ills: ActiveFaults,
    pub(super) life: ProcessState,
    pub(super) listener: RequestObserver,
    pub(super) misses: Misses,
    pub(super) watches: Watches,
}

wva_base::debug_of!(ApiServerProxy: life);

#[derive(Debug, Default)]
struct RequestOutcome {
    latency: Duration,
    /// With this status, and so many seconds to wait; and the last fault by which it is.
    refuse: Option<(u16, Option<u64>, usize)>,
    hang: bool,
    unreachable: bool,
    lost: bool,
    late: Option<Duration>,
    /// Held back by this fault until another process has the lease, and never answered.
    lapse: Option<usize>,
    version: Option<u64>,
    end: Option<ProcessFault>,
    by: Vec<usize>,
}

impl RequestOutcome {
    fn is_carried_out(&self) -> bool {
        let is_stopped = self.unreachable || self.hang || self.lost;
        !is_stopped && self.refuse.is_none() && self.late.is_none()
    }
}

impl ApiServerProxy {
    pub(super) fn client(self) -> Client {
        let service = service_fn(move |request: Request<client::Body>| {
            // What the world does on the way is not held by who asks.
            Box::pin(Owner::NONE.does(self.clone().carry(request)))
        });
        Client::new(service, "default")
    }

    fn fate(&self, method: &Method, uri: &Uri) -> RequestOutcome {
        let query = uri.query().unwrap_or_default();
        let is_watch = query.contains("watch=");
        let is_list = !is_watch && query.contains("limit=") && !query.contains("continue=");
        let is_write = is_write(method);
        let is_variant = uri.path().contains("/variantautoscalings/");
        let is_status = is_variant && uri.path().ends_with("/status");
        let resource = resource_of(uri.path()).unwrap_or_default();
        // A list that is older says something else only where something has changed since.
        let is_old = |version: u64| self.insider.changed_since(version, &[&resource]);
        let mut fate = RequestOutcome::default();
        let faults = self.ills.api();
        for (id, fault, then) in &faults {
            let (fault, then) = (*fault, *then);
            let current = self.insider.version();
            match fault {
                Api::Latency(time) => fate.latency += time,
                Api::Refuse(code, after) => fate.refuse = Some((code, after, *id)),
                Api::Conflict if is_write => fate.refuse = Some((409, None, *id)),
                Api::Forbidden if is_write => fate.refuse = Some((403, None, *id)),
                Api::Webhook if is_write && is_variant => fate.refuse = Some((500, None, *id)),
                Api::Hang => fate.hang = true,
                Api::Partition => fate.unreachable = true,
                Api::Lost if is_write => fate.lost = true,
                Api::Late(time) if is_write => fate.late = Some(time),
                Api::Lapse if self.ills.holds(*id) => fate.unreachable = true,
                Api::Lapse if is_write && is_status => fate.lapse = Some(*id),
                Api::StaleList(back) if is_list && is_old(before(current, back)) => {
                    fate.version = Some(before(current, back));
                }
                Api::Older(back) if is_list && is_old(before(then, back)) => {
                    fate.version = Some(before(then, back));
                }
                _ => continue,
            }
            fate.by.push(*id);
        }
        // Of several faults some keep others from doing anything.
        let decides = |id: &usize, fault: Api| match fault {
            Api::Partition => true,
            // Where another process has the lease when the write is carried out.
            Api::Lapse => false,
            _ if fate.unreachable => false,
            Api::Hang | Api::Latency(_) => true,
            _ if fate.hang => false,
            Api::Refuse(..) | Api::Conflict | Api::Forbidden | Api::Webhook => {
                fate.refuse.is_some_and(|(.., by)| by == *id)
            }
            _ if fate.refuse.is_some() => false,
            Api::Lost => fate.late.is_none(),
            _ => true,
        };
        let deciding = faults.iter().filter(|(id, ..)| fate.by.contains(id));
        for (id, ..) in deciding.filter(|(id, fault, _)| decides(id, *fault)) {
            self.ills.hit(*id);
        }
        fate.lapse = fate.lapse.filter(|_| fate.is_carried_out());
        if let Some(id) = fate.lapse {
            self.ills.hold(id);
        } else if is_write && fate.is_carried_out() {
            fate.end = self.life.take_at_write();
        }
        fate
    }

    fn note_miss(&self, request: &str, fate: &RequestOutcome) {
        let why = if fate.unreachable {
            "out of reach".to_owned()
        } else if fate.hang {
            "no answer".to_owned()
        } else if let Some((code, ..)) = fate.refuse {
            code.to_string()
        } else if let Some(late) = fate.late {
            format!("arrives {:.3} s later, no answer", late.as_secs_f64())
        } else if fate.lapse.is_some() {
            "held until another one leads, no answer".to_owned()
        } else if fate.lost {
            "arrives, no answer".to_owned()
        } else {
            return;
        };
        self.misses.note(request, &why, &fate.by);
    }

    async fn carry<B>(self, request: Request<B>) -> Result<Response<Wire>, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Failure>,
    {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let (head, body) = request.into_parts();
        // All of it is there already.
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        if !self.life.is_dead() {
            self.listener.called(&Sent::new(&method, &uri, &body));
        }
        let request = Request::from_parts(head, Full::new(body));
        // What is stored when it leaves: it may wait for minutes until it is carried out.
        let stored = self.stored(&method, uri.path());
        self.life.gate().await;
        let fate = self.fate(&method, &uri);
        if fate.end == Some(ProcessFault::BeforeWrite) {
            self.perish().await;
        }
        let asked = asked(&Sent::new(&method, &uri, b""));
        self.note_miss(&asked, &fate);
        if fate.unreachable {
            return Err("connection refused".into());
        }
        sleep(fate.latency).await;
        if fate.hang {
            std::future::pending::<()>().await;
        }
        if let Some((code, after, _)) = fate.refuse {
            let answer = injected(code, after);
            self.arrived(&Sent::new(&method, &uri, b""), &answer);
            return Ok(answer);
        }
        if let Some(later) = self.later(&fate) {
            tokio::spawn(Owner::NONE.does(async move {
                later.await;
                self.carried_out(request, stored).await;
            }));
            return std::future::pending().await;
        }
        let request = aged(request, fate.version);
        let answer = self.carried_out(request, stored).await;
        if fate.end == Some(ProcessFault::DuringWrite) {
            self.perish().await;
        }
        if fate.lost {
            std::future::pending::<()>().await;
        }
        self.life.gate().await;
        self.answered(&asked, answer.status());
        self.arrived(&Sent::new(&method, &uri, b""), &answer);
        if fate.end == Some(ProcessFault::AfterWrite) {
            self.ills.struck();
            let life = self.life.clone();
            // As soon as the writer has had its answer.
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                life.end();
            });
        }
        let query = uri.query().unwrap_or_default();
        Ok(if query.contains("watch=") && answer.status().is_success() {
            let open = self.watches.open(uri.path(), query);
            answer.map(|body| stream::ailing(body, self, open))
        } else {
            answer
        })
    }

    async fn served(&self, request: Request<Full<Bytes>>) -> Response<Wire> {
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let Ok(answer) = self.server.clone().oneshot(request).await;
        if is_write(&method) && answer.status().is_success() && !self.life.is_dead() {
            self.listener.stored(uri.path());
        }
        answer
    }

    fn arrived(&self, sent: &Sent<'_>, answer: &Response<Wire>) {
        let time = asks_for(answer).filter(|_| !self.life.is_dead());
        if let Some(time) = time {
            self.listener.warded_off(sent, time);
        }
    }

    fn answered(&self, asked: &str, status: StatusCode) {
        if status == StatusCode::GONE {
            self.ills.hit_newest(Api::Compact);
        }
        // That something is not there is an answer.
        if !status.is_success() && status != StatusCode::NOT_FOUND {
            self.misses.note(asked, status.as_str(), &[]);
        }
    }

    fn later(&self, fate: &RequestOutcome) -> Option<BoxFuture<'static, ()>> {
        let late = fate.late.map(|time| sleep(time).boxed());
        late.or_else(|| Some(self.clone().lapse(fate.lapse?).boxed()))
    }

    /// What the server makes of a request that left when this version was stored: it must not undo what was done
    /// since.
    async fn carried_out(
        &self,
        request: Request<Full<Bytes>>,
        stored: Option<String>,
    ) -> Response<Wire> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let present = self.stored(&method, &path);
        let answer = self.served(request).await;
        let is_late = stored.is_some() && present.is_some() && stored != present;
        if is_late && answer.status().is_success() {
            self.listener.overwritten(&path);
        }
        answer
    }

    async fn lapse(self, id: usize) {
        let holders = || -> Vec<String> {
            let leases = self.insider.list("leases.coordination.k8s.io");
            let holder = |lease| Object(lease).text("/spec/holderIdentity").to_owned();
            leases.into_iter().map(holder).collect()
        };
        let then = holders();
        while self.ills.holds(id) {
            if holders() != then {
                self.ills.hit(id);
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// The version of the object that a write to this path changes, where it is one of which we keep the
    /// newest: a status, or a lease.
    fn stored(&self, method: &Method, path: &str) -> Option<String> {
        if !is_write(method) {
            return None;
        }
        let (_, rest) = path.split_once("/namespaces/")?;
        let mut parts = rest.split('/');
        let (namespace, plural, name) = (parts.next()?, parts.next()?, parts.next()?);
        let resource = match plural {
            "variantautoscalings" => "variantautoscalings.llmd.ai",
            "leases" => "leases.coordination.k8s.io",
            _ => return None,
        };
        let object = self.insider.get(resource, namespace, name)?;
        Some(Object(object).text("/metadata/resourceVersion").to_owned())
    }

    async fn perish(&self) {
        self.ills.struck();
        self.life.end();
        std::future::pending::<()>().await;
    }

    pub(super) async fn next(&self, body: &mut Wire) -> Option<Bytes> {
        let frame = {
            let cut = pin!(self.ills.cut());
            match select(body.frame(), cut).await {
                Either::Left((frame, _)) => frame,
                Either::Right(_) => {
                    self.ills.hit_newest(Api::Cut);
                    return None;
                }
            }
        };
        let Ok(frame) = frame?;
        frame.into_data().ok()
    }
}

fn asks_for(answer: &Response<Wire>) -> Option<Duration> {
    let text = answer.headers().get("retry-after")?.to_str().ok()?;
    text.parse().ok().map(Duration::from_secs)
}

/// Whether a request changes something. Reviews only ask.
pub(super) fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn before(version: u64, back: u64) -> u64 {
    version.saturating_sub(back).max(1)
}

/// The resource that a path is about, as in `deployments.apps` and `pods.`.
fn resource_of(path: &str) -> Option<String> {
    let mut parts = path.trim_start_matches('/').split('/');
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    let _version = parts.next()?;
    let first = parts.next()?;
    let plural = match parts.nth(1) {
        Some(plural) if first == "namespaces" => plural,
        _ => first,
    };
    Some(format!("{plural}.{group}"))
}

fn asked(sent: &Sent<'_>) -> String {
    let verb = match *sent.method {
        Method::GET if sent.query.contains("watch=") => "WATCH",
        Method::GET if sent.query.contains("limit=") => "LIST",
        _ => sent.method.as_str(),
    };
    format!("{verb} {}", short(sent.path))
}

fn aged<B>(mut request: Request<B>, version: Option<u64>) -> Request<B> {
    let Some(version) = version else {
        return request;
    };
    let text = format!("{}&resourceVersion={version}&resourceVersionMatch=Exact", request.uri());
    if let Ok(uri) = text.parse() {
        *request.uri_mut() = uri;
    }
    request
}

#[cfg(test)]
mod tests;
