//! Reads the metrics pages of the pods that PodAutoscalers scale, and of services that report a total: each page
//! once, however many objects and metrics rest on it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::actors::sample_plan::{RequestSlots, SliceEnd, wanted_samples};
use crate::policy::pod_autoscaler::demand::AutoscaledPod;
use crate::policy::pod_autoscaler::metric_name::{PageMetric, SeriesType};
use crate::policy::pod_autoscaler::page_value::{
    EarlierRead, FamilySamples, PageReading, page_value, shown_family,
};
use crate::policy::pod_autoscaler::record::MeasuredPod;
use crate::policy::pod_autoscaler::samples::{ReadFailure, SampleKey, SampleReading, SampleTable};
use crate::policy::pod_autoscaler::source::SourceKind;
use crate::policy::signal::Failure;
use crate::signals::{MetricFamilies, PageReadError, PageUrl, PodPages};
use crate::state::Readers;
use wva_base::moment::Moment;
use wva_supervise::{Actor, ActorResult, Context, Event, Writer};

/// From one round to the next. Pages of a round that are not read by then come first in the next one.
const ROUND: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(2);
/// Pages in flight. A pod that hangs holds one slot for its deadline.
const WIDTH: usize = 64;
/// After so long without an observation a latency of a pod that runs no request is zero. A value stays fresh for longer.
const IDLE_AFTER: Duration = Duration::from_secs(50);
/// The name that stands for the running requests of any engine.
const RUNNING: &str = "num_requests_running";
/// Longest time for one message, after which values are published.
const SLICE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) enum PodScraperMessage {
    /// To itself: time for the next round.
    Round,
    /// To itself: go on with the pages that are waiting or in flight.
    Scrape,
}

/// A page of a pod in its namespace, or of a service, which all namespaces share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PageKey {
    pod: Option<(Arc<str>, Arc<str>)>,
    url: PageUrl,
}

impl PageKey {
    /// The namespace of a pod; services have one share together.
    fn namespace(&self) -> Option<&Arc<str>> {
        self.pod.as_ref().map(|(namespace, _)| namespace)
    }
}

/// Pages that wait, oldest first in each namespace. The namespace with the fewest pages in flight is next, so that one
/// with many pods that hang leaves the others their share; namespaces with equally many take turns.
#[derive(Debug, Default)]
struct FairPages {
    lanes: BTreeMap<Option<Arc<str>>, VecDeque<PageKey>>,
    /// The namespace that was served last.
    last: Option<Arc<str>>,
}

impl FairPages {
    fn push(&mut self, page: PageKey) {
        let lane = self.lanes.entry(page.namespace().cloned()).or_default();
        lane.push_back(page);
    }

    fn pages(&self) -> impl Iterator<Item = &PageKey> {
        self.lanes.values().flatten()
    }

    fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    fn retain(&mut self, is_kept: impl Fn(&PageKey) -> bool) {
        self.lanes.retain(|_, lane| {
            lane.retain(&is_kept);
            !lane.is_empty()
        });
    }

    fn pop(&mut self, in_flight: &BTreeSet<PageKey>) -> Option<PageKey> {
        let mut busy: BTreeMap<Option<&Arc<str>>, usize> = BTreeMap::new();
        for page in in_flight {
            *busy.entry(page.namespace()).or_default() += 1;
        }
        let next = self.lanes.keys().min_by_key(|lane| {
            let pages = busy.get(&lane.as_ref()).copied().unwrap_or(0);
            (pages, **lane <= self.last)
        });
        let lane = next?.clone();
        self.last.clone_from(&lane);
        let pages = self.lanes.get_mut(&lane)?;
        let page = pages.pop_front();
        if pages.is_empty() {
            self.lanes.remove(&lane);
        }
        page
    }
}

#[derive(Debug)]
struct PageSampleState {
    page: Option<PageKey>,
    metric: Option<PageMetric>,
    /// The requests that a pod runs, where a silence means nothing by itself.
    running: Option<PageMetric>,
    /// The read before, for series that grow.
    before: Option<(Moment, FamilySamples)>,
    /// That before it, of counters. A decision takes every second read, and what the other one counted is in no other.
    older: Option<(Moment, FamilySamples)>,
    /// Since when pages show no observation. What a failed read hides is in the counts of the next one.
    idle_since: Option<Moment>,
    /// Since when the page answers 503, without a read that succeeded.
    unavailable_since: Option<Moment>,
    reading: SampleReading,
}

