//! One request for each API, namespace and metric, and a pause where the API server wants one.

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::*;
use crate::actors::sample_plan::tests::{claim, leading, of_pod, put_up, record};
use crate::actors::variants::tests::run;
use crate::cluster::fake::{FakeResponse, FakeServer, refusal, throttled};
use crate::policy::pod_autoscaler::record::AutoscalerRecord;
use crate::roles::Role;
use crate::state::SharedState;
use crate::state::events::Events;
use wva_supervise::{Address, Reader};

/// A reader at work.
struct Bench {
    shared: SharedState,
    server: FakeServer,
    events: Events,
    table: Reader<SampleTable>,
    began: Instant,
}

/// Pod and metric, the value, and the kind of the failure.
type ShownReading = (Option<String>, String, Option<f64>, Option<Failure>);

impl Bench {
    fn start(
        records: impl IntoIterator<Item = AutoscalerRecord>,
        answers: impl IntoIterator<Item = FakeResponse>,
    ) -> Self {
        let shared = leading();
        put_up(&shared.writers.pod_autoscalers, records);
        let server = FakeServer::new(answers);
        let events = Events::for_test();
        let permissions = PermissionReporter::for_test(shared.clock.clone(), events.clone());
        let api = MetricsApiClient { client: server.client(), timeout: Duration::from_secs(5) };
        let table = shared.readers.api_samples.clone();
        let writers = Arc::clone(&shared.writers.metrics_reader);
        let readers = shared.readers.clone();
        let role = wva_supervise::child(Role::MetricsReader, &Address::vacant(), move |_| {
            let (api, permissions) = (api.clone(), permissions.clone());
            MetricsReader::new(readers.clone(), Arc::clone(&writers), api, permissions)
        });
        drop(run(&shared, role));
        Self { shared, server, events, table, began: Instant::now() }
    }

    async fn at(&self, milliseconds: u64) {
        sleep_until(self.began + Duration::from_millis(milliseconds)).await;
    }

    fn readings(&self) -> Vec<ShownReading> {
        let table = self.table.load();
        let all = table.iter().map(|(key, reading)| {
            let pod = key.pod.as_ref().map(ToString::to_string);
            let value = reading.value.map(|(value, _)| value);
            let failure = reading.failure.as_ref().map(|failure| failure.kind);
            (pod, key.source.metric.to_string(), value, failure)
        });
        all.collect()
    }

    fn why(&self) -> String {
        let table = self.table.load();
        let mut failures = table.values().filter_map(|one| one.failure.as_ref());
        failures.next().unwrap().why.to_string()
    }

    fn paths(&self) -> Vec<String> {
        let asked = self.server.asked().into_iter();
        asked.map(|request| request.path).collect()
    }
}

fn source(kind: &str, metric: &str) -> Value {
    json!({"metricSourceType": kind, "targetMetric": metric, "targetValue": "10"})
}

fn served(groups: &[&str]) -> FakeResponse {
    let group = |name: &&str| json!({"name": name, "versions": [{"groupVersion": format!("{name}/v1beta1"), "version": "v1beta1"}]});
    let groups: Vec<Value> = groups.iter().map(group).collect();
    FakeResponse::Json(200, json!({"kind": "APIGroupList", "groups": groups}))
}

fn external(values: &[&str]) -> FakeResponse {
    let items = values.iter().map(|value| json!({"metricName": "q", "value": value}));
    let items: Vec<Value> = items.collect();
    FakeResponse::Json(200, json!({"items": items}))
}

const EXTERNAL: &str = "external.metrics.k8s.io";
const RESOURCE: &str = "metrics.k8s.io";
const PODS: [(&str, Option<&str>); 2] = [("a", None), ("b", None)];

