//! Config dies before and after each of its occasions; what it leaves behind is the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Config;
use crate::actors::mailboxes::Mailboxes;
use crate::actors::variants::tests::{run_until, shared, store};
use crate::metrics::Visibility;
use crate::roles::Role;
use crate::settings::Sources;
use crate::state::SharedState;
use crate::state::mirrors::tests::list;
use wva_supervise::{ActorRegistry, ExitReason, KillAt};

const MAIN: &str = "wva-variantautoscaling-config";
const SATURATION: &str = "wva-saturation-scaling-config";
/// Longer than any delay before a restart.
const A_WHILE: Duration = Duration::from_secs(10);

/// What the first events on the two maps say.
const MISSPELT: [&str; 2] = [
    "main ConfigMap: no setting is named \"GLOBAL_OPT_INTERVALL\"; did you mean \"GLOBAL_OPT_INTERVAL\"?",
    "saturation ConfigMap of namespace ns, entry \"default\": unknown field \"kvSpareTriggr\"; did you mean \"kvSpareTrigger\"?",
];

/// A ConfigMap: namespace, name and data.
type Map = (&'static str, &'static str, Value);

/// What the cluster holds, one state after the other.
fn states() -> Vec<Vec<Map>> {
    let main = |data| ("system", MAIN, data);
    let local = |entry: &str| ("ns", SATURATION, json!({ "default": entry }));
    let live = json!({ "GLOBAL_OPT_INTERVAL": "30s" });
    let misspelt = json!({ "GLOBAL_OPT_INTERVAL": "30s", "GLOBAL_OPT_INTERVALL": "20s" });
    let refused = json!({ "GLOBAL_OPT_INTERVAL": "20s", "LEADER_ELECTION_ID": "other" });
    vec![
        vec![main(misspelt.clone())],
        vec![main(misspelt), local("kvSpareTriggr: 0.2")],
        vec![main(live)],
        vec![main(refused.clone())],
        vec![
            main(json!({ "GLOBAL_OPT_INTERVAL": "soon", "LOG_LEVEL": "warn" })),
            local("kvSpareTrigger: 0.2"),
        ],
        vec![main(refused.clone()), local("kvSpareTrigger: much")],
        vec![],
        vec![main(refused), local("kvSpareTrigger: 0.3")],
    ]
}

/// What is left after all of them.
#[derive(Debug, PartialEq)]
struct Left {
    settings: String,
    series: BTreeMap<String, String>,
    events: Vec<(String, String, String)>,
}

fn environment() -> Sources {
    let mut fixed = Sources::default();
    for (name, text) in
        [("PROMETHEUS_BASE_URL", "http://prometheus"), ("PROMETHEUS_ALLOW_HTTP", "true")]
    {
        fixed.environment.insert(name.to_owned(), text.to_owned());
    }
    fixed
}

fn store_maps(shared: &SharedState, version: usize, maps: Vec<Map>) {
    let maps = maps.into_iter().map(|(namespace, name, data)| {
        json!({
            "metadata": {
                "namespace": namespace, "name": name, "uid": name,
                "resourceVersion": version.to_string(),
            },
            "data": data,
        })
    });
    list::<ConfigMap>(&shared.writers.mirrors.config_maps, maps);
}

fn left(shared: &SharedState, events: Vec<(String, String, String)>) -> Left {
    let in_force = shared.settings.load();
    let text = shared.series.exposition(Visibility::Shown).unwrap();
    let series = text
        .lines()
        .filter(|line| line.starts_with("wva_config_"))
        .filter(|line| !line.starts_with("wva_config_generation"))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    Left {
        settings: format!(
            "{:?} {:?} {:?}",
            in_force.generation.statics,
            in_force.generation.dynamic,
            in_force.schedule.interval()
        ),
        series: series.collect(),
        events,
    }
}

/// Lives through all states, and dies once if asked to; answers what is left and how often it died.
async fn live(kill: Option<KillAt>) -> (Left, u64) {
    let shared = shared();
    store(&shared, &["v"]);
    let actors = ActorRegistry::new();
    if let Some(kill) = kill {
        actors.kill_at(&Role::Config, kill);
    }
    let fixed = environment();
    let mailboxes = Arc::new(Mailboxes::new(&shared.series));
    let of_role = Arc::clone(&mailboxes);
    let of_config = shared.readers.clone();
    let writers = Arc::clone(&shared.writers.config);
    let config = wva_supervise::machine(Role::Config, &mailboxes.addresses.config, move |epoch| {
        let (shared, fixed) = (of_config.clone(), fixed.clone());
        let writers = Arc::clone(&writers);
        let mailboxes = Arc::clone(&of_role);
        Config::new(shared, writers, epoch, fixed, mailboxes, None)
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let end = async move { drop(stopped.await) };
    let running = run_until(end, &shared, actors.clone(), config);
    let mut recorded = Vec::new();
    for (version, maps) in states().into_iter().enumerate() {
        store_maps(&shared, version, maps);
        mailboxes.config.insert(());
        sleep(A_WHILE).await;
        while let Some(event) = mailboxes.events.last().map(|last| last.notice) {
            let name = event.regarding.name.to_string();
            recorded.push((name, event.reason.as_str().to_owned(), event.note));
        }
    }
    let reports = actors.report();
    let report = reports.iter().find(|report| report.role == Role::Config);
    let report = report.unwrap().clone();
    assert_eq!(report.sent, report.handled);
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap(), ExitReason::Shutdown);
    (left(&shared, recorded), report.restarts)
}

#[tokio::test(start_paused = true)]
async fn killed_before_or_after_each_of_its_occasions_it_leaves_the_same() {
    let (undisturbed, restarts) = live(None).await;
    assert_eq!(restarts, 0);
    let reasons: Vec<&str> = undisturbed.events.iter().map(|(_, reason, _)| &**reason).collect();
    // A refused key three times, each with a version of its own; what is misspelt and a number that is none, in either
    // map.
    let refusals = reasons.iter().filter(|reason| **reason == "ImmutableConfigChangeRejected");
    assert_eq!(refusals.count(), 3, "{reasons:?}");
    let nonsense = reasons.iter().filter(|reason| **reason == "InvalidConfigEntry");
    assert_eq!(nonsense.count(), 4, "{reasons:?}");
    let first = [MAIN, SATURATION].map(|name| {
        let mut events = undisturbed.events.iter();
        let (_, reason, note) = events.find(|event| event.0 == name).unwrap();
        assert_eq!(reason, "InvalidConfigEntry");
        note.as_str()
    });
    assert_eq!(first, MISSPELT);
    assert!(undisturbed.settings.contains("20s"), "{}", undisturbed.settings);

    // The first state is there when it wakes.
    let occasions = u64::try_from(states().len()).unwrap();
    for n in 1..=occasions {
        for kill in [KillAt::Before(n), KillAt::After(n)] {
            let (left, restarts) = live(Some(kill)).await;
            assert_eq!(restarts, 1, "{kill:?}");
            assert_eq!(left, undisturbed, "{kill:?}");
        }
    }
}
