//! Every field that an analyzer reads, from the pages of simulated engines and routers by way of a
//! real Prometheus to the document behind `/debug/snapshot`, and into what is learned.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use wva::policy::document::{Situation, SnapshotDocument};
use wva::policy::learned::Learned;
use wva::policy::params::{DynamicSettings, RequiredSignals};
use wva::policy::signal::FreshnessBands;
use wva::policy::snapshot::{MetricsSnapshot, SignalName};
use wva::settings::bundle::read_bundle;
use wva::signals::query::QueryName;
use wva::signals::{
    CollectionSettings, HttpPrometheus, Namespace, PlainHttp, PrometheusClientSettings, collect,
};
use wva_sim::engine::{Dialect, Engine, Limits, Prefix, Profile};
use wva_sim::load::Arrival;
use wva_sim::router::{Binding, FlowControl, PoolSpec, RouterMetricNames, RouterPool, Weights};
use wva_supervise::SeedTree;

use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::servers::prometheus::Target;
use crate::harness::suite::{Case, Cx};
use crate::harness::wait::eventually;

const SOON: Duration = Duration::from_mins(1);
const PROMPT: u32 = 100;
const ANSWER: u32 = 10;
/// Time between two requests to a model.
const GAP: Duration = Duration::from_millis(250);
/// Both analyzers that learn from what is collected.
const ANALYZERS: &str = "
saturation: {default: {analyzerName: saturation}}
queueingModel: {default: {sloMultiplier: 4}}
";
/// What stands in a document of every replica, with the range in which it must be.
const FIELDS: [(&str, f64, f64); 13] = [
    ("kvUsage", 0.0, 1.0),
    ("queueLength", 0.0, 100.0),
    ("running", 0.0, 100.0),
    ("kvCapacity", 100_000.0, 1e7),
    ("inputTokens", 60.0, 140.0),
    ("outputTokens", 6.0, 14.0),
    ("prefixHitRate", 0.3, 1.0),
    ("timeToFirstToken", 1e-4, 1.0),
    ("interTokenLatency", 1e-4, 0.1),
    ("generationRate", 20.0, 60.0),
    ("completionRate", 2.0, 6.0),
    ("arrivalRate", 2.0, 6.0),
    ("kvUsageNow", 0.0, 1.0),
];
const ROUTER_FIELDS: [(&str, f64, f64); 3] = [
    ("queueRequests", 0.0, 10.0),
    ("queueBytes", 0.0, 1e5),
    ("arrivalRate", 2.0, 6.0),
];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "signal_fields::engines_and_routers_fill_every_field",
            engines_and_routers_fill_every_field,
        ),
        Case::shared(
            "signal_fields::what_ended_is_stale_and_what_cannot_be_asked_failed",
            what_ended_is_stale_and_what_cannot_be_asked_failed,
        ),
    ]
}

/// A model with one replica and a router, which get a request four times a second.
struct Served {
    model: String,
    pod: String,
    // Dropped in this order: no more scrapes, then no more pages.
    _targets: [Target; 2],
    _pages: [Exporter; 2],
    silent: Arc<Mutex<bool>>,
}

/// The pool behind both pages, as of now.
struct Clockwork {
    pool: RouterPool,
    began: Instant,
    sent: u32,
}

impl Clockwork {
    fn new(namespace: &str, model: &str, pod: &str) -> Self {
        let spec = PoolSpec {
            name: "pool".to_owned(),
            namespace: namespace.to_owned(),
            model: format!("{model}-alias"),
            target_model: model.to_owned(),
            binding: Binding::Late,
            handover: None,
            weights: Weights::default(),
            flow_control: Some(FlowControl::default()),
        };
        let mut pool = RouterPool::new(spec, &SeedTree::new(9));
        let profile = Profile::QWEN3_8B_BF16_H100;
        let engine = Engine::new(profile, Limits::default(), Duration::ZERO, Duration::ZERO);
        pool.add(pod, engine, Duration::ZERO);
        pool.set_ready(pod, true, Duration::ZERO);
        Self {
            pool,
            began: Instant::now(),
            sent: 0,
        }
    }

    fn advance(&mut self) -> &RouterPool {
        let now = self.began.elapsed();
        while GAP * self.sent < now {
            let arrival = Arrival {
                at: Duration::ZERO,
                prompt_tokens: PROMPT,
                output_tokens: ANSWER,
                prefix: Some(Prefix {
                    ids: Arc::from([1, 2, 3, 4]),
                    tokens_per_id: 16,
                }),
            };
            self.pool.submit(arrival, GAP * self.sent);
            self.sent += 1;
        }
        self.pool.advance(now);
        &self.pool
    }
}