#[tokio::test(start_paused = true)]
async fn usage_of_a_namespace_is_read_once_for_all_objects_and_both_resources() {
    let both = [source("resource", "cpu"), source("resource", "memory")];
    let records = [
        record("one", "KPA", &both, &PODS),
        record("two", "APA", &both, &PODS),
        record("three", "HPA", &[source("external", "q")], &PODS),
        record("four", "KPA", &[of_pod("x")], &PODS),
    ];
    let usage = json!({"items": [{
        "metadata": {"name": "a"}, "timestamp": "2999-01-01T00:00:00Z",
        "containers": [{"usage": {"cpu": "250m", "memory": "1Ki"}}],
    }]});
    let bench = Bench::start(records, [served(&[RESOURCE]), FakeResponse::Json(200, usage)]);
    assert_eq!(bench.readings(), []);
    bench.at(100).await;
    let expected = ["/apis", "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods"];
    assert_eq!(bench.paths(), expected);
    let of = |pod: &str, metric: &str, value, failure| {
        (Some(pod.to_owned()), metric.to_owned(), value, failure)
    };
    let expected = [
        of("a", "cpu", Some(250.0), None),
        of("a", "memory", Some(1_024.0), None),
        of("b", "cpu", None, Some(Failure::Absent)),
        of("b", "memory", None, Some(Failure::Absent)),
    ];
    assert_eq!(bench.readings(), expected);
    // A sample of a clock that is ahead is not younger than now.
    let table = bench.table.load();
    let now = bench.shared.clock.now();
    let times = table.values().filter_map(|reading| reading.value);
    assert!(times.into_iter().all(|(_, at)| at.monotonic <= now.monotonic));
}

