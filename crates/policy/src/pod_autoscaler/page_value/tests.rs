//! Values of series between two reads.

use proptest::prelude::*;

use super::*;

fn metric(series: &str, kind: Option<SeriesType>, statistic: Option<u8>) -> PageMetric {
    PageMetric {
        other_names: &[],
        series: series.into(),
        kind,
        statistic: statistic.map(HistogramStatistic::Percentile),
    }
}

/// A page of samples: part, name and labels, bound, value.
fn page(samples: &[(SamplePart, &str, f64, f64)]) -> FamilySamples {
    let samples = samples.iter().map(|&(part, series, bound, value)| {
        let sample = FamilySample { part, bound, value };
        (Arc::from(series), sample)
    });
    FamilySamples { samples: samples.collect(), ..FamilySamples::default() }
}

fn values(series: &[(&str, f64)]) -> FamilySamples {
    let samples: Vec<_> =
        series.iter().map(|&(series, value)| (SamplePart::Value, series, 0.0, value)).collect();
    page(&samples)
}

fn read(
    metric: &PageMetric,
    now: &FamilySamples,
    before: Option<&FamilySamples>,
) -> Result<PageReading, ReadFailure> {
    let earlier = before.map(|samples| EarlierRead { samples, elapsed: Duration::from_secs(5) });
    page_value(metric, now, earlier)
}

fn value(metric: &PageMetric, now: &FamilySamples, before: Option<&FamilySamples>) -> f64 {
    match read(metric, now, before) {
        Ok(PageReading::Value(value)) => value,
        other => panic!("{other:?}"),
    }
}

fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn amounts_add_up_and_shares_do_not() {
    let two = values(&[("x{e=\"0\"}", 0.5), ("x{e=\"1\"}", 0.75)]);
    assert_close(value(&metric("x", None, None), &two, None), 1.25);
    let ratio = metric("x", Some(SeriesType::Ratio), None);
    assert_close(value(&ratio, &two, None), 0.625);
}

#[test]
fn a_counter_has_a_rate_from_its_second_read_on() {
    let counter = metric("x_total", None, None);
    let (ten, sixty) = (values(&[("x_total", 10.0)]), values(&[("x_total", 60.0)]));
    assert_eq!(read(&counter, &ten, None), Ok(PageReading::NotYet(FIRST_READ)));
    assert_close(value(&counter, &sixty, Some(&ten)), 10.0);
    assert_close(value(&counter, &ten, Some(&ten)), 0.0);
    // It began again, and ten is all that came since.
    assert_close(value(&counter, &ten, Some(&sixty)), 2.0);
    let at_once = EarlierRead { samples: &ten, elapsed: Duration::ZERO };
    let found = page_value(&counter, &sixty, Some(at_once));
    assert_eq!(found, Ok(PageReading::NotYet(FIRST_READ)));
}

#[test]
fn a_label_set_that_is_gone_is_no_restart_of_the_others() {
    let counter = metric("x_total", None, None);
    let both = values(&[("x_total{a=\"1\"}", 1e6), ("x_total{a=\"2\"}", 1e6)]);
    let one = values(&[("x_total{a=\"1\"}", 1e6 + 5.0)]);
    assert_close(value(&counter, &one, Some(&both)), 1.0);
    // One that is new has counted from zero.
    assert_close(value(&counter, &both, Some(&one)), (1e6 + 1e6) / 5.0);
}

#[test]
fn the_page_declares_what_a_name_does_not_show() {
    let plain = metric("x", None, None);
    let mut ten = values(&[("x", 10.0)]);
    assert_close(value(&plain, &ten, Some(&ten)), 10.0);
    ten.declared = Some(SeriesType::Counter);
    assert_close(value(&plain, &ten, Some(&ten)), 0.0);
    let known = metric("x", Some(SeriesType::Gauge), None);
    assert_close(value(&known, &ten, Some(&ten)), 10.0);

    let total = page(&[(SamplePart::Total, "x_total", 0.0, 10.0)]);
    assert_close(value(&plain, &total, Some(&total)), 0.0);

    let mut count = values(&[("h_count", 10.0)]);
    let part = metric("h_count", None, None);
    assert_close(value(&part, &count, Some(&count)), 10.0);
    count.base = Some(SeriesType::Histogram);
    assert_close(value(&part, &count, Some(&count)), 0.0);
    let bucket =
        FamilySamples { samples: values(&[("h_bucket{le=\"1\"}", 10.0)]).samples, ..count };
    let failure = read(&metric("h_bucket", None, None), &bucket, None).unwrap_err();
    assert_eq!(failure.kind, Failure::Invalid);
    assert!(failure.why.contains("without _bucket"), "{}", failure.why);
}

/// A histogram with cumulative counts below 1, 2, 4 and anything, and its sum.
fn histogram(counts: [f64; 4], sum: f64) -> FamilySamples {
    page(&wva_base::cases! {
        (SamplePart::Bucket, "h_bucket{le=\"1\"}", 1.0, counts[0]),
        (SamplePart::Bucket, "h_bucket{le=\"2\"}", 2.0, counts[1]),
        (SamplePart::Bucket, "h_bucket{le=\"4\"}", 4.0, counts[2]),
        (SamplePart::Bucket, "h_bucket{le=\"+Inf\"}", f64::INFINITY, counts[3]),
        (SamplePart::Sum, "h_sum", 0.0, sum),
        (SamplePart::Count, "h_count", 0.0, counts[3]),
    })
}

