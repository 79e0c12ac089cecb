//! Reads Prometheus at every tick and publishes what it saw, then what was learned from it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future;

use crate::actors::optimizer;
use crate::policy;
use crate::policy::capacity::AnalyzerName;
use crate::policy::key::VariantKey;
use crate::policy::params::RequiredSignals;
use crate::policy::snapshot::{CycleId, MetricsSnapshot};
use crate::settings::FeatureSwitch;
use crate::signals::collect::QueryReport;
use crate::signals::published::{Question, published};
use crate::signals::{
    CollectionReport, CollectionSettings, Evaluations, Namespace, PromApi, QueryError, collect,
    history,
};
use crate::state::{CollectorWriters, InForce, Readers};
use wva_base::moment::{Moment, WallTime};
use wva_supervise::{Actor, ActorResult, Address, Context, Event, TimerEpoch};

/// Messages of the collector.
#[derive(Debug)]
pub enum CollectorMessage {
    /// To itself: a tick of the schedule with this epoch. Those of an older one belong to a schedule that no longer
    /// exists.
    Collect(TimerEpoch),
    /// To itself: a collection between two ticks, likewise; one that sees load jump requests an early cycle.
    Fetch(TimerEpoch),
    /// To itself: time to forget namespaces that no longer report. Those of an older epoch belong to another interval.
    Purge(TimerEpoch),
    /// From the optimizer: an early cycle is wanted, and the last snapshot is too old for it.
    Refresh,
    /// Settings changed; the schedule may have.
    GenerationChanged,
}

/// The pump behind the role.
#[derive(Debug, Clone)]
pub struct Collector {
    shared: Readers,
    writers: Arc<CollectorWriters>,
    /// When the answers of the last collections of all lives were evaluated.
    evaluations: Arc<Mutex<Evaluations>>,
    prometheus: Arc<dyn PromApi>,
    namespace: Option<Namespace>,
    optimizer: Address<optimizer::OptimizerMessage>,
    timer: TimerEpoch,
    purge: Purge,
    /// Whether this life of the role has read the history of engines.
    has_history: bool,
}

#[derive(Debug, Clone, Default)]
struct Purge {
    timer: TimerEpoch,
    every: Option<Duration>,
}

impl Collector {
    /// What every life of the role begins as.
    pub fn new(
        shared: Readers,
        writers: Arc<CollectorWriters>,
        prometheus: Arc<dyn PromApi>,
        namespace: Option<Namespace>,
        optimizer: Address<optimizer::OptimizerMessage>,
    ) -> Self {
        Self {
            shared,
            writers,
            evaluations: Arc::default(),
            prometheus,
            namespace,
            optimizer,
            timer: TimerEpoch::default(),
            purge: Purge::default(),
            has_history: false,
        }
    }

    fn arm(&mut self, cx: &Context<CollectorMessage>) {
        let timer = self.timer.advance();
        let in_force = self.shared.settings.load();
        let cache = in_force.generation.dynamic.cache;
        let tick = in_force.schedule.until_next(cx.now());
        match in_force.generation.dynamic.fetch_interval() {
            Some(interval) if interval < tick => cx.arm(interval, CollectorMessage::Fetch(timer)),
            _ => cx.arm(tick, CollectorMessage::Collect(timer)),
        }
        if self.purge.every != Some(cache.cleanup_interval) {
            self.purge.every = Some(cache.cleanup_interval);
            self.arm_purge(cx);
        }
    }

    fn arm_purge(&mut self, cx: &Context<CollectorMessage>) {
        let timer = self.purge.timer.advance();
        if let Some(every) = self.purge.every {
            cx.arm(every, CollectorMessage::Purge(timer));
        }
    }

    /// Drops the series of namespaces that neither report nor have a variant. While a query fails
    /// it is not known who reports.
    fn purge(&self) {
        let metrics = self.shared.metrics.load();
        if !metrics.failures.is_empty() {
            return;
        }
        let views = self.shared.board.snapshot();
        let live: BTreeSet<&str> = metrics
            .models
            .keys()
            .map(|model| &*model.namespace)
            .chain(views.keys().map(|key| &*key.namespace))
            .collect();
        self.shared.series.engine.keep_namespaces(&live);
    }

    async fn collect_for_cycle(&mut self, cx: &Context<CollectorMessage>) -> ActorResult {
        self.collect(cx).await?;
        // An absent optimizer finds the snapshot when it is back.
        self.optimizer.hint(optimizer::OptimizerMessage::SnapshotReady);
        self.look_for_rivals(cx).await
    }