#[tokio::test(start_paused = true)]
async fn failures_are_named_and_keep_the_last_value() {
    let records = [record("one", "KPA", &[source("external", "q")], &[])];
    let bench = Bench::start(records, [served(&[EXTERNAL]), external(&["1500m", "1"])]);
    let reading = |value, failure| vec![(None, "q".to_owned(), value, failure)];
    bench.at(100).await;
    assert_eq!(bench.readings(), reading(Some(2.5), None));
    let forbidden = "external.metrics.k8s.io is forbidden";
    for (round, (answers, failure, part)) in wva_base::cases! {
        (vec![served(&[EXTERNAL]), external(&[])], Failure::Absent, "no item of q"),
        (vec![served(&[RESOURCE])], Failure::QueryFailed, "install an adapter for external"),
        (vec![served(&[EXTERNAL]), refusal(404, "NotFound", "no q")], Failure::Absent, "no q; correct targetMetric"),
        (vec![served(&[EXTERNAL]), external(&["-1"])], Failure::Invalid, "negative"),
        (vec![served(&[EXTERNAL]), external(&["1", "many"])], Failure::Invalid, "many"),
        (vec![refusal(500, "InternalError", "broken")], Failure::QueryFailed, "broken"),
        (vec![served(&[EXTERNAL]), FakeResponse::Hang], Failure::QueryFailed, "within 5s"),
        (vec![served(&[EXTERNAL]), refusal(403, "Forbidden", forbidden)], Failure::QueryFailed,
         "get and list in group external.metrics.k8s.io"),
    }
    .into_iter()
    .enumerate()
    {
        assert!(bench.events.last().is_none(), "{part}");
        for answer in answers {
            bench.server.then(answer);
        }
        let round = u64::try_from(round + 1).unwrap();
        bench.at(round * 10_000 + 6_000).await;
        assert_eq!(
            bench.readings(),
            reading(Some(2.5), Some(failure)),
            "{part}"
        );
        assert!(bench.why().contains(part), "{}", bench.why());
    }
    let event = bench.events.last().unwrap().notice;
    assert!(event.note.contains(forbidden), "{}", event.note);
    bench.server.then(served(&[EXTERNAL]));
    bench.server.then(external(&["3"]));
    bench.at(91_000).await;
    assert_eq!(bench.readings(), reading(Some(3.0), None));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_is_left_alone() {
    let records = [record("one", "KPA", &[source("external", "q")], &[])];
    let answers = [throttled(12), served(&[EXTERNAL]), external(&["1"])];
    let bench = Bench::start(records, answers);
    bench.at(11_900).await;
    assert_eq!(bench.paths().len(), 1);
    bench.at(12_100).await;
    assert_eq!(bench.paths().len(), 3);
    assert_eq!(bench.readings(), [(None, "q".to_owned(), Some(1.0), None)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_without_the_claim_and_only_what_is_wanted_stays() {
    let records = [record("one", "KPA", &[source("external", "q")], &[])];
    let bench = Bench::start(records, [served(&[EXTERNAL]), external(&["1"])]);
    bench.at(100).await;
    assert_eq!(bench.readings().len(), 1);
    claim(&bench.shared, false);
    bench.at(10_100).await;
    assert_eq!((bench.readings().len(), bench.paths().len()), (0, 2));
    claim(&bench.shared, true);
    put_up(&bench.shared.writers.pod_autoscalers, []);
    bench.at(20_100).await;
    assert_eq!((bench.readings().len(), bench.paths().len()), (0, 2));
}

#[test]
fn a_value_is_as_old_as_its_server_says_or_as_its_time_has_been_shown_for() {
    let moment = |monotonic, wall: i64| Moment {
        monotonic: Duration::from_secs(monotonic),
        wall: WallTime(wall * 1_000),
    };
    let at = |now, first, seconds: Option<i64>| {
        let metric =
            MeasuredMetric { value: Ok(1.0), at: seconds.map(|seconds| WallTime(seconds * 1_000)) };
        let reading = value(&metric, moment(first, 0), now).unwrap();
        let at = reading.value.map(|(_, at)| at.monotonic.as_secs());
        at.ok_or_else(|| reading.failure.unwrap().kind)
    };
    let now = moment(1_000, 10_000);
    for (first, measured, expected) in [
        (1_000, None, Ok(1_000)),
        (1_000, Some(10_000), Ok(1_000)),
        (500, Some(10_050), Ok(1_000)),
        (500, Some(9_970), Ok(970)),
        (1_000, Some(9_970), Ok(1_000)),
        (500, Some(9_800), Ok(800)),
        (910, Some(9_800), Ok(940)),
        (1_000, Some(9_800), Ok(1_000)),
        (1_000, Some(9_701), Ok(1_000)),
        (1_000, Some(9_700), Err(Failure::TooOld)),
    ] {
        assert_eq!(at(now, first, measured), expected, "{first} {measured:?}");
    }
    // Shortly after the start a value may be older than the process.
    let early = moment(10, 10_000);
    assert_eq!(at(early, 10, Some(9_940)), Ok(10));
    assert_eq!(at(early, 10, Some(9_700)), Err(Failure::TooOld));
}

#[tokio::test(start_paused = true)]
async fn a_time_of_a_server_that_is_behind_ages_from_the_read_that_first_showed_it() {
    // Seconds before now that a read ten seconds after the one before shows, and the age that follows.
    let reads = [
        (90, Some(0)),
        (90, Some(0)),
        (90, Some(0)),
        (90, Some(0)),
        (90, Some(10)),
        (90, Some(20)),
        (85, Some(0)),
        // The one before is no news.
        (90, Some(0)),
        (90, Some(0)),
        (90, Some(0)),
        (90, Some(10)),
        (301, None),
        (80, Some(0)),
    ];
    let now = jiff::Timestamp::now().as_second();
    let answers = reads.iter().flat_map(|(ago, _)| {
        let time = jiff::Timestamp::from_second(now - ago).unwrap();
        let item = json!({"metricName": "q", "value": "1", "timestamp": time.to_string()});
        let list = json!({"items": [item]});
        [served(&[EXTERNAL]), FakeResponse::Json(200, list)]
    });
    let records = [record("one", "KPA", &[source("external", "q")], &[])];
    let bench = Bench::start(records, answers);
    for (round, (ago, expected)) in (0_u64..).zip(reads) {
        bench.at(round * 10_000 + 100).await;
        let table = bench.table.load();
        let reading = table.values().next().unwrap();
        let read = bench.shared.clock.now();
        let age = reading.value.map(|(_, at)| read.since(at).as_secs());
        assert_eq!(age, expected, "{round}: {ago}");
        assert_eq!(reading.failure.is_some(), expected.is_none(), "{round}");
    }
}