#[derive(Debug)]
struct ScrapedPage {
    page: PageKey,
    answer: Result<MetricFamilies, PageReadError>,
    at: Moment,
}

#[derive(Debug)]
pub(crate) struct PodScraper {
    shared: Readers,
    writer: Arc<Writer<SampleTable>>,
    pages: Arc<dyn PodPages>,
    uses: BTreeMap<PageKey, BTreeMap<SampleKey, PageMetric>>,
    /// Pages of services, and of pods that serve: those that fail are errors.
    serving: BTreeSet<PageKey>,
    samples: BTreeMap<SampleKey, PageSampleState>,
    waiting: FairPages,
    in_flight: BTreeSet<PageKey>,
    slots: RequestSlots<ScrapedPage>,
    /// Whether a message to go on is on its way.
    is_going: bool,
    has_changed: bool,
}

impl PodScraper {
    pub(crate) fn new(
        shared: Readers,
        writer: Arc<Writer<SampleTable>>,
        pages: Arc<dyn PodPages>,
    ) -> Self {
        Self {
            shared,
            writer,
            pages,
            uses: BTreeMap::new(),
            serving: BTreeSet::new(),
            samples: BTreeMap::new(),
            waiting: FairPages::default(),
            in_flight: BTreeSet::new(),
            slots: RequestSlots::new(WIDTH),
            is_going: false,
            has_changed: true,
        }
    }

    fn begin_round(&mut self, cx: &Context<PodScraperMessage>) {
        cx.arm(ROUND, PodScraperMessage::Round);
        let wanted = if self.shared.claim.may_write(cx.now()) {
            let on_page = |kind: &SourceKind| {
                matches!(kind, SourceKind::Pod { .. } | SourceKind::Service { .. })
            };
            wanted_samples(&self.shared.autoscalers, |source| on_page(&source.kind))
        } else {
            BTreeMap::new()
        };
        if wanted.is_empty() {
            self.slots.clear();
            self.in_flight.clear();
        }
        self.want(wanted);
        let uses = &self.uses;
        self.waiting.retain(|page| uses.contains_key(page));
        let queued: BTreeSet<PageKey> = self.waiting.pages().cloned().collect();
        let is_idle = |page: &&PageKey| !queued.contains(page) && !self.in_flight.contains(page);
        for page in uses.keys().filter(is_idle) {
            self.waiting.push(page.clone());
        }
    }

    /// Forgets what is no longer wanted and what was read elsewhere, and sorts the rest by page.
    fn want(&mut self, wanted: BTreeMap<SampleKey, Option<MeasuredPod>>) {
        let before = self.samples.len();
        self.samples.retain(|key, _| wanted.contains_key(key));
        self.has_changed |= self.samples.len() != before;
        self.uses.clear();
        self.serving.clear();
        for (key, pod) in wanted {
            let state = PageSampleState::new(&key, pod.as_ref());
            if let (Some(page), Some(metric)) = (&state.page, &state.metric) {
                if pod.as_ref().is_none_or(may_serve) {
                    self.serving.insert(page.clone());
                }
                let uses = self.uses.entry(page.clone()).or_default();
                uses.insert(key.clone(), metric.clone());
            }
            match self.samples.entry(key) {
                Entry::Occupied(known) if known.get().is_read_like(&state) => {}
                Entry::Occupied(mut known) => {
                    known.insert(state);
                    self.has_changed = true;
                }
                Entry::Vacant(place) => {
                    place.insert(state);
                    self.has_changed = true;
                }
            }
        }
    }

    /// Reads pages for one slice, and publishes what they show.
    async fn scrape(&mut self, cx: &Context<PodScraperMessage>) -> ActorResult {
        if !self.shared.claim.may_write(cx.now()) {
            self.waiting = FairPages::default();
        }
        let slice = SliceEnd::after(SLICE);
        loop {
            while !self.slots.is_full()
                && let Some(page) = self.waiting.pop(&self.in_flight)
            {
                self.begin(page);
            }
            let Some(scraped) = self.slots.next(slice).await else {
                break;
            };
            self.take(scraped);
            if slice.is_over() {
                break;
            }
        }
        self.go_on(cx);
        self.publish(cx)
    }

