//! PodAutoscalers: the controller reads the pages of pods and scales their Deployment itself, or has an HPA do it.

use std::time::Duration;

use futures::future::try_join4;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};
use wva::api::pod_autoscaler::PodAutoscaler;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::namespace::{Workload, condition_of};
use crate::harness::pod_autoscaler::{TARGET, autoscaler};
use crate::harness::ports;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{MODEL, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "chat";
/// Ticks come every ten seconds, and a step may double.
const SOON: Duration = Duration::from_secs(90);

pub(crate) fn cases() -> Vec<Case> {
    let minutes = Duration::from_mins;
    vec![
        Case::shared("pod_autoscalers::kpa_and_apa_follow_load", kpa_and_apa).within(minutes(5)),
        case!(shared, pod_autoscalers::an_outage_lowers_nothing).within(minutes(5)),
        case!(shared, pod_autoscalers::strategies_change_live).within(minutes(5)),
        case!(shared, pod_autoscalers::the_oldest_scales).within(minutes(5)),
    ]
}

/// A Deployment whose pods serve pages; its autoscaler has its name.
struct Stage<'a> {
    cx: &'a Cx,
    name: &'a str,
    fleet: EngineFleet,
    history: History,
    port: u16,
}

async fn started(cx: &Cx) -> Result<Controller> {
    Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await
}

impl<'a> Stage<'a> {
    async fn set(cx: &'a Cx, name: &'a str, replicas: i32, running: f64) -> Result<Self> {
        let workload = Workload::new(name, replicas);
        cx.namespace.deploy(&workload).await?;
        let history = History::follow(&cx.namespace, name);
        cx.namespace.settles(name, replicas, SOON).await?;
        let port = ports::free()?;
        let fleet =
            EngineFleet::at_pods(cx, &workload.selector(), MODEL, Load::running(running), port);
        Ok(Self { cx, name, fleet, history, port })
    }

    fn autoscaler(&self, name: &str, strategy: &str) -> Value {
        let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": self.name });
        autoscaler(name, strategy, &target, self.port)
    }

    async fn status(&self, name: &str) -> Result<Value> {
        Ok(objects(self.cx).get(name).await?.data["status"].take())
    }

    async fn history_of(&self, name: &str) -> Result<Vec<Value>> {
        let status = self.status(name).await?;
        Ok(status["scalingHistory"].as_array().cloned().unwrap_or_default())
    }

    async fn version(&self) -> Result<Option<String>> {
        Ok(objects(self.cx).get(self.name).await?.metadata.resource_version)
    }

    /// Status and reason of a condition; empty while there is none.
    async fn condition(&self, name: &str, kind: &str) -> Result<(String, String)> {
        let object = objects(self.cx).get(name).await?;
        let [status, reason, _] = condition_of(&object, kind);
        Ok((status, reason))
    }

    async fn says(&self, name: &str, kind: &str, status: &str, reason: &str) -> Result {
        let wanted = (status.to_owned(), reason.to_owned());
        eventually(format!("{name} says {kind} {status} {reason}"), SOON, async || {
            seen(&self.condition(name, kind).await?, &wanted)
        })
        .await
    }

    async fn rests_at(&self, replicas: i32) -> Result {
        let namespace = &self.cx.namespace;
        namespace.settles(self.name, replicas, SOON).await?;
        let wanted = (json!(replicas), json!(replicas), "True".to_owned());
        eventually(format!("the status shows {replicas}"), SOON, async || {
            let status = self.status(self.name).await?;
            let (ready, _) = self.condition(self.name, "Ready").await?;
            let shown = (status["actualScale"].clone(), status["desiredScale"].clone(), ready);
            seen(&shown, &wanted)
        })
        .await
    }

    fn went_only(&self, rising: bool) -> Result {
        let counts = self.history.wanted();
        let ordered = counts.windows(2).all(|pair| (pair[1] >= pair[0]) == rising);
        if ordered {
            return Ok(());
        }
        Err(Fault::new(format!("replicas went {counts:?}")))
    }

    async fn event_reasons(&self) -> Result<Vec<String>> {
        let events: Api<Event> = self.cx.namespace.api();
        let parameters = ListParams::default().fields("involvedObject.kind=PodAutoscaler");
        let events = events.list(&parameters).await?.items;
        Ok(events.into_iter().filter_map(|event| event.reason).collect())
    }
}

/// All PodAutoscalers of the case.
fn objects(cx: &Cx) -> Api<DynamicObject> {
    cx.namespace.erased(&ApiResource::erase::<PodAutoscaler>(&()))
}

/// Both strategies at once, each on a light load that grows and goes, and on a heavy one that stays.
async fn kpa_and_apa(cx: &Cx) -> Result {
    let controller = started(cx).await?;
    try_join4(
        follows_load(cx, &controller, ("kpa", "KPA")),
        follows_load(cx, &controller, ("apa", "APA")),
        at_180_percent(cx, ("kpa-full", "KPA")),
        at_180_percent(cx, ("apa-full", "APA")),
    )
    .await
    .map(drop)
}

