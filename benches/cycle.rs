//! One full cycle, from five queries over HTTP to the exposition: CPU time, queries and peak memory.
//!
//! `cargo bench --bench cycle` prints a table. Each size runs in a fresh process, since peak memory
//! never goes down, and Prometheus is played by another one, so that its work does not count.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark: what is unexpected ends it, and its table goes to the terminal"
)]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use wva::actors::emitter::Emitter;
use wva::actors::mailboxes::Mailboxes;
use wva::actors::{collector, optimizer, pump};
use wva::metrics::{Metrics, Visibility};
use wva::policy::accelerator::Accelerator;
use wva::policy::filter::WatchScope;
use wva::policy::key::{ModelKey, TargetKey, TargetKind, VariantKey};
use wva::policy::snapshot::{
    GenerationState, PodView, Readiness, ResolvedTarget, TargetView, VariantView,
};
use wva::policy::units::Replicas;
use wva::roles::Role;
use wva::settings::problem::Diagnostics;
use wva::settings::{Sources, start};
use wva::signals::{HttpPrometheus, PromAnswer, PromApi, PrometheusClientSettings};
use wva::state::SharedState;
use wva::state::claim::{Claim, ClaimDuration};
use wva_base::moment::WallTime;
use wva_supervise::{
    ActorRegistry, Address, ChildSpec, Clock, Epoch, ExitReason, Kit, SeedTree, run,
};

mod usage;

use usage::{cpu, peak_memory_kib};

const PODS: usize = 10;
const INTERVAL: &str = "12s";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments[at].parse().unwrap();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => serve(number(2)),
        Some("measure") => measure(number(2)),
        _ => {
            println!("| variants | pods | cycle | CPU ms | queries | response MB | peak RSS MB |");
            println!("|---|---|---|---|---|---|---|");
            for variants in [1_000, 10_000] {
                let this = std::env::current_exe().unwrap();
                let done =
                    Command::new(this).args(["measure", &variants.to_string()]).status().unwrap();
                assert!(done.success());
            }
        }
    }
}

fn namespace(variant: usize) -> String {
    format!("team-{}", variant % 50)
}

fn pod(variant: usize, pod: usize) -> String {
    format!("llama-8b-variant-{variant}-7c9d8b6f5-{pod:05}")
}

/// A Prometheus that knows the answer to each of the four queries for signals, and to the one for
/// variants with several counts.
fn serve(variants: usize) {
    let now = 1_790_000_000.5;
    let answer = |source: &str, value: &str| {
        let mut body =
            String::from(r#"{"status":"success","data":{"resultType":"vector","result":["#);
        for variant in 0..variants {
            for number in 0..PODS {
                let comma = if variant + number == 0 { "" } else { "," };
                write!(
                    body,
                    r#"{comma}{{"metric":{{"namespace":"{}","model_name":"meta/model-{}","pod":"{}","source":"{source}"}},"value":[{now},"{value}"]}}"#,
                    namespace(variant),
                    variant / 2,
                    pod(variant, number),
                )
                .unwrap();
            }
        }
        body.push_str("]}}");
        body
    };
    let (kv, queue) = ("vllm:kv_cache_usage_perc", "vllm:num_requests_waiting");
    let age = "1789999990.5";
    let answers = [
        answer(kv, "0.5"),
        answer(kv, age),
        answer(queue, "1"),
        answer(queue, age),
        // No other instance publishes a count.
        r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned(),
    ];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bytes: usize = answers.iter().map(String::len).sum();
    println!("{} {bytes}", listener.local_addr().unwrap());
    for stream in listener.incoming().flatten() {
        let answers = answers.clone();
        std::thread::spawn(move || while reply(&stream, &answers).is_some() {});
    }
}

/// One request of a connection; `None` at its end.
fn reply(stream: &TcpStream, answers: &[String; 5]) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut form = vec![0; length];
    reader.read_exact(&mut form).ok()?;
    let form = String::from_utf8(form).ok()?;
    let answer = match (form.contains("kv_cache_usage"), form.contains("timestamp")) {
        _ if form.contains("wva_desired_replicas") => &answers[4],
        (true, false) => &answers[0],
        (true, true) => &answers[1],
        (false, false) => &answers[2],
        (false, true) => &answers[3],
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        answer.len()
    )
    .ok()?;
    stream.write_all(answer.as_bytes()).ok()
}

fn view(variant: usize) -> VariantView {
    let (namespace, name) = (namespace(variant), format!("llama-8b-variant-{variant}"));
    let count = Replicas(u32::try_from(PODS).unwrap());
    let pods = (0..PODS).map(|number| PodView {
        name: pod(variant, number).into(),
        readiness: Readiness::Ready,
        created: WallTime(1_780_000_000_000),
        ready_since: None,
        node: None,
    });
    let key = VariantKey::new(&*namespace, &*name);
    let model = ModelKey::new(&*namespace, format!("meta/model-{}", variant / 2));
    let target = TargetView::Resolved(ResolvedTarget {
        key: TargetKey::new(&*namespace, TargetKind::Deployment, &*name),
        current: count,
        surge: Replicas::ZERO,
        ready: count,
        generation: GenerationState::Observed,
    });
    VariantView {
        accelerator: Accelerator::Named("NVIDIA-H100-80GB-HBM3".into()),
        desired: Some(count),
        pods: pods.collect(),
        ..VariantView::new(key, model, target)
    }
}

