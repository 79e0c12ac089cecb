//! What a simulated server shows at `/metrics`: as samples for a store in this process, or as text in
//! the format of Prometheus (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter, Write};
use std::sync::Arc;

wva_base::named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum MetricKind {
        Counter = "counter",
        Gauge = "gauge",
        Histogram = "histogram",
    }
}

/// Label names with values, in the order of exposition. Cheap to clone.
pub(crate) type ExpositionLabels = Arc<[(Cow<'static, str>, String)]>;

pub(crate) fn labels<'a>(
    pairs: impl IntoIterator<Item = (&'static str, &'a str)>,
) -> ExpositionLabels {
    let owned = |(name, value): (&'static str, &str)| (Cow::Borrowed(name), value.to_owned());
    pairs.into_iter().map(owned).collect()
}

pub(crate) fn with(labels: &ExpositionLabels, name: &'static str, value: &str) -> ExpositionLabels {
    let more = (Cow::Borrowed(name), value.to_owned());
    labels.iter().cloned().chain([more]).collect()
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Histogram {
    bounds: Arc<[f64]>,
    /// Observations per bucket, not cumulated; the last one has no bound.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// Without observations; `bounds` ascend.
    pub(crate) fn new(bounds: impl Into<Arc<[f64]>>) -> Self {
        let bounds = bounds.into();
        Self { counts: vec![0; bounds.len() + 1], bounds, sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        self.observe_many(value, 1);
    }

    pub(crate) fn observe_many(&mut self, value: f64, times: u64) {
        let bucket = self.bucket(value);
        self.add(bucket, times, value * super::number::real(times));
    }

    pub(super) fn bucket(&self, value: f64) -> usize {
        // From the front: what is observed most lies there.
        self.bounds.iter().take_while(|bound| **bound < value).count()
    }

    pub(super) fn add(&mut self, bucket: usize, times: u64, sum: f64) {
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += times;
            self.sum += sum;
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SeriesValue {
    Value(f64),
    Buckets(Histogram),
}

impl SeriesValue {
    fn same_buckets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(_), Self::Value(_)) => true,
            (Self::Buckets(one), Self::Buckets(other)) => {
                Arc::ptr_eq(&one.bounds, &other.bounds) || one.bounds == other.bounds
            }
            _ => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MetricFamily {
    /// The name, with `_total` where it has one.
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: MetricKind,
    pub(crate) series: Vec<ExpositionSeries>,
}

pub(crate) type ExpositionSeries = (ExpositionLabels, SeriesValue);

/// One sample as a store keeps it: a histogram makes one per bucket, a sum and a count.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExpositionSample {
    /// The series' name, with `_bucket`, `_sum` or `_count` where it belongs to a histogram.
    pub(crate) name: Cow<'static, str>,
    /// Labels; a bucket's bound is `le`.
    pub(crate) labels: ExpositionLabels,
    pub(crate) value: f64,
    pub(crate) kind: MetricKind,
}

impl ExpositionSample {
    pub(super) fn series(&self) -> String {
        let mut text = self.name.to_string();
        // Writing to a String cannot fail.
        write_labels(&mut text, &self.labels).unwrap_or_default();
        text
    }
}

impl MetricFamily {
    pub(crate) fn single(
        name: impl Into<Cow<'static, str>>,
        kind: MetricKind,
        labels: &ExpositionLabels,
        value: f64,
    ) -> Self {
        let series = vec![(labels.clone(), SeriesValue::Value(value))];
        Self::of(name, kind, series)
    }

    pub(crate) fn histogram(
        name: impl Into<Cow<'static, str>>,
        labels: &ExpositionLabels,
        buckets: &Histogram,
    ) -> Self {
        let series = vec![(labels.clone(), SeriesValue::Buckets(buckets.clone()))];
        Self::of(name, MetricKind::Histogram, series)
    }

    pub(crate) fn of(
        name: impl Into<Cow<'static, str>>,
        kind: MetricKind,
        series: Vec<(ExpositionLabels, SeriesValue)>,
    ) -> Self {
        Self { name: name.into(), kind, series }
    }

    fn same_series(&self, other: &Self) -> bool {
        let same =
            |((labels, reading), (others, other)): (&ExpositionSeries, &ExpositionSeries)| {
                labels == others && reading.same_buckets(other)
            };
        self.name == other.name
            && self.kind == other.kind
            && self.series.len() == other.series.len()
            && self.series.iter().zip(&other.series).all(same)
    }

    fn visit_values(&self, visit: &mut impl FnMut(f64)) {
        for (_, reading) in &self.series {
            let histogram = match reading {
                SeriesValue::Value(value) => {
                    visit(*value);
                    continue;
                }
                SeriesValue::Buckets(histogram) => histogram,
            };
            let mut below = 0;
            for count in &histogram.counts {
                below += count;
                visit(super::number::real(below));
            }
            visit(histogram.sum);
            visit(super::number::real(below));
        }
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = ExpositionSample> {
        self.series.iter().flat_map(|(labels, reading)| self.samples_of(labels, reading))
    }

    fn samples_of(
        &self,
        labels: &ExpositionLabels,
        reading: &SeriesValue,
    ) -> Vec<ExpositionSample> {
        let sample = |name: Cow<'static, str>, labels: ExpositionLabels, value| ExpositionSample {
            name,
            labels,
            value,
            kind: self.kind,
        };
        let histogram = match reading {
            SeriesValue::Value(value) => {
                return vec![sample(self.name.clone(), labels.clone(), *value)];
            }
            SeriesValue::Buckets(histogram) => histogram,
        };
        let part = |suffix: &str| Cow::Owned(format!("{}{suffix}", self.name));
        let mut samples = Vec::with_capacity(histogram.counts.len() + 2);
        let bounds = histogram.bounds.iter().copied().chain([f64::INFINITY]);
        let mut below = 0;
        for (bound, count) in bounds.zip(&histogram.counts) {
            below += count;
            let labels = with(labels, "le", &Bound(bound).to_string());
            samples.push(sample(part("_bucket"), labels, super::number::real(below)));
        }
        samples.push(sample(part("_sum"), labels.clone(), histogram.sum));
        let count = super::number::real(below);
        samples.push(sample(part("_count"), labels.clone(), count));
        samples
    }
}

/// Everything that one server shows at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// In the order of exposition, one per name.
    pub(crate) families: Vec<MetricFamily>,
}

impl Page {
    pub(super) fn same_series(&self, other: &Self) -> bool {
        let mut pairs = self.families.iter().zip(&other.families);
        self.families.len() == other.families.len()
            && pairs.all(|(one, other)| one.same_series(other))
    }

    pub(super) fn visit_values(&self, visit: &mut impl FnMut(f64)) {
        for family in &self.families {
            family.visit_values(visit);
        }
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = ExpositionSample> {
        self.families.iter().flat_map(MetricFamily::samples)
    }
}

/// The text format, version 0.0.4, without the help that nothing here reads.
impl Display for Page {
    fn fmt(&self, text: &mut Formatter<'_>) -> fmt::Result {
        for family in &self.families {
            writeln!(text, "# TYPE {} {}", family.name, family.kind.as_str())?;
            for sample in family.samples() {
                text.write_str(&sample.name)?;
                write_labels(text, &sample.labels)?;
                writeln!(text, " {}", Number(sample.value))?;
            }
        }
        Ok(())
    }
}

fn write_labels(text: &mut impl Write, labels: &ExpositionLabels) -> fmt::Result {
    let mut open = '{';
    for (name, value) in labels.iter() {
        write!(text, "{open}{name}=\"")?;
        for letter in value.chars() {
            match letter {
                '\\' => text.write_str("\\\\")?,
                '"' => text.write_str("\\\"")?,
                '\n' => text.write_str("\\n")?,
                other => text.write_char(other)?,
            }
        }
        text.write_char('"')?;
        open = ',';
    }
    if open == ',' {
        text.write_char('}')?;
    }
    Ok(())
}

/// A bound as the Python client writes it, which always shows a fraction.
struct Bound(f64);

wva_base::display_of! { Bound:
    Self(bound) if bound.is_infinite() => "+Inf";
    Self(bound) => "{bound:?}";
}

/// A value; infinities and the lack of a number have names of their own.
struct Number(f64);

wva_base::display_of! { Number:
    Self(number) if number.is_nan() => "NaN";
    Self(f64::INFINITY) => "+Inf";
    Self(f64::NEG_INFINITY) => "-Inf";
    Self(number) => "{number}";
}

#[cfg(test)]
mod tests;