/// 1 → 4 → 1, with status, history, events and the series of the original.
async fn follows_load(cx: &Cx, controller: &Controller, (name, strategy): (&str, &str)) -> Result {
    let stage = Stage::set(cx, name, 1, 4.0).await?;
    cx.namespace.apply(stage.autoscaler(name, strategy)).await?;
    stage.rests_at(1).await?;
    stage.fleet.set_load(Load::running(30.0));
    stage.rests_at(4).await?;
    stage.went_only(true)?;
    let status = stage.status(name).await?;
    let history = status["scalingHistory"].as_array().cloned().unwrap_or_default();
    let last = history.last().cloned().unwrap_or_default();
    assert_eq!((&last["newScale"], &last["success"]), (&json!(4), &json!(true)), "{status}");
    assert_eq!(status["scheduledBounds"]["effectiveMaxReplicas"], 6, "{status}");
    let reasons = stage.event_reasons().await?;
    for reason in ["AlgorithmRun", "SuccessfulRescale"] {
        assert!(reasons.iter().any(|one| one == reason), "{reasons:?}");
    }
    let labels = [("name", name), ("reason", "stable")];
    let series = "aibrix_autoscaler_scale_action";
    eventually("the series shows the count", SOON, async || {
        seen(&controller.value(series, &labels).await?, &Some(4.0))
    })
    .await?;
    stage.fleet.set_load(Load::running(28.0));
    eventually("two ticks that decide the same write nothing", SOON, async || {
        let before = stage.version().await?;
        tokio::time::sleep(Duration::from_secs(21)).await;
        seen(&stage.version().await?, &before)
    })
    .await?;
    stage.fleet.set_load(Load::running(4.0));
    stage.rests_at(1).await?;
    objects(cx).delete(name, &DeleteParams::default()).await?;
    eventually("the series is gone", SOON, async || {
        seen(&controller.value(series, &[("name", name)]).await?, &None)
    })
    .await
}

/// Pages that fail, pods at 180 % of the target, and a controller that starts anew: none of them lowers a count. The
/// last one keeps the history, too.
async fn an_outage_lowers_nothing(cx: &Cx) -> Result {
    let controller = started(cx).await?;
    let stage = Stage::set(cx, NAME, 3, 4.0 * 1.8 * TARGET).await?;
    let mut object = stage.autoscaler(NAME, "KPA");
    object["spec"]["maxReplicas"] = json!(4);
    cx.namespace.apply(object).await?;
    stage.rests_at(4).await?;
    let history = stage.history_of(NAME).await?;
    let grown = history.iter().find(|entry| entry["newScale"] == 4).cloned();
    assert_eq!(grown.as_ref().map(|entry| &entry["previousScale"]), Some(&json!(3)), "{history:?}");
    stage.says(NAME, "MetricsAvailable", "True", "MetricsFound").await?;
    for pod in stage.fleet.pods() {
        stage.fleet.set_silent(&pod, true);
    }
    stage.fleet.set_load(Load::running(0.0));
    stage.says(NAME, "MetricsAvailable", "False", "MetricsFailed").await?;
    stage.went_only(true)?;
    controller.stop().await?;
    let _controller = started(cx).await?;
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(stage.history.wanted(), [3, 4]);
    // With pages again, and a window that is full, what is idle is released.
    for pod in stage.fleet.pods() {
        stage.fleet.set_silent(&pod, false);
    }
    stage.rests_at(1).await?;
    let history = stage.history_of(NAME).await?;
    assert!(history.iter().any(|entry| Some(entry) == grown.as_ref()), "{history:?}");
    assert_eq!(history.last().map(|entry| &entry["newScale"]), Some(&json!(1)), "{history:?}");
    Ok(())
}

/// Four pods at 180 % of their target grow, and in no tick shrink.
async fn at_180_percent(cx: &Cx, (name, strategy): (&str, &str)) -> Result {
    let stage = Stage::set(cx, name, 4, 4.0 * 1.8 * TARGET).await?;
    let mut object = stage.autoscaler(name, strategy);
    object["spec"]["maxReplicas"] = json!(12);
    cx.namespace.apply(object).await?;
    stage.rests_at(8).await?;
    tokio::time::sleep(Duration::from_secs(25)).await;
    stage.rests_at(8).await?;
    stage.went_only(true)
}

