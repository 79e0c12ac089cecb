//! Settings that may change while the process runs, typed.

use std::collections::BTreeSet;
use std::time::Duration;

use super::lints::{ineffective_settings, unused_entries};
use super::logging::LogLevel;
use super::problem::{Diagnostics, FallbackApplied, Problem, SettingError, Warning};
use super::queueing_model::{LatencyTargets, QueueingModelLayers};
use super::saturation::{BandUse, SaturationLayers};
use super::scale_to_zero::ScaleToZeroLayers;
use super::schema;
use super::selector::LabelSelector;
use super::service_class::ServiceClasses;
use super::sources::Sources;
use super::statics::StaticSettings;
use super::value::InvalidValue;
use super::values::{Resolved, SettingValues};
use crate::policy::key::ModelKey;
use crate::policy::reuse::Reuse;
use crate::policy::signal::FreshnessBands;
use crate::policy::zero::LOOK;

/// The part of the settings that may change while the process runs; replaced as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicSettings {
    /// `GLOBAL_OPT_INTERVAL`.
    pub interval: Duration,
    /// `PROMETHEUS_METRICS_CACHE_{FRESH,STALE,UNAVAILABLE}_THRESHOLD`.
    pub freshness: FreshnessBands,
    /// The other `PROMETHEUS_METRICS_CACHE_` settings.
    pub cache: CacheSettings,
    /// How long each cause of transition may hold growth back.
    pub transition_limits: TransitionLimits,
    /// `WVA_REPLICA_START_TIME`.
    pub start_time: Duration,
    /// GPU limits for all models; `WVA_LIMITED_MODE`. Fixed at start.
    pub limited_mode: bool,
    /// The hybrid of saturation and the queueing model; `EXPERIMENTAL_PROACTIVE_MODEL`. Fixed at
    /// start.
    pub proactive_model: bool,
    /// Nodes whose GPUs count; `WVA_NODE_SELECTOR`. Fixed at start.
    pub node_selector: LabelSelector,
    /// `SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY`; at least 1.
    pub scale_from_zero_concurrency: usize,
    /// The more verbose of `LOG_LEVEL` and `V`.
    pub log_level: LogLevel,
    /// Saturation thresholds by layer.
    pub saturation: SaturationLayers,
    /// Scale-to-zero policy by layer.
    pub scale_to_zero: ScaleToZeroLayers,
    /// Queueing-model settings by layer.
    pub queueing_model: QueueingModelLayers,
    /// Service classes.
    pub service_classes: ServiceClasses,
}

/// Which signals decisions need; each level includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredSignals {
    /// Shares of KV cache in use and queue lengths.
    Saturation,
    /// Besides, whether models are in use at all, for those that may go to zero.
    Use,
    /// All that any analyzer looks at.
    Everything,
}

/// When metrics are collected, and how many are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSettings {
    /// How long a snapshot may be used again.
    pub reuse: Reuse,
    /// How often what is kept about namespaces that no longer report is purged.
    pub cleanup_interval: Duration,
    /// Collection between cycles; `None` collects with a cycle only.
    pub fetch_interval: Option<Duration>,
    /// Most samples held; `None` sets no limit.
    pub max_samples: Option<u64>,
}

/// Time limits on the causes of transition; 10 minutes each by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransitionLimits {
    /// Replicas that do not become ready.
    pub pending: Duration,
    /// A published count that nobody applies.
    pub unapplied: Duration,
    /// Replicas that do not report.
    pub silent: Duration,
}

/// Where a model's latency targets come from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LatencyGoal<'a> {
    /// The model's own entry of the queueing-model ConfigMap.
    Explicit(LatencyTargets),
    /// Its service class.
    Class {
        /// Name of the class.
        class: &'a str,
        /// Its targets.
        targets: LatencyTargets,
    },
    /// To be inferred from an idle server's latency.
    Inferred {
        /// Factor on that latency.
        slo_multiplier: f64,
    },
}

impl DynamicSettings {
    /// Whether a model may go to zero: what its saturation entries say, else its scale-to-zero entry,
    /// else `WVA_SCALE_TO_ZERO`.
    pub fn may_go_to_zero(&self, model: &ModelKey) -> bool {
        self.saturation
            .scale_to_zero(model)
            .unwrap_or_else(|| self.scale_to_zero.enabled(model))
    }

