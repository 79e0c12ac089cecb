//! From pages to series.

use std::time::Duration;

use super::*;
use crate::exposition::{Histogram, MetricFamily, MetricKind, Page, labels};
use crate::prometheus::scrape::SAMPLES;

#[test]
fn series_end_when_they_leave_the_page_and_when_the_page_fails() {
    let (mut server, id) = server(target("a"));
    page(&mut server, id, 10, "x 1\ny 2\n");
    assert_eq!(values(&server, "x", 19), [1.0]);
    assert_eq!(values(&server, "y", 19), [2.0]);
    assert_eq!(values(&server, "up", 19), [1.0]);
    assert_eq!(values(&server, "scrape_samples_scraped", 19), [2.0]);

    page(&mut server, id, 20, "x 3\n");
    assert_eq!(values(&server, "x", 20), [3.0]);
    assert_eq!(values(&server, "y", 20), NONE);
    assert_eq!(values(&server, "y", 19), [2.0]);
    assert_eq!(values(&server, "last_over_time(y[1m])", 20), [2.0]);

    server.scraped(id, seconds(30), Scraped::Failed);
    assert_eq!(values(&server, "x", 30), NONE);
    assert_eq!(values(&server, "up", 30), [0.0]);
    page(&mut server, id, 40, "x 4\n");
    assert_eq!(values(&server, "x", 40), [4.0]);
    assert_eq!(values(&server, "count_over_time(x[1m])", 40), [3.0]);
}

#[test]
fn a_page_that_cannot_be_read_counts_as_none() {
    let pages = [
        "x\n",
        "x one\n",
        "x{a=1} 1\n",
        "x{a=\"1\" 1\n",
        "x{a=\"1\"b=\"2\"} 1\n",
        "1x 1\n",
        "x 1 soon\n",
        "x 1 2 3\n",
        "x{1=\"a\"} 1\n",
    ];
    for text in pages {
        let (mut server, id) = server(target("a"));
        page(&mut server, id, 10, "good 1\n");
        assert_eq!(values(&server, "good", 10), [1.0], "{text}");
        page(&mut server, id, 20, &format!("good 1\n{text}"));
        assert_eq!(values(&server, "up", 20), [0.0], "{text}");
        assert_eq!(values(&server, "good", 20), NONE, "{text}");
    }
}

#[test]
fn everything_that_the_format_allows_is_read() {
    let (mut server, id) = server(target("a"));
    let text = "# HELP x what it is\n# TYPE x gauge\n\n  x { a = \"q\\\"b\\\\n\\nl\" , } 1e3\n\
                inf +Inf\nnan NaN\nneg{a=\"}\",b=\"\"} -0.5 1700000045000\nx{a=\"2\"} 2\n";
    page(&mut server, id, 10, text);
    let found = asked(&server, "x", 10);
    let wanted = [("{a=\"2\"}", 2.0), ("{a=\"q\\\"b\\\\n\\nl\"}", 1000.0)];
    assert_eq!(found, wanted.map(|(k, v)| (k.to_owned(), v)).into());
    assert_eq!(values(&server, "inf", 10), [f64::INFINITY]);
    assert!(values(&server, "nan", 10)[0].is_nan());
    // With a time of its own.
    assert_eq!(values(&server, "timestamp(neg)", 10), [1_700_000_045.0]);
    let wanted = [("{a=\"}\"}".to_owned(), -0.5)];
    assert_eq!(asked(&server, "neg", 10), wanted.into());
}

#[test]
fn whose_label_counts_is_a_matter_of_the_target() {
    let text = "x{namespace=\"own\",exported_pod=\"p\",pod=\"q\"} 1\n";
    let (mut server, id) = server(target("a"));
    page(&mut server, id, 10, text);
    let wanted =
        "{exported_exported_pod=\"q\", exported_namespace=\"own\", exported_pod=\"p\"}".to_owned();
    assert_eq!(asked(&server, "x{namespace=\"ns\",pod=\"a\"}", 10), [(wanted, 1.0)].into());

    let honored = ScrapeTarget { conflicts: Conflicts::Honored, ..target("a") };
    let (mut server, id) = super::server(honored);
    page(&mut server, id, 10, text);
    let found = asked(&server, "x{namespace=\"own\",pod=\"q\",job=\"pods\"}", 10);
    assert_eq!(found, [("{exported_pod=\"p\"}".to_owned(), 1.0)].into());
}

