//! As many ScaledObjects as one controller is to serve.

use std::pin::Pin;
use std::sync::Arc;

use futures::{FutureExt as _, Stream, StreamExt as _};
use tokio::sync::{Semaphore, watch};
use tokio::task::coop::unconstrained;
use tonic::Code;

use super::super::decisions::DecisionLookup;
use super::super::streams::{StreamTerms, activity};
use super::super::trigger::ScalerTrigger;
use super::super::{ExternalScaler, STREAMS};
use super::{
    DESIRED, GetMetricsRequest, reference, scaled_object, shared, store_scaled_objects,
    store_variants, variant,
};
use crate::policy::key::{TargetKey, TargetKind};
use crate::state::SharedState;
use crate::state::changes::FollowedObject;

const OBJECTS: usize = 10_000;

type Activity = Pin<Box<dyn Stream<Item = bool> + Send>>;

fn name(kind: &str, number: usize) -> String {
    format!("{kind}-{number}")
}

/// The count of each; every third one is at zero.
fn decided(number: usize) -> u32 {
    u32::try_from(number % 3).unwrap()
}

/// Stores ScaledObjects without a name of a variant, each with the VariantAutoscaling of its target.
fn furnish(shared: &SharedState, decided: impl Fn(usize) -> u32) {
    let variants = (0..OBJECTS).map(|number| {
        let count = Some(decided(number));
        variant(&name("v", number), &name("d", number), count)
    });
    store_variants(shared, variants);
    let objects = (0..OBJECTS).map(|number| scaled_object(&name("so", number), &name("d", number)));
    store_scaled_objects(shared, objects);
}

/// What a stream sends now, if anything.
fn sent(stream: &mut Activity) -> Option<bool> {
    unconstrained(stream.next()).now_or_never().flatten()
}

/// What is held is what is watched, however many objects are named in calls.
#[test]
fn each_of_ten_thousand_objects_has_its_own_count_and_no_call_is_kept() {
    let shared = shared();
    furnish(&shared, decided);
    let scaler = ExternalScaler::new(shared.readers.clone(), None);
    for number in 0..OBJECTS {
        let object = reference(&name("so", number), &[]);
        let wanted = GetMetricsRequest {
            scaled_object_ref: Some(object.clone()),
            metric_name: DESIRED.to_owned(),
        };
        let answer = scaler.metrics(&wanted).unwrap();
        let count = decided(number);
        assert_eq!(answer.metric_values[0].whole, i64::from(count), "{number}");
        let active = scaler.is_active(&object).unwrap();
        assert_eq!(active.result, count > 0, "{number}");
        let specs = scaler.metric_spec(&object).unwrap();
        assert_eq!(specs.metric_specs[0].metric_name, DESIRED);
        let unknown = reference(&name("unknown", number), &[]);
        let refused = scaler.is_active(&unknown).unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{number}");
    }
    let mirrors = &shared.mirrors;
    let held = (mirrors.scaled_objects.all().len(), mirrors.variants.all().len());
    assert_eq!(held, (OBJECTS, OBJECTS));
    assert_eq!(shared.changes.followed(), 0);
}

#[tokio::test(start_paused = true)]
async fn each_of_ten_thousand_streams_follows_its_own_object_and_leaves_nothing() {
    const CHANGED: usize = 3_000;
    let shared = shared();
    furnish(&shared, decided);
    let places = Arc::new(Semaphore::new(STREAMS));
    let (_close, closing) = watch::channel(false);
    let decisions = DecisionLookup::new(shared.readers.clone());
    let open = |number: usize| -> Activity {
        let trigger = ScalerTrigger::read(&reference(&name("so", number), &[])).unwrap();
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let terms = StreamTerms::new(closing.clone(), place);
        let stream = activity(decisions.clone(), trigger, terms);
        Box::pin(stream.map(|message| message.unwrap().result))
    };
    let mut streams: Vec<Activity> = (0..OBJECTS).map(open).collect();
    assert_eq!(shared.changes.followed(), 0);
    for (number, stream) in streams.iter_mut().enumerate() {
        assert_eq!(sent(stream), Some(decided(number) > 0), "{number}");
        assert_eq!(sent(stream), None, "{number}");
    }
    // Each follows its ScaledObject and the target of it.
    assert_eq!(shared.changes.followed(), 2 * OBJECTS);
    assert_eq!(places.available_permits(), STREAMS - OBJECTS);

    assert_eq!(decided(CHANGED), 0);
    furnish(&shared, |number| if number == CHANGED { 2 } else { decided(number) });
    let target = TargetKey::new("ns", TargetKind::Deployment, name("d", CHANGED));
    shared.changes.wake(&FollowedObject::Target(target));
    let messages = streams.iter_mut().enumerate();
    let messages = messages.filter_map(|(number, stream)| Some((number, sent(stream)?)));
    assert_eq!(messages.collect::<Vec<_>>(), [(CHANGED, true)]);

    drop(streams);
    assert_eq!(shared.changes.followed(), 0);
    assert_eq!(places.available_permits(), STREAMS);
}
