//! Worlds in virtual time.

mod shown;

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::controller::ControllerView;
use super::*;
use crate::engine::{Mix, StartUp};
use crate::load::{RateProfile, RateStage};
use crate::number;
use crate::threads::paused;
use crate::workloads::{StruckPods, WorkloadFault};
use wva::policy::throughput::LatencyModelSource;
use wva::signals::{PromAnswer, PromApi};

const DATE: WallTime = WallTime(1_767_225_600_000);

fn quiet() -> Scenario {
    scenario("quiet").unwrap()
}

/// How often something was written and decided, and a hash of all of it.
#[derive(Debug, Default, PartialEq)]
struct RunRecord {
    writes: usize,
    plans: usize,
    hash: u64,
}

/// On a paused runtime of its own, as far as `lasts`; writes and plans are taken down every second.
fn play(scenario: &Scenario, seed: u64, lasts: Duration) -> (RunRecord, Arc<Frame>) {
    let runtime = paused().unwrap();
    runtime.block_on(async {
        let world = World::begin(scenario, seed, DATE).await.unwrap();
        let objects = Insider::new(world.server.clone(), "test");
        let mut record = RunRecord::default();
        let (mut version, mut cycle) = (1, None);
        for _ in 0..lasts.as_secs() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let mut texts = Vec::new();
            for (at, change) in objects.changes_after(version).unwrap() {
                version = at;
                record.writes += 1;
                texts.push(change);
            }
            if let Some(plan) =
                world.plan().filter(|plan| cycle.replace(plan.cycle) != Some(plan.cycle))
            {
                record.plans += 1;
                texts.push(serde_json::to_string(&*plan).unwrap());
            }
            record.hash = number::hash(record.hash, texts.concat().bytes());
        }
        let frame = world.frame();
        world.end().await;
        (record, frame)
    })
}

/// A small world in a hurry: what takes minutes elsewhere happens within one.
fn hurried() -> Scenario {
    let mut scenario = quiet();
    scenario.interval = Duration::from_secs(10);
    scenario.scrape_interval = Duration::from_secs(5);
    for variant in scenario.models.iter_mut().flat_map(|model| &mut model.variants) {
        variant.start_up = StartUp::WAKING;
        variant.limits.max_num_seqs = 4;
    }
    scenario
}

#[tokio::test(start_paused = true)]
async fn pages_show_the_controller_and_its_prometheus() {
    let world = World::begin(&quiet(), 1, DATE).await.unwrap();
    let page = async |uri: &str| {
        let (head, ()) = Request::get(uri).body(()).unwrap().into_parts();
        let answer = world.page(&head, b"");
        let status = answer.status().as_u16();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(text.to_vec()).unwrap())
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(page("/readyz").await.0, 503);
    let query = "/api/v1/query?query=max(wva_desired_replicas)";
    let (status, answer) = page(query).await;
    assert_eq!((status, &json(&answer)["data"]["result"]), (200, &json!([])));

    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(page("/readyz").await, (200, "ok\n".to_owned()));
    let (_, metrics) = page("/metrics").await;
    let counts = metrics.lines().filter_map(|line| {
        let (labels, count) = line.strip_prefix("wva_desired_replicas{")?.split_once("} ")?;
        labels.contains("variant_name").then_some(count)
    });
    let most = counts.max().unwrap();
    let (status, decisions) = page("/debug/decisions").await;
    let decided = json(&decisions)["decisions"].as_object().map(serde_json::Map::len);
    assert_eq!((status, decided), (200, Some(2)));
    let (_, answer) = page(query).await;
    let value = &json(&answer)["data"]["result"][0]["value"];
    assert_eq!(*value, json!([1_767_225_780.0, most]));
    let (status, refused) = page("/api/v1/query?query=sum(").await;
    assert_eq!((status, &json(&refused)["errorType"]), (400, &json!("bad_data")));
    assert_eq!(page("/debug/kill?role=optimizer").await.0, 404);
    let (status, pages) = page("/debug/").await;
    assert_eq!((status, pages.lines().count()), (200, 6), "{pages}");
    for line in pages.lines() {
        let path = line.split(' ').next().unwrap();
        assert_ne!(page(path).await.1, "not found\n", "{path}");
    }
    assert_eq!(page("/debug").await, (200, pages));
    world.end().await;
}

