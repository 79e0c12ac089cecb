//! Settings that change while the controller runs: what is applied, what is refused, what is reported.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec, Pace};
use crate::harness::engine::{EngineFleet, Load, Reading};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::{Namespace, Workload};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);
pub(super) const MAIN: &str = "wva-variantautoscaling-config";
pub(super) const SATURATION: &str = "wva-saturation-scaling-config";
const GENERATION: &str = "wva_config_generation";
const INTERVAL: &str = "wva_config_optimization_interval_seconds";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, settings::the_interval_drives_the_loop),
        case!(shared, settings::immutable_keys_are_refused_and_the_rest_applied),
        case!(shared, settings::a_namespace_overrides_for_as_long_as_it_says_so),
        case!(shared, settings::an_older_name_counts_and_is_reported),
    ]
}

/// A controller that takes its interval from the main ConfigMap.
async fn controller(cx: &Cx, name: &str) -> Result<Controller> {
    let spec = ControllerSpec { name, pace: Pace::Settings, ..ControllerSpec::scoped(cx) };
    Controller::start_ready(cx, &spec).await
}

/// Number of the last cycle, and when it was made, in seconds since the process started.
async fn last_cycle(controller: &Controller) -> Result<(u64, f64)> {
    let plan = controller.debug("decisions").await?;
    let at = &plan["at"]["monotonic"];
    let part = |name: &str| at[name].as_f64();
    match (plan["cycle"].as_u64(), part("secs"), part("nanos")) {
        (Some(cycle), Some(secs), Some(nanos)) => Ok((cycle, secs + nanos / 1e9)),
        _ => Err(Fault::new(format!("no cycle yet: {plan}"))),
    }
}

/// Waits for the cycle after this one, and answers how much later it was made. Where several came meanwhile, it is their mean.
async fn gap_after(controller: &Controller, last: (u64, f64), within: Duration) -> Result<f64> {
    let what = format!("cycle {}", last.0 + 1);
    let (cycle, at) = eventually(what, within, async || {
        let next = last_cycle(controller).await?;
        if next.0 > last.0 { Ok(next) } else { Err(Fault::new(format!("still at {next:?}"))) }
    })
    .await?;
    let cycles = u32::try_from(cycle - last.0)?;
    Ok((at - last.1) / f64::from(cycles))
}

/// 60 s → 2 s → 10 s, seen in when the cycles were made.
async fn the_interval_drives_the_loop(cx: &Cx) -> Result {
    let system = cx.system().await?;
    let set = async |interval: &str| {
        let data = json!({ "GLOBAL_OPT_INTERVAL": interval });
        system.configure(MAIN, data).await
    };
    set("60s").await?;
    let controller = controller(cx, "wva-0").await?;
    controller.shows(INTERVAL, 60.0, SOON).await?;
    let begun = eventually("the first cycle", SOON, async || last_cycle(&controller).await).await?;

    set("2s").await?;
    controller.shows(INTERVAL, 2.0, SOON).await?;
    // The first cycle at the new pace comes long before the old tick.
    let first = gap_after(&controller, begun, SOON).await?;
    assert!(first < 40.0, "{first} s");
    let mut last = last_cycle(&controller).await?;
    for _ in 0..3 {
        // A busy machine stretches a gap, and none to the old interval.
        let gap = gap_after(&controller, last, SOON).await?;
        assert!(gap < 40.0, "{gap} s at an interval of 2 s");
        last = last_cycle(&controller).await?;
    }

    set("10s").await?;
    controller.shows(INTERVAL, 10.0, SOON).await?;
    let last = last_cycle(&controller).await?;
    let gap = gap_after(&controller, last, SOON).await?;
    assert!(gap > 7.0, "{gap} s at an interval of 10 s");
    Ok(())
}

/// Events on a ConfigMap with this reason.
async fn events(namespace: &Namespace, name: &str, reason: &str) -> Result<Vec<String>> {
    let found = namespace.events(reason).await?;
    let ours = found.into_iter().filter(|event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
        regarding == Some(name)
    });
    Ok(ours.filter_map(|event| event.note).collect())
}

