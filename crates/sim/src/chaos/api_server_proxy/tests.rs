//! What waits on its way.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::advance;

use super::*;
use crate::chaos::checker::Checker;
use crate::chaos::fault::ChaosFault;
use crate::chaos::trace::{Keep, Trace};
use wva_base::moment::WallTime;
use wva_supervise::{Clock, SeedTree};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A way to a server that has a lease.
async fn way() -> ApiServerProxy {
    let clock = Clock::at(WallTime(0));
    let server = ApiServer::new(clock.clone(), &SeedTree::new(1));
    let trace = Trace::new(clock.clone(), Keep::Tail);
    let insider = Insider::new(server.clone(), "test");
    let over = Arc::new(Notify::new());
    let line = ApiServerProxy {
        ills: ActiveFaults::default(),
        life: ProcessState::new(Arc::default()),
        listener: RequestObserver {
            judge: Checker::new(clock, insider.clone(), trace.clone(), over),
            place: 0,
            pod: "pod".to_owned(),
        },
        misses: Misses::new(trace, 0),
        watches: Watches::default(),
        insider,
        server,
    };
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "l"}, "spec": {"holderIdentity": "first"},
    });
    let created = line.served(request(Method::POST, LEASES, &lease)).await;
    assert_eq!(created.status(), 201);
    line
}

fn request(method: Method, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let kind = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, kind);
    request.body(Full::new(Bytes::from(body.to_string()))).unwrap()
}

/// Writes who holds the lease, whatever its version is or for this one alone.
fn holds(who: &str, version: Option<&str>) -> Request<Full<Bytes>> {
    let change = json!({
        "metadata": {"resourceVersion": version}, "spec": {"holderIdentity": who},
    });
    request(Method::PATCH, &format!("{LEASES}/l"), &change)
}

/// The answer to a write of the lease that waits while another process writes it, or none does; and the invariant
/// that it breaks.
async fn waits(
    is_paused: bool,
    is_versioned: bool,
    is_rivalled: bool,
) -> (u16, Option<&'static str>) {
    let line = way().await;
    let version = line.stored(&Method::PUT, &format!("{LEASES}/l")).unwrap();
    let late = Api::Latency(Duration::from_secs(4));
    line.ills.inject(1, ChaosFault::Api(0, late), 0);
    line.life.freeze(is_paused);
    let late = holds("late", is_versioned.then_some(&*version));
    let sent = tokio::spawn(Owner::NONE.does(line.clone().carry(late)));
    advance(Duration::from_secs(2)).await;
    tokio::task::yield_now().await;
    if is_rivalled {
        let other = line.server.clone().oneshot(holds("other", None)).await;
        assert_eq!(other.unwrap().status(), 200);
    }
    line.life.freeze(false);
    let status = sent.await.unwrap().unwrap().status().as_u16();
    let found = line.listener.judge.found();
    (status, found.map(|(_, violation)| violation.invariant))
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_is_compared_with_what_was_stored_when_it_left() {
    for is_paused in [false, true] {
        assert_eq!(waits(is_paused, false, false).await, (200, None));
        assert_eq!(waits(is_paused, false, true).await, (200, Some("W4")));
        // A version of its own is what protects the newer one.
        assert_eq!(waits(is_paused, true, true).await, (409, None));
        assert_eq!(waits(is_paused, true, false).await, (200, None));
    }
}
