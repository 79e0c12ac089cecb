//! Two controllers that claim the same objects: one gives way and says so, and neither fights.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Api;
use serde_json::json;
use wva::api::INSTANCE_LABEL;
use wva::api::variant_autoscaling::VariantAutoscaling;
use wva::cluster::status::controllers;
use wva::policy::ownership::Holding;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::namespace::{Namespace, Workload};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{DESIRED, Variants, variant};
use crate::harness::wait::{eventually, seen};

const NAME: &str = "llama";
const CONFLICT: &str = "ControllerConflict";
const SOON: Duration = Duration::from_mins(1);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, rivals::the_second_gives_way),
        case!(shared, rivals::that_are_not_scraped_take_no_turns),
        case!(shared, rivals::a_second_series_is_said),
        case!(shared, rivals::instances_that_name_one_target_say_so),
    ]
}

/// Waits for the condition, or for its absence.
async fn conflict(variants: Variants<'_>, wanted: Option<&str>) -> Result {
    eventually(format!("{CONFLICT} is {wanted:?}"), SOON, async || {
        let found = variants.condition(NAME, CONFLICT).await.ok();
        let found = found.as_ref().map(|(state, _)| state.as_str());
        seen(&found, &wanted)
    })
    .await
}

async fn the_second_gives_way(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let first = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &first);
    variants.apply(NAME, NAME, json!({ "minReplicas": 2 })).await?;
    variants.publishes(NAME, Some(2.0), SOON).await?;
    variants.says(NAME, &[("TargetResolved", "True/TargetFound")], SOON).await?;
    conflict(variants, None).await?;

    let other = format!("{}-other", cx.namespace.name);
    let other = Namespace::create(&cx.world, &other).await?;
    let outcome = gives_way(cx, first, &other).await;
    other.delete().await?;
    outcome
}

/// A second release of the same, in another namespace and without an instance of its own.
async fn gives_way(cx: &Cx, first: Controller, other: &Namespace) -> Result {
    let spec = ControllerSpec {
        name: "wva-1",
        ..ControllerSpec::scoped(cx).with("POD_NAMESPACE", &other.name)
    };
    let second = Controller::start_ready(cx, &spec).await?;
    let of_first = Variants::new(&cx.namespace, &first);
    let of_second = Variants::new(&cx.namespace, &second);
    conflict(of_second, Some("True/OtherController")).await?;
    let (_, message) = of_second.condition(NAME, CONFLICT).await?;
    assert!(message.contains("CONTROLLER_INSTANCE"), "{message}");
    eventually("an event says so", SOON, async || {
        let said = cx.namespace.events("OtherController").await?;
        seen(&said.is_empty(), &false)
    })
    .await?;
    // The first goes on, and its decisions are what is stored.
    of_first.apply(NAME, NAME, json!({ "minReplicas": 3 })).await?;
    of_first.publishes(NAME, Some(3.0), SOON).await?;
    eventually("the status follows the first", SOON, async || {
        seen(&of_first.stored(NAME).await?, &Some(3))
    })
    .await?;
    assert_eq!(of_second.desired(NAME).await?, None);

    // It shows no sign of life any more.
    first.crash();
    of_second.publishes(NAME, Some(3.0), SOON).await?;
    conflict(of_second, None).await
}

/// Without the series of either in Prometheus, each takes the other for dead. The first takes back what
/// was taken from it, and is left alone from then on.
async fn that_are_not_scraped_take_no_turns(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let first = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
    let first = first.unscraped();
    let of_first = Variants::new(&cx.namespace, &first);
    of_first.apply(NAME, NAME, json!({ "minReplicas": 2 })).await?;
    of_first.publishes(NAME, Some(2.0), SOON).await?;
    let holder = eventually("it holds the object", SOON, async || holder(cx).await).await?;

    let other = format!("{}-other", cx.namespace.name);
    let other = Namespace::create(&cx.world, &other).await?;
    let outcome = take_no_turns(cx, of_first, &holder, &other).await;
    other.delete().await?;
    outcome
}

