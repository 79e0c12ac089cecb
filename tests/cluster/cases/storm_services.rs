//! StormServices, whose roles have no scale subresource: a PodAutoscaler writes the count that it reads.

use std::time::Duration;

use futures::future::try_join;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load};
use crate::harness::fault::Result;
use crate::harness::pod_autoscaler::{KindController, PlayedObject, autoscaler, workload};
use crate::harness::ports;
use crate::harness::suite::{Case, Cx};
use crate::harness::variants::MODEL;
use crate::harness::wait::{eventually, seen};

const VERSION: &str = "orchestration.aibrix.ai/v1alpha1";
const ROLES: [&str; 2] = ["prefill", "decode"];
/// Ticks come every ten seconds, and a step may double.
const SOON: Duration = Duration::from_secs(90);

pub(crate) fn cases() -> Vec<Case> {
    let minutes = Duration::from_mins;
    vec![
        Case::shared(
            "storm_services::roles_follow_their_own_load_and_services_that_of_all",
            async |cx: &Cx| {
                let _controller = Controller::start_ready(cx, &ControllerSpec::scoped(cx)).await?;
                try_join(roles(cx), whole(cx)).await.map(drop)
            },
        )
        .within(minutes(5)),
    ]
}

fn service(service: &str, mode: &str) -> Value {
    let role = |name: &&str| json!({ "name": name, "replicas": 1 });
    json!({
        "apiVersion": VERSION, "kind": "StormService", "metadata": { "name": service },
        "spec": {
            "replicas": 1,
            "mode": mode,
            "template": { "spec": { "roles": ROLES.iter().map(role).collect::<Vec<_>>() } },
        },
    })
}

/// A Deployment for each role, with the labels that pods of a StormService have.
fn play(object: &DynamicObject) -> PlayedObject {
    let service = object.metadata.name.as_deref().unwrap_or_default();
    let sets = object.data["spec"]["replicas"].as_i64().unwrap_or(1);
    let roles = object.data["spec"]["template"]["spec"]["roles"].as_array();
    let workloads = roles.into_iter().flatten().map(|role| {
        let name = role["name"].as_str().unwrap_or_default();
        let labels = json!({ "storm-service-name": service, "role-name": name });
        let count = sets * role["replicas"].as_i64().unwrap_or(1);
        workload("Deployment", &format!("{service}-{name}"), &labels, count)
    });
    PlayedObject {
        workloads: workloads.collect(),
        status: json!({
            "replicas": sets, "scalingTargetSelector": format!("storm-service-name={service}"),
        }),
    }
}

/// A StormService with the controller of its kind, and pages of its pods for each role.
struct Stage<'a> {
    cx: &'a Cx,
    service: &'static str,
    objects: Api<DynamicObject>,
    fleets: [EngineFleet; 2],
    port: u16,
    _roles: KindController,
}

impl<'a> Stage<'a> {
    async fn set(cx: &'a Cx, name: &'static str, mode: &str) -> Result<Self> {
        let namespace = &cx.namespace;
        namespace.apply(service(name, mode)).await?;
        let objects = namespace.dynamic(VERSION, "StormService").await?;
        let roles = KindController::start(namespace, objects.clone(), name, play);
        let port = ports::free()?;
        let fleets = ROLES.map(|role| {
            EngineFleet::at_pods(
                cx,
                &format!("storm-service-name={name},role-name={role}"),
                MODEL,
                Load::running(4.0),
                port,
            )
        });
        Ok(Self { cx, service: name, objects, fleets, port, _roles: roles })
    }

    /// Has a role scaled, or the whole service where none is named.
    async fn autoscale(&self, name: &str, strategy: &str, role: Option<&str>) -> Result {
        let target = json!({ "apiVersion": VERSION, "kind": "StormService", "name": self.service });
        let mut object = autoscaler(name, strategy, &target, self.port);
        if let Some(role) = role {
            object["spec"]["subTargetSelector"] = json!({ "roleName": role });
        }
        self.cx.namespace.apply(object).await?;
        Ok(())
    }

    /// Replicas of the service, of its first and of its second role.
    async fn counts(&self) -> Result<[Value; 3]> {
        let object = self.objects.get(self.service).await?;
        let spec = &object.data["spec"];
        let role = |index: usize| spec["template"]["spec"]["roles"][index]["replicas"].clone();
        Ok([spec["replicas"].clone(), role(0), role(1)])
    }

    async fn rests_at(&self, counts: [i32; 3]) -> Result {
        let wanted = counts.map(|count| json!(count));
        eventually(format!("the counts are {counts:?}"), SOON, async || {
            seen(&self.counts().await?, &wanted)
        })
        .await?;
        let [sets, prefill, decode] = counts;
        for (role, count) in ROLES.into_iter().zip([prefill, decode]) {
            let deployment = format!("{}-{role}", self.service);
            let pods = sets * count;
            self.cx.namespace.settles(&deployment, pods, SOON).await?;
        }
        Ok(())
    }
}

/// Each role is scaled by the pages of its own pods, with nothing else of the service touched.
async fn roles(cx: &Cx) -> Result {
    let stage = Stage::set(cx, "pd", "Pooled").await?;
    stage.rests_at([1, 1, 1]).await?;
    stage.autoscale("prefill", "KPA", Some("prefill")).await?;
    stage.autoscale("decode", "APA", Some("decode")).await?;
    stage.fleets[1].set_load(Load::running(22.0));
    stage.rests_at([1, 1, 3]).await?;
    stage.fleets[0].set_load(Load::running(14.0));
    stage.rests_at([1, 2, 3]).await?;
    stage.fleets[1].set_load(Load::running(4.0));
    stage.rests_at([1, 2, 1]).await?;
    stage.fleets[0].set_load(Load::running(4.0));
    stage.rests_at([1, 1, 1]).await
}

/// The pages of all roles count, and replicas of the whole service are written.
async fn whole(cx: &Cx) -> Result {
    let stage = Stage::set(cx, "all", "Replica").await?;
    stage.rests_at([1, 1, 1]).await?;
    stage.autoscale("whole", "KPA", None).await?;
    for fleet in &stage.fleets {
        fleet.set_load(Load::running(15.0));
    }
    let more = eventually("the service grows", SOON, async || {
        let [sets, ..] = stage.counts().await?;
        let sets = sets.as_i64().unwrap_or_default();
        seen(&(sets > 1), &true).map(|()| sets)
    })
    .await?;
    assert!(more <= 6, "{more}");
    let [_, prefill, decode] = stage.counts().await?;
    assert_eq!((prefill, decode), (json!(1), json!(1)));
    for fleet in &stage.fleets {
        fleet.set_load(Load::running(2.0));
    }
    stage.rests_at([1, 1, 1]).await
}
