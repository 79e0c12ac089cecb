//! The horizontal pod autoscaler as a controller: it reads its objects, their targets and external
//! metrics every 15 s, and writes scales, statuses and events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::decide::{History, HpaCondition, HpaDecision, Observed, decide};
use super::spec::{ExternalMetricSpec, ExternalMetricTarget, HpaSpec};
use crate::apiserver::{ApiServer, Insider};
use crate::milli::Milli;
use crate::workloads::event::{self, Volume};
use crate::workloads::leader_worker_sets;
use crate::workloads::object::{Object, path, stamp};
use wva_base::moment::Moment;
use wva_supervise::Clock;

const MANAGER: &str = "kube-controller-manager";
const REPORTER: &str = "horizontal-pod-autoscaler";
/// Time between two looks: `--horizontal-pod-autoscaler-sync-period`.
pub(crate) const SYNC: Duration = Duration::from_secs(15);

/// The sum of the series of a metric in a namespace that a selector chooses, or why there is none.
pub(crate) type ExternalMetrics =
    dyn Fn(&str, &ExternalMetricSpec) -> Result<Milli, String> + Send + Sync;

pub(crate) struct Autoscalers {
    server: Insider,
    clock: Clock,
    metrics: Arc<ExternalMetrics>,
    sync: Duration,
    histories: BTreeMap<String, History>,
    /// What the objects asked for when last read, by unique id.
    specs: BTreeMap<String, (Object, HpaSpec)>,
}

wva_base::debug_of!(Autoscalers: histories);

struct Look<'a> {
    object: &'a Object,
    now: Moment,
    conditions: Vec<HpaCondition>,
    events: Vec<(Volume, &'static str, String)>,
    status: Value,
}

