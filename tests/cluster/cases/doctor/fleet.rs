//! A healthy fleet, and how causes are planted in it and mended.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wva::api::INSTANCE_LABEL;

use crate::harness::account::Account;
use crate::harness::ahead::Ahead;
use crate::harness::controller::{ACCOUNT, Controller, ControllerSpec};
use crate::harness::engine::{EngineFleet, Load, Reading};
use crate::harness::exporter::{Exporter, Page};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::pod_autoscaler::workload;
use crate::harness::scaled_object::ScaledObject;
use crate::harness::servers::prometheus::{Prometheus, Target};
use crate::harness::suite::Cx;
use crate::harness::variants::{MODEL, variant};
use crate::harness::wait::{eventually, seen};

/// The Deployment of the controller.
pub(super) const CONTROLLER: &str = "wva-controller-manager";
/// The variants, with their costs.
pub(super) const VARIANTS: [(&str, &str); 2] = [("llama-a", "10"), ("llama-b", "20")];
const SOON: Duration = Duration::from_mins(1);
const MANAGER_ROLE: &str = "workload-variant-autoscaler-manager";

/// An object by version, kind, namespace and name; without a namespace one of the cluster.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

/// An object of the cluster.
pub(super) fn outside(version: &'static str, kind: &'static str, name: &str) -> Place {
    Place { version, kind, namespace: None, name: name.to_owned() }
}

/// What is done to the fleet.
#[derive(Clone, Debug)]
pub(super) enum Plant {
    /// A merge patch of an object.
    Patch(Place, Value),
    /// A further object, in a namespace.
    Create(Value, Option<String>),
    /// An object less.
    Delete(Place),
    /// An object applied on the server's side by another manager.
    Apply(Value, String),
    /// Several, one after another.
    Each(Vec<Plant>),
    /// Nothing.
    Keep,
    /// The controller's page is not scraped.
    Unscraped,
    /// The engines of the first variant are not scraped.
    EnginesUnscraped,
    /// The pages of the engines of the first variant fail.
    EnginesFail,
    /// The pods of the first variant show this page.
    EnginesShow(&'static str),
    /// A pod with this name, maybe none, shows a page.
    Shows(&'static str, &'static str),
    /// The engines of the first variant are scraped twice.
    EnginesTwice,
    /// The controller has no rights.
    NoRights,
    /// The controller's process stands still.
    Frozen,
    /// The controller's page is scraped twice, and this patch.
    ScrapedTwice(Place, Value),
}

/// What mends it.
pub(super) enum Undo {
    Replace(Api<DynamicObject>, Box<DynamicObject>),
    Delete(Api<DynamicObject>, String),
    Create(Api<DynamicObject>, Box<DynamicObject>),
    Release(Api<DynamicObject>, Value, String),
    Scrape,
    Engines,
    Unsilence,
    Pages(Vec<Exporter>, Vec<Target>),
    Both(Box<Undo>, Box<Undo>),
    Rights,
    Thaw,
    Keep,
}

/// A controller with two variants of one model, each scaled by KEDA.
pub(super) struct Fleet<'a> {
    pub(super) cx: &'a Cx,
    pub(super) controller: Controller,
    engines: Vec<EngineFleet>,
    /// One that scrapes nothing.
    pub(super) empty: Prometheus,
    /// One that reads engines too seldom.
    pub(super) slow: Prometheus,
    /// One whose clock differs by more than is tolerated.
    pub(super) ahead: Ahead,
}

fn engines(cx: &Cx, name: &str) -> EngineFleet {
    let load = Load::Each(Reading { kv_cache: 0.5, running: 4.0, finished: 1.0, ..Reading::IDLE });
    EngineFleet::start(cx, &format!("app={name}"), MODEL, load)
}

/// The Deployment of a variant, as a client creates it.
fn deployment(name: &str) -> Value {
    let mut deployment = workload("Deployment", name, &json!({ "app": name }), 1);
    let arguments = json!(["--model", MODEL]);
    deployment["spec"]["template"]["spec"]["containers"][0]["args"] = arguments;
    deployment
}

