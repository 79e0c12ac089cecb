use super::*;

/// Name, labels, value, type.
type Read = (String, Vec<(String, String)>, f64, String);

/// A strict reader of the text format: names, labels with their escapes, a value, and types that
/// come before their samples.
fn parse(text: &str) -> Vec<Read> {
    let mut samples = Vec::new();
    let mut current: Option<(String, String)> = None;
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').unwrap();
            current = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (family, kind) = current.as_ref().unwrap();
        let name_end = line.find(['{', ' ']).unwrap();
        let (name, mut rest) = line.split_at(name_end);
        let suffix = name.strip_prefix(&**family).unwrap();
        let suffixes: &[&str] = if kind == "histogram" {
            &["_bucket", "_sum", "_count"]
        } else {
            &[""]
        };
        assert!(suffixes.contains(&suffix), "{line}");
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, after) = rest.split_once("=\"").unwrap();
                let (value, after) = unquote(after);
                labels.push((label.to_owned(), value));
                if let Some(after) = after.strip_prefix(',') {
                    rest = after;
                } else {
                    rest = after.strip_prefix('}').unwrap();
                    break;
                }
            }
        }
        let value = rest.strip_prefix(' ').unwrap().parse().unwrap();
        samples.push((name.to_owned(), labels, value, kind.clone()));
    }
    samples
}

fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    loop {
        match letters.next().unwrap() {
            (at, '"') => return (value, &text[at + 1..]),
            (_, '\\') => value.push(match letters.next().unwrap().1 {
                'n' => '\n',
                escaped => escaped,
            }),
            (_, letter) => value.push(letter),
        }
    }
}

fn page() -> Page {
    let who = labels([("model", "a\"b\\c\nd"), ("engine", "0")]);
    let mut histogram = Histogram::new([0.5, 1.0, 20.0]);
    for value in [0.5, 0.6, 3.0, 100.0] {
        histogram.observe(value);
    }
    Page {
        families: vec![
            MetricFamily::single("a:up", "Up.", MetricKind::Gauge, &labels([]), 1.5),
            MetricFamily::single("b_total", "Counts.", MetricKind::Counter, &who, 12.0),
            MetricFamily::histogram("c_seconds", "Times.", &who, &histogram),
        ],
    }
}

#[test]
fn text_and_samples_say_the_same() {
    let page = page();
    let parsed = parse(&page.to_string());
    let samples: Vec<_> = page
        .samples()
        .map(|sample| {
            let labels = sample.labels.iter();
            let labels = labels.map(|(name, value)| (name.to_string(), value.clone()));
            let kind = sample.kind.as_str().to_owned();
            (
                sample.name.to_string(),
                labels.collect(),
                sample.value,
                kind,
            )
        })
        .collect();
    assert_eq!(samples.len(), 2 + 4 + 2);
    assert_eq!(parsed, samples);
}

#[test]
fn buckets_cumulate_and_include_their_bound() {
    let page = page();
    let found: Vec<_> = page
        .samples()
        .filter(|sample| sample.name.starts_with("c_seconds"))
        .map(|sample| {
            let le = sample.labels.iter().find(|(name, _)| name == "le");
            (
                sample.name.to_string(),
                le.map(|(_, bound)| bound.clone()),
                sample.value,
            )
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
