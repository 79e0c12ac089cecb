//! Events reach a real API server and appear where people look for them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use wva::cluster::event::{
    EventApi, EventNotice, EventReason, EventType, Occurrence, Regarding, publish,
};
use wva::cluster::permit::WritePermit;
use wva_base::moment::WallTime;

use crate::harness::fault::Result;
use crate::harness::permit::permit_of_term;
use crate::harness::suite::{Case, Cx};

const NOW: WallTime = WallTime(1_700_000_000_250);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "events::are_counted_up_and_come_back",
            are_counted_up_and_come_back,
        ),
        Case::shared(
            "events::are_seen_where_people_look",
            are_seen_where_people_look,
        ),
        Case::shared("events::keep_to_the_limits", keep_to_the_limits),
    ]
}

fn api(cx: &Cx) -> EventApi {
    EventApi {
        client: cx.world.client.clone(),
        controller: Arc::from("llmd.ai/workload-variant-autoscaler"),
        instance: Arc::from("wva-0"),
        timeout: Duration::from_secs(5),
    }
}

fn permit() -> WritePermit {
    permit_of_term(1)
}

async fn notice(cx: &Cx, note: &str) -> Result<EventNotice> {
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "settings"}}))?;
    let object = cx
        .namespace
        .api::<ConfigMap>()
        .create(&PostParams::default(), &object)
        .await?;
    Ok(EventNotice {
        regarding: Regarding {
            api_version: Arc::from("v1"),
            kind: Arc::from("ConfigMap"),
            namespace: Arc::from(&*cx.namespace.name),
            name: Arc::from(&*object.name_any()),
            uid: Arc::from(object.uid().unwrap_or_default()),
        },
        severity: EventType::Warning,
        reason: EventReason::ImmutableConfigChangeRejected,
        action: "Reload",
        note: note.to_owned(),
        cycle: None,
    })
}

async fn stored(cx: &Cx) -> Result<Vec<Event>> {
    let events: Api<Event> = cx.namespace.api();
    Ok(events.list(&ListParams::default()).await?.items)
}

/// `kubectl describe` and `kubectl get events` read them as events of the core group.
async fn are_seen_where_people_look(cx: &Cx) -> Result {
    let (api, notice) = (api(cx), notice(cx, "no").await?);
    let first = publish(permit(), &api, &Occurrence::once(notice.clone(), NOW), None).await?;
    let same = publish(permit(), &api, &Occurrence::once(notice.clone(), NOW), None).await?;
    assert_eq!(first, same);
    let fields = "involvedObject.name=settings,reason=ImmutableConfigChangeRejected,type=Warning";
    let events: Api<CoreEvent> = cx.namespace.api();
    let seen = events.list(&ListParams::default().fields(fields)).await?;
    let messages: Vec<_> = seen
        .items
        .iter()
        .map(|event| event.message.as_deref())
        .collect();
    assert_eq!(messages, [Some("no")]);
    Ok(())
}

async fn are_counted_up_and_come_back(cx: &Cx) -> Result {
    let (api, notice) = (api(cx), notice(cx, "no").await?);
    let series = |events: &[Event]| -> Vec<Option<i32>> {
        let count = |event: &Event| event.series.as_ref().map(|series| series.count);
        events.iter().map(count).collect()
    };
    let mut posted = publish(permit(), &api, &Occurrence::once(notice.clone(), NOW), None).await?;
    assert_eq!(series(&stored(cx).await?), [None]);
    for count in [2, 3] {
        posted = publish(
            permit(),
            &api,
            &Occurrence::once(notice.clone(), NOW),
            Some(&posted),
        )
        .await?;
        assert_eq!(series(&stored(cx).await?), [Some(count)]);
    }

    // The server forgets events after an hour.
    let events: Api<Event> = cx.namespace.api();
    events
        .delete(&stored(cx).await?[0].name_any(), &DeleteParams::default())
        .await?;
    let anew = publish(
        permit(),
        &api,
        &Occurrence::once(notice.clone(), WallTime(NOW.0 + 1)),
        Some(&posted),
    )
    .await?;
    assert_eq!(anew.count(), 1);
    assert_eq!(series(&stored(cx).await?), [None]);
    Ok(())
}

async fn keep_to_the_limits(cx: &Cx) -> Result {
    let mut long = notice(cx, &"ü".repeat(5_000)).await?;
    let api = EventApi {
        instance: Arc::from("p".repeat(500)),
        ..api(cx)
    };
    publish(permit(), &api, &Occurrence::once(long.clone(), NOW), None).await?;
    long.regarding.name = Arc::from(format!("{}.x", "n".repeat(199)));
    publish(permit(), &api, &Occurrence::once(long.clone(), NOW), None).await?;
    // An object without a namespace has its events in the default one.
    long.regarding.namespace = Arc::from("");
    long.regarding.kind = Arc::from("Namespace");
    publish(permit(), &api, &Occurrence::once(long.clone(), NOW), None).await?;
    Ok(())
}