/// The Deployment of the controller, with the settings of its process.
pub(super) fn controller(cx: &Cx, name: &str, instance: &str) -> Value {
    let labels =
        json!({ "control-plane": "controller-manager", "app.kubernetes.io/instance": name });
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    let namespace = json!({ "fieldRef": { "fieldPath": "metadata.namespace" } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "containers": [{
                        "name": "manager", "image": "example.com/workload-variant-autoscaler:test",
                        "args": ["controller", "--metrics-secure=false"],
                        "env": [
                            { "name": "POD_NAMESPACE", "valueFrom": namespace },
                            variable("PROMETHEUS_BASE_URL", &cx.world.prometheus.url),
                            variable("PROMETHEUS_ALLOW_HTTP", "true"),
                            variable("GLOBAL_OPT_INTERVAL", "1s"),
                            variable("CONTROLLER_INSTANCE", instance),
                        ],
                    }],
                },
            },
        },
    })
}

/// An authority that ends in three days.
pub(super) fn ending() -> Result<ByteString> {
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::new(vec!["nowhere.default.svc".to_owned()])?;
    let now = Duration::try_from(Timestamp::now().as_duration())?;
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + now + Duration::from_hours(72);
    Ok(ByteString(params.self_signed(&key)?.pem().into_bytes()))
}

async fn create(cx: &Cx, object: Value, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
    let api = manifest::api_of(&cx.world.client, &object, namespace).await?;
    let object: DynamicObject = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(api)
}

impl<'a> Fleet<'a> {
    /// Starts everything, and waits until the controller finds no obstacle.
    pub(super) async fn start(cx: &'a Cx) -> Result<Self> {
        let own = cx.namespace.name.as_str();
        let system = cx.system().await?.name.clone();
        for (name, _) in VARIANTS {
            create(cx, deployment(name), Some(own)).await?;
            cx.namespace.settles(name, 1, SOON).await?;
        }
        let engines = VARIANTS.map(|(name, _)| engines(cx, name)).into();
        let spec = ControllerSpec {
            watch_namespace: None,
            environment: vec![("CONTROLLER_INSTANCE", own.to_owned())],
            ..ControllerSpec::scoped(cx)
        };
        let process = Controller::start_ready(cx, &spec).await?;
        create(cx, controller(cx, CONTROLLER, own), Some(&system)).await?;
        cx.system().await?.settles(CONTROLLER, 1, SOON).await?;
        for (name, cost) in VARIANTS {
            let bounds = json!({ "maxReplicas": 8, "variantCost": cost });
            let mut object = variant(name, name, &bounds);
            object["metadata"]["labels"] = json!({ INSTANCE_LABEL: own });
            cx.namespace.apply(object).await?;
            let scaler = ScaledObject { target: name, variant: name, min: 1, max: 8 };
            scaler.apply(cx).await?;
            scaler.is_read(cx, "1").await?;
        }
        let (site, main) = (&cx.world.site, &cx.world.prometheus);
        let empty = Prometheus::place(site, "empty")?;
        let slow = Prometheus::federating(site, "slow", main, "50s")?;
        for other in [&empty, &slow] {
            other.server.start()?;
            other.ready().await?;
        }
        Ok(Self {
            cx,
            controller: process,
            engines,
            empty,
            slow,
            ahead: Ahead::start(&main.url, 25).await?,
        })
    }

    async fn api(&self, place: &Place) -> Result<Api<DynamicObject>> {
        let object = json!({ "apiVersion": place.version, "kind": place.kind });
        manifest::api_of(&self.cx.world.client, &object, place.namespace.as_deref()).await
    }