    /// Types the live values and reads the policy ConfigMaps. An entry that is refused keeps its
    /// content of `previous`.
    pub(super) fn build(
        values: &SettingValues,
        statics: &StaticSettings,
        sources: &Sources,
        previous: Option<&Self>,
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let freshness = freshness(values, previous.map(|before| before.freshness), diagnostics);
        let queueing_model = QueueingModelLayers::read(
            &sources.queueing_model,
            previous.map(|settings| &settings.queueing_model),
            diagnostics,
        );
        let band = if statics.proactive_model || queueing_model.selected() {
            BandUse::Everywhere
        } else {
            BandUse::Tokens
        };
        let settings = Self {
            interval: values.duration(&schema::GLOBAL_OPT_INTERVAL),
            freshness,
            cache: cache(values),
            transition_limits: TransitionLimits {
                pending: values.duration(&schema::PENDING_TIME_LIMIT),
                unapplied: values.duration(&schema::UNAPPLIED_TIME_LIMIT),
                silent: values.duration(&schema::SILENT_TIME_LIMIT),
            },
            start_time: values.duration(&schema::REPLICA_START_TIME),
            limited_mode: statics.limited_mode,
            proactive_model: statics.proactive_model,
            node_selector: statics.node_selector.clone(),
            scale_from_zero_concurrency: usize::try_from(
                values.count(&schema::SCALE_FROM_ZERO_CONCURRENCY),
            )
            .unwrap_or(usize::MAX),
            log_level: log_level(values),
            saturation: SaturationLayers::read(
                &sources.saturation,
                band,
                previous.map(|settings| &settings.saturation),
                diagnostics,
            ),
            scale_to_zero: ScaleToZeroLayers::read(
                &sources.scale_to_zero,
                statics.scale_to_zero_by_default,
                previous.map(|settings| &settings.scale_to_zero),
                diagnostics,
            ),
            queueing_model,
            service_classes: ServiceClasses::read(
                sources.service_classes.as_ref(),
                previous.map(|settings| &settings.service_classes),
                diagnostics,
            ),
        };
        diagnostics.notices.extend(ineffective_settings(&settings));
        settings
    }

    /// Whether the queueing model is asked about any model, which latency targets are for.
    pub fn asks_queueing_model(&self) -> bool {
        self.proactive_model || self.queueing_model.selected()
    }

    /// Whether any model is sized, and not only moved by steps.
    pub(super) fn sizes_models(&self) -> bool {
        self.asks_queueing_model() || self.saturation.any_by_tokens()
    }

    /// What is said of models that nobody serves, entry by entry.
    pub fn unused_entries(&self, served: &BTreeSet<ModelKey>) -> Vec<Warning> {
        unused_entries(self, served)
    }

    /// Which signals the decisions need.
    pub fn required_signals(&self) -> RequiredSignals {
        if self.sizes_models() {
            RequiredSignals::Everything
        } else if self.any_to_zero() {
            RequiredSignals::Use
        } else {
            RequiredSignals::Saturation
        }
    }

    /// How often metrics are collected between cycles, if at all: as it is set, and at least once a minute
    /// where a model may go to zero, since a collection tells of the minute before it alone.
    pub fn fetch_interval(&self) -> Option<Duration> {
        let look = (self.any_to_zero() && self.interval > LOOK).then_some(LOOK);
        self.cache.fetch_interval.into_iter().chain(look).min()
    }

    /// Whether any model may go to zero.
    fn any_to_zero(&self) -> bool {
        self.saturation.any_to_zero() || self.scale_to_zero.any()
    }

    /// Whether growth is limited to GPUs.
    pub fn limits_growth(&self) -> bool {
        self.limited_mode || self.saturation.limiter_enabled()
    }

    /// Whether somebody wants to know the GPUs that nodes offer: quotas alone need no nodes, unless
    /// limited mode asks for both.
    pub fn wants_nodes(&self) -> bool {
        let quotas = self.saturation.limiters().unwrap_or_default();
        self.limited_mode || (self.saturation.limiter_enabled() && quotas.is_empty())
    }

