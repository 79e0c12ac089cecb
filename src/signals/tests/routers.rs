//! Every field of a router from the names of every generation, and requests by pod.

use std::collections::BTreeMap;

use super::collect::{NOW, moment, sample, timeout};
use super::fields::{ATTEMPTS, THEN, WAITING, collect, fresh, model, page, picked, pod, snapshot};
use super::stub::Stub;
use crate::policy::signal::SignalName;
use crate::policy::snapshot::RouterSamples;
use crate::signals::Ignored;
use crate::signals::query::QueryName;

#[test]
fn the_requests_of_a_pod_are_those_to_all_its_adapters() {
    let mut stub = page(10.0);
    picked(&mut stub, "m", 1.5);
    assert_eq!(pod(&snapshot(&stub), "p").arrival_rate, fresh(1.5));
    picked(&mut stub, "adapter", 0.5);
    let snapshot = snapshot(&stub);
    assert_eq!(pod(&snapshot, "p").arrival_rate, fresh(2.0));
    assert_eq!(snapshot.models.len(), 1, "adapters are no models of their own");
    let sources = &snapshot.sources[&SignalName::ArrivalRate];
    assert_eq!(sources.clone(), BTreeMap::from([(ATTEMPTS.into(), 1)]));
}

/// One sample of a router: the name asked for, its target, and the number.
fn asked(stub: &mut Stub, query: QueryName, source: &str, names: [&str; 2], number: f64) {
    let labels = [
        ("namespace", "ns"),
        ("model_name", names[0]),
        ("target_model_name", names[1]),
        ("source", source),
    ];
    stub.push(query, &labels, number);
}

#[test]
fn every_generation_of_router_fills_every_field() {
    for (prefix, requests) in [
        ("llm_d_epp", "llm_d_epp_request_total"),
        ("llm_d_router_epp", "llm_d_router_epp_request_total"),
        ("inference_extension", "inference_objective_request_total"),
        ("inference_extension", "inference_model_request_total"),
    ] {
        let mut stub = Stub::new();
        assert_eq!(snapshot(&stub).routers, BTreeMap::new());
        let size = format!("{prefix}_flow_control_queue_size");
        let bytes = format!("{prefix}_flow_control_queue_bytes");
        asked(&mut stub, QueryName::RouterQueue, &size, ["m", ""], 4.0);
        asked(&mut stub, QueryName::RouterQueue, &bytes, ["m", ""], 4096.0);
        asked(&mut stub, QueryName::RouterAge, &size, ["m", ""], THEN);
        asked(&mut stub, QueryName::RouterRates, requests, ["m", ""], 9.0);
        asked(&mut stub, QueryName::RouterAge, requests, ["m", ""], THEN);
        let expected = RouterSamples {
            queue_requests: fresh(4.0),
            queue_bytes: fresh(4096.0),
            arrival_rate: fresh(9.0),
        };
        let routers = BTreeMap::from([(model(), expected)]);
        assert_eq!(snapshot(&stub).routers, routers, "{prefix}");

        // Where arrivals are counted at the gate, that comes first.
        let enqueued = format!("{prefix}_flow_control_request_enqueue_duration_seconds_count");
        asked(&mut stub, QueryName::RouterRates, &enqueued, ["m", ""], 11.0);
        asked(&mut stub, QueryName::RouterAge, &enqueued, ["m", ""], THEN);
        let arrivals = snapshot(&stub).routers[&model()].arrival_rate;
        assert_eq!(arrivals, fresh(11.0), "{prefix}");
    }
}

#[test]
fn placements_are_counted_where_nothing_else_is() {
    let mut stub = page(10.0);
    picked(&mut stub, "m", 1.5);
    assert_eq!(snapshot(&stub).routers[&model()].arrival_rate, fresh(1.5));
}

#[test]
fn what_is_asked_for_by_several_names_adds_unless_it_is_a_ghost() {
    let size = "llm_d_epp_flow_control_queue_size";
    let mut stub = Stub::new();
    for (name, number, age) in [("m", 2.0, 10.0), ("alias", 3.0, 20.0)] {
        asked(&mut stub, QueryName::RouterQueue, size, [name, "m"], number);
        asked(&mut stub, QueryName::RouterAge, size, [name, "m"], NOW - age);
    }
    let queue = |stub: &Stub| snapshot(stub).routers[&model()].queue_requests;
    assert_eq!(queue(&stub), Some(sample(5.0, 20.0)));

    // No request came by this name since a router was replaced.
    asked(&mut stub, QueryName::RouterQueue, size, ["old", "m"], 50.0);
    asked(&mut stub, QueryName::RouterAge, size, ["old", "m"], NOW - 130.0);
    assert_eq!(queue(&stub), Some(sample(5.0, 20.0)));

    // The same series under an older name is not counted twice.
    let twice = "inference_extension_flow_control_queue_size";
    asked(&mut stub, QueryName::RouterQueue, twice, ["m", "m"], 5.0);
    asked(&mut stub, QueryName::RouterAge, twice, ["m", "m"], NOW);
    assert_eq!(queue(&stub), Some(sample(5.0, 20.0)));
}

#[test]
fn a_router_that_could_not_be_asked_is_not_the_same_as_none() {
    let mut stub = page(10.0);
    stub.reading([QueryName::QueueLength, QueryName::QueueLengthAge], WAITING, "p", 1.0, THEN);
    assert_eq!(snapshot(&stub).routers, BTreeMap::new());
    stub.fail(QueryName::RouterQueue, timeout());
    let snapshot = snapshot(&stub);
    let unknown = BTreeMap::from([(model(), RouterSamples::default())]);
    assert_eq!(snapshot.routers, unknown);
    assert_eq!(pod(&snapshot, "p").queue_length, fresh(1.0));
    let failed: Vec<_> = snapshot.failures.keys().copied().collect();
    let queues = [SignalName::RouterQueueRequests, SignalName::RouterQueueBytes];
    assert_eq!(failed, queues);
}

#[test]
fn router_samples_that_do_not_say_what_they_are_of_are_counted() {
    let mut stub = Stub::new();
    let size = "llm_d_epp_flow_control_queue_size";
    asked(&mut stub, QueryName::RouterQueue, size, ["", ""], 1.0);
    asked(&mut stub, QueryName::RouterQueue, size, ["m", "a\nb"], 1.0);
    let labels = [("model_name", "m"), ("source", size), ("pod", "epp")];
    stub.push(QueryName::RouterQueue, &labels, 1.0);
    asked(&mut stub, QueryName::RouterQueue, size, ["m", ""], 1.0);
    let collection = collect(&stub);
    let expected = [(Ignored::Namespace, 1), (Ignored::Model, 2), (Ignored::NoAge, 1)];
    assert_eq!(collection.report.ignored, BTreeMap::from(expected));
    assert_eq!(collection.into_snapshot(moment()).routers, BTreeMap::new());
}
