//! The way from a gauge to replicas, without our controller: Prometheus, KEDA, the HPA.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::Result;
use crate::harness::history::History;
use crate::harness::namespace::Workload;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::servers::prometheus::Target;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_mins(1);

pub(crate) fn cases() -> Vec<Case> {
    vec![case!(
        shared,
        external_metrics::a_lost_gauge_shrinks_nothing
    )]
}

/// The gauge of one variant, scraped as the controller's would be.
struct Gauge {
    value: Arc<AtomicU32>,
    page: Exporter,
    target: Option<Target>,
}

impl Gauge {
    async fn start(cx: &Cx, value: u32) -> Result<Self> {
        let value = Arc::new(AtomicU32::new(value));
        let namespace = &cx.namespace.name;
        let labels = format!("variant_name=\"llama\",namespace=\"{namespace}\"");
        let shown = Arc::clone(&value);
        let page = Exporter::start(move || {
            let value = shown.load(Ordering::Relaxed);
            Page::Text(format!(
                "# TYPE wva_desired_replicas gauge\nwva_desired_replicas{{{labels}}} {value}\n"
            ))
        })
        .await?;
        let mut gauge = Self {
            value,
            page,
            target: None,
        };
        gauge.show(cx)?;
        Ok(gauge)
    }

    fn set(&self, value: u32) {
        self.value.store(value, Ordering::Relaxed);
    }

    fn show(&mut self, cx: &Cx) -> Result {
        let prometheus = &cx.world.prometheus;
        let target = prometheus.scrape(&cx.namespace.name, "wva-0", self.page.address)?;
        self.target = Some(target);
        Ok(())
    }

    fn hide(&mut self) {
        self.target = None;
    }
}

async fn follow(cx: &Cx, replicas: i32, max: i32) -> Result<ScaledObject<'static>> {
    cx.namespace
        .deploy(&Workload::new("llama", replicas))
        .await?;
    cx.namespace.settles("llama", replicas, SOON).await?;
    let scaled_object = ScaledObject {
        target: "llama",
        variant: "llama",
        min: 1,
        max,
    };
    scaled_object.apply(cx).await?;
    Ok(scaled_object)
}

/// No series is no answer: the fallback keeps what is there, where KEDA's defaults would read zero
/// and shrink the fleet to its minimum. The gauge is obeyed again when it is back.
async fn a_lost_gauge_shrinks_nothing(cx: &Cx) -> Result {
    let mut gauge = Gauge::start(cx, 3).await?;
    let history = History::follow(&cx.namespace, "llama");
    follow(cx, 1, 10).await?;
    cx.namespace.settles("llama", 3, SOON).await?;
    seen(&falls_back(cx).await?, &false)?;

    gauge.hide();
    eventually("KEDA falls back", SOON, async || {
        seen(&falls_back(cx).await?, &true)
    })
    .await?;
    cx.namespace.settles("llama", 3, SOON).await?;
    history.went(&[1, 3]).await?;

    gauge.set(1);
    gauge.show(cx)?;
    cx.namespace.settles("llama", 1, SOON).await?;
    history.went(&[1, 3, 1]).await
}

/// Whether the ScaledObject's `Fallback` condition is true. Before it was ever needed it may be unknown
/// as well as false: the operator sometimes writes the former over the latter.
async fn falls_back(cx: &Cx) -> Result<bool> {
    let kind = ("keda.sh/v1alpha1", "ScaledObject");
    let scaled_objects = cx.namespace.dynamic(kind.0, kind.1).await?;
    let found = scaled_objects.get("llama").await?;
    let conditions = found.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    Ok(
        conditions
            .any(|condition| condition["type"] == "Fallback" && condition["status"] == "True"),
    )
}
