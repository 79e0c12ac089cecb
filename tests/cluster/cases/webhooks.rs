//! Admission of `PodAutoscaler`, as a user of kubectl meets it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::api::{ApiResource, DeleteParams, DynamicObject};
use serde::Deserialize;
use serde_json::{Value, json};
use wva::api::pod_autoscaler::PodAutoscaler;

use crate::harness::controller::{Controller, ControllerSpec};
use crate::harness::fault::{Fault, Result};
use crate::harness::manifest;
use crate::harness::namespace::condition_of;
use crate::harness::pki::{Authority, Subject};
use crate::harness::ports;
use crate::harness::shipping::{Ended, Shipping};
use crate::harness::suite::{Case, Cx, case};
use crate::harness::tools::repository;
use crate::harness::wait::{eventually, seen};

const SOON: Duration = Duration::from_secs(30);
const NAME: &str = "chat";
const SAMPLES: &str = include_str!("../../vectors/aibrix-samples.yaml");

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case!(shared, webhooks::a_bad_object_is_refused_while_a_controller_answers)
            .within(Duration::from_mins(2)),
        case!(shared, webhooks::samples_of_aibrix_are_in_force_or_refused)
            .within(Duration::from_mins(4)),
    ]
}

/// A sample that AIBrix ships, and what becomes of it.
#[derive(Deserialize)]
struct Sample {
    file: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    spec: Value,
    /// Fields that keep it out.
    #[serde(default)]
    refused: Vec<String>,
    /// Annotations, and fields that the kind does not have.
    #[serde(default)]
    without_effect: Vec<String>,
}

impl Sample {
    fn object(&self) -> Value {
        json!({
            "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
            "kind": "PodAutoscaler",
            "metadata": { "name": NAME, "annotations": self.annotations },
            "spec": self.spec,
        })
    }

    fn fields_without_effect(&self) -> impl Iterator<Item = &String> {
        let all = self.without_effect.iter();
        all.filter(|one| one.starts_with("spec."))
    }

    fn annotations_without_effect(&self) -> impl Iterator<Item = &String> {
        let all = self.without_effect.iter();
        all.filter(|one| !one.starts_with("spec."))
    }

    /// Whether the schema refuses it, which requires some fields; then nothing else is looked at.
    fn lacks_a_required_field(&self) -> bool {
        self.spec.get("maxReplicas").is_none()
    }

    /// Checks what kubectl prints of it where fields that the kind does not have are dropped.
    fn check_printed(&self, text: &str) {
        for field in self.fields_without_effect() {
            let warning = format!("Warning: unknown field \"{field}\"");
            assert!(text.contains(&warning), "{}: {text}", self.file);
        }
        for annotation in self.annotations_without_effect() {
            let warning = format!("Warning: annotation {annotation}");
            assert!(text.contains(&warning), "{}: {text}", self.file);
        }
        let only_first = self.lacks_a_required_field();
        let refused = self.refused.iter();
        for field in refused.take(if only_first { 1 } else { usize::MAX }) {
            assert!(text.contains(&format!("{field}: ")), "{}: {text}", self.file);
        }
    }
}

/// An object of these fields in place of good ones. The schema accepts both.
fn object(fields: &Value) -> Value {
    let mut spec = json!({
        "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "llm" },
        "minReplicas": 1,
        "maxReplicas": 10,
        "scalingStrategy": "KPA",
        "metricsSources": [{
            "metricSourceType": "pod", "protocolType": "http", "port": "8000", "path": "/metrics",
            "targetMetric": "num_requests_waiting", "targetValue": "6",
        }],
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "autoscaling.aibrix.ai/v1alpha1",
        "kind": "PodAutoscaler",
        "metadata": {
            "name": NAME,
            "annotations": { "kpa.autoscaling.aibrix.ai/tolerance": "0.2" },
        },
        "spec": spec,
    })
}

