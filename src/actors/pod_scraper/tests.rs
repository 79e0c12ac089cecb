//! Each page is read once a round, and none waits for another.

use std::sync::Mutex;

use futures::FutureExt as _;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};

use super::*;
use crate::actors::sample_plan::tests::{claim, leading, of_pod, put_up, record};
use crate::actors::variants::tests::run;
use crate::policy::pod_autoscaler::record::AutoscalerRecord;
use crate::policy::pod_autoscaler::samples::SampleSource;
use crate::policy::pod_autoscaler::source::MetricsPage;
use crate::roles::Role;
use crate::signals::PageAnswer;
use crate::signals::metrics_page::FamilyReader;
use crate::state::SharedState;
use wva_supervise::{Address, Reader};

/// What a page does with a request.
#[derive(Debug, Clone)]
enum Served {
    Text(String),
    Error(PageReadError),
    Hang,
}

/// Pages by URL; the others hang.
#[derive(Debug, Default)]
struct FakePages {
    pages: Mutex<BTreeMap<String, Served>>,
    reads: Mutex<Vec<String>>,
}

impl FakePages {
    fn serve(&self, address: &str, served: Served) {
        let url = format!("http://{address}:8000/metrics");
        self.pages.lock().unwrap().insert(url, served);
    }

    fn show(&self, address: &str, text: &str) {
        self.serve(address, Served::Text(text.to_owned()));
    }

    /// How often each URL was read.
    fn reads(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for url in &*self.reads.lock().unwrap() {
            *counts.entry(url.clone()).or_default() += 1;
        }
        counts
    }
}

impl PodPages for FakePages {
    fn read(&self, page: PageUrl, wanted: Vec<Arc<str>>, deadline: Duration) -> PageAnswer {
        let url = page.to_string();
        let served = self.pages.lock().unwrap().get(&url).cloned();
        self.reads.lock().unwrap().push(url);
        async move {
            match served.unwrap_or(Served::Hang) {
                Served::Text(text) => {
                    let mut reader = FamilyReader::new(wanted);
                    reader.feed(text.as_bytes())?;
                    Ok(reader.finish()?)
                }
                Served::Error(error) => Err(error),
                Served::Hang => {
                    sleep(deadline).await;
                    Err(PageReadError::Timeout(deadline))
                }
            }
        }
        .boxed()
    }
}

/// A scraper at work.
struct Bench {
    shared: SharedState,
    pages: Arc<FakePages>,
    table: Reader<SampleTable>,
    began: Instant,
}

impl Bench {
    fn start(records: impl IntoIterator<Item = AutoscalerRecord>, show: &[(&str, &str)]) -> Self {
        Self::start_as(leading(), records, show)
    }

    fn start_as(
        shared: SharedState,
        records: impl IntoIterator<Item = AutoscalerRecord>,
        show: &[(&str, &str)],
    ) -> Self {
        let pages = Arc::new(FakePages::default());
        put_up(&shared.writers.pod_autoscalers, records);
        for (address, text) in show {
            pages.show(address, text);
        }
        let table = shared.readers.pod_samples.clone();
        let writer = Arc::clone(&shared.writers.pod_scraper);
        let readers = shared.readers.clone();
        let of_pages: Arc<dyn PodPages> = pages.clone();
        let role = wva_supervise::child(Role::PodScraper, &Address::vacant(), move |_| {
            PodScraper::new(readers.clone(), Arc::clone(&writer), Arc::clone(&of_pages))
        });
        drop(run(&shared, role));
        Self { shared, pages, table, began: Instant::now() }
    }

    fn put_up(&self, records: impl IntoIterator<Item = AutoscalerRecord>) {
        put_up(&self.shared.writers.pod_autoscalers, records);
    }

    /// Waits until so many milliseconds after the start.
    async fn at(&self, milliseconds: u64) {
        sleep_until(self.began + Duration::from_millis(milliseconds)).await;
    }

