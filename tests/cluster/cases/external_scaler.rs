//! KEDA's external scaler, served by the controller: KEDA follows decisions without Prometheus.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::external_metrics_door::{DECLARED, LATER, LOAD_OF_3, NAME, before_zero, served};
use super::leadership::{QUICK, candidate};
use crate::harness::bridge::Bridge;
use crate::harness::controller::{Build, Controller, ControllerSpec};
use crate::harness::engine::Load;
use crate::harness::fault::{Fault, Result};
use crate::harness::history::History;
use crate::harness::journal::Journal;
use crate::harness::namespace::{HPA, KEDA};
use crate::harness::pki::{Authority, Subject};
use crate::harness::ports;
use crate::harness::router::Manner;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::suite::{Case, Cx, case};
use crate::harness::variants::{MODEL, Variants, variant};
use crate::harness::wait::{eventually, seen};

const ROLE: &str = "external-scaler";
/// Of the Secret and the TriggerAuthentication by which KEDA and the scaler trust each other.
const TRUST: &str = "wva-external-scaler";
const SOON: Duration = Duration::from_mins(1);

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, external_scaler::keda_follows_while_the_leader_dies)
            .within(Duration::from_mins(6)),
        Case::shared(
            "external_scaler::a_killed_role_comes_back_and_keda_with_it",
            a_killed_role_comes_back,
        ),
        case!(exclusive, external_scaler::keda_that_starts_anew_follows_again)
            .within(Duration::from_mins(6)),
        case!(shared, external_scaler::what_is_not_known_scales_nothing),
        case!(shared, external_scaler::keda_takes_a_model_to_zero_and_back),
    ]
}

pub(super) fn scaled_object(name: &str) -> ScaledObject<'_> {
    ScaledObject { target: name, variant: name, min: 1, max: 10 }
}

/// A trigger that opens a stream, too.
pub(super) fn trigger(port: u16) -> Value {
    json!({
        "type": "external-push",
        "metricType": "AverageValue",
        "metadata": { "scalerAddress": format!("127.0.0.1:{port}"), "variantName": NAME },
    })
}

/// Certificates of the scaler and of KEDA, each of an authority of its own, under names that no default has.
async fn trust(cx: &Cx) -> Result<PathBuf> {
    let folder = cx.folder("scaler")?;
    let subject = Subject { hosts: &["127.0.0.1"], ..Subject::user("external-scaler") };
    Authority::make(&folder, "ca")?.issue(&folder, "own", &subject)?;
    Authority::make(&folder, "clients")?.issue(&folder, "keda", &Subject::user("keda"))?;
    let read = |file: &str| -> Result<Value> {
        let bytes = ByteString(fs::read(folder.join(file))?);
        Ok(serde_json::to_value(bytes)?)
    };
    let files = [("caCert", "ca.crt"), ("tlsClientCert", "keda.crt"), ("tlsClientKey", "keda.key")];
    let mut data = json!({});
    for (parameter, file) in files {
        data[parameter] = read(file)?;
    }
    let metadata = json!({ "name": TRUST });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data,
    });
    cx.namespace.apply(secret).await?;
    let parameters = files.map(|(parameter, _)| {
        json!({
            "parameter": parameter, "name": TRUST, "key": parameter,
        })
    });
    let authentication = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": metadata,
        "spec": { "secretTargetRef": parameters },
    });
    cx.namespace.apply(authentication).await?;
    Ok(folder)
}

/// A candidate for the lease that serves the external scaler to clients with a certificate.
async fn replica(cx: &Cx, name: &str, folder: &Path) -> Result<(Arc<Controller>, u16)> {
    let port = ports::free()?;
    let mut spec = candidate(cx, name, QUICK).with("ANNOTATED_SCALERS_ENABLED", "true");
    let place = folder.display();
    spec.arguments.extend([
        format!("--external-scaler-bind-address=127.0.0.1:{port}"),
        format!("--external-scaler-cert-path={place}"),
        "--external-scaler-cert-name=own.crt".to_owned(),
        "--external-scaler-cert-key=own.key".to_owned(),
        format!("--external-scaler-client-ca-path={place}/clients.crt"),
    ]);
    let controller = Controller::start_ready(cx, &spec).await?;
    Ok((Arc::new(controller), port))
}