fn bad() -> Value {
    object(&json!({
        "scaleTargetRef": { "kind": "Deployment" },
        "minReplicas": 12,
        "observeWindowSeconds": 30,
        "metricsSources": [{ "metricSourceType": "pod", "targetMetric": "m", "targetValue": "100m" }],
    }))
}

/// Fields of the bad object, each with a part of what is wrong.
const VIOLATIONS: [(&str, &str); 8] = [
    ("spec.scaleTargetRef.name", "must be set"),
    ("spec.minReplicas", "greater than"),
    ("spec.maxReplicas", "less than"),
    ("spec.panicWindowSeconds", "panicWindowSeconds"),
    ("spec.metricsSources[0].targetValue", "must be a valid number"),
    ("spec.metricsSources[0].port", "must be set"),
    ("spec.metricsSources[0].path", "must be set"),
    ("spec.metricsSources[0].protocolType", "must be set"),
];

/// The kubectl of an administrator, and the manifests of the case.
struct Kubectl<'a> {
    cx: &'a Cx,
    shipping: Shipping,
    program: PathBuf,
    /// What becomes of fields that a kind does not have.
    validate: &'static str,
}

impl<'a> Kubectl<'a> {
    fn of(cx: &'a Cx) -> Result<Self> {
        Ok(Self {
            cx,
            shipping: Shipping::to(&cx.world)?,
            program: cx.world.site.tools.program("kubectl")?,
            validate: "--validate=strict",
        })
    }

    async fn run(&self, arguments: &[&str]) -> Result<Ended> {
        let namespace = &self.cx.namespace.name;
        let mut all = vec!["--namespace".to_owned(), namespace.clone()];
        all.extend(arguments.iter().map(ToString::to_string));
        self.shipping.try_run(&self.program, &all, &[]).await
    }

    async fn apply(&self, object: &Value) -> Result<Ended> {
        let file = format!("{}-{NAME}.json", self.cx.namespace.name);
        let file = self.cx.world.site.write(&file, &object.to_string())?;
        self.run(&["apply", self.validate, "-f", &file.display().to_string()]).await
    }

    async fn accepts(&self, object: &Value) -> Result<String> {
        let ended = self.apply(object).await?;
        if ended.well { Ok(ended.text) } else { Err(Fault::new(ended.text)) }
    }

    async fn refuses(&self, object: &Value) -> Result<String> {
        let ended = self.apply(object).await?;
        if ended.well {
            Err(Fault::new(format!("it is accepted: {}", ended.text)))
        } else {
            Ok(ended.text)
        }
    }

    /// Waits until the webhook is called.
    async fn refusal_of_a_bad_object(&self) -> Result<String> {
        eventually("the webhook is called", SOON, async || {
            let refusal = self.refuses(&bad()).await;
            if refusal.is_err() {
                self.deletes().await?;
            }
            refusal
        })
        .await
    }

    async fn deletes(&self) -> Result {
        let ended = self.run(&["delete", "podautoscaler", NAME]).await?;
        if ended.well { Ok(()) } else { Err(Fault::new(ended.text)) }
    }
}

fn shipped(file: &str) -> Result<Vec<Value>> {
    manifest::read(&repository().join("config/webhook").join(file))
}

/// The folder with the certificate that the controller shows.
fn certificate(cx: &Cx, service: &str, system: &str) -> Result<PathBuf> {
    let folder = cx.folder("webhooks")?;
    let host = format!("{service}.{system}.svc");
    let subject = Subject { hosts: &[&host], ..Subject::user("webhooks") };
    Authority::make(&folder, "ca")?.issue(&folder, "tls", &subject)?;
    Ok(folder)
}

