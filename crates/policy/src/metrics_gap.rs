//! Why the metrics of a variant are missing, as far as one collection shows it: what was looked for,
//! what was found instead, and what to do. Texts hold names and no measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::key::{ModelKey, VariantKey};
use super::plan::Plan;
use super::reason::MetricsState;
use super::signal::SignalName;
use super::snapshot::{ClusterSnapshot, MetricsSnapshot, Readiness, VariantView};
use wva_base::text::{LISTED, bounded, shortened};

/// Longest error text in a condition, in letters.
const MAX_ERROR: usize = 400;

/// Why the metrics of a variant cannot be used. Lists hold one name more than a text shows, at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum MetricsGap {
    /// A query failed that no model can do without.
    QueryFailed {
        /// Which one, and its error.
        error: Arc<str>,
    },
    /// No pod of the target is ready.
    NoReadyPod,
    /// No pod of its target is ready, and these wait behind a scheduling gate.
    Gated {
        /// Their names.
        pods: Arc<[Arc<str>]>,
    },
    /// Its pods report the model, and no value that can be used.
    NoValue,
    /// Its pods report other models.
    OtherModel {
        /// Their names.
        models: Arc<[Arc<str>]>,
    },
    /// Pods of these names report from another namespace, where no variant owns them.
    OtherNamespace {
        /// The namespaces.
        namespaces: Arc<[Arc<str>]>,
    },
    /// Series of the model do not say which pod they are of.
    NoPodLabel,
    /// Series of the model do not say which namespace they are of.
    NoNamespaceLabel,
    /// Other pods of the namespace report the model.
    OtherPods {
        /// Their names.
        pods: Arc<[Arc<str>]>,
    },
    /// The namespace has series of other models only.
    OtherModels {
        /// Their names.
        models: Arc<[Arc<str>]>,
    },
    /// Prometheus has series of other namespaces only.
    NothingInNamespace,
    /// Prometheus has no series of any engine.
    Nothing,
}

/// The gap of each variant that has one.
pub type MetricsGaps = BTreeMap<VariantKey, MetricsGap>;

/// Finds why metrics are missing, for each variant of which the plan says that they are.
pub fn metrics_gaps(snapshot: &ClusterSnapshot, plan: &Plan) -> MetricsGaps {
    let error = failure(&snapshot.metrics);
    // An index of every pod is worth its cost only where something is missing.
    let mut seen: Option<Seen<'_>> = None;
    let gaps = plan.decisions.values().filter_map(|decision| {
        let view = snapshot.variants.get(&decision.key)?;
        let gap = match decision.metrics {
            MetricsState::QueryFailed | MetricsState::NotCollected => {
                MetricsGap::QueryFailed { error: Arc::clone(error.as_ref()?) }
            }
            MetricsState::Missing => seen.get_or_insert_with(|| Seen::of(snapshot)).gap(view),
            MetricsState::Available
            | MetricsState::Stale
            | MetricsState::NoReplicas
            | MetricsState::NotEvaluated => return None,
        };
        Some((decision.key.clone(), gap))
    });
    gaps.collect()
}

/// The error of the query that no model can do without, one text for all variants.
fn failure(metrics: &MetricsSnapshot) -> Option<Arc<str>> {
    let needed = [SignalName::KvUsage, SignalName::QueueLength];
    let failed = needed.iter().find_map(|name| metrics.failures.get(name));
    failed.map(|error| Arc::from(bounded(error, MAX_ERROR)))
}

