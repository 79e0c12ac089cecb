//! The whole loop around one variant: load on its engines, Prometheus, the controller, its gauge,
//! KEDA, the HPA, the Deployment, its pods, and their engines again.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use serde_json::{Value, json};
use wva::api::INSTANCE_LABEL;
use wva::api::variant_autoscaling::{VariantAutoscaling, VariantAutoscalingStatus};
use wva::policy::series;

use super::controller::{Build, Controller, ControllerSpec};
use super::engine::{EngineFleet, Load};
use super::fault::{Fault, Result};
use super::history::History;
use super::journal::Journal;
use super::namespace::Workload;
use super::scaled_object::ScaledObject;
use super::servers::kwok;
use super::suite::Cx;
use super::wait::{eventually, seen};

/// Name of the variant, of its Deployment, and of the ScaledObject.
pub(crate) const NAME: &str = "llama";
const MODEL: &str = "meta-llama/Llama-3.1-8B";
/// Longest that any one state of the loop may take to come. The controller reads peaks of a minute,
/// so it takes longer than that to notice that load has ended.
const SOON: Duration = Duration::from_mins(2);
/// Cycles that show that a state lasts.
const A_WHILE: usize = 4;

/// What keeps the controller to its own case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// It sees the whole cluster, and only the variants that are labelled as its own count.
    Instance,
    /// It sees nothing but the namespace of the case.
    Namespace,
}

/// What a loop starts with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    pub(crate) bound: Bound,
    pub(crate) replicas: u32,
    /// KV cache in use, in caches of one engine.
    pub(crate) kv_caches: f64,
    /// How long a pod loads its model.
    pub(crate) loading: Duration,
}

/// A running loop. Its parts end in the order in which they stand here.
pub(crate) struct ScalingLoop<'a> {
    cx: &'a Cx,
    pub(crate) journal: Journal,
    pub(crate) controller: Arc<Controller>,
    history: History,
    fleet: EngineFleet,
}

/// The last state of a loop, as far as it can be named beforehand.
#[derive(Debug, PartialEq)]
struct Settled {
    gauges: [Option<f64>; 3],
    replicas: Option<i32>,
    accelerator: Option<String>,
    is_of_this_generation: bool,
    conditions: Vec<[String; 3]>,
}

impl<'a> ScalingLoop<'a> {
    /// Puts everything in place and waits until the loop is closed and at rest: the HPA reads the
    /// gauge, and the controller wants what there is.
    pub(crate) async fn start(cx: &'a Cx, beginning: Beginning) -> Result<Self> {
        let Beginning { bound, replicas, kv_caches, loading } = beginning;
        let workload = Workload {
            loading,
            gpus: Some((1, kwok::H100)),
            ..Workload::new(NAME, i32::try_from(replicas)?)
        };
        cx.namespace.deploy(&workload).await?;
        let history = History::follow(&cx.namespace, NAME);
        cx.namespace.settles(NAME, i32::try_from(replicas)?, SOON).await?;
        let fleet = EngineFleet::start(cx, &workload.selector(), MODEL, Load::cache(kv_caches));
        engines_report(cx, replicas).await?;
        cx.namespace.apply(variant(cx)).await?;
        let controller = Controller::start_ready(cx, &controller(cx, bound)).await?;
        let controller = Arc::new(controller);
        let journal = Journal::follow(&controller, &cx.namespace.name, NAME);
        let scaled_object = ScaledObject { target: NAME, variant: NAME, min: 1, max: 20 };
        scaled_object.apply(cx).await?;
        // The average over the replicas is 1 when there are as many as the gauge says.
        scaled_object.is_read(cx, "1").await?;
        let begun = Self { cx, journal, controller, history, fleet };
        begun.rests_at(replicas).await?;
        begun.replicas_went(&[replicas]).await?;
        Ok(begun)
    }

    /// Sets the total load, in KV caches of one engine.
    pub(crate) fn set_load(&self, kv_caches: f64) {
        self.fleet.set_load(Load::cache(kv_caches));
    }

    /// Waits until the Deployment requests so many replicas.
    pub(crate) async fn asks_for(&self, replicas: u32) -> Result {
        let wanted = i32::try_from(replicas)?;
        eventually(format!("{NAME} requests {replicas}"), SOON, async || {
            let last = self.history.steps().last().map(|step| step.wanted);
            seen(&last, &Some(wanted))
        })
        .await
    }

