//! Names of metrics of pods: from `targetMetric` to the series of an inference engine.
//!
//! `targetMetric` is `name` or `name:statistic`. A name of the table below stands for the series of the pod's
//! engine. Any other name is that of a series as the page shows it, for example `vllm:num_requests_running`. The
//! statistic is `p50`, `p90`, `p95`, `p99` or `mean`, and only histograms and summaries have one. Without one
//! their mean is taken.

use std::iter;
use std::sync::Arc;

pub use super::metric_table::SeriesType;
use super::metric_table::{CANONICAL_METRICS, CanonicalMetric};

/// Label of a pod with what serves the model in it.
pub const ENGINE_LABEL: &str = "model.aibrix.ai/engine";

wva_base::named! {
    listed
    /// What serves the model in a pod: the label `model.aibrix.ai/engine`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum InferenceEngine {
        /// `vllm`, also where the label is missing.
        Vllm = "vllm",
        Sglang = "sglang",
        Trtllm = "trtllm",
        Xllm = "xllm",
    }
}

impl InferenceEngine {
    fn of(label: Option<&str>) -> Option<Self> {
        let label = label.unwrap_or_default();
        if label.is_empty() {
            return Some(Self::Vllm);
        }
        let mut all = Self::ALL.into_iter();
        all.find(|engine| engine.as_str() == label)
    }
}

/// What is taken of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HistogramStatistic {
    /// The mean of the observations between two reads.
    Mean,
    /// This many hundredths of the observations between two reads were not above it.
    Percentile(u8),
}

/// What is read off a page, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageMetric {
    /// Name of the series.
    pub series: Arc<str>,
    /// Names that other versions of the engine give it.
    pub other_names: &'static [&'static str],
    /// What its values mean, where the table knows it; else the page states it.
    pub kind: Option<SeriesType>,
    /// What is taken of a histogram, where `targetMetric` states it.
    pub statistic: Option<HistogramStatistic>,
}

/// Why `targetMetric` names nothing on the page of a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricNameError {
    /// Its value comes from a query.
    #[error(
        "{name} is the result of a Prometheus query, which no page of an engine ({engine}) shows; serve it through the \
         external metrics API with a source of type external, or name a series of the page"
    )]
    Query {
        /// The name.
        name: &'static str,
        /// The engine.
        engine: Arc<str>,
    },
    /// Its labels hold what it reports.
    #[error(
        "{name} lists LoRA adapters in its labels and has no value to scale by (engine {engine}); name a gauge, a \
         counter or a histogram"
    )]
    Labels {
        /// The name.
        name: &'static str,
        /// The engine.
        engine: Arc<str>,
    },
    /// The engine has no series for it.
    #[error("engine {engine} has no series for {name}; {}", remedy(engines))]
    NoSeries {
        /// The name.
        name: &'static str,
        /// The engine.
        engine: &'static str,
        /// Engines that have one.
        engines: Vec<&'static str>,
    },
    /// The label of the pod names none.
    #[error(
        "engine {engine:?} is unknown, so {name} has no series; set the label model.aibrix.ai/engine of the pod to vllm, \
         sglang, trtllm or xllm, or name the series of the page in targetMetric"
    )]
    UnknownEngine {
        /// The name.
        name: &'static str,
        /// The label.
        engine: Arc<str>,
    },
    /// It cannot be the name of a series.
    #[error(
        "{name:?} is no name of a series (engine {engine}); write letters, digits, underscores and colons, without \
         labels"
    )]
    Malformed {
        /// The name.
        name: Arc<str>,
        /// The engine.
        engine: Arc<str>,
    },
    /// It has no distribution.
    #[error("{name} has no distribution (engine {engine}); remove :{statistic} from targetMetric")]
    NoDistribution {
        /// The name.
        name: Arc<str>,
        /// The engine.
        engine: Arc<str>,
        /// What was stated.
        statistic: Arc<str>,
    },
    /// What stands behind its name is no statistic.
    #[error(
        "{statistic:?} is no statistic of {name} (engine {engine}); write p50, p90, p95, p99 or mean"
    )]
    NoStatistic {
        /// The name.
        name: Arc<str>,
        /// The engine.
        engine: Arc<str>,
        /// What was stated.
        statistic: Arc<str>,
    },
}

fn remedy(engines: &[&str]) -> String {
    let raw = "name a series of its page in targetMetric";
    if engines.is_empty() {
        return raw.to_owned();
    }
    format!("{raw}, or measure pods of {}", engines.join(" or "))
}

wva_base::display_of! { HistogramStatistic:
    Self::Mean => "mean";
    Self::Percentile(hundredths) => "p{hundredths}";
}