    fn reading(&self, pod: &str, metric: &str) -> Option<SampleReading> {
        self.table.load().get(&key(Some(pod), metric)).cloned()
    }

    fn value(&self, pod: &str, metric: &str) -> Option<f64> {
        let reading = self.reading(pod, metric)?;
        reading.value.map(|(value, _)| value)
    }
}

fn key(pod: Option<&str>, metric: &str) -> SampleKey {
    let page = MetricsPage { protocol: "http".into(), path: "/metrics".into() };
    SampleKey {
        namespace: "ns".into(),
        pod: pod.map(Arc::from),
        source: SampleSource {
            kind: SourceKind::Pod { port: "8000".into(), page },
            metric: metric.into(),
        },
    }
}

const A: (&str, Option<&str>) = ("a", Some("10.0.0.1"));
const B: (&str, Option<&str>) = ("b", Some("10.0.0.2"));

#[tokio::test(start_paused = true)]
async fn each_page_is_read_once_a_round_for_all_objects_and_metrics() {
    let records = [
        record("one", "KPA", &[of_pod("x"), of_pod("y")], &[A, B]),
        record("two", "APA", &[of_pod("x")], &[A]),
        record("three", "HPA", &[of_pod("x")], &[("c", Some("10.0.0.3"))]),
    ];
    let show = [("10.0.0.1", "x 1\ny 2\n"), ("10.0.0.2", "x 3\ny 4\n")];
    let bench = Bench::start(records, &show);
    assert_eq!(bench.table.load().len(), 0);
    let expected = |times| {
        BTreeMap::from([
            ("http://10.0.0.1:8000/metrics".to_owned(), times),
            ("http://10.0.0.2:8000/metrics".to_owned(), times),
        ])
    };
    bench.at(100).await;
    assert_eq!(bench.pages.reads(), expected(1));
    let values = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")];
    let values = values.map(|(pod, metric)| bench.value(pod, metric));
    assert_eq!(values, [1.0, 2.0, 3.0, 4.0].map(Some));
    assert_eq!(bench.table.load().len(), 4);
    bench.at(4_900).await;
    assert_eq!(bench.pages.reads(), expected(1));
    bench.at(5_100).await;
    assert_eq!(bench.pages.reads(), expected(2));
}