impl Autoscalers {
    pub(crate) fn new(
        server: ApiServer,
        clock: Clock,
        metrics: Arc<ExternalMetrics>,
        sync: Duration,
    ) -> Self {
        Self {
            server: Insider::new(server, MANAGER),
            clock,
            metrics,
            sync,
            histories: BTreeMap::new(),
            specs: BTreeMap::new(),
        }
    }

    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            sleep(self.sync).await;
            let objects = self.server.list("horizontalpodautoscalers.autoscaling");
            let objects: Vec<Object> = objects.into_iter().map(Object).collect();
            let uid = |object: &Object| object.text("/metadata/uid").to_owned();
            let live: Vec<String> = objects.iter().map(uid).collect();
            self.histories.retain(|uid, _| live.contains(uid));
            self.specs.retain(|uid, _| live.contains(uid));
            for object in objects {
                if let Err(denied) = self.sync(&object).await {
                    // Changed or deleted meanwhile; the next look is soon.
                    tracing::debug!(%denied, "write of a simulated autoscaler");
                }
            }
        }
    }

    async fn sync(&mut self, object: &Object) -> Result<(), String> {
        let mut sync = Look {
            object,
            now: self.clock.now(),
            conditions: Vec::new(),
            events: Vec::new(),
            status: json!({}),
        };
        match self.read(object) {
            Err(message) => sync.blind(
                ("ScalingActive", "InvalidMetricSourceType"),
                message,
                "FailedComputeMetricsReplicas",
            ),
            Ok((_, None)) => {
                let message = "the HPA controller was unable to get the target's current scale: \
                               the target is not a Deployment, StatefulSet or LeaderWorkerSet that exists";
                sync.blind(("AbleToScale", "FailedGetScale"), message.to_owned(), "FailedGetScale");
            }
            Ok((spec, Some(target))) => self.scale(&mut sync, &spec, &target).await?,
        }
        self.write(sync).await
    }

    fn read(&mut self, object: &Object) -> Result<(HpaSpec, Option<Object>), String> {
        let spec = self.spec(object)?;
        let target = collection(object).and_then(|(group_version, plural)| {
            let name = object.text("/spec/scaleTargetRef/name");
            let (group, _) = group_version.split_once('/')?;
            let resource = format!("{plural}.{group}");
            self.server.get(&resource, object.namespace(), name)
        });
        Ok((spec, target.map(Object)))
    }

    /// What the object demands, read once until that changes.
    fn spec(&mut self, object: &Object) -> Result<HpaSpec, String> {
        if let Some((known, spec)) = self.specs.get(object.text("/metadata/uid"))
            && known.at("/spec") == object.at("/spec")
        {
            return Ok(spec.clone());
        }
        let typed = HorizontalPodAutoscaler::deserialize(&*object.0);
        let typed = typed.map_err(|error| error.to_string())?;
        let spec = HpaSpec::read(&typed)?;
        let uid = object.text("/metadata/uid").to_owned();
        self.specs.insert(uid, (object.clone(), spec.clone()));
        Ok(spec)
    }

    async fn scale(
        &mut self,
        sync: &mut Look<'_>,
        spec: &HpaSpec,
        target: &Object,
    ) -> Result<(), String> {
        let message = "the HPA controller was able to get the target's current scale";
        let able = HpaCondition::new("AbleToScale", true, ("SucceededGetScale", message));
        sync.conditions.push(able);
        let namespace = sync.object.namespace();
        let metrics = spec.metrics.iter();
        let seen = Observed {
            wanted: target.count("/spec/replicas").unwrap_or(0),
            existing: target.count("/status/replicas").unwrap_or(0),
            ready: self.ready(target),
            metrics: metrics.map(|metric| (self.metrics)(namespace, metric)).collect(),
        };
        let uid = sync.object.text("/metadata/uid").to_owned();
        let history = self.histories.entry(uid).or_default();
        let now = sync.now.monotonic;
        let outcome = decide(now, spec, &seen, history);
        let desired = outcome.desired.unwrap_or(seen.wanted);
        let mut rescaled = false;
        if desired != seen.wanted {
            let (group_version, plural) = collection(sync.object).unwrap_or_default();
            let path = path(group_version, namespace, plural, target.name());
            let scale = json!({"spec": {"replicas": desired}});
            self.server.merge(&format!("{path}/scale"), &scale).await?;
            history.rescaled(now, spec, seen.wanted, desired);
            rescaled = true;
        }
        sync.decided(spec, &seen, outcome, desired, rescaled);
        Ok(())
    }

    /// Ready pods of a target: those that its scale selects where it says so in words.
    fn ready(&self, target: &Object) -> u32 {
        let selector = target.text("/status/hpaPodSelector");
        if selector.is_empty() {
            return target.count("/status/readyReplicas").unwrap_or(0);
        }
        let labels: Vec<_> = selector.split(',').filter_map(|one| one.split_once('=')).collect();
        let pods = self.server.list("pods.").into_iter().map(Object);
        let ready = pods.filter(|pod| {
            let mut labels = labels.iter();
            pod.namespace() == target.namespace()
                && pod.holds("Ready")
                && labels.all(|(name, value)| pod.label(name) == Some(*value))
        });
        u32::try_from(ready.count()).unwrap_or(u32::MAX)
    }

    async fn write(&self, sync: Look<'_>) -> Result<(), String> {
        let namespace = sync.object.namespace();
        let plural = "horizontalpodautoscalers";
        let path = path("autoscaling/v2", namespace, plural, sync.object.name());
        let mut status = sync.status;
        status["conditions"] = merged(sync.object, &sync.conditions, sync.now);
        let present = sync.object.at("/status");
        let mut fields = status.as_object().into_iter().flatten();
        if fields.any(|(name, value)| present[name] != *value) {
            let change = json!({"status": status});
            self.server.merge(&format!("{path}/status"), &change).await?;
        }
        for (volume, reason, message) in sync.events {
            let about = ("autoscaling/v2", "HorizontalPodAutoscaler", sync.object);
            let (events, event) =
                event::document(about, REPORTER, (volume, reason), &message, sync.now.wall);
            self.server.create(&events, &event).await?;
        }
        Ok(())
    }
}

fn collection(object: &Object) -> Option<(&'static str, &'static str)> {
    match object.text("/spec/scaleTargetRef/kind") {
        "Deployment" => Some(("apps/v1", "deployments")),
        "StatefulSet" => Some(("apps/v1", "statefulsets")),
        "ReplicaSet" => Some(("apps/v1", "replicasets")),
        "LeaderWorkerSet" => Some((leader_worker_sets::API_VERSION, leader_worker_sets::PLURAL)),
        _ => None,
    }
}

