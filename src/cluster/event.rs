//! Kubernetes events: what people see of us in `kubectl describe` and `kubectl get events`.

mod reason;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

pub(crate) use crate::policy::pod_autoscaler::event::EventType;
pub(crate) use reason::EventReason;

use super::client::RequestError;
use super::fingerprint::fingerprint;
use super::permit::{PermitExpired, WritePermit};
use crate::api::text::bounded;
use crate::policy::snapshot::CycleId;
use wva_base::moment::WallTime;

/// Longest note, in bytes; the limit of the API.
pub(crate) const NOTE_LIMIT: usize = 1024;
/// Longest name of the reporting instance, in bytes; the limit of the API.
const INSTANCE_LIMIT: usize = 128;
/// Longest part of an object's name that goes into the name of its event, in bytes.
const STEM_LIMIT: usize = 200;
/// Where events about objects without a namespace live.
const CLUSTER_NAMESPACE: &str = "default";

/// The program that reports events, as a qualified name.
pub(crate) const REPORTING_CONTROLLER: &str = "llmd.ai/workload-variant-autoscaler";

#[derive(Clone)]
pub struct EventApi {
    pub client: Client,
    /// The program, as a qualified name.
    pub controller: Arc<str>,
    /// The process, usually the name of its pod.
    pub instance: Arc<str>,
    /// Longest wait for one request.
    pub timeout: Duration,
}