/// 1 → 3 → 1 by the real HPA controller, which reads the count of a variant of another Deployment from a registered
/// door.
pub(super) async fn a_generated_hpa_follows_a_total(cx: &Cx) -> Result {
    const OTHER: &str = "fixed";
    for name in [NAME, OTHER] {
        cx.namespace.run(name, 1, SOON).await?;
    }
    let history = History::follow(&cx.namespace, NAME);
    let total =
        |count: i32| variant(OTHER, OTHER, &json!({"minReplicas": count, "maxReplicas": count}));
    cx.namespace.apply(total(1)).await?;
    let object = json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": NAME, "annotations": {
            "autoscaling.aibrix.ai/scale-down-cooldown-window": "0s",
            "autoscaling.aibrix.ai/max-scale-up-rate": "10",
            "autoscaling.aibrix.ai/max-scale-down-rate": "10",
        }},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "minReplicas": 1, "maxReplicas": 6, "scalingStrategy": "HPA",
            "metricsSources": [{
                "metricSourceType": "external", "targetMetric": "wva_desired_replicas", "targetValue": "1",
            }],
        },
    });
    cx.namespace.apply(object).await?;
    for count in [1, 3, 1] {
        cx.namespace.apply(total(count)).await?;
        cx.namespace.settles(NAME, count, SOON).await?;
        let wanted = (json!(count), json!(count), true);
        eventually(format!("the status shows {count}"), SOON, async || {
            let status = objects(cx).get(NAME).await?.data["status"].take();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is_active = conditions.iter().any(|one| one["reason"] == "ValidMetricFound");
            let scales = (status["actualScale"].clone(), status["desiredScale"].clone(), is_active);
            seen(&scales, &wanted)
        })
        .await?;
    }
    history.went(&[1, 3, 1]).await
}

/// KPA → HPA → KPA, and an object of the name with another owner is left alone.
async fn strategies_change_live(cx: &Cx) -> Result {
    let _controller = started(cx).await?;
    let stage = Stage::set(cx, NAME, 1, 4.0).await?;
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    let generated = format!("{NAME}-hpa");
    let owned = async || Result::Ok(hpas.get_opt(&generated).await?.is_some());
    cx.namespace.apply(stage.autoscaler(NAME, "KPA")).await?;
    stage.rests_at(1).await?;
    assert!(!owned().await?);
    let mut object = stage.autoscaler(NAME, "HPA");
    object["spec"]["metricsSources"] = json!([
        { "metricSourceType": "resource", "targetMetric": "cpu", "targetValue": "50" },
    ]);
    cx.namespace.apply(object).await?;
    eventually("the HPA is generated", SOON, async || seen(&owned().await?, &true)).await?;
    let hpa = serde_json::to_value(hpas.get(&generated).await?)?;
    assert_eq!(hpa["metadata"]["ownerReferences"][0]["kind"], "PodAutoscaler", "{hpa}");
    assert_eq!(hpa["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50, "{hpa}");
    // The HPA has no metrics of pods here, and says so in words that the status repeats.
    stage.says(NAME, "ScalingActive", "False", "FailedGetResourceMetric").await?;
    cx.namespace.apply(stage.autoscaler(NAME, "KPA")).await?;
    eventually("the HPA is gone", SOON, async || seen(&owned().await?, &false)).await?;

    let foreign: HorizontalPodAutoscaler = serde_json::from_value(json!({
        "metadata": { "name": generated },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "another" },
            "maxReplicas": 2,
        },
    }))?;
    let foreign = hpas.create(&PostParams::default(), &foreign).await?;
    let mut object = stage.autoscaler(NAME, "HPA");
    object["spec"]["maxReplicas"] = json!(5);
    cx.namespace.apply(object).await?;
    stage.says(NAME, "AbleToScale", "False", "HpaNotOwned").await?;
    let after = hpas.get(&generated).await?;
    assert_eq!(after.spec, foreign.spec);
    Ok(())
}

/// Of two autoscalers the older one scales; the younger one says so, and takes over when the older one goes. An older
/// one keeps a variant from the target, too.
async fn the_oldest_scales(cx: &Cx) -> Result {
    let _controller = started(cx).await?;
    let stage = Stage::set(cx, NAME, 1, 4.0).await?;
    cx.namespace.apply(stage.autoscaler(NAME, "KPA")).await?;
    stage.rests_at(1).await?;
    // Ages count in whole seconds.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let mut younger = stage.autoscaler("younger", "KPA");
    younger["spec"]["minReplicas"] = json!(3);
    cx.namespace.apply(younger).await?;
    let conflict = "MultiPodAutoscalerConflict";
    stage.says("younger", conflict, "False", conflict).await?;
    assert_eq!(stage.history.wanted(), [1]);
    cx.namespace.apply(variant(NAME, NAME, &json!({}))).await?;
    let variants = cx.namespace.dynamic("llmd.ai/v1alpha1", "VariantAutoscaling").await?;
    eventually("the variant says who scales", SOON, async || {
        let [_, reason, message] = condition_of(&variants.get(NAME).await?, "TargetResolved");
        let is_contested = reason == "TargetContested" && message.contains("PodAutoscaler");
        seen(&is_contested, &true)
    })
    .await?;
    variants.delete(NAME, &DeleteParams::default()).await?;
    objects(cx).delete(NAME, &DeleteParams::default()).await?;
    cx.namespace.settles(NAME, 3, SOON).await
}