async fn serve(cx: &Cx, dialect: Dialect, generation: RouterMetricNames) -> Result<Served> {
    let namespace = &cx.namespace.name;
    let model = format!("org/{dialect:?}-{generation:?}").to_lowercase();
    let pod = format!("{dialect:?}-{generation:?}-0").to_lowercase();
    let clockwork = Arc::new(Mutex::new(Clockwork::new(namespace, &model, &pod)));
    let silent = Arc::new(Mutex::new(false));
    let page = |render: Box<dyn Fn(&RouterPool) -> String + Send + Sync>| {
        let (clockwork, silent) = (Arc::clone(&clockwork), Arc::clone(&silent));
        Exporter::start(move || {
            if *silent.lock().unwrap() {
                return Page::Unavailable;
            }
            Page::Text(render(clockwork.lock().unwrap().advance()))
        })
    };
    let (name, of) = (pod.clone(), model.clone());
    let engine = page(Box::new(move |pool| {
        let engine = pool.engine(&name).unwrap();
        engine.page(dialect, &of).unwrap().to_string()
    }))
    .await?;
    let router = page(Box::new(move |pool| pool.page(generation).to_string())).await?;
    let prometheus = &cx.world.prometheus;
    Ok(Served {
        _targets: [
            prometheus.scrape(namespace, &pod, engine.address)?,
            prometheus.scrape(namespace, &format!("epp-{pod}"), router.address)?,
        ],
        _pages: [engine, router],
        model,
        pod,
        silent,
    })
}

async fn read(cx: &Cx, url: &str, settings: &DynamicSettings) -> Result<MetricsSnapshot> {
    let api = HttpPrometheus::new(PrometheusClientSettings {
        plain_http: PlainHttp::Allowed,
        ..PrometheusClientSettings::new(url)
    })
    .map_err(|faults| Fault::fatal(format!("{faults:?}")))?;
    let settings = CollectionSettings {
        required_signals: settings.required_signals(),
        freshness: settings.freshness,
        namespace: Some(Namespace::parse(&cx.namespace.name)?),
        deadline: Duration::from_secs(5),
        max_samples: None,
    };
    let collection = collect(&api, &settings, |_| Duration::ZERO).await;
    let sent = collection.report.queries.len();
    assert_eq!(sent, QueryName::wanted(settings.required_signals).count());
    let now = wva_supervise::Clock::real().now();
    Ok(collection.into_snapshot(now))
}

/// The fleet of these models with what was collected, as the controller would see it.
fn situation(cx: &Cx, served: &[Served], metrics: MetricsSnapshot) -> Result<Situation> {
    let namespace = &cx.namespace.name;
    let variants: Vec<Value> = served
        .iter()
        .map(|one| {
            json!({
                "namespace": namespace, "name": one.pod, "model": one.model,
                "target": {"current": 1}, "accelerator": "H100", "pods": [{"name": one.pod}],
                "containers": [{"image": "vllm/vllm-openai", "args": ["--max-num-seqs=1024"]}],
            })
        })
        .collect();
    let text = json!({ "version": 1, "variants": variants }).to_string();
    let document = SnapshotDocument::parse(&text)?;
    let mut situation = document.situation(&DynamicSettings::default().freshness)?;
    situation.now = metrics.collected.unwrap_or(situation.now);
    situation.snapshot.metrics = Arc::new(metrics);
    Ok(situation)
}

/// The document behind `/debug/snapshot`.
fn document(situation: &Situation) -> Result<Value> {
    let learned = Learned::default();
    let document = SnapshotDocument::of(&situation.snapshot, &learned, situation.now);
    Ok(serde_json::to_value(document)?)
}

/// Checks that every field is known and in its range.
fn filled(signals: &Value, fields: &[(&str, f64, f64)]) -> Result {
    for (field, least, most) in fields {
        let reading = &signals[field];
        let value = reading["value"].as_f64().or(reading.as_f64());
        let is_known = ["known", "knownZero"]
            .map(Value::from)
            .contains(&reading["state"]);
        let is_right = value.is_some_and(|value| (*least..=*most).contains(&value));
        if !(is_right && (is_known || reading["state"].is_null())) {
            return Err(Fault::new(format!(
                "{field} in {least}..={most}: {signals}"
            )));
        }
    }
    Ok(())
}

