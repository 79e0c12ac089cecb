//! Models at zero wake for requests that a router holds, as it says itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::Workload;
use crate::harness::router::{Manner, Router};
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::{MODEL, Variants};
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(40);
const NAME: &str = "llama";
/// Cycles after which a decision would have been taken back.
const CYCLES: i64 = 3;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::shared("from_zero::a_router_is_shown_the_token", is_shown_the_token),
        Case::shared("from_zero::routers_are_asked_a_few_at_a_time", a_few_at_a_time),
    ]
}

/// A controller under which models may go to zero.
async fn controller(
    cx: &Cx,
    name: &str,
    settings: &[(&'static str, String)],
) -> Result<Controller> {
    let mut environment = vec![("WVA_SCALE_TO_ZERO", "true".to_owned())];
    environment.extend_from_slice(settings);
    let spec = ControllerSpec { name, environment, ..ControllerSpec::scoped(cx) };
    Controller::start_ready(cx, &spec).await
}

/// A model without replicas behind a router.
async fn parked(cx: &Cx, name: &str, router: &Router) -> Result {
    cx.namespace.deploy(&Workload::new(name, 0)).await?;
    router.route(&cx.namespace, name).await
}

/// What the routers of a model said themselves, in the snapshot.
async fn said(controller: &Controller, model: &str) -> Result<Value> {
    let snapshot = controller.debug("snapshot").await?;
    let models = snapshot["models"].as_array().cloned().unwrap_or_default();
    let found = models.into_iter().find(|entry| entry["model"] == model);
    Ok(found.unwrap_or_default()["directQueue"].clone())
}

async fn says_value(controller: &Controller, model: &str, wanted: f64) -> Result {
    let what = format!("the router of {model} says {wanted}");
    eventually(what, SOON, async || {
        let value = said(controller, model).await?["requests"]["value"].as_f64();
        seen(&value, &Some(wanted))
    })
    .await
}

/// The text of the step that crossed the boundary to zero, or did not.
async fn step(variants: Variants<'_>, name: &str, part: &str) -> Result {
    eventually(format!("{name} says {part:?}"), SOON, async || {
        let decision = variants.decision(name).await?;
        let has_it = decision["steps"].to_string().contains(part);
        if has_it {
            return Ok(());
        }
        Err(Fault::new(format!("no step says {part:?}: {decision}")))
    })
    .await
}

/// The count stays as it is for some cycles.
async fn stays(variants: Variants<'_>, wanted: i64) -> Result {
    let cycle = async || {
        let decision = variants.decision(NAME).await?;
        assert_eq!(decision["target"], json!(wanted), "{decision}");
        variants.plan_cycle().await
    };
    let first = cycle().await?;
    eventually("some cycles", SOON, async || seen(&(cycle().await? >= first + CYCLES), &true)).await
}

/// A router that wants a token, which the controller has or not, and one of another model that wants none.
async fn is_shown_the_token(cx: &Cx) -> Result {
    let router =
        Router::start(Manner { token: Some("s3cret".to_owned()), ..Manner::holding(MODEL, 3) })
            .await?;
    let other = Router::start(Manner::holding("other", 0)).await?;
    parked(cx, NAME, &router).await?;
    parked(cx, "other", &other).await?;
    for (name, token, requests) in [("without", None, 0), ("wrong", Some("s3cre"), 1)] {
        let token = token.map(|token| ("EPP_METRIC_READER_BEARER_TOKEN", token.to_owned()));
        let controller = controller(cx, name, token.as_slice()).await?;
        let variants = Variants::new(&cx.namespace, &controller);
        variants.apply(NAME, NAME, json!({})).await?;
        let fields = json!({ "modelID": "other" });
        variants.apply("other", "other", fields).await?;
        step(variants, NAME, "HTTP 401").await?;
        step(variants, NAME, "EPP_METRIC_READER_BEARER_TOKEN").await?;
        // One router that refuses hurts no other.
        other.behave(Manner::holding("other", requests));
        says_value(&controller, "other", f64::from(requests)).await?;
        variants.publishes("other", Some(f64::from(requests)), SOON).await?;
        variants.publishes(NAME, Some(0.0), SOON).await?;
        stays(variants, 0).await?;
    }
    let token = ("EPP_METRIC_READER_BEARER_TOKEN", "s3cret".to_owned());
    let controller = controller(cx, "right", &[token]).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.publishes(NAME, Some(1.0), SOON).await
}

async fn a_few_at_a_time(cx: &Cx) -> Result {
    const POOLS: usize = 3;
    let router =
        Router::start(Manner { delay: Duration::from_millis(300), ..Manner::holding(MODEL, 0) })
            .await?;
    let one = ("SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY", "1".to_owned());
    let narrow = controller(cx, "narrow", &[one]).await?;
    for number in 0..POOLS {
        let name = format!("m{number}");
        parked(cx, &name, &router).await?;
        let variants = Variants::new(&cx.namespace, &narrow);
        variants.apply(&name, &name, json!({})).await?;
    }
    says_value(&narrow, MODEL, 0.0).await?;
    let asked = router.requests();
    eventually("two rounds", SOON, async || seen(&(router.requests() >= asked + 2 * POOLS), &true))
        .await?;
    assert_eq!(router.most(), 1);
    drop(narrow);

    let _wide = controller(cx, "wide", &[]).await?;
    eventually("all of them at once", SOON, async || {
        // One of the first controller may be on its way still.
        seen(&(router.most() >= POOLS), &true)
    })
    .await
}
