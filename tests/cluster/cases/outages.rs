//! Servers that go away: nothing is lowered, it is said, and all comes back by itself.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use super::leadership::{QUICK, candidate, lease};
use crate::harness::account::Account;
use crate::harness::bridge::Bridge;
use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::reader::Reader;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::Variants;
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const SOON: Duration = Duration::from_mins(1);
/// Longer than a lease, any request and the longest pause between two attempts to list.
const AWAY: Duration = Duration::from_secs(45);
/// Scrapes in a second, and for how long.
const SCRAPES: u64 = 200;
/// Scrapes without an answer at a time.
const UNDER_WAY: usize = 200;
const LOAD: Duration = Duration::from_secs(20);
/// Clients that want to stay, at least; and how many of them this side keeps open at a time, which is
/// more than the controller does.
const CLIENTS: usize = 4_000;
const IDLE: usize = 500;
/// More than a controller of one variant ever needs.
const MEMORY: u64 = 256 * 1024;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared(
            "outages::a_leader_without_api_server_lowers_nothing",
            a_leader_without_api_server,
        )
        .within(AWAY * 5),
        Case::exclusive("outages::readers_without_end_delay_no_cycle", readers),
    ]
}

/// A leader cannot renew its claim, which ends. It shows nothing then, so that no other count is
/// doubted, and lowers nothing; it claims anew when the API server is back.
async fn a_leader_without_api_server(cx: &Cx) -> Result {
    let port = cx.world.api.url.rsplit(':').next().unwrap_or_default();
    let bridge = Bridge::to(port.parse()?).await?;
    cx.namespace.deploy(&Workload::new(NAME, 3)).await?;
    let spec = ControllerSpec { api: Some(bridge.port), ..candidate(cx, "wva-0", QUICK) };
    let controller = Controller::start_ready(cx, &spec).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(3.0), SOON).await?;
    eventually("the count is stored", SOON, async || seen(&variants.stored(NAME).await?, &Some(3)))
        .await?;

    bridge.cut();
    let end = Instant::now() + AWAY;
    variants.publishes(NAME, None, SOON).await?;
    let text = controller.readiness().await?;
    let follows = text.contains("leadership: following") && text.contains("[!] write/lease: ");
    assert!(follows, "{text}");
    // Everybody may read this.
    assert!(!text.contains(NAME), "{text}");
    // One line for each request that fails, with its cause.
    let log = fs::read_to_string(controller.server.log())?;
    let failed =
        |line: &&str| line.contains("lease not renewed") && line.contains("cannot be reached");
    let failures: Vec<&str> = log.lines().filter(failed).collect();
    assert!(!failures.is_empty() && !log.contains("kube_client"), "{log}");
    cx.namespace.scale(NAME, 1).await?;
    let before = lease(cx).await?.spec.unwrap_or_default();
    while Instant::now() < end {
        seen(&variants.desired(NAME).await?, &None)?;
        seen(&variants.stored(NAME).await?, &Some(3))?;
        sleep(Duration::from_millis(500)).await;
    }
    bridge.heal();
    variants.publishes(NAME, Some(3.0), SOON).await?;
    let after = lease(cx).await?.spec.unwrap_or_default();
    assert!(after.renew_time > before.renew_time);
    let text = controller.readiness().await?;
    assert!(text.contains("leadership: leading"), "{text}");
    seen(&variants.stored(NAME).await?, &Some(3))?;
    variants.apply(NAME, NAME, json!({ "minReplicas": 4 })).await?;
    variants.publishes(NAME, Some(4.0), SOON).await
}

/// The most memory that a process has had, in kB.
fn peak(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    let number = number.ok_or_else(|| Fault::new(status.clone()))?;
    Ok(number.parse()?)
}

async fn cycle(reader: &Reader, controller: &Controller) -> Result<u64> {
    let page = format!("https://{}/debug/decisions", controller.metrics);
    let (status, text) = reader.get(&page).await?;
    let plan: Value = serde_json::from_str(&text).unwrap_or_default();
    let cycle = plan["cycle"].as_u64();
    cycle.ok_or_else(|| Fault::new(format!("no cycle yet: {status}")))
}

/// One client a beat that wants to stay: silent, slow with its headers, or with a body without end.
/// One that is shown the door already is as good.
async fn nuisance(address: String, number: usize) -> Option<TcpStream> {
    let mut client = TcpStream::connect(&address).await.ok()?;
    match number % 3 {
        0 => {}
        1 => client.write_all(b"GET /metrics HTTP/1.1\r\nX-Slow: ").await.ok()?,
        _ => {
            let head = b"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
            client.write_all(head).await.ok()?;
            let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
            while client.write_all(chunk.as_bytes()).await.is_ok() {}
        }
    }
    Some(client)
}

/// Scrapes that never pause next to clients that never finish, thousands of them: cycles keep their pace, and memory
/// stays what it is.
async fn readers(cx: &Cx) -> Result {
    let spec = ControllerSpec {
        arguments: vec!["--metrics-secure=true".to_owned()],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    let account = Account::create(&cx.namespace, "prometheus").await?;
    account.bind_shipped("rbac/metrics_reader.yaml").await?;
    account.bind_shipped("rbac/debug_reader.yaml").await?;
    let token = account.token().await?;
    let reader = Reader::anonymous().with_token(&token);
    let first = async || cycle(&reader, &controller).await;
    let begun = eventually("the first cycle", SOON, first).await?;
    let url = format!("https://{}/metrics", controller.metrics);
    let http = reqwest::Client::builder().no_proxy();
    let http = http.tls_danger_accept_invalid_certs(true).build()?;
    let mut scrapes = JoinSet::new();
    let mut clients = JoinSet::new();
    let mut idle = VecDeque::new();
    let mut opened = 0;
    let (mut asked, mut answered) = (0_u64, 0_u64);
    let mut beat = interval(Duration::from_millis(1_000 / SCRAPES));
    let started = Instant::now();
    while opened < CLIENTS || started.elapsed() < LOAD {
        beat.tick().await;
        // A slow machine has as many under way, and not more and more.
        if scrapes.len() < UNDER_WAY {
            asked += 1;
            let scrape = http.get(&url).bearer_auth(&token).send();
            scrapes.spawn(async move {
                let answer = scrape.await?.error_for_status()?;
                answer.text().await
            });
        }
        while let Some(scrape) = scrapes.try_join_next() {
            answered += u64::from(scrape.is_ok_and(|answer| answer.is_ok()));
        }
        clients.spawn(nuisance(controller.metrics.clone(), opened));
        opened += 1;
        while let Some(client) = clients.try_join_next() {
            idle.extend(client.ok().flatten());
        }
        while idle.len() > IDLE {
            idle.pop_front();
        }
    }
    while let Some(scrape) = scrapes.join_next().await {
        answered += u64::from(scrape.is_ok_and(|answer| answer.is_ok()));
    }
    let seconds = started.elapsed().as_secs();
    assert!(answered * 100 >= asked * 95, "{answered} answers of {asked}");
    let cycles = cycle(&reader, &controller).await? - begun;
    assert!(cycles * 2 >= seconds, "{cycles} cycles in {seconds} s");
    let pid = controller.server.pid().unwrap_or_default();
    let memory = peak(pid)?;
    assert!(memory < MEMORY, "{memory} kB");
    Ok(())
}