/// Both keys of one edit: the fixed one is refused by event, log and counter and keeps its value,
/// the other is applied. A key that the environment shadows is refused in the same way, and what is
/// secret in it is not repeated.
async fn immutable_keys_are_refused_and_the_rest_applied(cx: &Cx) -> Result {
    const REASON: &str = "ImmutableConfigChangeRejected";
    let system = cx.system().await?;
    let set = async |data: Value| system.configure(MAIN, data).await;
    set(json!({ "GLOBAL_OPT_INTERVAL": "60s", "LEADER_ELECTION_ID": "one" })).await?;
    let controller = controller(cx, "wva-0").await?;
    controller.shows(GENERATION, 1.0, SOON).await?;
    let rejected = async |key: &str| {
        let name = "wva_config_changes_rejected_total";
        controller.value(name, &[("key", key)]).await
    };
    seen(&rejected("LEADER_ELECTION_ID").await?, &None)?;

    set(json!({ "GLOBAL_OPT_INTERVAL": "30s", "LEADER_ELECTION_ID": "two" })).await?;
    controller.shows(INTERVAL, 30.0, SOON).await?;
    controller.shows(GENERATION, 2.0, SOON).await?;
    seen(&rejected("LEADER_ELECTION_ID").await?, &Some(1.0))?;
    let [note] = one_event(system, REASON, 1).await?;
    for part in ["Leader election ID", "\"one\"", "\"two\"", "rejected"] {
        assert!(note.contains(part), "{part} is not in {note}");
    }
    let readiness = controller.readiness().await?;
    let waits = "edited, and read at the next start: Leader election ID";
    assert!(readiness.contains(waits), "{readiness}");
    let log = std::fs::read_to_string(controller.server.log())?;
    assert!(log.contains("Attempted to change immutable parameters"));
    assert!(log.contains("Updated optimization interval"));

    set(json!({
        "GLOBAL_OPT_INTERVAL": "20s", "LEADER_ELECTION_ID": "two",
        "PROMETHEUS_BASE_URL": "https://user:hunter2@elsewhere",
    }))
    .await?;
    controller.shows(INTERVAL, 20.0, SOON).await?;
    controller.shows(GENERATION, 3.0, SOON).await?;
    seen(&rejected("PROMETHEUS_BASE_URL").await?, &Some(1.0))?;
    let notes = one_event::<2>(system, REASON, 2).await?;
    let second = notes.iter().find(|note| note.contains("Prometheus BaseURL"));
    let second = second.ok_or_else(|| Fault::new(format!("{notes:?}")))?;
    assert!(second.contains("elsewhere"), "{second}");
    let log = std::fs::read_to_string(controller.server.log())?;
    assert!(!second.contains("hunter2") && !log.contains("hunter2"), "{second}");
    Ok(())
}

/// Exactly so many different events of a reason on the main ConfigMap.
async fn one_event<const N: usize>(
    system: &Namespace,
    reason: &str,
    wanted: usize,
) -> Result<[String; N]> {
    let notes = eventually(format!("{wanted} events {reason}"), SOON, async || {
        let notes = events(system, MAIN, reason).await?;
        seen(&notes.len(), &wanted)?;
        Ok(notes)
    })
    .await?;
    <[String; N]>::try_from(notes).map_err(|notes| Fault::new(format!("{notes:?}")))
}

