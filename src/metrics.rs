//! The series that the controller exposes.
//!
//! Two registries: *pipeline* series carry decisions and are shown only while this process may
//! write; *process* series describe the process itself and are always shown.

use std::sync::{PoisonError, RwLock};

use prometheus::core::Collector;
use prometheus::{
    CounterVec, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::policy::key::VariantKey;
use crate::policy::plan::{Action, Stage};
use crate::policy::record::Values;

/// Content type of the exposition.
pub const TEXT_FORMAT: &str = prometheus::TEXT_FORMAT;

const VARIANT: [&str; 3] = ["variant_name", "namespace", "accelerator_type"];

/// Buckets of a planning cycle, in seconds.
const CYCLE_BUCKETS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Buckets of one query, in seconds.
const QUERY_BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// Every series of the controller.
#[derive(Debug)]
pub struct Metrics {
    pipeline: Registry,
    process: Registry,
    /// Held for writing while a variant changes its label set, so that no scrape sees none or two.
    exposition: RwLock<()>,
    desired: GaugeVec,
    current: GaugeVec,
    ratio: GaugeVec,
    scaling: CounterVec,
    metrics_up: IntGaugeVec,
    /// Duration of a planning cycle, by `status`.
    pub optimization_duration: HistogramVec,
    /// Models analysed in the last cycle.
    pub models_processed: IntGauge,
    /// Duration of one query, by `query_type`.
    pub collection_duration: HistogramVec,
    /// Failed queries, by `query_type` and `reason`.
    pub collection_errors: IntCounterVec,
    /// Pods that produced metrics in the last collection, by `namespace`.
    pub pods_discovered: IntGaugeVec,
    /// Source name chosen per signal: how many pods it supplied.
    pub source_pods: IntGaugeVec,
    /// Errors by `component` and `error_type`.
    pub errors: IntCounterVec,
    /// Number of the settings generation in force.
    pub config_generation: IntGauge,
    /// Settings edits that were refused because the key is immutable.
    pub config_rejected: IntCounterVec,
    /// Entries of ConfigMaps that are invalid now, by `config_map`.
    pub config_entries_invalid: IntGaugeVec,
    /// Loop interval in force, in seconds.
    pub config_interval: prometheus::Gauge,
    /// Age of the last contact of each mirror, in seconds, by `kind`.
    pub mirror_age: GaugeVec,
    /// Postconditions of a plan that did not hold, by `invariant`.
    pub invariant_violations: IntCounterVec,
    /// Messages told to a role.
    pub actor_told: IntGaugeVec,
    /// Messages that a role has handled.
    pub actor_handled: IntGaugeVec,
    /// Restarts of a role.
    pub actor_restarts: IntGaugeVec,
    /// Events that were dropped because the ring was full or the API server refused them.
    pub events_dropped: IntCounterVec,
    /// Status writes by `result`.
    pub status_writes: IntCounterVec,
}

/// Labels of one variant's series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariantLabels {
    /// The variant.
    pub key: VariantKey,
    /// `accelerator_type`.
    pub accelerator: String,
}

impl VariantLabels {
    fn values(&self) -> [&str; 3] {
        [&self.key.name, &self.key.namespace, &self.accelerator]
    }
}

impl Metrics {
    /// Registers every series. `controller_instance` becomes a constant label of all of them.
    ///
    /// # Errors
    /// When the label value is not acceptable to the registry.
    pub fn new(controller_instance: Option<&str>) -> Result<Self, prometheus::Error> {
        let labels = controller_instance
            .map(|instance| [("controller_instance".to_owned(), instance.to_owned())].into());
        let pipeline = Registry::new_custom(None, labels.clone())?;
        let process = Registry::new_custom(None, labels)?;
        process.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let pipe = Registrar(&pipeline);
        let proc = Registrar(&process);
        Ok(Self {
            desired: pipe.gauges("wva_desired_replicas", "Replicas that the variant should have.", &VARIANT)?,
            current: pipe.gauges("wva_current_replicas", "Replicas that the variant's target has.", &VARIANT)?,
            ratio: pipe.gauges(
                "wva_desired_ratio",
                "Desired divided by current replicas; the desired count where there are none.",
                &VARIANT,
            )?,
            scaling: pipe.register(CounterVec::new(
                Opts::new("wva_replica_scaling_total", "Changes of the desired count."),
                &["variant_name", "namespace", "direction", "reason", "accelerator_type"],
            )?)?,
            metrics_up: pipe.int_gauges(
                "wva_saturation_metrics_up",
                "1 if the last cycle decided on usable metrics of the variant's model, else 0.",
                &["variant_name", "namespace"],
            )?,
            optimization_duration: proc.histograms(
                "wva_optimization_duration_seconds",
                "Duration of a planning cycle.",
                &["status"],
                &CYCLE_BUCKETS,
            )?,
            models_processed: proc.int_gauge("wva_models_processed", "Models analysed in the last cycle.")?,
            collection_duration: proc.histograms(
                "wva_metrics_collection_duration_seconds",
                "Duration of one metrics query.",
                &["query_type"],
                &QUERY_BUCKETS,
            )?,
            collection_errors: proc.int_counters(
                "wva_metrics_collection_errors_total",
                "Metrics queries that failed.",
                &["query_type", "reason"],
            )?,
            pods_discovered: proc.int_gauges(
                "wva_metrics_pods_discovered",
                "Pods that produced metrics in the last collection.",
                &["namespace"],
            )?,
            source_pods: proc.int_gauges(
                "wva_metrics_source_pods",
                "Pods whose signal came from this series name in the last collection.",
                &["query_type", "source"],
            )?,
            errors: proc.int_counters("wva_errors_total", "Errors.", &["component", "error_type"])?,
            config_generation: proc.int_gauge("wva_config_generation", "Settings generation in force.")?,
            config_rejected: proc.int_counters(
                "wva_config_changes_rejected_total",
                "Edits of immutable settings that were refused.",
                &["key"],
            )?,
            config_entries_invalid: proc.int_gauges(
                "wva_config_entries_invalid",
                "ConfigMap entries that are invalid and not in force; namespace is empty for the global one.",
                &["config_map", "namespace"],
            )?,
            config_interval: proc.register(prometheus::Gauge::new(
                "wva_config_optimization_interval_seconds",
                "Optimization interval in force.",
            )?)?,
            mirror_age: proc.gauges(
                "wva_mirror_age_seconds",
                "Time since a watcher last heard from the API server about its kind.",
                &["kind"],
            )?,
            invariant_violations: proc.int_counters(
                "wva_invariant_violations_total",
                "Plans that broke a postcondition.",
                &["invariant"],
            )?,
            actor_told: proc.int_gauges("wva_actor_told", "Messages told to a role.", &["role"])?,
            actor_handled: proc.int_gauges("wva_actor_handled", "Messages handled by a role.", &["role"])?,
            actor_restarts: proc.int_gauges("wva_actor_restarts", "Restarts of a role.", &["role"])?,
            events_dropped: proc.int_counters(
                "wva_events_dropped_total",
                "Kubernetes events that were not delivered.",
                &["reason"],
            )?,
            status_writes: proc.int_counters(
                "wva_status_writes_total",
                "Writes of VariantAutoscaling status.",
                &["result"],
            )?,
            exposition: RwLock::new(()),
            pipeline,
            process,
        })
    }