/// What one collection holds, by pod and by namespace.
struct Seen<'a> {
    metrics: &'a MetricsSnapshot,
    by_pod: BTreeMap<&'a str, Vec<&'a ModelKey>>,
    by_namespace: BTreeMap<&'a str, Vec<Arc<str>>>,
    /// Namespace and name of the pods of every variant.
    owned: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Seen<'a> {
    fn of(snapshot: &'a ClusterSnapshot) -> Self {
        let metrics = &*snapshot.metrics;
        let mut by_pod: BTreeMap<&str, Vec<&ModelKey>> = BTreeMap::new();
        let mut by_namespace: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
        for (model, pods) in &metrics.models {
            let known = by_namespace.entry(&model.namespace).or_default();
            if known.len() <= LISTED {
                known.push(Arc::clone(&model.model));
            }
            for pod in pods.keys() {
                by_pod.entry(pod).or_default().push(model);
            }
        }
        let owned = snapshot.variants.values().flat_map(|view| {
            let pods = view.pods.iter();
            pods.map(|pod| (&*view.key.namespace, &*pod.name))
        });
        Self { metrics, by_pod, by_namespace, owned: owned.collect() }
    }

    /// The likeliest gap of a variant of which no ready pod has a value: what is sure comes first.
    fn gap(&self, view: &VariantView) -> MetricsGap {
        let ready: Vec<&str> = (view.pods.iter())
            .filter(|pod| pod.readiness == Readiness::Ready)
            .map(|pod| &*pod.name)
            .collect();
        if ready.is_empty() {
            let gated = (view.pods.iter()).filter(|pod| pod.readiness == Readiness::Gated);
            let pods = few(gated.map(|pod| &pod.name));
            return if pods.is_empty() {
                MetricsGap::NoReadyPod
            } else {
                MetricsGap::Gated { pods }
            };
        }
        let found = self.of_pods(&ready);
        let namespace = &view.model.namespace;
        if found.contains(&&view.model) {
            return MetricsGap::NoValue;
        }
        let here = found.iter().filter(|model| model.namespace == *namespace);
        let models = few(here.map(|model| &model.model));
        if !models.is_empty() {
            return MetricsGap::OtherModel { models };
        }
        let elsewhere = found.iter().filter(|model| {
            let is_owned = |pod: &&str| self.owned.contains(&(&*model.namespace, *pod));
            model.model == view.model.model && !ready.iter().any(is_owned)
        });
        let namespaces = few(elsewhere.map(|model| &model.namespace));
        if !namespaces.is_empty() {
            return MetricsGap::OtherNamespace { namespaces };
        }
        self.without_pods(view)
    }

    fn without_pods(&self, view: &VariantView) -> MetricsGap {
        let ModelKey { namespace, model } = &view.model;
        let unlabelled = &self.metrics.unlabelled;
        if (unlabelled.without_pod.get(namespace)).is_some_and(|models| models.contains(model)) {
            return MetricsGap::NoPodLabel;
        }
        if let Some(pods) = self.metrics.models.get(&view.model) {
            return MetricsGap::OtherPods { pods: few(pods.keys()) };
        }
        if unlabelled.without_namespace.contains(model) {
            return MetricsGap::NoNamespaceLabel;
        }
        match self.by_namespace.get(&**namespace) {
            Some(models) => MetricsGap::OtherModels { models: models.as_slice().into() },
            None if self.metrics.models.is_empty() => MetricsGap::Nothing,
            None => MetricsGap::NothingInNamespace,
        }
    }

    fn of_pods(&self, pods: &[&str]) -> BTreeSet<&'a ModelKey> {
        let models = pods.iter().filter_map(|pod| self.by_pod.get(pod));
        models.flatten().copied().collect()
    }
}

/// As many names as a text shows, and one more where there are more.
fn few<'n>(names: impl Iterator<Item = &'n Arc<str>>) -> Arc<[Arc<str>]> {
    let sorted: BTreeSet<&Arc<str>> = names.collect();
    sorted.into_iter().take(LISTED + 1).cloned().collect()
}

impl MetricsGap {
    /// Cause and remedy, for a variant of this model.
    pub fn text(&self, ModelKey { namespace, model }: &ModelKey) -> String {
        let model = format!("model_name {:?}", shortened(model));
        let looked = format!("looked for {model} in namespace {namespace:?}");
        match self {
            Self::QueryFailed { error } => error.to_string(),
            Self::NoReadyPod => "no pod of the scale target is ready".to_owned(),
            Self::Gated { pods } => format!(
                "no pod of the scale target is ready; {} wait behind a scheduling gate: see what is to remove it, like the queue of Kueue",
                quoted(pods)
            ),
            Self::NoValue => format!(
                "the ready pods are scraped as {model}, but report neither KV cache usage nor queue length; compare the metric names of the engine with docs/integrations/prometheus.md"
            ),
            Self::OtherModel { models } => format!(
                "{looked}; the ready pods are scraped as model_name {}: set spec.modelID to the name that the engine reports, or start the engine with --served-model-name",
                quoted(models)
            ),
            Self::OtherNamespace { namespaces } => format!(
                "{looked}; the ready pods are scraped with the namespace label {}: have the scrape job attach the namespace of the pod",
                quoted(namespaces)
            ),
            Self::NoPodLabel => format!(
                "{looked}; its series have no label pod: have the scrape job attach the labels namespace and pod, as a PodMonitor or ServiceMonitor does"
            ),
            Self::NoNamespaceLabel => format!(
                "{looked}; series of that model have no label namespace: have the scrape job attach the labels namespace and pod, as a PodMonitor or ServiceMonitor does"
            ),
            Self::OtherPods { pods } => format!(
                "{looked}; scraped are pods {}, and no ready pod of this scale target: check that a PodMonitor or ServiceMonitor selects them and that their metrics port is open",
                quoted(pods)
            ),
            Self::OtherModels { models } => format!(
                "{looked}; Prometheus has there model_name {}, and no ready pod of this scale target: check that a PodMonitor or ServiceMonitor selects its pods",
                quoted(models)
            ),
            Self::NothingInNamespace => format!(
                "{looked}; Prometheus has engine series of other namespaces only: check that a PodMonitor or ServiceMonitor selects the pods, and that Prometheus selects that monitor"
            ),
            Self::Nothing => format!(
                "{looked}; Prometheus has no engine series at all: check that PROMETHEUS_BASE_URL names the Prometheus that scrapes the engines, and that a PodMonitor or ServiceMonitor selects the pods"
            ),
        }
    }
}

fn quoted(names: &[Arc<str>]) -> String {
    let first = names.iter().take(LISTED);
    let first: Vec<String> = first.map(|name| format!("{:?}", shortened(name))).collect();
    // A number of the others would change with every pod.
    let more = if names.len() > LISTED { " and more" } else { "" };
    first.join(", ") + more
}
