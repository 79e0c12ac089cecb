//! Every documented key, and what it changes: seen from outside, on a process that is started with it
//! and on one that is not.

mod collection;
mod connection;
mod election;
mod logging;
mod planning;
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

/// Keys whose effect is shown by cases about something larger.
const ELSEWHERE: &[(&str, &str)] = &[
    ("CONTROLLER_INSTANCE", "filters::instance_label"),
    (
        "EXTERNAL_METRICS_BIND_ADDRESS",
        "external_metrics_door::a_native_hpa_follows",
    ),
    (
        "EXTERNAL_SCALER_BIND_ADDRESS",
        "external_scaler::keda_follows_while_the_leader_dies",
    ),
    (
        "EXTERNAL_SCALER_CERT_PATH",
        "external_scaler::keda_follows_while_the_leader_dies",
    ),
    (
        "EXTERNAL_SCALER_CERT_NAME",
        "external_scaler::keda_follows_while_the_leader_dies",
    ),
    (
        "EXTERNAL_SCALER_CERT_KEY",
        "external_scaler::keda_follows_while_the_leader_dies",
    ),
    (
        "EXTERNAL_SCALER_CLIENT_CA_PATH",
        "external_scaler::keda_follows_while_the_leader_dies",
    ),
    (
        "EXTERNAL_SCALER_SECURE",
        "external_scaler::a_killed_role_comes_back_and_keda_with_it",
    ),
    (
        "EPP_METRIC_READER_BEARER_TOKEN",
        "from_zero::a_router_is_shown_the_token",
    ),
    (
        "GLOBAL_OPT_INTERVAL",
        "settings::the_interval_drives_the_loop",
    ),
    (
        "HEALTH_PROBE_BIND_ADDRESS",
        "process::kinds_may_appear_late",
    ),
    ("LEADER_ELECT", "leadership::a_follower_takes_over"),
    (
        "LEADER_ELECTION_LEASE_DURATION",
        "leadership::a_follower_takes_over",
    ),
    (
        "METRICS_BIND_ADDRESS",
        "serving::is_for_authorized_readers_alone",
    ),
    ("METRICS_CERT_PATH", "serving::takes_up_a_new_certificate"),
    ("METRICS_SECURE", "serving::is_for_authorized_readers_alone"),
    ("POD_NAMESPACE", "filters::watched_namespace"),
    (
        "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD",
        "signals::silent_replicas_age",
    ),
    (
        "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD",
        "signals::silent_replicas_age",
    ),
    (
        "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD",
        "signals::silent_replicas_age",
    ),
    (
        "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
        "from_zero::routers_are_asked_a_few_at_a_time",
    ),
    ("WATCH_NAMESPACE", "filters::watched_namespace"),
    (
        "WEBHOOK_BIND_ADDRESS",
        "webhooks::a_bad_object_is_refused_while_a_controller_answers",
    ),
];

/// Keys that never did anything, and are documented so.
const INERT: &[&str] = &[
    "--disable-webhook",
    "--zap-devel",
    "--zap-stacktrace-level",
    "--zap-time-encoding",
];

fn proofs() -> Vec<Proof> {
    [
        collection::proofs(),
        connection::proofs(),
        election::proofs(),
        logging::proofs(),
        planning::proofs(),
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
    cases.push(Case::shared(
        "keys::each_documented_one_is_shown",
        async |_: &Cx| each_documented_one_is_shown(),
    ));
    cases
}

/// A key of the documentation without a case fails here, and so does a case without its key.
fn each_documented_one_is_shown() -> Result {
    let page = repository().join("docs/user-guide/configuration.md");
    let page = fs::read_to_string(page)?;
    let with_state = |wanted: &str| -> BTreeSet<String> {
        let rows = page.lines().filter_map(documented);
        rows.filter(|(_, state)| state == wanted)
            .map(|(key, _)| key)
            .collect()
    };
    let known =
        |keys: &[&str]| -> BTreeSet<String> { keys.iter().map(ToString::to_string).collect() };
    let cases: Vec<Case> = super::all();
    for (key, case) in ELSEWHERE {
        if !cases.iter().any(|one| one.name() == *case) {
            return Err(Fault::new(format!("{key}: there is no case {case}")));
        }
    }
    let shown: Vec<&str> = proofs()
        .iter()
        .flat_map(|proof| proof.keys)
        .chain(ELSEWHERE.iter().map(|(key, _)| key))
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
    let [_, key, flags, _, _, _, _, state, ..] = cells.as_slice() else {
        return None;
    };
    let name = |cell: &str| cell.split('`').nth(1).map(ToOwned::to_owned);
    let key = name(key).or_else(|| name(flags))?;
    Some((key, (*state).to_owned()))
}

/// A controller with these settings in its environment, that asks this Prometheus.
async fn asking(cx: &Cx, oracle: &Oracle, settings: &[(&'static str, &str)]) -> Result<Controller> {
    let url = format!("http://127.0.0.1:{}", oracle.port);
    let mut environment = vec![("PROMETHEUS_BASE_URL", url)];
    environment.extend(
        settings
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned())),
    );
    started(cx, environment, &[]).await
}

async fn started(
    cx: &Cx,
    environment: Vec<(&'static str, String)>,
    arguments: &[String],
) -> Result<Controller> {
    let spec = ControllerSpec {
        environment,
        arguments: arguments.to_vec(),
        ..ControllerSpec::scoped(cx)
    };
    Controller::start(cx, &spec).await
}

/// The first query.
async fn first(oracle: &Oracle) -> Result<Asked> {
    eventually("a query", SOON, async || {
        let asked = oracle.asked().into_iter().next();
        asked.ok_or_else(|| Fault::new("none yet"))
    })
    .await
}

/// Waits until the process has given up, and answers the end of what it said.
async fn gave_up(controller: Controller) -> Result<String> {
    eventually("the process has ended", SOON, async || {
        seen(&controller.server.pid(), &None)
    })
    .await?;
    let text = controller.server.tail(20);
    seen(&controller.stop().await?, &Some(1))?;
    Ok(text)
}

async fn gauge_is(controller: &Controller, name: &str, wanted: f64) -> Result {
    eventually(format!("{name} is {wanted}"), SOON, async || {
        seen(&controller.value(name, &[]).await?, &Some(wanted))
    })
    .await
}

/// Waits until a part of the verbose readiness is there.
async fn readiness_has(controller: &Controller, part: &str) -> Result<String> {
    eventually(format!("readiness has {part}"), SOON, async || {
        let text = controller.readiness().await?;
        if text.contains(part) {
            Ok(text)
        } else {
            Err(Fault::new(text))
        }
    })
    .await
}
