//! From the samples of one series on a metrics page to one value.
//!
//! | series | value |
//! |---|---|
//! | gauge | sum over label sets, in the unit of the page |
//! | gauge between 0 and 1, of the table of names | mean over label sets: a sum of shares is no share |
//! | counter | sum over label sets of the increase per second since an earlier read |
//! | histogram, summary | mean of the observations since the read before |
//! | histogram with `:p50`, `:p90`, `:p95`, `:p99` | that percentile of them, interpolated within its bucket |
//!
//! A counter that fell began again at zero, and so did one that the read before did not show. The first read
//! of a counter or a histogram has no value. Without an observation between two reads a histogram has no new
//! value: the last one stays and ages, so that growth may rest on it for two minutes and no release after one, unless
//! the pod is known to run no request.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::metric_name::{HistogramStatistic, PageMetric};
use super::metric_table::SeriesType;
use super::samples::ReadFailure;
use crate::signal::Failure;

/// Endings of samples that belong to a series of another name.
pub const SAMPLE_ENDINGS: [(&str, SamplePart); 4] = [
    ("_total", SamplePart::Total),
    ("_bucket", SamplePart::Bucket),
    ("_sum", SamplePart::Sum),
    ("_count", SamplePart::Count),
];

/// What a sample is to its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplePart {
    /// Its value: the sample has the name of the series.
    Value,
    /// The value of a counter whose name was written without `_total`.
    Total,
    /// A bucket of a histogram.
    Bucket,
    /// The sum of observations.
    Sum,
    /// The number of observations.
    Count,
}

/// One sample of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FamilySample {
    /// What it is to the series.
    pub part: SamplePart,
    /// The upper bound of a bucket.
    pub bound: f64,
    /// Its value.
    pub value: f64,
}

/// All samples of one series on a page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FamilySamples {
    /// The type that the page declares for the name.
    pub declared: Option<SeriesType>,
    /// The type that it declares for the name without `_bucket`, `_sum` or `_count`.
    pub base: Option<SeriesType>,
    /// By name and labels as they stand there.
    pub samples: BTreeMap<Arc<str>, FamilySample>,
}

impl FamilySamples {
    /// Whether it has values alone, and no distribution.
    pub fn is_counted(&self) -> bool {
        let mut samples = self.samples.values();
        samples.all(|sample| matches!(sample.part, SamplePart::Value | SamplePart::Total))
    }
}

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageReading {
    /// A value.
    Value(f64),
    /// Nothing new, for this reason.
    NotYet(&'static str),
    /// Nothing was observed between two reads.
    NothingObserved,
}

/// An earlier read of the same page.
#[derive(Debug, Clone, Copy)]
pub struct EarlierRead<'r> {
    /// What it showed.
    pub samples: &'r FamilySamples,
    /// How long ago it was.
    pub elapsed: Duration,
}

/// What a page shows of a metric, by the first of its names that is there.
pub fn shown_family<'f>(
    metric: &PageMetric,
    families: &'f BTreeMap<Arc<str>, FamilySamples>,
) -> Option<&'f FamilySamples> {
    let mut found = metric.names().filter_map(|name| families.get(name));
    found.find(|family| !family.samples.is_empty())
}

/// The value of a metric.
///
/// # Errors
/// The page does not show the series, or shows what is no value.
pub fn page_value(
    metric: &PageMetric,
    page: &FamilySamples,
    earlier: Option<EarlierRead<'_>>,
) -> Result<PageReading, ReadFailure> {
    let read = PageRead { metric, page, earlier };
    if page.samples.is_empty() {
        return Err(read.absent("no series of that name"));
    }
    let kind = read.kind()?;
    let has_distribution = matches!(kind, SeriesType::Histogram | SeriesType::Summary);
    if let Some(statistic) = metric.statistic
        && !has_distribution
    {
        return Err(
            read.invalid(format!("it has no distribution; remove :{statistic} from targetMetric"))
        );
    }
    match kind {
        SeriesType::Gauge | SeriesType::Ratio => read.gauge(kind == SeriesType::Ratio),
        SeriesType::Counter => read.rate(),
        SeriesType::Histogram | SeriesType::Summary => read.distribution(kind),
    }
}

