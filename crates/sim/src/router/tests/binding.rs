//! Which server gets which request by early binding.

use std::time::Duration;

use super::{SECOND, arrival, engine, pool_with};
use crate::engine::RequestId;
use crate::router::{Binding, FlowControl, Rejection, RequestVerdict, RouterPool};

/// A pool with these servers, all ready at once.
fn ready(binding: Binding, flow_control: Option<FlowControl>, names: &[&str]) -> RouterPool {
    let mut pool = pool_with(binding, flow_control);
    for name in names {
        pool.add(*name, engine(Duration::ZERO), Duration::ZERO);
        pool.set_ready(name, true, Duration::ZERO);
    }
    pool
}

/// The server that has got one more request by this one.
fn bound(pool: &mut RouterPool, output_tokens: u32, at: Duration) -> String {
    let before = pool.statistics.picked.clone();
    pool.submit(arrival(10, output_tokens), at);
    let grown = pool.statistics.picked.iter().find(|(name, count)| {
        let known = before.get(*name).copied().unwrap_or(0);
        **count > known
    });
    grown.expect("a server").0.clone()
}

/// Requests that each server has.
fn loads(pool: &RouterPool) -> Vec<(String, usize)> {
    let loads = pool.endpoints.iter().map(|(name, endpoint)| {
        let reading = endpoint.engine.reading();
        (name.clone(), reading.running + reading.waiting)
    });
    loads.collect()
}

/// The servers that get the next requests.
fn turn(pool: &mut RouterPool, requests: usize, at: Duration) -> Vec<String> {
    let turn = (0..requests).map(|_| bound(pool, 500, at));
    turn.collect()
}

#[test]
fn round_robin_takes_the_ready_servers_in_turn() {
    let mut pool = ready(Binding::RoundRobin, None, &["b", "a", "c"]);
    let first = turn(&mut pool, 7, SECOND);
    assert_eq!(first, ["a", "b", "c", "a", "b", "c", "a"]);
    pool.drain("b", SECOND);
    pool.add("ba", engine(SECOND), SECOND);
    let second = turn(&mut pool, 3, SECOND * 2);
    assert_eq!(second, ["c", "a", "c"], "b drains and ba is not ready");
    pool.set_ready("ba", true, SECOND * 2);
    let third = turn(&mut pool, 4, SECOND * 2);
    assert_eq!(third, ["a", "ba", "c", "a"]);
}

#[test]
fn least_request_counts_running_and_waiting() {
    let mut pool = ready(Binding::LeastRequest, None, &["a", "b"]);
    let first = bound(&mut pool, 4_000, SECOND);
    let second = bound(&mut pool, 10, SECOND);
    assert_ne!(first, second);
    // The short answer is over, so its server gets two requests before the other one is equal to it again.
    assert_eq!(bound(&mut pool, 4_000, SECOND * 3), second);
    let mut equal: Vec<(String, usize)> = vec![("a".to_owned(), 1), ("b".to_owned(), 1)];
    assert_eq!(loads(&pool), equal);
    pool.remove(&first, SECOND * 3);
    pool.add(first.clone(), engine(SECOND * 3), SECOND * 3);
    pool.set_ready(&first, true, SECOND * 3);
    assert_eq!(bound(&mut pool, 4_000, SECOND * 4), first, "it is empty");
    assert_eq!(loads(&pool), equal);
    for _ in 0..100 {
        bound(&mut pool, 4_000, SECOND * 4);
    }
    for (_, load) in &mut equal {
        *load = 51;
    }
    assert_eq!(loads(&pool), equal);
}

#[test]
fn early_binding_queues_at_the_server_and_late_binding_at_the_router() {
    for (binding, dispatched) in [
        (Binding::Late, None),
        (Binding::RoundRobin, Some(200)),
        (Binding::LeastRequest, Some(200)),
    ] {
        let mut pool = ready(binding, Some(FlowControl::default()), &["a", "b"]);
        for _ in 0..200 {
            pool.submit(arrival(8_000, 500), SECOND);
        }
        let reading = pool.reading();
        match dispatched {
            Some(all) => assert_eq!((reading.held, reading.dispatched), (0, all), "{binding:?}"),
            None => assert!(reading.held > 100, "{binding:?} {reading:?}"),
        }
    }
}

#[test]
fn a_request_stays_with_its_server() {
    let mut pool = ready(Binding::RoundRobin, Some(FlowControl::default()), &["a"]);
    for _ in 0..200 {
        pool.submit(arrival(8_000, 500), SECOND);
    }
    pool.add("b", engine(SECOND * 2), SECOND * 2);
    pool.set_ready("b", true, SECOND * 2);
    pool.advance(SECOND * 900);
    let served = pool.take_served();
    assert_eq!(served.len(), 200);
    for one in &served {
        let answered = matches!(one.verdict, RequestVerdict::Answered(_));
        assert!(answered && one.endpoint.as_deref() == Some("a"), "{one:?}");
        assert_eq!(one.held, Duration::ZERO);
    }
}

#[test]
fn without_a_ready_server_early_binding_waits_as_flow_control_says() {
    for binding in [Binding::RoundRobin, Binding::LeastRequest] {
        let mut pool = pool_with(binding, None);
        pool.submit(arrival(1, 1), SECOND);
        let rejected = RequestVerdict::Rejected(Rejection::NoEndpoints);
        assert_eq!(pool.take_served()[0].verdict, rejected, "{binding:?}");

        let mut pool = pool_with(binding, Some(FlowControl::default()));
        for _ in 0..40 {
            pool.submit(arrival(8_000, 500), SECOND);
        }
        assert_eq!(pool.reading().held, 40, "{binding:?}");
        pool.add("a", engine(SECOND * 9), SECOND * 9);
        pool.set_ready("a", true, SECOND * 9);
        assert_eq!((pool.reading().held, pool.reading().dispatched), (0, 40));
        pool.advance(SECOND * 300);
        let served = pool.take_served();
        let ids = served.iter().map(|one| one.request);
        assert!(ids.eq((1..=40).map(RequestId)), "{served:?}");
        assert!(served.iter().all(|one| one.held == SECOND * 8));
    }
}
