//! Servers that go away: nothing is lowered, it is said, and all comes back by itself.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::harness::bridge::Bridge;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::oracle::{Oracle, Report};
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// Longer than any request, and than the watches need to notice.
const AWAY: Duration = Duration::from_secs(15);
/// Scrapes in a second, and for how long.
const SCRAPES: u64 = 200;
const LOAD: Duration = Duration::from_mins(1);
/// Clients that want to stay, at least; and how many of them this side keeps open at a time, which is
/// more than the controller does.
const CLIENTS: usize = 10_000;
const IDLE: usize = 500;
/// More than a controller of one variant ever needs.
const MEMORY: u64 = 256 * 1024;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "outages::an_api_server_that_is_cut_off_lowers_nothing",
            async |cx: &Cx| api_server(cx, Bridge::cut).await,
        ),
        Case::shared(
            "outages::an_api_server_that_is_silent_lowers_nothing",
            async |cx: &Cx| api_server(cx, Bridge::silence).await,
        ),
        Case::shared(
            "outages::a_prometheus_that_is_empty_lowers_nothing",
            prometheus,
        ),
        Case::exclusive("outages::readers_without_end_delay_no_cycle", readers),
    ]
}

async fn api_server(cx: &Cx, fail: fn(&Bridge)) -> Result {
    let port = cx.world.api.url.rsplit(':').next().unwrap_or_default();
    let bridge = Bridge::to(port.parse()?).await?;
    cx.namespace.deploy(&Workload::new(NAME, 3)).await?;
    let spec = ControllerSpec {
        api: Some(bridge.port),
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    controller.ready().await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    let text = controller.readiness().await?;
    assert!(text.contains("[+] mirror/Deployment: "), "{text}");

    fail(&bridge);
    // What changes meanwhile is not seen, and what is seen no longer is not taken for gone.
    cx.namespace.scale(NAME, 1).await?;
    let end = Instant::now() + AWAY;
    while Instant::now() < end {
        seen(&variants.desired(NAME).await?, &Some(3.0))?;
        sleep(Duration::from_millis(500)).await;
    }
    variants
        .apply(NAME, NAME, json!({ "minReplicas": 4 }))
        .await?;
    bridge.heal();
    variants.publishes(NAME, Some(4.0), SOON).await?;
    eventually("every mirror is heard of", SOON, async || {
        let text = controller.readiness().await?;
        let silent = text.lines().find(|line| line.starts_with("[!] mirror/"));
        seen(&silent.map(ToOwned::to_owned), &None)
    })
    .await
}

/// Full, then without anything, then full again.
async fn prometheus(cx: &Cx) -> Result {
    let workload = Workload::new(NAME, 2);
    cx.namespace.deploy(&workload).await?;
    cx.namespace.settles(NAME, 2, SOON).await?;
    let pods = cx.namespace.pods(&workload.selector()).await?;
    let report = |kv_cache: f64| -> Vec<Report> {
        let names = pods.iter().filter_map(|pod| pod.metadata.name.clone());
        names
            .map(|pod| Report {
                namespace: cx.namespace.name.clone(),
                model: MODEL.to_owned(),
                pod,
                kv_cache,
            })
            .collect()
    };
    let oracle = Oracle::plain().await?;
    oracle.report(report(0.95));
    let url = format!("http://127.0.0.1:{}", oracle.port);
    let spec = ControllerSpec {
        environment: vec![("PROMETHEUS_BASE_URL", url)],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start(cx, &spec).await?;
    controller.ready().await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    let state = |state| [("MetricsAvailable", state)];
    variants
        .says(NAME, &state("True/MetricsFound"), SOON)
        .await?;

    oracle.report(Vec::new());
    variants
        .says(NAME, &state("False/MetricsMissing"), SOON)
        .await?;
    seen(&variants.desired(NAME).await?, &Some(3.0))?;
    oracle.report(report(0.95));
    variants
        .says(NAME, &state("True/MetricsFound"), SOON)
        .await?;
    seen(&variants.desired(NAME).await?, &Some(3.0))
}

/// Resident memory of a process, in kB.
fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    let number = number.ok_or_else(|| Fault::new(status.clone()))?;
    Ok(number.parse()?)
}

async fn cycle(controller: &Controller) -> Result<u64> {
    let plan = controller.debug("decisions").await?;
    plan["cycle"]
        .as_u64()
        .ok_or_else(|| Fault::new("no cycle yet"))
}

/// One client a beat that wants to stay: silent, slow with its headers, or with a body without end.
/// One that is shown the door already is as good.
async fn nuisance(address: String, number: usize) -> Option<TcpStream> {
    let mut client = TcpStream::connect(&address).await.ok()?;
    match number % 3 {
        0 => {}
        1 => client
            .write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            .await
            .ok()?,
        _ => {
            let head = b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.write_all(head).await.ok()?;
            let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
            while client.write_all(chunk.as_bytes()).await.is_ok() {}
        }
    }
    Some(client)
}

/// Scrapes that never pause beside clients that never finish, ten thousand and more of them in a
/// minute: cycles come at their pace, and memory stays what it is.
async fn readers(cx: &Cx) -> Result {
    let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    controller.ready().await?;
    let begun = eventually("the first cycle", SOON, async || cycle(&controller).await).await?;
    let url = format!("http://{}/metrics", controller.metrics);
    let http = reqwest::Client::builder().no_proxy().build()?;
    let mut scrapes = JoinSet::new();
    let mut clients = JoinSet::new();
    let mut idle = VecDeque::new();
    let mut opened = 0;
    let mut beat = interval(Duration::from_millis(1_000 / SCRAPES));
    let started = Instant::now();
    while started.elapsed() < LOAD {
        beat.tick().await;
        let scrape = http.get(&url).send();
        scrapes.spawn(async move {
            let answer = scrape.await?.error_for_status()?;
            answer.text().await
        });
        clients.spawn(nuisance(controller.metrics.clone(), opened));
        opened += 1;
        while let Some(client) = clients.try_join_next() {
            idle.extend(client.ok().flatten());
        }
        while idle.len() > IDLE {
            idle.pop_front();
        }
    }
    let mut answered = 0_u64;
    while let Some(scrape) = scrapes.join_next().await {
        answered += u64::from(scrape.is_ok_and(|answer| answer.is_ok()));
    }
    let seconds = started.elapsed().as_secs();
    assert!(opened >= CLIENTS, "{opened} clients");
    assert!(
        answered > SCRAPES * LOAD.as_secs() / 2,
        "{answered} answers"
    );
    let cycles = cycle(&controller).await? - begun;
    assert!(cycles + 3 >= seconds, "{cycles} cycles in {seconds} s");
    let pid = controller.server.pid().unwrap_or_default();
    let memory = resident(pid)?;
    assert!(memory < MEMORY, "{memory} kB");
    Ok(())
}
