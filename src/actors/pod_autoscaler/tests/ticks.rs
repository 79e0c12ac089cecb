//! When an object is decided on.

use super::*;
use crate::policy::pod_autoscaler::schedule::ReplicaBounds;
use wva_base::moment::WallTime;

/// A role of four to ten replicas, of at least six from 09:00 to 10:00.
fn scheduled() -> SharedState {
    let shared = storm_pods();
    publish_service(&shared, &service(&json!({})));
    let office =
        json!({"name": "office", "startTime": "09:00", "endTime": "10:00", "minReplicas": 6});
    let object = json!({
        "metadata": {
            "namespace": "ns", "name": "a", "uid": "a", "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": VERSION, "kind": "StormService", "name": "pd"},
            "subTargetSelector": {"roleName": "decode"},
            "minReplicas": 4, "maxReplicas": 10, "scalingStrategy": "KPA",
            "metricsSources": [of_pod("x")], "schedules": [office],
        },
    });
    let mirror = &shared.writers.mirrors.pod_autoscalers;
    list::<PodAutoscaler>(mirror, [object]);
    shared
}

fn actor(shared: &SharedState) -> PodAutoscalerActor {
    let key = ObjectKey::new("ns", "a");
    let epoch = Epoch::for_test(Role::PodAutoscaler(key.clone()), 1);
    let board = Arc::clone(&shared.writers.pod_autoscalers);
    let writes = RetryQueue::new(|| {});
    PodAutoscalerActor::new(key, shared.readers.clone(), board, &epoch, writes)
}

/// What a step decides, with the bounds that it is made in, and what it arms.
fn step(
    actor: &mut PodAutoscalerActor,
    now: Moment,
    event: Event<PodAutoscalerMessage>,
) -> Option<(u32, ReplicaBounds, Duration, u64)> {
    let mut effects = Vec::new();
    actor.step(now, event, &mut effects);
    let mut effects = effects.into_iter();
    let PodAutoscalerEffect::Show(record) = effects.next()? else {
        panic!("nothing is shown");
    };
    let Some(PodAutoscalerEffect::Arm(after, PodAutoscalerMessage::Tick(timer))) = effects.next()
    else {
        panic!("nothing is armed");
    };
    let decision = record.decision().unwrap();
    let bounds = decision.bounds.bounds;
    Some((decision.desired.0, bounds, after, timer.number()))
}

#[tokio::test]
async fn a_boundary_of_a_schedule_is_met_at_once() {
    let shared = scheduled();
    let nine: Timestamp = "2026-08-03T09:00:00Z".parse().unwrap();
    let started = shared.clock.now();
    let tick = until_tick(&ObjectKey::new("ns", "a"), started);
    // The tick is nine seconds away, the boundary two and a half.
    let now = Moment {
        monotonic: started.monotonic + tick + Duration::from_secs(1),
        wall: WallTime(nine.as_millisecond() - 2_500),
    };
    let mut actor = actor(&shared);
    let bounds = |min: u32| ReplicaBounds { min: Replicas(min), max: Replicas(10) };
    let wait = Duration::from_millis(2_500);
    let before = step(&mut actor, now, Event::Started);
    assert_eq!(before, Some((4, bounds(4), wait, 1)));
    let now = now.later(wait);
    let mut timer = TimerEpoch::default();
    let outdated = PodAutoscalerMessage::Tick(timer);
    assert_eq!(step(&mut actor, now, Event::Message(outdated)), None);
    let newest = PodAutoscalerMessage::Tick(timer.advance());
    let at = step(&mut actor, now, Event::Message(newest));
    assert_eq!(at, Some((6, bounds(6), Duration::from_millis(6_500), 2)));
}