/// Created, edited into nonsense, repaired, deleted. Two engines at 60 % leave 0.2 to the threshold:
/// enough for the global trigger of 0.1, too little for the namespace's own of 0.3.
async fn a_namespace_overrides_for_as_long_as_it_says_so(cx: &Cx) -> Result {
    let pods = cx.namespace.run("llama", 2, SOON).await?;
    let busy = Reading { kv_cache: 0.6, ..Reading::IDLE };
    let _fleet = EngineFleet::start(cx, &pods, MODEL, Load::Each(busy));
    cx.namespace.apply(variant("v", "llama", &json!({}))).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let wants_more = async |wanted: bool| {
        eventually(format!("growth is {wanted}"), SOON * 3, async || {
            let plan = controller.debug("decisions").await?;
            let key = format!(
                "/models/{}~1{}/percentage/scale_up",
                cx.namespace.name,
                MODEL.replace('/', "~1")
            );
            seen(&plan.pointer(&key), &Some(&json!(wanted)))
        })
        .await
    };
    wants_more(false).await?;
    controller.shows(GENERATION, 1.0, SOON).await?;
    let invalid = async || {
        let labels = [("namespace", cx.namespace.name.as_str())];
        controller.value("wva_config_entries_invalid", &labels).await
    };

    let set = async |entry: &str| {
        let data = json!({ "default": entry });
        cx.namespace.configure(SATURATION, data).await
    };
    set("kvSpareTrigger: 0.3").await?;
    wants_more(true).await?;
    controller.shows(GENERATION, 2.0, SOON).await?;
    seen(&invalid().await?, &None)?;

    set("kvSpareTrigger: a lot").await?;
    eventually("the nonsense is counted", SOON, async || seen(&invalid().await?, &Some(1.0)))
        .await?;
    nonsense_is_reported(cx, "kvSpareTrigger").await?;
    // What was in force stays so.
    wants_more(true).await?;
    seen(&controller.value(GENERATION, &[]).await?, &Some(2.0))?;

    set("kvSpareTrigger: 0.05").await?;
    wants_more(false).await?;
    controller.shows(GENERATION, 3.0, SOON).await?;
    eventually("nothing is invalid any more", SOON, async || seen(&invalid().await?, &None))
        .await?;

    set("kvSpareTrigger: 0.3").await?;
    wants_more(true).await?;
    let maps: Api<ConfigMap> = cx.namespace.api();
    maps.delete(SATURATION, &DeleteParams::default()).await?;
    wants_more(false).await
}

/// Waits for the one event on the namespace's own map that names the field.
async fn nonsense_is_reported(cx: &Cx, field: &str) -> Result {
    eventually("the nonsense is reported", SOON, async || {
        let notes = events(&cx.namespace, SATURATION, "InvalidConfigEntry").await?;
        seen(&notes.len(), &1)?;
        if notes.iter().all(|note| note.contains(field)) {
            Ok(())
        } else {
            Err(Fault::new(format!("{notes:?}")))
        }
    })
    .await
}

/// A map under a name of earlier versions acts, and what is wrong with it is reported on it. Its inline
/// switch for zero is that of the model.
async fn an_older_name_counts_and_is_reported(cx: &Cx) -> Result {
    const OLDER: &str = "saturation-scaling-config";
    cx.namespace.deploy(&Workload::new("llama", 0)).await?;
    cx.namespace.apply(variant("v", "llama", &json!({}))).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    // Without a minimum of its own a model keeps one replica, unless it may go to zero.
    variants.publishes("v", Some(1.0), SOON).await?;

    let system = cx.system().await?;
    let entry = json!({
        "default": "scaleToZero: {enabled: true}",
        "other": "{modelId: other, namespace: ns, kvSpareTrigger: much}",
    });
    system.configure(OLDER, entry).await?;
    eventually("the older map is reported", SOON, async || {
        let notes = events(system, OLDER, "InvalidConfigEntry").await?;
        seen(&notes.len(), &1)
    })
    .await?;
    let decision = async || controller.debug("decisions").await;
    eventually("the minimum is 0", SOON, async || {
        let plan = decision().await?;
        let key = format!("/decisions/{}~1v/steps/3/why", cx.namespace.name);
        let wanted = json!({ "code": "WithinBounds", "min": 0, "max": null });
        seen(&plan.pointer(&key), &Some(&wanted))
    })
    .await?;

    // What is said once is not said again for something else.
    let said = || -> Result<[usize; 2]> {
        let log = std::fs::read_to_string(controller.server.log())?;
        let lines = |part: &str| log.lines().filter(|line| line.contains(part)).count();
        Ok([lines("has an older name"), lines("kvSpareTrigger")])
    };
    let before = said()?;
    assert_eq!(before, [1, 1]);
    let broken = json!({ "default": "[" });
    let classes = "service-classes-config";
    system.configure(classes, broken).await?;
    eventually("the other map is reported", SOON, async || {
        let notes = events(system, classes, "InvalidConfigEntry").await?;
        seen(&notes.len(), &1)
    })
    .await?;
    assert_eq!(said()?, before);
    let readiness = controller.readiness().await?;
    assert!(readiness.contains("[!] config: "), "{readiness}");
    let refusals = "wva_config_refusals_total";
    let labels = [("config_map", "saturation")];
    seen(&controller.value(refusals, &labels).await?, &Some(1.0))
}
