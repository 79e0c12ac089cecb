use super::*;
use wva::signals::exposition;

fn page() -> Page {
    let who = labels([("model", "a\"b\\c\nd"), ("engine", "0")]);
    let mut histogram = Histogram::new([0.5, 1.0, 20.0]);
    for value in [0.5, 0.6, 3.0, 100.0] {
        histogram.observe(value);
    }
    Page {
        families: vec![
            MetricFamily::single("a:up", MetricKind::Gauge, &labels([]), 1.5),
            MetricFamily::single("b_total", MetricKind::Counter, &who, 12.0),
            MetricFamily::histogram("c_seconds", &who, &histogram),
        ],
    }
}

/// The text as the controller reads it.
#[test]
fn text_and_samples_say_the_same() {
    let page = page();
    let (text, samples) = (page.to_string(), page.samples().collect::<Vec<_>>());
    let lines = exposition::read(&text).unwrap();
    assert_eq!((lines.len(), samples.len()), (8, 2 + 4 + 2));
    for (line, sample) in lines.iter().zip(&samples) {
        let named = exposition::labels(line.series).unwrap();
        let labels = sample.labels.iter();
        let labels = labels.map(|(name, value)| (&**name, Cow::Borrowed(&**value)));
        assert_eq!(named.name, sample.name);
        assert_eq!(named.labels, labels.collect::<Vec<_>>());
        assert_eq!(line.value.to_bits(), sample.value.to_bits());
    }
    let types = text.lines().filter_map(exposition::declared_type);
    let expected = [("a:up", "gauge"), ("b_total", "counter"), ("c_seconds", "histogram")];
    assert_eq!(types.collect::<Vec<_>>(), expected);
}

#[test]
fn buckets_cumulate_and_include_their_bound() {
    let page = page();
    let found: Vec<_> = page
        .samples()
        .filter(|sample| sample.name.starts_with("c_seconds"))
        .map(|sample| {
            let le = sample.labels.iter().find(|(name, _)| name == "le");
            (sample.name.to_string(), le.map(|(_, bound)| bound.clone()), sample.value)
        })
        .collect();
    let bucket =
        |bound: &str, value| ("c_seconds_bucket".to_owned(), Some(bound.to_owned()), value);
    assert_eq!(
        found,
        [
            bucket("0.5", 1.0),
            bucket("1.0", 2.0),
            bucket("20.0", 3.0),
            bucket("+Inf", 4.0),
            ("c_seconds_sum".to_owned(), None, 104.1),
            ("c_seconds_count".to_owned(), None, 4.0),
        ]
    );
}
