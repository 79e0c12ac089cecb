//! Reads the wanted series off a metrics page while it arrives: of a page of any size no more than they is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::exposition::{InvalidPage, SampleLine, declared_type, labels, line, name};
use super::page_lines::{PageFault, PageLines};
use crate::policy::pod_autoscaler::metric_name::SeriesType;
use crate::policy::pod_autoscaler::page_value::{
    FamilySample, FamilySamples, SAMPLE_ENDINGS, SamplePart,
};

/// Longest page that is read, in bytes.
pub const PAGE_LIMIT: u64 = 16 * 1024 * 1024;
const SAMPLE_LIMIT: usize = 10_000;

/// The samples of each wanted series. One that the page does not show has none.
pub type MetricFamilies = BTreeMap<Arc<str>, FamilySamples>;

/// A page while it arrives.
#[derive(Debug)]
pub struct FamilyReader {
    lines: PageLines,
    families: WantedFamilies,
}

#[derive(Debug)]
struct WantedFamilies(MetricFamilies);

impl FamilyReader {
    /// Reads these series.
    pub fn new(wanted: impl IntoIterator<Item = Arc<str>>) -> Self {
        let families = wanted.into_iter();
        Self {
            lines: PageLines::new(PAGE_LIMIT),
            families: WantedFamilies(
                families.map(|series| (series, FamilySamples::default())).collect(),
            ),
        }
    }

    /// Takes the next part of the page.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), PageFault> {
        let Self { lines, families } = self;
        lines.feed(chunk, |line, text| families.take(line, text))
    }

    /// What the whole page shows of the wanted series.
    pub fn finish(mut self) -> Result<MetricFamilies, PageFault> {
        let Self { lines, families } = &mut self;
        lines.end_line(|line, text| families.take(line, text))?;
        Ok(self.families.0)
    }
}

impl WantedFamilies {
    fn take(&mut self, number: usize, text: &str) -> Result<(), PageFault> {
        if let Some((name, kind)) = declared_type(text) {
            self.declare(name, kind);
            return Ok(());
        }
        let Some(sample) = line(number, text)? else {
            return Ok(());
        };
        let name = name(sample.series);
        let refused = |problem| PageFault::Invalid(InvalidPage::at(number, text, problem));
        self.add(name, SamplePart::Value, &sample).map_err(refused)?;
        for (ending, part) in SAMPLE_ENDINGS {
            if let Some(base) = name.strip_suffix(ending) {
                self.add(base, part, &sample).map_err(refused)?;
            }
        }
        self.check(name)
    }