wva_base::debug_of!(EventApi: controller, instance);

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Regarding {
    /// Its API version, like `apps/v1`.
    pub api_version: Arc<str>,
    pub kind: Arc<str>,
    /// Its namespace; empty for kinds that have none.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// Its unique id: events of a former object of this name are not shown with it.
    pub uid: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventNotice {
    pub regarding: Regarding,
    pub severity: EventType,
    pub reason: EventReason,
    /// What we did or tried, in one word of at most 128 letters.
    pub action: &'static str,
    /// The whole story; cut at 1 kB.
    pub note: String,
    pub cycle: Option<CycleId>,
}

impl EventNotice {
    /// A warning that is of no planning cycle.
    pub(crate) fn warning(
        regarding: Regarding,
        reason: EventReason,
        action: &'static str,
        note: String,
    ) -> Self {
        Self { regarding, severity: EventType::Warning, reason, action, note, cycle: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) notice: EventNotice,
    pub(crate) times: u32,
    /// When last.
    pub(crate) at: WallTime,
}

impl Occurrence {
    pub(crate) fn once(notice: EventNotice, at: WallTime) -> Self {
        Self { notice, times: 1, at }
    }

    fn times(&self) -> i32 {
        i32::try_from(self.times).unwrap_or(i32::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Posted {
    namespace: String,
    name: String,
    count: i32,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    /// The right to write would end before the request. Nothing is in flight.
    #[error("event: the right to write ends too soon for another request")]
    Expired,
    /// The API server does not take it, for lack of a rule or since its namespace is going away.
    #[error("event is refused: {0}; the role needs create and patch on events in events.k8s.io")]
    Refused(#[source] RequestError),
    /// Worth another try. The event may have been stored all the same.
    #[error("event: {0}")]
    Retry(#[source] RequestError),
}

impl From<PermitExpired> for EventError {
    fn from(PermitExpired: PermitExpired) -> Self {
        Self::Expired
    }
}

impl EventError {
    pub(crate) fn is_denied(&self) -> bool {
        match self {
            Self::Refused(error) => error.is_denied(),
            Self::Expired | Self::Retry(_) => false,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(error) | Self::Retry(error) => error.retry_after(),
            Self::Expired => None,
        }
    }
}

/// Stores an event, or counts up the `earlier` one of the same kind. An earlier one that the server
/// has since forgotten is stored anew. Two calls with the same occurrence store one event.
pub(crate) async fn publish(
    permit: WritePermit,
    api: &EventApi,
    occurrence: &Occurrence,
    earlier: Option<&Posted>,
) -> Result<Posted, EventError> {
    if let Some(earlier) = earlier
        && let Some(posted) = repeat(&permit, api, occurrence, earlier).await?
    {
        return Ok(posted);
    }
    create(&permit, api, occurrence).await
}

/// Counts up; `None` if the event is no longer there.
async fn repeat(
    permit: &WritePermit,
    api: &EventApi,
    occurrence: &Occurrence,
    earlier: &Posted,
) -> Result<Option<Posted>, EventError> {
    let posted =
        Posted { count: earlier.count.saturating_add(occurrence.times()), ..earlier.clone() };
    let patch = Patch::Merge(json!({ "series": series(posted.count, occurrence.at) }));
    let parameters = PatchParams::default();
    let events: Api<Event> = Api::namespaced(api.client.clone(), &posted.namespace);
    let patched = events.patch(&posted.name, &parameters, &patch);
    match permit.request(api.timeout, patched).await? {
        Ok(_) => Ok(Some(posted)),
        Err(error) if error.code() == Some(404) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

async fn create(
    permit: &WritePermit,
    api: &EventApi,
    occurrence: &Occurrence,
) -> Result<Posted, EventError> {
    let event = document(api, occurrence);
    let posted = Posted {
        namespace: event.metadata.namespace.clone().unwrap_or_default(),
        name: event.metadata.name.clone().unwrap_or_default(),
        count: occurrence.times(),
    };
    let events: Api<Event> = Api::namespaced(api.client.clone(), &posted.namespace);
    let parameters = PostParams::default();
    let created = events.create(&parameters, &event);
    match permit.request(api.timeout, created).await? {
        Ok(_) => Ok(posted),
        // An earlier try arrived after all.
        Err(error) if error.code() == Some(409) => Ok(posted),
        Err(error) => Err(failure(error)),
    }
}

fn series(count: i32, at: WallTime) -> EventSeries {
    EventSeries { count, last_observed_time: micro_time(at) }
}

fn document(api: &EventApi, occurrence: &Occurrence) -> Event {
    let Occurrence { notice, at, .. } = occurrence;
    let regarding = &notice.regarding;
    let namespace =
        if regarding.namespace.is_empty() { CLUSTER_NAMESPACE } else { &regarding.namespace };
    let identity = fingerprint(&[
        &regarding.uid,
        &regarding.kind,
        notice.reason.as_str(),
        notice.action,
        &notice.note,
        &at.0.to_string(),
    ]);
    let stem: String = regarding.name.chars().take(STEM_LIMIT).collect();
    Event {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            name: Some(format!("{}.{identity:016x}", stem.trim_end_matches(['.', '-']))),
            ..ObjectMeta::default()
        },
        regarding: Some(ObjectReference {
            api_version: Some(regarding.api_version.to_string()),
            kind: Some(regarding.kind.to_string()),
            namespace: (!regarding.namespace.is_empty()).then(|| regarding.namespace.to_string()),
            name: Some(regarding.name.to_string()),
            uid: (!regarding.uid.is_empty()).then(|| regarding.uid.to_string()),
            ..ObjectReference::default()
        }),
        type_: Some(notice.severity.as_str().to_owned()),
        reason: Some(notice.reason.as_str().to_owned()),
        action: Some(notice.action.to_owned()),
        note: Some(bounded(&notice.note, NOTE_LIMIT)),
        event_time: Some(micro_time(*at)),
        series: (occurrence.times > 1).then(|| series(occurrence.times(), *at)),
        reporting_controller: Some(api.controller.to_string()),
        reporting_instance: Some(bounded(&api.instance, INSTANCE_LIMIT)),
        ..Event::default()
    }
}

fn failure(error: RequestError) -> EventError {
    match error.code() {
        Some(code) if code != 429 && code < 500 => EventError::Refused(error),
        _ => EventError::Retry(error),
    }
}

fn micro_time(at: WallTime) -> MicroTime {
    let fallback = if at.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
    MicroTime(Timestamp::from_millisecond(at.0).unwrap_or(fallback))
}

#[cfg(test)]
mod tests;
