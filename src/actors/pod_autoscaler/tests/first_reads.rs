//! What was not read yet lacks without being a failure.

use std::time::Duration;

use super::*;
use crate::actors::sample_plan::tests::put_up;
use crate::policy::pod_autoscaler::decide::AutoscalerOutcome;
use crate::policy::pod_autoscaler::samples::{
    ReadFailure, SampleKey, SampleReading, SampleSource, SampleTable,
};
use crate::policy::signal::Failure;
use wva_base::moment::Moment;

/// An object that scales a service of seven replicas with these pods.
fn unread(shared: &SharedState) -> AutoscalerRecord {
    publish_service(shared, &service(&json!({})));
    autoscalers(shared, &[("a", "StormService", "pd", None, None)]);
    decide(shared, "a")
}

fn decide_at(shared: &SharedState, now: Moment) -> AutoscalerRecord {
    let key = ObjectKey::new("ns", "a");
    shared.readers.decide_autoscaler(&key, now).unwrap()
}

#[tokio::test]
async fn a_sample_is_on_its_way_until_a_read_brings_or_refuses_it() {
    let shared = storm_pods();
    let started = unread(&shared);
    let outcome = |record: &AutoscalerRecord| record.decision().unwrap().outcome;
    assert_eq!(outcome(&started), AutoscalerOutcome::FailedComputeScale);
    assert_eq!(names(&started), ["prefill-0"]);
    assert_eq!(started.unread_since, Some(started.decided));
    // Whatever a life of the actor left on the board counts.
    put_up(&shared.writers.pod_autoscalers, [started.clone()]);
    let now = started.decided.later(Duration::from_secs(10));
    let again = decide_at(&shared, now);
    assert_eq!(again.unread_since, Some(started.decided));
    let policy = again.policy.unwrap();
    let publish = |reading: SampleReading| {
        let key = SampleKey {
            namespace: "ns".into(),
            pod: Some("prefill-0".into()),
            source: SampleSource::of(&policy.sources[0]),
        };
        let table: SampleTable = [(key, reading)].into();
        let epoch = Epoch::for_test(Role::PodScraper, 1);
        let writer = &shared.writers.pod_scraper;
        writer.publish(&epoch, Arc::new(table)).unwrap();
    };
    let counter = ReadFailure {
        needs_reads: true,
        ..ReadFailure::new(Failure::Absent, "read once")
    };
    let refused = ReadFailure::new(Failure::QueryFailed, "refused");
    for (failure, expected) in [(counter, Some(started.decided)), (refused, None)] {
        publish(SampleReading {
            value: None,
            failure: Some(failure),
        });
        let record = decide_at(&shared, now);
        assert_eq!(outcome(&record), AutoscalerOutcome::FailedComputeScale);
        assert_eq!(record.unread_since, expected);
    }
    publish(SampleReading {
        value: Some((10.0, now)),
        failure: None,
    });
    let measured = decide_at(&shared, now);
    assert_eq!(outcome(&measured), AutoscalerOutcome::Decided);
    assert_eq!(measured.unread_since, None);
}

/// A count that was just written has no pods yet.
#[tokio::test]
async fn a_target_without_pods_waits_for_them() {
    let shared = cluster(&[]);
    let started = unread(&shared);
    assert_eq!(names(&started), [""; 0]);
    assert_eq!(started.unread_since, Some(started.decided));
}

/// The clock of a pod that is ready and unready by turns is that of its first start.
#[tokio::test]
async fn a_pod_that_flaps_gains_no_time() {
    let labels = || {
        let place = "stormservice.orchestration.aibrix.ai/pod-group-index";
        json!({"storm-service-name": "pd", "role-name": "prefill", place: "0"})
    };
    let shared = cluster(&[]);
    let started = unread(&shared);
    assert_eq!(started.starting_since, None);
    put_up(&shared.writers.pod_autoscalers, [started.clone()]);
    let mut since = None;
    for (seconds, pod) in [(10, "cold-0"), (20, "warm-0"), (30, "cold-0")] {
        list_pods(&shared, &[(pod, labels())]);
        let now = started.decided.later(Duration::from_secs(seconds));
        let record = decide_at(&shared, now);
        let is_cold = pod == "cold-0";
        assert_eq!(names(&record), [pod]);
        assert_eq!(record.unread_since, (!is_cold).then_some(now));
        assert_eq!(record.starting_since, Some(*since.get_or_insert(now)));
        put_up(&shared.writers.pod_autoscalers, [record]);
    }
    list_pods(&shared, &[]);
    let now = started.decided.later(Duration::from_secs(40));
    assert_eq!(decide_at(&shared, now).starting_since, None);
}