    /// Shows a variant's values under `labels`, and removes what it showed under `previous` if that
    /// is another label set; no scrape sees both or neither.
    pub fn expose(&self, labels: &VariantLabels, previous: Option<&VariantLabels>, values: Values) {
        let _exclusive = self.exposition.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = previous.filter(|previous| *previous != labels) {
            self.remove(previous);
        }
        let label_values = labels.values();
        self.desired.with_label_values(&label_values).set(values.desired.to_f64());
        self.current.with_label_values(&label_values).set(values.current.to_f64());
        self.ratio.with_label_values(&label_values).set(values.ratio);
    }

    /// Shows whether the last cycle decided on usable metrics.
    pub fn expose_metrics_up(&self, key: &VariantKey, up: bool) {
        self.metrics_up.with_label_values(&[&*key.name, &*key.namespace]).set(i64::from(up));
    }

    /// Counts one change of the desired count.
    pub fn count_scaling(&self, labels: &VariantLabels, action: Action, reason: Stage) {
        let direction = match action {
            Action::ScaleUp => "up",
            Action::ScaleDown => "down",
            Action::NoChange => return,
        };
        self.scaling.with_label_values(&scaling_values(labels, direction, reason)).inc();
    }

    /// Removes every series of a variant.
    pub fn withdraw(&self, labels: &VariantLabels) {
        let _exclusive = self.exposition.write().unwrap_or_else(PoisonError::into_inner);
        self.remove(labels);
        // An absent series is what was asked for, so the answer does not matter.
        drop(self.metrics_up.remove_label_values(&[&*labels.key.name, &*labels.key.namespace]));
    }

    fn remove(&self, labels: &VariantLabels) {
        for family in [&self.desired, &self.current, &self.ratio] {
            // Removing what is not there is an error to the library and success to us.
            drop(family.remove_label_values(&labels.values()));
        }
        self.remove_counters(labels);
    }

    fn remove_counters(&self, labels: &VariantLabels) {
        for direction in ["up", "down"] {
            for stage in Stage::ALL {
                let values = scaling_values(labels, direction, stage);
                drop(self.scaling.remove_label_values(&values));
            }
        }
    }

    /// The exposition text. Pipeline series are left out unless this process may write now.
    ///
    /// # Errors
    /// When a family cannot be encoded.
    pub fn exposition(&self, pipeline: Visibility) -> Result<String, prometheus::Error> {
        let mut families = self.process.gather();
        if pipeline == Visibility::Shown {
            let _shared = self.exposition.read().unwrap_or_else(PoisonError::into_inner);
            families.extend(self.pipeline.gather());
        }
        TextEncoder::new().encode_to_string(&families)
    }
}

/// Whether pipeline series are part of an exposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// This process may write.
    Shown,
    /// It may not: another one speaks for the variants.
    Hidden,
}

fn scaling_values<'a>(labels: &'a VariantLabels, direction: &'a str, reason: Stage) -> [&'a str; 5] {
    [&labels.key.name, &labels.key.namespace, direction, reason.as_str(), &labels.accelerator]
}

struct Registrar<'a>(&'a Registry);

impl Registrar<'_> {
    fn register<C: Collector + Clone + 'static>(&self, collector: C) -> Result<C, prometheus::Error> {
        self.0.register(Box::new(collector.clone()))?;
        Ok(collector)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, prometheus::Error> {
        self.register(GaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn int_gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn int_gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        self.register(IntGauge::new(name, help)?)
    }

    fn int_counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
        self.register(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> Result<HistogramVec, prometheus::Error> {
        self.register(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?)
    }
}