#[tokio::test(start_paused = true)]
async fn pods_that_hang_delay_no_other_and_each_is_tried_in_its_turn() {
    // Names sort so that those that hang come first.
    let names: Vec<(String, String)> =
        (0..220).map(|number| (format!("p{number:03}"), format!("10.0.1.{number}"))).collect();
    let pods = |range: std::ops::Range<usize>| -> Vec<(&str, Option<&str>)> {
        let range = names[range].iter();
        range.map(|(name, address)| (&**name, Some(&**address))).collect()
    };
    let bench = Bench::start([record("one", "KPA", &[of_pod("x")], &pods(157..220))], &[]);
    for (_, address) in &names[..157] {
        bench.pages.show(address, "x 1\n");
    }
    bench.at(100).await;
    // 63 hang: one slot is enough for the others.
    bench.put_up([record("one", "KPA", &[of_pod("x")], &pods(0..220))]);
    bench.at(5_300).await;
    let read = (0..157).filter(|number| bench.value(&names[*number].0, "x").is_some());
    assert_eq!(read.count(), 157);

    let bench = Bench::start([record("one", "KPA", &[of_pod("x")], &pods(0..220))], &[]);
    let last = &names[219];
    bench.pages.show(&last.1, "x 1\n");
    bench.at(5_900).await;
    assert_eq!(bench.value(&last.0, "x"), None);
    // Three times 64 take 6 s, and the next round does not begin with the first ones again.
    bench.at(6_300).await;
    assert_eq!(bench.value(&last.0, "x"), Some(1.0));
    bench.at(20_000).await;
    let reads = bench.pages.reads();
    let (fewest, most) = (reads.values().min(), reads.values().max());
    assert_eq!(reads.len(), 220);
    assert!(fewest >= Some(&2) && most <= Some(&4), "{fewest:?} {most:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_misses_no_read_between_two_decisions() {
    let bench = Bench::start([record("one", "KPA", &[of_pod("x_total")], &[A])], &[]);
    let rates = [None, Some(20.0), Some(10.0), Some(10.0)];
    for (read, (count, rate)) in (0..).zip([0, 100, 100, 200].into_iter().zip(rates)) {
        bench.pages.show("10.0.0.1", &format!("x_total {count}\n"));
        bench.at(read * 5_000 + 100).await;
        assert_eq!(bench.value("a", "x_total"), rate);
    }
}

#[tokio::test(start_paused = true)]
async fn another_address_of_a_pod_forgets_what_the_old_one_showed() {
    let with = |address| record("one", "KPA", &[of_pod("x_total")], &[("a", Some(address))]);
    let bench = Bench::start([with("10.0.0.1")], &[("10.0.0.1", "x_total 10\n")]);
    bench.at(100).await;
    bench.pages.show("10.0.0.1", "x_total 30\n");
    bench.at(5_100).await;
    assert_eq!(bench.value("a", "x_total"), Some(4.0));

    bench.put_up([with("10.0.0.2")]);
    bench.at(10_100).await;
    assert_eq!(bench.reading("a", "x_total"), None);
    bench.at(13_000).await;
    let reading = bench.reading("a", "x_total").unwrap();
    assert_eq!(reading.value, None);
    let failure = reading.failure.unwrap();
    assert!(!failure.needs_reads);
    let why = failure.why;
    assert!(why.contains("10.0.0.2") && why.contains("within 2s"), "{why}");
    // No rate comes of counters of two processes.
    bench.pages.show("10.0.0.2", "x_total 1000000\n");
    bench.at(15_100).await;
    let reading = bench.reading("a", "x_total").unwrap();
    assert_eq!(reading.value, None);
    let failure = reading.failure.unwrap();
    assert_eq!((failure.kind, failure.needs_reads), (Failure::Absent, true));
    bench.at(20_100).await;
    assert_eq!(bench.value("a", "x_total"), Some(0.0));
}

/// Answers that take minutes are no silence.
#[tokio::test(start_paused = true)]
async fn a_latency_is_zero_after_a_while_without_requests_only() {
    let name = "vllm:e2e_request_latency_seconds";
    let page = |count: u32, running: u32| {
        format!(
            "# TYPE {name} histogram\n{name}_sum {}\n{name}_count {count}\nvllm:num_requests_running {running}\n",
            count * 30
        )
    };
    for (running, expected) in [(0, 0.0), (3, 30.0)] {
        let records = [record("one", "KPA", &[of_pod(name)], &[A])];
        let bench = Bench::start(records, &[("10.0.0.1", &page(0, 1))]);
        bench.at(100).await;
        bench.pages.show("10.0.0.1", &page(2, 1));
        bench.at(5_100).await;
        assert_eq!(bench.value("a", name), Some(30.0));
        bench.pages.show("10.0.0.1", &page(2, running));
        bench.at(50_100).await;
        assert_eq!(bench.value("a", name), Some(30.0));
        bench.at(65_100).await;
        let (value, at) = bench.reading("a", name).unwrap().value.unwrap();
        assert!((value - expected).abs() < 1e-9, "{value}");
        // What is kept has the time of its read.
        let age = bench.shared.readers.clock.now().since(at);
        assert_eq!(age < Duration::from_secs(30), running == 0, "{age:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_wanted_stays() {
    let both = record("one", "KPA", &[of_pod("x"), of_pod("y")], &[A, B]);
    let show = [("10.0.0.1", "x 1\ny 2\n"), ("10.0.0.2", "x 3\ny 4\n")];
    let bench = Bench::start([both], &show);
    bench.at(100).await;
    assert_eq!(bench.table.load().len(), 4);
    bench.put_up([record("one", "KPA", &[of_pod("x")], &[A])]);
    bench.at(5_100).await;
    let table = bench.table.load();
    assert_eq!(table.keys().collect::<Vec<_>>(), [&key(Some("a"), "x")]);
    bench.put_up([]);
    bench.at(10_100).await;
    assert_eq!(bench.table.load().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_without_the_claim() {
    let shared = leading();
    claim(&shared, false);
    let records = [record("one", "KPA", &[of_pod("x")], &[A])];
    let bench = Bench::start_as(shared, records, &[("10.0.0.1", "x 1\n")]);
    bench.at(4_900).await;
    assert_eq!((bench.pages.reads().len(), bench.table.load().len()), (0, 0));
    claim(&bench.shared, true);
    bench.at(5_100).await;
    assert_eq!(bench.value("a", "x"), Some(1.0));
    claim(&bench.shared, false);
    bench.at(10_100).await;
    assert_eq!(bench.table.load().len(), 0);
    let reads: usize = bench.pages.reads().values().sum();
    assert_eq!(reads, 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_read_keeps_the_last_value_and_names_the_failure() {
    let records = [record("one", "KPA", &[of_pod("x")], &[A, ("c", None)])];
    let bench = Bench::start(records, &[("10.0.0.1", "x 1\n")]);
    bench.at(100).await;
    let first = bench.reading("a", "x").unwrap();
    assert_eq!((first.value.unwrap().0, &first.failure), (1.0, &None));
    let homeless = bench.reading("c", "x").unwrap().failure.unwrap();
    assert_eq!(homeless.kind, Failure::Absent);
    assert!(homeless.why.contains("no address yet"), "{}", homeless.why);

    for (served, kind, part, is_unavailable) in wva_base::cases! {
        (Served::Error(PageReadError::Unavailable), Failure::QueryFailed, "503", true),
        (Served::Error(PageReadError::Status(404)), Failure::QueryFailed, "404", false),
        (Served::Text("y 1\n".to_owned()), Failure::Absent, "no series of that name", false),
        (Served::Text("x NaN\n".to_owned()), Failure::Invalid, "not finite", false),
        (Served::Text("<html>\n".to_owned()), Failure::Invalid, "line 1", false),
        (Served::Hang, Failure::QueryFailed, "within 2s", false),
    } {
        bench.pages.serve("10.0.0.1", served);
        sleep(ROUND + DEADLINE).await;
        let reading = bench.reading("a", "x").unwrap();
        assert_eq!(reading.value, first.value, "{part}");
        let failure = reading.failure.unwrap();
        assert_eq!(
            (failure.kind, failure.unavailable_since.is_some()),
            (kind, is_unavailable),
            "{part}"
        );
        assert!(failure.why.contains(part), "{}", failure.why);
    }
    bench.pages.show("10.0.0.1", "x 2\n");
    sleep(ROUND + DEADLINE).await;
    let last = bench.reading("a", "x").unwrap();
    assert_eq!((last.value.unwrap().0, last.failure), (2.0, None));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_is_an_error_where_its_pod_serves() {
    let ready_for = Duration::ZERO;
    for (pod, errors) in [
        (AutoscaledPod::Ready { ready_for }, 1),
        (AutoscaledPod::Draining, 1),
        (AutoscaledPod::Resharding, 1),
        (AutoscaledPod::Pending, 0),
        (AutoscaledPod::Gated, 0),
    ] {
        let mut record = record("one", "KPA", &[of_pod("x")], &[A]);
        let pods = Arc::make_mut(&mut record.pods);
        for one in pods.values_mut() {
            one.pod = pod;
        }
        let bench = Bench::start([record], &[]);
        bench.at(2_100).await;
        assert!(bench.reading("a", "x").unwrap().failure.is_some());
        let labels = ["pod-scraper", PageReadError::Timeout(DEADLINE).reason()];
        let counted = &bench.shared.readers.series.process.errors;
        assert_eq!(counted.with_label_values(&labels).get(), errors, "{pod:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_reports_a_total_and_names_that_name_nothing_are_explained() {
    let service = json!({
        "metricSourceType": "external", "protocolType": "http", "endpoint": "10.0.0.9:8000",
        "path": "metrics", "targetMetric": "vllm:deployment_replicas", "targetValue": "100",
    });
    let records = [record("one", "KPA", &[service, of_pod("p95_ttft_5m")], &[A])];
    let page =
        "# TYPE vllm:deployment_replicas gauge\nvllm:deployment_replicas{model_name=\"m\"} 150\n";
    let bench = Bench::start(records, &[("10.0.0.9", page)]);
    bench.at(100).await;
    let table = bench.table.load();
    let totals: Vec<_> = table.iter().filter(|(key, _)| key.pod.is_none()).collect();
    assert_eq!(totals.len(), 1);
    let total = totals[0].1.value.map(|(value, _)| value);
    assert_eq!(total, Some(150.0));
    let failure = bench.reading("a", "p95_ttft_5m").unwrap().failure.unwrap();
    assert_eq!(failure.kind, Failure::Invalid);
    assert!(failure.why.contains("Prometheus query"), "{}", failure.why);
    assert_eq!(bench.pages.reads().len(), 1);
}

fn page_of(namespace: &str, number: usize) -> PageKey {
    let page = MetricsPage { protocol: "http".into(), path: "/metrics".into() };
    PageKey {
        pod: Some((namespace.into(), format!("p{number:03}").into())),
        url: PageUrl::of_pod([10, 0, 0, 1].into(), "8000", &page).unwrap(),
    }
}

#[test]
fn namespaces_with_equally_many_pages_in_flight_take_turns() {
    let mut waiting = FairPages::default();
    for number in 0..4 {
        for namespace in ["a", "b", "c"] {
            waiting.push(page_of(namespace, number));
        }
    }
    let next = |waiting: &mut FairPages, in_flight: &BTreeSet<PageKey>| {
        let page = waiting.pop(in_flight).unwrap();
        page.namespace().unwrap().to_string()
    };
    // The one with a page in flight is not next, whatever its name.
    let busy = BTreeSet::from([page_of("a", 9)]);
    let served = [(); 2].map(|()| next(&mut waiting, &busy));
    assert_eq!(served, ["b", "c"]);
    let none = BTreeSet::new();
    let served = [(); 7].map(|()| next(&mut waiting, &none));
    assert_eq!(served, ["a", "b", "c", "a", "b", "c", "a"]);
}

#[test]
fn a_namespace_with_many_pages_leaves_the_others_their_share() {
    let mut waiting = FairPages::default();
    let mut in_flight = BTreeSet::new();
    for number in 0..200 {
        waiting.push(page_of("many", number));
    }
    // Alone it may have all of it.
    for _ in 0..WIDTH / 2 {
        in_flight.insert(waiting.pop(&in_flight).unwrap());
    }
    assert_eq!(in_flight.len(), WIDTH / 2);
    for number in 0..WIDTH {
        waiting.push(page_of("few", number));
    }
    for _ in 0..WIDTH / 2 {
        let page = waiting.pop(&in_flight).unwrap();
        assert_eq!(page.namespace().map(|name| &**name), Some("few"));
        in_flight.insert(page);
    }
    // Both have half; what ends in one goes on in the same one.
    for namespace in ["few", "many"] {
        let ended =
            in_flight.iter().find(|page| page.namespace() == Some(&namespace.into())).cloned();
        in_flight.remove(&ended.unwrap());
        let next = waiting.pop(&in_flight).unwrap();
        assert_eq!(next.namespace().map(|name| &**name), Some(namespace));
        in_flight.insert(next);
    }
    // Oldest first, and none is lost.
    let mut order = Vec::new();
    while let Some(page) = waiting.pop(&in_flight) {
        order.push(page);
    }
    assert!(waiting.is_empty());
    let many: Vec<_> =
        order.iter().filter(|page| page.namespace() == Some(&"many".into())).collect();
    assert!(many.is_sorted());
    assert_eq!(order.len(), 200 + WIDTH - WIDTH - 2);
}