    fn go_on(&mut self, cx: &Context<PodScraperMessage>) {
        let has_more = !self.slots.is_empty() || !self.waiting.is_empty();
        if has_more && !self.is_going {
            self.is_going = true;
            cx.send_self(PodScraperMessage::Scrape);
        }
    }

    fn begin(&mut self, page: PageKey) {
        let Some(uses) = self.uses.get(&page) else {
            return;
        };
        let running = |key| self.samples.get(key)?.running.as_ref();
        let running = uses.keys().filter_map(running);
        let series = uses.values().chain(running).flat_map(PageMetric::names);
        let series: BTreeSet<&str> = series.collect();
        let series = series.into_iter().map(Arc::from).collect();
        let clock = self.shared.clock.clone();
        let read = self.pages.read(page.url.clone(), series, DEADLINE);
        self.in_flight.insert(page.clone());
        self.slots.push(Box::pin(async move {
            let answer = read.await;
            let at = clock.now();
            ScrapedPage { page, answer, at }
        }));
    }

    fn take(&mut self, scraped: ScrapedPage) {
        let ScrapedPage { page, answer, at } = scraped;
        self.in_flight.remove(&page);
        if let Err(error) = &answer {
            if self.serving.contains(&page) {
                let errors = &self.shared.series.process.errors;
                let labels = ["pod-scraper", error.reason()];
                errors.with_label_values(&labels).inc();
            }
            tracing::debug!(page = %page.url, %error, "failed to read a metrics page");
        }
        let Some(uses) = self.uses.get(&page) else {
            return;
        };
        self.has_changed = true;
        for (key, metric) in uses {
            let Some(state) = self.samples.get_mut(key) else {
                continue;
            };
            match &answer {
                Ok(families) => state.read(metric, families, at),
                Err(error) => state.fail(&page, error, at),
            }
        }
    }

    fn publish(&mut self, cx: &Context<PodScraperMessage>) -> ActorResult {
        if !self.has_changed {
            return Ok(());
        }
        let samples = self.samples.iter();
        let table: SampleTable = samples
            .filter(|(_, state)| state.reading != SampleReading::default())
            .map(|(key, state)| (key.clone(), state.reading.clone()))
            .collect();
        self.writer.publish(cx.epoch(), Arc::new(table))?;
        self.has_changed = false;
        Ok(())
    }
}

impl PageSampleState {
    /// A value that has not been read, and why it cannot be.
    fn new(key: &SampleKey, pod: Option<&MeasuredPod>) -> Self {
        let (page, metric, failure) = match place(key, pod) {
            Ok((page, metric)) => (Some(page), Some(metric), None),
            Err(failure) => (None, None, Some(failure)),
        };
        let running = metric.as_ref().zip(pod);
        Self {
            running: running.and_then(|(metric, pod)| running_of(metric, pod)),
            page,
            metric,
            before: None,
            older: None,
            idle_since: None,
            unavailable_since: None,
            reading: SampleReading { value: None, failure },
        }
    }

    /// Whether what is known of it holds for the other one. Where it cannot be read the reason counts.
    fn is_read_like(&self, other: &Self) -> bool {
        let same_place = self.page == other.page && self.metric == other.metric;
        same_place && (other.page.is_some() || self.reading == other.reading)
    }

    fn fail(&mut self, page: &PageKey, error: &PageReadError, at: Moment) {
        let is_unavailable = *error == PageReadError::Unavailable;
        if is_unavailable {
            self.unavailable_since.get_or_insert(at);
        }
        self.reading.failure = Some(ReadFailure {
            unavailable_since: self.unavailable_since.filter(|_| is_unavailable),
            ..ReadFailure::new(error.failure(), format!("{}: {error}", page.url))
        });
    }

