//! `external.metrics.k8s.io` served by the controller: a native HPA follows it, and no other client is let in
//! who may not read.

use std::time::Duration;

use http::Request;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::annotations::annotated;
use super::pod_autoscalers::a_generated_hpa_follows_a_total;
use crate::harness::account::Account;
use crate::harness::controller::ControllerSpec;
use crate::harness::door::{Door, GROUP, shipped};
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::namespace::{HPA, Workload};
use crate::harness::pki::{Authority, Subject};
use crate::harness::reader::Reader;
use crate::harness::router::{Manner, Router};
use crate::harness::servers::prometheus::Target;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};
use crate::harness::world::Setup;

pub(super) const NAME: &str = "llama";
/// Of a target that no object of ours names, and of its model.
pub(super) const DECLARED: &str = "declared";
const SOON: Duration = Duration::from_secs(30);
/// The controller reads peaks of a minute.
pub(super) const LATER: Duration = Duration::from_mins(2);
/// Wants 3 replicas: 2.0 / 3 is 0.67, and 2 of them are saturated.
pub(super) const LOAD_OF_3: f64 = 2.0;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, external_metrics_door::is_for_authorized_readers_alone),
        Case::shared(
            "external_metrics_door::believes_a_new_authority_of_front_proxies",
            believes_a_new_authority,
        ),
        case!(shared, external_metrics_door::what_is_not_known_is_an_error),
        case!(shared, external_metrics_door::every_replica_answers),
        case!(with_own_servers(Setup::Whole), external_metrics_door::a_native_hpa_follows)
            .within(Duration::from_mins(10)),
    ]
}

/// A router before a model that may go to zero soon. It is read from Prometheus, and at zero by itself, too.
pub(super) async fn before_zero(cx: &Cx) -> Result<(Router, Target)> {
    let router = Router::start(Manner::holding(MODEL, 0)).await?;
    router.route(&cx.namespace, NAME).await?;
    let prometheus = &cx.world.prometheus;
    let page = prometheus.scrape(&cx.namespace.name, "llama-epp", router.address())?;
    let entry = "enable_scale_to_zero: true\nretention_period: 10s";
    let name = "wva-model-scale-to-zero-config";
    cx.namespace.configure(name, json!({ "default": entry })).await?;
    Ok((router, page))
}

/// A variant at rest with so many replicas.
async fn at_rest(cx: &Cx, replicas: i32) -> Result {
    cx.namespace.run(NAME, replicas, SOON).await?;
    cx.namespace.apply(variant(NAME, NAME, &json!({ "maxReplicas": 10 }))).await?;
    Ok(())
}

/// Waits until a reader gets two replicas.
async fn reads_two(reader: &Reader, url: &str) -> Result {
    eventually("the count is read", SOON, async || {
        seen(&Door::value(reader, url).await?.as_str(), &"2")
    })
    .await
}

/// The API server itself: it may everything.
fn front_proxy(cx: &Cx) -> Reader {
    stranger(cx, "front-proxy").with_header("x-remote-group", "system:masters")
}

/// A client that claims to be the API server and shows one of the world's certificates.
fn stranger(cx: &Cx, certificate: &str) -> Reader {
    let stem = cx.world.site.pki.path(certificate);
    Reader::anonymous().with_identity(&stem).with_header("x-remote-user", "system:kube-aggregator")
}

