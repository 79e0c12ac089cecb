//! Model servers played by the test: the pages that vLLM would serve, one per running pod.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::background::Background;
use super::exporter::{Exporter, Page};
use super::fault::Result;
use super::servers::prometheus::Target;
use super::suite::Cx;
use super::world::World;

/// KV-cache blocks of an engine and tokens in a block.
const BLOCKS: u32 = 8_192;
const BLOCK_SIZE: u32 = 16;
/// Tokens of an average request.
const PROMPT_TOKENS: f64 = 500.0;
const OUTPUT_TOKENS: f64 = 200.0;

/// What one engine shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reading {
    /// Share of the KV cache in use, 0 to 1.
    pub(crate) kv_cache: f64,
    /// Requests in the engine's queue.
    pub(crate) waiting: f64,
    /// Requests in the running batch.
    pub(crate) running: f64,
    /// Requests finished per second.
    pub(crate) finished: f64,
}

impl Reading {
    pub(crate) const IDLE: Self = Self { kv_cache: 0.0, waiting: 0.0, running: 0.0, finished: 0.0 };
}

/// What the engines of a fleet show.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// Every engine the same, however many there are.
    Each(Reading),
    /// So much for the fleet, in equal parts; the KV cache of an engine is full at 1.
    Shared(Reading),
}

impl Load {
    /// So much KV cache for the fleet, in caches of one engine.
    pub(crate) fn cache(kv_cache: f64) -> Self {
        Self::Shared(Reading { kv_cache, ..Reading::IDLE })
    }

    /// So many requests that run in the fleet.
    pub(crate) fn running(running: f64) -> Self {
        Self::Shared(Reading { running, ..Reading::IDLE })
    }

    fn of_one_among(self, engines: usize) -> Reading {
        match self {
            Self::Each(reading) => reading,
            Self::Shared(total) => {
                let engines = f64::from(u32::try_from(engines.max(1)).unwrap_or(u32::MAX));
                Reading {
                    kv_cache: (total.kv_cache / engines).min(1.0),
                    waiting: (total.waiting / engines).ceil(),
                    running: (total.running / engines).ceil(),
                    finished: total.finished / engines,
                }
            }
        }
    }
}

/// Which pods a fleet plays, and for which model.
#[derive(Clone, Debug)]
struct FleetSpec {
    namespace: String,
    /// Label selector of the pods.
    selector: String,
    /// The `model_name` of the series.
    model: String,
}

/// One engine and one scrape target for each running pod of a selector, as long as it runs.
pub(crate) struct EngineFleet {
    _task: Background,
    state: Arc<Mutex<State>>,
}

struct State {
    /// The port of all pods; none where pages are at ports of their own.
    port: Option<u16>,
    load: Load,
    engines: BTreeMap<String, Engine>,
}

struct Engine {
    silent: bool,
    finished: f64,
    counted_to: Instant,
    // Dropped in this order: no more scrapes, then no more page.
    _target: Target,
    _page: Exporter,
}

impl EngineFleet {
    /// For the pods of a selector in the namespace of the case.
    pub(crate) fn start(cx: &Cx, selector: &str, model: &str, load: Load) -> Self {
        Self::follow(cx, [selector, model], load, None)
    }

    /// The same, with each page at the address of its pod and this port.
    pub(crate) fn at_pods(cx: &Cx, selector: &str, model: &str, load: Load, port: u16) -> Self {
        Self::follow(cx, [selector, model], load, Some(port))
    }

    fn follow(cx: &Cx, [selector, model]: [&str; 2], load: Load, port: Option<u16>) -> Self {
        let spec = FleetSpec {
            namespace: cx.namespace.name.clone(),
            selector: selector.to_owned(),
            model: model.to_owned(),
        };
        let state = Arc::new(Mutex::new(State { port, load, engines: BTreeMap::new() }));
        let task = Background::start(follow(Arc::clone(&cx.world), spec, Arc::clone(&state)));
        Self { _task: task, state }
    }

    /// Changes what the engines show from the next scrape on.
    pub(crate) fn set_load(&self, load: Load) {
        self.state.lock().unwrap().load = load;
    }

    /// Makes one pod's page fail, or work again; the pod itself stays ready.
    pub(crate) fn set_silent(&self, pod: &str, silent: bool) {
        if let Some(engine) = self.state.lock().unwrap().engines.get_mut(pod) {
            engine.silent = silent;
        }
    }

    /// The pods that have an engine.
    pub(crate) fn pods(&self) -> Vec<String> {
        self.state.lock().unwrap().engines.keys().cloned().collect()
    }
}