    fn declare(&mut self, name: &str, kind: &str) {
        let kind = match kind {
            "gauge" => SeriesType::Gauge,
            "counter" => SeriesType::Counter,
            "histogram" => SeriesType::Histogram,
            "summary" => SeriesType::Summary,
            _ => return,
        };
        if let Some(family) = self.0.get_mut(name) {
            family.declared = Some(kind);
        }
        for (ending, part) in SAMPLE_ENDINGS {
            if let Some(family) = self.0.get_mut(&*format!("{name}{ending}")) {
                match part {
                    // OpenMetrics declares counters without their ending.
                    SamplePart::Total if kind == SeriesType::Counter => {
                        family.declared.get_or_insert(kind);
                    }
                    SamplePart::Total | SamplePart::Value => {}
                    SamplePart::Bucket | SamplePart::Sum | SamplePart::Count => {
                        family.base = Some(kind);
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        family: &str,
        part: SamplePart,
        sample: &SampleLine<'_>,
    ) -> Result<(), &'static str> {
        let Some(family) = self.0.get_mut(family) else {
            return Ok(());
        };
        let bound = if part == SamplePart::Bucket { upper_bound(sample.series)? } else { 0.0 };
        let value = sample.value;
        let sample_of = FamilySample { part, bound, value };
        family.samples.insert(Arc::from(sample.series), sample_of);
        Ok(())
    }

    fn check(&self, name: &str) -> Result<(), PageFault> {
        let bases = SAMPLE_ENDINGS.iter();
        let bases = bases.filter_map(|(ending, _)| name.strip_suffix(ending));
        for series in bases.chain([name]) {
            let family = self.0.get(series);
            if family.is_some_and(|family| family.samples.len() > SAMPLE_LIMIT) {
                let (series, limit) = (series.to_owned(), SAMPLE_LIMIT);
                return Err(PageFault::TooMany { series, limit });
            }
        }
        Ok(())
    }
}

fn upper_bound(series: &str) -> Result<f64, &'static str> {
    let named = labels(series)?;
    let mut labels = named.labels.iter();
    let bound = labels.find(|(label, _)| *label == "le");
    let bound: Option<f64> = bound.and_then(|(_, value)| value.parse().ok());
    bound.filter(|bound| !bound.is_nan()).ok_or("its bucket has no upper bound")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::pod_autoscaler::metric_name::PageMetric;
    use crate::policy::pod_autoscaler::page_value::{EarlierRead, PageReading, page_value};
    use std::time::Duration;

    fn read(page: &str, wanted: &[&str]) -> Result<MetricFamilies, PageFault> {
        let mut reader = FamilyReader::new(wanted.iter().map(|series| Arc::from(*series)));
        reader.feed(page.as_bytes())?;
        reader.finish()
    }

    fn value(metric: &str, before: &str, now: &str) -> PageReading {
        let metric = PageMetric::of_pod(metric, None).unwrap();
        let family = |page| read(page, &[&metric.series]).unwrap().remove(&metric.series);
        let (before, now) = (family(before).unwrap(), family(now).unwrap());
        let earlier = EarlierRead { samples: &before, elapsed: Duration::from_secs(2) };
        page_value(&metric, &now, Some(earlier)).unwrap()
    }

    const BEFORE: &str = "# HELP vllm:num_requests_running Requests.\n\
        # TYPE vllm:num_requests_running gauge\n\
        vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0\n\
        vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0\n\
        # TYPE vllm:kv_cache_usage_perc gauge\n\
        vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\n\
        vllm:kv_cache_usage_perc{engine=\"1\"} 0.6\n\
        # TYPE vllm:prompt_tokens_total counter\n\
        vllm:prompt_tokens_total{engine=\"0\"} 100.0\n\
        # TYPE vllm:prompt_tokens_created gauge\n\
        vllm:prompt_tokens_created{engine=\"0\"} 1.7e9\n\
        # TYPE vllm:nixl_num_failed_transfers counter\n\
        vllm:nixl_num_failed_transfers_total 4\n\
        # TYPE my_ticks counter\n\
        my_ticks 5\n\
        # TYPE vllm:time_to_first_token_seconds histogram\n\
        vllm:time_to_first_token_seconds_bucket{le=\"0.1\"} 0\n\
        vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 0\n\
        vllm:time_to_first_token_seconds_count 0\n\
        vllm:time_to_first_token_seconds_sum 0\n";

    const NOW: &str = "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\n\
        vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 0.5\n\
        vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\n\
        vllm:kv_cache_usage_perc{engine=\"1\"} 1.0\n\
        vllm:prompt_tokens_total{engine=\"0\"} 140.0\n\
        vllm:nixl_num_failed_transfers_total 10\n\
        # TYPE my_ticks counter\n\
        my_ticks 15\n\
        vllm:time_to_first_token_seconds_bucket{le=\"0.1\"} 4\n\
        vllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 4\n\
        vllm:time_to_first_token_seconds_count 4\n\
        vllm:time_to_first_token_seconds_sum 0.2\n";

    #[test]
    fn a_page_of_an_engine_has_the_values_of_the_table() {
        for (metric, expected) in [
            ("num_requests_running", 1.5),
            ("vllm:num_requests_running", 1.5),
            ("kv_cache_usage_perc", 0.75),
            ("prompt_tokens_total", 20.0),
            // The page shows it with the ending of OpenMetrics.
            ("nixl_num_failed_transfers_total", 3.0),
            ("my_ticks", 5.0),
            ("time_to_first_token_seconds", 0.05),
            ("time_to_first_token_seconds:p50", 0.05),
            ("vllm:time_to_first_token_seconds:p90", 0.09),
            ("vllm:time_to_first_token_seconds_count", 2.0),
        ] {
            // The parts of a histogram are counters where the page declares it.
            let declared = format!("# TYPE vllm:time_to_first_token_seconds histogram\n{NOW}");
            let PageReading::Value(found) = value(metric, BEFORE, &declared) else {
                panic!("{metric}");
            };
            assert!((found - expected).abs() < 1e-9, "{metric}: {found}");
        }
    }

    #[test]
    fn only_what_is_wanted_is_kept() {
        let families = read(BEFORE, &["vllm:prompt_tokens_total", "nothing"]).unwrap();
        let counts: Vec<_> =
            families.iter().map(|(series, family)| (&**series, family.samples.len())).collect();
        assert_eq!(counts, [("nothing", 0), ("vllm:prompt_tokens_total", 1)]);
        let declared = families["vllm:prompt_tokens_total"].declared;
        assert_eq!(declared, Some(SeriesType::Counter));
    }

    #[test]
    fn a_counter_is_declared_with_or_without_its_ending() {
        for declared in ["# TYPE x counter", "# TYPE x_total counter"] {
            let page = format!("{declared}\nx_total 3\n");
            let families = read(&page, &["x_total"]).unwrap();
            assert_eq!(families["x_total"].declared, Some(SeriesType::Counter), "{declared}");
        }
        let families = read("# TYPE x unknown\nx_total 3\n", &["x_total"]).unwrap();
        assert_eq!(families["x_total"].declared, None);
    }

    #[test]
    fn a_page_that_breaks_anywhere_is_refused() {
        let many = (0..=SAMPLE_LIMIT).map(|label| format!("x{{l=\"{label}\"}} 1\n"));
        let many = many.collect::<Vec<_>>().concat();
        let long = format!("{BEFORE}# {}\n", "x".repeat(65 * 1024));
        let format = "; serve the text format of Prometheus there";
        for (page, part) in [
            ("<html>\n", format),
            ("x{a=\"1\"} many\n", "its value is no number"),
            ("x_bucket{a=\"1\"} 3\n", "its bucket has no upper bound"),
            ("x_bucket{le=\"wide\"} 3\n", "its bucket has no upper bound"),
            (&many, "more than 10000 samples of x"),
            (&long, "exceeds 65536 bytes"),
        ] {
            let error = read(page, &["x"]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            // One remedy, and for the fault that there is.
            assert_eq!(error.matches("; ").count(), 1, "{error}");
            assert_eq!(error.ends_with(format), page != many, "{error}");
        }
        let mut reader = FamilyReader::new([]);
        let line = [b"#".repeat(32 * 1024 - 1), b"\n".to_vec()].concat();
        for _ in 0..512 {
            reader.feed(&line).unwrap();
        }
        let limit = PAGE_LIMIT;
        assert_eq!(reader.feed(b"\n"), Err(PageFault::TooLarge { limit }));
        let mut reader = FamilyReader::new([]);
        let fault = PageFault::NotText { line: 1 };
        assert_eq!(reader.feed(b"# \xff\n"), Err(fault));
    }

    #[test]
    fn parts_of_any_size_are_the_whole() {
        let wanted = ["vllm:time_to_first_token_seconds"];
        let whole = read(BEFORE, &wanted).unwrap();
        for size in 1..200 {
            let mut reader = FamilyReader::new(wanted.map(Arc::from));
            for chunk in BEFORE.as_bytes().chunks(size) {
                reader.feed(chunk).unwrap();
            }
            assert_eq!(reader.finish().unwrap(), whole, "{size}");
        }
    }
}