    /// Where a model's latency targets come from: explicit ones beat those of its class, which beat
    /// inferred ones. `class_label` is the value of [`CLASS_LABEL`](super::service_class::CLASS_LABEL) on its variant.
    pub fn latency_goal(&self, model: &ModelKey, class_label: Option<&str>) -> LatencyGoal<'_> {
        let policy = self.queueing_model.policy(model);
        if let Some(targets) = policy.targets {
            return LatencyGoal::Explicit(targets);
        }
        match self.service_classes.targets(&model.model, class_label) {
            Some(found) => LatencyGoal::Class {
                class: &found.class.name,
                targets: found.targets,
            },
            None => LatencyGoal::Inferred {
                slo_multiplier: policy.slo_multiplier,
            },
        }
    }
}

impl Default for DynamicSettings {
    /// What is in force when no source states anything.
    fn default() -> Self {
        let values = SettingValues::default();
        Self {
            interval: values.duration(&schema::GLOBAL_OPT_INTERVAL),
            freshness: FreshnessBands::default(),
            cache: cache(&values),
            transition_limits: TransitionLimits::default(),
            start_time: values.duration(&schema::REPLICA_START_TIME),
            limited_mode: false,
            proactive_model: false,
            node_selector: LabelSelector::default(),
            scale_from_zero_concurrency: 10,
            log_level: LogLevel::default(),
            saturation: SaturationLayers::default(),
            scale_to_zero: ScaleToZeroLayers::default(),
            queueing_model: QueueingModelLayers::default(),
            service_classes: ServiceClasses::default(),
        }
    }
}

impl Default for TransitionLimits {
    fn default() -> Self {
        let limit = Duration::from_mins(10);
        Self {
            pending: limit,
            unapplied: limit,
            silent: limit,
        }
    }
}

/// Metrics are never collected more often.
const SHORTEST_FETCH: Duration = Duration::from_secs(1);

fn cache(values: &SettingValues) -> CacheSettings {
    let fetch_interval = values.duration(&schema::CACHE_FETCH_INTERVAL);
    let max_samples = values.count(&schema::CACHE_MAX_SIZE);
    CacheSettings {
        reuse: Reuse::within(values.duration(&schema::CACHE_TTL)),
        cleanup_interval: values.duration(&schema::CACHE_CLEANUP_INTERVAL),
        fetch_interval: (!fetch_interval.is_zero()).then_some(fetch_interval.max(SHORTEST_FETCH)),
        max_samples: (max_samples > 0).then_some(max_samples),
    }
}

/// Verbosity 0 adds nothing, also to a level below info.
fn log_level(values: &SettingValues) -> LogLevel {
    let level = values.log_level(&schema::LOG_LEVEL);
    match values.count(&schema::VERBOSITY) {
        0 => level,
        verbosity => level.max(LogLevel::from_verbosity(verbosity)),
    }
}

/// The ages that samples are judged by. Out of order they would leave a band empty: they are refused
/// together, and those in force before stay.
fn freshness(
    values: &SettingValues,
    previous: Option<FreshnessBands>,
    diagnostics: &mut Diagnostics,
) -> FreshnessBands {
    let ordered = [
        &schema::CACHE_FRESH_THRESHOLD,
        &schema::CACHE_STALE_THRESHOLD,
        &schema::CACHE_UNAVAILABLE_THRESHOLD,
    ];
    let [fresh, stale, unavailable] = ordered.map(|spec| values.duration(spec));
    let mut is_ordered = true;
    for (lower, upper) in ordered.iter().zip(ordered.iter().skip(1)) {
        if values.duration(lower) <= values.duration(upper) {
            continue;
        }
        is_ordered = false;
        let Resolved { value, origin } = values.get(lower);
        let limit = values.get(upper).value;
        let error = SettingError {
            key: lower.name,
            value: value.to_string(),
            origin,
            refusal: InvalidValue::new(
                format!("it is above {}, which is {limit}", upper.name),
                format!("write at most {limit}, or raise {}", upper.name),
            ),
        };
        let instead = match previous {
            Some(_) => FallbackApplied::Previous,
            None => FallbackApplied::Below,
        };
        diagnostics
            .problems
            .push(Problem::Setting { error, instead });
    }
    if is_ordered {
        FreshnessBands {
            fresh,
            stale,
            unavailable,
        }
    } else {
        previous.unwrap_or_default()
    }
}