fn shared(url: &str, variants: usize) -> SharedState {
    let mut sources = Sources::default();
    for (name, text) in [
        ("PROMETHEUS_BASE_URL", url),
        ("PROMETHEUS_ALLOW_HTTP", "true"),
        ("GLOBAL_OPT_INTERVAL", INTERVAL),
    ] {
        sources.environment.insert(name.to_owned(), text.to_owned());
    }
    let scope =
        WatchScope { system_namespace: "system".into(), watch_namespace: None, instance: None };
    let generation = start(&sources).unwrap().generation;
    let series = Arc::new(Metrics::new(None).unwrap());
    let shared = SharedState::new(
        Clock::real(),
        scope,
        generation,
        series,
        "".into(),
        &Diagnostics::default(),
    );
    for variant in 0..variants {
        let view = view(variant);
        let epoch = Epoch::for_test(Role::Variant(view.key.clone()), 1);
        shared.writers.variants.board.put(&epoch, Arc::new(view)).unwrap();
    }
    let claim = Claim { term: 1, hold: ClaimDuration::Unlimited };
    let writer = &shared.writers.leadership.claim;
    let epoch = Epoch::for_test(Role::Leadership, 1);
    writer.publish(&epoch, Arc::new(claim)).unwrap();
    shared
}

#[tokio::main]
async fn measure(variants: usize) {
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let this = std::env::current_exe().unwrap();
    let mut prometheus = Command::new(this)
        .args(["serve", &variants.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(prometheus.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let (address, bytes) = address.trim().split_once(' ').unwrap();
    let bytes: usize = bytes.parse().unwrap();
    let url = format!("http://{address}");
    let shared = shared(&url, variants);
    let settings =
        PrometheusClientSettings { allow_http: true, ..PrometheusClientSettings::new(&*url) };
    let api = Arc::new(Counting {
        inner: HttpPrometheus::new(settings).unwrap(),
        queries: AtomicU64::new(0),
    });

    let actors = ActorRegistry::new();
    let before = cpu();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let kit = Kit { clock: shared.clock.clone(), seed: SeedTree::new(1), actors: actors.clone() };
    let tree = tokio::spawn(run(kit, tree(&shared, Arc::clone(&api)), async move {
        drop(stopped.await);
    }));
    let mut plans = shared.plan.follow();
    let mut spent = before;
    for cycle in ["first", "steady"] {
        plans.changed().await;
        // The plan is noted before it is shown.
        while is_at_work(&actors, &Role::Emitter) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let text = shared.series.exposition(Visibility::Shown).unwrap();
        assert!(text.len() > variants * 100);
        let now = cpu();
        let plan = shared.last_plan().unwrap();
        assert_eq!(plan.decisions.len(), variants);
        let metrics = shared.metrics.load();
        assert!(metrics.failures.is_empty(), "{:?}", metrics.failures);
        let samples = metrics.models.values().map(std::collections::BTreeMap::len).sum::<usize>();
        assert_eq!(samples, variants * PODS);
        println!(
            "| {variants} | {} | {cycle} | {} | {} | {} | {} |",
            variants * PODS,
            now.saturating_sub(spent).as_millis(),
            api.queries.swap(0, Ordering::Relaxed),
            bytes / 1_000_000,
            peak_memory_kib() / 1024,
        );
        spent = now;
    }
    stop.send(()).unwrap();
    assert_eq!(tree.await.unwrap(), ExitReason::Shutdown);
    prometheus.kill().unwrap();
    prometheus.wait().unwrap();
}

fn is_at_work(actors: &ActorRegistry<Role>, role: &Role) -> bool {
    let report = actors.report();
    let mut of_role = report.iter().filter(|one| one.role == *role);
    of_role.any(|one| one.sent != one.handled)
}

#[derive(Debug)]
struct Counting {
    inner: HttpPrometheus,
    queries: AtomicU64,
}

impl PromApi for Counting {
    fn query<'a>(&'a self, promql: &'a str, deadline: Duration) -> PromAnswer<'a> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        self.inner.query(promql, deadline)
    }
}

/// The part of the controller that runs every cycle.
fn tree(shared: &SharedState, api: Arc<Counting>) -> Vec<ChildSpec<Role>> {
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let of_emitter = Arc::clone(&mailboxes);
    let (readers, published) = (shared.readers.clone(), Arc::clone(&shared.writers.emitter));
    let first =
        optimizer::Optimizer::new(readers.clone(), mailboxes.plans.clone(), Address::vacant());
    let collector = collector::Collector::new(
        readers.clone(),
        Arc::clone(&shared.writers.collector),
        api,
        None,
        mailboxes.addresses.optimizer.clone(),
    );
    vec![
        wva_supervise::supervisor(
            Role::Egress,
            vec![wva_supervise::machine(
                Role::Emitter,
                &mailboxes.addresses.emitter,
                move |epoch| {
                    let (shared, writers) = (readers.clone(), Arc::clone(&published));
                    Emitter::new(shared, writers, epoch, Arc::clone(&of_emitter))
                },
            )],
        ),
        wva_supervise::supervisor(
            Role::Engine,
            vec![
                wva_supervise::machine(
                    Role::Optimizer,
                    &mailboxes.addresses.optimizer,
                    move |_| first.clone(),
                ),
                pump(Role::Collector, &Address::vacant(), collector),
            ],
        ),
    ]
}
