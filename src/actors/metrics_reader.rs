//! Reads what PodAutoscalers measure through the metrics APIs of Kubernetes: one request for each API, namespace and
//! metric, however many objects and pods rest on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::sample_plan::{RequestSlots, SliceEnd, wanted_samples};
use crate::cluster::client::RequestError;
use crate::cluster::metrics_apis::{
    MeasuredMetric, MetricsAnswer, MetricsApi, MetricsApiClient, MetricsRequest, ServedMetricsApis,
};
use crate::policy::pod_autoscaler::samples::{ReadFailure, SampleKey, SampleReading, SampleTable};
use crate::policy::pod_autoscaler::source::{MetricSource, SourceKind};
use crate::policy::signal::{Failure, FreshnessBands};
use crate::state::permission_reporter::PermissionReporter;
use crate::state::{MetricsReaderWriters, Readers};
use wva_base::moment::{Moment, WallTime};
use wva_supervise::{Actor, ActorResult, Context, Event};

/// From one round to the next. Requests of a round that are not sent by then come first in the next one.
const ROUND: Duration = Duration::from_secs(10);
const WIDTH: usize = 16;
/// Longest time for one message, after which values are published.
const SLICE: Duration = Duration::from_millis(250);
/// A value does not age for so long. Servers that measure once a minute show the next value a minute later, give or
/// take their own delay and a round of ours, and a value is fresh for a minute.
const RENEWAL: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) enum MetricsReaderMessage {
    /// To itself: time for the next round.
    Round,
    /// To itself: go on with the requests that are waiting or in flight.
    Read,
    /// To itself: the API server has been left alone for as long as it asked.
    Resume,
}

#[derive(Debug)]
enum MetricsOutcome {
    Discovery(Result<ServedMetricsApis, RequestError>),
    Answer { request: MetricsRequest, answer: Result<MetricsAnswer, RequestError>, at: Moment },
}

/// Which APIs are served, as discovery answered in this round.
#[derive(Debug)]
enum Discovered {
    Unknown,
    Asked,
    Served(ServedMetricsApis),
}

#[derive(Debug)]
pub(crate) struct MetricsReader {
    shared: Readers,
    writers: Arc<MetricsReaderWriters>,
    api: MetricsApiClient,
    permissions: PermissionReporter,
    discovered: Discovered,
    uses: BTreeMap<MetricsRequest, BTreeSet<SampleKey>>,
    samples: SampleTable,
    /// The newest time that each value was measured at, and the read that first showed it.
    shown: BTreeMap<SampleKey, (WallTime, Moment)>,
    /// Oldest first.
    waiting: VecDeque<MetricsRequest>,
    in_flight: BTreeSet<MetricsRequest>,
    slots: RequestSlots<MetricsOutcome>,
    /// Until when the API server has asked to be left alone: it has too many requests, whatever they are about.
    spared: Option<Moment>,
    /// Whether a message to go on is on its way.
    is_going: bool,
    has_changed: bool,
    /// Whether a request of this round failed, which the others do not make up for.
    has_failed: bool,
}

impl MetricsReader {
    pub(crate) fn new(
        shared: Readers,
        writers: Arc<MetricsReaderWriters>,
        api: MetricsApiClient,
        permissions: PermissionReporter,
    ) -> Self {
        Self {
            shared,
            writers,
            api,
            permissions,
            discovered: Discovered::Unknown,
            uses: BTreeMap::new(),
            samples: SampleTable::new(),
            shown: BTreeMap::new(),
            waiting: VecDeque::new(),
            in_flight: BTreeSet::new(),
            slots: RequestSlots::new(WIDTH),
            spared: None,
            is_going: false,
            has_changed: true,
            has_failed: false,
        }
    }

    fn begin_round(&mut self, cx: &Context<MetricsReaderMessage>) {
        cx.arm(ROUND, MetricsReaderMessage::Round);
        self.uses.clear();
        self.has_failed = false;
        if self.shared.claim.may_write(cx.now()) {
            let is_wanted = |source: &MetricSource| api_of(&source.kind).is_some();
            let wanted = wanted_samples(&self.shared.autoscalers, is_wanted);
            for key in wanted.into_keys() {
                if let Some(request) = request_of(&key) {
                    self.uses.entry(request).or_default().insert(key);
                }
            }
        }
        if self.uses.is_empty() {
            self.slots.clear();
            self.in_flight.clear();
        }
        let wanted: BTreeSet<&SampleKey> = self.uses.values().flatten().collect();
        let before = self.samples.len();
        self.samples.retain(|key, _| wanted.contains(key));
        self.shown.retain(|key, _| wanted.contains(key));
        self.has_changed |= self.samples.len() != before;
        if self.slots.is_empty() || !matches!(self.discovered, Discovered::Asked) {
            self.discovered = Discovered::Unknown;
        }
        let uses = &self.uses;
        self.waiting.retain(|request| uses.contains_key(request));
        let queued: BTreeSet<MetricsRequest> = self.waiting.iter().cloned().collect();
        let is_idle = |request: &&MetricsRequest| {
            !queued.contains(request) && !self.in_flight.contains(request)
        };
        self.waiting.extend(uses.keys().filter(is_idle).cloned());
    }

