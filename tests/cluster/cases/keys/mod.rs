//! Every documented key, and what it changes: seen from outside, on a process that is started with it
//! and on one that is not.

mod collection;
mod connection;
mod election;
mod logging;
mod scope;
mod serving;
mod transition;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::oracle::{Asked, Oracle};
use crate::harness::suite::{Case, Cx};
use crate::harness::tools::repository;
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(40);

/// Keys, and the case that shows what they change.
struct Proof {
    keys: &'static [&'static str],
    case: Case,
}

impl Proof {
    fn of(
        keys: &'static [&'static str],
        name: &str,
        body: impl AsyncFn(&Cx) -> Result + Send + 'static,
    ) -> Self {
        let case = Case::shared(&format!("keys::{name}"), body);
        Self { keys, case }
    }
}

/// Cases about something larger, and the keys whose effect they show.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("filters::instance_label", &["CONTROLLER_INSTANCE"]),
    ("external_metrics_door::a_native_hpa_follows", &["EXTERNAL_METRICS_BIND_ADDRESS"]),
    (
        "external_scaler::keda_follows_while_the_leader_dies",
        &[
            "EXTERNAL_SCALER_BIND_ADDRESS",
            "EXTERNAL_SCALER_CERT_PATH",
            "EXTERNAL_SCALER_CERT_NAME",
            "EXTERNAL_SCALER_CERT_KEY",
            "EXTERNAL_SCALER_CLIENT_CA_PATH",
        ],
    ),
    ("external_scaler::a_killed_role_comes_back_and_keda_with_it", &["EXTERNAL_SCALER_SECURE"]),
    ("from_zero::a_router_is_shown_the_token", &["EPP_METRIC_READER_BEARER_TOKEN"]),
    ("settings::the_interval_drives_the_loop", &["GLOBAL_OPT_INTERVAL"]),
    ("targets::a_kind_that_appears_is_resolved_without_restart", &["HEALTH_PROBE_BIND_ADDRESS"]),
    ("leader_deaths::behind_keda", &["LEADER_ELECT", "LEADER_ELECTION_LEASE_DURATION"]),
    ("serving::is_for_authorized_readers_alone", &["METRICS_BIND_ADDRESS", "METRICS_SECURE"]),
    ("serving::takes_up_a_new_certificate", &["METRICS_CERT_PATH"]),
    ("filters::watched_namespace", &["POD_NAMESPACE", "WATCH_NAMESPACE"]),
    (
        "signals::silent_replicas_age",
        &[
            "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD",
            "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD",
            "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD",
        ],
    ),
    ("from_zero::routers_are_asked_a_few_at_a_time", &["SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY"]),
    (
        "webhooks::a_bad_object_is_refused_while_a_controller_answers",
        &["WEBHOOK_BIND_ADDRESS", "--disable-webhook"],
    ),
];

/// Keys that decide what a plan looks like, each a row of `tests/vectors/knobs.yaml`, which `wva plan` plays.
const PLANNED: &[&str] = &[
    "EXPERIMENTAL_PROACTIVE_MODEL",
    "WVA_LIMITED_MODE",
    "WVA_NODE_SELECTOR",
    "WVA_REPLICA_START_TIME",
];

/// Keys that never did anything, and are documented so.
const INERT: &[&str] = &["--zap-devel", "--zap-stacktrace-level", "--zap-time-encoding"];

fn proofs() -> Vec<Proof> {
    [
        collection::proofs(),
        connection::proofs(),
        election::proofs(),
        logging::proofs(),
        scope::proofs(),
        serving::proofs(),
        transition::proofs(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = proofs().into_iter().map(|proof| proof.case).collect();
    cases.push(Case::shared("keys::each_documented_one_is_shown", async |_: &Cx| {
        each_documented_one_is_shown()
    }));
    cases
}

/// A key of the documentation without a case fails here, and so does a case without its key.
fn each_documented_one_is_shown() -> Result {
    let page = repository().join("docs/user-guide/configuration.md");
    let page = fs::read_to_string(page)?;
    let with_state = |wanted: &str| -> BTreeSet<String> {
        let rows = page.lines().filter_map(documented);
        rows.filter(|(_, state)| state == wanted).map(|(key, _)| key).collect()
    };
    let known =
        |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(ToString::to_string).collect() };
    let cases: Vec<Case> = super::all();
    for (case, keys) in ELSEWHERE {
        if !cases.iter().any(|one| one.name() == *case) {
            return Err(Fault::new(format!("{keys:?}: there is no case {case}")));
        }
    }
    let moved = fs::read_to_string(repository().join("tests/vectors/knobs.yaml"))?;
    for key in PLANNED {
        assert!(moved.contains(&format!("- name: {key}\n")), "{key} moves no plan");
    }
    let shown: Vec<&str> = proofs()
        .iter()
        .flat_map(|proof| proof.keys)
        .chain(ELSEWHERE.iter().flat_map(|(_, keys)| *keys))
        .chain(PLANNED)
        .copied()
        .collect();
    assert_eq!(known(&shown).len(), shown.len(), "a key is shown twice");
    assert_eq!(with_state("active"), known(&shown));
    assert_eq!(with_state("inert"), known(INERT));
    Ok(())
}

/// Key and state of a row of the tables of keys; a key without a name of its own is its first flag.
fn documented(line: &str) -> Option<(String, String)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let ["", names, _, meaning, ""] = cells.as_slice() else {
        return None;
    };
    let key = names.strip_prefix('`')?.split('`').next()?;
    let state = if meaning.ends_with("(inert)") { "inert" } else { "active" };
    Some((key.to_owned(), state.to_owned()))
}

fn owned(settings: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let settings = settings.iter();
    settings.map(|(key, value)| (*key, (*value).to_owned())).collect()
}

/// A controller with these settings in its environment, that asks this Prometheus.
async fn asking(cx: &Cx, oracle: &Oracle, settings: &[(&'static str, &str)]) -> Result<Controller> {
    let url = format!("http://127.0.0.1:{}", oracle.port);
    let mut environment = vec![("PROMETHEUS_BASE_URL", url)];
    environment.extend(owned(settings));
    started(cx, environment, &[]).await
}

async fn started(
    cx: &Cx,
    environment: Vec<(&'static str, String)>,
    arguments: &[String],
) -> Result<Controller> {
    let spec =
        ControllerSpec { environment, arguments: arguments.to_vec(), ..ControllerSpec::scoped(cx) };
    Controller::start(cx, &spec).await
}

async fn first(oracle: &Oracle) -> Result<Asked> {
    eventually("a query", SOON, async || {
        let asked = oracle.asked().into_iter().next();
        asked.ok_or_else(|| Fault::new("none yet"))
    })
    .await
}

/// Waits until the process has given up, and answers the end of what it said.
async fn gave_up(controller: Controller) -> Result<String> {
    eventually("the process has ended", SOON, async || seen(&controller.server.pid(), &None))
        .await?;
    let text = controller.server.tail(20);
    seen(&controller.stop().await?, &Some(1))?;
    Ok(text)
}
