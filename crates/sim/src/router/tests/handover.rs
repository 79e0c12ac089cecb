//! Prompts and answers on servers of their own.

use std::time::Duration;

use super::{SECOND, arrival, engine, spec};
use crate::router::{Binding, FlowControl, Rejection, RequestVerdict, RouterPool};
use wva::policy::capacity::ServingRole;
use wva_supervise::SeedTree;

const MILLISECOND: Duration = Duration::from_millis(1);

fn apart(servers: &[(&str, ServingRole)]) -> RouterPool {
    let mut spec = spec(Binding::Late, Some(FlowControl::default()));
    spec.handover = Some(MILLISECOND);
    let mut pool = RouterPool::new(spec, &SeedTree::new(9));
    for (name, role) in servers {
        pool.add_for(*role, *name, engine(Duration::ZERO), Duration::ZERO);
        pool.set_ready(name, true, Duration::ZERO);
    }
    pool
}

#[test]
fn a_prompt_is_read_by_one_server_and_answered_by_another() {
    let mut pool = apart(&[("p", ServingRole::Prefill)]);
    pool.submit(arrival(400, 100), SECOND);
    pool.advance(SECOND * 2);
    assert_eq!(pool.reading().held, 1, "nothing answers");
    pool.add_for(ServingRole::Decode, "d", engine(SECOND * 2), SECOND * 2);
    pool.set_ready("d", true, SECOND * 2);
    pool.advance(SECOND * 2 + 100 * MILLISECOND);
    let reading = pool.reading();
    assert_eq!((reading.held, reading.dispatched), (0, 1), "on its way");
    assert_eq!(pool.engine("d").unwrap().reading().running, 0);
    pool.advance(SECOND * 60);
    let [served] = &pool.take_served()[..] else { panic!("one request") };
    let RequestVerdict::Answered(answer) = &served.verdict else { panic!("{served:?}") };
    assert_eq!(served.endpoint.as_deref(), Some("d"));
    assert_eq!((answer.prompt_tokens, answer.output_tokens), (400, 100));
    // It was held for a second, and 400 tokens of its cache took 0.4 s; what the prompt took on the first server, it
    // does not take again.
    let first = served.time_to_first_token().unwrap();
    let rest = first.checked_sub(SECOND + 400 * MILLISECOND).unwrap();
    assert!(rest > 10 * MILLISECOND && rest < 150 * MILLISECOND, "{rest:?}");
    let again = answer.time_to_first_token.unwrap();
    assert!(again < 15 * MILLISECOND, "{again:?}");
    assert_eq!(pool.reading().dispatched, 0);
}

#[test]
fn a_request_ends_with_its_server_and_without_one_that_answers() {
    let both = [("d", ServingRole::Decode), ("p", ServingRole::Prefill)];
    let lost = |server: &str, at: Duration| {
        let mut pool = apart(&both);
        pool.submit(arrival(400, 1_000), SECOND);
        pool.advance(at);
        pool.remove(server, at);
        pool.advance(SECOND * 60);
        assert_eq!(pool.reading().dispatched, 0);
        let served = pool.take_served();
        assert_eq!(served.len(), 1);
        served[0].verdict.clone()
    };
    let reading = SECOND + MILLISECOND;
    assert!(matches!(lost("p", reading), RequestVerdict::Lost(_)));
    let moving = SECOND + 200 * MILLISECOND;
    assert_eq!(lost("d", moving), RequestVerdict::Rejected(Rejection::NoEndpoints));
    assert!(matches!(lost("d", SECOND * 3), RequestVerdict::Lost(_)));
    // A prefill server has nothing more to do with it then.
    assert!(matches!(lost("p", moving), RequestVerdict::Answered(_)));
}

#[test]
fn the_fullest_role_holds_requests() {
    let mut pool = apart(&[("d", ServingRole::Decode), ("p", ServingRole::Prefill)]);
    for _ in 0..200 {
        pool.submit(arrival(4_000, 10), SECOND);
    }
    pool.advance(SECOND + 500 * MILLISECOND);
    let reading = pool.reading();
    assert!(reading.held > 100, "{reading:?}");
    assert!(pool.saturation() >= 1.0, "{reading:?}");
    assert!(pool.engine("d").unwrap().reading().kv_usage < 0.4);
    pool.advance(SECOND * 120);
    assert_eq!(pool.take_served().len(), 200);
}
