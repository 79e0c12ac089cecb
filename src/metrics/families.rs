//! The series by what they are about, and how they are registered.

use std::cell::RefCell;
use std::collections::BTreeSet;

use prometheus::core::Collector;
use prometheus::proto::MetricType;
use prometheus::{
    CounterVec, Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry,
};

use crate::policy::series;

const VARIANT: [&str; 3] = ["variant_name", "namespace", "accelerator_type"];

/// Buckets of a planning cycle, in seconds.
const CYCLE_BUCKETS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Buckets of one query, in seconds.
const QUERY_BUCKETS: [f64; 10] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5];

/// The series of a structure, a field each: type, name, meaning, labels and buckets.
macro_rules! families {
    (@new $registrar:ident $type:ident($name:expr, $help:literal)) => {
        $registrar.register($type::new($name, $help)?)?
    };
    (@new $registrar:ident $type:ident($name:expr, $help:literal, $labels:expr)) => {
        $registrar.register($type::new(Opts::new($name, $help), $labels)?)?
    };
    (@new $registrar:ident $type:ident($name:expr, $help:literal, $labels:expr, $buckets:expr)) => {{
        let options = HistogramOpts::new($name, $help).buckets($buckets.to_vec());
        $registrar.register($type::new(options, $labels)?)?
    }};
    ($(#[$doc:meta])* $vis:vis struct $group:ident {
        $($field:ident: $type:ident($name:expr, $help:literal $(, $more:expr)*);)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $group {
            $(#[doc = $help] $vis $field: $type,)*
        }

        impl $group {
            pub(super) fn new(registrar: &Registrar<'_>) -> Result<Self, prometheus::Error> {
                Ok(Self {
                    $($field: families!(@new registrar $type($name, $help $(, $more)*)),)*
                })
            }
        }
    };
}

families! {
    /// Decisions and conditions of variants and PodAutoscalers.
    pub(super) struct VariantSeries {
        desired: GaugeVec(series::DESIRED, "Replicas that the variant should have.", &VARIANT);
        current: GaugeVec(series::CURRENT, "Replicas that the variant's target has.", &VARIANT);
        ratio: GaugeVec(series::RATIO,
            "Desired divided by current replicas; the desired count where there are none.", &VARIANT);
        scaling: CounterVec("wva_replica_scaling_total",
            "Changes of the desired count.",
            &["variant_name", "namespace", "direction", "reason", "accelerator_type"]);
        up: IntGaugeVec("wva_saturation_metrics_up",
            "1 if the last cycle had usable metrics of the model, else 0.",
            &["variant_name", "namespace"]);
        freshness: IntGaugeVec("wva_metrics_freshness_status",
            "Ready replicas by the state of their metrics.", &["variant_name", "namespace", "status"]);
        trouble: IntGaugeVec("wva_variant_trouble",
            "1 while a condition of the variant is not as it should be; else absent.",
            &["variant_name", "namespace", "condition", "reason"]);
        findings: IntGaugeVec("wva_findings",
            "1 while the controller finds what `wva doctor` calls by this code; at most 1000 series.",
            &["code", "namespace", "name"]);
        at_maximum: IntGaugeVec("wva_variant_at_max_replicas",
            "1 if the last cycle wanted more than the variant's maximum, else 0.",
            &["variant_name", "namespace"]);
        limited: IntGaugeVec("wva_variant_limited",
            "1 if GPUs or quotas allowed fewer than the last cycle wanted, or than a minimum, else 0.",
            &["variant_name", "namespace"]);
        autoscaler: GaugeVec("aibrix_autoscaler_scale_action",
            "Replicas that a PodAutoscaler of strategy KPA or APA wants, by algorithm and reason of the last decision.",
            &["namespace", "name", "algorithm", "reason"]);
    }
}

families! {
    /// Collection and planning.
    pub struct EngineSeries {
        optimization_duration: HistogramVec("wva_optimization_duration_seconds",
            "Duration of a planning cycle.", &["status"], &CYCLE_BUCKETS);
        models_processed: IntGauge("wva_models_processed", "Models analysed in the last cycle.");
        invariant_violations: IntCounterVec("wva_invariant_violations_total",
            "Plans that broke a postcondition.", &["invariant"]);
        unrecorded: IntCounterVec("wva_decisions_unrecorded_total",
            "Cycles, and decisions on PodAutoscalers, that were not recorded, or not in the file.",
            &["reason"]);
        // Its `query_type` is `all`, since its queries run at once.
        collection_duration: HistogramVec("wva_metrics_collection_duration_seconds",
            "Duration of a metrics collection.", &["query_type"], &QUERY_BUCKETS);
        collection_errors: IntCounterVec("wva_metrics_collection_errors_total",
            "Metrics queries that failed.", &["query_type", "reason"]);
        pods_discovered: IntGaugeVec("wva_metrics_pods_discovered",
            "Pods that produced metrics in the last collection.", &["namespace"]);
        source_pods: IntGaugeVec("wva_metrics_source_pods",
            "Pods whose signal came from this series name in the last collection.", &["query_type", "source"]);
        mapping_misses: IntCounterVec("wva_pod_mapping_miss_total",
            "Pods with metrics that belong to no variant, per collection.", &["namespace", "reason"]);
    }
}

families! {
    /// Settings.
    pub struct ConfigSeries {
        generation: IntGauge("wva_config_generation", "Settings generation in force.");
        interval: Gauge("wva_config_optimization_interval_seconds", "Optimization interval in force.");
        info: IntGaugeVec("wva_config_info",
            "1, with the choices in force.", &["analyzer_name", "limiter_enabled", "scale_to_zero_enabled"]);
        optimizer: IntGaugeVec("wva_optimizer_active",
            "1 for the optimizer in force: cost-aware, with limits to growth greedy-by-score.",
            &["optimizer_name"]);
        kv_spare: Gauge("wva_config_kv_spare_threshold",
            "kvSpareTrigger of the global default.");
        queue_spare: Gauge("wva_config_queue_spare_threshold",
            "queueSpareTrigger of the global default.");
        rejected: IntCounterVec("wva_config_changes_rejected_total",
            "Edits of immutable settings that were refused.", &["key"]);
        refusals: IntCounterVec("wva_config_refusals_total",
            "Invalid values and entries, each counted once.", &["config_map"]);
        entries_invalid: IntGaugeVec("wva_config_entries_invalid",
            "Invalid ConfigMap entries, not in force; namespace is empty for the global one.",
            &["config_map", "namespace"]);
    }
}

families! {
    /// Actors, mirrors, writes.
    pub struct ProcessSeries {
        build: IntGaugeVec("wva_build_info",
            "1, with version and, where the build states it, commit.",
            &["version", "commit"]);
        errors: IntCounterVec("wva_errors_total", "Errors.", &["component", "error_type"]);
        mirror_age: GaugeVec("wva_mirror_age_seconds",
            "Time since the API server last sent anything about the kind.", &["kind"]);
        events_dropped: IntCounterVec("wva_events_dropped_total",
            "Kubernetes events that were not delivered.", &["reason"]);
        status_writes: IntCounterVec("wva_status_writes_total",
            "Writes of VariantAutoscaling status.", &["result"]);
    }
}

families! {
    /// What roles did, each total under its name and under the one before.
    pub(super) struct RoleSeries {
        sent: IntCounterVec("wva_actor_messages_sent_total", "Messages sent to a role.", &["role"]);
        handled: IntCounterVec("wva_actor_messages_handled_total",
            "Messages that a role handled, or lost by a restart.", &["role"]);
        restarts: IntCounterVec("wva_actor_restarts_total", "Restarts of a role.", &["role"]);
        former_sent: IntGaugeVec("wva_actor_told",
            "Deprecated, removed in version 0.3.0: use `wva_actor_messages_sent_total`.", &["role"]);
        former_handled: IntGaugeVec("wva_actor_handled",
            "Deprecated, removed in version 0.3.0: use `wva_actor_messages_handled_total`.", &["role"]);
        former_restarts: IntGaugeVec("wva_actor_restarts",
            "Deprecated, removed in version 0.3.0: use `wva_actor_restarts_total`.", &["role"]);
    }
}

families! {
    /// What plans did.
    pub(super) struct PlanCounters {
        limited: IntCounterVec("wva_decisions_limited_total",
            "Cycles in which a limiter cut the variant's growth.",
            &["variant_name", "namespace", "limiter_name"]);
        enforced: IntCounterVec("wva_enforcer_modifications_total",
            "Decisions that the boundary to zero changed.", &["policy_type"]);
    }
}

impl EngineSeries {
    /// Drops the series of every other namespace. Counters of one that is gone would stay for ever.
    pub fn keep_namespaces(&self, live: &BTreeSet<&str>) {
        for family in self.mapping_misses.collect() {
            for metric in family.get_metric() {
                let label = |name: &str| {
                    let labels = metric.get_label().iter();
                    let mut named = labels.filter(|label| label.name() == name);
                    named.next().map_or("", |label| label.value())
                };
                let (namespace, reason) = (label("namespace"), label("reason"));
                if !live.contains(namespace)
                    && let Err(error) =
                        self.mapping_misses.remove_label_values(&[namespace, reason])
                {
                    tracing::warn!(namespace, %error, "series not removed");
                }
            }
        }
    }
}

impl RoleSeries {
    /// Shows what a role did since the process started: messages sent and handled, restarts.
    pub(super) fn show(&self, role: &str, totals: [u64; 3]) {
        let series = [
            (&self.sent, &self.former_sent),
            (&self.handled, &self.former_handled),
            (&self.restarts, &self.former_restarts),
        ];
        for ((total, former), sum) in series.into_iter().zip(totals) {
            let counter = total.with_label_values(&[role]);
            counter.inc_by(sum.saturating_sub(counter.get()));
            let shown = i64::try_from(counter.get()).unwrap_or(i64::MAX);
            former.with_label_values(&[role]).set(shown);
        }
    }
}

/// A family of series, as the documentation shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels, but for those that all series have.
    pub labels: Vec<String>,
    /// What it says.
    pub help: String,
}

pub(super) struct Registrar<'a> {
    pub(super) registry: &'a Registry,
    pub(super) families: &'a RefCell<Vec<Family>>,
}

impl Registrar<'_> {
    fn register<C: Collector + Clone + 'static>(
        &self,
        collector: C,
    ) -> Result<C, prometheus::Error> {
        self.registry.register(Box::new(collector.clone()))?;
        let families = collector.collect();
        for (described, family) in collector.desc().into_iter().zip(&families) {
            self.families.borrow_mut().push(Family {
                name: described.fq_name.clone(),
                kind: match family.get_field_type() {
                    MetricType::COUNTER => "counter",
                    MetricType::HISTOGRAM => "histogram",
                    _ => "gauge",
                },
                labels: described.variable_labels.clone(),
                help: described.help.clone(),
            });
        }
        Ok(collector)
    }

    pub(super) fn gauges(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<GaugeVec, prometheus::Error> {
        self.register(GaugeVec::new(Opts::new(name, help), labels)?)
    }
}