/// 1 → 3 → 1 over mutual TLS; the leader dies on the way up, and its follower answers on. One target has an object
/// of ours, the other a trigger that names its model.
async fn keda_follows_while_the_leader_dies(cx: &Cx) -> Result {
    let (history, fleet) = served(cx, NAME, MODEL).await?;
    let (history_of_other, other_fleet) = served(cx, DECLARED, DECLARED).await?;
    let bounds = json!({ "maxReplicas": 10 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;
    let folder = trust(cx).await?;
    let (leader, first) = replica(cx, "wva-0", &folder).await?;
    let leads = "[+] leadership: leading";
    leader.readiness_has(leads, SOON).await?;
    let (follower, second) = replica(cx, "wva-1", &folder).await?;
    // KEDA calls the follower alone, then whichever the Service leads to.
    let service = Bridge::to(second).await?;
    let mut by_name = trigger(service.port);
    let mut by_model = trigger(service.port);
    let address = &by_model["metadata"]["scalerAddress"];
    by_model["metadata"] =
        json!({ "scalerAddress": address, "modelID": DECLARED, "variantCost": "10" });
    for (name, trigger) in [(NAME, &mut by_name), (DECLARED, &mut by_model)] {
        trigger["authenticationRef"] = json!({ "name": TRUST });
        let object = scaled_object(name);
        cx.namespace.apply(object.following(trigger)).await?;
        object.is_read(cx, "1").await?;
    }
    service.leads_to(&[first, second]);

    let both = [&history, &history_of_other];
    fleet.set_load(Load::cache(LOAD_OF_3));
    other_fleet.set_load(Load::cache(LOAD_OF_3));
    eventually("both grow", LATER, async || {
        let wanted = both.map(|history| history.wanted().last().copied());
        seen(&wanted.map(|wanted| wanted > Some(1)), &[true; 2])
    })
    .await?;
    leader.server.kill();
    service.leads_to(&[second]);
    for (name, history) in [NAME, DECLARED].into_iter().zip(both) {
        cx.namespace.settles(name, 3, LATER).await?;
        assert!(history.wanted().is_sorted(), "{:?}", history.wanted());
    }
    let variants = Variants::new(&cx.namespace, &follower);
    let follows = [("ActuationReady", "True/ScalerFollows")];
    variants.says(NAME, &follows, LATER).await?;

    fleet.set_load(Load::cache(0.0));
    other_fleet.set_load(Load::cache(0.0));
    for (name, history) in [NAME, DECLARED].into_iter().zip(both) {
        cx.namespace.settles(name, 1, LATER).await?;
        history.went(&[1, 2, 3, 2, 1]).await?;
    }
    Ok(())
}

/// One controller that serves the scaler in plain text, and the port of it.
pub(super) async fn in_plain_text(cx: &Cx) -> Result<(Controller, u16)> {
    let port = ports::free()?;
    let spec = ControllerSpec {
        build: Build::Killable,
        arguments: vec![
            format!("--external-scaler-bind-address=127.0.0.1:{port}"),
            "--external-scaler-secure=false".to_owned(),
        ],
        ..ControllerSpec::scoped(cx)
    };
    let controller = Controller::start_ready(cx, &spec).await?;
    Ok((controller, port))
}

async fn a_killed_role_comes_back(cx: &Cx) -> Result {
    cx.namespace.run(NAME, 2, SOON).await?;
    let history = History::follow(&cx.namespace, NAME);
    let bounds = json!({ "maxReplicas": 10 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;
    let (controller, port) = in_plain_text(cx).await?;
    let object = scaled_object(NAME);
    cx.namespace.apply(object.following(&trigger(port))).await?;
    object.is_read(cx, "1").await?;

    for restarts in 1..=2 {
        controller.kill_role(ROLE).await?;
        eventually("the role is back", SOON, async || {
            let tree = controller.debug("tree").await?;
            let mut roles = tree.as_array().into_iter().flatten();
            let role = roles.find(|report| report["role"] == ROLE);
            let role = role.ok_or_else(|| Fault::new(format!("{ROLE} is not in the tree")))?;
            let life = (role["state"].as_str(), role["restarts"].as_u64());
            seen(&life, &(Some("running"), Some(restarts)))
        })
        .await?;
        object.is_read(cx, "1").await?;
    }
    history.went(&[2]).await
}

/// KEDA's operator dies at three replicas: neither the published count nor that of the target falls, and the one that
/// follows it is led down.
async fn keda_that_starts_anew_follows_again(cx: &Cx) -> Result {
    let (history, fleet) = served(cx, NAME, MODEL).await?;
    let bounds = json!({ "maxReplicas": 10 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;
    let (controller, port) = in_plain_text(cx).await?;
    let controller = Arc::new(controller);
    let journal = Journal::follow(&controller, &cx.namespace.name, NAME);
    let object = scaled_object(NAME);
    cx.namespace.apply(object.following(&trigger(port))).await?;
    object.is_read(cx, "1").await?;
    fleet.set_load(Load::cache(LOAD_OF_3));
    cx.namespace.settles(NAME, 3, LATER).await?;
    let reads = async |wanted: &str| {
        let (name, active) = (format!("keda-hpa-{NAME}"), ("ScalingActive", wanted));
        cx.namespace.has_condition(HPA, &name, active, LATER).await
    };
    reads("True").await?;

    let keda = &cx.world.keda;
    keda.operator.kill();
    let unread = reads("False").await;
    let stays = journal.stays(3, 3, SOON).await;
    // Whatever comes of it, later cases need it.
    keda.operator.start()?;
    keda.operator_ready().await?;
    unread?;
    stays?;
    reads("True").await?;
    cx.namespace.settles(NAME, 3, SOON).await?;
    journal.gauge_went(&[1, 2, 3])?;

    fleet.set_load(Load::cache(0.0));
    cx.namespace.settles(NAME, 1, LATER).await?;
    journal.gauge_went(&[1, 2, 3, 2, 1])?;
    history.went(&[1, 2, 3, 2, 1]).await
}

/// The variant is missing: an error, by which KEDA falls back to what there is.
async fn what_is_not_known_scales_nothing(cx: &Cx) -> Result {
    cx.namespace.run(NAME, 3, SOON).await?;
    let history = History::follow(&cx.namespace, NAME);
    let (_controller, port) = in_plain_text(cx).await?;
    let object = scaled_object(NAME);
    cx.namespace.apply(object.following(&trigger(port))).await?;
    let falls_back = ("Fallback", "True");
    cx.namespace.has_condition(KEDA, NAME, falls_back, LATER).await?;
    history.went(&[3]).await
}

/// A model goes to zero once nothing was asked of it for the retention, and a queue in its router brings it back.
async fn keda_takes_a_model_to_zero_and_back(cx: &Cx) -> Result {
    let (history, _fleet) = served(cx, NAME, MODEL).await?;
    let (router, _page) = before_zero(cx).await?;
    let bounds = json!({ "minReplicas": 0, "maxReplicas": 3 });
    cx.namespace.apply(variant(NAME, NAME, &bounds)).await?;
    let (_controller, port) = in_plain_text(cx).await?;
    let object = ScaledObject { min: 0, max: 3, ..scaled_object(NAME) };
    cx.namespace.apply(object.following(&trigger(port))).await?;
    cx.namespace.settles(NAME, 0, LATER).await?;
    router.behave(Manner::holding(MODEL, 2));
    cx.namespace.settles(NAME, 1, LATER).await?;
    history.went(&[1, 0, 1]).await
}