    async fn patch(&self, place: &Place, patch: &Value) -> Result<Undo> {
        let api = self.api(place).await?;
        let before = api.get(&place.name).await?;
        api.patch(&place.name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(Undo::Replace(api, Box::new(before)))
    }

    fn page(&self, pod: &str, page: &Exporter) -> Result<Target> {
        let prometheus = &self.cx.world.prometheus;
        prometheus.scrape(&self.cx.namespace.name, pod, page.address)
    }

    async fn show(&self, pods: &[String], text: &'static str) -> Result<Undo> {
        let (mut pages, mut targets) = (Vec::new(), Vec::new());
        for pod in pods {
            let page = Exporter::start(move || Page::Text(text.to_owned())).await?;
            targets.push(self.page(pod, &page)?);
            pages.push(page);
        }
        Ok(Undo::Pages(pages, targets))
    }

    /// The pods with an engine of the first variant.
    fn pods(&self) -> Vec<String> {
        self.engines.first().map_or_else(Vec::new, EngineFleet::pods)
    }

    /// Does it, and answers what undoes it.
    pub(super) async fn plant(&mut self, plant: &Plant) -> Result<Undo> {
        match plant {
            Plant::Patch(..) | Plant::Create(..) | Plant::Delete(_) | Plant::Apply(..) => {
                self.change(plant).await
            }
            Plant::Each(plants) => {
                let mut undo = Undo::Keep;
                for one in plants {
                    match Box::pin(self.plant(one)).await {
                        Ok(last) => undo = Undo::Both(Box::new(last), Box::new(undo)),
                        Err(error) => {
                            // The first fault counts, also where the undoing has one.
                            drop(self.mend(undo).await);
                            return Err(error);
                        }
                    }
                }
                Ok(undo)
            }
            other => self.disturb(other).await,
        }
    }

    /// Changes an object.
    async fn change(&self, plant: &Plant) -> Result<Undo> {
        let cx = self.cx;
        match plant {
            Plant::Patch(place, patch) => self.patch(place, patch).await,
            Plant::Create(object, namespace) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let api = create(cx, object.clone(), namespace.as_deref()).await?;
                Ok(Undo::Delete(api, name.to_owned()))
            }
            Plant::Delete(place) => {
                let api = self.api(place).await?;
                let before = api.get(&place.name).await?;
                api.delete(&place.name, &DeleteParams::background()).await?;
                Ok(Undo::Create(api, Box::new(before)))
            }
            Plant::Apply(object, manager) => {
                let own = Some(cx.namespace.name.as_str());
                let api = manifest::api_of(&cx.world.client, object, own).await?;
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let parameters = PatchParams::apply(manager).force();
                api.patch(name, &parameters, &Patch::Apply(object)).await?;
                Ok(Undo::Release(api, object.clone(), manager.clone()))
            }
            _ => Ok(Undo::Keep),
        }
    }

    /// Changes what is scraped, or the controller.
    async fn disturb(&mut self, plant: &Plant) -> Result<Undo> {
        let cx = self.cx;
        match plant {
            Plant::Unscraped => {
                self.controller.hide();
                Ok(Undo::Scrape)
            }
            Plant::EnginesUnscraped => {
                self.engines.remove(0);
                Ok(Undo::Engines)
            }
            Plant::EnginesFail => {
                self.silence(true);
                Ok(Undo::Unsilence)
            }
            Plant::EnginesShow(text) => {
                let pods = self.pods();
                self.engines.remove(0);
                let pages = self.show(&pods, text).await?;
                Ok(Undo::Both(Box::new(pages), Box::new(Undo::Engines)))
            }
            Plant::Shows(pod, text) => self.show(&[(*pod).to_owned()], text).await,
            Plant::EnginesTwice => {
                let page = "# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B\"} 4\n";
                self.show(&self.pods(), page).await
            }
            Plant::NoRights => {
                let account = Account::create(cx.system().await?, ACCOUNT).await?;
                account.unbind(MANAGER_ROLE).await?;
                Ok(Undo::Rights)
            }
            Plant::Frozen => {
                self.controller.freeze();
                Ok(Undo::Thaw)
            }
            Plant::ScrapedTwice(place, patch) => {
                let page = self.controller.metrics.parse()?;
                let system = &cx.system().await?.name;
                let target = cx.world.prometheus.scrape(system, "wva-1", page)?;
                let patched = self.patch(place, patch).await?;
                let pages = Undo::Pages(Vec::new(), vec![target]);
                Ok(Undo::Both(Box::new(pages), Box::new(patched)))
            }
            _ => Ok(Undo::Keep),
        }
    }