/// Has the API server call a port of loopback by what is shipped, for the namespace of the case alone.
/// On loopback it reaches a server only by a name and a port of its own.
async fn register(cx: &Cx, ca: &Path, port: u16) -> Result<Vec<Value>> {
    let client = &cx.world.client;
    let system = &cx.system().await?.name;
    for mut service in shipped("service.yaml")? {
        service["metadata"]["namespace"] = json!(system);
        service["spec"] = json!({
            "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }],
        });
        manifest::apply(client, service, None).await?;
    }
    let ca = serde_json::to_value(ByteString(fs::read(ca)?))?;
    let mut registered = Vec::new();
    for mut configuration in shipped("manifests.yaml")? {
        let kind = configuration["kind"].as_str().unwrap_or_default();
        let name = format!("{}-{}", cx.namespace.name, kind.to_lowercase());
        configuration["metadata"] = json!({ "name": name });
        let webhook = &mut configuration["webhooks"][0];
        webhook["namespaceSelector"] =
            json!({ "matchLabels": { "kubernetes.io/metadata.name": cx.namespace.name } });
        webhook["clientConfig"]["caBundle"] = ca.clone();
        webhook["clientConfig"]["service"]["namespace"] = json!(system);
        webhook["clientConfig"]["service"]["port"] = json!(port);
        manifest::apply(client, configuration.clone(), None).await?;
        registered.push(configuration);
    }
    Ok(registered)
}

/// A controller that serves webhooks, its arguments, the port of them, and the authority of its certificate.
async fn serving(cx: &Cx) -> Result<(Controller, Vec<String>, u16, PathBuf)> {
    let system = cx.system().await?.name.clone();
    let services = shipped("service.yaml")?;
    let service = services.first().ok_or_else(|| Fault::new("no Service"))?;
    let service = service["metadata"]["name"].as_str().unwrap_or_default();
    let folder = certificate(cx, service, &system)?;
    let port = ports::free()?;
    let arguments = vec![
        format!("--webhook-bind-address=127.0.0.1:{port}"),
        format!("--webhook-cert-path={}", folder.display()),
    ];
    let (controller, text) = started(cx, arguments.clone()).await?;
    assert!(text.contains("[+] certificate/webhooks"), "{text}");
    Ok((controller, arguments, port, folder.join("ca.crt")))
}

/// A controller with these arguments, and what it reports about its readiness.
async fn started(cx: &Cx, arguments: Vec<String>) -> Result<(Controller, String)> {
    let spec = ControllerSpec { arguments, ..ControllerSpec::scoped(cx) };
    let controller = Controller::start_ready(cx, &spec).await?;
    let text = controller.readiness().await?;
    Ok((controller, text))
}

async fn a_bad_object_is_refused_while_a_controller_answers(cx: &Cx) -> Result {
    let (controller, mut arguments, port, authority) = serving(cx).await?;

    // The schema alone has nothing against it.
    let kubectl = Kubectl::of(cx)?;
    kubectl.accepts(&bad()).await?;
    kubectl.deletes().await?;

    let registered = register(cx, &authority, port).await?;
    let refusal = kubectl.refusal_of_a_bad_object().await?;
    assert!(refusal.contains(&format!("The PodAutoscaler \"{NAME}\" is invalid")), "{refusal}");
    for (field, part) in VIOLATIONS {
        let line = refusal.lines().find(|line| line.contains(&format!("{field}: ")));
        assert!(line.is_some_and(|line| line.contains(part)), "{field}: {refusal}");
    }
    let absent = kubectl.run(&["get", "podautoscaler", NAME]).await?;
    assert!(absent.text.contains("NotFound"), "{}", absent.text);

    // A good one comes in, with a warning, and a bad edit of it does not.
    let accepted = kubectl.accepts(&object(&json!({}))).await?;
    assert!(accepted.contains("created"), "{accepted}");
    let warning = "Warning: annotation kpa.autoscaling.aibrix.ai/tolerance";
    assert!(accepted.contains(warning), "{accepted}");
    kubectl.accepts(&object(&json!({ "maxReplicas": 11 }))).await?;
    let patch = json!({ "spec": { "maxReplicas": 0 } }).to_string();
    let edited =
        kubectl.run(&["patch", "podautoscaler", NAME, "--type=merge", "-p", &patch]).await?;
    assert!(
        !edited.well && edited.text.contains("spec.maxReplicas: 0 must be positive"),
        "{}",
        edited.text
    );
    kubectl.deletes().await?;

    // Without an answer it is stored, and AIBrix's switch leaves none.
    kubectl.refuses(&bad()).await?;
    controller.stop().await?;
    arguments.push("--disable-webhook".to_owned());
    let (silent, text) = started(cx, arguments).await?;
    assert!(!text.contains("certificate/webhooks"), "{text}");
    kubectl.accepts(&bad()).await?;
    kubectl.deletes().await?;
    silent.stop().await?;
    unregister(cx, registered).await
}