impl HistogramStatistic {
    /// All that `targetMetric` may state.
    pub(crate) const ALL: [Self; 5] = [
        Self::Percentile(50),
        Self::Percentile(90),
        Self::Percentile(95),
        Self::Percentile(99),
        Self::Mean,
    ];

    fn split(metric: &str) -> (&str, Option<Self>) {
        let stated = metric.rsplit_once(':').and_then(|(name, last)| {
            let mut all = Self::ALL.into_iter();
            let statistic = all.find(|statistic| statistic.to_string() == last)?;
            Some((name, Some(statistic)))
        });
        stated.unwrap_or((metric, None))
    }
}

impl PageMetric {
    /// What `targetMetric` means on the page of a pod with this engine label.
    pub fn of_pod(metric: &str, engine: Option<&str>) -> Result<Self, MetricNameError> {
        let (name, statistic) = HistogramStatistic::split(metric);
        let mut table = CANONICAL_METRICS.iter();
        if let Some(canonical) = table.find(|one| one.name == name) {
            return of_table(canonical, engine, statistic);
        }
        let engine = engine.unwrap_or("vllm");
        no_statistic(name, engine).map_or_else(|| Self::named(name, engine, statistic), Err)
    }

    /// What `targetMetric` means on the page of a service: the series of this name.
    pub fn of_service(metric: &str) -> Result<Self, MetricNameError> {
        let (name, statistic) = HistogramStatistic::split(metric);
        Self::named(name, "none", statistic)
    }

    fn named(
        name: &str,
        engine: &str,
        statistic: Option<HistogramStatistic>,
    ) -> Result<Self, MetricNameError> {
        if !is_series_name(name) {
            let (name, engine) = (name.into(), engine.into());
            return Err(MetricNameError::Malformed { name, engine });
        }
        let known = CANONICAL_METRICS.iter().find(|one| one.shows(name));
        let kind = known.and_then(|one| one.kind);
        check_distribution(name, engine, kind, statistic)?;
        Ok(Self { series: name.into(), other_names: &[], kind, statistic })
    }

    /// Every name that it may have on a page, the first one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        iter::once(&*self.series).chain(self.other_names.iter().copied())
    }
}

fn of_table(
    canonical: &CanonicalMetric,
    label: Option<&str>,
    statistic: Option<HistogramStatistic>,
) -> Result<PageMetric, MetricNameError> {
    let name = canonical.name;
    let shown = || Arc::from(label.filter(|label| !label.is_empty()).unwrap_or("vllm"));
    let kind = canonical.kind.ok_or_else(|| {
        let engine = shown();
        if canonical.is_query() {
            MetricNameError::Query { name, engine }
        } else {
            MetricNameError::Labels { name, engine }
        }
    })?;
    let engine = InferenceEngine::of(label)
        .ok_or_else(|| MetricNameError::UnknownEngine { name, engine: shown() })?;
    check_distribution(name, engine.as_str(), Some(kind), statistic)?;
    let columns = || InferenceEngine::ALL.into_iter().zip(canonical.series);
    let mut named = columns().filter_map(|(one, names)| Some((one, names.split_first()?)));
    let found = named.find(|(one, _)| *one == engine);
    let (_, (series, other_names)) = found.ok_or_else(|| MetricNameError::NoSeries {
        name,
        engine: engine.as_str(),
        engines: columns()
            .filter_map(|(one, names)| (!names.is_empty()).then_some(one.as_str()))
            .collect(),
    })?;
    Ok(PageMetric { series: (*series).into(), other_names, kind: Some(kind), statistic })
}

/// Refuses a statistic of what is known to have no distribution.
fn check_distribution(
    name: &str,
    engine: &str,
    kind: Option<SeriesType>,
    statistic: Option<HistogramStatistic>,
) -> Result<(), MetricNameError> {
    let refused = statistic.filter(|_| kind.is_some_and(|kind| kind != SeriesType::Histogram));
    refused.map_or(Ok(()), |statistic| {
        Err(MetricNameError::NoDistribution {
            name: name.into(),
            engine: engine.into(),
            statistic: statistic.to_string().into(),
        })
    })
}

fn no_statistic(metric: &str, engine: &str) -> Option<MetricNameError> {
    let (name, statistic) = metric.rsplit_once(':')?;
    let mut table = CANONICAL_METRICS.iter();
    let known = table.find(|one| one.name == name || one.shows(name))?;
    let is_histogram = known.kind == Some(SeriesType::Histogram);
    let (name, engine, statistic) = (name.into(), engine.into(), statistic.into());
    Some(if is_histogram {
        MetricNameError::NoStatistic { name, engine, statistic }
    } else {
        MetricNameError::NoDistribution { name, engine, statistic }
    })
}

fn is_series_name(text: &str) -> bool {
    let starts = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    text.starts_with(starts) && text.chars().all(|letter| starts(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests;