    fn silence(&self, is_silent: bool) {
        if let Some(engines) = self.engines.first() {
            for pod in engines.pods() {
                engines.set_silent(&pod, is_silent);
            }
        }
    }

    /// Undoes it.
    pub(super) async fn mend(&mut self, undo: Undo) -> Result {
        let cx = self.cx;
        match undo {
            Undo::Replace(api, before) => restore(&api, &before).await,
            Undo::Delete(api, name) => {
                api.delete(&name, &DeleteParams::background()).await?;
                eventually(format!("{name} is gone"), SOON, async || {
                    seen(&api.get_opt(&name).await?.is_none(), &true)
                })
                .await
            }
            Undo::Create(api, before) => recreate(&api, &before).await,
            Undo::Release(api, object, manager) => {
                // What is no longer applied is no longer owned.
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let bare = json!({
                    "apiVersion": object["apiVersion"], "kind": object["kind"],
                    "metadata": { "name": name },
                });
                let parameters = PatchParams::apply(&manager).force();
                api.patch(name, &parameters, &Patch::Apply(bare)).await?;
                Ok(())
            }
            Undo::Scrape => {
                let system = cx.system().await?;
                self.controller.show(cx, &system.name, "wva-0")
            }
            Undo::Engines => {
                let (name, _) = VARIANTS[0];
                self.engines.insert(0, engines(cx, name));
                Ok(())
            }
            Undo::Unsilence => {
                self.silence(false);
                Ok(())
            }
            Undo::Pages(pages, targets) => {
                drop(targets);
                drop(pages);
                Ok(())
            }
            Undo::Both(one, other) => {
                Box::pin(self.mend(*one)).await?;
                Box::pin(self.mend(*other)).await
            }
            Undo::Rights => {
                let account = Account::create(cx.system().await?, ACCOUNT).await?;
                account.bind_shipped("rbac/role.yaml").await
            }
            Undo::Keep => Ok(()),
            Undo::Thaw => {
                self.controller.thaw();
                Ok(())
            }
        }
    }
}

/// Gives an object back what it had.
async fn restore(api: &Api<DynamicObject>, before: &DynamicObject) -> Result {
    let name = before.metadata.name.clone().unwrap_or_default();
    eventually(format!("{name} is as before"), SOON, async || {
        let mut object = api.get(&name).await?;
        object.metadata.labels.clone_from(&before.metadata.labels);
        let annotations = &before.metadata.annotations;
        object.metadata.annotations.clone_from(annotations);
        let owners = &before.metadata.owner_references;
        object.metadata.owner_references.clone_from(owners);
        object.data.clone_from(&before.data);
        api.replace(&name, &PostParams::default(), &object).await?;
        Ok(())
    })
    .await
}

/// Creates an object again once it is gone.
async fn recreate(api: &Api<DynamicObject>, before: &DynamicObject) -> Result {
    let name = before.metadata.name.clone().unwrap_or_default();
    let mut object = before.clone();
    object.metadata = serde_json::from_value(json!({
        "name": name, "namespace": before.metadata.namespace,
        "labels": before.metadata.labels, "annotations": before.metadata.annotations,
    }))
    .map_err(|error| Fault::new(error.to_string()))?;
    eventually(format!("{name} is back"), SOON, async || {
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    })
    .await
}

/// An operator of KEDA whose account has no rights.
pub(super) fn powerless() -> Value {
    let labels = json!({ "app": "keda-operator" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "keda-operator", "labels": labels },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": { "serviceAccountName": "powerless", "containers": [{ "name": "keda", "image": "keda" }] },
        }},
    })
}