    async fn collect(&mut self, cx: &Context<CollectorMessage>) -> ActorResult {
        let in_force = self.shared.settings.load();
        let began = cx.now();
        let settings = self.settings(&in_force);
        let interval = in_force.generation.dynamic.interval;
        let past = self.wants_history(&in_force).then(|| {
            self.has_history = true;
            history(&*self.prometheus, &settings, interval)
        });
        let collection = collect(&*self.prometheus, &settings, |evaluated| {
            let evaluations = self.evaluations.lock();
            let mut evaluations = evaluations.unwrap_or_else(PoisonError::into_inner);
            evaluations.repeated_for(evaluated, cx.now())
        });
        let (collection, past) = future::join(collection, future::OptionFuture::from(past)).await;
        let took = cx.now().since(began).as_secs_f64();
        self.count(&collection.report, took);
        let snapshot = Arc::new(collection.into_snapshot(cx.now()));
        self.count_pods(&snapshot);
        self.shared.hooks.collected(&snapshot);
        self.writers.metrics.publish(cx.epoch(), snapshot)?;
        let snapshot = self.shared.snapshot(CycleId::default());
        let dynamic = &in_force.generation.dynamic;
        let known = self.shared.learned.load();
        let known = match past {
            Some(past) => {
                Arc::new(policy::refit(&snapshot, &as_collected(past, cx.now()), &known, dynamic))
            }
            None => known,
        };
        let at = self.shared.hooks.learned_at(&known, cx.now());
        let dynamic = self.shared.hooks.learning_settings(dynamic);
        let learned = policy::learn(&snapshot, &known, &dynamic, at);
        self.writers.learned.publish(cx.epoch(), Arc::new(learned))?;
        Ok(())
    }

    /// Whether a process that has just begun, or began to look at throughput, is to learn the latency
    /// lines of engines from their history. Once, when there are variants whose pods are known; on
    /// top of a collection and the questions about rivals it is the fourteenth query of a cycle at most.
    fn wants_history(&self, in_force: &InForce) -> bool {
        let views = self.shared.board.snapshot();
        !self.has_history
            && (in_force.generation.dynamic.saturation).asks(AnalyzerName::Throughput)
            && self.shared.learned.load().throughput.is_empty()
            && views.values().any(|view| view.target.resolved().is_some())
    }

    /// Looks for others that publish our variants. An instance gives way at the next plan. Both
    /// questions are asked at once: with the collection before them they take half an interval at most.
    async fn look_for_rivals(&self, cx: &Context<CollectorMessage>) -> ActorResult {
        let deadline = self.shared.settings.load().schedule.query_deadline();
        let held = self.shared.held_by_others();
        let views = self.shared.board.snapshot();
        let managed = views.keys().cloned().collect();
        let ask = |question| published(&*self.prometheus, question, deadline);
        // A scaler that gets no count may be one whose count Prometheus does not have.
        let asks_for_any =
            !held.is_empty() || views.values().any(|view| view.scalers.any_failing());
        let any = future::OptionFuture::from(asks_for_any.then(|| ask(Question::Any)));
        let (several, any) = future::join(ask(Question::Several), any).await;
        let answered = |answer: Result<BTreeSet<VariantKey>, QueryError>| {
            let log = |error: &QueryError| {
                tracing::debug!(%error, "failed to query other publishers");
            };
            answer.inspect_err(log).ok()
        };
        let (several, any) = (answered(several), any.and_then(answered));
        let known = self.writers.ownership_conflicts.load();
        let known = known.observe(several.as_ref(), any.as_ref(), &held, &managed);
        let conflicts = &self.writers.ownership_conflicts;
        conflicts.publish(cx.epoch(), Arc::new(known))?;
        Ok(())
    }

    fn settings(&self, in_force: &InForce) -> CollectionSettings {
        let dynamic = &in_force.generation.dynamic;
        let learning = self.shared.hooks.learning_settings(dynamic);
        let for_pods = match in_force.generation.statics.deletion_costs {
            FeatureSwitch::Enabled => RequiredSignals::Use,
            FeatureSwitch::Disabled => RequiredSignals::Saturation,
        };
        CollectionSettings {
            required_signals: learning.required_signals().max(for_pods),
            freshness: dynamic.freshness,
            namespace: self.namespace.clone(),
            deadline: in_force.schedule.query_deadline(),
            max_samples: dynamic.cache.max_samples.and_then(NonZeroU64::new),
        }
    }

    fn count(&self, report: &CollectionReport, took: f64) {
        // The queries run at once, so the time is that of all of them.
        self.shared.series.engine.collection_duration.with_label_values(&["all"]).observe(took);
        for query in &report.queries {
            self.count_query(query);
        }
        if !report.repeated.is_zero() {
            tracing::warn!(
                for_seconds = report.repeated.as_secs(),
                "Prometheus answers with what it has answered before: something in between keeps answers, whose samples count as older by so much"
            );
        }
        for (reason, count) in &report.ignored {
            tracing::debug!(?reason, count, "samples ignored");
        }
    }