#[test]
fn same_seed_same_trace() {
    let scenario = hurried();
    let lasts = Duration::from_secs(50);
    let mut hashes = BTreeSet::new();
    for seed in 0..100 {
        let (first, frame) = play(&scenario, seed, lasts);
        let (second, again) = play(&scenario, seed, lasts);
        assert_eq!(first, second, "seed {seed}");
        assert_eq!(frame, again, "seed {seed}");
        assert!(first.writes > 50 && first.plans > 3, "seed {seed}: {first:?}");
        assert!(frame.totals.scalings > 0, "seed {seed}: {frame:#?}");
        hashes.insert(first.hash);
    }
    assert_eq!(hashes.len(), 100, "another seed is another run");
}

/// The same fleet both ways: how much the load of a stream differs from that of its requests.
#[test]
fn streams_serve_as_many_as_requests_do() {
    let lasts = Duration::from_mins(10);
    let exact = play(&quiet(), 1, lasts).1;
    let coarse = play(&quiet().coarse(), 1, lasts).1;
    let (exact, coarse) = (&exact.totals, &coarse.totals);
    assert!(exact.answered > 4_000, "{exact:?}");
    let ratio = number::real(coarse.answered) / number::real(exact.answered);
    assert!((0.9..1.1).contains(&ratio), "{exact:?} {coarse:?}");
    assert!(coarse.scalings > 0, "{coarse:?}");
}

/// Losses end, and what is lost is replaced.
#[tokio::test(start_paused = true)]
async fn a_crash_is_survived() {
    let mut scenario = quiet();
    scenario.troubles = vec![(
        Duration::from_mins(8),
        ScenarioFault::Workload(WorkloadFault::Crash(StruckPods {
            namespace: scenario.namespace.to_owned(),
            deployment: "qwen3-8b-fp8".to_owned(),
            pods: 5,
        })),
    )];
    let world = World::begin(&scenario, 1, DATE).await.unwrap();
    tokio::time::sleep(Duration::from_secs(479)).await;
    let before = world.frame();
    assert_eq!(before.totals.failed, 0, "{:?}", before.totals);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let struck = world.frame();
    assert!(struck.totals.failed > 0, "{:?}", struck.totals);
    assert_eq!(struck.models[0].variants[0].ready, 0);
    let whole = |ready| ready >= 2;
    ready(&world, Duration::from_mins(5), whole).await;
    world.end().await;
}

/// A model without requests is taken away after its retention, and comes back with the first request.
#[tokio::test(start_paused = true)]
async fn an_idle_model_goes_to_zero_and_is_woken() {
    let minute = Duration::from_mins(1);
    let mut scenario = hurried();
    let fleet = self::scenario("fleet").unwrap();
    scenario.models = fleet.models;
    scenario.models.retain(|model| model.name == "llama-8b");
    scenario.nodes = fleet.nodes;
    scenario.config = fleet.config;
    let model = &mut scenario.models[0];
    let LoadSource::Generated(demand) = &mut model.load else {
        panic!("the idle model is asked by requests");
    };
    demand.shape =
        RateProfile::Burst { base: 0.0, peak: 0.5, every: 12 * minute, length: 2 * minute };
    for variant in &mut model.variants {
        variant.start_up = StartUp::WAKING;
    }
    let world = World::begin(&scenario, 1, DATE).await.unwrap();
    ready(&world, 2 * minute, |ready| ready == 2).await;
    let asleep = ready(&world, 9 * minute, |ready| ready == 0).await;
    let sizes = |frame: &Frame| -> Vec<u32> {
        let variants = frame.models[0].variants.iter();
        variants.map(|variant| variant.scaled_to).collect()
    };
    assert_eq!(sizes(&asleep), [0, 0], "{asleep:?}");
    assert!(asleep.seconds > 300.0, "not before its retention: {asleep:?}");
    assert_eq!(asleep.totals.requests, 0);
    let awake = ready(&world, 4 * minute, |ready| ready == 1).await;
    assert!(awake.seconds > 600.0, "not before the first request: {awake:?}");
    assert_eq!(sizes(&awake), [1, 0], "the cheaper one");
    tokio::time::sleep(minute).await;
    let served = world.frame();
    assert!(served.totals.answered > 0, "{served:?}");
    assert_eq!(served.totals.failed, 0, "what was held is served: {served:?}");
    world.end().await;
}

#[test]
fn a_trace_that_is_none_is_named() {
    let runtime = paused().unwrap();
    // The second looks like a trace until its first request is read.
    let dashboard = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/grafana/dashboard.json");
    for (file, problem) in [("/nowhere/trace.csv", "No such file"), (dashboard, "line 1: ")] {
        let scenario = quiet().replaying(file.into());
        let world = World::begin(&scenario, 1, DATE);
        let error = runtime.block_on(world).unwrap_err();
        let expected = format!("trace {file}: {problem}");
        assert!(error.starts_with(&expected), "{error}");
    }
}