/// The conditions of an object with new ones among them; of two of one kind the last counts.
fn merged(object: &Object, conditions: &[HpaCondition], now: Moment) -> Value {
    let last = conditions.iter().map(|one| (one.kind, one));
    let last: BTreeMap<&str, &HpaCondition> = last.collect();
    let documents = last.into_iter().map(|(kind, condition)| {
        let status = if condition.holds { "True" } else { "False" };
        let (reason, message) = (condition.reason, &condition.message);
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    });
    object.having(documents, now.wall)
}

impl Look<'_> {
    /// Nothing can be decided. The event comes when this is news.
    fn blind(
        &mut self,
        (kind, reason): (&'static str, &'static str),
        message: String,
        event: &'static str,
    ) {
        let known = self.object.condition(kind);
        if known.is_none_or(|known| known["message"] != *message) {
            self.events.push((Volume::Warning, event, message.clone()));
        }
        let failed = HpaCondition::new(kind, false, (reason, message));
        self.conditions.push(failed);
    }

    fn decided(
        &mut self,
        spec: &HpaSpec,
        seen: &Observed,
        outcome: HpaDecision,
        desired: u32,
        rescaled: bool,
    ) {
        self.status = json!({
            "currentReplicas": seen.existing, "desiredReplicas": desired,
            "currentMetrics": current(spec, seen, &outcome),
        });
        for failed in outcome.conditions.iter().filter(|one| !one.holds) {
            let known = self.object.condition(failed.kind);
            let news = known.is_none_or(|known| known["message"] != *failed.message);
            if failed.reason == "FailedGetExternalMetric" && news {
                self.events.push((Volume::Warning, failed.reason, failed.message.clone()));
            }
        }
        self.conditions.extend(outcome.conditions);
        if !rescaled {
            return;
        }
        self.status["lastScaleTime"] = stamp(self.now.wall).into();
        let message =
            format!("the HPA controller was able to update the target scale to {desired}");
        let able = HpaCondition::new("AbleToScale", true, ("SucceededRescale", message));
        let to_zero = HpaCondition::scaled_to_zero(spec, desired);
        self.conditions.extend([able, to_zero]);
        let reason = reason(spec, seen.wanted, desired);
        let message = format!("New size: {desired}; reason: {reason}");
        self.events.push((Volume::Normal, "SuccessfulRescale", message));
    }
}

fn reason(spec: &HpaSpec, from: u32, to: u32) -> String {
    if from > spec.max {
        return "Current number of replicas above Spec.MaxReplicas".to_owned();
    }
    if from < spec.min {
        return "Current number of replicas below Spec.MinReplicas".to_owned();
    }
    if to < from {
        return "All metrics below target".to_owned();
    }
    match spec.metrics.first() {
        Some(metric) => {
            format!("external metric {}({}) above target", metric.name, go_text(&metric.selector))
        }
        None => "no metric".to_owned(),
    }
}

fn go_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.flat_map(|(name, value)| [name, ": ", value, ","]).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{}},}}"
    )
}

fn current(spec: &HpaSpec, seen: &Observed, outcome: &HpaDecision) -> Value {
    let shown = spec.metrics.iter().zip(&outcome.current);
    let shown = shown.filter_map(|(metric, value)| Some((metric, (*value)?)));
    let document = |(metric, value): (&ExternalMetricSpec, Milli)| {
        let value = value.text();
        let current = match metric.target {
            ExternalMetricTarget::AverageValue(_) => json!({"averageValue": value}),
            ExternalMetricTarget::Value(_) => json!({"value": value}),
        };
        json!({"type": "External", "external": {
            "metric": {"name": metric.name, "selector": metric.selector}, "current": current,
        }})
    };
    let all: Vec<Value> = shown.map(document).collect();
    if all.is_empty() && seen.metrics.is_empty() {
        return Value::Null;
    }
    all.into()
}
