use std::time::Duration;

use super::{SECOND, arrival, engine, pool};
use crate::engine::EngineRefusal;
use crate::load::Arrival;
use crate::router::{FlowControl, QueueOrder, Rejection, RequestVerdict, Served};

fn rejections(served: &[Served]) -> Vec<(u64, Rejection)> {
    let of = |one: &Served| match one.verdict {
        RequestVerdict::Rejected(rejection) => (one.request.0, rejection),
        ref other => panic!("{other:?}"),
    };
    served.iter().map(of).collect()
}

#[test]
fn without_servers_requests_are_held_and_go_when_one_is_ready() {
    let mut pool = pool(Some(FlowControl::default()));
    for _ in 0..3 {
        pool.submit(arrival(100, 10), SECOND);
    }
    pool.advance(SECOND * 60);
    let reading = pool.reading();
    assert_eq!((reading.held, reading.dispatched, reading.ready), (3, 0, 0));
    assert!((pool.saturation() - 1.0).abs() < 1e-9);
    pool.add("a", engine(SECOND * 60), SECOND * 60);
    pool.advance(SECOND * 61);
    assert_eq!(pool.reading().held, 3, "it is not ready");
    pool.set_ready("a", true, SECOND * 61);
    assert_eq!((pool.reading().held, pool.reading().dispatched), (0, 3));
    pool.advance(SECOND * 70);
    let served = pool.take_served();
    assert_eq!(served.len(), 3);
    for one in &served {
        assert!(matches!(one.verdict, RequestVerdict::Answered(_)), "{one:?}");
        assert_eq!((one.held, one.endpoint.as_deref()), (SECOND * 60, Some("a")));
        assert!(one.time_to_first_token() > Some(SECOND * 60));
    }
}

#[test]
fn the_queue_has_an_end_and_so_has_patience() {
    let control = FlowControl { max_requests: 2, ttl: SECOND * 30, ..FlowControl::default() };
    let mut pool = pool(Some(control));
    for second in 1..=3 {
        pool.submit(arrival(1, 1), SECOND * second);
    }
    assert_eq!(rejections(&pool.take_served()), [(3, Rejection::Capacity)]);
    pool.advance(Duration::from_nanos(30_999_999_999));
    assert_eq!(pool.reading().held, 2);
    pool.advance(SECOND * 100);
    let served = pool.take_served();
    assert_eq!(rejections(&served), [(1, Rejection::Expired), (2, Rejection::Expired)]);
    assert_eq!((served[0].at, served[1].at), (SECOND * 31, SECOND * 32));
}

#[test]
fn the_queue_is_in_order_of_arrival_or_of_deadlines() {
    let queue = |order: QueueOrder| {
        let mut pool =
            pool(Some(FlowControl { ttl: SECOND * 30, order, ..FlowControl::default() }));
        for (second, within) in [(1, None), (2, Some(9)), (3, Some(1)), (4, Some(7))] {
            let within = within.map(|within| SECOND * within);
            let arrival = Arrival { within, ..arrival(1, 1) };
            pool.submit(arrival, SECOND * second);
        }
        let ids: Vec<u64> = pool.queue.iter().map(|held| held.request.id.0).collect();
        // Whatever the order, each expires by its own arrival.
        pool.advance(SECOND * 100);
        let expired = pool.take_served();
        let expired: Vec<Duration> = expired.iter().map(|one| one.at).collect();
        assert_eq!(expired, [31, 32, 33, 34].map(|second| SECOND * second));
        ids
    };
    assert_eq!(queue(QueueOrder::Fcfs), [1, 2, 3, 4]);
    // By 4 s, and by 11 s twice, the first that came first.
    assert_eq!(queue(QueueOrder::SloDeadline), [3, 2, 4, 1]);
}

#[test]
fn without_flow_control_nothing_is_held() {
    let mut pool = pool(None);
    pool.submit(arrival(1, 1), SECOND);
    assert_eq!(rejections(&pool.take_served()), [(1, Rejection::NoEndpoints)]);
    pool.add("a", engine(SECOND), SECOND);
    pool.set_ready("a", true, SECOND);
    pool.submit(arrival(1, 1), SECOND);
    pool.advance(SECOND * 2);
    assert!(matches!(pool.take_served()[0].verdict, RequestVerdict::Answered(_)));
}

#[test]
fn full_servers_make_requests_wait_at_the_gate() {
    let mut pool = pool(Some(FlowControl::default()));
    pool.add("a", engine(Duration::ZERO), Duration::ZERO);
    pool.set_ready("a", true, Duration::ZERO);
    for _ in 0..200 {
        pool.submit(arrival(8_000, 500), SECOND);
    }
    pool.advance(SECOND * 30);
    let reading = pool.reading();
    assert!(reading.held > 100 && reading.dispatched < 60, "{reading:?}");
    pool.advance(SECOND * 600);
    let served = pool.take_served();
    assert_eq!(served.len(), 200);
    assert!(served.iter().all(|one| matches!(one.verdict, RequestVerdict::Answered(_))));
}

#[test]
fn requests_spread_over_equal_servers_and_avoid_the_busy_one() {
    let mut pool = pool(None);
    for name in ["a", "b", "c"] {
        pool.add(name, engine(Duration::ZERO), Duration::ZERO);
        pool.set_ready(name, true, Duration::ZERO);
    }
    for _ in 0..300 {
        pool.submit(arrival(10, 500), SECOND);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(pool.statistics.picked[name], 100, "{name}");
    }
    pool.drain("b", SECOND);
    pool.submit(arrival(10, 10), SECOND);
    assert_eq!(pool.statistics.picked["b"], 100);
    assert_eq!(pool.reading().ready, 2);
}

#[test]
fn what_a_removed_server_had_is_lost() {
    let mut pool = pool(None);
    pool.add("a", engine(Duration::ZERO), Duration::ZERO);
    pool.set_ready("a", true, Duration::ZERO);
    pool.submit(arrival(10, 10_000), SECOND);
    pool.submit(arrival(100_000, 1), SECOND);
    let served = pool.take_served();
    assert!(
        matches!(served[0].verdict, RequestVerdict::Refused(EngineRefusal::TooLong { .. })),
        "{served:?}"
    );
    pool.remove("a", SECOND * 2);
    let served = pool.take_served();
    assert!(matches!(served[0].verdict, RequestVerdict::Lost(_)), "{served:?}");
    assert_eq!((served[0].at, pool.reading().dispatched), (SECOND * 2, 0));
}
