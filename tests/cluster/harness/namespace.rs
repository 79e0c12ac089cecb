//! A namespace of one test, and what tests put into it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{self as core, Pod, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::fault::Result;
use super::manifest;
use super::pod_autoscaler::workload;
use super::servers::kwok;
use super::wait::{eventually, seen};
use super::world::World;

pub(crate) struct Namespace {
    pub(crate) name: String,
    world: Arc<World>,
}

/// A Deployment of model servers.
#[derive(Clone, Debug)]
pub(crate) struct Workload<'a> {
    pub(crate) name: &'a str,
    pub(crate) replicas: i32,
    /// How long each pod loads its model.
    pub(crate) loading: Duration,
    /// GPUs of each pod, of the kind named, where the pods need any.
    pub(crate) gpus: Option<(u32, &'a str)>,
}

impl<'a> Workload<'a> {
    /// Pods without GPUs that load for a second.
    pub(crate) fn new(name: &'a str, replicas: i32) -> Self {
        Self { name, replicas, loading: Duration::from_secs(1), gpus: None }
    }

    /// The label selector of its pods.
    pub(crate) fn selector(&self) -> String {
        format!("app={}", self.name)
    }

    fn manifest(&self) -> Value {
        let labels = json!({ "app": self.name });
        let mut object = workload("Deployment", self.name, &labels, self.replicas.into());
        object["metadata"]["labels"] = labels;
        let pod = &mut object["spec"]["template"];
        let loading = format!("{}ms", self.loading.as_millis());
        pod["metadata"]["annotations"] = json!({ kwok::LOADING_TIME: loading });
        if let Some((count, product)) = self.gpus {
            pod["spec"]["nodeSelector"] = json!({ "nvidia.com/gpu.product": product });
            pod["spec"]["containers"][0]["resources"] =
                json!({ "limits": { "nvidia.com/gpu": count.to_string() } });
        }
        object
    }
}

impl Namespace {
    /// Makes the namespace and waits until pods can be created in it.
    pub(crate) async fn create(world: &Arc<World>, name: &str) -> Result<Self> {
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
        });
        manifest::apply(&world.client, object, None).await?;
        let namespace = Self { name: name.to_owned(), world: Arc::clone(world) };
        let accounts: Api<ServiceAccount> = namespace.api();
        let what = format!("{name} has its default service account");
        eventually(what, Duration::from_secs(20), async || Ok(accounts.get("default").await?))
            .await?;
        Ok(namespace)
    }

    /// Marks the namespace for deletion; nothing waits for its end.
    pub(crate) async fn delete(&self) -> Result {
        let namespaces: Api<core::Namespace> = Api::all(self.client());
        namespaces.delete(&self.name, &DeleteParams::background()).await?;
        Ok(())
    }

    pub(crate) fn client(&self) -> Client {
        self.world.client.clone()
    }

    /// The client for a kind in this namespace.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + DeserializeOwned,
    {
        Api::namespaced(self.client(), &self.name)
    }

    /// The client for a kind whose objects are taken as they are.
    pub(crate) fn erased(&self, resource: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client(), &self.name, resource)
    }

    /// The client for a kind that k8s-openapi does not know.
    pub(crate) async fn dynamic(&self, version: &str, kind: &str) -> Result<Api<DynamicObject>> {
        let (resource, _) = manifest::resource(&self.world.client, version, kind).await?;
        Ok(Api::namespaced_with(self.client(), &self.name, &resource))
    }

    /// Applies an object of any kind in this namespace.
    pub(crate) async fn apply(&self, object: Value) -> Result<DynamicObject> {
        manifest::apply(&self.world.client, object, Some(&self.name)).await
    }

    /// Applies a ConfigMap with these entries.
    pub(crate) async fn configure(&self, name: &str, data: Value) -> Result {
        let metadata = json!({ "name": name });
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data,
        });
        self.apply(map).await.map(drop)
    }

    pub(crate) async fn deploy(&self, workload: &Workload<'_>) -> Result {
        self.apply(workload.manifest()).await?;
        Ok(())
    }

    /// Deploys replicas that load for a second, and waits until they are ready; answers the selector of their pods.
    pub(crate) async fn run(&self, name: &str, replicas: i32, within: Duration) -> Result<String> {
        let workload = Workload::new(name, replicas);
        self.deploy(&workload).await?;
        self.settles(name, replicas, within).await?;
        Ok(workload.selector())
    }

    /// Sets the number of replicas the way `kubectl scale` does.
    pub(crate) async fn scale(&self, deployment: &str, replicas: i32) -> Result {
        let deployments: Api<Deployment> = self.api();
        let scale = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        deployments.patch_scale(deployment, &PatchParams::default(), &scale).await?;
        Ok(())
    }

    /// Waits until a Deployment requests, has, and has ready exactly so many replicas.
    pub(crate) async fn settles(
        &self,
        deployment: &str,
        replicas: i32,
        within: Duration,
    ) -> Result {
        let deployments: Api<Deployment> = self.api();
        let what = format!("{deployment} settles at {replicas}");
        eventually(what, within, async || {
            let found = deployments.get(deployment).await?;
            seen(&Replicas::of(&found), &Replicas::settled(replicas))
        })
        .await
    }

    /// The events with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Result<Vec<Event>> {
        let events: Api<Event> = self.api();
        let mut found = events.list(&ListParams::default()).await?.items;
        found.retain(|event| event.reason.as_deref() == Some(reason));
        Ok(found)
    }

    /// Waits until a condition of an object has this status.
    pub(crate) async fn has_condition(
        &self,
        (version, kind): (&str, &str),
        name: &str,
        (condition, wanted): (&str, &str),
        within: Duration,
    ) -> Result {
        let objects = self.dynamic(version, kind).await?;
        let what = format!("{condition} of {kind} {name} is {wanted}");
        eventually(what, within, async || {
            let [status, ..] = condition_of(&objects.get(name).await?, condition);
            seen(&status.as_str(), &wanted)
        })
        .await
    }

    /// The pods that a label selector picks.
    pub(crate) async fn pods(&self, selector: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = self.api();
        Ok(pods.list(&ListParams::default().labels(selector)).await?.items)
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Version and kind of the autoscalers of Kubernetes, and of those of KEDA.
pub(crate) const HPA: (&str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler");
pub(crate) const KEDA: (&str, &str) = ("keda.sh/v1alpha1", "ScaledObject");

/// Status, reason and message of a condition of an object; empty while there is none.
pub(crate) fn condition_of(object: &DynamicObject, kind: &str) -> [String; 3] {
    let mut all = object.data["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|one| one["type"] == kind).unwrap_or(&Value::Null);
    ["status", "reason", "message"]
        .map(|field| found[field].as_str().unwrap_or_default().to_owned())
}

/// The three numbers of a Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) wanted: i32,
    pub(crate) present: i32,
    pub(crate) ready: i32,
}

impl Replicas {
    pub(crate) fn settled(replicas: i32) -> Self {
        Self { wanted: replicas, present: replicas, ready: replicas }
    }

    pub(crate) fn of(deployment: &Deployment) -> Self {
        let status = deployment.status.as_ref();
        Self {
            wanted: deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
            present: status.and_then(|status| status.replicas).unwrap_or(0),
            ready: status.and_then(|status| status.ready_replicas).unwrap_or(0),
        }
    }
}
