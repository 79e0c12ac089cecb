//! Kinds that a PodAutoscaler scales by their scale subresource alone. The selector of its status names the pods.

use std::time::Duration;

use futures::future::try_join;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::Result;
use crate::harness::pod_autoscaler::{KindController, PlayedObject, autoscaler};
use crate::harness::ports;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::MODEL;
use crate::harness::wait::{eventually, seen};

/// Ticks come every ten seconds, and a step may double.
const SOON: Duration = Duration::from_secs(90);
const FLEET: &str = "fleet";
const PREFILL: &str = "pd-prefill";
const DECODE: &str = "pd-decode";

pub(crate) fn cases() -> Vec<Case> {
    let minutes = Duration::from_mins;
    vec![
        Case::shared(
            "scaled_kinds::fleets_follow_their_heads_and_roles_their_leaders",
            async |cx: &Cx| {
                let controller = Controller::start(cx, &ControllerSpec::scoped(cx)).await?;
                controller.ready().await?;
                try_join(heads(cx), leaders_of_roles(cx)).await.map(drop)
            },
        )
        .within(minutes(5)),
    ]
}

/// Two pods without a page for each that serves one: a release would fail for want of samples if they counted.
fn played(
    object: &DynamicObject,
    [serving, other]: [Value; 2],
    (field, selector): (&str, &str),
) -> PlayedObject {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let count = object.data["spec"]["replicas"].as_i64().unwrap_or(0);
    PlayedObject {
        deployments: vec![
            (name.to_owned(), serving, count),
            (format!("{name}-workers"), other, count * 2),
        ],
        status: json!({ "replicas": count, field: selector }),
    }
}

/// The selector is that of all pods, of which the heads alone serve pages.
fn play_fleet(object: &DynamicObject) -> PlayedObject {
    let labels = |node: &str| json!({ "app": FLEET, "ray.io/node-type": node });
    let pods = ["head", "worker"].map(labels);
    played(object, pods, ("scalingTargetSelector", "app=fleet"))
}

const ROLE: &str = "disaggregatedset.x-k8s.io/role";
const INDEX: &str = "leaderworkerset.sigs.k8s.io/worker-index";

fn leaders(role: &str) -> String {
    format!("disaggregatedset.x-k8s.io/name=pd,{ROLE}={role},{INDEX}=0")
}

fn play_scaler(object: &DynamicObject) -> PlayedObject {
    let role = object.data["spec"]["targetRef"]["role"].as_str();
    let role = role.unwrap_or_default();
    let labels =
        |index: &str| json!({ "disaggregatedset.x-k8s.io/name": "pd", ROLE: role, INDEX: index });
    played(object, ["0", "1"].map(labels), ("selector", &leaders(role)))
}

/// One scaled object with its own controller, and pages of the pods that serve.
struct Target<'a> {
    cx: &'a Cx,
    objects: Api<DynamicObject>,
    name: &'static str,
    pages: EngineFleet,
    _kind: KindController,
}

impl<'a> Target<'a> {
    /// `serving` selects the pods that serve pages, of which each runs four requests of the eight that it is to run.
    async fn set(
        cx: &'a Cx,
        (name, strategy): (&'static str, &str),
        object: Value,
        play: fn(&DynamicObject) -> PlayedObject,
        serving: String,
    ) -> Result<Self> {
        let namespace = &cx.namespace;
        let (version, kind) = (&object["apiVersion"], &object["kind"]);
        let target = json!({ "apiVersion": version, "kind": kind, "name": name });
        let texts = [version, kind].map(|text| text.as_str().unwrap_or_default().to_owned());
        namespace.apply(object).await?;
        let objects = namespace.dynamic(&texts[0], &texts[1]).await?;
        let kind = KindController::start(namespace, objects.clone(), name, play);
        let port = ports::free()?;
        let pages = EngineFleet::at_pods(cx, &serving, MODEL, Load::running(4.0), port);
        let scaler = autoscaler(name, strategy, &target, port);
        namespace.apply(scaler).await?;
        Ok(Self {
            cx,
            objects,
            name,
            pages,
            _kind: kind,
        })
    }

    async fn rests_at(&self, count: i32) -> Result {
        let what = format!("{} has {count} replicas", self.name);
        eventually(what, SOON, async || {
            let scale = self.objects.get_scale(self.name).await?;
            seen(&scale.spec.and_then(|spec| spec.replicas), &Some(count))
        })
        .await?;
        self.cx.namespace.settles(self.name, count, SOON).await
    }
}

async fn heads(cx: &Cx) -> Result {
    let object = json!({
        "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "RayClusterFleet",
        "metadata": { "name": FLEET },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": FLEET } }, "template": {} },
    });
    let heads = "app=fleet,ray.io/node-type=head".to_owned();
    let fleet = Target::set(cx, (FLEET, "APA"), object, play_fleet, heads).await?;
    fleet.rests_at(1).await?;
    fleet.pages.set_load(Load::running(22.0));
    fleet.rests_at(3).await?;
    fleet.pages.set_load(Load::running(4.0));
    fleet.rests_at(1).await
}

/// The scaler of the other role stays as it is.
async fn leaders_of_roles(cx: &Cx) -> Result {
    let scaler = |name: &str, role: &str| {
        json!({
            "apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSetRoleScaler",
            "metadata": { "name": name },
            "spec": { "replicas": 1, "targetRef": { "name": "pd", "role": role } },
        })
    };
    let set = async |name, strategy, role| {
        let object = scaler(name, role);
        Target::set(cx, (name, strategy), object, play_scaler, leaders(role)).await
    };
    let prefill = set(PREFILL, "KPA", "prefill").await?;
    let decode = set(DECODE, "APA", "decode").await?;
    decode.pages.set_load(Load::running(22.0));
    decode.rests_at(3).await?;
    prefill.rests_at(1).await?;
    decode.pages.set_load(Load::running(4.0));
    decode.rests_at(1).await
}