#[test]
fn a_histogram_has_the_mean_and_the_percentiles_of_what_came_between() {
    let before = histogram([1_000.0; 4], 9_000.0);
    let now = histogram([1_010.0, 1_080.0, 1_098.0, 1_100.0], 9_150.0);
    let mean = metric("h", None, None);
    assert_eq!(read(&mean, &now, None), Ok(PageReading::NotYet(FIRST_READ)));
    assert_close(value(&mean, &now, Some(&before)), 1.5);
    for (percentile, expected) in [
        (50, 1.0 + 40.0 / 70.0),
        (90, 2.0 + 2.0 * 10.0 / 18.0),
        (95, 2.0 + 2.0 * 15.0 / 18.0),
        // Beyond the last bound nothing more is known.
        (99, 4.0),
    ] {
        let metric = metric("h", None, Some(percentile));
        assert_close(value(&metric, &now, Some(&before)), expected);
        let none = read(&metric, &now, Some(&now));
        assert_eq!(none, Ok(PageReading::NothingObserved));
    }
    let none = read(&mean, &now, Some(&now));
    assert_eq!(none, Ok(PageReading::NothingObserved));
    // After a restart all that is shown came since.
    let fresh = histogram([0.0, 4.0, 4.0, 4.0], 6.0);
    assert_close(value(&mean, &fresh, Some(&now)), 1.5);
    assert_close(value(&metric("h", None, Some(50)), &fresh, Some(&now)), 1.5);
}

/// Zero would say that nothing takes any time, and release replicas.
#[test]
fn a_percentile_needs_a_bucket_with_an_end() {
    let open = |count| {
        let bound = f64::INFINITY;
        page(&[(SamplePart::Bucket, "h_bucket{le=\"+Inf\"}", bound, count)])
    };
    let found = read(&metric("h", None, Some(95)), &open(9.0), Some(&open(2.0)));
    let failure = found.unwrap_err();
    assert_eq!(failure.kind, Failure::Absent);
    assert!(failure.why.contains("no buckets of it"), "{}", failure.why);
}

#[test]
fn what_a_series_does_not_show_is_named() {
    let counts =
        page(&[(SamplePart::Sum, "s_sum", 0.0, 3.0), (SamplePart::Count, "s_count", 0.0, 2.0)]);
    let table: [(PageMetric, FamilySamples, Failure, &str); 7] = wva_base::cases! {
        (metric("x", None, None), page(&[]), Failure::Absent, "no series of that name"),
        (metric("x", None, None), values(&[("x", f64::NAN)]), Failure::Invalid, "x is not finite or negative"),
        (metric("x", None, None), values(&[("x", f64::INFINITY)]), Failure::Invalid, "x is not finite or negative"),
        (metric("x", None, None), values(&[("x", -1.0)]), Failure::Invalid, "x is not finite or negative"),
        (metric("x", None, Some(90)), values(&[("x", 1.0)]), Failure::Invalid, "remove :p90"),
        (metric("s", Some(SeriesType::Summary), Some(99)), counts.clone(), Failure::Invalid, "write :mean"),
        (metric("s", Some(SeriesType::Histogram), Some(99)), counts.clone(), Failure::Absent, "no buckets"),
    };
    for (metric, page, kind, part) in table {
        let failure = read(&metric, &page, Some(&page)).unwrap_err();
        assert_eq!(failure.kind, kind, "{}", failure.why);
        assert!(failure.why.contains(part), "{part}: {}", failure.why);
    }
    let mut more = counts.clone();
    for sample in more.samples.values_mut() {
        sample.value *= 2.0;
    }
    let summary = metric("s", Some(SeriesType::Summary), None);
    assert_close(value(&summary, &more, Some(&counts)), 1.5);
}

proptest! {
    /// Whatever restarts between reads, the rates add up to all that was counted and read.
    #[test]
    fn rates_add_up_to_what_was_counted(steps in prop::collection::vec((0_u32..1_000, any::<bool>()), 2..40)) {
        let counter = metric("x_total", None, None);
        let mut count = 0.0;
        let mut before: Option<FamilySamples> = None;
        let (mut counted, mut found) = (0.0, 0.0);
        for (growth, restarts) in steps {
            let growth = f64::from(growth);
            // A restart shows only where the counter has not yet passed its last value.
            let restarts = restarts && growth < count;
            count = if restarts { growth } else { count + growth };
            let now = values(&[("x_total", count)]);
            if let Some(before) = &before {
                counted += growth;
                found += value(&counter, &now, Some(before)) * 5.0;
            }
            before = Some(now);
        }
        prop_assert!((counted - found).abs() < 1e-6, "{} is not {}", found, counted);
    }

    /// A percentile lies between the bounds, and a higher one is not lower.
    #[test]
    fn percentiles_are_ordered(parts in prop::array::uniform4(0_u32..50)) {
        let mut sum = 0.0;
        let counts = parts.map(|part| { sum += f64::from(part); sum });
        let (zero, now) = (histogram([0.0; 4], 0.0), histogram(counts, 1.0));
        let mut last = 0.0;
        for percentile in [50, 90, 95, 99] {
            match read(&metric("h", None, Some(percentile)), &now, Some(&zero)) {
                Ok(PageReading::Value(value)) => {
                    prop_assert!((last..=4.0).contains(&value), "{}", value);
                    last = value;
                }
                other => prop_assert_eq!(other, Ok(PageReading::NothingObserved)),
            }
        }
    }
}