#[test]
fn pages_of_simulated_servers_are_taken_as_their_text_would_be() {
    let mut buckets = Histogram::new(vec![0.5, 2.0]);
    buckets.observe(1.0);
    let of = labels([("model_name", "m\"1")]);
    let shown = Page {
        families: vec![
            MetricFamily::single("vllm:waiting", MetricKind::Gauge, &of, 3.0),
            MetricFamily::histogram("vllm:ttft_seconds", &of, &buckets),
        ],
    };
    let names = ["waiting", "ttft_seconds_bucket", "ttft_seconds_sum", "ttft_seconds_count"];
    let (mut by_text, id) = server(target("a"));
    page(&mut by_text, id, 10, &shown.to_string());
    let (mut by_page, id) = server(target("a"));
    by_page.scraped(id, seconds(10), Scraped::Page(&shown));
    for name in names {
        let query = |server: &Prometheus| {
            let answer = server.query(&format!("vllm:{name}"), seconds(10));
            answer.unwrap()
        };
        assert_eq!(query(&by_page), query(&by_text));
    }
    // Of the histogram three buckets.
    let counts = |server: &Prometheus| {
        let count = |name: &str| values(server, &format!("count(vllm:{name})"), 10);
        names.map(count).concat()
    };
    assert_eq!(counts(&by_page), [1.0, 3.0, 1.0, 1.0]);
}

#[test]
fn targets_that_are_gone_end_late_and_what_is_old_is_forgotten() {
    let mut server = Prometheus::new(Duration::from_mins(10));
    server.set_targets(vec![target("a"), target("b")], seconds(0));
    let mut now = 0;
    let mut scrape = |server: &mut Prometheus, until: i64| {
        while now < until {
            now += 1;
            for (id, at) in server.due(seconds(now)) {
                let pod = server.target(id).unwrap().address.clone();
                server.scraped(id, at, Scraped::Text(&format!("x{{p=\"{pod}\"}} 1\n")));
            }
        }
    };
    scrape(&mut server, 30);
    assert_eq!(asked(&server, "x", 30).len(), 2);
    assert_eq!(values(&server, "count_over_time(x{p=\"a\"}[30s])", 30), [3.0]);
    let series = server.series();

    server.set_targets(vec![target("a")], seconds(30));
    scrape(&mut server, 40);
    // The last page still counts: Prometheus waits for the target to come back.
    assert_eq!(asked(&server, "x", 40).len(), 2);
    scrape(&mut server, 60);
    assert_eq!(asked(&server, "x", 60).len(), 1);
    // The mark bears the time of the scrape that did not happen.
    assert_eq!(asked(&server, "x", 45).len(), 1);
    scrape(&mut server, 900);
    assert_eq!(server.series(), series / 2);
    assert_eq!(values(&server, "count_over_time(x[1h])", 900), [61.0]);
}

#[test]
fn a_page_with_too_many_samples_fails() {
    let (mut server, id) = server(target("a"));
    let lines = |count: usize| {
        let lines: Vec<String> = (0..count).map(|line| format!("x{line} 1\n")).collect();
        lines.concat()
    };
    page(&mut server, id, 10, &lines(SAMPLES));
    assert_eq!(values(&server, "up", 10), [1.0]);
    page(&mut server, id, 20, &lines(SAMPLES + 1));
    assert_eq!(values(&server, "up", 20), [0.0]);
}

#[test]
fn scrapes_are_spread_and_missed_ones_are_not_made_up_for() {
    let mut server = Prometheus::default();
    let pods = ["a", "b", "c", "d", "e", "f"];
    server.set_targets(pods.map(target).into(), seconds(0));
    let first = server.next_event().unwrap();
    assert!(seconds(0) <= first && first < seconds(10));
    let due = server.due(seconds(35));
    assert_eq!(due.len(), pods.len());
    let times: std::collections::BTreeSet<WallTime> = due.iter().map(|(_, at)| *at).collect();
    assert!(times.len() > 3, "{times:?}");
    assert!(times.iter().all(|at| seconds(25) < *at && *at <= seconds(35)));
    assert_eq!(server.due(seconds(35)), []);
    assert_eq!(server.due(seconds(45)).len(), pods.len());
}

