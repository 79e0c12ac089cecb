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

/// The labels of a pod of that service.
fn labels() -> Value {
    let place = "stormservice.orchestration.aibrix.ai/pod-group-index";
    json!({"storm-service-name": "pd", "role-name": "prefill", place: "0"})
}

/// Publishes what reads of pods brought for the object of this record.
fn publish_reads(shared: &SharedState, record: &AutoscalerRecord, reads: &[(&str, SampleReading)]) {
    let source = &record.policy.as_ref().unwrap().sources[0];
    let reads = reads.iter().map(|(pod, reading)| {
        let key = SampleKey {
            namespace: "ns".into(),
            pod: Some((*pod).into()),
            source: SampleSource::of(source),
        };
        (key, reading.clone())
    });
    let table: SampleTable = reads.collect();
    let epoch = Epoch::for_test(Role::PodScraper, 1);
    let writer = &shared.writers.pod_scraper;
    writer.publish(&epoch, Arc::new(table)).unwrap();
}

fn refused() -> SampleReading {
    SampleReading { value: None, failure: Some(ReadFailure::new(Failure::QueryFailed, "refused")) }
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
    let publish =
        |reading: SampleReading| publish_reads(&shared, &again, &[("prefill-0", reading)]);
    let counter = SampleReading {
        value: None,
        failure: Some(ReadFailure {
            needs_reads: true,
            ..ReadFailure::new(Failure::Absent, "read once")
        }),
    };
    for (reading, expected) in [(counter, Some(started.decided)), (refused(), None)] {
        publish(reading);
        let record = decide_at(&shared, now);
        assert_eq!(outcome(&record), AutoscalerOutcome::FailedComputeScale);
        assert_eq!(record.unread_since, expected);
    }
    publish(SampleReading { value: Some((10.0, now)), failure: None });
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

#[tokio::test]
async fn the_failure_of_a_pod_that_owes_a_sample_is_shown_first() {
    let all = ["cold-0", "new-0", "warm-0"];
    let shared = cluster(&all.map(|pod| (pod, labels())));
    let started = unread(&shared);
    assert_eq!(names(&started), all);
    for (failing, first) in
        [(&all[..1], "cold-0"), (&all[..2], "new-0"), (&all[1..], "warm-0"), (&all[..], "warm-0")]
    {
        let reads: Vec<_> = failing.iter().map(|pod| (*pod, refused())).collect();
        publish_reads(&shared, &started, &reads);
        let notes = decide(&shared, "a").notes;
        let end = format!(": pod {first}: refused");
        assert!(notes[0].ends_with(&end), "{notes:?}");
    }
}