    /// Waits until the Deployment has exactly so many replicas, all ready, and then some cycles in
    /// which the controller wants no others.
    pub(crate) async fn rests_at(&self, replicas: u32) -> Result {
        let wanted = i32::try_from(replicas)?;
        self.cx.namespace.settles(NAME, wanted, SOON).await?;
        eventually("every part agrees", SOON, async || {
            seen(&self.settled().await?, &Settled::at(replicas)?)
        })
        .await?;
        self.journal.stays(replicas, A_WHILE, SOON).await
    }

    /// Checks the numbers of replicas that the Deployment was asked for.
    pub(crate) async fn replicas_went(&self, wanted: &[u32]) -> Result {
        let wanted: std::result::Result<Vec<i32>, _> =
            wanted.iter().map(|n| i32::try_from(*n)).collect();
        self.history.went(&wanted?).await
    }

    /// Checks on the Deployment itself that no replica was added before all others were ready.
    pub(crate) fn grew_from_rest(&self) -> Result {
        let steps = self.history.steps();
        let mut pairs = steps.windows(2);
        pairs.try_for_each(|pair| match pair {
            [before, after] if after.wanted > before.wanted => {
                let rest = [before.present, before.ready];
                seen(&rest, &[before.wanted; 2])
                    .map_err(|fault| Fault::new(format!("{}: {steps:?}", fault.text())))
            }
            _ => Ok(()),
        })
    }

    async fn settled(&self) -> Result<Settled> {
        let namespace = &self.cx.namespace.name;
        let labels = [
            ("namespace", namespace.as_str()),
            ("variant_name", NAME),
            ("accelerator_type", kwok::H100),
        ];
        let gauge = |name| self.controller.value(name, &labels);
        let objects: Api<VariantAutoscaling> = self.cx.namespace.api();
        let object = objects.get(NAME).await?;
        let status = object.status.unwrap_or_default();
        let generation = object.metadata.generation;
        let conditions = conditions(&status);
        let is_of_this_generation = status.observed_generation == generation;
        let alloc = status.desired_optimized_alloc.unwrap_or_default();
        Ok(Settled {
            gauges: [
                gauge(series::DESIRED).await?,
                gauge(series::CURRENT).await?,
                gauge(series::RATIO).await?,
            ],
            replicas: alloc.num_replicas,
            accelerator: alloc.accelerator,
            is_of_this_generation,
            conditions,
        })
    }
}

impl Settled {
    fn at(replicas: u32) -> Result<Self> {
        let count = Some(f64::from(replicas));
        let conditions = [
            ["ActuationReady", "True", "ScalerFollows"],
            ["MetricsAvailable", "True", "MetricsFound"],
            ["OptimizationReady", "True", "SaturationOnlyMode"],
            ["Ready", "True", "VariantReady"],
            ["TargetResolved", "True", "TargetFound"],
        ];
        Ok(Self {
            gauges: [count, count, Some(1.0)],
            replicas: Some(i32::try_from(replicas)?),
            accelerator: Some(kwok::H100.to_owned()),
            is_of_this_generation: true,
            conditions: conditions.map(|parts| parts.map(str::to_owned)).to_vec(),
        })
    }
}

/// Type, status and reason of each condition, by type.
fn conditions(status: &VariantAutoscalingStatus) -> Vec<[String; 3]> {
    let parts = status.conditions.iter().map(|condition| {
        [condition.type_.clone(), condition.status.clone(), condition.reason.clone()]
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort();
    parts
}

/// The instance has the name of the namespace.
fn controller(cx: &Cx, bound: Bound) -> ControllerSpec<'_> {
    let scoped = ControllerSpec { build: Build::Killable, ..ControllerSpec::scoped(cx) };
    match bound {
        Bound::Namespace => scoped,
        Bound::Instance => ControllerSpec {
            watch_namespace: None,
            environment: vec![("CONTROLLER_INSTANCE", cx.namespace.name.clone())],
            ..scoped
        },
    }
}

fn variant(cx: &Cx) -> Value {
    let labels = json!({ INSTANCE_LABEL: cx.namespace.name });
    json!({
        "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
        "metadata": { "name": NAME, "labels": labels },
        "spec": { "scaleTargetRef": { "kind": "Deployment", "name": NAME }, "modelID": MODEL },
    })
}

/// Waits until Prometheus has the KV share of so many engines.
pub(crate) async fn engines_report(cx: &Cx, engines: u32) -> Result {
    let query = format!("vllm:kv_cache_usage_perc{{namespace=\"{}\"}}", cx.namespace.name);
    eventually(format!("{engines} engines report"), SOON, async || {
        let found = cx.world.prometheus.query(&query).await?.len();
        seen(&u32::try_from(found)?, &engines)
    })
    .await
}
