//! Kinds that a PodAutoscaler scales by their scale subresource. Where they are not watched, the selector of its status
//! names the pods.

use std::time::Duration;

use futures::future::try_join;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::Result;
use crate::harness::namespace::is_ready;
use crate::harness::pod_autoscaler::{KindController, PlayedObject, autoscaler, workload};
use crate::harness::ports;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::MODEL;
use crate::harness::wait::{eventually, seen};

/// Ticks come every ten seconds, and a step may double.
const SOON: Duration = Duration::from_secs(90);
const FLEET: &str = "fleet";
const PREFILL: &str = "pd-prefill";
const DECODE: &str = "pd-decode";
const SET: &str = "set";
const GROUPS: &str = "groups";
const GROUPS_VERSION: &str = "leaderworkerset.x-k8s.io/v1";
const GROUP_NAME: &str = "leaderworkerset.sigs.k8s.io/name";

pub(crate) fn cases() -> Vec<Case> {
    let minutes = Duration::from_mins;
    vec![
        Case::shared(
            "scaled_kinds::fleets_follow_their_heads_and_roles_their_leaders",
            async |cx: &Cx| {
                let _controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
                try_join(heads(cx), leaders_of_roles(cx)).await.map(drop)
            },
        )
        .within(minutes(5)),
        Case::shared("scaled_kinds::sets_and_groups_follow_load", async |cx: &Cx| {
            let _controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
            try_join(set(cx), groups(cx)).await.map(drop)
        })
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
        workloads: vec![
            workload("Deployment", name, &serving, count),
            workload("Deployment", &format!("{name}-workers"), &other, count * 2),
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
    serving: String,
    pages: EngineFleet,
    _kind: Option<KindController>,
}

impl<'a> Target<'a> {
    /// `serving` selects the pods that serve pages, of which each runs four requests of the eight that it is to run.
    /// Of a kind that the servers know, its own controller is left out.
    async fn set(
        cx: &'a Cx,
        (name, strategy): (&'static str, &str),
        object: Value,
        play: Option<fn(&DynamicObject) -> PlayedObject>,
        serving: String,
    ) -> Result<Self> {
        let namespace = &cx.namespace;
        let (version, kind) = (&object["apiVersion"], &object["kind"]);
        let target = json!({ "apiVersion": version, "kind": kind, "name": name });
        let texts = [version, kind].map(|text| text.as_str().unwrap_or_default().to_owned());
        namespace.apply(object).await?;
        let objects = namespace.dynamic(&texts[0], &texts[1]).await?;
        let kind = play.map(|play| KindController::start(namespace, objects.clone(), name, play));
        let port = ports::free()?;
        let pages = EngineFleet::at_pods(cx, &serving, MODEL, Load::running(4.0), port);
        let scaler = autoscaler(name, strategy, &target, port);
        namespace.apply(scaler).await?;
        Ok(Self { cx, objects, name, serving, pages, _kind: kind })
    }

    async fn rests_at(&self, count: i32) -> Result {
        let what = format!("{} has {count} replicas", self.name);
        eventually(what, SOON, async || {
            let scale = self.objects.get_scale(self.name).await?;
            seen(&scale.spec.and_then(|spec| spec.replicas), &Some(count))
        })
        .await?;
        eventually(format!("{count} of them serve"), SOON, async || {
            let pods = self.cx.namespace.pods(&self.serving).await?;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            let wanted = usize::try_from(count).unwrap_or_default();
            seen(&(pods.len(), ready), &(wanted, wanted))
        })
        .await
    }

    /// 1 → 3 → 1.
    async fn follows_load(&self) -> Result {
        self.rests_at(1).await?;
        self.pages.set_load(Load::running(22.0));
        self.rests_at(3).await?;
        self.pages.set_load(Load::running(4.0));
        self.rests_at(1).await
    }
}

async fn heads(cx: &Cx) -> Result {
    let object = json!({
        "apiVersion": "orchestration.aibrix.ai/v1alpha1", "kind": "RayClusterFleet",
        "metadata": { "name": FLEET },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": FLEET } }, "template": {} },
    });
    let heads = "app=fleet,ray.io/node-type=head".to_owned();
    let fleet = Target::set(cx, (FLEET, "APA"), object, Some(play_fleet), heads).await?;
    fleet.follows_load().await
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
        Target::set(cx, (name, strategy), object, Some(play_scaler), leaders(role)).await
    };
    let prefill = set(PREFILL, "KPA", "prefill").await?;
    let decode = set(DECODE, "APA", "decode").await?;
    decode.pages.set_load(Load::running(22.0));
    decode.rests_at(3).await?;
    prefill.rests_at(1).await?;
    decode.pages.set_load(Load::running(4.0));
    decode.rests_at(1).await
}

/// Its pods are those that it controls.
async fn set(cx: &Cx) -> Result {
    let object = workload("StatefulSet", SET, &json!({ "app": SET }), 1);
    let pods = format!("app={SET}");
    let set = Target::set(cx, (SET, "KPA"), object, None, pods).await?;
    set.follows_load().await
}

/// Its pods are those of the StatefulSet of leaders, which it controls.
fn play_groups(object: &DynamicObject) -> PlayedObject {
    let count = object.data["spec"]["replicas"].as_i64().unwrap_or(0);
    let labels = json!({ GROUP_NAME: GROUPS, INDEX: "0" });
    let mut leaders = workload("StatefulSet", GROUPS, &labels, count);
    leaders["metadata"]["ownerReferences"] = json!([{
        "apiVersion": GROUPS_VERSION, "kind": "LeaderWorkerSet", "name": GROUPS,
        "uid": object.metadata.uid, "controller": true,
    }]);
    PlayedObject {
        workloads: vec![leaders],
        status: json!({
            "replicas": count, "readyReplicas": count, "hpaPodSelector": leaders_of_groups(),
        }),
    }
}

fn leaders_of_groups() -> String {
    format!("{GROUP_NAME}={GROUPS},{INDEX}=0")
}

async fn groups(cx: &Cx) -> Result {
    let template = workload("Deployment", GROUPS, &json!({}), 1)["spec"]["template"].take();
    let object = json!({
        "apiVersion": GROUPS_VERSION, "kind": "LeaderWorkerSet", "metadata": { "name": GROUPS },
        "spec": { "replicas": 1, "leaderWorkerTemplate": { "size": 2, "workerTemplate": template } },
    });
    let play: fn(&DynamicObject) -> PlayedObject = play_groups;
    let groups = Target::set(cx, (GROUPS, "APA"), object, Some(play), leaders_of_groups());
    groups.await?.follows_load().await
}