/// Follows the pods of the selector, and keeps one engine for each that runs.
async fn follow(world: Arc<World>, spec: FleetSpec, state: Arc<Mutex<State>>) {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &spec.namespace);
    let selection = watcher::Config::default().labels(&spec.selector);
    let events = watcher(pods, selection).default_backoff();
    futures::pin_mut!(events);
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(pod)) => {
                listed.push(pod.name_any());
                reflect(&world, &spec, &state, &pod).await;
            }
            Ok(watcher::Event::InitDone) => {
                state.lock().unwrap().engines.retain(|name, _| listed.contains(name));
            }
            Ok(watcher::Event::Apply(pod)) => reflect(&world, &spec, &state, &pod).await,
            Ok(watcher::Event::Delete(pod)) => {
                state.lock().unwrap().engines.remove(&pod.name_any());
            }
            Err(error) => eprintln!("engines of {}: {error}", spec.namespace),
        }
    }
}

async fn reflect(world: &World, spec: &FleetSpec, state: &Arc<Mutex<State>>, pod: &Pod) {
    let name = pod.name_any();
    let has_engine = state.lock().unwrap().engines.contains_key(&name);
    match (runs(pod), has_engine) {
        (true, false) => match engine(world, spec, state, pod).await {
            Ok(engine) => drop(state.lock().unwrap().engines.insert(name, engine)),
            Err(fault) => eprintln!("no engine for {name}: {fault}"),
        },
        (false, true) => drop(state.lock().unwrap().engines.remove(&name)),
        (true, true) | (false, false) => {}
    }
}

fn runs(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}

async fn engine(
    world: &World,
    spec: &FleetSpec,
    state: &Arc<Mutex<State>>,
    pod: &Pod,
) -> Result<Engine> {
    let pod_name = pod.name_any();
    let (owner, name, model) = (Arc::downgrade(state), pod_name.clone(), spec.model.clone());
    let port = state.lock().unwrap().port;
    let address = match port {
        Some(port) => (pod_address(pod)?, port),
        None => (Ipv4Addr::LOCALHOST.into(), 0),
    };
    let page = Exporter::start_at(address.into(), move || {
        let Some(state) = owner.upgrade() else {
            return Page::Unavailable;
        };
        state.lock().unwrap().page(&name, &model)
    })
    .await?;
    Ok(Engine {
        silent: false,
        finished: 0.0,
        counted_to: Instant::now(),
        _target: world.prometheus.scrape(&spec.namespace, &pod_name, page.address)?,
        _page: page,
    })
}

fn pod_address(pod: &Pod) -> Result<IpAddr> {
    let status = pod.status.as_ref();
    let address = status.and_then(|status| status.pod_ip.as_deref());
    Ok(address.unwrap_or_default().parse()?)
}

impl State {
    fn page(&mut self, pod: &str, model: &str) -> Page {
        let reading = self.load.of_one_among(self.engines.len());
        match self.engines.get_mut(pod) {
            Some(engine) if !engine.silent => {
                let now = Instant::now();
                engine.finished += reading.finished * (now - engine.counted_to).as_secs_f64();
                engine.counted_to = now;
                Page::Text(vllm_page(model, reading, engine.finished.floor()))
            }
            Some(_) | None => Page::Unavailable,
        }
    }
}

/// The page of a vLLM engine, cut down to what an autoscaler reads. The cache's shape carries no
/// model name, as in the original.
fn vllm_page(model: &str, reading: Reading, finished: f64) -> String {
    let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let labels = format!("engine=\"0\",model_name=\"{model}\"");
    let succeeded = format!("{labels},finished_reason=\"stop\"");
    let cache = format!(
        "engine=\"0\",block_size=\"{BLOCK_SIZE}\",num_gpu_blocks=\"{BLOCKS}\",\
         cache_dtype=\"auto\",gpu_memory_utilization=\"0.9\""
    );
    let (prompt, output) = (finished * PROMPT_TOKENS, finished * OUTPUT_TOKENS);
    [
        family("num_requests_running", "gauge", &labels, reading.running),
        family("num_requests_waiting", "gauge", &labels, reading.waiting),
        family("kv_cache_usage_perc", "gauge", &labels, reading.kv_cache),
        family("cache_config_info", "gauge", &cache, 1.0),
        family("request_success_total", "counter", &succeeded, finished),
        family("prompt_tokens_total", "counter", &labels, prompt),
        family("generation_tokens_total", "counter", &labels, output),
    ]
    .concat()
}

fn family(name: &str, kind: &str, labels: &str, value: f64) -> String {
    format!("# TYPE vllm:{name} {kind}\nvllm:{name}{{{labels}}} {value}\n")
}