struct PageRead<'r> {
    metric: &'r PageMetric,
    page: &'r FamilySamples,
    earlier: Option<EarlierRead<'r>>,
}

/// Increases since the read before.
struct Increases {
    /// By upper bound.
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
}

const FIRST_READ: &str = "it was read once, and its increase needs two reads";

impl PageRead<'_> {
    fn absent(&self, what: &str) -> ReadFailure {
        let series = &self.metric.series;
        ReadFailure::new(
            Failure::Absent,
            format!(
                "{series}: the page shows {what}; correct targetMetric, or the label model.aibrix.ai/engine of the pod"
            ),
        )
    }

    fn invalid(&self, why: impl AsRef<str>) -> ReadFailure {
        let why = format!("{}: {}", self.metric.series, why.as_ref());
        ReadFailure::new(Failure::Invalid, why)
    }

    fn shows(&self, part: SamplePart) -> bool {
        let mut samples = self.page.samples.values();
        samples.any(|sample| sample.part == part)
    }

    /// What the table knows, else what the page declares, else what the samples look like.
    fn kind(&self) -> Result<SeriesType, ReadFailure> {
        if let Some(kind) = self.metric.kind.or(self.page.declared) {
            return Ok(kind);
        }
        let has_base = matches!(self.page.base, Some(SeriesType::Histogram | SeriesType::Summary));
        let series = &self.metric.series;
        if has_base && series.ends_with("_bucket") {
            return Err(self.invalid("it is a part of a histogram; write its name without _bucket"));
        }
        let is_counter = has_base
            || series.ends_with("_total")
            || (self.shows(SamplePart::Total) && !self.shows(SamplePart::Value));
        Ok(if self.shows(SamplePart::Bucket) {
            SeriesType::Histogram
        } else if is_counter {
            SeriesType::Counter
        } else {
            SeriesType::Gauge
        })
    }

    /// Samples of a part, each of them a number that can be counted with.
    fn part(&self, part: SamplePart) -> Result<Vec<(&Arc<str>, FamilySample)>, ReadFailure> {
        let samples = self.page.samples.iter();
        samples
            .filter(|(_, sample)| sample.part == part)
            .map(|(series, sample)| {
                if sample.value.is_finite() && sample.value >= 0.0 {
                    return Ok((series, *sample));
                }
                Err(self.invalid(format!(
                    "{series} is not finite or negative, and no demand; name another series"
                )))
            })
            .collect()
    }

    fn gauge(&self, is_ratio: bool) -> Result<PageReading, ReadFailure> {
        let samples = self.part(SamplePart::Value)?;
        if samples.is_empty() {
            return Err(self.absent("no value of it"));
        }
        let sum: f64 = samples.iter().map(|(_, sample)| sample.value).sum();
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let value = if is_ratio { sum / f64::from(count) } else { sum };
        self.finite(value)
    }

    fn finite(&self, value: f64) -> Result<PageReading, ReadFailure> {
        if value.is_finite() && value >= 0.0 {
            Ok(PageReading::Value(value))
        } else {
            Err(self.invalid(format!("its value is {value}, and no demand")))
        }
    }

    fn rate(&self) -> Result<PageReading, ReadFailure> {
        let mut samples = self.part(SamplePart::Value)?;
        if samples.is_empty() {
            samples = self.part(SamplePart::Total)?;
        }
        if samples.is_empty() {
            return Err(self.absent("no value of it"));
        }
        let Some(earlier) = self.since() else {
            return Ok(PageReading::NotYet(FIRST_READ));
        };
        let increases = samples.into_iter().map(|(series, sample)| {
            let before = earlier.samples.samples.get(series);
            before
                .map(|before| sample.value - before.value)
                .filter(|increase| *increase >= 0.0)
                .unwrap_or(sample.value)
        });
        self.finite(increases.sum::<f64>() / earlier.elapsed.as_secs_f64())
    }

    fn since(&self) -> Option<EarlierRead<'_>> {
        self.earlier.filter(|earlier| !earlier.elapsed.is_zero())
    }

    fn distribution(&self, kind: SeriesType) -> Result<PageReading, ReadFailure> {
        let statistic = self.metric.statistic.unwrap_or(HistogramStatistic::Mean);
        if let (SeriesType::Summary, HistogramStatistic::Percentile(_)) = (kind, statistic) {
            return Err(self.invalid(
                "it is a summary, which has no buckets; write :mean, or name a histogram",
            ));
        }
        let Some(increases) = self.increases()? else {
            return Ok(PageReading::NotYet(FIRST_READ));
        };
        match statistic {
            HistogramStatistic::Mean => {
                let (Some(sum), Some(count)) = (increases.sum, increases.count) else {
                    return Err(self.absent("no _sum and _count of it"));
                };
                if count <= 0.0 {
                    return Ok(PageReading::NothingObserved);
                }
                self.finite(sum / count)
            }
            HistogramStatistic::Percentile(hundredths) => {
                // Where the bucket of everything is the only one, no percentile is known.
                if !increases.buckets.iter().any(|one| one.0.is_finite()) {
                    return Err(self.absent("no buckets of it"));
                }
                self.percentile(f64::from(hundredths) / 100.0, increases.buckets)
            }
        }
    }

    /// What was observed since the read before; `None` without one.
    fn increases(&self) -> Result<Option<Increases>, ReadFailure> {
        let sums = self.part(SamplePart::Sum)?;
        let counts = self.part(SamplePart::Count)?;
        let buckets = self.part(SamplePart::Bucket)?;
        let Some(earlier) = self.since() else {
            return Ok(None);
        };
        let before = |series: &Arc<str>| {
            let sample = earlier.samples.samples.get(series);
            sample.map_or(0.0, |sample| sample.value)
        };
        let all = || sums.iter().chain(&counts).chain(&buckets);
        // Its parts begin again together, whichever of them shows it.
        let has_restarted = all().any(|(series, sample)| sample.value < before(series));
        let increase = |(series, sample): &(&Arc<str>, FamilySample)| {
            let from = if has_restarted { 0.0 } else { before(series) };
            sample.value - from
        };
        let total = |samples: &[(&Arc<str>, FamilySample)]| {
            let sum = samples.iter().map(increase).sum();
            (!samples.is_empty()).then_some(sum)
        };
        let by_bound = buckets.iter();
        Ok(Some(Increases {
            buckets: by_bound.map(|one| (one.1.bound, increase(one))).collect(),
            sum: total(&sums),
            count: total(&counts),
        }))
    }

    fn percentile(
        &self,
        share: f64,
        mut buckets: Vec<(f64, f64)>,
    ) -> Result<PageReading, ReadFailure> {
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut cumulative: Vec<(f64, f64)> = Vec::new();
        for (bound, count) in buckets {
            match cumulative.last_mut() {
                Some(last) if last.0.total_cmp(&bound).is_eq() => last.1 += count,
                _ => cumulative.push((bound, count)),
            }
        }
        let total = cumulative.iter().map(|(_, count)| *count).fold(0.0, f64::max);
        if total <= 0.0 {
            return Ok(PageReading::NothingObserved);
        }
        let rank = share * total;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in cumulative {
            if count >= rank && count > below {
                let is_open = bound.is_infinite() || bound <= 0.0;
                let value = if is_open {
                    // What lies beyond the last bound is at least there.
                    if bound.is_infinite() { lower } else { bound }
                } else {
                    lower + (bound - lower) * ((rank - below) / (count - below)).max(0.0)
                };
                return self.finite(value);
            }
            lower = bound.max(0.0);
            below = count.max(below);
        }
        self.finite(lower)
    }
}

#[cfg(test)]
mod tests;