    /// Sends requests for one slice, and publishes what they bring.
    async fn read(&mut self, cx: &Context<MetricsReaderMessage>) -> ActorResult {
        if !self.shared.claim.may_write(cx.now()) {
            self.waiting.clear();
        }
        let slice = SliceEnd::after(SLICE);
        loop {
            self.fill(cx.now());
            let Some(outcome) = self.slots.next(slice).await else {
                break;
            };
            self.take(cx, outcome);
            if slice.is_over() {
                break;
            }
        }
        self.go_on(cx);
        self.publish(cx)
    }

    fn is_spared(&self, now: Moment) -> bool {
        self.spared.is_some_and(|until| now.monotonic < until.monotonic)
    }

    fn go_on(&mut self, cx: &Context<MetricsReaderMessage>) {
        let can_send = !self.waiting.is_empty() && !self.is_spared(cx.now());
        if (can_send || !self.slots.is_empty()) && !self.is_going {
            self.is_going = true;
            cx.send_self(MetricsReaderMessage::Read);
        }
    }

    /// Fills the slots, as far as the API server is not left alone. What is served is asked first.
    fn fill(&mut self, now: Moment) {
        if self.is_spared(now) || self.waiting.is_empty() {
            return;
        }
        if matches!(self.discovered, Discovered::Unknown) {
            self.discovered = Discovered::Asked;
            let api = self.api.clone();
            self.slots.push(Box::pin(async move { MetricsOutcome::Discovery(api.served().await) }));
        }
        let Discovered::Served(served) = &self.discovered else {
            return;
        };
        let served = served.clone();
        while !self.slots.is_full()
            && let Some(request) = self.waiting.pop_front()
        {
            match served.get(&request.api) {
                Some(version) => self.begin(request, version),
                None => self.fail(&request, &not_served(request.api)),
            }
        }
    }

    fn begin(&mut self, request: MetricsRequest, version: &'static str) {
        let (api, clock) = (self.api.clone(), self.shared.clock.clone());
        self.in_flight.insert(request.clone());
        self.slots.push(Box::pin(async move {
            let answer = api.read(&request, version).await;
            let at = clock.now();
            MetricsOutcome::Answer { request, answer, at }
        }));
    }

    fn take(&mut self, cx: &Context<MetricsReaderMessage>, outcome: MetricsOutcome) {
        match outcome {
            MetricsOutcome::Discovery(Ok(served)) => self.discovered = Discovered::Served(served),
            MetricsOutcome::Discovery(Err(error)) => {
                self.discovered = Discovered::Unknown;
                self.refused(cx, "Discover", &error);
                if !self.is_spared(cx.now()) {
                    // One wait a round is enough.
                    let failure = ReadFailure::new(Failure::QueryFailed, error.to_string());
                    for request in std::mem::take(&mut self.waiting) {
                        self.fail(&request, &failure);
                    }
                }
            }
            MetricsOutcome::Answer { request, answer: Ok(answer), at } => {
                self.in_flight.remove(&request);
                self.show(&request, &answer, at);
                self.answered();
            }
            MetricsOutcome::Answer { request, answer: Err(error), .. } => {
                self.in_flight.remove(&request);
                let failure = request_failure(&request, &error);
                self.fail(&request, &failure);
                if failure.kind == Failure::Absent {
                    self.answered();
                } else {
                    self.refused(cx, "Read", &error);
                }
            }
        }
    }

    fn answered(&self) {
        if !self.has_failed {
            self.writers.requests.worked();
        }
    }

    /// Reports a missing right, and leaves the API server alone for as long as it asked, if it did.
    fn refused(
        &mut self,
        cx: &Context<MetricsReaderMessage>,
        action: &'static str,
        error: &RequestError,
    ) {
        tracing::warn!(%error, "failed to read a metrics API");
        self.has_failed = true;
        self.writers.requests.failed(&error.to_string());
        if error.is_denied() {
            self.permissions.report(action, error);
        }
        if let Some(asked) = self.shared.hooks.retry_after(error.retry_after()) {
            self.spared = self.spared.max(Some(cx.now().later(asked)));
            cx.arm(asked, MetricsReaderMessage::Resume);
        }
    }

    fn show(&mut self, request: &MetricsRequest, answer: &MetricsAnswer, at: Moment) {
        for key in self.uses.get(request).into_iter().flatten() {
            let found = found(key, answer);
            let measured = found.and_then(|metric| metric.at);
            let first = measured.map_or(at, |measured| {
                let shown = self.shown.entry(key.clone()).or_insert((measured, at));
                // Servers that take turns show an older value again, which is no new one.
                if measured > shown.0 {
                    *shown = (measured, at);
                }
                shown.1
            });
            let reading = self.samples.entry(key.clone()).or_default();
            match found.map(|metric| value(metric, first, at)) {
                Some(Ok(value)) => *reading = value,
                Some(Err(failure)) => reading.failure = Some(failure),
                None => reading.failure = Some(absent(request, key)),
            }
            self.has_changed = true;
        }
    }