async fn unregister(cx: &Cx, registered: Vec<Value>) -> Result {
    for configuration in registered {
        let name = configuration["metadata"]["name"].as_str().unwrap_or_default();
        let api = manifest::api_of(&cx.world.client, &configuration, None).await?;
        api.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Every sample that AIBrix ships. By default kubectl keeps fields out that a kind does not have; `--validate=warn`
/// drops them.
async fn samples_of_aibrix_are_in_force_or_refused(cx: &Cx) -> Result {
    let samples: Vec<Sample> = serde_yaml::from_str(SAMPLES)?;
    let (_controller, _, port, authority) = serving(cx).await?;
    let strict = Kubectl::of(cx)?;
    let kubectl = Kubectl { validate: "--validate=warn", ..Kubectl::of(cx)? };
    // The schema alone accepts what has the fields that it requires.
    for sample in samples.iter().filter(|sample| !sample.refused.is_empty()) {
        if sample.lacks_a_required_field() {
            let text = kubectl.refuses(&sample.object()).await?;
            assert!(text.contains("spec.maxReplicas: Required"), "{text}");
        } else {
            kubectl.accepts(&sample.object()).await?;
            kubectl.deletes().await?;
        }
    }

    let registered = register(cx, &authority, port).await?;
    kubectl.refusal_of_a_bad_object().await?;
    let (mut accepted, mut refused) = (0, 0);
    for sample in &samples {
        if let Some(field) = sample.fields_without_effect().next() {
            let text = strict.refuses(&sample.object()).await?;
            assert!(text.contains("unknown field"), "{field}: {text}");
        }
        if sample.refused.is_empty() {
            sample.check_printed(&kubectl.accepts(&sample.object()).await?);
            is_in_force(cx, sample).await?;
            kubectl.deletes().await?;
            accepted += 1;
        } else {
            sample.check_printed(&kubectl.refuses(&sample.object()).await?);
            refused += 1;
        }
    }
    assert_eq!((accepted, refused), (14, 5));
    unregister(cx, registered).await
}

/// The controller finds a sample valid, shows its bounds, and names its annotations without effect.
async fn is_in_force(cx: &Cx, sample: &Sample) -> Result {
    let objects = cx.namespace.erased(&ApiResource::erase::<PodAutoscaler>(&()));
    let bounds = |object: &DynamicObject, path: &str| object.data.pointer(path).cloned();
    let what = format!("{} is in force", sample.file);
    let object = eventually(what, SOON, async || {
        let object = objects.get(NAME).await?;
        let [status, ..] = condition_of(&object, "ValidSpec");
        seen(&status.as_str(), &"True")?;
        Ok(object)
    })
    .await?;
    for (shown, wanted) in [
        ("/status/scheduledBounds/effectiveMinReplicas", "/spec/minReplicas"),
        ("/status/scheduledBounds/effectiveMaxReplicas", "/spec/maxReplicas"),
    ] {
        assert_eq!(bounds(&object, shown), bounds(&object, wanted), "{}", sample.file);
    }
    for field in sample.fields_without_effect() {
        let pointer = format!("/{}", field.replace('.', "/"));
        assert_eq!(bounds(&object, &pointer), None, "{}", sample.file);
    }
    let [.., message] = condition_of(&object, "AnnotationsAccepted");
    for annotation in sample.annotations_without_effect() {
        assert!(message.contains(annotation), "{}: {message}", sample.file);
    }
    Ok(())
}