async fn is_for_authorized_readers_alone(cx: &Cx) -> Result {
    at_rest(cx, 2).await?;
    let door = Door::open(cx, ControllerSpec::scoped(cx)).await?;
    let url = door.desired(&cx.namespace.name, NAME);
    reads_two(&front_proxy(cx), &url).await?;

    let forged = Reader::anonymous()
        .with_header("x-remote-user", "system:kube-aggregator")
        .with_header("x-remote-group", "system:masters");
    let paths = [url.clone(), door.url(GROUP), door.url("/apis"), door.url("/metrics")];
    for path in &paths {
        for stranger in [Reader::anonymous(), Reader::anonymous().with_token("x"), forged.clone()] {
            let (status, text) = stranger.get(path).await?;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}: {text}");
            let document: Value = serde_json::from_str(&text)?;
            assert_eq!(document["reason"], "Unauthorized", "{text}");
        }
    }
    // A certificate that only users of the API server show, and one that its own authority signed.
    let admin = stranger(cx, "admin").with_header("x-remote-group", "system:masters");
    assert!(admin.get(&url).await.is_err());
    // The right certificate alone names no user; the user that it names may still not read.
    let silent = Reader::anonymous().with_identity(&cx.world.site.pki.path("front-proxy"));
    assert_eq!(silent.status(&url).await?, StatusCode::UNAUTHORIZED);
    let named = silent.with_header("x-remote-user", "jane");
    assert_eq!(named.status(&url).await?, StatusCode::FORBIDDEN);

    let account = Account::create(&cx.namespace, "reader").await?;
    let reader = Reader::anonymous().with_token(&account.token().await?);
    let (status, text) = reader.get(&url).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "{text}");
    for part in ["cannot list resource", "wva_desired_replicas", &cx.namespace.name] {
        assert!(text.contains(part), "{text}");
    }
    account.bind_shipped("external-metrics/reader_role.yaml").await?;
    reads_two(&reader, &url).await
}

async fn believes_a_new_authority(cx: &Cx) -> Result {
    let door = Door::open(cx, ControllerSpec::scoped(cx)).await?;
    let folder = cx.folder("front-proxies")?;
    let authority = Authority::make(&folder, "new-ca")?;
    authority.issue(&folder, "new", &Subject::user("front-proxy-client"))?;
    authority.issue(&folder, "other", &Subject::user("another"))?;
    let with = |name: &str| {
        Reader::anonymous()
            .with_identity(&folder.join(name).display().to_string())
            .with_header("x-remote-user", "system:kube-aggregator")
            .with_header("x-remote-group", "system:masters")
    };
    let url = door.url(GROUP);
    front_proxy(cx).gets(&url, StatusCode::OK, SOON).await?;
    assert!(with("new").get(&url).await.is_err());

    let config_maps: Api<ConfigMap> = Api::namespaced(cx.world.client.clone(), "kube-system");
    let added = std::fs::read_to_string(folder.join("new-ca.crt"))?;
    eventually("the authority is added", SOON, async || {
        let name = "extension-apiserver-authentication";
        let mut object = config_maps.get(name).await?;
        let data = object.data.get_or_insert_default();
        let bundle = data.entry("requestheader-client-ca-file".to_owned()).or_default();
        bundle.push_str(&added);
        config_maps.replace(name, &PostParams::default(), &object).await?;
        Ok(())
    })
    .await?;
    with("new").gets(&url, StatusCode::OK, SOON).await?;
    assert_eq!(front_proxy(cx).status(&url).await?, StatusCode::OK);
    // Its signature is good, its name is not in the list.
    assert_eq!(with("other").status(&url).await?, StatusCode::UNAUTHORIZED);
    Ok(())
}

async fn what_is_not_known_is_an_error(cx: &Cx) -> Result {
    cx.namespace.apply(variant(NAME, NAME, &json!({ "maxReplicas": 10 }))).await?;
    let door = Door::open(cx, ControllerSpec::scoped(cx)).await?;
    let reader = front_proxy(cx);
    let namespace = &cx.namespace.name;
    let url = door.desired(namespace, NAME);
    // Its target is missing, so nothing was ever decided for it.
    eventually("the lack of a value is said", SOON, async || {
        let (status, text) = reader.get(&url).await?;
        let named = text.contains(&format!("{namespace}/{NAME}"));
        seen(&(status, named), &(StatusCode::SERVICE_UNAVAILABLE, true))
    })
    .await?;
    cx.namespace.deploy(&Workload::new(NAME, 2)).await?;
    reads_two(&reader, &url).await?;
    for (path, wanted) in wva_base::cases! {
        (format!("{namespace}/wva_unknown"), StatusCode::NOT_FOUND),
        (format!("{namespace}/wva_desired_replicas?labelSelector=a%20b"), StatusCode::BAD_REQUEST),
        (format!("{namespace}/wva_desired_replicas?watch=true"), StatusCode::BAD_REQUEST),
    } {
        let url = door.url(&format!("{GROUP}/namespaces/{path}"));
        assert_eq!(reader.status(&url).await?, wanted, "{path}");
    }
    let (posted, _) = reader.ask(Method::POST, &url).await?;
    assert_eq!(posted, StatusCode::METHOD_NOT_ALLOWED);
    // Other variants and other namespaces are no part of it.
    for url in [door.desired(namespace, "other"), door.desired("default", NAME)] {
        let (status, text) = reader.get(&url).await?;
        let list: Value = serde_json::from_str(&text)?;
        assert_eq!((status, &list["items"]), (StatusCode::OK, &json!([])), "{text}");
    }
    Ok(())
}