/// Waits in virtual time until so many replicas are ready.
async fn ready(world: &World, limit: Duration, reached: fn(u32) -> bool) -> Arc<Frame> {
    let mut frames = world.frames.clone();
    let seen = frames.wait_for(|frame| {
        let variants = frame.models.iter().flat_map(|model| &model.variants);
        reached(variants.map(|variant| variant.ready).sum())
    });
    if let Ok(seen) = tokio::time::timeout(limit, seen).await {
        return Arc::clone(&seen.unwrap());
    }
    panic!("not within {limit:?}: {:#?}", world.frame())
}

#[tokio::test(start_paused = true)]
async fn load_scales_up_and_its_end_down_again() {
    let world = World::begin(&quiet(), 1, DATE).await.unwrap();
    let first = ready(&world, Duration::from_mins(5), |ready| ready == 2).await;
    assert_eq!(first.totals.scalings, 0, "one replica of each variant");
    let grown = ready(&world, Duration::from_mins(8), |ready| ready >= 3).await;
    assert!(grown.totals.first_scaling.is_some());
    let shrunk = ready(&world, Duration::from_mins(40), |ready| ready == 2).await;
    assert!(shrunk.totals.answered > 1_000, "{:?}", shrunk.totals);
    world.end().await;
}

/// One replica that throughput looks at, under a load that rises step by step.
fn rising() -> Scenario {
    let mut scenario = quiet();
    scenario.config = vec![ConfigMap {
        name: "wva-saturation-scaling-config",
        data: vec![("default", "analyzers: [{name: throughput}]".to_owned())],
    }];
    let mix = Mix { prompt_tokens: 6_000, output_tokens: 500, cached: 0.0 };
    let stages = [1.5, 2.5, 3.0, 3.5, 4.0, 4.5]
        .map(|rate| RateStage { lasts: Duration::from_secs(140), rate });
    for model in &mut scenario.models {
        model.load = LoadSource::Flow {
            shape: RateProfile::Stages(stages.to_vec()),
            mixes: vec![(Duration::ZERO, mix)],
        };
        model.variants.truncate(1);
        for variant in &mut model.variants {
            variant.replicas = 1;
            variant.bounds = (1, 1);
            variant.limits.max_num_seqs = 256;
        }
    }
    scenario
}

/// The source of each latency line and the observations behind it, in the first plan with any.
async fn first_lines(door: &ControllerView, within: Duration) -> Vec<(LatencyModelSource, usize)> {
    let lines = |last: &Option<PlanProposal>| -> Vec<(LatencyModelSource, usize)> {
        let models = last.iter().flat_map(|last| last.plan.models.values());
        let reports = models.filter_map(|figures| figures.throughput.as_ref());
        let variants = reports.flat_map(|report| report.variants.values());
        let known =
            variants.filter_map(|variant| Some((variant.model?.source, variant.observations)));
        known.collect()
    };
    let mut plans = door.shared.plan.follow();
    let seen = plans.wait_for(|plan| !lines(plan).is_empty());
    lines(&tokio::time::timeout(within, seen).await.unwrap())
}

/// The lines that a controller begins with that follows one which has run for a quarter of an hour.
async fn lines_after_a_restart(remembers: bool) -> Vec<(LatencyModelSource, usize)> {
    let scenario = rising();
    let mut world = World::begin(&scenario, 1, DATE).await.unwrap();
    tokio::time::sleep(Duration::from_mins(14)).await;
    world.stop.send_replace(true);
    world.controller.take().unwrap().await.unwrap();
    let own = InProcess::new(Arc::clone(&world.prometheus), world.clock.clone());
    let asked: Arc<dyn PromApi> = if remembers { Arc::new(own) } else { Arc::new(Forgetful(own)) };
    let (server, pods) = (&world.server, &world.routers);
    let around = (&world.clock, &SeedTree::new(2));
    let (next, door) =
        controller::controller(server, asked, pods, around, &scenario, false).unwrap();
    let running = tokio::spawn(next.run(std::future::pending()));
    let lines = first_lines(&door, scenario.interval * 2).await;
    running.abort();
    world.end().await;
    lines
}

/// A Prometheus that knows nothing of the past.
#[derive(Debug)]
struct Forgetful(InProcess);

impl PromApi for Forgetful {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        self.0.query(promql, deadline)
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_begins_knows_latency_lines_from_the_history_of_engines() {
    let blank = lines_after_a_restart(false).await;
    assert_eq!(blank, [(LatencyModelSource::Default, 0)]);
    let known = lines_after_a_restart(true).await;
    assert!(
        matches!(known[..], [(LatencyModelSource::Fitted, observations)] if observations >= 10),
        "{known:?}"
    );
}