async fn engines_and_routers_fill_every_field(cx: &Cx) -> Result {
    let url = cx.world.prometheus.url.clone();
    let settings = read_bundle(ANALYZERS).unwrap();
    assert_eq!(settings.required_signals(), RequiredSignals::Everything);
    let before = read(cx, &url, &settings).await?;
    assert!(before.models.is_empty() && before.routers.is_empty());
    assert!(before.failures.is_empty(), "{:?}", before.failures);

    let mut served = Vec::new();
    for (dialect, generation) in [
        (Dialect::Vllm, RouterMetricNames::Model),
        (Dialect::Sglang, RouterMetricNames::Objective),
        (Dialect::Sglang, RouterMetricNames::RouterEpp),
        (Dialect::Vllm, RouterMetricNames::Epp),
    ] {
        served.push(serve(cx, dialect, generation).await?);
    }
    let found = eventually("every field is filled", SOON, async || {
        let situation = situation(cx, &served, read(cx, &url, &settings).await?)?;
        let document = document(&situation)?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let [variants, models] = ["variants", "models"].map(|name| list(&document[name]));
        if (variants.len(), models.len()) != (served.len(), served.len()) {
            return Err(Fault::new(format!("{document}")));
        }
        for variant in &variants {
            filled(&variant["pods"][0]["signals"], &FIELDS)?;
        }
        for model in &models {
            filled(&model["router"], &ROUTER_FIELDS)?;
        }
        Ok(situation)
    })
    .await?;
    let metrics = &found.snapshot.metrics;
    assert!(metrics.failures.is_empty(), "{:?}", metrics.failures);
    assert_eq!(metrics.sources.len(), SignalName::ALL.len());

    // The size of the cache is exact, in labels as in values, and so is the mean of a histogram.
    let capacity = f64::from(Limits::default().block_size)
        * f64::from(Profile::QWEN3_8B_BF16_H100.kv_tokens / Limits::default().block_size);
    for pods in metrics.models.values() {
        for (pod, samples) in pods {
            assert_eq!(
                samples.kv_capacity.map(|sample| sample.value),
                Some(capacity)
            );
            assert!(samples.ranks.is_empty());
            if pod.starts_with("vllm") {
                let input = samples.input_tokens.map(|sample| sample.value.round());
                assert_eq!(input, Some(f64::from(PROMPT)));
            }
        }
    }
    // By percentages alone nothing but their two signals is asked for.
    let few = read(cx, &url, &DynamicSettings::default()).await?;
    assert!(few.routers.is_empty() && few.sources.len() == 2);

    let nothing = Learned::default();
    assert!(nothing.tokens.is_empty() && nothing.queueing.is_empty());
    let learned = wva::policy::learn(&found.snapshot, &nothing, &settings, found.now);
    assert!(!learned.tokens.is_empty(), "no engine's size was learned");
    assert!(!learned.queueing.is_empty(), "no service time was learned");
    Ok(())
}

async fn what_ended_is_stale_and_what_cannot_be_asked_failed(cx: &Cx) -> Result {
    let url = cx.world.prometheus.url.clone();
    let mut settings = read_bundle(ANALYZERS).unwrap();
    // Ages of what ended are looked up in steps of a twentieth of the last one.
    settings.freshness = FreshnessBands {
        fresh: Duration::from_secs(4),
        stale: Duration::from_secs(8),
        unavailable: Duration::from_secs(20),
    };
    let served = [serve(cx, Dialect::Vllm, RouterMetricNames::Epp).await?];
    let running = async || -> Result<Value> {
        let found = situation(cx, &served, read(cx, &url, &settings).await?)?;
        let pod = found
            .snapshot
            .metrics
            .models
            .values()
            .flat_map(|pods| pods.values());
        let queue = found.snapshot.metrics.routers.values();
        let ages = pod
            .filter_map(|pod| pod.running)
            .chain(queue.filter_map(|router| router.queue_requests))
            .map(|sample| sample.age < settings.freshness.fresh);
        Ok(ages.collect::<Vec<bool>>().into())
    };
    let both = |wanted: bool| {
        let running = &running;
        eventually(format!("both are fresh: {wanted}"), SOON, async move || {
            let fresh = running().await?;
            if fresh == json!([wanted, wanted]) {
                return Ok(());
            }
            Err(Fault::new(format!("{fresh}")))
        })
    };
    both(true).await?;
    *served[0].silent.lock().unwrap() = true;
    both(false).await?;
    *served[0].silent.lock().unwrap() = false;
    both(true).await?;

    let nobody = read(cx, "http://127.0.0.1:9", &settings).await?;
    assert_eq!(nobody.failures.len(), SignalName::ALL.len());
    assert!(nobody.models.is_empty());
    Ok(())
}