/// A page of a counter, a histogram that has seen as much in ones, and a gauge.
fn counted(count: u32) -> Page {
    let labels = labels([]);
    let mut histogram = Histogram::new(vec![2.0]);
    histogram.observe_many(1.0, u64::from(count));
    let counter = MetricFamily::single("x_total", MetricKind::Counter, &labels, f64::from(count));
    let gauge = MetricFamily::single("y", MetricKind::Gauge, &labels, f64::from(count));
    let families = vec![counter, MetricFamily::histogram("z", &labels, &histogram), gauge];
    Page { families }
}

/// What `x_total`, `z_sum` and `y` are stored as, where they show these counts every ten seconds, and how much the
/// first has grown. `act` is done before a scrape, by its number.
fn stored(counts: &[u32], act: impl Fn(&mut Prometheus, usize)) -> (Vec<[f64; 3]>, f64) {
    let (mut server, id) = server(target("a"));
    let mut shown = Vec::new();
    let mut at = 0;
    for (number, count) in counts.iter().enumerate() {
        act(&mut server, number);
        at += 10;
        server.scraped(id, seconds(at), Scraped::Page(&counted(*count)));
        let value = |name: &str| values(&server, name, at)[0];
        shown.push([value("x_total"), value("z_sum"), value("y")]);
    }
    let range = at - 10;
    let grown = values(&server, &format!("rate(x_total[{range}s])"), at);
    let range = Duration::from_secs(range.unsigned_abs()).as_secs_f64();
    (shown, grown.first().map_or(0.0, |grown| grown * range))
}

#[test]
fn counters_begin_anew_and_have_grown_by_as_much() {
    let counts = [4, 5, 7, 8, 8];
    let (before, grown) = stored(&counts, |_, _| {});
    assert_eq!(before, counts.map(|count| [f64::from(count); 3]));
    let (shown, regrown) = stored(&counts, |server, number| {
        if number == 2 {
            server.set_reset(true);
        }
        assert_eq!(server.falls, if number > 2 { 5 } else { 0 });
    });
    // A bucket, the next one, sum and count next to the counter. It begins anew after the scrape before.
    let expected = [[4.0; 3], [5.0; 3], [2.0, 2.0, 7.0], [3.0, 3.0, 8.0], [3.0, 3.0, 8.0]];
    assert_eq!(shown, expected);
    // Three since the second, within three quarters of the range.
    for grown in [grown, regrown] {
        assert!((grown - 4.0).abs() < 1e-9, "{grown}");
    }
}

#[test]
fn a_counter_begins_anew_only_where_that_can_be_seen() {
    let reset = |end: Option<usize>| {
        move |server: &mut Prometheus, number: usize| {
            if number == 1 || end == Some(number) {
                server.set_reset(number == 1);
            }
        }
    };
    let of_counter = |(shown, _): (Vec<[f64; 3]>, f64)| -> Vec<f64> {
        shown.into_iter().map(|[counter, ..]| counter).collect()
    };
    // It had shown one, and two more came: as much as a counter that only grew.
    assert_eq!(of_counter(stored(&[1, 3, 4], reset(None))), [1.0, 3.0, 1.0]);
    assert_eq!(of_counter(stored(&[1, 3, 4], reset(Some(2)))), [1.0, 3.0, 4.0]);
    assert_eq!(of_counter(stored(&[0, 0, 0], reset(None))), [0.0, 0.0, 0.0]);
    // The container is restarted as well, and counts to as much as is stored: that would hide what came.
    assert_eq!(of_counter(stored(&[5, 7, 2], reset(None))), [5.0, 2.0, 4.0]);
    assert_eq!(of_counter(stored(&[5, 7, 1], reset(None))), [5.0, 2.0, 1.0]);
}
