//! What is told of requests on their way.

use std::sync::Mutex;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::advance;

use super::*;
use crate::chaos::trace::{Keep, Trace};
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// Takes down what it hears.
#[derive(Debug, Default)]
struct Ear(Mutex<Vec<String>>);

impl Ear {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl RequestListener for Ear {
    fn called(&self, _: &Sent<'_>) {}

    fn stored(&self, path: &str) {
        self.note(format!("stored {}", short(path)));
    }

    fn warded_off(&self, sent: &Sent<'_>, time: Duration) {
        self.note(format!("{} {time:?}", asked(sent)));
    }

    fn asked(&self) {}

    fn overwritten(&self, path: &str) {
        self.note(format!("overwritten {}", short(path)));
    }
}

/// A way to a server that has a lease, and who listens at it.
async fn way() -> (ApiServerProxy, Arc<Ear>) {
    let clock = Clock::at(WallTime(0));
    let server = ApiServer::new(clock.clone(), &SeedTree::new(1));
    let ear = Arc::new(Ear::default());
    let line = ApiServerProxy {
        insider: Insider::new(server.clone(), "test"),
        server,
        ills: ActiveFaults::default(),
        life: ProcessState::new(Arc::default()),
        listener: Arc::<Ear>::clone(&ear),
        misses: Misses::new(Trace::new(clock, Keep::Tail), 0),
        watches: Watches::default(),
    };
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "first"},
    });
    let created = line.served(request(Method::POST, LEASES, &lease)).await;
    assert_eq!(created.status(), 201);
    (line, ear)
}

fn request(method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, kind);
    request
        .body(Full::new(Bytes::from(body.to_string())))
        .unwrap()
}

/// Writes who holds the lease, whatever its version is or for this one alone.
fn holds(who: &str, version: Option<&str>) -> Request<Full<Bytes>> {
    let change = json!({
        "metadata": {"resourceVersion": version}, "spec": {"holderIdentity": who},
    });
    request(Method::PATCH, &format!("{LEASES}/l"), &change)
}

fn sends(line: &ApiServerProxy, request: Request<Full<Bytes>>) -> JoinHandle<StatusCode> {
    let line = line.clone();
    tokio::spawn(async move { line.oneshot(request).await.unwrap().status() })
}

/// What is heard of a write of the lease that waits while somebody else writes it, or nobody does.
async fn waits(
    is_paused: bool,
    is_versioned: bool,
    is_rivalled: bool,
) -> (StatusCode, Vec<String>) {
    let (line, ear) = way().await;
    let version = line.stored(&Method::PUT, &format!("{LEASES}/l")).unwrap();
    line.ills
        .inject_api(1, Api::Latency(Duration::from_secs(4)), 0);
    line.life.freeze(is_paused);
    let sent = sends(&line, holds("late", is_versioned.then_some(&*version)));
    advance(Duration::from_secs(2)).await;
    tokio::task::yield_now().await;
    ear.0.lock().unwrap().clear();
    if is_rivalled {
        let other = line.server.clone().oneshot(holds("other", None)).await;
        assert_eq!(other.unwrap().status(), 200);
    }
    line.life.freeze(false);
    let status = sent.await.unwrap();
    let heard = ear.0.lock().unwrap().clone();
    (status, heard)
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_is_compared_with_what_was_stored_when_it_left() {
    let carried_out = "stored default/leases/l".to_owned();
    let overwritten = "overwritten default/leases/l".to_owned();
    for is_paused in [false, true] {
        let (status, heard) = waits(is_paused, false, false).await;
        assert_eq!((status.as_u16(), heard), (200, vec![carried_out.clone()]));
        let (status, heard) = waits(is_paused, false, true).await;
        let both = vec![carried_out.clone(), overwritten.clone()];
        assert_eq!((status.as_u16(), heard), (200, both), "{is_paused}");
        // A version of its own is what protects the newer one.
        let (status, heard) = waits(is_paused, true, true).await;
        assert_eq!((status.as_u16(), heard), (409, Vec::new()), "{is_paused}");
        let (status, _) = waits(is_paused, true, false).await;
        assert_eq!(status.as_u16(), 200, "{is_paused}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_ask_for_time_are_told_when_they_arrive() {
    let (line, ear) = way().await;
    ear.0.lock().unwrap().clear();
    let list = || request(Method::GET, &format!("{LEASES}?limit=5"), &Value::Null);
    assert_eq!(sends(&line, list()).await.unwrap().as_u16(), 200);
    line.ills.inject_api(1, Api::Refuse(503, None), 0);
    assert_eq!(sends(&line, list()).await.unwrap().as_u16(), 503);
    assert!(ear.0.lock().unwrap().is_empty(), "{ear:?}");
    line.ills.clear(1, Duration::ZERO);
    line.ills.inject_api(2, Api::Refuse(429, Some(7)), 0);
    assert_eq!(sends(&line, list()).await.unwrap().as_u16(), 429);
    assert_eq!(*ear.0.lock().unwrap(), ["LIST default/leases 7s"]);
    // Whoever has ended is not answered.
    line.life.end();
    let uri = Uri::from_static("/api/v1/pods");
    let sent = Sent::new(&Method::GET, &uri, b"");
    line.arrived(&sent, &refusal(429, Some(7)));
    assert_eq!(ear.0.lock().unwrap().len(), 1);
}
