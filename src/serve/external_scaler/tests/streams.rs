use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use tokio::sync::{Semaphore, watch};
use tonic::{Code, Streaming};

use super::super::decisions::DecisionLookup;
use super::super::streams::{StreamTerms, activity};
use super::super::trigger::ScalerTrigger;
use super::super::{ExternalScaler, ScalerClient};
use super::{
    DESIRED, GetMetricSpecResponse, IsActiveResponse, connected, reference, scaled_object, shared,
    store_scaled_objects, store_variants, variant,
};
use crate::policy::key::{ObjectKey, TargetKey, TargetKind, VariantKey};
use crate::state::SharedState;
use crate::state::changes::FollowedObject;

fn named() -> super::ScaledObjectRef {
    reference("so", &[("variantName", "a")])
}

/// Stores a decision and wakes what follows the variant, as its watcher does.
fn decide(shared: &SharedState, desired: Option<u32>) {
    store_variants(shared, [variant("a", "a", desired)]);
    let key = VariantKey::new("ns", "a");
    shared.changes.wake(&FollowedObject::Variant(key));
    let target = TargetKey::new("ns", TargetKind::Deployment, "a");
    shared.changes.wake(&FollowedObject::Target(target));
}

async fn next(stream: &mut Streaming<IsActiveResponse>) -> bool {
    stream.message().await.unwrap().unwrap().result
}

/// A stream of the trigger `named`, with what ends it.
fn opened(
    shared: &SharedState,
) -> (watch::Sender<bool>, impl futures::Stream<Item = bool> + use<>) {
    let (close, closing) = watch::channel(false);
    let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    let decisions = DecisionLookup::new(shared.readers.clone());
    let trigger = ScalerTrigger::read(&named()).unwrap();
    let stream = activity(decisions, trigger, StreamTerms::new(closing, place));
    (close, stream.map(|message| message.unwrap().result))
}

#[tokio::test]
async fn a_decision_reaches_the_stream_at_once() {
    let (shared, _server, client) = connected().await;
    decide(&shared, Some(0));
    let mut stream = client.open("StreamIsActive", named()).await.unwrap();
    assert!(!next(&mut stream).await);
    for desired in [1, 0, 4] {
        decide(&shared, Some(desired));
        assert_eq!(next(&mut stream).await, desired > 0, "{desired}");
    }
}

#[tokio::test]
async fn a_stream_is_silent_while_nothing_changes_or_is_known() {
    let shared = shared();
    let (close, stream) = opened(&shared);
    let mut stream = pin!(stream);
    let mut now = || stream.next().now_or_never();
    assert_eq!(now(), None, "nothing is listed");
    store_variants(&shared, []);
    shared.changes.wake(&FollowedObject::Variant(VariantKey::new("ns", "a")));
    assert_eq!(now(), None, "there is no variant");
    decide(&shared, Some(2));
    assert_eq!(now(), Some(Some(true)));
    for desired in [Some(3), Some(1)] {
        decide(&shared, desired);
        assert_eq!(now(), None, "{desired:?}");
    }
    decide(&shared, Some(0));
    assert_eq!(now(), Some(Some(false)));
    close.send_replace(true);
    assert_eq!(now(), Some(None), "it ends without an error");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_wakes_no_stream_is_sent_all_the_same() {
    let shared = shared();
    let (close, stream) = opened(&shared);
    let mut stream = pin!(stream);
    assert_eq!(stream.next().now_or_never(), None);
    store_variants(&shared, [variant("a", "a", Some(0))]);
    assert_eq!(stream.next().await, Some(false));
    assert_eq!(stream.next().now_or_never(), None);
    store_variants(&shared, [variant("a", "a", Some(1))]);
    assert_eq!(stream.next().await, Some(true));
    close.send_replace(true);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_stream_follows_the_target_of_its_object() {
    let (shared, _server, client) = connected().await;
    decide(&shared, Some(3));
    store_scaled_objects(&shared, [scaled_object("so", "elsewhere")]);
    let mut stream = client.open("StreamIsActive", reference("so", &[])).await.unwrap();
    let mut first = Box::pin(next(&mut stream));
    assert_eq!(first.as_mut().now_or_never(), None);
    store_scaled_objects(&shared, [scaled_object("so", "a")]);
    let object = FollowedObject::ScaledObject(ObjectKey::new("ns", "so"));
    shared.changes.wake(&object);
    assert!(first.as_mut().await);
    drop(first);
    decide(&shared, Some(0));
    assert!(!next(&mut stream).await);
}

#[tokio::test]
async fn the_metrics_of_a_trigger_are_streamed_once() {
    let (_shared, _server, client) = connected().await;
    let opened = client.open("StreamMetricSpec", named()).await;
    let mut stream: Streaming<GetMetricSpecResponse> = opened.unwrap();
    let specs = stream.message().await.unwrap().unwrap().metric_specs;
    assert_eq!(specs[0].metric_name, DESIRED);
    assert_eq!(specs, client.spec(named()).await.unwrap().metric_specs);
    assert!(stream.message().now_or_never().is_none());
}

#[tokio::test]
async fn a_trigger_that_cannot_be_read_opens_no_stream() {
    let (_shared, _server, client) = connected().await;
    for method in ["StreamIsActive", "StreamMetricSpec"] {
        let wrong = reference("so", &[("variantName", "A b")]);
        let refused = client.open::<IsActiveResponse>(method, wrong).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{method}");
        assert!(refused.message().contains("\"A b\""), "{refused}");
    }
}

#[tokio::test]
async fn streams_are_bounded_and_one_that_ends_leaves_its_place() {
    let shared = shared();
    let scaler = ExternalScaler {
        streams: Arc::new(Semaphore::new(1)),
        ..ExternalScaler::new(shared.readers.clone(), None)
    };
    let (_close, closing) = watch::channel(false);
    let client = ScalerClient { is_proven: false, closing };
    let first = scaler.terms(client.clone()).unwrap();
    let refused = scaler.terms(client.clone()).unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    drop(first);
    assert!(scaler.terms(client).is_ok());
}

/// KEDA opens two streams for each ScaledObject, all on one connection, and reads what comes.
#[tokio::test]
async fn many_objects_follow_on_one_connection() {
    const OBJECTS: usize = 500;
    let (shared, _server, client) = connected().await;
    decide(&shared, Some(0));
    let mut streams = Vec::new();
    for number in 0..OBJECTS {
        let reference = reference(&format!("so-{number}"), &[("variantName", "a")]);
        let opened = client.open("StreamIsActive", reference.clone()).await;
        let mut activity: Streaming<IsActiveResponse> = opened.unwrap();
        assert!(!next(&mut activity).await);
        let opened = client.open("StreamMetricSpec", reference).await;
        let mut specs: Streaming<GetMetricSpecResponse> = opened.unwrap();
        assert!(specs.message().await.unwrap().is_some());
        streams.push((activity, specs));
    }
    decide(&shared, Some(1));
    let active: FuturesUnordered<_> = streams.iter_mut().map(|(stream, _)| next(stream)).collect();
    let active = active.filter(|active| ready(*active)).count().await;
    assert_eq!(active, OBJECTS);
}