    fn fail(&mut self, request: &MetricsRequest, failure: &ReadFailure) {
        for key in self.uses.get(request).into_iter().flatten() {
            let reading = self.samples.entry(key.clone()).or_default();
            reading.failure = Some(failure.clone());
            self.has_changed = true;
        }
    }

    fn publish(&mut self, cx: &Context<MetricsReaderMessage>) -> ActorResult {
        if self.has_changed {
            let table = Arc::new(self.samples.clone());
            self.writers.samples.publish(cx.epoch(), table)?;
            self.has_changed = false;
        }
        Ok(())
    }
}

fn api_of(kind: &SourceKind) -> Option<MetricsApi> {
    match kind {
        SourceKind::Cpu | SourceKind::Memory => Some(MetricsApi::Resource),
        SourceKind::Custom => Some(MetricsApi::Custom),
        SourceKind::External => Some(MetricsApi::External),
        SourceKind::Pod { .. } | SourceKind::Service { .. } => None,
    }
}

fn request_of(key: &SampleKey) -> Option<MetricsRequest> {
    let api = api_of(&key.source.kind)?;
    let metric = match api {
        MetricsApi::Resource => Arc::from(""),
        MetricsApi::Custom | MetricsApi::External => Arc::clone(&key.source.metric),
    };
    let namespace = Arc::clone(&key.namespace);
    Some(MetricsRequest { api, namespace, metric })
}

fn found<'a>(key: &SampleKey, answer: &'a MetricsAnswer) -> Option<&'a MeasuredMetric> {
    match (answer, &key.source.kind) {
        (MetricsAnswer::Usage(pods), SourceKind::Cpu) => Some(&pods.get(key.pod.as_ref()?)?.cpu),
        (MetricsAnswer::Usage(pods), _) => Some(&pods.get(key.pod.as_ref()?)?.memory),
        (MetricsAnswer::Custom(pods), _) => pods.get(key.pod.as_ref()?),
        (MetricsAnswer::External(total), _) => total.as_ref(),
    }
}

/// The value with the time that it counts from. Servers measure at intervals of their own, so that a time which was
/// first shown just now is the newest that there is; one ahead of the own clock is now.
fn value(
    metric: &MeasuredMetric,
    first: Moment,
    now: Moment,
) -> Result<SampleReading, ReadFailure> {
    let invalid = |why: String| ReadFailure::new(Failure::Invalid, why);
    let value = match &metric.value {
        Ok(value) if value.is_finite() && *value >= 0.0 => *value,
        Ok(_) => return Err(invalid("its value is negative, and no demand".to_owned())),
        Err(error) => return Err(invalid(error.to_string())),
    };
    let age = metric.at.map(|at| now.wall.since(at)).unwrap_or_default();
    let bands = FreshnessBands::default();
    if age >= bands.unavailable {
        let why = "its timestamp is 5 min old or older; check the server of the metrics API";
        return Ok(SampleReading {
            value: None,
            failure: Some(ReadFailure::new(Failure::TooOld, why)),
        });
    }
    let shown = now.since(first).saturating_sub(RENEWAL);
    Ok(SampleReading { value: Some((value, now.earlier(age.min(shown)))), failure: None })
}

fn absent(request: &MetricsRequest, key: &SampleKey) -> ReadFailure {
    let (group, metric) = (request.api.group(), &key.source.metric);
    let namespace = &request.namespace;
    let why = match &key.pod {
        Some(_) => format!("{group} has no {metric} of it yet"),
        None => format!(
            "{group} has no item of {metric} in namespace {namespace}; correct targetMetric, or configure the adapter"
        ),
    };
    ReadFailure::new(Failure::Absent, why)
}

fn not_served(api: MetricsApi) -> ReadFailure {
    let (group, server) = (api.group(), api.server());
    let why = format!("the API server does not serve {group}; install {server}");
    ReadFailure::new(Failure::QueryFailed, why)
}

fn request_failure(request: &MetricsRequest, error: &RequestError) -> ReadFailure {
    let (group, namespace) = (request.api.group(), &request.namespace);
    let named = format!("{group} in namespace {namespace}: {error}");
    match error.code() {
        Some(404) => ReadFailure::new(
            Failure::Absent,
            format!("{named}; correct targetMetric, or configure the adapter"),
        ),
        _ if error.is_denied() => ReadFailure::new(
            Failure::QueryFailed,
            format!("{named}; allow the controller to get and list in group {group}"),
        ),
        _ => ReadFailure::new(Failure::QueryFailed, named),
    }
}

impl Actor for MetricsReader {
    type Msg = MetricsReaderMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started | Event::Message(MetricsReaderMessage::Round) => {
                self.begin_round(cx);
                self.go_on(cx);
                self.publish(cx)
            }
            Event::Message(MetricsReaderMessage::Resume) => {
                self.go_on(cx);
                Ok(())
            }
            Event::Message(MetricsReaderMessage::Read) => {
                self.is_going = false;
                self.read(cx).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