    fn count_query(&self, query: &QueryReport) {
        let name = query.query.as_str();
        if let Err(error) = &query.outcome {
            let labels = [name, error.reason()];
            self.shared.series.engine.collection_errors.with_label_values(&labels).inc();
            tracing::warn!(query = name, %error, "metrics query failed");
        }
        for warning in &query.warnings {
            tracing::warn!(query = name, warning, "Prometheus warns");
        }
    }

    /// Pods that report and belong to no variant of ours: of others, or of a broken chain of owners.
    fn count_misses(&self, snapshot: &MetricsSnapshot) {
        let views = self.shared.board.snapshot();
        let ours: BTreeSet<(&str, &str)> = views
            .values()
            .flat_map(|view| view.pods.iter().map(|pod| (&*view.key.namespace, &*pod.name)))
            .collect();
        for (model, samples) in &snapshot.models {
            let misses =
                samples.keys().filter(|pod| !ours.contains(&(&*model.namespace, &**pod))).count();
            if misses > 0 {
                let counter = &self.shared.series.engine.mapping_misses;
                counter
                    .with_label_values(&[&*model.namespace, "unresolved"])
                    .inc_by(u64::try_from(misses).unwrap_or(u64::MAX));
            }
        }
    }

    fn count_pods(&self, snapshot: &MetricsSnapshot) {
        self.count_misses(snapshot);
        let mut pods: BTreeMap<&str, i64> = BTreeMap::new();
        for (model, samples) in &snapshot.models {
            *pods.entry(&model.namespace).or_default() +=
                i64::try_from(samples.len()).unwrap_or(i64::MAX);
        }
        let engine = &self.shared.series.engine;
        engine.pods_discovered.reset();
        for (namespace, count) in pods {
            engine.pods_discovered.with_label_values(&[namespace]).set(count);
        }
        engine.source_pods.reset();
        for (signal, sources) in &snapshot.sources {
            for (source, count) in sources {
                let gauge = engine.source_pods.with_label_values(&[signal.as_str(), source]);
                gauge.set(i64::try_from(*count).unwrap_or(i64::MAX));
            }
        }
    }
}

/// The steps of a history as collections of this process. What lies before its begin is taken to be as
/// old as that.
fn as_collected(
    past: Result<Vec<(WallTime, MetricsSnapshot)>, QueryError>,
    now: Moment,
) -> Vec<(Moment, MetricsSnapshot)> {
    let steps = past.unwrap_or_else(|error| {
        tracing::warn!(%error, "no history of engines: latency lines are learned as they come");
        Vec::new()
    });
    let steps = steps.into_iter().map(|(wall, mut metrics)| {
        let at = Moment { monotonic: now.monotonic.saturating_sub(now.wall.since(wall)), wall };
        metrics.collected = Some(at);
        (at, metrics)
    });
    steps.collect()
}

impl Actor for Collector {
    type Msg = CollectorMessage;

    async fn handle(&mut self, cx: &Context<Self::Msg>, event: Event<Self::Msg>) -> ActorResult {
        match event {
            Event::Started => {
                if self.shared.hooks.forgets_learned() {
                    let learned = &self.writers.learned;
                    learned.publish(cx.epoch(), Arc::default())?;
                }
                let is_first = self.shared.metrics.load().collected.is_none();
                if is_first {
                    self.collect_for_cycle(cx).await?;
                }
                if is_first || !self.shared.hooks.skips_collector_timer() {
                    self.arm(cx);
                }
            }
            Event::Message(CollectorMessage::Collect(timer) | CollectorMessage::Fetch(timer))
                if timer != self.timer => {}
            Event::Message(CollectorMessage::Purge(timer)) if timer != self.purge.timer => {}
            Event::Message(CollectorMessage::Collect(_) | CollectorMessage::Refresh) => {
                self.collect_for_cycle(cx).await?;
                self.arm(cx);
            }
            Event::Message(CollectorMessage::Fetch(_)) => {
                self.collect(cx).await?;
                if self.shared.learned.load().slo.has_jump() {
                    // An absent optimizer finds the load when it is back.
                    self.optimizer.hint(optimizer::OptimizerMessage::EarlyCycleWanted);
                }
                self.arm(cx);
            }
            Event::Message(CollectorMessage::Purge(_)) => {
                self.purge();
                self.arm_purge(cx);
            }
            Event::Message(CollectorMessage::GenerationChanged) => self.arm(cx),
        }
        Ok(())
    }
}
