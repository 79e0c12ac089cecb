//! Answers, and the faults that show in them.

use std::sync::{Arc, Mutex};

use super::*;
use crate::prometheus::InProcess;
use wva::signals::{PromApi, QueryError};
use wva_supervise::Clock;

fn filled() -> Prometheus {
    let (mut server, id) = server(target("a"));
    page(&mut server, id, 10, "x{a=\"1\"} 1\nx{a=\"2\"} 2\ny 2\n");
    server
}

#[test]
fn faults_show_in_answers() {
    let mut server = filled();
    assert_eq!(values(&server, "y", 12), [2.0]);
    server.set_lag(Duration::from_secs(3));
    assert_eq!(values(&server, "y", 12), NONE);
    assert_eq!(values(&server, "y", 13), [2.0]);
    server.set_lag(Duration::ZERO);

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
    assert!(matches!(refused, QueryError::BadRequest { status: 400, .. }), "{refused}");
    let refused = client.query("max_over_time(y[1d:1s])", deadline).await;
    assert!(matches!(refused, Err(QueryError::BadRequest { status: 422, .. })), "{refused:?}");
    let matrix = client.query("y[1m:10s]", deadline).await.unwrap_err();
    assert!(matches!(matrix, QueryError::Malformed { .. }), "{matrix}");
    server.lock().unwrap().set_down(true);
    let failed = client.query("y", deadline).await.unwrap_err();
    assert_eq!(failed.reason(), "unreachable");
}