async fn take_no_turns(cx: &Cx, of_first: Variants<'_>, first: &str, other: &Namespace) -> Result {
    /// In so many cycles they would have taken turns many times over.
    const CYCLES: u64 = 30;
    let spec = ControllerSpec {
        name: "wva-1",
        ..ControllerSpec::scoped(cx).with("POD_NAMESPACE", &other.name)
    };
    let second = Controller::start(cx, &spec).await?.unscraped();
    let of_second = Variants::new(&cx.namespace, &second);
    let mut holders = vec![first.to_owned()];
    eventually("both have looked often", SOON * 2, async || {
        // While the object changes hands, both hold it, or none.
        if let Ok(holder) = holder(cx).await
            && holders.last() != Some(&holder)
        {
            holders.push(holder);
        }
        let plan = second.debug("decisions").await?;
        seen(&(plan["cycle"].as_u64() >= Some(CYCLES)), &true)
    })
    .await?;
    assert!(holders.len() <= 3, "{holders:?}");
    seen(&holder(cx).await?.as_str(), &first)?;
    conflict(of_second, Some("True/OtherController")).await?;
    of_first.publishes(NAME, Some(2.0), SOON).await?;
    seen(&of_second.desired(NAME).await?, &None)
}

/// The one controller that holds the status of the object.
async fn holder(cx: &Cx) -> Result<String> {
    let objects: Api<VariantAutoscaling> = cx.namespace.api();
    let owners = controllers(&objects.get(NAME).await?.metadata);
    let holders = owners
        .iter()
        .filter(|owner| owner.holds == Holding::Status)
        .map(|owner| owner.manager.to_string());
    match &holders.collect::<Vec<_>>()[..] {
        [one] => Ok(one.clone()),
        several => Err(Fault::new(format!("held by {several:?}"))),
    }
}

/// A controller of one instance, with an object of its own for the one target.
async fn instance(cx: &Cx, instance: &str) -> Result<Controller> {
    let spec = ControllerSpec {
        name: instance,
        ..ControllerSpec::scoped(cx).with("CONTROLLER_INSTANCE", instance)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    claim(cx, instance, NAME).await?;
    Ok(controller)
}

async fn claim(cx: &Cx, instance: &str, target: &str) -> Result {
    let mut object = variant(instance, target, &json!({ "maxReplicas": 4 }));
    object["metadata"]["labels"] = json!({ INSTANCE_LABEL: instance });
    cx.namespace.apply(object).await?;
    Ok(())
}

/// Each says so of its own object, none publishes, and nothing is scaled, until one of them names
/// something else.
async fn instances_that_name_one_target_say_so(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let blue = instance(cx, "blue").await?;
    let of_blue = Variants::new(&cx.namespace, &blue);
    of_blue.publishes("blue", Some(2.0), SOON).await?;
    let found = [("TargetResolved", "True/TargetFound")];
    of_blue.says("blue", &found, SOON).await?;

    let green = instance(cx, "green").await?;
    let of_green = Variants::new(&cx.namespace, &green);
    let contested = [("TargetResolved", "False/TargetContested")];
    for (variants, name) in [(of_blue, "blue"), (of_green, "green")] {
        let message = variants.says(name, &contested, SOON).await?;
        assert!(message.contains("blue") && message.contains("green"), "{message}");
        variants.publishes(name, None, SOON).await?;
    }
    eventually("there is an event on each", SOON, async || {
        let said = cx.namespace.events("TargetContested").await?;
        let objects = said.into_iter().filter_map(|event| event.regarding?.name);
        let objects: BTreeSet<String> = objects.collect();
        seen(&objects.into_iter().collect::<Vec<_>>(), &vec!["blue".into(), "green".into()])
    })
    .await?;

    claim(cx, "green", "another").await?;
    of_blue.publishes("blue", Some(2.0), SOON).await?;
    of_blue.says("blue", &found, SOON).await.map(drop)
}

async fn a_second_series_is_said(cx: &Cx) -> Result {
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    let controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
    let variants = Variants::new(&cx.namespace, &controller);
    variants.apply(NAME, NAME, json!({})).await?;
    variants.publishes(NAME, Some(2.0), SOON).await?;
    let query = format!("{DESIRED}{{exported_namespace=\"{}\"}}", cx.namespace.name);
    let counted = async |wanted: usize| {
        eventually(format!("{wanted} series"), SOON, async || {
            seen(&cx.world.prometheus.query(&query).await?.len(), &wanted)
        })
        .await
    };
    counted(1).await?;
    conflict(variants, None).await?;

    let line =
        format!("{DESIRED}{{variant_name=\"{NAME}\",namespace=\"{}\"}} 7\n", cx.namespace.name);
    let page = Exporter::start(move || Page::Text(line.clone())).await?;
    let system = &cx.system().await?.name;
    let target = cx.world.prometheus.scrape(system, "another", page.address)?;
    counted(2).await?;
    conflict(variants, Some("True/SecondSeries")).await?;
    if variants.desired(NAME).await? != Some(2.0) {
        return Err(Fault::new("the count was withdrawn"));
    }
    drop(target);
    drop(page);
    conflict(variants, None).await
}
