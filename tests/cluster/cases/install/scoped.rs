//! The chart for one namespace: what its controller asks of Prometheus, and what it may do.

use super::running::{nothing_was_refused, start};
use super::{RELEASE, SOON, at_home};
use crate::harness::fault::{Fault, Result};
use crate::harness::oracle::Oracle;
use crate::harness::shipping::{Shipping, set};
use crate::harness::suite::Cx;
use crate::harness::wait::eventually;

/// With limits to the GPUs of nodes, which is the most that it may do outside.
pub(super) async fn asks_for_its_namespace_alone(cx: &Cx) -> Result {
    let shipping = Shipping::to(&cx.world)?;
    let namespace = &cx.namespace.name;
    let prometheus = Oracle::plain().await?;
    let url = format!("http://127.0.0.1:{}", prometheus.port);
    let mut values = at_home(cx);
    values.extend(set(&[
        ("wva.namespaceScoped", "true"),
        ("wva.limitedMode", "true"),
        ("wva.reconcileInterval", "1s"),
        ("wva.prometheus.baseURL", &url),
        ("wva.prometheus.allowHTTP", "true"),
        ("wva.prometheus.clusterMonitoringView", "false"),
    ]));
    shipping.install(RELEASE, namespace, &values).await?;
    let objects = shipping.manifest(RELEASE, namespace).await?;
    let controller = start(cx, &objects, namespace, "wva-0").await?.controller;
    controller.ready().await?;
    let matcher = format!("namespace=\"{namespace}\"");
    let asked = eventually("queries are sent", SOON, async || {
        let asked = prometheus.asked();
        if asked.len() < 4 {
            return Err(Fault::new(format!("{} so far", asked.len())));
        }
        Ok(asked)
    })
    .await?;
    for query in asked {
        assert!(query.query.contains(&matcher), "{query:?}");
    }
    assert_eq!(controller.stop().await?, Some(0));
    nothing_was_refused(cx, namespace)?;
    shipping.uninstall(RELEASE, namespace).await
}