    /// Takes what a page shows. The last value stays, with its time, where there is no new one.
    fn read(&mut self, metric: &PageMetric, families: &MetricFamilies, at: Moment) {
        self.unavailable_since = None;
        let nothing = FamilySamples::default();
        let family = shown_family(metric, families).unwrap_or(&nothing);
        let before = self.older.as_ref().or(self.before.as_ref());
        let earlier =
            before.map(|(then, samples)| EarlierRead { samples, elapsed: at.since(*then) });
        let shown = page_value(metric, family, earlier);
        let mut idle_since = self.idle_since.take();
        // Where it is not shown, what it counted meanwhile is not known either.
        let newest = shown.is_ok().then(|| (at, family.clone()));
        let known = std::mem::replace(&mut self.before, newest);
        self.older = known.filter(|_| shown.is_ok() && family.is_counted());
        let failure = match shown {
            Ok(PageReading::Value(value)) => {
                self.reading.value = Some((value, at));
                None
            }
            Ok(PageReading::NotYet(why)) if self.reading.value.is_none() => {
                Some(needs_reads(metric, why))
            }
            Ok(PageReading::NotYet(_)) => None,
            Ok(PageReading::NothingObserved) => {
                // Answers that take long are observed when they end.
                if !self.is_busy(families) {
                    let since = *idle_since.get_or_insert(at);
                    // On pages that were read all the time that is known, and zero.
                    if at.since(since) >= IDLE_AFTER {
                        self.reading.value = Some((0.0, at));
                    }
                    self.idle_since = idle_since;
                }
                let has_none = self.reading.value.is_none();
                has_none.then(|| needs_reads(metric, "nothing has been observed yet"))
            }
            Err(failure) => Some(failure),
        };
        self.reading.failure = failure;
    }

    /// Whether the page shows requests that run.
    fn is_busy(&self, families: &MetricFamilies) -> bool {
        self.running.as_ref().is_some_and(|running| {
            let family = shown_family(running, families);
            let shown = family.map(|family| page_value(running, family, None));
            matches!(shown, Some(Ok(PageReading::Value(requests))) if requests > 0.0)
        })
    }
}

/// A pod that loads its model refuses reads for minutes, which is no error.
fn may_serve(pod: &MeasuredPod) -> bool {
    !matches!(pod.pod, AutoscaledPod::Pending | AutoscaledPod::Gated)
}

fn needs_reads(metric: &PageMetric, why: &str) -> ReadFailure {
    ReadFailure {
        needs_reads: true,
        ..ReadFailure::new(Failure::Absent, format!("{}: {why}", metric.series))
    }
}

/// The series of the requests that a pod runs, where observations are measured.
fn running_of(metric: &PageMetric, pod: &MeasuredPod) -> Option<PageMetric> {
    let may_be_silent =
        !matches!(metric.kind, Some(SeriesType::Gauge | SeriesType::Ratio | SeriesType::Counter));
    let running = may_be_silent.then(|| PageMetric::of_pod(RUNNING, pod.engine.as_deref()))?;
    running.ok()
}

fn place(key: &SampleKey, pod: Option<&MeasuredPod>) -> Result<(PageKey, PageMetric), ReadFailure> {
    let metric = &key.source.metric;
    let invalid = |why: String| ReadFailure::new(Failure::Invalid, why);
    let refused = |error: PageReadError| ReadFailure::new(error.failure(), error.to_string());
    match (&key.source.kind, &key.pod, pod) {
        (SourceKind::Service { endpoint, page }, None, _) => {
            let metric =
                PageMetric::of_service(metric).map_err(|error| invalid(error.to_string()))?;
            let url = PageUrl::of_service(endpoint, page).map_err(refused)?;
            Ok((PageKey { pod: None, url }, metric))
        }
        (SourceKind::Pod { port, page }, Some(name), Some(pod)) => {
            let engine = pod.engine.as_deref();
            let metric =
                PageMetric::of_pod(metric, engine).map_err(|error| invalid(error.to_string()))?;
            let address = pod
                .address
                .ok_or_else(|| ReadFailure::new(Failure::Absent, "it has no address yet"))?;
            let url = PageUrl::of_pod(address, port, page).map_err(refused)?;
            let pod = Some((Arc::clone(&key.namespace), Arc::clone(name)));
            Ok((PageKey { pod, url }, metric))
        }
        _ => Err(invalid(format!("{metric} is on no metrics page"))),
    }
}

impl Actor for PodScraper {
    type Msg = PodScraperMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started | Event::Message(PodScraperMessage::Round) => {
                self.begin_round(cx);
                self.go_on(cx);
                self.publish(cx)
            }
            Event::Message(PodScraperMessage::Scrape) => {
                self.is_going = false;
                self.scrape(cx).await
            }
        }
    }
}

#[cfg(test)]
mod tests;