/// A Service does not know who leads.
async fn every_replica_answers(cx: &Cx) -> Result {
    at_rest(cx, 2).await?;
    let replica = |name| ControllerSpec {
        name,
        arguments: vec!["--leader-elect=true".to_owned()],
        ..ControllerSpec::scoped(cx)
    };
    let leader = Door::open(cx, replica("wva-0")).await?;
    let leads = "[+] leadership: leading";
    leader.controller.readiness_has(leads, SOON).await?;
    let follower = Door::open(cx, replica("wva-1")).await?;
    for door in [&leader, &follower] {
        let url = door.desired(&cx.namespace.name, NAME);
        reads_two(&front_proxy(cx), &url).await?;
    }
    let text = follower.controller.readiness().await?;
    assert!(text.contains("[+] leadership: following"), "{text}");
    Ok(())
}

/// A Deployment with one pod, an idle engine of a model, and what it goes through.
pub(super) async fn served(cx: &Cx, name: &str, model: &str) -> Result<(History, EngineFleet)> {
    let pods = cx.namespace.run(name, 1, SOON).await?;
    let history = History::follow(&cx.namespace, name);
    Ok((history, EngineFleet::start(cx, &pods, model, Load::cache(0.0))))
}

/// 1 → 3 → 1 without Prometheus and adapter between the controller and the HPA; the API server and
/// the door speak HTTP/2. One HPA follows an object of ours, another declares its variant by annotations. Then a
/// PodAutoscaler has a third one generated.
async fn a_native_hpa_follows(cx: &Cx) -> Result {
    let namespace = cx.namespace.name.as_str();
    let (history, fleet) = served(cx, NAME, MODEL).await?;
    let (history_of_other, other_fleet) = served(cx, DECLARED, DECLARED).await?;
    let bounds = json!({ "maxReplicas": 10 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;
    let controller = ControllerSpec {
        environment: vec![("ANNOTATED_SCALERS_ENABLED", "true".to_owned())],
        arguments: vec!["--enable-http2=true".to_owned()],
        ..ControllerSpec::scoped(cx)
    };
    let door = Door::open(cx, controller).await?;

    // KEDA serves the group still, and what lets the HPA controller read is what we ship.
    let bindings: Api<ClusterRoleBinding> = Api::all(cx.world.client.clone());
    bindings.delete("external-metrics-reader", &DeleteParams::default()).await?;
    cx.namespace.apply(hpa(namespace, NAME, 10)?).await?;
    let other = annotated(hpa(namespace, DECLARED, 10)?, DECLARED);
    cx.namespace.apply(other).await?;
    reads(cx, NAME, None).await?;
    door.register(cx).await?;
    reads(cx, NAME, Some("1")).await?;
    reads(cx, DECLARED, Some("1")).await?;
    let resources = cx.world.client.request_text(Request::get(GROUP).body(Vec::new())?).await?;
    assert!(resources.contains("wva_desired_replicas"), "{resources}");

    for (kv_cache, count) in [(LOAD_OF_3, 3), (0.0, 1)] {
        fleet.set_load(Load::cache(kv_cache));
        other_fleet.set_load(Load::cache(kv_cache));
        cx.namespace.settles(NAME, count, LATER).await?;
        cx.namespace.settles(DECLARED, count, LATER).await?;
    }
    history.went(&[1, 2, 3, 2, 1]).await?;
    history_of_other.went(&[1, 2, 3, 2, 1]).await?;
    let variants = Variants::new(&cx.namespace, &door.controller);
    let follows = [("ActuationReady", "True/ScalerFollows")];
    variants.says(NAME, &follows, LATER).await?;

    // What is left of the metric is that of one variant.
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    hpas.delete(DECLARED, &DeleteParams::default()).await?;
    an_hpa_takes_a_model_to_zero_and_back(cx, variants).await?;
    variants.delete(NAME).await?;
    a_generated_hpa_follows_a_total(cx).await
}

/// 1 → 0 → 1 by the HPA, which says since Kubernetes 1.37 that it went to zero itself. What a person scales to zero
/// stays there, and the variant says so, whatever waits in the router.
async fn an_hpa_takes_a_model_to_zero_and_back(cx: &Cx, variants: Variants<'_>) -> Result {
    let (router, _page) = before_zero(cx).await?;
    let mut scaler = hpa(&cx.namespace.name, NAME, 3)?;
    scaler["spec"]["minReplicas"] = json!(0);
    cx.namespace.apply(scaler).await?;
    let bounds = json!({ "minReplicas": 0, "maxReplicas": 3 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;

    let went_itself = async |wanted: &str| {
        let went = ("ScaledToZero", wanted);
        cx.namespace.has_condition(HPA, NAME, went, SOON).await
    };
    cx.namespace.settles(NAME, 0, LATER).await?;
    went_itself("True").await?;
    let follows = [("ActuationReady", "True/ScalerFollows")];
    variants.says(NAME, &follows, LATER).await?;
    router.behave(Manner::holding(MODEL, 2));
    cx.namespace.settles(NAME, 1, LATER).await?;
    went_itself("False").await?;

    cx.namespace.scale(NAME, 0).await?;
    let rests = [("ActuationReady", "False/ScalerPaused")];
    let said = variants.says(NAME, &rests, LATER).await?;
    assert!(said.contains("scaled to 0"), "{said}");
    cx.namespace.settles(NAME, 0, SOON).await?;
    cx.namespace.scale(NAME, 1).await?;
    variants.says(NAME, &follows, LATER).await?;
    Ok(())
}

/// The shipped example, for the variant of the case.
pub(super) fn hpa(namespace: &str, name: &str, max: i32) -> Result<Value> {
    let mut hpa = shipped("hpa.yaml")?;
    hpa["metadata"]["name"] = json!(name);
    hpa["spec"]["scaleTargetRef"]["name"] = json!(name);
    hpa["spec"]["maxReplicas"] = json!(max);
    let metric = &mut hpa["spec"]["metrics"][0]["external"]["metric"];
    metric["selector"]["matchLabels"] =
        json!({ "variant_name": name, "exported_namespace": namespace });
    Ok(hpa)
}

/// Waits until the HPA shows this average, or that it has none.
pub(super) async fn reads(cx: &Cx, name: &str, average: Option<&str>) -> Result {
    let hpas: Api<HorizontalPodAutoscaler> = cx.namespace.api();
    eventually(format!("the HPA reads {average:?}"), LATER, async || {
        let status = hpas.get(name).await?.status.unwrap_or_default();
        let mut conditions = status.conditions.unwrap_or_default().into_iter();
        let active = conditions.find(|condition| condition.type_ == "ScalingActive");
        let active = active.ok_or_else(|| Fault::new("the HPA has not looked yet"))?;
        let mut metrics = status.current_metrics.unwrap_or_default().into_iter();
        let value = metrics.find_map(|metric| metric.external?.current.average_value);
        let wanted = if average.is_some() { "True" } else { "False" };
        let found = (active.status.as_str(), value.as_ref().map(|value| value.0.as_str()));
        seen(&found, &(wanted, average))
            .map_err(|fault| Fault::new(format!("{}: {:?}", fault.text(), active.message)))
    })
    .await
}
