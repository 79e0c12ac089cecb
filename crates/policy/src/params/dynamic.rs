//! The parameters of all decisions, replaced as a whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::analyzers::SaturationMethod;
use super::queueing_model::{LatencyTargets, QueueingModelLayers};
use super::saturation::{SaturationLayers, SaturationPolicy};
use super::scale_to_zero::ScaleToZeroLayers;
use super::selector::LabelSelector;
use super::service_class::ServiceClasses;
use crate::capacity::AnalyzerName;
use crate::key::ModelKey;
use crate::reuse::Reuse;
use crate::signal::{FreshnessBands, JUMP_LOOK, LOOK};

/// The part of the settings that may change while the process runs; replaced as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionLimits {
    /// Replicas that do not become ready.
    pub pending: Duration,
    /// A published count that is not applied.
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
        self.saturation.scale_to_zero(model).unwrap_or_else(|| self.scale_to_zero.enabled(model))
    }

    /// Whether the queueing model is asked about any model, which latency targets are for.
    pub fn asks_queueing_model(&self) -> bool {
        self.proactive_model
            || self.queueing_model.selected()
            || self.saturation.asks(AnalyzerName::QueueingModel)
    }

    /// Whether latency targets act on any model.
    pub fn acts_on_targets(&self) -> bool {
        self.asks_queueing_model() || self.saturation.asks(AnalyzerName::Slo)
    }

    /// Whether any model is sized, and not only moved by steps.
    pub fn sizes_models(&self) -> bool {
        let by_tokens = |policy: &SaturationPolicy| policy.analysis != SaturationMethod::Percentage;
        self.asks_queueing_model() || self.saturation.any_policy(by_tokens)
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

    /// How often metrics are collected between cycles, if at all: as it is set, and at least once a minute where a model
    /// may go to zero, since a collection shows the minute before it alone; every 15 s where one is sized for latency
    /// objectives, since a jump of its requests is decided on before the cycle.
    pub fn fetch_interval(&self) -> Option<Duration> {
        let zero = self.any_to_zero().then_some(LOOK);
        let slo = self.saturation.asks(AnalyzerName::Slo).then_some(JUMP_LOOK);
        let looks = zero.into_iter().chain(slo);
        let between = looks.filter(|every| *every < self.interval);
        self.cache.fetch_interval.into_iter().chain(between).min()
    }

    fn any_to_zero(&self) -> bool {
        self.saturation.any_to_zero() || self.scale_to_zero.any()
    }

    /// Whether growth is limited to GPUs.
    pub fn limits_growth(&self) -> bool {
        self.limited_mode || self.saturation.limiter_enabled()
    }

    /// Whether the GPUs that nodes offer are needed: quotas alone need no nodes, unless limited mode
    /// requires both.
    pub fn wants_nodes(&self) -> bool {
        let quotas = self.saturation.limiters().unwrap_or_default();
        self.limited_mode || (self.saturation.limiter_enabled() && quotas.is_empty())
    }

    /// Where a model's latency targets come from: explicit ones beat those of its class, which beat
    /// inferred ones. `class_labels` are the values of [`CLASS_LABEL`](super::CLASS_LABEL) on its variants, by name.
    pub fn latency_goal<'a>(
        &self,
        model: &ModelKey,
        class_labels: impl IntoIterator<Item = &'a str>,
    ) -> LatencyGoal<'_> {
        let policy = self.queueing_model.policy(model);
        if let Some(targets) = policy.targets {
            return LatencyGoal::Explicit(targets);
        }
        match self.service_classes.targets(&model.model, class_labels) {
            Some(found) => LatencyGoal::Class { class: &found.class.name, targets: found.targets },
            None => LatencyGoal::Inferred { slo_multiplier: policy.slo_multiplier },
        }
    }
}

impl Default for DynamicSettings {
    fn default() -> Self {
        Self {
            interval: Duration::from_mins(1),
            freshness: FreshnessBands::default(),
            cache: CacheSettings::default(),
            transition_limits: TransitionLimits::default(),
            start_time: Duration::from_mins(1),
            limited_mode: false,
            proactive_model: false,
            node_selector: LabelSelector::default(),
            scale_from_zero_concurrency: 10,
            saturation: SaturationLayers::default(),
            scale_to_zero: ScaleToZeroLayers::default(),
            queueing_model: QueueingModelLayers::default(),
            service_classes: ServiceClasses::default(),
        }
    }
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self {
            reuse: Reuse::within(Duration::from_secs(30)),
            cleanup_interval: Duration::from_mins(1),
            fetch_interval: None,
            max_samples: None,
        }
    }
}

impl Default for TransitionLimits {
    fn default() -> Self {
        let limit = Duration::from_mins(10);
        Self { pending: limit, unapplied: limit, silent: limit }
    }
}
